//! Whose Lease it is. Only the own clock counts, from when a Lease was first seen as it is: clocks of machines differ.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

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
    /// What is seen now; since when, where it is what was seen before. `None` where there is no Lease.
    pub(super) fn of(lease: Option<&Value>, before: Option<Self>, now: Instant) -> Option<Self> {
        let lease = lease?;
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
    if observed.holder == identity {
        return Step::Take { transitions: observed.transitions };
    }
    if observed.holder.is_empty() || now.duration_since(observed.since) > observed.lasts {
        return Step::Take { transitions: observed.transitions + 1 };
    }
    Step::Wait
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
}
