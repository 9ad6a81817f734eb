//! Persist, then act: a transition's effects are handed out only after the journal has its record.

use std::future::Future;

use crate::effect::Effect;
use crate::record::Record;
use crate::state::{PlatformRecord, State};
use crate::sync::Sync;

/// Where records become durable.
pub trait Journal {
    /// Why a record could not be written.
    type Error;

    /// Writes a record, and the platform's state that follows from it, in one transaction; returns when it is on disk.
    fn append(&mut self, record: &Record, after: &PlatformRecord) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// What follows from an event. Its parts are private: the only way to its effects is [`Transition::commit`].
#[derive(Debug, Default)]
#[must_use = "a transition that is not committed is lost"]
pub struct Transition {
    record: Option<Record>,
    sync: Option<Option<Sync>>,
    effects: Vec<Effect>,
}

impl Transition {
    pub(crate) fn record(record: Record) -> Self {
        Self { record: Some(record), ..Self::default() }
    }

    /// The record that would be written.
    #[cfg(test)]
    pub(crate) fn peek(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    pub(crate) fn sync(mut self, sync: Option<Sync>) -> Self {
        self.sync = Some(sync);
        self
    }

    pub(crate) fn then(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    pub(crate) fn then_all(mut self, effects: impl IntoIterator<Item = Effect>) -> Self {
        self.effects.extend(effects);
        self
    }

    /// Makes the record durable, lets it take effect on the state, and hands out the effects. On an error the state is as before
    /// and nothing may be done.
    ///
    /// # Errors
    /// The journal's.
    pub async fn commit<J: Journal>(self, state: &mut State, journal: &mut J) -> Result<Vec<Effect>, J::Error> {
        if let Some(record) = &self.record {
            let mut after = state.platform.clone();
            after.apply(record);
            journal.append(record, &after).await?;
            state.apply(record);
        }
        if let Some(sync) = self.sync {
            state.sync = sync;
        }
        Ok(self.effects)
    }
}
