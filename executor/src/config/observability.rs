//! `observability` and `executor.observability`: what a program shows of itself. The daemon's own block lies over the common one.

use serde::Deserialize;

use super::Ignored;

/// `observability`: for all of the connector's programs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Observability {
    /// Whether health ports are opened.
    pub(crate) enabled: bool,
    /// Of other programs: each has its own port, and this one's is `executor.observability.health_port`.
    pub(crate) health_port: Ignored,
    /// `error`, `warn`, `info`, `debug`, `trace`, or a filter in the form of tracing's `EnvFilter`.
    pub(crate) log_level: String,
}

impl Default for Observability {
    fn default() -> Self {
        Self { enabled: true, health_port: Ignored::default(), log_level: "info".into() }
    }
}

/// `executor.observability`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DaemonObservability {
    /// Whether the health port is opened; unset: as `observability.enabled` says.
    pub(crate) enabled: Option<bool>,
    /// Port of health and metrics, on all addresses; 0 opens none.
    pub(crate) health_port: u16,
    /// As `observability.log_level`, for the daemon alone.
    pub(crate) log_level: Option<String>,
    /// Of earlier versions.
    pub(crate) metrics_port: Ignored,
}

impl Default for DaemonObservability {
    fn default() -> Self {
        Self { enabled: None, health_port: 8086, log_level: None, metrics_port: Ignored::default() }
    }
}
