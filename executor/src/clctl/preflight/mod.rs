//! `clctl preflight`: looks at everything that the executor needs, changes nothing, and says what to mend. Exit code 0, or 2 where
//! something failed.
//!
//! A category a file. What the manager answers to is found by one signed request: it shows network, certificate, key and clock at once.

mod certificate;
mod clock;
mod cluster;
mod disk;
mod engine;
mod files;
mod finding;
mod network;
mod registry;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};

use self::finding::{Category, Finding, Findings};
use crate::config::{Config, DEFAULT_PATH};
use crate::error_code::Code;
use crate::terminal::{data, fail, talk};

/// Exit code where a check failed.
const FAILED: u8 = 2;

/// Arguments.
#[derive(Args)]
pub(crate) struct Preflight {
    /// Configuration file.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH, env = "CLICKLINK_CONFIG")]
    config: PathBuf,
    /// Form of the output.
    #[arg(long, short, value_enum, default_value_t = Form::Text)]
    output: Form,
    /// How long all checks together may take; what is not done by then has failed.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    timeout: Duration,
}

/// How the findings are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Form {
    /// For people.
    Text,
    /// A list of objects.
    Json,
    /// The same.
    Yaml,
}

/// `30s`, `2m`.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed: jiff::SignedDuration = text.parse().map_err(|_| format!("`{text}` is no duration; 30s or 2m is"))?;
    Duration::try_from(parsed).ok().filter(|duration| !duration.is_zero()).ok_or_else(|| format!("{text} is too short"))
}

impl Preflight {
    pub(super) async fn run(self) -> ExitCode {
        let findings = self.check().await;
        match self.output {
            Form::Text => data(finding::text(&findings)),
            Form::Json => match serde_json::to_string_pretty(&findings) {
                Ok(text) => data(text),
                Err(error) => return fail(Code::Internal, error),
            },
            Form::Yaml => match serde_saphyr::to_string(&findings) {
                Ok(text) => data(text.trim_end()),
                Err(error) => return fail(Code::Internal, error),
            },
        }
        if finding::any_failed(&findings) { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
    }

    async fn check(&self) -> Vec<Finding> {
        let end = tokio::time::Instant::now() + self.timeout;
        let config = Config::load(&self.config);
        let mut found = Vec::new();
        for category in Category::ALL {
            let mut findings = Findings::of(category);
            if tokio::time::timeout_at(end, self.one(category, &config, &mut findings)).await.is_err() {
                findings
                    .fail(format!("not done within {:?}", self.timeout), "see what holds it up, or give it more time with --timeout 2m");
            }
            found.append(&mut findings.found);
        }
        found
    }

    async fn one(&self, category: Category, config: &Result<Config, crate::config::ConfigError>, findings: &mut Findings) {
        let config = match (category, config) {
            (Category::Config, Ok(config)) => return self.configuration(config, findings),
            (Category::Config, Err(error)) => {
                return findings.fail(error.to_string(), "mend it, or write it with: clicklink clctl init --enroll URL --region REGION");
            }
            (Category::Engine, _) => return engine::check(findings).await,
            (Category::Landlock, _) => return engine::landlock(findings),
            (_, Ok(config)) => config,
            (_, Err(_)) => return findings.skip("needs the configuration"),
        };
        match category {
            Category::Files => files::check(config, findings),
            Category::Network => network::check(config, findings).await,
            Category::Certificate => certificate::check(config, findings),
            Category::Clock => clock::check(config, findings).await,
            Category::Cluster => cluster::check(config, findings).await,
            Category::Registry => registry::check(config, findings).await,
            Category::Disk => disk::check(config, findings),
            Category::Config | Category::Engine | Category::Landlock => {}
        }
    }

    fn configuration(&self, config: &Config, findings: &mut Findings) {
        findings.pass(format!("{}: executor {}, manager {}", self.config.display(), config.pcm_infra_uuid, config.api.endpoint));
        for block in config.ignored() {
            talk(format_args!("note: `{block}` in the configuration is for other programs or versions and is ignored"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        for text in ["0s", "-1s", "x", ""] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
