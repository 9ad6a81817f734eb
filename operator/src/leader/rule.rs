//! Whose Lease it is. Only the own clock counts, from when a Lease was first seen as it is: clocks of machines differ.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::LEASE;

/// A Lease as it was first seen in its present form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Observed {
    version: String,
    /// Who leads; empty where nobody does.
    pub(super) holder: String,
    /// How often the leader changed.
    pub(super) transitions: i64,
    lasts: Duration,
    since: Instant,
}

impl Observed {
    /// What is seen now; since when, where it is what was seen before. `None` where there is no Lease and never was: who held one that somebody
    /// deleted may not have noticed yet.
    pub(super) fn of(lease: Option<&Value>, before: Option<Self>, now: Instant) -> Option<Self> {
        let Some(lease) = lease else {
            return before.map(|before| if before.is_gone() { before } else { Self { version: String::new(), since: now, ..before } });
        };
        let text = |pointer: &str| lease.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |pointer: &str| lease.pointer(pointer).and_then(Value::as_i64);
        let version = text("/metadata/resourceVersion");
        let since = before.filter(|before| before.version == version).map_or(now, |before| before.since);
        let lasts = number("/spec/leaseDurationSeconds").and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or_default();
        Some(Self {
            version,
            holder: text("/spec/holderIdentity"),
            transitions: number("/spec/leaseTransitions").unwrap_or_default(),
            lasts: Duration::from_secs(lasts),
            since,
        })
    }

    fn is_gone(&self) -> bool {
        self.version.is_empty()
    }

    /// Whether its holder writes no more. A Lease that somebody edited may say less than a holder of this program counts on.
    fn has_run_out(&self, now: Instant) -> bool {
        now.duration_since(self.since) > self.lasts.max(LEASE)
    }
}

/// What one who wants to lead does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// There is no Lease.
    Create,
    /// It has run out, was released, or is one's own still.
    Take {
        /// How often the leader will have changed.
        transitions: i64,
    },
    /// Another's.
    Wait,
}

/// Decides.
pub(super) fn step(observed: Option<&Observed>, identity: &str, now: Instant) -> Step {
    let Some(observed) = observed else { return Step::Create };
    let own = observed.holder == identity;
    if !own && !observed.holder.is_empty() && !observed.has_run_out(now) {
        return Step::Wait;
    }
    if observed.is_gone() {
        return Step::Create;
    }
    Step::Take { transitions: observed.transitions + i64::from(!own) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lease(version: &str, holder: &str) -> Value {
        json!({"metadata": {"resourceVersion": version},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 3, "renewTime": "1970-01-01T00:00:00Z"}})
    }

    #[test]
    fn a_lease_is_taken_when_it_has_run_out_by_the_own_clock() {
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let first = Observed::of(Some(&lease("1", "other")), None, start);
        assert_eq!(step(None, "me", start), Step::Create);
        for (name, lease, now, expected) in [
            // Its renewTime is long past, by a clock that is not ours.
            ("another's, just seen", lease("1", "other"), after(0), Step::Wait),
            ("another's, not renewed", lease("1", "other"), after(15), Step::Wait),
            ("another's, run out", lease("1", "other"), after(16), Step::Take { transitions: 4 }),
            ("another's, renewed meanwhile", lease("2", "other"), after(16), Step::Wait),
            ("released", lease("2", ""), after(1), Step::Take { transitions: 4 }),
            ("one's own", lease("2", "me"), after(1), Step::Take { transitions: 3 }),
        ] {
            let observed = Observed::of(Some(&lease), first.clone(), now);
            assert_eq!(step(observed.as_ref(), "me", now), expected, "{name}");
        }
    }

    /// Its holder writes for a while yet, whatever anybody does to the Lease.
    #[test]
    fn a_lease_that_somebody_edited_or_deleted_lasts_as_long_as_any() {
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let mut edited = lease("2", "other");
        for duration in [json!(1), json!(0), json!(-5), json!(null)] {
            edited["spec"]["leaseDurationSeconds"] = duration;
            let observed = Observed::of(Some(&edited), None, start);
            assert_eq!(step(observed.as_ref(), "me", after(14)), Step::Wait, "{edited}");
            assert_eq!(step(observed.as_ref(), "me", after(16)), Step::Take { transitions: 4 }, "{edited}");
        }
        for (holder, at_once) in [("other", Step::Wait), ("me", Step::Create), ("", Step::Create)] {
            let seen = Observed::of(Some(&lease("1", holder)), None, start);
            let gone = Observed::of(None, seen, after(100));
            assert_eq!(step(gone.as_ref(), "me", after(100)), at_once, "{holder}");
            let still = Observed::of(None, gone, after(116));
            assert_eq!(step(still.as_ref(), "me", after(116)), Step::Create, "{holder}");
        }
        assert_eq!(Observed::of(None, None, start), None, "there never was one");
    }
}
