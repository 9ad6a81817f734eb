//! A deterministic simulation of the executor's core: the whole of its world is played, and every step is checked.
//!
//! One seed is one story: frames are lost, doubled, reordered and late; the daemon crashes before and after records and between
//! effects; the disk is full for a while, and what it refused may be there all the same after the next start; ended commands are
//! forgotten early; clocks jump both ways; a person approves, approves something else, lets approvals end; the manager forgets what it
//! was told. After each event the invariants of `world::World::check` hold; when the faults stop, everything that was asked for comes to
//! its end.
//!
//! Mutants that were tried, each found within fifty stories: the approved sha256 not compared (written under the approval of another
//! bundle); no look at the clock before a write (written after the approval's end); a result delivered that is not there (delivered
//! before it is on disk); an older proposal replacing a newer one; an acknowledgement without effect in memory (memory and disk differ).
//! Of the retention: a forgotten command taken again, and the remembered sequence lowered (accepted twice); an ended command forgotten
//! before its result was told; the lowest sequence kept instead of the highest (nothing remains of it); one too many kept.
//!
//! `make sim SEED=17 RUNS=1` replays one story and tells it; `make sim RUNS=10000` plays many.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "a story that is replayed is told")]

mod bundles;
mod journal;
mod link;
mod outside;
mod rng;
mod world;

/// Stories that `make test` plays.
const RUNS: u64 = 3_000;
/// Stories that `make soak` plays.
const SOAK_RUNS: u64 = 50_000;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .filter(|text| !text.is_empty())
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: not a number: {text}")))
}

#[test]
fn every_story_ends_well() {
    let usual = if std::env::var_os("SOAK").is_some() { SOAK_RUNS } else { RUNS };
    let (first, runs) = (variable("SEED").unwrap_or(1), variable("RUNS").unwrap_or(usual));
    let bundles = bundles::make();
    let mut totals = world::Totals::default();
    for seed in first..first + runs {
        let mut world = world::World::new(seed, &bundles, runs == 1);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.play()));
        if ended.is_err() {
            panic!("seed {seed} fails; replay it with: make sim SEED={seed} RUNS=1\n{}", world.last_events());
        }
        totals.add(&world.totals);
    }
    println!("{runs} stories from seed {first}: {totals:?}");
    if runs >= RUNS {
        totals.assert_that_faults_happened();
    }
}
