//! What a person sees at a connector that works: `clctl status` and `clctl preflight`, with executor, manager, registry and cluster.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use system_tests::bundle::{self, Edition};
use system_tests::landscape::{Landscape, SOON};
use system_tests::{Finished, TempFolder};

#[tokio::test(flavor = "multi_thread")]
async fn a_staged_bundle_is_told_with_the_next_step_and_nothing_is_to_be_mended() {
    let landscape = Landscape::new().await;
    let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let sha256 = landscape.propose("platform-1", &first).await.unwrap();
    landscape.until_ended(&sha256).await;
    landscape.until_status("approval_required", &sha256).await;

    let status = clctl(&landscape, &["status", "--endpoint", landscape.connector.endpoint(), "-o", "json"]).await.ok().unwrap();
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["platform"]["status"], "approval_required", "{status}");
    assert_eq!(status["next"][0], "clicklink clctl platform approve", "{status}");
    assert_eq!(status["cluster"]["reachable"], true, "{status}");
    assert_eq!(status["executor"]["kind"], "vm", "{status}");
    assert_eq!(status["commands"]["running"], 0, "{status}");
    let table = clctl(&landscape, &["status", "--endpoint", landscape.connector.endpoint(), "-o", "table"]).await.ok().unwrap();
    assert!(table.stdout.starts_with(&format!("Platform:  approval_required\nPending:   {sha256}\n")), "{}", table.stdout);

    let config = landscape.connector.config().display().to_string();
    let preflight = clctl(&landscape, &["preflight", "--config", &config, "-o", "json"]).await.ok().unwrap();
    let findings: Vec<Value> = serde_json::from_str(&preflight.stdout).unwrap();
    for category in ["config", "files", "network", "certificate", "clock", "cluster", "registry", "engine", "disk"] {
        let passed = |finding: &&Value| finding["category"] == category && finding["outcome"] == "pass";
        assert!(findings.iter().any(|finding| passed(&finding)), "{category}: {}", preflight.stdout);
    }
    assert!(preflight.stdout.contains("it may read all that is observed"), "{}", preflight.stdout);
    assert!(preflight.stdout.contains("and it may ask for the next one"), "{}", preflight.stdout);
}

async fn clctl(landscape: &Landscape, args: &[&str]) -> Finished {
    let folder = TempFolder::new("person").unwrap();
    landscape.connector.clctl(args[0]).args(args).run(&folder, SOON).await.unwrap()
}
