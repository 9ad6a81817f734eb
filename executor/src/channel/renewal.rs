//! Keeps the client certificate from ending: looks at it twice a day, and at the start, and has it renewed in time.

use std::time::Duration;

use agent_api::enrolment::{RENEW_PATH, SignRequest, SignResponse};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tracing::{info, warn};

use super::answer::{self, Answer};
use crate::signed::{Certificate, CertificateError, Signed, SignedError, certificate_request};
use crate::terminal::chain;

/// How often the certificate is looked at.
const CHECK: SignedDuration = SignedDuration::from_hours(12);
/// Pause after a renewal that failed; shorter where the end is near.
const RETRY: SignedDuration = SignedDuration::from_mins(30);
/// No pause is shorter.
const LEAST: SignedDuration = SignedDuration::from_secs(5);
/// The manager has so long to answer.
const WITHIN: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
enum RenewalError {
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error(transparent)]
    Credentials(#[from] SignedError),
    #[error("the manager cannot be reached")]
    Connect(#[from] reqwest::Error),
    #[error("the manager answered {}: {}", .0.status, .0.detail)]
    Refused(Answer),
    #[error("the manager's answer is not readable")]
    Unreadable(#[from] serde_json::Error),
}

/// Runs for ever; tells `renewed` when there is a new certificate.
pub(super) async fn keep(signed: Signed, renewed: watch::Sender<()>) {
    signed.tidy();
    loop {
        let pause = match signed.certificate() {
            None => return,
            Some(Err(error)) => {
                warn!("certificate: {}", chain(&error));
                RETRY
            }
            Some(Ok(certificate)) => look(&signed, &certificate, &renewed).await,
        };
        tokio::time::sleep(Duration::try_from(pause).unwrap_or_default()).await;
    }
}

async fn look(signed: &Signed, certificate: &Certificate, renewed: &watch::Sender<()>) -> SignedDuration {
    let now = Timestamp::now();
    if now < certificate.renew_at() {
        return until_next(certificate, now);
    }
    match renew(signed, &certificate.organisation).await {
        Ok(next) => {
            info!(not_after = %next.not_after, "certificate: renewed");
            renewed.send_replace(());
            until_next(&next, Timestamp::now())
        }
        Err(error) => {
            let pause = after_failure(certificate, Timestamp::now());
            warn!(not_after = %certificate.not_after, again_in = %pause, "certificate: not renewed: {}", chain(&error));
            pause
        }
    }
}

/// The next look, at the latest when it is due.
fn until_next(certificate: &Certificate, now: Timestamp) -> SignedDuration {
    certificate.renew_at().duration_since(now).clamp(LEAST, CHECK)
}

fn after_failure(certificate: &Certificate, now: Timestamp) -> SignedDuration {
    let left = certificate.not_after.duration_since(now);
    // Once it has ended, somebody may enrol again at any time.
    if left.is_positive() { (left / 4).clamp(LEAST, RETRY) } else { RETRY }
}

/// A new key, its certificate, and both on disk. The manager takes the former certificate until it has seen the new one, so that an
/// answer that is lost costs nothing.
async fn renew(signed: &Signed, organisation: &str) -> Result<Certificate, RenewalError> {
    let signed = signed.reload()?;
    let (key, csr) = certificate_request(organisation, signed.endpoint())?;
    let body = serde_json::to_vec(&SignRequest { csr })?;
    let request = signed.request(reqwest::Method::POST, RENEW_PATH, body).header("content-type", "application/json");
    let response = request.timeout(WITHIN).send().await?;
    if response.status() != reqwest::StatusCode::OK {
        return Err(RenewalError::Refused(answer::read(response).await));
    }
    let answer: SignResponse = serde_json::from_slice(&response.bytes().await?)?;
    let certificate = Certificate::parse(&answer.certificate)?;
    signed.replace_certificate(&key, &answer.certificate)?;
    Ok(certificate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(now: &str, next: SignedDuration, after_a_failure: SignedDuration) {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let certificate =
            Certificate { organisation: "o".into(), not_before: time("2026-11-01T00:00:00Z"), not_after: time("2026-12-01T00:00:00Z") };
        assert_eq!(until_next(&certificate, time(now)), next, "{now}");
        assert_eq!(after_failure(&certificate, time(now)), after_a_failure, "{now}");
    }

    #[test]
    fn pauses() {
        check("2026-11-02T00:00:00Z", CHECK, RETRY);
        check("2026-11-20T22:00:00Z", SignedDuration::from_hours(2), RETRY);
        check("2026-11-25T00:00:00Z", LEAST, RETRY);
        check("2026-11-30T23:00:00Z", LEAST, SignedDuration::from_mins(15));
        check("2026-12-02T00:00:00Z", LEAST, RETRY);
    }
}
