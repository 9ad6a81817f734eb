//! A manager and an enrolled executor, and nothing else: no cluster, no registry.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use system_tests::{Process, Program, TempFolder, binaries, eventually, free_port};

use crate::between::Silent;

/// How long anything that should happen soon may take on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);

pub(crate) struct Pair {
    home: TempFolder,
    listen: String,
    _manager: Process,
    executor: Option<Process>,
    seen: usize,
}

impl Pair {
    /// Both are there, the executor is not started.
    pub(crate) async fn new(config: &str) -> Self {
        let home = TempFolder::new("channel").unwrap();
        let listen = format!("127.0.0.1:{}", free_port());
        let config = home.write("manager.yaml", config).unwrap();
        let serve = binaries().navin_manager("manager").args(["serve", "--listen", &listen, "--organisation", "navin", "--config"]);
        let manager = serve.arg(config).arg("--data-dir").arg(home.join("data")).start(&home).unwrap();
        let pair = Self { home, listen, _manager: manager, executor: None, seen: 0 };
        eventually("the manager to listen", SOON, async || {
            ensure!(std::fs::read_to_string(pair.home.join("logs/manager.log"))?.contains("listening on "));
            Ok(())
        })
        .await;
        let token = pair.cli(&["token", "create", "test", "--data-dir", &pair.path("data")]).await;
        pair.home.write("token", token).unwrap();
        pair.cli(&["cluster", "create", "bank"]).await;
        let base = "oci://127.0.0.1:1/platform";
        pair.cli(&["environment", "create", "env-1", "--cluster", "bank", "--registry-mode", "anonymous", "--chart-base", base]).await;
        pair.enrol().await;
        pair
    }

    async fn enrol(&self) {
        let token = self.cli(&["executor", "enroll", "--cluster", "bank"]).await;
        let init = binaries().clicklink("init").args(["clctl", "init", "--enroll", &format!("https://{}", self.listen)]);
        let init =
            init.args(["--api-private-ca", &self.path("data/ca.crt"), "--region", "eu-west-1", "--config", &self.path("etc/config.yaml")]);
        let init = init.args(["--state-dir", &self.path("state"), "--api-port", &free_port().to_string()]).stdin(token + "\n");
        init.run(&self.home, SOON).await.unwrap().ok().unwrap();
        // The tests run side by side, and each daemon opens a health port.
        let config = self.home.join("etc/config.yaml");
        let text = std::fs::read_to_string(&config).unwrap();
        let text = HEALTH_OFF.iter().fold(text, |text, (at, off)| text.replacen(at, &format!("{at}{off}"), 1));
        std::fs::write(config, text).unwrap();
    }

    pub(crate) fn start_executor(&mut self, env: &[(&str, &str)]) {
        let program = binaries().clicklink("executor").args(["executor", "--config"]).arg(self.home.join("etc/config.yaml"));
        let program = env.iter().fold(program, |program: Program, (name, value)| program.env(name, value));
        self.forget_log();
        self.executor = Some(program.start(&self.home).unwrap());
    }

    pub(crate) async fn end_executor(&mut self) {
        let process = self.executor.take().unwrap();
        process.terminate();
        process.wait(SOON).await.unwrap();
    }

    pub(crate) async fn stop_executor(&mut self) {
        self.end_executor().await;
        eventually("the manager to see it gone", SOON, async || {
            ensure!(self.connected().await.is_none());
            Ok(())
        })
        .await;
    }

    /// Has the executor connect to another address that stands for the manager.
    pub(crate) fn connect_by(&self, address: &str) {
        let config = self.home.join("etc/config.yaml");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(config, text.replace(&self.listen, address)).unwrap();
    }

