//! `docs/red-team.md`: the table, written for a security officer. What it says is what the test asks.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::attempts::Section;
use crate::honest::Honest;
use crate::row::{Denial, Row};
use crate::states::State;

const INTRODUCTION: &str = "\
# The red team of an approval

Suppose that somebody has stolen the token that `clctl platform approve` gives the executor, or the executor itself is theirs. What follows
is what they could attempt with it, what each attempt is for, and what denies it. **A stolen token can only write again what a person
approved.** Nothing here is an opinion: the page is generated from the table that the test `tests/tests/rights` asks a real API server, with
the real tokens, each attempt as a real write; afterwards the cluster is compared with what it was. A page that is not the table fails the
test; `UPDATE_DOCS=1 cargo test -p system-tests --test rights page` writes it anew.

Three layers bound `pcm-platform`:

- **RBAC**: Roles that name each object of the bundle, `create` and `patch`; no list, no delete, no read of a Secret.
- **scope guard**: the admission policy `pcm-platform-scope-guard`: six kinds, the bundle's namespaces, whole objects, only by server-side
  apply as `clicklink-executor`, nothing of what other managers own.
- **pin**: the admission policies `pcm-platform-approved` and `pcm-platform-approved-secrets`: the token is the approval's own, the object is
  listed in it, and is equal to what was approved.

*Must be denied by* is the layer that a request meets first. *Denied with that layer off* names those that then still deny it, tried so:
an administrator bound the account to `cluster-admin`; then the scope guard's binding was removed as well; then the pins' bindings were. A `-`
says that nothing else would: a pin alone knows what was approved, and RBAC alone sees reads and writes of policies. *API server* says that
nobody could, whatever their rights.
";

const EXECUTOR: &str = "
## As `pcm-executor`

The standing access is bounded by RBAC and by the admission policy `pcm-executor-prefix-guard` (the *prefix guard*).
";

const POSSIBLE: &str = "
## What must be possible

Each is done in the same cluster, and the whole workload half is then applied again by the real token and by the executor's own sync.

| what happened | what must be possible |
| --- | --- |
";

const LIMITS: &str = "\
## What a stolen token still can do

- Write the approved objects again, those too that somebody deleted. That is what it is for, and it ends with the token.
- Read what its bearer wrote: the bundle's ConfigMaps, Deployments, Services, Jobs and budgets, its pods and events, and the one approval
  that holds. A patch of a name is a read of it, so the bundle's own Secrets can be read by patching them: a bundle is no place for a
  password. Secrets that a chart leaves empty for somebody else to fill are in no Role.
- Give up, by a patch of `managedFields`, fields that the executor's own apply owns, the content unchanged. An update that leaves such a
  field out does not remove it; its pin then denies the update, and a person sees it in the next plan.
- Learn what every account may: versions, the API's paths, and what it itself may do (`SelfSubjectAccessReview`).

All of this ends with the approval: without the token's id in `current` the pins deny even the approved content.
";

/// The whole page.
pub(crate) fn text(platform: &[Section], executor: &[Section]) -> String {
    let mut page = String::from(INTRODUCTION);
    let states = State::ALL.len();
    let count = |sections: &[Section]| sections.iter().map(|section| section.rows.len()).sum::<usize>();
    let _ = write!(page, "\n{} attempts as `pcm-platform`, {} as `pcm-executor`.\n", count(platform) + states, count(executor));
    page.push_str("\n## As `pcm-platform`\n");
    platform.iter().for_each(|section| table(&mut page, section.title, section.rows.iter()));
    let states: Vec<Row> = State::ALL.iter().map(|state| state.row()).collect();
    table(&mut page, "Other tokens, an approval that is not there, objects prepared for the next approval", states.iter());
    page.push_str(EXECUTOR);
    executor.iter().for_each(|section| table(&mut page, section.title, section.rows.iter()));
    page.push_str(POSSIBLE);
    for honest in Honest::ALL {
        let (happened, possible) = honest.words();
        let _ = writeln!(page, "| {happened} | {possible} |");
    }
    page.push('\n');
    page.push_str(LIMITS);
    page
}

fn table<'a>(page: &mut String, title: &str, rows: impl Iterator<Item = &'a Row>) {
    let _ = write!(
        page,
        "\n### {title}\n\n| attempt | hoped for | must be denied by | denied with that layer off |\n| --- | --- | --- | --- |\n"
    );
    for row in rows {
        let mut layers: Vec<&str> = Vec::new();
        for layer in row.denied.iter().map(|denial: &Denial| denial.layer()) {
            if !layers.contains(&layer) {
                layers.push(layer);
            }
        }
        let others = if layers.len() > 1 { format!("yes: {}", layers[1..].join(", ")) } else { "-".to_owned() };
        let _ = writeln!(page, "| {} | {} | {} | {others} |", row.attempt, row.hope, layers[0]);
    }
}

/// Where the page lies.
pub(crate) fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/red-team.md")
}
