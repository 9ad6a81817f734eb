//! A network of its own in which the services have their real names and addresses.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::relay;
use super::scenario::{Imds, Noted, Order, Scenario};
use crate::binaries::binaries;
use crate::folder::TempFolder;
use crate::pki::Authority;
use crate::process::{Finished, Program};

/// How long a command may take in all.
const PATIENCE: Duration = Duration::from_secs(120);

/// `hosts`, `aws-fake`, its order, its ready file, the metadata service's address or `none`; then the command. The shell is the first process
/// of its namespace: all others end with it.
const SCRIPT: &str = "ip link set lo up; if [ \"$5\" != none ]; then ip address add \"$5\" dev lo nodad; fi; \
                      mount --bind \"$1\" /etc/hosts; \"$2\" \"$3\" & fake=$!; \
                      until [ -e \"$4\" ]; do kill -0 $fake; sleep 0.02; done; shift 5; \"$@\"";

/// A folder with what `aws-fake` is told, for one run or more.
#[derive(Debug)]
pub struct Cloud {
    folder: TempFolder,
    scenario: Scenario,
    ca: PathBuf,
    order: PathBuf,
    hosts: PathBuf,
    fake: PathBuf,
    flags: &'static str,
}

/// What a command in the cloud did.
#[derive(Debug)]
pub struct Ran {
    /// How it ended and what it printed.
    pub finished: Finished,
    /// How long it took, the services' start included.
    pub took: Duration,
    /// `METHOD host path action` of each request that a service saw, in order.
    pub requests: Vec<String>,
}

impl Cloud {
    /// Prepares a cloud; `fake` is the program `aws-fake`.
    ///
    /// # Errors
    /// This machine allows no network namespace; the error has what each try said.
    ///
    /// # Panics
    /// A port is to be relayed, and this is called outside of a runtime.
    pub fn new(scenario: Scenario, fake: impl Into<PathBuf>) -> Result<Self> {
        let folder = TempFolder::new("aws")?;
        let authority = Authority::new("testbed-aws-ca")?;
        let names = [scenario.sts.as_str(), &scenario.ecr, &scenario.registry, Scenario::STORE];
        let server = authority.server("aws", &names)?;
        let ca = folder.write("ca.pem", authority.certificate())?;
        let hosts = folder.write("hosts", format!("127.0.0.1 localhost {}\n", names.join(" ")))?;
        let order = Order {
            scenario: scenario.clone(),
            certificate: server.certificate,
            key: server.key,
            log: folder.join("requests"),
            ready: folder.join("ready"),
            socket: folder.join("relay"),
            elsewhere: folder.join("elsewhere"),
        };
        if let Some(port) = scenario.relayed_port {
            relay::outside(&order.socket, port)?;
        }
        if let Some(elsewhere) = &scenario.elsewhere {
            relay::outside(&order.elsewhere, elsewhere.port)?;
        }
        let order = folder.write("order.json", serde_json::to_vec(&order)?)?;
        Ok(Self { folder, scenario, ca, order, hosts, fake: fake.into(), flags: namespaces()? })
    }

    /// Where files for the command may lie.
    #[must_use]
    pub fn folder(&self) -> &TempFolder {
        &self.folder
    }

    /// Runs `clicklink` there, with no environment but this, a home, and the trust in the cloud's certificates.
    ///
    /// # Errors
    /// It cannot be started or hangs.
    pub async fn clicklink(&self, args: &[&str], env: &[(&str, &str)]) -> Result<Ran> {
        for left in ["requests", "ready"] {
            let _ = std::fs::remove_file(self.folder.join(left));
        }
        let imds = match self.scenario.imds {
            Imds::Absent => "none",
            Imds::Ipv6 => "fd00:ec2::254/128",
            Imds::Works | Imds::Silent | Imds::Off | Imds::NoProfile | Imds::Stale => "169.254.169.254/32",
        };
        let mut program =
            Program::new("clicklink", "unshare").only_given_env().args([self.flags, "--kill-child", "--", "sh", "-ec", SCRIPT, "sh"]);
        program = program.arg(&self.hosts).arg(&self.fake).arg(&self.order).arg(self.folder.join("ready")).arg(imds);
        program = program.arg(binaries().clicklink).args(args).env("HOME", self.folder.path()).env("SSL_CERT_FILE", &self.ca);
        for (name, value) in env {
            program = program.env(name, value);
        }
        let started = Instant::now();
        let finished = program.run(&self.folder, PATIENCE).await?;
        Ok(Ran { finished, took: started.elapsed(), requests: self.requests()? })
    }

    fn requests(&self) -> Result<Vec<String>> {
        let text = std::fs::read_to_string(self.folder.join("requests")).unwrap_or_default();
        let lines = text.lines().map(|line| {
            let noted: Noted = serde_json::from_str(line).context("a line of the log")?;
            let words = ["method", "host", "path", "action"].map(|name| noted.get(name).map(String::as_str).unwrap_or_default());
            Ok(words.join(" ").trim_end().to_owned())
        });
        lines.collect()
    }
}

/// Flags of `unshare` for network, mounts and processes that this machine allows.
fn namespaces() -> Result<&'static str> {
    let mut said = Vec::new();
    for flags in ["-nmpf", "-rnmpf"] {
        let tried = std::process::Command::new("unshare").args([flags, "--", "ip", "link", "set", "lo", "up"]).output();
        match tried {
            Ok(output) if output.status.success() => return Ok(flags),
            Ok(output) => said.push(format!("unshare {flags}: {}", String::from_utf8_lossy(&output.stderr).trim())),
            Err(error) => said.push(format!("unshare: {error}")),
        }
    }
    bail!("{}", said.join("; "))
}
