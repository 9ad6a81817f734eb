//! The line that a refusal ends with: the command to run (seed, to the letter).

use agent_api::digest::Sha256;

use crate::state::State;

/// `run: clctl platform approve (pending bundle sha <sha256>)`, in a pod with `--secret-namespace <ns>`. The sha is that of the
/// pending bundle, or of the command's where nothing is pending.
pub(crate) fn approve(state: &State, sha256: &Sha256) -> String {
    let pending = state.platform.pending.as_ref().map_or(sha256, |pending| &pending.sha256);
    match &state.site.connector_namespace {
        Some(namespace) => format!("run: clctl platform approve --secret-namespace {namespace} (pending bundle sha {pending})"),
        None => format!("run: clctl platform approve (pending bundle sha {pending})"),
    }
}
