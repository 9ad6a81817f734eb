//! How a result says that an approval is wanted.
//!
//! The wire has no field for it: the seed's hint at the end of the text is the contract, for people and for us.

use agent_api::command::CommandStatus;
use agent_api::frame::CommandResult;

/// Whether a result refuses for want of approval: it failed, and its text ends with
/// `run: clctl platform approve … (pending bundle sha <64 hex digits>)`.
#[must_use]
pub fn wants_approval(result: &CommandResult) -> bool {
    result.status == CommandStatus::Failed && ends_with_hint(&result.result)
}

fn ends_with_hint(text: &str) -> bool {
    let Some((_, hint)) = text.trim_end().rsplit_once("run: clctl platform approve") else { return false };
    let Some((_, sha)) = hint.rsplit_once("(pending bundle sha ") else { return false };
    sha.strip_suffix(')').is_some_and(|sha| sha.parse::<agent_api::digest::Sha256>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_api::name::CommandId;

    fn check(status: CommandStatus, text: &str, expected: bool) {
        let text = text.replace("SHA", &"a".repeat(64));
        let result = CommandResult { id: CommandId(uuid::Uuid::nil()), status, result: text.clone(), objects: Vec::new(), code: None };
        assert_eq!(wants_approval(&result), expected, "{text}");
    }

    #[test]
    fn the_hint_at_the_end_decides() {
        let failed = CommandStatus::Failed;
        check(failed, "no approval: run: clctl platform approve (pending bundle sha SHA)", true);
        check(failed, "expired; run: clctl platform approve --secret-namespace clicklink (pending bundle sha SHA)\n", true);
        check(CommandStatus::Completed, "run: clctl platform approve (pending bundle sha SHA)", false);
        check(failed, "run: clctl platform approve (pending bundle sha 12)", false);
        check(failed, "run: clctl platform approve (pending bundle sha SHA) and more", false);
        check(failed, "registry: 401", false);
        check(failed, "(pending bundle sha SHA)", false);
    }
}
