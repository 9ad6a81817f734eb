//! Why a chart or an image could not be had: one clear error each. No message holds a credential or the query of a URL.

use agent_api::digest::OciDigest;

use super::aws::AwsError;

/// Why something could not be pulled. `reference` is `host/repository@digest`.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// AWS gives no login.
    #[error(transparent)]
    Aws(#[from] AwsError),
    /// The HTTP client cannot be made.
    #[error("cannot prepare the connection to the registry")]
    Client(#[source] reqwest::Error),
    /// The address does not make a URL.
    #[error("`{0}` is not an address of a registry")]
    Address(String),
    /// The registry wants a user, and there is none for it.
    #[error("{reference}: the registry asks for a user, and no credentials for `{host}` are configured")]
    NoCredentials {
        /// What was asked for.
        reference: String,
        /// Registry host.
        host: String,
    },
    /// 401 in spite of credentials.
    #[error("{reference}: the registry does not accept the credentials (401){said}")]
    Unauthorized {
        /// What was asked for.
        reference: String,
        /// In the registry's words, with a colon before them; may be empty.
        said: String,
    },
    /// 403.
    #[error("{reference}: the registry knows the user and refuses the pull (403){said}")]
    Forbidden {
        /// What was asked for.
        reference: String,
        /// In the registry's words, with a colon before them; may be empty.
        said: String,
    },
    /// 404.
    #[error("{reference}: the registry does not have it (404)")]
    NotFound {
        /// What was asked for.
        reference: String,
    },
    /// 429, again and again.
    #[error("{reference}: the registry has too many requests of this client and asks to come later (429)")]
    Busy {
        /// What was asked for.
        reference: String,
    },
    /// The transfer ends too early, again and again.
    #[error("{reference}: the transfer breaks off at byte {at} of {size}")]
    Short {
        /// What was asked for.
        reference: String,
        /// What came.
        at: u64,
        /// Announced in the manifest.
        size: u64,
    },
    /// Another answer that is no success.
    #[error("{reference}: the registry answers with status {status}")]
    Status {
        /// What was asked for.
        reference: String,
        /// HTTP status.
        status: u16,
    },
    /// A log-in that this program does not know, or one over an open line.
    #[error("{reference}: the registry asks for a log-in that is not supported (neither Basic nor a Bearer token over TLS)")]
    Challenge {
        /// What was asked for.
        reference: String,
    },
    /// A redirect that is not followed.
    #[error("{reference}: the registry redirects {problem}; not followed")]
    Redirect {
        /// What was asked for.
        reference: String,
        /// Which.
        problem: &'static str,
    },
    /// The bytes are others than those that were pinned.
    #[error("{reference}: the registry sent other bytes: {expected} was pinned, {found} came")]
    Digest {
        /// What was asked for.
        reference: String,
        /// Pinned.
        expected: OciDigest,
        /// Of what came.
        found: OciDigest,
    },
    /// It is no Helm chart.
    #[error("{reference}: not a Helm chart: {found}")]
    MediaType {
        /// What was asked for.
        reference: String,
        /// What it is.
        found: String,
    },
    /// Larger than allowed or than announced.
    #[error("{reference}: larger than {limit} bytes")]
    TooLarge {
        /// What was asked for.
        reference: String,
        /// The bound.
        limit: u64,
    },
    /// The registry's certificate is not trusted, or TLS failed otherwise.
    #[error("{reference}: no trusted TLS connection to the registry: {problem}")]
    Tls {
        /// What was asked for.
        reference: String,
        /// In rustls' words.
        problem: String,
    },
    /// No connection, a cut one, or a time limit.
    #[error("{reference}: the registry cannot be reached")]
    Transport {
        /// What was asked for.
        reference: String,
        /// Why, without the URL.
        #[source]
        source: reqwest::Error,
    },
}

impl PullError {
    /// Whether the registry answers, and does not let this login have what was asked for.
    #[must_use]
    pub fn is_denial(&self) -> bool {
        matches!(self, Self::NoCredentials { .. } | Self::Unauthorized { .. } | Self::Forbidden { .. })
    }

    /// Tells TLS from the rest, and drops the URL: its query may be signed.
    pub(super) fn transport(reference: &str, error: reqwest::Error) -> Self {
        let reference = reference.to_owned();
        match tls_problem(&error) {
            Some(problem) => Self::Tls { reference, problem },
            None => Self::Transport { reference, source: error.without_url() },
        }
    }
}

pub(super) fn tls_problem(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(tls.to_string());
        }
        // An `io::Error` hides what it wraps from `source`.
        if let Some(inner) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref)
            && let Some(problem) = tls_problem(inner)
        {
            return Some(problem);
        }
        next = error.source();
    }
    None
}
