//! The one function behind which the executor decides.

use std::sync::Arc;

use agent_api::command::{Command, CommandStatus, SYNC_PLATFORM, SyncPlatform};
use agent_api::digest::Sha256;
use agent_api::manifest::Bundle;
use agent_api::name::CommandId;

use crate::effect::Effect;
use crate::event::Event;
use crate::record::{Outcome, Record};
use crate::refusal::EndCode;
use crate::retention;
use crate::state::{Pending, State};
use crate::sync::{self, Sync};
use crate::transition::Transition;

/// Highest sequence that is taken. One beyond it is no place in any order that a manager could have reached; taken, it would make every
/// later command look old, so the command is not acknowledged at all.
pub const MAX_SEQUENCE: u64 = 1 << 62;

/// What follows from an event at a time. The state changes, and the effects are had, by [`Transition::commit`].
pub fn step(state: &State, event: Event, now: jiff::Timestamp) -> Transition {
    match event {
        Event::Started => Transition::default().then_all([Effect::Publish, Effect::Continue]),
        Event::Connected => Transition::default().then_all(state.undelivered().map(Effect::Deliver)).then(Effect::Beat),
        Event::Command(command) => on_command(state, command, now),
        Event::Acknowledged(id) => on_acknowledged(state, id),
        Event::Continue => on_continue(state, now),
        Event::Tick => Transition::default().then_all(state.undelivered().map(Effect::Deliver)).then(Effect::Continue),
        Event::Retain => retention::forget(state, now),
        Event::Sync(id, fact) => match &state.sync {
            Some(sync) if sync.id == id => sync::on_fact(state, sync, fact, now),
            Some(_) | None => Transition::default(),
        },
    }
}

/// A command is journaled before it is acknowledged; one that is known is answered from the journal.
fn on_command(state: &State, command: Command, now: jiff::Timestamp) -> Transition {
    let id = command.id;
    if let Some(entry) = state.commands.get(&id) {
        let again = entry.result.as_ref().map(|_| Effect::Deliver(id));
        return Transition::default().then(Effect::Acknowledge(id)).then_all(again);
    }
    if command.sequence > MAX_SEQUENCE {
        return Transition::default();
    }
    if let Some(answer) = retention::dismiss(state, &command, now) {
        return answer;
    }
    let staged = stage(state, &command, now);
    let publishes = staged.as_ref().map(|_| [Effect::Publish, Effect::Beat]).into_iter().flatten();
    Transition::record(Record::Accepted { command, staged, at: now })
        .then(Effect::Acknowledge(id))
        .then_all(publishes)
        .then(Effect::Continue)
}

/// The bundle of a whole `sync_platform` is staged at once, also while a sync runs; an older proposal that comes late never replaces a
/// newer one.
fn stage(state: &State, command: &Command, now: jiff::Timestamp) -> Option<Arc<Pending>> {
    let pending = state.platform.pending.as_ref();
    if command.action != SYNC_PLATFORM || pending.is_some_and(|pending| pending.sequence > command.sequence) {
        return None;
    }
    let bundle = read_bundle(command).ok()?;
    let known = pending.filter(|pending| pending.sha256 == *bundle.sha256());
    Some(Arc::new(Pending {
        sha256: bundle.sha256().clone(),
        manifest: bundle.text().to_owned(),
        received_at: known.map_or(now, |pending| pending.received_at),
        sequence: command.sequence,
    }))
}

/// The first check: the bytes hash to the command's sha256, and the manifest is whole.
fn read_bundle(command: &Command) -> Result<Bundle, String> {
    let payload: SyncPlatform =
        serde_json::from_value(command.payload.clone()).map_err(|error| format!("damaged command: payload: {error}"))?;
    let hashed = Sha256::of(payload.manifest.as_bytes());
    if hashed != payload.sha256 {
        return Err(format!("damaged command: the manifest's bytes hash to {hashed}, the command says {}", payload.sha256));
    }
    Bundle::parse(payload.manifest).map_err(|error| error.to_string())
}

fn on_acknowledged(state: &State, id: CommandId) -> Transition {
    match state.commands.get(&id) {
        Some(entry) if entry.result.is_some() && !entry.acknowledged => Transition::record(Record::Acknowledged { id }),
        Some(_) | None => Transition::default(),
    }
}

/// Begins the command that ran before a restart, or else the oldest that waits.
fn on_continue(state: &State, now: jiff::Timestamp) -> Transition {
    if state.sync.is_some() {
        return Transition::default();
    }
    let Some((id, entry)) = state.next() else { return Transition::default() };
    let fail = |code, result| sync::finish(sync::ended(*id, code, result), Outcome::None, now);
    if entry.command.action != SYNC_PLATFORM {
        return fail(EndCode::ActionUnknown, format!("this version does not know the action {:?}", entry.command.action));
    }
    if entry.status == CommandStatus::Pending && entry.command.deadline.is_some_and(|deadline| now > deadline) {
        return fail(EndCode::DeadlinePassed, "the command's deadline passed before it could begin".into());
    }
    let bundle = match read_bundle(&entry.command) {
        Ok(bundle) => bundle,
        Err(problem) => return fail(EndCode::CommandDamaged, problem),
    };
    let (sync, effects) = Sync::begin(*id, bundle);
    let transition = match entry.status {
        CommandStatus::Pending => Transition::record(Record::Started { id: *id }),
        CommandStatus::Running | CommandStatus::Completed | CommandStatus::Failed => Transition::default(),
    };
    transition.sync(Some(sync)).then_all(effects)
}