    /// An access bundle for a cluster that never answers.
    pub(crate) async fn pretend_cluster(&self) -> Silent {
        let silent = Silent::start().await;
        let ca = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, self.managers("ca.crt"));
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": format!("https://{}", silent.address), "certificate-authority-data": ca}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        });
        let folder = self.home.folder("etc/access/executor/_cluster").unwrap();
        std::fs::write(folder.join("kubeconfig"), kubeconfig.to_string()).unwrap();
        std::fs::write(folder.join("token"), "t").unwrap();
        silent
    }

    /// `host:port` of the manager.
    pub(crate) fn address(&self) -> String {
        self.listen.clone()
    }

    /// A file of the manager's data folder.
    pub(crate) fn managers(&self, name: &str) -> String {
        std::fs::read_to_string(self.home.join("data").join(name)).unwrap()
    }

    /// A file of the executor's `tls` folder.
    pub(crate) fn tls(&self, name: &str) -> String {
        std::fs::read_to_string(self.tls_path(name)).unwrap()
    }

    fn tls_path(&self, name: &str) -> PathBuf {
        self.home.join("etc/tls").join(name)
    }

    pub(crate) fn certificate(&self) -> String {
        self.tls("client.crt")
    }

    pub(crate) fn mode(&self, name: &str) -> u32 {
        self.tls_path(name).metadata().unwrap().permissions().mode() & 0o777
    }

    /// Writes another text into a credential file; the former one.
    pub(crate) fn replace(&self, name: &str, text: &str) -> String {
        let path = self.home.join("etc").join(name);
        let former = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, text).unwrap();
        former
    }

    pub(crate) async fn until_connected(&self) {
        eventually("the executor to be connected", SOON, async || {
            self.executor.as_ref().context("not started")?.ensure_running()?;
            self.connected().await.context("not connected")
        })
        .await;
    }

    /// Whether the manager sees it.
    pub(crate) async fn connected(&self) -> Option<()> {
        let shown = self.json(&["executor", "list", "-o", "json"]).await;
        (shown[0]["connected"] == true).then_some(())
    }

    /// Proposes a bundle, and waits for the refusal for want of an approval.
    pub(crate) async fn propose_and_refuse(&self) -> String {
        let chart = json!({"name": "operator", "version": "0.3.1", "digest": format!("sha256:{}", "1".repeat(64))});
        let components = json!([{"name": "operator", "chart": chart, "values": {}}]);
        let release = json!({"name": "r1", "namespaces": ["clickhouse-platform"], "components": components});
        let file = self.home.write("r1.json", release.to_string()).unwrap();
        self.cli(&["release", "create", "-f", &file.display().to_string()]).await;
        self.cli(&["release", "propose", "r1", "--environment", "env-1"]).await;
        eventually("the result to be stored", SOON, async || {
            let commands = self.commands().await;
            ensure!(commands[0]["status"] == "failed", "{commands}");
            Ok(commands[0]["result"].as_str().unwrap_or_default().to_owned())
        })
        .await
    }

    /// Commands that ended.
    pub(crate) async fn results(&self) -> usize {
        self.commands().await.as_array().unwrap().iter().filter(|command| command["status"] == "failed").count()
    }

    async fn commands(&self) -> Value {
        let shown = self.json(&["executor", "list", "-o", "json"]).await;
        self.json(&["executor", "commands", shown[0]["id"].as_str().unwrap(), "-o", "json"]).await
    }

    /// What the executor has logged since it started, or since [`Pair::forget_log`].
    pub(crate) fn log(&self) -> String {
        let log = std::fs::read_to_string(self.home.join("logs/executor.log")).unwrap_or_default();
        log[self.seen..].to_owned()
    }

    pub(crate) fn forget_log(&mut self) {
        self.seen = std::fs::read(self.home.join("logs/executor.log")).map_or(0, |log| log.len());
    }

    pub(crate) async fn until_logged(&self, text: &str) {
        eventually(&format!("`{text}` in the log"), SOON, async || {
            let log = self.log();
            ensure!(log.contains(text), "{log}");
            Ok(())
        })
        .await;
    }

    fn path(&self, name: &str) -> String {
        self.home.join(name).display().to_string()
    }

    async fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.cli(args).await).unwrap()
    }

    async fn cli(&self, args: &[&str]) -> String {
        let run = async || -> Result<String> {
            let program = binaries().navin_manager("cli").env("NAVIN_MANAGER_ENDPOINT", format!("https://{}", self.listen));
            let program = program.env("NAVIN_MANAGER_CA_FILE", self.home.join("data/ca.crt"));
            let token = self.home.join("token");
            let program = if token.exists() { program.env("NAVIN_MANAGER_TOKEN_FILE", token) } else { program };
            Ok(program.args(args).run(&self.home, SOON).await?.ok()?.stdout.trim().to_owned())
        };
        run().await.unwrap()
    }
}

/// Where the configuration says that no health port is opened.
const HEALTH_OFF: [(&str, &str); 1] = [("executor:\n", "  observability:\n    health_port: 0\n")];
