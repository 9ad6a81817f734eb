//! The journal under the real daemon: SIGKILL at random moments of real syncs, a full disk, a read-only one, `fsync` that fails. What
//! was taken is applied once and reported once; what could not be written is not acknowledged, and goes on by itself.
//!
//! `make soak` kills 200 times instead of 20; `KILLS` says how often, `SEED` replays the moments.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "the test runner shows seeds and reasons")]

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use system_tests::bundle::{self, Edition, NAMESPACE, Release};
use system_tests::eventually;
use system_tests::landscape::{Landscape, MountNamespace, Narrator, SOON, let_fsync_succeed};

/// Kills for one bundle.
const KILLS_A_BUNDLE: u64 = 5;
/// The longest pause before a kill: about as long as a start and a sync take.
const LONGEST_MS: u64 = 2_000;

#[tokio::test(flavor = "multi_thread")]
async fn killed_anywhere_everything_is_applied_once_and_reported_once() {
    let usual = if std::env::var_os("SOAK").is_some() { 200 } else { 20 };
    let kills = number("KILLS").unwrap_or(usual);
    let seed = number("SEED").unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0 >> 32);
    eprintln!("{kills} kills, replayed by SEED={seed}");
    let mut moments = Moments(seed);
    let mut landscape = Landscape::new().await;
    let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let mut before = Live::default();
    let (mut left, mut bundles, mut in_the_middle) = (kills, 0, 0);
    while left > 0 {
        bundles += 1;
        let sha256 = landscape.propose(&format!("killed-{bundles}"), &noted(&first, bundles)).await.unwrap();
        landscape.until_status("approval_required", &sha256).await;
        let mark = landscape.executor_log_length();
        landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
        for _ in 0..left.min(KILLS_A_BUNDLE) {
            tokio::time::sleep(Duration::from_millis(moments.below(LONGEST_MS))).await;
            in_the_middle += u64::from(runs(&landscape, mark));
            landscape.connector.kill_and_restart_executor().await;
            left -= 1;
        }
        landscape.until_status("synced", &sha256).await;
        reported_once(&landscape, &sha256).await;
        let now = Live::of(&landscape).await;
        now.follows(&before, bundles);
        before = now;
    }
    eprintln!("{bundles} bundles; {in_the_middle} of {kills} kills while a sync ran");
    assert!(kills < 20 || in_the_middle > 0, "no kill of {kills} hit a sync");
    let commands = landscape.commands_at_manager().await.unwrap();
    assert_eq!(commands.len() as u64, 2 * bundles, "each bundle was staged by one command and applied by another");
    a_failing_fsync_acknowledges_nothing(&mut landscape, &noted(&first, bundles + 1)).await;
}

