//! `clctl status [-o]`: where the platform update stands, as the executor says in its heartbeat, with ages and the next step.

mod next;
mod text;

use std::process::ExitCode;

use agent_api::heartbeat::{AccessInfo, ClusterInfo, CommandCounts, ComponentState, ExecutorInfo, Platform};
use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use self::next::Step;
use crate::clctl::local_api::{LocalApi, LocalApiError};
use crate::clctl::output::Output;
use crate::error_code::{Code, Coded};
use crate::local_api::{ChannelView, SyncView};
use crate::terminal::{data, report, talk};

/// Arguments.
#[derive(Args)]
pub(crate) struct Status {
    #[command(flatten)]
    api: LocalApi,
    /// Form of the output (default: a table on a terminal, JSON otherwise); `name` lists components.
    #[arg(short, long)]
    output: Option<Output>,
}

/// What the executor says of itself.
#[derive(Deserialize)]
struct Seen {
    platform: Platform,
    #[serde(default)]
    sync: Option<SyncView>,
    components: Vec<ComponentState>,
    cluster: ClusterInfo,
    access: AccessInfo,
    #[serde(default)]
    executor: Option<ExecutorInfo>,
    #[serde(default)]
    commands: Option<CommandCounts>,
    #[serde(default)]
    channel: Option<ChannelView>,
}

/// Why there is no status.
#[derive(Debug, thiserror::Error)]
enum StatusError {
    #[error(transparent)]
    LocalApi(#[from] LocalApiError),
    #[error("the executor's answer is not understood, it may be of another version: {0}")]
    Answer(#[from] serde_json::Error),
}

impl Coded for StatusError {
    fn code(&self) -> Code {
        match self {
            Self::LocalApi(error) => error.code(),
            Self::Answer(_) => Code::LocalApiAnswer,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::LocalApi(error) => error.hints(),
            Self::Answer(_) => Vec::new(),
        }
    }
}

impl Status {
    pub(super) async fn run(self) -> ExitCode {
        match self.show().await {
            Ok(code) => code,
            Err(error) => report(&error),
        }
    }

    async fn show(&self) -> Result<ExitCode, StatusError> {
        let mut answer: Value = self.api.get("/v1/platform", &[]).await?;
        let seen = Seen::deserialize(&answer)?;
        let now = jiff::Timestamp::now();
        let (old, next) = (text::old(&seen, now), next::steps(&seen, now));
        let code = match Output::or_default(self.output) {
            Output::Table => {
                data(text::text(&seen, now));
                for Step { why, command } in &next {
                    talk(format_args!("{why}:\nnext: {command}"));
                }
                ExitCode::SUCCESS
            }
            Output::Name => {
                seen.components.iter().for_each(|component| data(&component.name));
                ExitCode::SUCCESS
            }
            form @ (Output::Json | Output::Yaml) => {
                answer["old"] = old.into();
                answer["next"] = next.into_iter().map(|step| step.command).collect::<Vec<_>>().into();
                form.print(&answer, &[], Vec::new, Vec::new)
            }
        };
        Ok(code)
    }
}

#[cfg(test)]
mod tests;
