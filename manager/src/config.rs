//! Every default and limit of this process, and the optional configuration file of `serve`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::SignedDuration;
use serde::Deserialize;

use crate::domain::admission::Rate;

/// Where `serve` listens unless told otherwise.
pub const LISTEN: &str = "127.0.0.1:8443";
/// Where the command line looks for the server unless told otherwise.
pub const ENDPOINT: &str = "https://127.0.0.1:8443";

/// Seconds between heartbeats that `welcome` asks for; 5–300.
pub const HEARTBEAT_INTERVAL_S: u32 = 10;
/// A connection on which nothing was received for so long is dead. Pings go out every [`PING_EVERY`], so a live one always has data.
pub const DEAD_AFTER: Duration = Duration::from_secs(30);
/// How often a connection is pinged.
pub const PING_EVERY: Duration = Duration::from_secs(10);
/// The peer may take so long to answer our close frame.
pub const CLOSE_WITHIN: Duration = Duration::from_secs(2);
/// The first frame must have come by then.
pub const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// After so long a silence a heartbeat that says the same as before is worth a decision too.
pub const SILENCE: SignedDuration = SignedDuration::from_mins(1);
/// A command that was sent and not acknowledged is sent again after this.
pub const RESEND_AFTER: Duration = Duration::from_secs(15);
/// Answers to frames that wait until a write is done; then reading waits too.
pub const ANSWER_QUEUE: usize = 64;
/// One write to a connection may take so long, and what its bytes take on the slowest line; the peer does not read otherwise.
pub const WRITE_WITHIN: Duration = Duration::from_secs(20);

/// A sync of one bundle is tried so many times; then a person re-arms it.
pub const MAX_ATTEMPTS: usize = 3;
/// Pause after the first and after every further failed attempt.
pub const RETRY_AFTER: [SignedDuration; 2] = [SignedDuration::from_mins(1), SignedDuration::from_mins(5)];
/// A sync that runs longer counts as failed.
pub const RUNNING_AT_MOST: SignedDuration = SignedDuration::from_mins(20);
/// An executor whose last heartbeat is older is passed over.
pub const HEARTBEAT_AT_MOST: SignedDuration = SignedDuration::from_mins(5);
/// New connections of executors that are let in each second, and at once after a time of rest; the others are told when to come again.
pub const CHANNEL_RATE: Rate = Rate { per_second: 100, burst: 100 };
/// Deliveries of a sync while no executor is connected, one every [`DELIVERY_EVERY`]; then the command is given up.
pub const MAX_DELIVERIES: u32 = 10;
/// See [`MAX_DELIVERIES`].
pub const DELIVERY_EVERY: SignedDuration = SignedDuration::from_mins(1);

/// How long an enrolment token is good.
pub const ENROLMENT_LASTS: SignedDuration = SignedDuration::from_hours(1);
/// How long an executor's certificate is good.
pub const EXECUTOR_CERT_LASTS: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long the server's own certificate is good; it is renewed when less than [`SERVER_CERT_RENEW`] is left.
pub const SERVER_CERT_LASTS: Duration = Duration::from_secs(90 * 24 * 3600);
/// See [`SERVER_CERT_LASTS`].
pub const SERVER_CERT_RENEW: Duration = Duration::from_secs(30 * 24 * 3600);
/// How often the server looks whether its certificate wants renewing.
pub const SERVER_CERT_CHECK: Duration = Duration::from_secs(6 * 3600);
/// How long the certificate authority is good.
pub const CA_LASTS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Certificates begin this long ago, for clocks that are behind.
pub const CLOCK_SKEW: Duration = Duration::from_secs(300);

/// Largest body of a request to `/api/v1`: a release with the values of all its charts.
pub const MAX_BODY: usize = 2 << 20;
/// Largest body of a poll: frames of 4 MiB in all, and what is around them.
pub const MAX_POLL_BODY: usize = agent_api::frame::MAX_BYTES + (64 << 10);
/// Requests of one poll session that may wait; an executor has two under way.
pub const POLL_QUEUE: usize = 4;
/// Largest body of a request to `/v1`: a certificate request.
pub const MAX_SIGNED_BODY: usize = 64 << 10;
/// Nonces remembered for one key; each lives ten minutes at most, so this is some hundred requests a minute.
pub const MAX_NONCES: usize = 4096;
/// Where reading a frame stops. Above the contract's 4 MiB, so that a frame that is somewhat too large is read to its end and its sender
/// gets the close code; what is larger still is cut off.
pub const MAX_FRAME_READ: usize = 2 * agent_api::frame::MAX_BYTES;
/// Running commands of one executor whose progress is kept.
pub const MAX_PROGRESS: usize = 16;
/// Connections at one time.
pub const MAX_CONNECTIONS: usize = 8192;
/// A request's body must have come and its answer be ready by then; long enough for a poll with the largest body that comes over the
/// slowest line and is held for 25 s.
pub const REQUEST_WITHIN: Duration = Duration::from_secs(60 + agent_api::frame::on_the_way(MAX_POLL_BODY).as_secs());
/// TLS handshake and request head must be done by then.
pub const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Open connections get so long to end when the server stops.
pub const DRAIN_WITHIN: Duration = Duration::from_secs(10);
/// Requests for a decision that may wait; each is answered in milliseconds, so senders wait rather than fail.
pub const FLEET_QUEUE: usize = 256;
/// Entries of the record in one answer.
pub const AUDIT_PAGE: u32 = 1000;
/// How long a writer waits for another one.
pub const STORE_BUSY: Duration = Duration::from_secs(10);
/// Connections to the store.
pub const STORE_POOL: u32 = 8;
/// A request of the command line may take so long.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// `serve --config FILE`: YAML; a flag on the command line wins over a key.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// `--data-dir`.
    pub data_dir: Option<PathBuf>,
    /// `--listen`.
    pub listen: Option<SocketAddr>,
    /// `--public-url`.
    pub public_url: Option<String>,
    /// `--organisation`.
    pub organisation: Option<String>,
    /// Seconds between heartbeats, 5–300.
    pub heartbeat_interval_s: Option<u32>,
    /// New connections of executors that are let in each second, 1–10000 [default: 100].
    pub channel_connections_per_s: Option<u32>,
    /// How many may come at once after a time of rest, 1–10000 [default: 100].
    pub channel_connections_burst: Option<u32>,
    /// Seconds that an executor's certificate is good, from 15 to a year [default: 30 days]; the executor renews it at ten days left,
    /// or at a third of its time.
    pub executor_certificate_lasts_s: Option<u64>,
}

/// Why a configuration is not taken.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file.
    #[error("configuration file {path} could not be read")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Its content.
    #[error("configuration file {path} is not right: {problem}")]
    Parse {
        /// Which.
        path: PathBuf,
        /// Place and reason.
        problem: String,
    },
    /// A value.
    #[error("`{key}`: {problem}")]
    Value {
        /// Which.
        key: &'static str,
        /// Why.
        problem: String,
    },
}

impl File {
    /// Reads the file.
    ///
    /// # Errors
    /// Names the file, and the place in it.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let parsed = serde_saphyr::from_str(&text);
        parsed.map_err(|error| ConfigError::Parse { path: path.to_owned(), problem: error.to_string() })
    }
}

/// How far an executor's journal may be ahead of this store, which may be an older copy of itself.
pub const SEQUENCE_AHEAD: i64 = 1_000_000;