/// Twice: once the executor goes on by itself, once it is killed while it could not write.
async fn a_failing_fsync_acknowledges_nothing(landscape: &mut Landscape, release: &Release) {
    for killed in [false, true] {
        let strace = match landscape.connector.fail_fsync().await {
            Ok(strace) => strace,
            Err(reason) => return eprintln!("skipped: failing fsync: {reason:#}"),
        };
        let name = format!("fsync-{killed}");
        let mut release = release.clone();
        release.component("monitoring-collectors").values["podAnnotations"]["example.com/name"] = json!(name);
        let sha256 = landscape.propose(&name, &release).await.unwrap();
        eventually("the heartbeat to say that nothing can be written", SOON, || says_trouble(landscape, Some("disk I/O error"))).await;
        not_taken(landscape, &sha256).await;
        if killed {
            landscape.connector.kill_and_restart_executor().await;
            strace.wait(SOON).await.unwrap();
        } else {
            let_fsync_succeed(strace).await;
        }
        landscape.until_status("approval_required", &sha256).await;
        eventually("the heartbeat to have no complaint", SOON, || says_trouble(landscape, None)).await;
        let here = landscape.connector.commands().await.unwrap();
        assert_eq!(here.iter().filter(|command| command["sha256"] == *sha256).count(), 1, "taken once: {here:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_acknowledges_nothing_and_goes_on_by_itself() {
    let mounts = match MountNamespace::find() {
        Ok(mounts) => mounts,
        Err(refused) => return eprintln!("skipped: this machine allows no mount namespace: {refused:#}"),
    };
    let mut landscape = Landscape::enrolled(&Narrator::silent()).await.unwrap();
    landscape.connector.grant_access().await.unwrap();
    landscape.connector.start_executor_on_small_disk(mounts).unwrap();
    landscape.until_connected().await.unwrap();
    let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    landscape.connector.fill_disk().unwrap();
    let sha256 = landscape.propose("full", &first).await.unwrap();
    eventually("the heartbeat to say that the disk is full", SOON, || says_trouble(&landscape, Some("full"))).await;
    not_taken(&landscape, &sha256).await;
    landscape.connector.executor().ensure_running().unwrap();

    landscape.connector.empty_disk().unwrap();
    landscape.until_status("approval_required", &sha256).await;
    eventually("the heartbeat to have no complaint", SOON, || says_trouble(&landscape, None)).await;
    let commands = landscape.commands_at_manager().await.unwrap();
    assert_eq!(commands.iter().map(|command| command["status"].as_str().unwrap()).collect::<Vec<_>>(), ["failed"], "refused once");
    landscape.connector.stop_executor().await;
    a_read_only_disk_is_refused_by_name(&landscape, mounts).await;
}

async fn a_read_only_disk_is_refused_by_name(landscape: &Landscape, mounts: MountNamespace) {
    let program = landscape.connector.executor_on_read_only_disk(mounts);
    let ended = program.run(landscape.connector.folder(), SOON).await.unwrap();
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    let state = landscape.connector.state_dir().display().to_string();
    assert!(ended.stderr.contains(&state) && ended.stderr.contains("Read-only file system"), "{}", ended.stderr);
}

/// Whether the executor's last heartbeat says that the journal takes no records, and this is why.
async fn says_trouble(landscape: &Landscape, why: Option<&str>) -> Result<()> {
    let environment = landscape.environment().await?;
    let id = environment.pointer("/executors/0/id").and_then(Value::as_str).context("the executor's id")?;
    let shown = landscape.manager.quiet_cli(&["executor", "get", id, "-o", "json"]).await?.ok()?;
    let executor: Value = serde_json::from_str(&shown.stdout)?;
    let commands = &executor["heartbeat"]["commands"];
    let said = commands["journal_error"].as_str();
    ensure!(said.is_some() == why.is_some() && why.is_none_or(|why| said.is_some_and(|said| said.contains(why))), "{commands}");
    Ok(())
}

/// The manager has no acknowledgement of the bundle's command, and the executor does not know it.
async fn not_taken(landscape: &Landscape, sha256: &str) {
    let there = landscape.commands_at_manager().await.unwrap();
    let statuses: Vec<_> = there.iter().filter(|command| command["sha256"] == *sha256).map(|command| &command["status"]).collect();
    assert_eq!(statuses, ["queued"], "{there:?}");
    let here = landscape.connector.commands().await.unwrap();
    assert!(here.iter().all(|command| command["sha256"] != *sha256), "{here:?}");
}

/// The release with a note in its last component's pods: one Deployment differs from one bundle to the next.
fn noted(release: &Release, note: u64) -> Release {
    let mut release = release.clone();
    release.component("monitoring-collectors").values["podAnnotations"] = json!({"example.com/note": note.to_string()});
    release
}

/// Whether the executor has begun to apply since the mark and not ended.
fn runs(landscape: &Landscape, mark: u64) -> bool {
    let text = std::fs::read(landscape.connector.executor().log()).unwrap_or_default();
    let new = String::from_utf8_lossy(&text[usize::try_from(mark).unwrap().min(text.len())..]).into_owned();
    new.contains("command received") && !new.contains("synced bundle")
}

/// Both sides tell the same: one command that staged the bundle and was refused, one that applied it.
async fn reported_once(landscape: &Landscape, sha256: &str) {
    let told = |commands: Vec<Value>| -> Vec<String> {
        let of_bundle = commands.iter().filter(|command| command["sha256"] == *sha256);
        let mut told: Vec<_> = of_bundle.map(|command| format!("{} {} {}", command["id"], command["status"], command["result"])).collect();
        told.sort();
        told
    };
    let there = told(landscape.commands_at_manager().await.unwrap());
    assert_eq!(told(landscape.connector.commands().await.unwrap()), there);
    let ends = ["failed", "completed"].map(|end| there.iter().filter(|line| line.contains(&format!(" \"{end}\" "))).count());
    assert_eq!((there.len(), ends), (2, [1, 1]), "{there:?}");
}

/// What shows how often something was applied.
#[derive(Default)]
struct Live {
    /// Each change of a Deployment counts one.
    generations: BTreeMap<String, i64>,
    /// A Job that ran again is another object.
    jobs: BTreeMap<String, String>,
}

impl Live {
    async fn of(landscape: &Landscape) -> Self {
        let listed =
            landscape.control_plane.kubectl(&["get", "deployments,jobs", "-n", NAMESPACE, "-o", "json"]).await.unwrap().ok().unwrap();
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let mut live = Self::default();
        for object in listed["items"].as_array().unwrap() {
            let metadata = &object["metadata"];
            let name = metadata["name"].as_str().unwrap().to_owned();
            if object["kind"] == "Job" {
                live.jobs.insert(name, metadata["uid"].as_str().unwrap().to_owned());
            } else {
                live.generations.insert(name, metadata["generation"].as_i64().unwrap());
            }
        }
        live
    }

    /// One bundle after `before`, the `bundles`th.
    fn follows(&self, before: &Self, bundles: u64) {
        let often: Vec<i64> = self.generations.values().copied().filter(|generation| *generation != 1).collect();
        let expected = if bundles == 1 { vec![] } else { vec![i64::try_from(bundles).unwrap()] };
        assert_eq!(often, expected, "one Deployment is another in each bundle: {:?}", self.generations);
        assert!(self.generations.len() > 1);
        for (name, uid) in &before.jobs {
            assert!(self.jobs.get(name).is_none_or(|now| now == uid), "Job {name} ran again");
        }
    }
}

/// Seeded pauses (splitmix64).
struct Moments(u64);

impl Moments {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .filter(|text| !text.is_empty())
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: not a number: {text}")))
}
