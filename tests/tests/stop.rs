//! SIGTERM in the middle of a sync: the executor ends in bounded time, and the sync goes on after the next start.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::json;
use system_tests::bundle::{self, Edition, NAMESPACE};
use system_tests::eventually;
use system_tests::landscape::{Landscape, SOON};

/// The executor's own bound.
const END: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_is_left_in_bounded_time_and_goes_on_after_the_next_start() {
    let mut landscape = Landscape::new().await;
    let mut release = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    // The last component's pods do not get ready until the test says so.
    release.component("monitoring-collectors").values["podAnnotations"] = json!({"testbed.clicklink.io/pod": "unready"});
    let sha256 = landscape.propose("held", &release).await.unwrap();
    landscape.until_status("approval_required", &sha256).await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    let pod = until_held(&landscape).await;
    landscape.until_status("syncing", &sha256).await;
    let page = landscape.connector.health("/metrics").await.unwrap().text().await.unwrap();
    for sample in [
        "clicklink_channel_connected 1",
        "clicklink_platform_status{status=\"syncing\"} 1",
        "clicklink_commands{status=\"running\"} 1",
        "clicklink_access_bundle_state{bundle=\"platform\",state=\"ok\"} 1",
        "clicklink_cluster_reachable 1",
    ] {
        assert!(page.lines().any(|line| line == sample), "{sample} is missing in\n{page}");
    }
    let known = ["clicklink_platform_approval_expiry_timestamp_seconds ", "clicklink_cluster_last_observation_timestamp_seconds "];
    assert!(known.iter().all(|name| page.lines().any(|line| line.starts_with(name))), "{page}");
    assert!(!page.contains(&sha256[..12]), "{page}");
    let whole = landscape.connector.health("/healthz").await.unwrap().text().await.unwrap();
    assert_eq!(whole, r#"{"status":"ok"}"#);

    let started = Instant::now();
    landscape.connector.stop_executor().await;
    assert!(started.elapsed() < END, "{:?}", started.elapsed());
    landscape.connector.start_executor().unwrap();
    landscape.until_status("syncing", &sha256).await;
    let let_go = ["annotate", "pod", &pod, "-n", NAMESPACE, "testbed.clicklink.io/pod-"];
    landscape.control_plane.kubectl(&let_go).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;
    let ended = landscape.until_ended(&sha256).await;
    assert_eq!(ended["status"], "completed", "{ended}");
}

/// The pod that holds the sync.
async fn until_held(landscape: &Landscape) -> String {
    let held = "jsonpath={.items[?(@.metadata.annotations.testbed\\.clicklink\\.io/pod==\"unready\")].metadata.name}";
    eventually("a pod to hold the sync", SOON, || async {
        let listed = landscape.control_plane.kubectl(&["get", "pods", "-n", NAMESPACE, "-o", held]).await?.ok()?;
        let pods: Vec<&str> = listed.stdout.split_whitespace().collect();
        ensure!(pods.len() == 1, "{pods:?}");
        Ok(pods.first().context("no pod is held")?.to_string())
    })
    .await
}
