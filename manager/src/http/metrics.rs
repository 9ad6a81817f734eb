//! `GET /metrics`: this process in figures, as OpenMetrics text. Behind a bearer token, as all of the API: the numbers are nobody else's.

use std::fmt::Write as _;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

use super::Shared;
use crate::channel::counters::Counts;

const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// WebSocket close codes that an executor's frame can bring about; shown from the start, so that their first rise is seen.
const CODES: [u16; 5] = [1002, 1003, 1007, 1008, 1009];

/// The routes.
pub fn routes() -> Router<Shared> {
    Router::new().route("/metrics", get(show))
}

async fn show(State(app): State<Shared>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], render(&app.inbound.counters.counts(), app.connections.count()))
}

fn render(counts: &Counts, connected: usize) -> String {
    let mut refused = String::new();
    for code in CODES {
        let count = counts.refused.get(&code).copied().unwrap_or_default();
        let _ = writeln!(refused, "navin_channel_frames_refused_total{{code=\"{code}\"}} {count}");
    }
    let skipped = counts.skipped;
    format!(
        "# TYPE navin_channel_frames_refused counter\n\
         # HELP navin_channel_frames_refused Frames of executors that ended their connection, by WebSocket close code.\n\
         {refused}\
         # TYPE navin_channel_frames_skipped counter\n\
         # HELP navin_channel_frames_skipped Frames of executors that were skipped, being of an unknown type.\n\
         navin_channel_frames_skipped_total {skipped}\n\
         # TYPE navin_executors_connected gauge\n\
         # HELP navin_executors_connected Executors with a connection or a poll session.\n\
         navin_executors_connected {connected}\n\
         # EOF\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_codes_are_there_from_the_start() {
        let text = render(&Counts { refused: [(1007, 2)].into(), skipped: 1 }, 3);
        for line in [
            "navin_channel_frames_refused_total{code=\"1002\"} 0",
            "navin_channel_frames_refused_total{code=\"1007\"} 2",
            "navin_channel_frames_skipped_total 1",
            "navin_executors_connected 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
