//! `/metrics`: the daemon's figures in OpenMetrics, with help and units.
//!
//! All are read in one answer of the main loop, so that they are of one moment. What is not known is left out, and is not 0.

use std::fmt;

use agent_api::heartbeat::{AccessState, PlatformStatus};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::figures;
use crate::daemon::{ChannelFigures, Daemon, Figures};

/// Media type of what is served.
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Metrics in OpenMetrics.
#[utoipa::path(get, path = "/metrics", operation_id = "metrics", tag = "health", responses(
    (status = 200, description = "All metrics", body = String, content_type = "application/openmetrics-text"),
    (status = 503, description = "The main loop does not answer"),
))]
pub(super) async fn show(State(daemon): State<Daemon>) -> Response {
    match figures(&daemon).await.map(encode) {
        Some(Ok(text)) => ([(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response(),
        Some(Err(_)) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

fn encode(figures: Figures) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Snapshot(figures)));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Snapshot(Figures);

/// A label's name and value.
type Label = (&'static str, &'static str);

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Self(figures) = self;
        let mut page = Page(encoder);
        let commands = figures.commands.map(|(status, count)| ([("status", status.as_str())], count));
        page.gauges("clicklink_commands", "Commands in the journal, by status", &commands)?;
        page.gauge("clicklink_results_undelivered", "Results that the manager has not stored yet", None, figures.undelivered)?;

        page.gauge("clicklink_channel_connected", "Whether the channel to the manager is up", None, u64::from(figures.channel.connected))?;
        for (name, help, value) in channel_counters(&figures.channel) {
            page.counter(name, help, value)?;
        }
        page.counter("clicklink_heartbeats_sent", "Heartbeats handed to a channel that was up", figures.heartbeats)?;

        let status = PlatformStatus::ALL.map(|status| ([("status", status.as_str())], u64::from(status == figures.platform)));
        page.gauges("clicklink_platform_status", "Where the platform update stands: 1 for the status that holds", &status)?;
        if let Some(end) = figures.approval_expires_at {
            let help = "When the approval at hand ends, or has ended; absent without one";
            page.moment("clicklink_platform_approval_expiry_timestamp", help, end)?;
        }
        if let Some(drifted) = figures.drift {
            let help = "Live workload objects that are not as they were approved; absent while that is not known";
            page.gauge("clicklink_platform_drifted_objects", help, None, drifted)?;
        }
        let bundles = [("cluster", figures.access.cluster), ("platform", figures.access.platform)];
        let states = bundles.iter().flat_map(|(bundle, is)| {
            AccessState::ALL.map(|state| ([("bundle", *bundle), ("state", state.as_str())], u64::from(state == *is)))
        });
        let help = "State of each access bundle: 1 for the state that holds";
        page.gauges("clicklink_access_bundle_state", help, &states.collect::<Vec<_>>())?;

        page.gauge("clicklink_journal_size", "Size of the journal's files", Some(&Unit::Bytes), figures.journal_bytes)?;
        let writable = u64::from(figures.journal_writable);
        page.gauge("clicklink_journal_writable", "Whether the journal takes records", None, writable)?;

        let reachable = u64::from(figures.cluster_reachable);
        page.gauge("clicklink_cluster_reachable", "Whether the last read of the cluster succeeded", None, reachable)?;
        if let Some(at) = figures.observed_at {
            let help = "When the cluster was last read; absent before the first time";
            page.moment("clicklink_cluster_last_observation_timestamp", help, at)?;
        }
        page.moment("process_start_time", "When the process started", figures.started_at)
    }
}

/// Name, help and value of what the channel has counted.
fn channel_counters(channel: &ChannelFigures) -> [(&'static str, &'static str, u64); 6] {
    [
        (
            "clicklink_channel_connections",
            "Connections that the manager has welcomed; those after the first are reconnects",
            channel.connections,
        ),
        ("clicklink_channel_failures", "Attempts to connect and connections that failed", channel.failures),
        ("clicklink_channel_frames_skipped", "Frames received of a type that is not known here", channel.frames_skipped),
        ("clicklink_channel_frames_refused", "Frames received that were a reason to close the connection", channel.frames_refused),
        ("clicklink_channel_frames_dropped", "Frames not queued because the manager takes them too slowly", channel.frames_dropped),
        ("clicklink_channel_results_held", "Times that a result was not taken and others went past it", channel.results_held),
    ]
}

struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn gauge(&mut self, name: &str, help: &str, unit: Option<&Unit>, value: u64) -> Result<(), fmt::Error> {
        let gauge = ConstGauge::new(value);
        gauge.encode(self.0.encode_descriptor(name, help, unit, gauge.metric_type())?)
    }

    fn gauges<const N: usize>(&mut self, name: &str, help: &str, values: &[([Label; N], u64)]) -> Result<(), fmt::Error> {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in values {
            ConstGauge::new(*value).encode(family.encode_family(labels)?)?;
        }
        Ok(())
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> Result<(), fmt::Error> {
        let counter = ConstCounter::new(value);
        counter.encode(self.0.encode_descriptor(name, help, None, counter.metric_type())?)
    }

    /// Seconds since 1970, with milliseconds.
    fn moment(&mut self, name: &str, help: &str, at: jiff::Timestamp) -> Result<(), fmt::Error> {
        let seconds = at.as_duration().as_secs_f64();
        let gauge = ConstGauge::new((seconds * 1000.0).round() / 1000.0);
        gauge.encode(self.0.encode_descriptor(name, help, Some(&Unit::Seconds), gauge.metric_type())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page() {
        let page = encode(Figures::sample()).unwrap();
        for line in [
            "# HELP clicklink_commands Commands in the journal, by status",
            "# TYPE clicklink_commands gauge",
            "clicklink_commands{status=\"completed\"} 7",
            "clicklink_channel_connections_total 3",
            "# UNIT clicklink_journal_size_bytes bytes",
            "clicklink_journal_size_bytes 4096",
            "clicklink_platform_status{status=\"synced\"} 1",
            "clicklink_platform_status{status=\"failed\"} 0",
            "clicklink_platform_approval_expiry_timestamp_seconds 1700000000.5",
            "clicklink_platform_drifted_objects 2",
            "clicklink_access_bundle_state{bundle=\"platform\",state=\"expiring\"} 1",
            "process_start_time_seconds 1600000000.0",
            "# EOF",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is missing in\n{page}");
        }
        let unknown = Figures { approval_expires_at: None, drift: None, observed_at: None, ..Figures::sample() };
        let page = encode(unknown).unwrap();
        let absent = ["approval_expiry", "last_observation", "drifted"];
        assert!(absent.iter().all(|name| !page.contains(name)), "what is not known is left out:\n{page}");
    }
}
