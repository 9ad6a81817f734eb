//! The vendor's side: a running `navin-manager` and its command line.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use super::{CLUSTER, ENVIRONMENT, Narrator, SOON};
use crate::binaries::binaries;
use crate::bundle::Release;
use crate::eventually::until;
use crate::folder::TempFolder;
use crate::port::free_port;
use crate::process::{Finished, Process, Program};
use crate::registry::Registry;

/// A manager with one cluster and one environment.
pub struct Manager {
    home: TempFolder,
    endpoint: String,
    listen: String,
    process: Mutex<Option<Process>>,
    narrator: Narrator,
}

impl Manager {
    pub(super) async fn start(narrator: Narrator) -> Result<Self> {
        let home = TempFolder::new("manager")?;
        let listen = format!("127.0.0.1:{}", free_port());
        let manager = Self { endpoint: format!("https://{listen}"), listen, home, process: Mutex::new(None), narrator };
        let programs = binaries();
        manager.narrator.shorten_program(&programs.clicklink);
        manager.narrator.shorten_program(&programs.navin_manager);
        manager.narrator.shorten(&manager.home.path().display().to_string(), "~/manager");
        manager.resume().await?;
        let made =
            manager.run(&manager.client("token").args(["token", "create", "sre", "--data-dir"]).arg(manager.data_dir())).await?.ok()?;
        manager.home.write("token", made.stdout.trim())?;
        Ok(manager)
    }

    /// A manager with one cluster, and nothing else of the landscape.
    ///
    /// # Errors
    /// It does not come up.
    pub async fn alone() -> Result<Self> {
        let manager = Self::start(Narrator::silent()).await?;
        manager.quiet_cli(&["cluster", "create", CLUSTER, "-o", "name"]).await?.ok()?;
        Ok(manager)
    }

    /// Starts the server, again where it was stopped, and waits until it answers.
    ///
    /// # Errors
    /// It does not come up.
    pub async fn resume(&self) -> Result<()> {
        let args = ["serve", "--listen", &self.listen, "--organisation", "navin", "--data-dir"];
        let program = binaries().navin_manager("manager").args(args).arg(self.data_dir());
        let process = program.start(&self.home)?;
        until("the manager to answer", SOON, || async {
            process.ensure_running()?;
            // Its port is open before its data folder is complete.
            let ca = reqwest::Certificate::from_pem(&std::fs::read(self.ca_file())?)?;
            let http = reqwest::Client::builder().no_proxy().tls_certs_only([ca]).build()?;
            http.get(&self.endpoint).send().await?;
            Ok(())
        })
        .await?;
        *self.process.lock().expect("no holder of the lock panics") = Some(process);
        Ok(())
    }

    /// The server's process id.
    ///
    /// # Panics
    /// It is not there.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.process.lock().expect("no holder of the lock panics").as_ref().expect("the manager runs").pid()
    }

    /// Ends the server by SIGKILL.
    ///
    /// # Panics
    /// It is not there, or does not end.
    pub async fn kill(&self) {
        let process = self.process.lock().expect("no holder of the lock panics").take().expect("the manager runs");
        process.kill_hard();
        process.wait(Duration::from_secs(10)).await.expect("a killed process ends");
    }

    /// Cluster and environment.
    pub(super) async fn set_up(&self, registry: &Registry) -> Result<()> {
        self.narrator.shorten(&registry.folder().path().display().to_string(), "~/registry");
        self.cli(&["cluster", "create", CLUSTER, "-o", "name"]).await?.ok()?;
        let base = registry.chart_base();
        let mode = if registry.authenticated() { "basic" } else { "anonymous" };
        let create =
            ["environment", "create", ENVIRONMENT, "--cluster", CLUSTER, "--registry-mode", mode, "--chart-base", &base, "-o", "name"];
        self.cli(&create).await?.ok()?;
        Ok(())
    }

    /// Runs the command line as a person with a token.
    ///
    /// # Errors
    /// It cannot be run; its own failure is in the answer.
    pub async fn cli(&self, args: &[&str]) -> Result<Finished> {
        self.run(&self.client("cli").args(args)).await
    }

    /// As [`Manager::cli`], without telling.
    ///
    /// # Errors
    /// As there.
    pub async fn quiet_cli(&self, args: &[&str]) -> Result<Finished> {
        Narrator::silent().run(&self.client("cli").args(args), &self.home).await
    }

    /// Makes a release from a file.
    ///
    /// # Errors
    /// It is refused.
    pub async fn create_release(&self, name: &str, release: &Release) -> Result<()> {
        let components: Vec<_> = release.components.iter().map(crate::bundle::Component::to_json).collect();
        let document = json!({"name": name, "namespaces": release.namespaces, "components": components, "objects": release.objects});
        let file = self.home.write(format!("{name}.json"), serde_json::to_string_pretty(&document)?)?;
        self.cli(&["release", "create", "-f", &file.display().to_string(), "-o", "name"]).await?.ok()?;
        Ok(())
    }

    /// The exact text of the manifest that was last proposed from a release.
    ///
    /// # Errors
    /// None was.
    pub async fn manifest(&self, release: &str) -> Result<String> {
        let printed = self.quiet_cli(&["release", "manifest", release, "--environment", ENVIRONMENT]).await?.ok()?;
        Ok(printed.stdout)
    }

    /// A one-time token for an executor of the cluster.
    ///
    /// # Errors
    /// It is refused.
    pub async fn enrolment_token(&self) -> Result<String> {
        let made = self.quiet_cli(&["executor", "enroll", "--cluster", CLUSTER, "-o", "json"]).await?.ok()?;
        let made: serde_json::Value = serde_json::from_str(&made.stdout)?;
        Ok(made["token"].as_str().context("the enrolment token")?.to_owned())
    }

    /// `https://host:port`.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// PEM of its CA.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.data_dir().join("ca.crt")
    }

    fn data_dir(&self) -> PathBuf {
        self.home.join("data")
    }

    /// Its temporary folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    fn client(&self, name: &str) -> Program {
        binaries()
            .navin_manager(name)
            .env("NAVIN_MANAGER_ENDPOINT", &self.endpoint)
            .env("NAVIN_MANAGER_CA_FILE", self.ca_file())
            .env("NAVIN_MANAGER_TOKEN_FILE", self.home.join("token"))
    }

    async fn run(&self, program: &Program) -> Result<Finished> {
        self.narrator.run(program, &self.home).await
    }
}
