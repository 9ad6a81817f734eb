//! `clctl platform`: the person's side of platform updates.

mod approve;
pub(super) mod arguments;
mod drift;
mod kinds;
pub(super) mod pending;
mod record;
mod removal;
mod reset;
mod revoke;
mod show;
mod token_bundle;

use std::process::ExitCode;

use clap::Subcommand;

/// Label on what `approve` makes for the account itself.
const OWN_LABEL: &str = agent_api::keys::MANAGED_BY;
/// Its value; a chart's objects never have it, since rendering sets theirs.
const MANAGED_BY_APPROVE: &str = "approve";

/// Selects what `approve` made for the account.
fn made_by_approve() -> String {
    format!("{OWN_LABEL}={MANAGED_BY_APPROVE}")
}

/// Verbs.
#[derive(Subcommand)]
pub(crate) enum Platform {
    /// Approve the staged bundle: apply its permissions half with your own credentials, and let the executor apply the rest.
    Approve(Box<approve::Approve>),
    /// Show the staged bundle, the approval that holds, and former ones.
    Show(show::Show),
    /// Tell which kinds a bundle may hold, who applies them and why, and why others are refused.
    Kinds(kinds::Kinds),
    /// Test clusters: uninstall the platform's components, so that their first installation can be replayed.
    Reset(reset::Reset),
}

impl Platform {
    pub(crate) async fn run(self) -> ExitCode {
        match self {
            Self::Approve(approve) => approve.run().await,
            Self::Show(show) => show.run().await,
            Self::Kinds(kinds) => kinds.run(),
            Self::Reset(reset) => reset.run().await,
        }
    }
}
