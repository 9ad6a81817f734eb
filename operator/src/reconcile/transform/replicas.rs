//! How many pods a workload is given, and when its count is left alone.
//!
//! An applied field that is no longer applied is removed, and a workload without `replicas` falls to one pod. So a count that an autoscaler is
//! to take over is written as it is live, until the autoscaler has written one of its own; from then on it is left out. Whatever else is seen
//! under an autoscaler: nothing that differs from the live count is written, but for a start from zero.

/// What is known of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// `desiredState: Stopped`.
    pub stopped: bool,
    /// The spec's count, or the chart's.
    pub declared: Option<u32>,
    /// Bounds of the autoscaler that owns the count.
    pub autoscaled: Option<Bounds>,
    /// The live workload's.
    pub live: Option<LiveCount>,
    /// The count from before a stop.
    pub kept: Option<u32>,
}

/// Fewest and most pods of an autoscaler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Fewest.
    pub min: u32,
    /// Most.
    pub max: u32,
}

/// A live count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LiveCount {
    /// `spec.replicas`.
    pub replicas: u32,
    /// Whether the operator owns it.
    pub ours: bool,
}

/// What is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replicas {
    /// This count. Whoever owns another one gives way.
    Write(u32),
    /// Nothing.
    Leave,
}

/// Decides.
#[must_use]
pub fn replicas(facts: &Facts) -> Replicas {
    if facts.stopped {
        return Replicas::Write(0);
    }
    match (facts.autoscaled, facts.declared, facts.live) {
        // At zero by the autoscaler's own will: no stop is known of.
        (Some(Bounds { min: 0, .. }), _, Some(LiveCount { replicas: 0, ours })) if facts.kept.is_none() => {
            if ours {
                Replicas::Write(0)
            } else {
                Replicas::Leave
            }
        }
        (Some(bounds), declared, None | Some(LiveCount { replicas: 0, .. })) => {
            let start = facts.kept.or(declared).unwrap_or(bounds.min);
            Replicas::Write(start.clamp(bounds.min.max(1), bounds.max.max(bounds.min).max(1)))
        }
        (Some(_), _, Some(live)) | (None, None, Some(live @ LiveCount { replicas: 1.., .. })) => {
            if live.ours {
                Replicas::Write(live.replicas)
            } else {
                Replicas::Leave
            }
        }
        (None, Some(declared), _) => Replicas::Write(declared),
        // Neither spec nor chart says anything: what was before the stop, else what Kubernetes gives.
        (None, None, Some(LiveCount { replicas: 0, .. })) => Replicas::Write(facts.kept.unwrap_or(1)),
        (None, None, None) => Replicas::Leave,
    }
}

/// The count to keep over a stop: what was live before it. A start takes it where neither spec nor chart says one, or an autoscaler held it.
#[must_use]
pub fn kept(facts: &Facts) -> Option<u32> {
    match facts.live {
        Some(LiveCount { replicas: 0, .. }) | None => facts.kept.filter(|_| facts.stopped),
        Some(live) => facts.stopped.then_some(live.replicas),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Replicas::{Leave, Write};

    const RUNNING: Facts = Facts { stopped: false, declared: Some(2), autoscaled: None, live: None, kept: None };

    fn live(replicas: u32, ours: bool) -> Option<LiveCount> {
        Some(LiveCount { replicas, ours })
    }

    /// "Composants et opérations" and "Protections": installing, starting, stopping, scaling, and an autoscaler that holds the count.
    #[test]
    fn counts() {
        let scaled = Facts { autoscaled: Some(Bounds { min: 3, max: 9 }), ..RUNNING };
        let silent = Facts { declared: None, ..RUNNING };
        for (name, facts, expected) in [
            ("installation", RUNNING, Write(2)),
            ("mise à l'échelle", Facts { live: live(5, true), ..RUNNING }, Write(2)),
            ("somebody else scaled by hand", Facts { live: live(5, false), ..RUNNING }, Write(2)),
            ("arrêt", Facts { stopped: true, live: live(2, true), ..RUNNING }, Write(0)),
            ("arrêt under an autoscaler", Facts { stopped: true, live: live(8, false), ..scaled }, Write(0)),
            ("démarrage", Facts { live: live(0, true), ..RUNNING }, Write(2)),
            ("démarrage under an autoscaler: what it held", Facts { live: live(0, true), kept: Some(8), ..scaled }, Write(8)),
            ("démarrage: what it held is out of bounds now", Facts { live: live(0, true), kept: Some(12), ..scaled }, Write(9)),
            ("installation under an autoscaler", scaled, Write(3)),
            ("an autoscaler comes: no dip", Facts { live: live(5, true), ..scaled }, Write(5)),
            ("an autoscaler holds 8, the chart says 2", Facts { live: live(8, false), ..scaled }, Leave),
            (
                "an autoscaler that may go to zero has gone there",
                Facts { autoscaled: Some(Bounds { min: 0, max: 9 }), live: live(0, false), ..RUNNING },
                Leave,
            ),
            (
                "démarrage under an autoscaler that may go to zero",
                Facts { autoscaled: Some(Bounds { min: 0, max: 9 }), live: live(0, true), kept: Some(4), ..RUNNING },
                Write(4),
            ),
            ("the autoscaler is gone: the declared count returns", Facts { live: live(8, false), ..RUNNING }, Write(2)),
            ("nobody says anything", silent, Leave),
            ("the chart stops saying it: no dip", Facts { live: live(5, true), ..silent }, Write(5)),
            ("nobody ever said it", Facts { live: live(5, false), ..silent }, Leave),
            ("démarrage where nobody says anything", Facts { live: live(0, true), kept: Some(5), ..silent }, Write(5)),
            ("démarrage where nobody says or knows anything", Facts { live: live(0, true), ..silent }, Write(1)),
        ] {
            assert_eq!(replicas(&facts), expected, "{name}");
        }
    }

    #[test]
    fn what_was_live_is_kept_over_a_stop() {
        let scaled = Facts { stopped: true, autoscaled: Some(Bounds { min: 3, max: 9 }), ..RUNNING };
        for (name, facts, expected) in [
            ("a declared count", Facts { stopped: true, live: live(2, true), ..RUNNING }, Some(2)),
            ("the autoscaler held it", Facts { live: live(8, false), ..scaled }, Some(8)),
            ("it is kept while stopped", Facts { live: live(0, true), kept: Some(8), ..scaled }, Some(8)),
            ("and let go once it runs", Facts { stopped: false, live: live(8, true), kept: Some(8), ..scaled }, None),
            ("nobody says it", Facts { stopped: true, declared: None, live: live(5, false), ..RUNNING }, Some(5)),
        ] {
            assert_eq!(kept(&facts), expected, "{name}");
        }
    }
}
