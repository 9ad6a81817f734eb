//! The resend rules as a table: a state built in a line or two, a minute of the clock, and what must be decided.

use super::*;
use jiff::SignedDuration;

fn minute(minutes: i64) -> Timestamp {
    second(minutes * 60)
}

fn second(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_796_000_000 + seconds).unwrap()
}

fn sha(letter: &str) -> Sha256 {
    letter.repeat(64).parse().unwrap()
}

fn id(n: u128) -> ExecutorId {
    ExecutorId(uuid::Uuid::from_u128(n))
}

/// Bundle `a`, proposed at minute 0 to one connected executor that was not heard of yet.
fn proposed() -> State {
    let executor = Executor { id: id(1), connected: true, report: None };
    State { sha256: sha("a"), armed_at: minute(0), executors: vec![executor], syncs: Vec::new() }
}

impl State {
    fn sync(mut self, purpose: Purpose, created: i64, phase: Phase) -> Self {
        let approval_expires_at = (purpose == Purpose::Apply).then(|| minute(120));
        let (executor, sha256, created_at) = (self.executors[0].id, self.sha256.clone(), minute(created));
        self.syncs.push(Sync { executor, sha256, purpose, approval_expires_at, created_at, phase });
        self
    }

    /// Shown to the executor at minute 0, and refused for want of approval.
    fn staged(self) -> Self {
        self.sync(Purpose::Stage, 0, ended(0, End::WantsApproval))
    }

    fn attempt(self, at: i64, end: End) -> Self {
        self.sync(Purpose::Apply, at, ended(at, end))
    }

    /// Executor `n` reports at a minute; an approval of `a` until minute 120 unless told otherwise.
    fn report(mut self, n: usize, at: i64, status: PlatformStatus, approved: &str) -> Self {
        let report = Report { at: minute(at), status, approved_sha256: Some(sha(approved)), approval_expires_at: Some(minute(120)) };
        self.executors[n].report = Some(report);
        self
    }

    fn approved(self, at: i64) -> Self {
        self.report(0, at, PlatformStatus::Approved, "a")
    }

