//! The writes of an approval, as a relay before the API server sees them, and an approval that goes through it.

use std::collections::BTreeMap;

use system_tests::landscape::{Landscape, SOON};
use system_tests::{ApiBetween, Asked, Disturbance, Exit, Finished, Process};

/// Approvals of a landscape that can be cut off.
pub(super) struct Cut<'a> {
    pub(super) landscape: &'a Landscape,
    pub(super) relay: &'a ApiBetween,
}

/// A kind of write: whatever its name is of a bundle's objects, and by name of the approval's own.
pub(super) fn kind(asked: &Asked) -> String {
    let mut words: Vec<&str> = asked.path.split('/').filter(|word| !word.is_empty()).collect();
    // `api/v1/…` and `apis/<group>/<version>/…`.
    words.drain(..if words[0] == "api" { 2 } else { 3 });
    if words[0] == "namespaces" && words.len() > 2 {
        words.drain(..2);
    }
    let kept = if is_own(asked) { words.len() } else { 1 };
    let place = words[..kept].join("/");
    match (asked.dry_run, asked.impersonating) {
        (false, _) => format!("{} {place}", asked.method),
        // What nothing comes of is all one.
        (true, false) => format!("{} in a dry run", asked.method),
        (true, true) => "probe".to_owned(),
    }
}

/// Writes in their order, each called by its kind, and a repeated one of the approval's own also by how often it came.
#[derive(Default)]
pub(super) struct Sequence(BTreeMap<String, u32>);

impl Sequence {
    pub(super) fn next(&mut self, asked: &Asked) -> String {
        let kind = kind(asked);
        let times = self.0.entry(kind.clone()).or_default();
        *times += 1;
        if *times > 1 && is_own(asked) && !asked.dry_run { format!("{kind} again, {times}") } else { kind }
    }
}

/// A write of each step, in the order of the steps.
const STEPS: [&str; 12] = [
    "PATCH in a dry run",
    "PATCH customresourcedefinitions",
    "POST in a dry run",
    "PUT roles/pcm-platform",
    "PUT secrets/pcm-platform-pins",
    "PUT platformapprovals/current",
    "PUT validatingadmissionpolicies/pcm-platform-approved",
    "PUT serviceaccounts/pcm-platform",
    "PATCH rolebindings/pcm-platform",
    "POST serviceaccounts/pcm-platform/token",
    "PUT platformapprovals/current again, 2",
    "PUT platformapprovals/current again, 3",
];

/// Whether it may take long.
pub(super) fn soak() -> bool {
    std::env::var_os("SOAK").is_some()
}

/// One write of each step, all of which there must be; with SOAK all.
pub(super) fn of_steps(writes: &[String]) -> Vec<String> {
    for step in STEPS {
        assert!(writes.iter().any(|write| write == step), "no {step} among {writes:#?}");
    }
    writes.iter().filter(|write| soak() || STEPS.contains(&write.as_str())).cloned().collect()
}

/// Of the approval itself, not of the bundle.
fn is_own(asked: &Asked) -> bool {
    asked.path.split('/').any(|word| word == "current" || word.starts_with("pcm-platform"))
}

impl Cut<'_> {
    /// Approves undisturbed.
    pub(super) async fn approve(&self, bundle: &str) -> Finished {
        self.landscape.connector.approve(&["--yes", "--bundle", bundle]).await.unwrap().ok().unwrap()
    }

    /// Approves through the relay.
    pub(super) async fn try_approve(&self, bundle: &str) -> Finished {
        self.try_approve_with(bundle, &[]).await
    }

    /// The same with more arguments.
    pub(super) async fn try_approve_with(&self, bundle: &str, more: &[&str]) -> Finished {
        self.landscape.connector.approve(&[&self.arguments(bundle)[..], more].concat()).await.unwrap()
    }

    /// Approves undisturbed; gives its writes, in the order in which each first came.
    pub(super) async fn writes(&self, bundle: &str) -> Vec<String> {
        self.relay.disturb(|_| None);
        self.try_approve(bundle).await.ok().unwrap();
        let (mut sequence, mut writes) = (Sequence::default(), Vec::new());
        for asked in self.relay.take_seen().iter().filter(|asked| asked.is_write()) {
            let write = sequence.next(asked);
            if !writes.contains(&write) {
                writes.push(write);
            }
        }
        writes
    }

    /// An approval of which this write is held the first time; then it is killed.
    pub(super) async fn kill_at(&self, bundle: &str, write: &str, how: Disturbance) {
        let (wanted, mut sequence, mut came) = (write.to_owned(), Sequence::default(), false);
        self.relay.disturb(move |asked| {
            let hit = !came && asked.is_write() && sequence.next(asked) == wanted;
            came |= hit;
            hit.then_some(how)
        });
        let connector = &self.landscape.connector;
        let process: Process = connector.approving(&self.arguments(bundle)).start(connector.folder()).unwrap();
        tokio::select! {
            () = self.relay.held() => {}
            ended = process.wait(SOON) => panic!("{write} did not come: {ended:?}"),
        }
        process.kill_hard();
        assert!(matches!(process.wait(SOON).await.unwrap(), Exit::Signal(9)), "{write}");
    }

    fn arguments<'b>(&'b self, bundle: &'b str) -> [&'b str; 5] {
        let kubeconfig = self.relay.kubeconfig().to_str().unwrap();
        ["--yes", "--bundle", bundle, "--kubeconfig", kubeconfig]
    }
}
