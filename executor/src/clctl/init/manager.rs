//! The two requests of an enrolment: the token for credentials, the certificate request for a certificate.

use agent_api::enrolment::{ENROLL_PATH, EnrollRequest, EnrollResponse, SIGN_PATH, SignRequest, SignResponse};
use agent_api::name::ExecutorId;
use agent_api::problem::Problem;
use agent_api::secret::Secret;
use agent_api::signature::KeyPair;
use serde::de::DeserializeOwned;

use super::error::InitError;
use super::handoff::Handoff;
use crate::signed::{self, Signed, SignedError};

const ENROLMENT: &str = "enrolment";
const SIGNING: &str = "certificate signing";

/// Redeems the token; it is good once.
pub(super) async fn redeem(enroll: &str, ca: Option<&str>, executor_id: ExecutorId, token: Secret) -> Result<EnrollResponse, InitError> {
    let http = signed::client(ca)?.build().map_err(SignedError::Tls)?;
    let url = format!("{}{ENROLL_PATH}", enroll.trim_end_matches('/'));
    let sent = http.post(&url).json(&EnrollRequest { token, executor_id }).send().await;
    answer(ENROLMENT, &url, sent).await
}

/// Has a certificate signed for the key.
pub(super) async fn sign(enrolled: &Handoff, key: &rcgen::KeyPair) -> Result<SignResponse, InitError> {
    let mut parameters = rcgen::CertificateParams::new(vec![host(&enrolled.endpoint)?])?;
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, &enrolled.organisation);
    let csr = parameters.serialize_request(key)?.pem()?;
    let pair = KeyPair { access_key: enrolled.access_key.clone(), secret_key: enrolled.secret_key.clone() };
    let signed = Signed::unauthenticated(&enrolled.endpoint, pair, Some(&enrolled.ca))?;
    let body = serde_json::to_vec(&SignRequest { csr }).map_err(|error| unreadable(SIGNING, &error))?;
    let sent = signed.request(reqwest::Method::POST, SIGN_PATH, body).header("content-type", "application/json").send().await;
    answer(SIGNING, &enrolled.endpoint, sent).await
}

/// The host of an `https` address.
pub(super) fn host(url: &str) -> Result<String, InitError> {
    let parsed = reqwest::Url::parse(url).ok().filter(|parsed| parsed.scheme() == "https");
    let host = parsed.as_ref().and_then(reqwest::Url::host_str).ok_or_else(|| InitError::Endpoint(url.to_owned()))?;
    Ok(host.trim_start_matches('[').trim_end_matches(']').to_owned())
}

async fn answer<T: DeserializeOwned>(
    doing: &'static str,
    url: &str,
    sent: Result<reqwest::Response, reqwest::Error>,
) -> Result<T, InitError> {
    let unreachable = |source: reqwest::Error| InitError::Unreachable { doing, url: url.to_owned(), source: source.without_url() };
    let response = sent.map_err(unreachable)?;
    let status = response.status();
    let body = response.text().await.map_err(unreachable)?;
    if !status.is_success() {
        let problem = serde_json::from_str::<Problem>(&body);
        let (code, detail) =
            problem.map_or_else(|_| (String::new(), body.chars().take(200).collect()), |problem| (problem.code, problem.detail));
        return Err(InitError::Refused { doing, status: status.as_u16(), code, detail });
    }
    serde_json::from_str(&body).map_err(|error| unreadable(doing, &error))
}

/// Only the place is told: the answer holds secrets.
fn unreadable(doing: &'static str, error: &serde_json::Error) -> InitError {
    InitError::Answer { doing, problem: format!("line {}, column {}", error.line(), error.column()) }
}
