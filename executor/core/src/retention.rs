//! What the journal forgets, and what it answers when something forgotten comes again.
//!
//! An ended command is kept until its result is acknowledged, and then for [`Retention`]. Of what is forgotten one number remains, the
//! highest sequence ([`crate::PlatformRecord::forgotten_through`]): an unknown command at or below it may have run before, so it is
//! answered as failed and never run.

use agent_api::command::Command;
use agent_api::name::CommandId;

use crate::effect::Effect;
use crate::record::Record;
use crate::refusal::EndCode;
use crate::state::State;
use crate::sync;
use crate::transition::Transition;

/// Commands that one record forgets at most; the rest follows at the next [`crate::Event::Retain`].
const BATCH: usize = 500;

/// How long, and how many, ended and acknowledged commands are kept: until the first of the two is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Since the command's end, by this machine's clock.
    pub age: jiff::SignedDuration,
    /// Ended commands, the newest.
    pub count: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Self { age: jiff::SignedDuration::from_hours(30 * 24), count: 10_000 }
    }
}

/// Forgets what is beyond the retention, oldest first.
pub(crate) fn forget(state: &State, now: jiff::Timestamp) -> Transition {
    let Retention { age, count } = state.site.retention;
    let ended = state.commands.values().filter_map(|entry| Some((entry.finished_at?, entry.command.sequence, entry)));
    let (mut told, all) = ended.fold((Vec::new(), 0_usize), |(mut told, all), (at, sequence, entry)| {
        if entry.acknowledged {
            told.push((at, sequence, entry.command.id));
        }
        (told, all + 1)
    });
    told.sort_unstable();
    let too_many = all.saturating_sub(count);
    let beyond = told.into_iter().enumerate().filter(|(i, (at, ..))| *i < too_many || now.duration_since(*at) > age);
    let beyond: Vec<(u64, CommandId)> = beyond.map(|(_, (_, sequence, id))| (sequence, id)).take(BATCH).collect();
    match beyond.iter().map(|(sequence, _)| *sequence).max() {
        Some(through) => Transition::record(Record::Forgotten { commands: beyond.into_iter().map(|(_, id)| id).collect(), through }),
        None => Transition::default(),
    }
}

/// The answer to a command that may be a forgotten one; `None` for one that can't be.
pub(crate) fn dismiss(state: &State, command: &Command, now: jiff::Timestamp) -> Option<Transition> {
    let through = state.platform.forgotten_through;
    if command.sequence > through {
        return None;
    }
    let text = format!(
        "the command (sequence {}) is older than what the journal remembers (it forgot up to sequence {through}); it may have run before \
         and is not run again",
        command.sequence
    );
    let result = sync::ended(command.id, EndCode::CommandForgotten, text);
    let id = command.id;
    let effects = [Effect::Acknowledge(id), Effect::Deliver(id)];
    Some(Transition::record(Record::Dismissed { command: command.clone(), result, at: now }).then_all(effects))
}

#[cfg(test)]
mod tests {
    use agent_api::command::CommandStatus;
    use agent_api::frame::CommandResult;

    use super::*;
    use crate::state::{Entry, Site};

    const HOUR: i64 = 3_600;

    fn at(second: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(second).unwrap()
    }

    fn command(sequence: u64) -> Command {
        let (action, target) = ("sync_platform".into(), "platform".into());
        let id = CommandId(agent_api::Uuid::from_u128(u128::from(sequence)));
        Command { id, sequence, action, target, deadline: None, payload: serde_json::Value::Null }
    }

    /// Commands 1, 2, 3, … that ended at these seconds (`None`: not yet), all acknowledged but those of `untold`.
    fn state(ends: &[Option<i64>], untold: &[u64], retention: Retention) -> State {
        let mut state = State::new(Site { retention, ..Site::default() });
        for (sequence, end) in (1..).zip(ends) {
            let command = command(sequence);
            let mut entry = Entry::new(command.clone(), at(0));
            if let Some(end) = end {
                let result = CommandResult {
                    id: command.id,
                    status: CommandStatus::Completed,
                    result: String::new(),
                    objects: Vec::new(),
                    code: None,
                };
                entry = Entry { status: result.status, finished_at: Some(at(*end)), result: Some(result), ..entry };
                entry.acknowledged = !untold.contains(&sequence);
            }
            state.commands.insert(command.id, entry);
        }
        state
    }

    #[track_caller]
    fn check(ends: &[Option<i64>], untold: &[u64], count: usize, now: i64, forgotten: &[u64], through: u64) {
        let state = state(ends, untold, Retention { age: jiff::SignedDuration::from_hours(1), count });
        let record = forget(&state, at(now)).peek().cloned();
        let ids = forgotten.iter().map(|sequence| command(*sequence).id).collect();
        let expected = (!forgotten.is_empty()).then_some(Record::Forgotten { commands: ids, through });
        assert_eq!(record, expected);
    }

    #[test]
    fn the_oldest_go_by_age_and_by_number_and_nothing_that_is_not_told() {
        check(&[Some(0), Some(10)], &[], 9, HOUR, &[], 0);
        check(&[Some(0), Some(10)], &[], 9, HOUR + 1, &[1], 1);
        check(&[Some(0), Some(10), None], &[], 1, 20, &[1], 1);
        check(&[Some(0), Some(10), None], &[], 0, 20, &[1, 2], 2);
        check(&[Some(10), Some(0)], &[], 1, 20, &[2], 2);
        check(&[Some(0), Some(10), Some(20)], &[1], 1, 30, &[2, 3], 3);
        check(&[Some(0), Some(10)], &[1, 2], 0, 9 * HOUR, &[], 0);
        check(&[None, None], &[], 0, 9 * HOUR, &[], 0);
        // The clock was ahead when the command ended: its age begins when the clock gets there.
        check(&[Some(9 * HOUR)], &[], 9, 0, &[], 0);
    }

    #[test]
    fn what_may_have_run_is_answered_and_not_taken() {
        let mut state = state(&[Some(0), Some(10)], &[], Retention { age: jiff::SignedDuration::from_hours(1), count: 0 });
        let record = forget(&state, at(20)).peek().cloned().unwrap();
        state.apply(&record);
        assert!(state.commands.is_empty() && state.platform.forgotten_through == 2);
        assert!(dismiss(&state, &command(3), at(30)).is_none());
        let record = dismiss(&state, &command(2), at(30)).unwrap().peek().cloned().unwrap();
        state.apply(&record);
        let entry = &state.commands[&command(2).id];
        assert_eq!((entry.status, entry.acknowledged), (CommandStatus::Failed, false));
        assert!(entry.result.as_ref().unwrap().result.contains("is not run again"));
        assert_eq!(state.next().map(|(id, _)| *id), None);
    }
}
