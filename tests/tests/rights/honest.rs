//! What must be possible: everything that happens to an approved workload in an honest cluster, after which it is applied again, by the
//! real token and by the executor's own sync.

use anyhow::{Context as _, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use system_tests::bundle::{self, Edition, NAMESPACE, Release};
use system_tests::eventually;
use system_tests::landscape::{Landscape, SOON};

use crate::ask::{Identity, apply, ask, post};
use crate::attempts::{ANNOTATION, DEPLOYMENT, LABEL, SHARED};
use crate::live::{KINDS, Live, not_taken_again, remove_some};

/// The Service that the customised chart has of type LoadBalancer.
const BALANCED: &str = "monitoring-collectors";

/// What happened to the cluster before the workload is applied again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Honest {
    Unchanged,
    Itself,
    Restarted,
    Scaled,
    Labelled,
    Balanced,
    Edited,
    Finished,
    Removed,
    ScaledFixed,
    WithoutApproval,
    Upgraded,
}

impl Honest {
    pub(crate) const ALL: [Self; 12] = [
        Self::Unchanged,
        Self::Itself,
        Self::Restarted,
        Self::Scaled,
        Self::Labelled,
        Self::Balanced,
        Self::Edited,
        Self::Finished,
        Self::Removed,
        Self::ScaledFixed,
        Self::WithoutApproval,
        Self::Upgraded,
    ];
    /// Those after which the first approval's workload is applied again, whole.
    pub(crate) const REPEATED: [Self; 9] = [
        Self::Unchanged,
        Self::Itself,
        Self::Restarted,
        Self::Scaled,
        Self::Labelled,
        Self::Balanced,
        Self::Edited,
        Self::Finished,
        Self::Removed,
    ];

    /// What happened, and what is possible.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        let again = "the whole workload half, again";
        match self {
            Self::Unchanged => ("nothing", again),
            Self::Itself => ("nothing", "asking who it is, and what it may do"),
            Self::Restarted => ("`kubectl rollout restart`", again),
            Self::Scaled => {
                ("an autoscaler changed the replicas of a Deployment whose chart leaves them out", "the same; the replicas stay")
            }
            Self::Labelled => ("others put labels and annotations on objects", "the same; they stay"),
            Self::Balanced => (
                "a load balancer was allocated: addresses, node ports, status, a controller's finalizer",
                "the same; they stay, a node port that the chart chose too",
            ),
            Self::Edited => ("`kubectl edit` of an annotation, the object sent back whole with its defaults", again),
            Self::Finished => ("a hook's Job finished and was removed", "a sync that does not run it again; the Job itself, by the token"),
            Self::Removed => ("approved objects were deleted", "the objects, made anew as they were approved"),
            Self::ScaledFixed => (
                "a person scaled a Deployment whose chart says the replicas",
                "an answer that names field and manager (a conflict); nothing is overwritten, the person decides",
            ),
            Self::WithoutApproval => (
                "`current` was deleted by hand",
                "every write of others to what is not pinned, and of controllers; a change of a pinned object waits for `approve --revoke`",
            ),
            Self::Upgraded => ("the second edition was approved", "its workload half, over the first one's"),
        }
    }

    /// Makes it happen.
    pub(crate) async fn happens(self, landscape: &Landscape, live: &Live) {
        let kubectl = |args: Vec<String>| kubectl(landscape, args);
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        match self {
            Self::Unchanged | Self::Itself | Self::WithoutApproval | Self::Upgraded => {}
            Self::Restarted => {
                kubectl(words(&format!("rollout restart deployment/{DEPLOYMENT} -n {NAMESPACE}"))).await;
            }
            Self::Scaled => {
                kubectl(words(&format!("scale deployment {DEPLOYMENT} -n {NAMESPACE} --replicas=3"))).await;
            }
            Self::ScaledFixed => {
                kubectl(words(&format!("scale deployment snapshot-controller -n {NAMESPACE} --replicas=2"))).await;
            }
            Self::Labelled => {
                for object in [format!("deployment/{DEPLOYMENT}"), format!("configmap/{DEPLOYMENT}"), format!("service/{BALANCED}")] {
                    kubectl(words(&format!("label {object} -n {NAMESPACE} {LABEL}=payments {SHARED}=42"))).await;
                    kubectl(words(&format!("annotate {object} -n {NAMESPACE} {ANNOTATION}=ops"))).await;
                }
            }
            Self::Balanced => balance(landscape).await,
            Self::Edited => {
                let get = words(&format!("get deployment clickhouse-operator -n {NAMESPACE} -o json"));
                let mut object: Value = serde_json::from_str(&kubectl(get).await).unwrap();
                object["metadata"]["annotations"]["example.com/note"] = json!("edited");
                let file = landscape.connector.folder().write("edited.json", object.to_string()).unwrap();
                kubectl(vec!["replace".into(), "-f".into(), file.display().to_string()]).await;
            }
            Self::Finished => {
                let job = live.named("Job", "monitoring-collectors-migration")["metadata"]["name"].as_str().unwrap().to_owned();
                kubectl(words(&format!("wait job/{job} -n {NAMESPACE} --for=condition=complete --timeout=60s"))).await;
                kubectl(words(&format!("delete job {job} -n {NAMESPACE}"))).await;
            }
            Self::Removed => {
                unbalance(landscape).await;
                remove_some(landscape, live).await;
            }
        }
    }
}

