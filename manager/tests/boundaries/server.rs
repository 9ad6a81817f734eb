//! `navin-manager serve` on loopback, stopped when the test ends, and the command line against it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_navin-manager");

/// A running server with its data folder, and an admin token.
pub(crate) struct Server {
    process: Process,
    folder: TempDir,
    pub(crate) endpoint: String,
}

impl Server {
    /// Starts one on a free port and makes the first token.
    pub(crate) fn start() -> Self {
        Self::configured("{}")
    }

    /// As [`Server::start`], with a configuration file.
    pub(crate) fn configured(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.yaml"), config).unwrap();
        let (process, endpoint) = serve(folder.path(), "127.0.0.1:0");
        let server = Self { process, folder, endpoint };
        let data = server.data().display().to_string();
        let token = server.run(&["token", "create", "test", "--data-dir", &data]);
        std::fs::write(server.token_file(), token).unwrap();
        server
    }

    /// Stops it as init would, and starts it again at the same address.
    pub(crate) fn restart(&mut self) {
        self.terminate();
        let address = self.endpoint.trim_start_matches("https://").to_owned();
        (self.process, _) = serve(self.folder.path(), &address);
    }

    fn terminate(&mut self) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.process.0), rustix::process::Signal::TERM).unwrap();
        assert!(self.process.0.wait().unwrap().success(), "the server did not stop well");
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The admin token.
    pub(crate) fn token(&self) -> String {
        std::fs::read_to_string(self.token_file()).unwrap()
    }

    fn token_file(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    /// What the REST API answers to a `GET` with the admin token, whatever its status.
    pub(crate) async fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path).await).unwrap()
    }

    /// As [`Server::get`], as text.
    pub(crate) async fn text(&self, path: &str) -> String {
        let http = system_tests::simulated::client(&self.ca(), None);
        http.get(format!("{}{path}", self.endpoint)).bearer_auth(self.token().trim()).send().await.unwrap().text().await.unwrap()
    }

    pub(crate) fn ca(&self) -> String {
        std::fs::read_to_string(self.data().join("ca.crt")).unwrap()
    }

    /// A file in a folder that goes with the server.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// Runs a command and takes what it did.
    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(BINARY);
        command.args(arguments).env("NAVIN_MANAGER_ENDPOINT", &self.endpoint).env("NAVIN_MANAGER_CA_FILE", self.data().join("ca.crt"));
        if self.token_file().exists() {
            command.env("NAVIN_MANAGER_TOKEN_FILE", self.token_file());
        }
        command.output().unwrap()
    }

    /// Runs a command that must succeed: its stdout without the last newline.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end_matches('\n').to_owned()
    }

    /// Runs a command that must succeed: its JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(arguments)).unwrap()
    }

    /// Runs a command that must fail: its stderr.
    pub(crate) fn fail(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).unwrap()
    }
}

/// A child that does not outlive the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the server and waits until it says that it listens.
fn serve(folder: &Path, listen: &str) -> (Process, String) {
    let mut command = Command::new(BINARY);
    command.args(["serve", "--organisation", "bank", "--listen", listen, "--data-dir"]).arg(folder.join("data"));
    command.arg("--config").arg(folder.join("config.yaml"));
    let mut process = Process(command.env("NAVIN_MANAGER_LOG", "debug,sqlx=warn").stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(process.0.stderr.take().unwrap());
    let mut seen = String::new();
    loop {
        let mut line = String::new();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "the server ended: {seen}");
        seen.push_str(&line);
        if let Some(rest) = line.strip_prefix("listening on ") {
            let endpoint = rest.split(' ').next().unwrap().to_owned();
            // Its log belongs to the test's output; a full pipe would stop it.
            std::thread::spawn(move || {
                let mut rest = String::new();
                let _ = lines.read_to_string(&mut rest);
                println!("{seen}{rest}");
            });
            return (process, endpoint);
        }
    }
}
