//! What an HTTP answer that is not the wanted one means: the manager's word, or something in between that cannot do what we need.

use std::error::Error;
use std::time::Duration;

use agent_api::problem::Problem;
use reqwest::{Response, StatusCode, header};
use tokio::time::timeout;

use super::pulse::DEAD;

/// Codes of answers that say nothing against the credentials: a request signed anew, or with the clock set right, does not get them.
const PASSING: [&str; 3] = ["replayed", "signed_before_start", "clock_apart"];
/// Code of the answer to a request for an upgrade that did not arrive as one.
const UPGRADE_REFUSED: &str = "upgrade_refused";
/// Largest part of a foreign answer that is read.
const BODY: usize = 64 << 10;

/// What an answer means for the next try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// Try again later.
    Later,
    /// Try again after this.
    After(Duration),
    /// The credentials are not accepted; a person has to do something.
    Credentials,
    /// This transport cannot be had here.
    NoTransport,
}

/// An answer with another status than the wanted one.
#[derive(Debug)]
pub(crate) struct Answer {
    /// HTTP status.
    pub(crate) status: u16,
    /// Its problem document's detail, or the first characters of its body.
    pub(crate) detail: String,
    /// What it means.
    pub(crate) meaning: Meaning,
    /// Its problem document's code.
    pub(crate) code: Option<String>,
}

/// Reads an answer to its end, or as far as it matters.
pub(super) async fn read(mut response: Response) -> Answer {
    let status = response.status();
    let asked = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(retry_after);
    let mut body = Vec::new();
    while let Ok(Ok(Some(part))) = timeout(DEAD, response.chunk()).await {
        body.extend_from_slice(&part[..part.len().min(BODY - body.len())]);
        if body.len() == BODY {
            break;
        }
    }
    let problem = serde_json::from_slice::<Problem>(&body).ok();
    let meaning = meaning(status, problem.as_ref().map(|problem| problem.code.as_str()), asked);
    let shown = |body: &[u8]| String::from_utf8_lossy(body).chars().take(200).collect::<String>().escape_debug().to_string();
    let code = problem.as_ref().map(|problem| problem.code.clone());
    Answer { status: status.as_u16(), detail: problem.map_or_else(|| shown(&body), |problem| problem.detail), meaning, code }
}

fn meaning(status: StatusCode, code: Option<&str>, asked: Option<Duration>) -> Meaning {
    match (status, code) {
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, Some(code)) if !PASSING.contains(&code) => Meaning::Credentials,
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, code) => match (asked, code) {
            (Some(after), _) => Meaning::After(after),
            (None, Some(_)) => Meaning::Later,
            (None, None) => Meaning::NoTransport,
        },
        (_, Some(UPGRADE_REFUSED)) => Meaning::NoTransport,
        (_, Some(_)) | (StatusCode::PROXY_AUTHENTICATION_REQUIRED, None) => Meaning::Later,
        (_, None) => Meaning::NoTransport,
    }
}

/// Seconds, or a date.
fn retry_after(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(text.trim()).ok()?.timestamp();
    Some(Duration::try_from(at.duration_since(jiff::Timestamp::now())).unwrap_or_default())
}

/// The TLS alert by which a peer says that it does not take our certificate, if that is why a request failed.
pub(super) fn certificate_alert(error: &(dyn Error + 'static)) -> Option<rustls::AlertDescription> {
    use rustls::AlertDescription as A;
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let tls = error.downcast_ref::<rustls::Error>().or_else(|| inner.and_then(|inner| inner.downcast_ref()));
        if let Some(rustls::Error::AlertReceived(alert)) = tls {
            return match alert {
                A::CertificateExpired
                | A::CertificateRevoked
                | A::CertificateUnknown
                | A::BadCertificate
                | A::UnknownCA
                | A::AccessDenied => Some(*alert),
                _ => None,
            };
        }
        next = inner.map_or_else(|| error.source(), |inner| Some(inner));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_word_it_is() {
        let check = |status: u16, code: Option<&str>, asked: Option<u64>, expected: Meaning| {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(meaning(status, code, asked.map(Duration::from_secs)), expected, "{status} {code:?} {asked:?}");
        };
        check(401, Some("signature_invalid"), None, Meaning::Credentials);
        check(403, Some("certificate_mismatch"), None, Meaning::Credentials);
        check(401, Some("replayed"), None, Meaning::Later);
        check(401, Some("signed_before_start"), None, Meaning::Later);
        check(503, Some("busy"), Some(7), Meaning::After(Duration::from_secs(7)));
        check(429, None, Some(7), Meaning::After(Duration::from_secs(7)));
        check(429, Some("too_many_requests"), None, Meaning::Later);
        check(400, Some("upgrade_refused"), None, Meaning::NoTransport);
        check(500, Some("internal"), None, Meaning::Later);
        for status in [200, 400, 401, 403, 404, 426, 502, 503, 504] {
            check(status, None, None, Meaning::NoTransport);
        }
        check(407, None, None, Meaning::Later);
    }

    #[test]
    fn both_forms_of_retry_after() {
        assert_eq!(retry_after("17"), Some(Duration::from_secs(17)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(90);
        let date = soon.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        assert!((85..=90).contains(&retry_after(&date).unwrap().as_secs()), "{date}");
        assert_eq!(retry_after("soon"), None);
    }
}
