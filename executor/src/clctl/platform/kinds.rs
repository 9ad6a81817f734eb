//! `clctl platform kinds`: which kinds a bundle may hold, who applies them, and why; and why others are refused.

use std::process::ExitCode;

use agent_api::kind::{Half, KINDS, REFUSED};
use clap::Args;
use serde::Serialize;

use crate::clctl::output::Output;

/// Arguments.
#[derive(Args)]
pub(crate) struct Kinds {
    /// Form of the output (default: a table on a terminal, JSON otherwise).
    #[arg(short, long)]
    output: Option<Output>,
}

/// A line of the table.
#[derive(Serialize)]
struct Row {
    /// Kind, `*` for all of the group.
    kind: &'static str,
    /// API group; empty for the core group, `*` for all that are not Kubernetes' own.
    group: &'static str,
    /// `permissions`, `workload`, or `refused`.
    half: &'static str,
    /// Why.
    why: String,
}

impl Kinds {
    pub(super) fn run(self) -> ExitCode {
        let all = rows();
        let cell = |row: &Row| [row.kind, row.group, row.half, &row.why].map(str::to_owned).to_vec();
        let name = |row: &Row| if row.group.is_empty() { row.kind.to_owned() } else { format!("{}.{}", row.kind, row.group) };
        Output::or_default(self.output).print(
            &all,
            &["KIND", "GROUP", "HALF", "WHY"],
            || all.iter().map(cell).collect(),
            || all.iter().map(name).collect(),
        )
    }
}

/// Both halves in the order in which they are applied, then what is refused.
fn rows() -> Vec<Row> {
    let halves = KINDS.iter().map(|row| {
        let half = match row.half {
            Half::Permissions => "permissions",
            Half::Workload => "workload",
        };
        Row { kind: row.kind, group: row.group, half, why: row.why.to_owned() }
    });
    let refused = REFUSED.iter().flat_map(|row| {
        let why = if row.avoid.is_empty() { row.why.to_owned() } else { format!("{}; {}", row.why, row.avoid) };
        row.kinds.iter().map(move |kind| Row { kind, group: row.group, half: "refused", why: why.clone() })
    });
    halves.chain(refused).collect()
}
