//! The daemon's log: lines on stderr, or native journal fields where systemd reads stderr. Its level can change while it runs.
//!
//! Fields go to the journal as `CLICKLINK_<FIELD>`: a prefix of ours keeps a field from being taken for one of the journal's own.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tracing::warn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, reload};

use crate::config::LogFormat;

/// Prefix of our fields in the journal.
const FIELD_PREFIX: &str = "CLICKLINK";
/// `SYSLOG_IDENTIFIER` of our entries.
const IDENTIFIER: &str = "clicklink-executor";
/// Levels that a filter of one word may name.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The level of the log that runs.
#[derive(Clone)]
pub(crate) struct LevelHandle(reload::Handle<EnvFilter, Registry>);

impl LevelHandle {
    /// Changes it; a text that is no filter changes nothing.
    pub(crate) fn set(&self, text: &str) -> Result<(), String> {
        self.0.reload(filter(text)?).map_err(|error| error.to_string())
    }
}

/// Starts the log. Until then nothing is logged.
pub(crate) fn start(level: &str, format: LogFormat) -> LevelHandle {
    let (filter, handle) = reload::Layer::new(filter(level).unwrap_or_else(|_| "info".into()));
    let journal = under_journald().then(journal);
    let (journal, failed) = match journal.transpose() {
        Ok(journal) => (journal, None),
        Err(error) => (None, Some(error)),
    };
    let lines = || tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_target(false);
    let lines = match (&journal, format) {
        (Some(_), _) => None,
        (None, LogFormat::Text) => Some(lines().boxed()),
        (None, LogFormat::Json) => Some(lines().json().boxed()),
    };
    tracing_subscriber::registry().with(filter).with(journal).with(lines).init();
    if let Some(error) = failed {
        warn!("the journal's socket cannot be used, so that fields are part of each line: {error}");
    }
    LevelHandle(handle)
}

fn journal() -> std::io::Result<tracing_journald::Layer> {
    let layer = tracing_journald::layer()?;
    Ok(layer.with_field_prefix(Some(FIELD_PREFIX.into())).with_syslog_identifier(IDENTIFIER.into()))
}

/// Whether stderr is the stream that systemd names, and not one that a shell put there afterwards.
fn under_journald() -> bool {
    let named = std::env::var("JOURNAL_STREAM").ok();
    let stderr = std::fs::metadata(Path::new("/proc/self/fd/2")).ok();
    named.zip(stderr).is_some_and(|(named, stderr)| named == format!("{}:{}", stderr.dev(), stderr.ino()))
}

/// A level, or a filter in the form of tracing's `EnvFilter`. One word has to be a level: a misspelt one would be taken for a module's
/// name, and the log would be silent. The AWS libraries log nothing below `info`: at `trace` they write whole answers, with credentials.
pub(crate) fn filter(text: &str) -> Result<EnvFilter, String> {
    let one_word = !text.contains(['=', ',', '[']);
    if one_word && !LEVELS.contains(&text.to_ascii_lowercase().as_str()) {
        return Err(format!("`{text}` is none of {}", LEVELS.join(", ")));
    }
    if text.contains("aws_") {
        return Err(format!("`{text}`: what the AWS libraries log may hold credentials"));
    }
    let refused = |error: &dyn std::fmt::Display| format!("`{text}`: {error}");
    let filter = EnvFilter::try_new(text).map_err(|error| refused(&error))?;
    // A directive's target is a prefix.
    Ok(filter.add_directive("aws_=info".parse().map_err(|error| refused(&error))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_level_is_refused() {
        for good in ["info", "DEBUG", "info,clicklink::channel=trace", "off"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        for bad in ["inof", "", "info,clicklink=loud", "info,aws_smithy_runtime=trace"] {
            assert!(filter(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_the_aws_libraries_trace_is_never_written() {
        #[derive(Clone, Default)]
        struct Written(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
        impl std::io::Write for Written {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.lock().unwrap().extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        for level in ["trace", "trace,hyper=debug"] {
            let written = Written::default();
            let writer = written.clone();
            let subscriber = tracing_subscriber::fmt().with_env_filter(filter(level).unwrap()).with_writer(move || writer.clone()).finish();
            tracing::subscriber::with_default(subscriber, || {
                tracing::trace!(target: "aws_smithy_runtime::client::orchestrator", "hunter2");
                tracing::debug!(target: "aws_sigv4::http_request", "hunter2");
                tracing::trace!(target: "clicklink", "told");
            });
            let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
            assert!(text.contains("told") && !text.contains("hunter2"), "{level}: {text}");
        }
    }
}
