//! The customer's side: a connector's folders, its executor, and a person with `clctl` and their own kubeconfig.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Manager, Narrator};
use crate::binaries::binaries;
use crate::control_plane::ControlPlane;
use crate::folder::TempFolder;
use crate::port::free_port;
use crate::process::{Finished, Process, Program};
use crate::registry::Registry;

/// A connector VM, as folders.
pub struct Connector {
    home: TempFolder,
    kubeconfig: PathBuf,
    registry_args: [String; 4],
    endpoint: String,
    health: String,
    executor: Option<Process>,
    narrator: Narrator,
}

impl Connector {
    pub(super) async fn enrol(control_plane: &ControlPlane, registry: &Registry, manager: &Manager, narrator: Narrator) -> Result<Self> {
        let home = TempFolder::new("connector")?;
        let (port, health_port) = (free_port(), free_port());
        let text = |path: &Path| path.display().to_string();
        let connector = Self {
            endpoint: format!("http://127.0.0.1:{port}"),
            health: format!("http://127.0.0.1:{health_port}"),
            kubeconfig: control_plane.admin_kubeconfig().to_owned(),
            registry_args: [
                "--registry-config".into(),
                text(registry.docker_config()),
                "--registry-ca-file".into(),
                text(registry.ca_file()),
            ],
            home,
            executor: None,
            narrator,
        };
        connector.narrator.shorten(&connector.etc().display().to_string(), "/etc/clicklink");
        connector.narrator.shorten(&connector.home.path().display().to_string(), "~");
        let (ca, port) = (text(&manager.ca_file()), port.to_string());
        let program = connector.clctl("init").args(["init", "--enroll", manager.endpoint(), "--api-private-ca", &ca]).args([
            "--region",
            "eu-west-1",
            "--cluster-name",
            super::CLUSTER,
            "--api-port",
            &port,
            "--config",
            &text(&connector.config()),
            "--state-dir",
            &text(&connector.state_dir()),
        ]);
        let token = manager.enrolment_token().await?;
        connector.narrator.run(&program.stdin(token + "\n"), &connector.home).await?.ok()?;
        connector.complete_configuration(registry, health_port)?;
        Ok(connector)
    }

    /// The registry's block of the configuration, as its owner would add it, and a health port that no other test has.
    fn complete_configuration(&self, registry: &Registry, health_port: u16) -> Result<()> {
        let text = std::fs::read_to_string(self.config())?;
        let own_port = format!("\nexecutor:\n  observability: {{health_port: {health_port}}}\n");
        let mut text = text.replacen("\nexecutor:\n", &own_port, 1);
        ensure!(text.contains(&own_port), "the configuration has no block `executor`:\n{text}");
        text.push_str(&format!(
            "registry:\n  credentials_file: {}\n  ca_file: {}\n",
            registry.docker_config().display(),
            registry.ca_file().display()
        ));
        std::fs::write(self.config(), text).context("writing the configuration")
    }

    /// `executor access grant --cluster`, then `apply --cluster`.
    ///
    /// # Errors
    /// One of them fails.
    pub async fn grant_access(&self) -> Result<()> {
        for verb in ["grant", "apply"] {
            let program = self.clctl(verb).args(["executor", "access", verb, "--cluster", "--config"]).arg(self.config());
            self.narrator.run(&program.arg("--output-dir").arg(self.access_dir()), &self.home).await?.ok()?;
        }
        Ok(())
    }