pub(crate) async fn kubectl(landscape: &Landscape, args: Vec<String>) -> String {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    landscape.control_plane.kubectl(&args).await.unwrap().ok().unwrap().stdout
}

/// As a cloud's controller does.
pub(crate) async fn balance(landscape: &Landscape) {
    let finalizer = json!({"metadata": {"finalizers": ["service.kubernetes.io/load-balancer-cleanup"]}});
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.10"}]}}});
    for (patch, more) in [(finalizer, None), (status, Some("--subresource=status"))] {
        let patch = patch.to_string();
        let mut args = vec!["patch", "service", BALANCED, "-n", NAMESPACE, "--type=merge", "--field-manager=cloud", "-p", &patch];
        args.extend(more);
        landscape.control_plane.kubectl(&args).await.unwrap().ok().unwrap();
    }
}

/// As that controller does before the Service may go.
pub(crate) async fn unbalance(landscape: &Landscape) {
    let args = ["patch", "service", BALANCED, "-n", NAMESPACE, "--type=merge", "-p", r#"{"metadata": {"finalizers": null}}"#];
    landscape.control_plane.kubectl(&args).await.unwrap().ok().unwrap();
}

/// The first edition or the second, with a Deployment whose replicas nobody says, and a Service that a load balancer serves.
pub(crate) async fn release(landscape: &Landscape, edition: Edition) -> Release {
    let mut release = bundle::push(&landscape.registry, edition).await.unwrap();
    let version = if edition == Edition::First { "1.8.0" } else { "1.9.0" };
    let chart = bundle::copy_chart("monitoring-collectors", version, landscape.connector.folder()).unwrap();
    let edit = |file: &str, from: &str, to: &str| {
        let file = chart.join(file);
        let before = std::fs::read_to_string(&file).unwrap();
        let after = before.replacen(from, to, 1);
        assert_ne!(before, after, "{} has such a line", file.display());
        std::fs::write(file, after).unwrap();
    };
    edit("charts/gateway/templates/deployment.yaml", "  replicas: {{ .Values.replicaCount }}\n", "");
    edit("templates/service.yaml", "spec:\n", "spec:\n  type: LoadBalancer\n");
    let door = "  ports:\n    - name: otlp\n      port: 4317\n      targetPort: otlp\n";
    edit(
        "templates/service.yaml",
        door,
        &format!("{door}    - name: door\n      port: 8443\n      targetPort: otlp\n      nodePort: 30443\n"),
    );
    release.component("monitoring-collectors").chart = landscape.registry.push_chart(&chart, None).await.unwrap();
    release
}

/// Applied again by the sync, then by the token; tells what was not taken.
pub(crate) async fn applied_again(landscape: &Landscape, platform: &Identity, live: &Live, sha256: &str) -> Vec<String> {
    let kinds: std::collections::BTreeSet<&str> = live.objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), KINDS, "the bundle has all six kinds");
    let mut wrong = Vec::new();
    if let Err(error) = synced_again(landscape, sha256).await {
        wrong.push(format!("the sync: {error:#}"));
    }
    wrong.extend(not_taken_again(platform, &live.objects).await);
    wrong
}

/// Sends the bundle again, as the vendor's person does, and waits for the answer.
pub(crate) async fn synced_again(landscape: &Landscape, sha256: &str) -> anyhow::Result<()> {
    let known = landscape.known_commands().await?;
    landscape.rearm().await?;
    let ended = eventually("a new command to end", SOON, || async {
        let commands = landscape.connector.commands().await?;
        let new = commands.into_iter().find(|command| !known.contains(command["id"].as_str().unwrap_or_default()));
        let new = new.context("no new command")?;
        ensure!(new["status"] == "failed" || new["status"] == "completed", "{new}");
        Ok(new)
    })
    .await;
    let result = ended["result"].as_str().unwrap_or_default();
    ensure!(ended["status"] == "completed" && result.starts_with(&format!("synced bundle {sha256}: ")), "{ended}");
    Ok(())
}

/// What every account may ask about itself.
pub(crate) async fn asks_about_itself(platform: &Identity) -> Vec<String> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let attributes = json!({"verb": "list", "resource": "secrets"});
    let access =
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}});
    let rules = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": NAMESPACE}});
    let requests = [
        post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review),
        post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", access),
        post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", rules),
        ask(Method::GET, "/version"),
    ];
    let mut wrong = Vec::new();
    for request in requests {
        let (status, message) = platform.ask(&request).await;
        if status != 200 && status != 201 {
            wrong.push(format!("{}: {status} {message}", request.path));
        }
    }
    wrong
}

/// The unforced apply of a Deployment that a person scaled: a conflict that says of what and with whom.
pub(crate) async fn is_told_of_the_conflict(platform: &Identity, live: &Live) -> Vec<String> {
    let (status, message) = platform.ask(&apply(live.named("Deployment", "snapshot-controller"))).await;
    let told = status == 409 && message.contains(".spec.replicas") && message.contains("\"kubectl\"");
    if told { Vec::new() } else { vec![format!("a conflict is told: {status} {message}")] }
}
