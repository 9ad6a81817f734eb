//! What happens after the landscape is up, and what must be seen for the demo to succeed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use system_tests::bundle::{self, Edition, NAMESPACE, Release};
use system_tests::landscape::{ENVIRONMENT, Landscape, Narrator, SOON};
use system_tests::until;

const LIST_FAILED: [&str; 8] = ["commands", "list", "--status", "failed", "--action", "sync_platform", "-o", "table"];

pub(crate) async fn tell(landscape: &mut Landscape, narrator: &Narrator) -> Result<()> {
    let first = bundle::push(&landscape.registry, Edition::First).await?;
    let second = bundle::push(&landscape.registry, Edition::Second).await?;

    narrator.step("The vendor proposes the first platform update; the executor stages it and refuses");
    let sha256 = landscape.propose("platform-1", &first).await?;
    refused(landscape, narrator, &sha256, "there is no approval yet").await?;

    narrator.step("The person reads the plan: nothing is changed");
    let plan = landscape.connector.approve(&["--dry-run"]).await?.ok()?;
    ensure!(plan.stdout.contains("gp3-encrypted"), "the plan shows the StorageClass");
    ensure!(landscape.workload().await?.is_empty(), "a dry run installs nothing");

    narrator.step("The person approves with their own credentials; the executor applies the rest");
    approve(landscape, &sha256).await?;
    synced(landscape, narrator, &sha256).await?;
    show(landscape).await?;

    narrator.step("Version two: proposed, approved, synced");
    let sha256 = landscape.propose("platform-2", &second).await?;
    refused(landscape, narrator, &sha256, "the approval at hand is for bundle").await?;
    approve(landscape, &sha256).await?;
    synced(landscape, narrator, &sha256).await?;
    show(landscape).await?;

    narrator.step("An update that nobody approves stays out");
    let before = landscape.workload().await?;
    let sha256 = landscape.propose("platform-3", &with_note(&second, "nobody approves this")).await?;
    refused(landscape, narrator, &sha256, "the approval at hand is for bundle").await?;
    ensure!(landscape.workload().await? == before, "nothing was changed");
    narrator.note("The cluster is as it was.");

    narrator.step("An update that was approved while the connector was offline, for so long that the approval ended");
    expired(landscape, narrator, &second).await?;
    ensure!(landscape.workload().await? == before, "nothing was changed");
    narrator.note("The cluster is as it was.");
    Ok(())
}

/// The executor's command failed with the reason and the hint, and the bundle is staged.
async fn refused(landscape: &Landscape, narrator: &Narrator, sha256: &str, reason: &str) -> Result<()> {
    let hint = format!("run: clctl platform approve (pending bundle sha {sha256})");
    until("the refusal", SOON, || async {
        let commands = landscape.connector.commands().await?;
        let command = commands.iter().find(|command| command["sha256"] == sha256).context("the command has not arrived")?;
        let result = command["result"].as_str().context("it has not ended")?;
        ensure!(command["status"] == "failed" && result.contains(reason) && result.ends_with(&hint), "{command}");
        Ok(())
    })
    .await?;
    landscape.connector.run(&LIST_FAILED).await?.ok()?;
    let staged: serde_json::Value =
        serde_json::from_slice(&std::fs::read(landscape.connector.access_dir().join("platform-pending.json"))?)?;
    ensure!(staged["sha256"] == sha256, "the bundle is staged");
    until("the manager to hear it", SOON, || landscape.has_status("approval_required", sha256)).await?;
    narrator.note(&format!("Staged as {sha256} and refused."));
    Ok(())
}

async fn approve(landscape: &Landscape, sha256: &str) -> Result<()> {
    let approved = landscape.connector.approve(&["--yes"]).await?.ok()?;
    ensure!(approved.stdout.contains("Approved: ") && approved.stdout.contains("The executor may now apply the "), "the closing lines");
    ensure!(approved.stdout.contains(sha256), "the plan is of this bundle");
    Ok(())
}

async fn synced(landscape: &Landscape, narrator: &Narrator, sha256: &str) -> Result<()> {
    let began = std::time::Instant::now();
    until("the heartbeat to say synced", Duration::from_secs(120), || landscape.has_status("synced", sha256)).await?;
    narrator.note(&format!("From approved to the heartbeat that says synced: {:.1} s", began.elapsed().as_secs_f64()));
    landscape.connector.run(&["commands", "list", "--action", "sync_platform", "--status", "completed", "-o", "table"]).await?.ok()?;
    Ok(())
}

async fn show(landscape: &Landscape) -> Result<()> {
    landscape.manager.cli(&["environment", "get", ENVIRONMENT, "-o", "table"]).await?.ok()?;
    let seen = landscape.control_plane.kubectl(&["get", "deployments", "-n", NAMESPACE]).await?.ok()?;
    Narrator::aloud().note("$ kubectl get deployments -n clickhouse-platform");
    for line in seen.stdout.lines() {
        Narrator::aloud().note(&format!("  {line}"));
    }
    Ok(())
}

/// `TokenRequest` gives no token under ten minutes, so that the demo puts one in the token bundle's place that has ended.
async fn expired(landscape: &mut Landscape, narrator: &Narrator, second: &Release) -> Result<()> {
    landscape.connector.executor().terminate();
    landscape.connector.executor().wait(SOON).await?;
    narrator.note("The executor is stopped.");
    let sha256 = landscape.propose("platform-4", &with_note(second, "approved too early")).await?;
    let manifest = landscape.manager.quiet_cli(&["release", "manifest", "platform-4", "--environment", ENVIRONMENT]).await?.ok()?;
    let file = landscape.connector.folder().write("platform-4.json", manifest.stdout.trim_end_matches('\n'))?;
    landscape.connector.approve(&["--bundle", &file.display().to_string(), "--yes"]).await?.ok()?;
    let account = landscape.control_plane.kubectl(&[
        "get",
        "serviceaccount",
        "pcm-platform",
        "-n",
        "clicklink-system",
        "-o",
        "jsonpath={.metadata.uid}",
    ]);
    let uid = account.await?.ok()?.stdout;
    let ended = landscape.control_plane.sign_token("clicklink-system", "pcm-platform", uid.trim(), jiff::SignedDuration::from_secs(-5))?;
    std::fs::write(landscape.connector.access_dir().join("_platform/token"), ended.token)?;
    narrator.note("Two hours pass (the token in the bundle is replaced by one that has ended). The executor starts.");
    landscape.connector.start_executor()?;
    refused(landscape, narrator, &sha256, "the approval expired at").await
}

/// The same release with other words in a value: another bundle.
fn with_note(release: &Release, note: &str) -> Release {
    let mut release = release.clone();
    release.component("monitoring-collectors").values["podAnnotations"] = serde_json::json!({"example.com/note": note});
    release
}
