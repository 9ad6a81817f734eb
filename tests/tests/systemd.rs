//! The unit on a booted Debian, installed as an administrator installs it. Neither the manager nor a cluster is in reach.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and says why it is skipped")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;
use system_tests::landscape::{Booted, Debian, SOON};
use system_tests::{Authority, eventually};

const UNIT: &str = "clicklink-executor.service";
/// Bound of an orderly end.
const END: Duration = Duration::from_secs(5);
/// What `systemd-analyze security` may find at most, in tenths: 0 is no exposure, 100 all.
const EXPOSURE: u32 = 15;
const CONFIG: &str = "pcm_infra_uuid: 019b0000-0000-7000-8000-000000000001
cloud: aws
region: eu-west-1
api: {endpoint: https://127.0.0.1:1}
";

/// A machine with the unit, its account, its folders and an enrolment; nothing is started.
struct Machine(Booted);

impl Machine {
    /// None where no system can be booted, and why on stderr. Where everything is prepared for it that is a failure.
    async fn install() -> Option<Self> {
        let debian = match Debian::find() {
            Ok(debian) => debian,
            Err(error) => {
                assert!(std::env::var_os("CI").is_none(), "the unit has to be tested here: {error:#}");
                eprintln!("skipped: the unit is tested on a booted system: {error:#}");
                return None;
            }
        };
        let machine = Self(debian.boot().await.unwrap());
        let systemd = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd");
        for (from, to) in [
            (UNIT, "/usr/lib/systemd/system/clicklink-executor.service"),
            ("clicklink.sysusers.conf", "/usr/lib/sysusers.d/clicklink.conf"),
            ("clicklink.tmpfiles.conf", "/usr/lib/tmpfiles.d/clicklink.conf"),
        ] {
            machine.0.write(to, std::fs::read(systemd.join(from)).unwrap()).unwrap();
        }
        machine.run(&["systemd-sysusers"]).await;
        machine.run(&["systemd-tmpfiles", "--create", "clicklink.conf"]).await;
        machine.run(&["systemctl", "enable", UNIT]).await;
        machine.enrol().await;
        Some(machine)
    }

    /// As `clctl init` leaves them.
    async fn enrol(&self) {
        let authority = Authority::new("nobody's").unwrap();
        let client = authority.client("org-1", None).unwrap();
        self.0.write("/etc/clicklink/config.yaml", CONFIG).unwrap();
        let secret = [
            ("/etc/clicklink/access-key", "ak-1".to_owned()),
            ("/etc/clicklink/secret-key", "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTEyMzQ=".to_owned()),
            ("/etc/clicklink/tls/client.crt", client.certificate),
            ("/etc/clicklink/tls/client.key", client.key),
            ("/etc/clicklink/tls/ca.crt", authority.certificate()),
        ];
        for (path, content) in secret {
            self.0.write(path, content).unwrap();
            self.run(&["chown", "clicklink:clicklink", path]).await;
            self.run(&["chmod", "0600", path]).await;
        }
    }

    /// Runs a command that has to succeed: its stdout.
    async fn run(&self, command: &[&str]) -> String {
        self.0.run(command).await.unwrap().ok().unwrap().stdout
    }

    /// Adds to the unit as `systemctl edit` does.
    async fn edit(&self, text: &str) {
        self.0.write(&format!("/etc/systemd/system/{UNIT}.d/override.conf"), text).unwrap();
        self.run(&["systemctl", "daemon-reload"]).await;
    }

    /// The unit as the service manager shows it.
    async fn unit(&self) -> BTreeMap<String, String> {
        let shown = self.run(&["systemctl", "show", UNIT]).await;
        shown.lines().filter_map(|line| line.split_once('=')).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Waits until the unit is so.
    async fn until_unit(&self, expected: &[(&str, &str)]) -> BTreeMap<String, String> {
        eventually(&format!("the unit to be {expected:?}"), SOON, || async {
            let unit = self.unit().await;
            let found: Vec<_> = expected.iter().map(|(name, _)| (*name, unit[*name].as_str())).collect();
            ensure!(found == expected, "{found:?}");
            Ok(unit)
        })
        .await
    }

    /// Entries of the journal that match, as `journalctl -o json` prints them.
    async fn journal(&self, matches: &[&str]) -> Result<Vec<Value>> {
        let command = [&["journalctl", "-o", "json", "--no-pager", "-q"], matches].concat();
        let printed = self.0.run(&command).await?.stdout;
        printed.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    /// Waits for an entry whose message contains this.
    async fn until_logged(&self, matches: &[&str], text: &str) -> Value {
        eventually(&format!("`{text}` in the journal"), SOON, || async {
            let entries = self.journal(matches).await?;
            let found = entries.iter().find(|entry| entry["MESSAGE"].as_str().unwrap_or_default().contains(text));
            found.cloned().ok_or_else(|| anyhow::anyhow!("{entries:#?}"))
        })
        .await
    }
}

#[tokio::test]
async fn it_is_started_looked_at_reloaded_and_stopped() {
    let Some(machine) = Machine::install().await else { return };
    machine.run(&["systemctl", "start", UNIT]).await;
    let status = "platform: none; channel: down; cluster: not reachable";
    let unit = machine.until_unit(&[("ActiveState", "active"), ("SubState", "running"), ("StatusText", status)]).await;
    assert_eq!((unit["Type"].as_str(), unit["NRestarts"].as_str()), ("notify", "0"));
    let main = unit["MainPID"].as_str();
    assert_eq!(machine.run(&["stat", "-c", "%U", &format!("/proc/{main}")]).await.trim(), "clicklink");
    let state = machine.run(&["stat", "-c", "%U %a", "/var/lib/clicklink", "/var/lib/clicklink/executor.db"]).await;
    assert_eq!(state, "clicklink 700\nclicklink 600\n");

    // A field is a field of the journal's, and can be asked for.
    let entry = machine.until_logged(&["-u", UNIT, "CLICKLINK_SKIPPED=0"], "channel: ").await;
    let field = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    assert_eq!((field("SYSLOG_IDENTIFIER"), field("PRIORITY")), ("clicklink-executor".into(), "4".into()), "{entry:#}");
    assert_eq!((field("_SYSTEMD_UNIT"), field("_PID")), (UNIT.into(), main.into()));
    assert!(!field("CLICKLINK_RETRY_IN").is_empty() && !field("MESSAGE").contains("retry_in"), "{entry:#}");

    machine.0.write("/etc/clicklink/config.yaml", format!("{CONFIG}observability: {{log_level: debug}}\n")).unwrap();
    machine.run(&["systemctl", "reload", UNIT]).await;
    machine.until_logged(&["-u", UNIT, "CLICKLINK_LEVEL=debug"], "re-read").await;
    machine.until_unit(&[("ActiveState", "active"), ("SubState", "running"), ("MainPID", main)]).await;

    let started = Instant::now();
    machine.run(&["systemctl", "stop", UNIT]).await;
    assert!(started.elapsed() < END, "{:?}", started.elapsed());
    // `ExecMainCode` 1 is CLD_EXITED.
    let ended = [("ActiveState", "inactive"), ("Result", "success"), ("ExecMainCode", "1"), ("ExecMainStatus", "0")];
    machine.until_unit(&ended).await;
}

#[tokio::test]
async fn a_process_that_stands_still_is_replaced() {
    let Some(machine) = Machine::install().await else { return };
    machine.edit("[Service]\nWatchdogSec=2s\nTimeoutAbortSec=1s\nRestartSec=100ms\n").await;
    machine.run(&["systemctl", "start", UNIT]).await;
    let before = machine.unit().await;
    assert_eq!((before["ActiveState"].as_str(), before["WatchdogUSec"].as_str()), ("active", "2s"));
    machine.run(&["systemctl", "kill", "--kill-who=main", "--signal=STOP", UNIT]).await;
    machine.until_logged(&["_PID=1", &format!("UNIT={UNIT}")], "Watchdog timeout").await;
    let after = machine.until_unit(&[("ActiveState", "active"), ("NRestarts", "1")]).await;
    assert_ne!(before["MainPID"], after["MainPID"]);
}

#[tokio::test]
async fn what_a_person_has_to_mend_is_not_started_again() {
    let Some(machine) = Machine::install().await else { return };
    machine.edit("[Service]\nRestartSec=100ms\n").await;
    machine.0.write("/etc/clicklink/config.yaml", format!("{CONFIG}observability: {{log_level: loud}}\n")).unwrap();
    let start = machine.0.run(&["systemctl", "start", UNIT]).await.unwrap();
    assert!(!start.success(), "{start:?}");
    let failed = [("ActiveState", "failed"), ("SubState", "failed"), ("Result", "exit-code"), ("ExecMainStatus", "78"), ("NRestarts", "0")];
    machine.until_unit(&failed).await;
    machine.until_logged(&["-u", UNIT], "`loud`").await;

    // What may mend itself is started again, for as long as it takes.
    machine.0.write("/etc/clicklink/config.yaml", CONFIG).unwrap();
    machine.run(&["systemctl", "start", UNIT]).await;
    machine.run(&["systemctl", "kill", "--kill-who=main", "--signal=KILL", UNIT]).await;
    machine.until_unit(&[("ActiveState", "active"), ("NRestarts", "1")]).await;
}

#[tokio::test]
async fn its_exposure_stays_low() {
    let Some(machine) = Machine::install().await else { return };
    let threshold = format!("--threshold={EXPOSURE}");
    let unit = format!("/usr/lib/systemd/system/{UNIT}");
    let analysed = machine.0.run(&["systemd-analyze", "security", "--no-pager", "--offline=true", &threshold, &unit]).await.unwrap();
    assert!(analysed.success(), "{}\n{}", analysed.stdout, analysed.stderr);
    assert!(analysed.stdout.contains("Overall exposure level"), "{}", analysed.stdout);
    machine.run(&["systemd-analyze", "verify", &unit]).await;
}
