//! An update of many objects: a person's `approve`, and from their command until everything is applied and ready. Beside it the same chart
//! with `helm upgrade --install --wait`, on the same API server, right after. And what it took of memory, at most.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use system_tests::bundle::{self, Component, Edition, NAMESPACE};
use system_tests::landscape::{Landscape, Narrator};

use crate::helm;
use crate::peak::{self, Engines};
use crate::table::{Table, figure};

/// ConfigMaps, Secrets, Services and Deployments in a hundred of the chart's objects.
const OF_HUNDRED: [(&str, u32); 4] = [("configmap", 50), ("secret", 20), ("service", 20), ("deployment", 10)];
/// Most memory of the executor, MiB: what is left of a small machine's 512 beside a chart engine and the system.
const EXECUTOR: f64 = 128.0;
/// Most memory of a chart engine, MiB.
const ENGINE: f64 = 256.0;
/// However many objects: a command has ended by then.
const PATIENCE: Duration = Duration::from_secs(900);
/// Where helm installs it.
const BESIDE: &str = "beside";
const NAME: &str = "objects";

/// Measures a first installation, and then an update of every object. `objects` is a multiple of ten.
pub(crate) async fn measure(table: &mut Table, objects: u32) -> Result<()> {
    ensure!(objects > 0 && objects.is_multiple_of(10), "OBJECTS={objects}: a multiple of ten is needed");
    let landscape = Landscape::start(&Narrator::silent()).await?;
    let executor = landscape.connector.executor().pid();
    let engines = Engines::of(executor);
    for (what, note) in [("installed", "first"), ("changed", "second")] {
        let component = push(&landscape, note, objects).await?;
        let reference = format!("{}/{NAME}", landscape.registry.chart_base());
        let version = component.chart.version.clone();
        let mut release = bundle::push(&landscape.registry, Edition::First).await?;
        release.components = vec![component];
        let sha256 = landscape.propose(note, &release).await?;
        landscape.until_status("approval_required", &sha256).await;

        let began = Instant::now();
        landscape.connector.approving(&["--yes"]).run(landscape.connector.folder(), PATIENCE).await?.ok()?;
        let approved = began.elapsed();
        // The executor is asked first: each question to the manager is a process, which takes from what is measured.
        while !says_synced(&landscape).await || landscape.has_status("synced", &sha256).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let synced = began.elapsed();

        let kubeconfig = landscape.control_plane.admin_kubeconfig().display().to_string();
        let upgrade = ["upgrade", "--install", NAME, &reference, "--version", &version, "--namespace", BESIDE, "--create-namespace"];
        let wait = ["--wait", "--timeout", "15m", "--kubeconfig", &kubeconfig];
        let files = [("--ca-file", landscape.registry.ca_file()), ("--registry-config", landscape.registry.docker_config())];
        let files = files.into_iter().flat_map(|(flag, file)| [OsStr::new(flag), file.as_os_str()]);
        let helm = helm::timed(landscape.registry.folder(), upgrade.into_iter().chain(wait).map(OsStr::new).chain(files)).await?;
        let beside = format!("helm upgrade --install --wait {} s: {} times", figure(helm.as_secs_f64()), ratio(synced, helm));
        table.figure(&format!("{objects} objects {what}: approve"), approved.as_secs_f64(), "s", "rendered twice, planned, pinned, probed");
        table.figure(&format!("{objects} objects {what}: from approved to synced"), (synced - approved).as_secs_f64(), "s", "");
        table.at_most(&format!("{objects} objects {what}: both"), synced.as_secs_f64(), helm.as_secs_f64(), "s", &beside);
    }
    ensure!(engines.highest() > 0.0, "no chart engine was seen at the executor");
    table.at_most(&format!("{objects} objects: executor, most memory"), peak::of(executor)?, EXECUTOR, "MiB", "VmHWM since its start");
    table.at_most(&format!("{objects} objects: its chart engine, most memory"), engines.highest(), ENGINE, "MiB", "VmHWM");
    Ok(())
}

async fn says_synced(landscape: &Landscape) -> bool {
    let Ok(answer) = landscape.connector.local_api("/v1/platform").await else { return false };
    answer.json::<serde_json::Value>().await.is_ok_and(|platform| platform["platform"]["status"] == "synced")
}

fn ratio(ours: Duration, theirs: Duration) -> String {
    figure(ours.as_secs_f64() / theirs.as_secs_f64())
}

/// Each object has its note in it, so that another note changes all of them.
async fn push(landscape: &Landscape, note: &str, objects: u32) -> Result<Component> {
    let image = landscape.registry.push_image(NAME, "1.0.0").await?;
    let folder = landscape.registry.folder().folder(format!("{NAME}/{note}/{NAME}/templates"))?;
    let chart = folder.parent().unwrap_or(&folder).to_owned();
    std::fs::write(chart.join("Chart.yaml"), format!("apiVersion: v2\nname: {NAME}\nversion: 1.0.0\n"))?;
    for (kind, of_hundred) in OF_HUNDRED {
        let mut text = String::new();
        for n in 0..of_hundred * objects / 100 {
            text.push_str(&document(kind, n, note, &image).to_string());
            text.push_str("\n---\n");
        }
        std::fs::write(folder.join(format!("{kind}.yaml")), text)?;
    }
    let version = if note == "first" { "1.0.0" } else { "1.1.0" };
    let chart = landscape.registry.push_chart(&chart, Some(version)).await?;
    Ok(Component { name: NAME.into(), namespace: NAMESPACE.into(), chart, images: vec![image], values: json!({}) })
}

fn document(kind: &str, n: u32, note: &str, image: &str) -> serde_json::Value {
    let name = format!("{NAME}-{n}");
    let metadata = json!({"name": name, "annotations": {"example.com/note": note}});
    match kind {
        "configmap" => {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"note": note, "text": "x".repeat(500)}})
        }
        "secret" => json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "stringData": {"note": note}}),
        "service" => json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80}]}}),
        _ => {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}, "annotations": {"example.com/note": note}},
                "spec": {"containers": [{"name": "main", "image": image}]}}}})
        }
    }
}