    fn change(mut self, change: impl Fn(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

fn ended(at: i64, end: End) -> Phase {
    Phase::Ended { at: minute(at), end }
}

fn delivered(at: i64) -> Phase {
    Phase::Delivered { at: minute(at) }
}

const STAGE: Decision =
    Decision::Send { executor: ExecutorId(uuid::Uuid::from_u128(1)), purpose: Purpose::Stage, approval_expires_at: None };

fn apply(executor: u128) -> Decision {
    Decision::Send { executor: id(executor), purpose: Purpose::Apply, approval_expires_at: Some(minute(120)) }
}

fn rest(reason: RestReason) -> Decision {
    Decision::Rest(reason)
}

fn running(until: i64) -> Decision {
    Decision::Wait { until: minute(until), reason: WaitReason::Running }
}

fn retry(until: i64) -> Decision {
    Decision::Wait { until: minute(until), reason: WaitReason::Retry }
}

fn check(what: &str, state: State, now: Timestamp, expected: &Decision) {
    assert_eq!(&decide(&state, now), expected, "{what}");
}

#[test]
fn staging() {
    use End::{Undelivered, WantsApproval};
    use RestReason::{ApprovalRequired, NoExecutor};
    let queued = || proposed().sync(Purpose::Stage, 0, Phase::Queued);
    let given_up = || proposed().sync(Purpose::Stage, 0, ended(10, Undelivered));
    let away = |state: State| state.change(|state| state.executors[0].connected = false);
    check("nobody is enrolled", proposed().change(|state| state.executors.clear()), minute(0), &rest(NoExecutor));
    check("a proposal is shown", proposed(), minute(0), &STAGE);
    check("also to one that is away", away(proposed()), minute(0), &STAGE);
    check("once", queued(), minute(1), &rest(ApprovalRequired));
    check("given up, and still away", away(given_up()), minute(11), &rest(ApprovalRequired));
    check("given up, and back", given_up(), minute(11), &STAGE);
    check("refused for want of approval", proposed().staged(), minute(1), &rest(ApprovalRequired));
    check("not again after re-arming", proposed().staged().change(|state| state.armed_at = minute(5)), minute(5), &rest(ApprovalRequired));
    let two = proposed().staged().change(|state| state.executors.insert(0, Executor { id: id(1), connected: true, report: None }));
    let two = two.change(|state| state.executors[1].id = id(2));
    let two = two.change(|state| state.syncs[0].executor = id(2));
    check("a second executor is shown it too", two, minute(1), &STAGE);
    let old = proposed().sync(Purpose::Apply, -1, delivered(-1)).change(|state| state.syncs[0].sha256 = sha("b"));
    check("while a sync of the former bundle runs", old, minute(0), &STAGE);
    assert_eq!(proposed().sync(Purpose::Stage, 0, ended(0, WantsApproval)).attempts(), 0);
}

#[test]
fn approval() {
    use PlatformStatus as S;
    use RestReason::{ApprovalRequired, ExecutorSilent};
    let staged = || proposed().staged();
    check("sent at once", staged().approved(3), minute(3), &apply(1));
    check("another bundle's", staged().report(0, 3, S::ApprovalRequired, "b"), minute(3), &rest(ApprovalRequired));
    check("another bundle's, said to be approved", staged().report(0, 3, S::Approved, "b"), minute(3), &rest(ApprovalRequired));
    check("expired by the executor's clock", staged().report(0, 3, S::ApprovalRequired, "a"), minute(3), &rest(ApprovalRequired));
    check("failed means approved", staged().report(0, 3, S::Failed, "a"), minute(3), &apply(1));
    check("expired by ours", staged().approved(119), minute(120), &rest(ApprovalRequired));
    check("synced long ago, approval over", staged().report(0, 119, S::Synced, "a"), minute(121), &rest(ApprovalRequired));
    check("heard of five minutes ago", staged().approved(3), minute(8), &apply(1));
    check("silent for longer", staged().approved(3), second(8 * 60 + 1), &rest(ExecutorSilent));
    let second_one = |state: &mut State| {
        state.executors.push(Executor { id: id(2), connected: true, report: None });
        let mut sync = state.syncs[0].clone();
        sync.executor = id(2);
        state.syncs.push(sync);
    };
    let two = || staged().change(second_one).approved(3).report(1, 9, S::Approved, "a");
    check("the silent one is passed over", two(), minute(9), &apply(2));
    check("the connected one first", two().change(|state| state.executors[1].connected = false), minute(8), &apply(1));
}

#[test]
fn running_and_retries() {
    use End::{Completed, Failed, Superseded, Undelivered, WantsApproval};
    use RestReason::{Applied, ApprovalRequired, Exhausted};
    let approved = |at| proposed().staged().approved(at);
    let runs = || approved(21).sync(Purpose::Apply, 1, delivered(2));
    check("one runs", runs(), minute(21), &running(22));
    check("one is on its way", approved(2).sync(Purpose::Apply, 1, Phase::Queued), minute(2), &running(21));
    check("after twenty minutes it counts as failed", runs(), minute(22), &retry(23));
    check("and is tried again a minute later", runs().approved(23), minute(23), &apply(1));
    let former = approved(3).sync(Purpose::Apply, -10, delivered(-9)).change(|state| state.syncs[1].sha256 = sha("b"));
    check("the former bundle's sync is waited for", former.clone(), minute(3), &running(11));
    check("twenty minutes long", former.approved(11), minute(11), &apply(1));
    let staging = approved(3).change(|state| state.syncs[0].phase = delivered(0));
    check("a staging that is being answered", staging.clone(), minute(3), &running(20));
    check("and never was", staging.approved(20), minute(20), &apply(1));

    check("done", approved(5).attempt(1, Completed), minute(5), &rest(Applied));
    check("done, re-armed", approved(5).attempt(1, Completed).change(|state| state.armed_at = minute(4)), minute(5), &apply(1));
    let once = || approved(2).attempt(2, Failed);
    check("first pause", once(), second(179), &retry(3));
    check("first retry", once(), minute(3), &apply(1));
    check("no longer approved", once().report(0, 3, PlatformStatus::ApprovalRequired, "a"), minute(3), &rest(ApprovalRequired));
    let twice = || once().attempt(3, Failed);
    check("second pause", twice().approved(7), second(8 * 60 - 1), &retry(8));
    check("second retry", twice().approved(8), minute(8), &apply(1));
    let thrice = || twice().attempt(8, Failed);
    check("three are enough", thrice().approved(20), minute(20), &rest(Exhausted));
    check("until a person re-arms", thrice().approved(20).change(|state| state.armed_at = minute(20)), minute(20), &apply(1));
    check(
        "a refused attempt counts",
        once().attempt(3, WantsApproval).attempt(8, WantsApproval).approved(20),
        minute(20),
        &rest(Exhausted),
    );
    check("an undelivered one does not", twice().attempt(8, Undelivered).approved(20), minute(20), &apply(1));
    check("nor a superseded one", twice().attempt(8, Superseded).approved(20), minute(20), &apply(1));
    let anew = |state: &mut State| {
        if let Some(report) = &mut state.executors[0].report {
            report.approval_expires_at = Some(minute(120) + SignedDuration::from_secs(1));
        }
    };
    let expected = Decision::Send { executor: id(1), purpose: Purpose::Apply, approval_expires_at: Some(second(7201)) };
    check("a new approval does not wait for an old failure", once().change(anew), second(121), &expected);
    let refused = || approved(20).attempt(1, WantsApproval).attempt(3, WantsApproval).attempt(8, WantsApproval);
    check("refused three times under one approval", refused(), minute(20), &rest(Exhausted));
    check("who approves again is not met by silence", refused().change(anew), minute(20), &expected);
    check("but three failures are", thrice().change(anew).approved(20).change(anew), minute(20), &rest(Exhausted));
}

/// `approved` after a completed sync is another installation; what was said before the sync ended is old.
#[test]
fn a_platform_that_was_reset_gets_the_bundle_again() {
    let done = || proposed().staged().attempt(2, End::Completed);
    assert_eq!(decide(&done().approved(1), minute(10)), rest(RestReason::Applied));
    assert_eq!(decide(&done().report(0, 9, PlatformStatus::Synced, "a"), minute(10)), rest(RestReason::Applied));
    let again = done().approved(9).change(|state| state.executors[0].report.as_mut().unwrap().approval_expires_at = Some(minute(130)));
    assert!(matches!(decide(&again, minute(10)), Decision::Send { purpose: Purpose::Apply, .. }));
}

#[test]
fn who_approves_again_wants_it_applied_again() {
    use PlatformStatus::{Failed, Synced};
    let until =
        |minutes: i64| move |state: &mut State| state.executors[0].report.as_mut().unwrap().approval_expires_at = Some(minute(minutes));
    let done = || proposed().staged().attempt(2, End::Completed);
    let again = || done().report(0, 9, Synced, "a").change(until(130));
    let send = |until| Decision::Send { executor: id(1), purpose: Purpose::Apply, approval_expires_at: Some(minute(until)) };
    check("another approval", again(), minute(10), &send(130));
    check("heard of before the sync ended", done().report(0, 1, Synced, "a").change(until(130)), minute(10), &rest(RestReason::Applied));
    let on_it = |at, end| {
        move |state: &mut State| {
            let newest =
                Sync { phase: ended(at, end), created_at: minute(at), approval_expires_at: Some(minute(130)), ..state.syncs[1].clone() };
            state.syncs.push(newest);
        }
    };
    let twice = || again().change(on_it(10, End::Completed)).report(0, 11, Synced, "a").change(until(130));
    check("once", twice(), minute(11), &rest(RestReason::Applied));
    assert_eq!(twice().attempts(), 1, "each approval has its own attempts");
    let failed = |times: i64| {
        let failed = (0..times).fold(again(), |state, n| state.change(on_it(10 + 5 * n, End::Failed)));
        failed.report(0, 30, Failed, "a").change(until(130))
    };
    check("a first failure", failed(1), second(10 * 60 + 59), &retry(11));
    check("is tried again", failed(2), minute(30), &send(130));
    check("three are enough", failed(3), minute(30), &rest(RestReason::Exhausted));
    let mut other = done().report(0, 9, Synced, "a");
    other.executors.push(Executor { id: id(2), ..again().executors[0].clone() });
    other.syncs.insert(0, Sync { executor: id(2), ..other.syncs[0].clone() });
    check("another executor's approval is its own", other, minute(10), &rest(RestReason::Applied));
    let staged = proposed().sync(Purpose::Stage, 0, ended(2, End::Completed)).report(0, 9, Synced, "a");
    check("a staging that was applied at once", staged, minute(10), &rest(RestReason::Applied));
}
