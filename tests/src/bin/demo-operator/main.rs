//! `make demo-operator`: a component's life on a real control plane, as a person at kubectl sees it. Exit code 0 only if every step was seen.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use system_tests::landscape::Narrator;
use system_tests::operated::{Components, MANAGED, Operator, charts, condition, install, seen, spec};
use system_tests::{ControlPlane, Program, Tools, until};

/// How long a step may take.
const SOON: Duration = Duration::from_secs(60);
/// The component of the story.
const NAME: &str = "web";

#[tokio::main]
async fn main() -> ExitCode {
    let narrator = Narrator::aloud();
    match tell(&narrator).await {
        Ok(()) => {
            narrator.end("Every step was seen.");
            ExitCode::SUCCESS
        }
        Err(error) => {
            narrator.end(&format!("The demo FAILED: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// The stage of the story.
struct Story<'a> {
    narrator: &'a Narrator,
    control_plane: ControlPlane,
    components: Components,
    kubectl: Program,
    _operators: [Operator; 2],
}

async fn tell(narrator: &Narrator) -> Result<()> {
    let story = Story::begin(narrator).await?;
    story.installed().await?;
    story.scaled().await?;
    story.blocked_restart().await?;
    story.maintenance().await?;
    story.configured().await?;
    story.stopped().await?;
    story.deleted().await
}

impl<'a> Story<'a> {
    async fn begin(narrator: &'a Narrator) -> Result<Self> {
        narrator.step("A control plane, the definition, the rights, and two operators of which one leads");
        let control_plane = ControlPlane::start().await?;
        install(&control_plane).await?;
        let operator = Operator::start(&control_plane, "operator", &[MANAGED], &charts(), &[]).await?;
        operator.until_ready().await?;
        let second = Operator::start(&control_plane, "second", &[MANAGED], &charts(), &[]).await?;
        let path = Tools::control_plane().await?.path("kubectl").to_owned();
        narrator.shorten_program(&path);
        narrator.shorten(&format!("{}/", control_plane.folder().path().display()), "");
        let kubectl = Program::new("kubectl", &path).only_given_env().env("KUBECONFIG", control_plane.admin_kubeconfig());
        let kubectl = kubectl.env("HOME", control_plane.folder().join("home"));
        let components = Components::of(control_plane.client().await?, MANAGED);
        let story = Self { narrator, control_plane, components, kubectl, _operators: [operator, second] };
        story.kubectl(&["get", "lease"]).await?;
        story.kubectl(&["get", "rolebinding", "navin-operator", "-o", "wide"]).await?;
        Ok(story)
    }

    /// Runs kubectl in the managed namespace, showing it.
    async fn kubectl(&self, args: &[&str]) -> Result<()> {
        let program = self.kubectl.clone().args(["-n", MANAGED]).args(args);
        self.narrator.run(&program, self.control_plane.folder()).await?.ok().map(drop)
    }

    async fn change(&self, change: &Value) -> Result<()> {
        self.kubectl(&["patch", "mc", NAME, "--type=merge", "-p", &json!({"spec": change}).to_string()]).await
    }

    /// Waits until the component reads so, and shows it.
    async fn see(&self, expected: &str) -> Result<Value> {
        let component = until(expected, SOON, || async {
            let component = self.components.get(NAME).await?.context("it is gone")?;
            ensure!(seen(&component) == expected, "{}", seen(&component));
            ensure!(component["status"]["observedGeneration"] == component["metadata"]["generation"], "an older generation");
            Ok(component)
        })
        .await?;
        self.kubectl(&["get", "mc"]).await?;
        Ok(component)
    }

    fn reason(&self, component: &Value) {
        let operation = condition(component, "OperationSucceeded");
        let text = |field: &str| operation[field].as_str().unwrap_or_default().to_owned();
        self.narrator.note(&format!("{}: {}", text("reason"), text("message")));
    }

    async fn installed(&self) -> Result<()> {
        self.narrator.step("Install: three pods, of which two stay available");
        let spec = spec("web", &json!({"version": "1.0.0", "replicas": 3, "pdb": {"minAvailable": 2}}));
        let object = json!({"apiVersion": "platform.navin.ai/v1alpha1", "kind": "ManagedComponent",
            "metadata": {"name": NAME, "namespace": MANAGED}, "spec": spec});
        let file = self.control_plane.folder().write("web.json", format!("{object:#}"))?;
        self.kubectl(&["apply", "-f", &file.display().to_string()]).await?;
        self.see("started ok succeeded compliant true").await?;
        self.kubectl(&[
            "get",
            "deployments,services,configmaps,serviceaccounts,networkpolicies,pdb",
            "-l",
            "platform.navin.ai/component=web",
        ])
        .await
    }

    async fn scaled(&self) -> Result<()> {
        self.narrator.step("Scale to five");
        self.change(&json!({"replicas": 5})).await?;
        self.see("started ok succeeded compliant true").await.map(drop)
    }

    async fn blocked_restart(&self) -> Result<()> {
        self.narrator.step("Four pods become unready; a restart waits for its budget, and goes on by itself");
        let pods = self.components.pods(NAME).await?;
        self.components.harm(&pods[..4]).await;
        self.see("starting warning succeeded compliant false").await?;
        self.change(&json!({"restartRequestedAt": "2026-11-30T10:00:00Z"})).await?;
        let component = self.see("starting warning blocked compliant false").await?;
        self.reason(&component);
        self.components.heal(&pods).await;
        self.narrator.note("The pods are ready again.");
        self.see("started ok succeeded compliant true").await.map(drop)
    }

    async fn maintenance(&self) -> Result<()> {
        self.narrator.step("Maintenance: a stop is refused, more pods are not");
        self.change(&json!({"maintenance": true})).await?;
        self.change(&json!({"desiredState": "Stopped"})).await?;
        let component = self.see("started ok blocked compliant false").await?;
        self.reason(&component);
        self.change(&json!({"desiredState": "Running", "replicas": 6})).await?;
        self.see("started ok succeeded compliant true").await?;
        self.change(&json!({"maintenance": false})).await
    }

    async fn configured(&self) -> Result<()> {
        self.narrator.step("Configure: a value that looks like a secret is refused, another is rolled out");
        self.change(&json!({"values": {"auth": {"password": "s3same"}}})).await?;
        let component = self.see("started ok failed non_compliant false").await?;
        self.reason(&component);
        self.change(&json!({"values": {"auth": null, "greeting": "bonjour"}})).await?;
        self.see("started ok succeeded compliant true").await.map(drop)
    }

    async fn stopped(&self) -> Result<()> {
        self.narrator.step("Stop, and start: what the counts were comes back");
        self.change(&json!({"desiredState": "Stopped"})).await?;
        self.see("stopped ok succeeded compliant true").await?;
        self.change(&json!({"desiredState": "Running"})).await?;
        self.see("started ok succeeded compliant true").await.map(drop)
    }

    async fn deleted(&self) -> Result<()> {
        self.narrator.step("Delete: everything that was applied goes, then the resource");
        self.kubectl(&["delete", "mc", NAME]).await?;
        self.kubectl(&["get", "all,configmaps,networkpolicies,pdb", "-l", "platform.navin.ai/component=web"]).await?;
        let left = self.components.owned("apps/v1", "Deployment", NAME).await?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    }
}
