//! SIGKILL after each write. What the cluster and the access folder hold between two writes is what they hold after the first of them, so
//! that the moments before are the same ones; only the first write has a before of its own. It is one write of each step; with SOAK it is
//! each kind of write, some thirty.

use system_tests::landscape::SOON;
use system_tests::{Disturbance, When, eventually};

use super::writes::{Cut, of_steps};
use super::{agree, current, may_write, whole};

const AFTER: Disturbance = Disturbance::Hold(When::After);

/// A token at hand, the former or the new one, can write at every moment.
pub(super) async fn of_the_same_bundle(cut: &Cut<'_>, bundle: &str) {
    let writes = of_steps(&cut.writes(bundle).await);
    for (write, how) in moments(&writes) {
        cut.kill_at(bundle, write, how).await;
        let at = format!("the same bundle, killed at {write} ({how:?})");
        whole(cut.landscape, &at).await;
        eventually(&format!("a token to write: {at}"), SOON, || may_write(cut.landscape)).await;
    }
    cut.approve(bundle).await;
    agree(cut.landscape).await;
    may_write(cut.landscape).await.unwrap();
}

/// The token bundle is of one approval, whole; once the new approval stands, the former token writes nothing; run again it converges.
pub(super) async fn of_another_bundle(cut: &Cut<'_>, [first, second]: [&str; 2]) {
    let writes = of_steps(&cut.writes(second).await);
    let (mut former, mut next) = (second, first);
    for (write, how) in moments(&writes) {
        let before = cut.landscape.connector.approval().unwrap();
        cut.kill_at(next, write, how).await;
        let at = format!("another bundle, killed at {write} ({how:?})");
        let (bundle, current) = (whole(cut.landscape, &at).await, current(cut.landscape).await);
        if bundle == current["sha256"] {
            eventually(&format!("the token to write: {at}"), SOON, || may_write(cut.landscape)).await;
        } else {
            assert_eq!(cut.landscape.connector.approval().unwrap(), before, "{at}");
            let refused = may_write(cut.landscape).await.unwrap_err().to_string();
            assert!(refused.contains("this token is not the one of the approval") || refused.contains("is not"), "{at}: {refused}");
        }
        cut.approve(next).await;
        agree(cut.landscape).await;
        may_write(cut.landscape).await.unwrap();
        (former, next) = (next, former);
    }
}

/// From the first permission object of another bundle on, a sync of the former one is refused with what to run, and changes nothing.
pub(super) async fn the_former_bundle_is_refused(cut: &Cut<'_>, proposed: &str, second: &str) {
    let landscape = cut.landscape;
    let hint = format!("run: clctl platform approve (pending bundle sha {proposed})");
    for write in [
        "PATCH clusterroles",
        "PUT platformapprovals/current",
        "PUT serviceaccounts/pcm-platform",
        "POST serviceaccounts/pcm-platform/token",
    ] {
        let known = landscape.known_commands().await.unwrap();
        landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
        // Each approval is answered with a sync.
        let synced = landscape.until_new_ended(&known).await;
        assert!(synced["status"] == "completed" && synced["sha256"] == proposed, "{synced}");
        let before = landscape.workload().await.unwrap();
        cut.kill_at(second, write, AFTER).await;
        let known = landscape.known_commands().await.unwrap();
        landscape.rearm().await.unwrap();
        let ended = landscape.until_new_ended(&known).await;
        let result = ended["result"].as_str().unwrap();
        assert!(ended["status"] == "failed" && result.ends_with(&hint), "{write}: {ended}");
        assert_eq!(landscape.workload().await.unwrap(), before, "{write}");
    }
}

fn moments(writes: &[String]) -> impl Iterator<Item = (&str, Disturbance)> {
    let first = writes.first().map(|first| (first.as_str(), Disturbance::Hold(When::Before)));
    first.into_iter().chain(writes.iter().map(|write| (write.as_str(), AFTER)))
}
