//! An API server, or what stands before it, that answers some writes badly. What may pass is tried again; what stays ends the approval with one
//! error that has a code, leaves the former token bundle as it was, and is no obstacle to the next run.

use std::collections::BTreeSet;
use std::time::Duration;

use system_tests::{Disturbance, Refusal, When};

use super::writes::{Cut, Sequence, kind, of_steps, soak};
use super::{agree, may_write, whole};

/// What passes, and the approval goes through.
const PASSING: [Disturbance; 7] = [
    Disturbance::Answer(Refusal::TooManyRequests),
    Disturbance::Answer(Refusal::InternalError),
    Disturbance::Answer(Refusal::Unavailable),
    Disturbance::Answer(Refusal::Conflict),
    Disturbance::Late(Duration::from_millis(300)),
    Disturbance::Cut(When::Before),
    Disturbance::Cut(When::After),
];

/// At each kind of write one of them happens, the first time that it comes: another one at the next, and in each round. With SOAK there are as
/// many rounds as it takes for each to happen at each kind.
pub(super) async fn once_at_each_write(cut: &Cut<'_>, bundles: [&str; 2]) {
    for round in if soak() { 0..PASSING.len() } else { 0..2 } {
        let mut known = BTreeSet::new();
        cut.relay.disturb(move |asked| {
            let is_new = asked.is_write() && known.insert(kind(asked));
            is_new.then(|| PASSING[(known.len() + round) % PASSING.len()])
        });
        let approved = cut.try_approve(bundles[round % 2]).await;
        assert!(approved.success(), "round {round}: {approved:?}");
        agree(cut.landscape).await;
        may_write(cut.landscape).await.unwrap();
    }
}

/// With SOAK: a write of each step is carried out, and its answer never comes. The limit of one try is over before it is made again.
pub(super) async fn silence(cut: &Cut<'_>, bundle: &str) {
    let writes = if soak() { of_steps(&cut.writes(bundle).await) } else { Vec::new() };
    for write in writes {
        let (mut sequence, mut came, wanted) = (Sequence::default(), false, write.clone());
        cut.relay.disturb(move |asked| {
            let hit = !came && asked.is_write() && sequence.next(asked) == wanted;
            came |= hit;
            hit.then_some(Disturbance::Hold(When::After))
        });
        let approved = cut.try_approve(bundle).await;
        assert!(approved.success(), "silence at {write}: {approved:?}");
        agree(cut.landscape).await;
    }
}

/// A denial is told at once; what is tried again is told in the end, at a write of each step.
pub(super) async fn that_stay(cut: &Cut<'_>, [first, second]: [&str; 2]) {
    let writes = of_steps(&cut.writes(second).await).into_iter().filter(|write| !write.contains(" again, "));
    let denials = writes.map(|write| (write, Refusal::Forbidden));
    let tried_again = [
        ("PATCH clusterroles", Refusal::InternalError),
        ("PUT platformapprovals/current", Refusal::Conflict),
        ("POST serviceaccounts/pcm-platform/token", Refusal::Unavailable),
    ];
    let tried_again = tried_again.map(|(write, refusal)| (write.to_owned(), refusal));
    cut.approve(first).await;
    let before = cut.landscape.connector.token_bundle().unwrap();
    for (write, refusal) in denials.chain(tried_again) {
        let wanted = write.clone();
        cut.relay.disturb(move |asked| (asked.is_write() && kind(asked) == wanted).then_some(Disturbance::Answer(refusal)));
        let failed = cut.try_approve(second).await;
        let at = format!("{refusal:?} at each {write}");
        let errors = failed.stderr.lines().filter(|line| line.starts_with("error[")).count();
        assert!(!failed.success() && errors == 1 && !failed.stdout.contains("Approved:"), "{at}: {failed:?}");
        whole(cut.landscape, &at).await;
        assert_eq!(cut.landscape.connector.token_bundle().unwrap(), before, "{at}");
    }
    cut.approve(second).await;
    agree(cut.landscape).await;
    may_write(cut.landscape).await.unwrap();
    after_the_exchange(cut, first).await;
}

/// The new token bundle is there, and what ends all other tokens is denied: the approval holds, and says that not all is done.
async fn after_the_exchange(cut: &Cut<'_>, bundle: &str) {
    let mut sequence = Sequence::default();
    cut.relay.disturb(move |asked| {
        let last = asked.is_write() && sequence.next(asked) == "PUT platformapprovals/current again, 3";
        last.then_some(Disturbance::Answer(Refusal::Forbidden))
    });
    let failed = cut.try_approve(bundle).await;
    assert!(!failed.success() && failed.stderr.contains("error[") && !failed.stdout.contains("Approved:"), "{failed:?}");
    assert_eq!(whole(cut.landscape, "after the exchange").await, super::current(cut.landscape).await["sha256"]);
    may_write(cut.landscape).await.unwrap();
    cut.approve(bundle).await;
    agree(cut.landscape).await;
}