    /// Starts the daemon.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_executor(&mut self) -> Result<()> {
        self.start(&binaries().clicklink("executor").args(["executor", "--config"]).arg(self.config()))
    }

    pub(super) fn start(&mut self, program: &Program) -> Result<()> {
        self.executor = Some(program.start(&self.home)?);
        Ok(())
    }

    /// The files of the token bundle, by name; none where there is no bundle.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn token_bundle(&self) -> Result<BTreeMap<String, Vec<u8>>> {
        let folder = self.access_dir().join("_platform");
        let mut files = BTreeMap::new();
        for entry in folder.read_dir().into_iter().flatten() {
            let entry = entry?;
            files.insert(entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?);
        }
        Ok(files)
    }

    /// What the token bundle says of its approval.
    ///
    /// # Errors
    /// There is none.
    pub fn approval(&self) -> Result<Value> {
        let files = self.token_bundle()?;
        Ok(serde_json::from_slice(files.get("approval.json").context("there is no token bundle")?)?)
    }

    /// The daemon.
    ///
    /// # Panics
    /// It was not started.
    #[must_use]
    pub fn executor(&self) -> &Process {
        self.executor.as_ref().expect("the executor was started")
    }

    /// Ends the daemon by SIGTERM.
    ///
    /// # Panics
    /// It was not started, or does not end by itself.
    pub async fn stop_executor(&mut self) {
        let process = self.executor.take().expect("the executor was started");
        process.terminate();
        process.wait(Duration::from_secs(20)).await.expect("the executor ends when it is told to");
    }

    /// Ends the daemon by SIGKILL and starts it again.
    ///
    /// # Panics
    /// It does not end, or does not start.
    pub async fn kill_and_restart_executor(&mut self) {
        let process = self.executor.take().expect("the executor was started");
        process.kill_hard();
        process.wait(Duration::from_secs(10)).await.expect("a killed process ends");
        self.start_executor().expect("the executor starts again");
    }

    /// `clctl platform approve` on file, with further arguments.
    ///
    /// # Errors
    /// It cannot be run; its own failure is in the answer.
    pub async fn approve(&self, more: &[&str]) -> Result<Finished> {
        self.narrator.run_as_on_terminal(self.approving(more), &self.home).await
    }

    /// The same, to be started.
    #[must_use]
    pub fn approving(&self, more: &[&str]) -> Program {
        let program = self.clctl("approve").args(["platform", "approve", "--config"]).arg(self.config());
        program.arg("--output-dir").arg(self.access_dir()).args(&self.registry_args).args(more)
    }

    /// `clctl platform approve --revoke`, with further arguments.
    ///
    /// # Errors
    /// It cannot be run; its own failure is in the answer.
    pub async fn revoke(&self, more: &[&str]) -> Result<Finished> {
        let program = self.clctl("revoke").args(["platform", "approve", "--revoke", "--config"]).arg(self.config());
        self.narrator.run(&program.arg("--output-dir").arg(self.access_dir()).args(more), &self.home).await
    }

    /// Any `clctl` command, told.
    ///
    /// # Errors
    /// It cannot be run; its own failure is in the answer.
    pub async fn run(&self, args: &[&str]) -> Result<Finished> {
        self.narrator.run(&self.clctl("clctl").args(args), &self.home).await
    }

    /// All commands of the executor, newest first.
    ///
    /// # Errors
    /// The local API does not answer.
    pub async fn commands(&self) -> Result<Vec<Value>> {
        let program = self.clctl("commands").args(["commands", "list", "-o", "json"]);
        let listed = program.run(&self.home, Duration::from_secs(30)).await?.ok()?;
        Ok(serde_json::from_str(&listed.stdout)?)
    }

    /// A path of the health port.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn health(&self, path: &str) -> Result<reqwest::Response> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        Ok(client.get(format!("{}{path}", self.health)).send().await?)
    }

    /// A path of the local API.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn local_api(&self, path: &str) -> Result<reqwest::Response> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        Ok(client.get(format!("{}{path}", self.endpoint)).send().await?)
    }

    /// `clicklink clctl` of a person at this machine.
    #[must_use]
    pub fn clctl(&self, name: &str) -> Program {
        let program = binaries().clicklink(name).env("KUBECONFIG", &self.kubeconfig).env("CLCTL_ENDPOINT", &self.endpoint);
        program.env("XDG_CACHE_HOME", self.home.path()).arg("clctl")
    }

    /// Address of the local API.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The flags by which a person names the registry's credentials.
    #[must_use]
    pub fn registry_args(&self) -> &[String] {
        &self.registry_args
    }

    /// Temporary folder.
    #[must_use]
    pub fn folder(&self) -> &TempFolder {
        &self.home
    }

    /// What `/etc/clicklink` is on a real machine.
    #[must_use]
    pub fn etc(&self) -> PathBuf {
        self.home.join("etc")
    }

    /// The configuration file.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.etc().join("config.yaml")
    }

    /// Access bundles and the staged bundle.
    #[must_use]
    pub fn access_dir(&self) -> PathBuf {
        self.etc().join("access/executor")
    }

    /// What `/var/lib/clicklink` is on a real machine.
    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        self.home.join("state")
    }
}
