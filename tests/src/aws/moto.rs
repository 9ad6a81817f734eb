//! moto, AWS as others understand it: a server on the machine's loopback, built by `tests/tools/moto`. It keeps what it is asked.
//!
//! Where it forgives what the real services do not is written in `tests/aws/moto.rs`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reqwest::Url;
use serde_json::Value;

use super::scenario::Elsewhere;
use crate::eventually::until;
use crate::folder::TempFolder;
use crate::port::free_port;
use crate::process::{Process, Program};
use crate::tools::Tools;

const PATIENCE: Duration = Duration::from_secs(120);
/// File with the requests that it saw.
const RECORDING: &str = "recording";

/// A running server. It ends when this value is dropped, or with the test process.
#[derive(Debug)]
pub struct Moto {
    port: u16,
    client: reqwest::Client,
    process: Process,
    folder: TempFolder,
}

impl Moto {
    /// Starts one; `None` where it is not built for want of Python.
    ///
    /// # Errors
    /// It cannot be built or does not come up.
    pub async fn start() -> Result<Option<Self>> {
        let tools = Tools::moto().await?;
        let program = tools.path("moto");
        if !program.is_file() {
            return Ok(None);
        }
        let folder = TempFolder::new("moto")?;
        let port = free_port();
        let process = Program::new("moto", program)
            .only_given_env()
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .env("MOTO_ENABLE_RECORDING", "yes")
            .env("MOTO_RECORDER_FILEPATH", folder.join(RECORDING))
            .start(&folder)?;
        let moto = Self { port, client: reqwest::Client::builder().no_proxy().build()?, process, folder };
        until("moto to answer", PATIENCE, || async {
            match moto.process.ensure_running() {
                Err(ended) => Ok(Err(ended)),
                Ok(()) => {
                    moto.client.get(moto.url("moto-api/data.json")).send().await?.error_for_status()?;
                    Ok(Ok(()))
                }
            }
        })
        .await??;
        Ok(Some(moto))
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// It in the place of these hosts. Its ECR gives the same password in one account at all times.
    #[must_use]
    pub fn playing(&self, hosts: &[&str], account: &str) -> Elsewhere {
        let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
        Elsewhere { port: self.port, hosts, login: format!("AWS:{account}-auth-token") }
    }

    /// Asks a service of an account, by a form, with a signature that is none: the answer. Not after [`Self::verify`].
    ///
    /// # Errors
    /// It refuses; the error has its words.
    pub async fn ask(&self, account: &str, service: &str, form: &[(&str, &str)]) -> Result<String> {
        let form = Url::parse_with_params("http://form/", form)?;
        let credential =
            format!("AWS4-HMAC-SHA256 Credential=nobody/20261130/eu-west-1/{service}/aws4_request, SignedHeaders=host, Signature=0");
        let asked = self
            .client
            .post(self.url(""))
            .header("Authorization", credential)
            .header("x-moto-account-id", account)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(form.query().unwrap_or_default().to_owned());
        let answer = asked.send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        ensure!(status.is_success(), "{form}: {status}: {text}");
        Ok(text)
    }

    /// From now on it verifies signatures and looks at policies.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn verify(&self) -> Result<()> {
        self.client.post(self.url("moto-api/reset-auth")).body("0").send().await?.error_for_status()?;
        Ok(())
    }

    /// The requests to a host that it has seen: `method`, `url`, `headers`, and `body` in base64.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn seen(&self, host: &str) -> Result<Vec<Value>> {
        let text = std::fs::read_to_string(self.folder.join(RECORDING))?;
        let seen: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>().context("moto's recording")?;
        Ok(seen.into_iter().filter(|request| request["headers"]["Host"] == host).collect())
    }
}
