//! Credentials of the EC2 instance profile, by version 2 of the instance metadata service (IMDSv2).
//!
//! Written out rather than taken from the AWS libraries: theirs read their address and more from the environment and from profiles,
//! and nothing of a workstation may stand in for the instance profile. Where nothing answers at the IPv4 address, the IPv6 one is asked: an
//! instance may have only that, and which of the two it is says the instance itself, not a variable.

use std::time::Duration;

use agent_api::secret::Secret;
use aws_sdk_sts::config::Credentials;
use jiff::Timestamp;
use reqwest::header::HeaderValue;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::Deserialize;

use super::error::AwsError;

/// The service's addresses: on every instance, and on one whose IPv6 endpoint is turned on.
const ENDPOINTS: [&str; 2] = ["http://169.254.169.254", "http://[fd00:ec2::254]"];
/// How long one request may take: the service is on the machine itself.
const LIMIT: Duration = Duration::from_secs(1);
/// How often one request is sent where nothing answers.
const ATTEMPTS: usize = 2;
/// Life of the session token, in seconds: it serves two requests.
const TOKEN_TTL: &str = "60";
/// Largest answer that is read: 64 KiB.
const MAX_ANSWER: usize = 64 << 10;

const TOKEN_STEP: &str = "session token (PUT /latest/api/token)";
const ROLE_STEP: &str = "name of the instance profile's role";
const CREDENTIALS_STEP: &str = "credentials of the instance profile's role";

/// What `Code` says of credentials that are whole; services of the same form leave it out.
const SUCCESS: &str = "Success";

fn success() -> String {
    SUCCESS.to_owned()
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    #[serde(default = "success")]
    code: String,
    #[serde(default)]
    access_key_id: String,
    secret_access_key: Option<Secret>,
    token: Option<Secret>,
    expiration: Option<Timestamp>,
}

/// The instance profile's credentials and the name of its role.
pub(super) async fn credentials(http: &Client) -> Result<(Credentials, String), AwsError> {
    let wrong = |step, problem: String| AwsError::Instance { step, problem };
    let (endpoint, token) = session(http).await?;
    let mut token = HeaderValue::from_str(token.expose().trim()).map_err(|_| wrong(TOKEN_STEP, "what came is no token".into()))?;
    token.set_sensitive(true);
    let get = |path: &str| {
        http.get(format!("{endpoint}/latest/meta-data/iam/security-credentials/{path}")).header("x-aws-ec2-metadata-token", &token)
    };

    let send = async |path: &str, step| send(&get(path)).await.map_err(|failed| wrong(step, failed.problem));
    let roles = send("", ROLE_STEP).await?;
    let role = roles.lines().next().unwrap_or_default().trim();
    if role.is_empty() || !role.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+=,.@-".contains(&byte)) {
        return Err(wrong(ROLE_STEP, "the instance has no instance profile".into()));
    }
    let text = Secret::new(send(role, CREDENTIALS_STEP).await?);
    // The parser's message could quote what it read.
    let answer: Answer = serde_json::from_str(text.expose()).map_err(|_| wrong(CREDENTIALS_STEP, "the answer is not understood".into()))?;
    read(answer, Timestamp::now()).map(|credentials| (credentials, role.to_owned())).map_err(|problem| wrong(CREDENTIALS_STEP, problem))
}

/// A session token, and the address that gave it. What answers, if only to refuse, is the service: then no other address is asked.
async fn session(http: &Client) -> Result<(&'static str, Secret), AwsError> {
    let wrong = |problem: String| AwsError::Instance { step: TOKEN_STEP, problem };
    let mut problems = Vec::new();
    for endpoint in ENDPOINTS {
        let ask = http.put(format!("{endpoint}/latest/api/token")).header("x-aws-ec2-metadata-token-ttl-seconds", TOKEN_TTL);
        match send(&ask).await {
            Ok(token) => return Ok((endpoint, Secret::new(token))),
            Err(Failed { answered: true, problem }) => return Err(wrong(problem)),
            Err(Failed { answered: false, problem }) => problems.push(problem),
        }
    }
    Err(wrong(problems.join("; by IPv6: ")))
}

/// Why a request brought nothing.
struct Failed {
    /// Whether somebody is there.
    answered: bool,
    problem: String,
}

fn read(answer: Answer, now: Timestamp) -> Result<Credentials, String> {
    if answer.code != SUCCESS {
        return Err(format!("the answer says {:.100}", answer.code.escape_debug()));
    }
    let (Some(secret), Some(token), Some(expiry), false) =
        (answer.secret_access_key, answer.token, answer.expiration, answer.access_key_id.is_empty())
    else {
        return Err("the answer is not understood".into());
    };
    if expiry <= now {
        return Err(format!("they are stale: they ended at {expiry}"));
    }
    let mut credentials = Credentials::builder()
        .access_key_id(answer.access_key_id)
        .secret_access_key(secret.expose())
        .session_token(token.expose())
        .provider_name("instance profile");
    credentials.set_expiry(Some(expiry.into()));
    Ok(credentials.build())
}

/// The text of an answer with status 200.
async fn send(ask: &RequestBuilder) -> Result<String, Failed> {
    let mut last = Failed { answered: false, problem: String::new() };
    for _ in 0..ATTEMPTS {
        let Some(ask) = ask.try_clone() else { break };
        match tokio::time::timeout(LIMIT, answer(ask)).await {
            Ok(Ok((StatusCode::OK, text))) => return Ok(text),
            Ok(Ok((status, _))) if status.is_server_error() => {
                last = Failed { answered: true, problem: format!("it answers with status {}", status.as_u16()) };
            }
            Ok(Ok((status, _))) => return Err(Failed { answered: true, problem: refused(status) }),
            Ok(Err(problem)) => last.problem = problem,
            Err(_) => last.problem = format!("no answer within {}s", LIMIT.as_secs()),
        }
    }
    Err(last)
}

fn refused(status: StatusCode) -> String {
    match status {
        StatusCode::FORBIDDEN => "it is turned off for this instance (403)".into(),
        StatusCode::UNAUTHORIZED => "it does not take its own session token (401)".into(),
        StatusCode::NOT_FOUND => "the instance has no instance profile (404)".into(),
        status => format!("it answers with status {}", status.as_u16()),
    }
}

async fn answer(ask: RequestBuilder) -> Result<(StatusCode, String), String> {
    let unanswered = |error: reqwest::Error| {
        let (timeout, connect) = (error.is_timeout(), error.is_connect());
        match (timeout, connect) {
            (true, _) => "no answer in time".to_owned(),
            (false, true) => "no connection".to_owned(),
            (false, false) => "the answer breaks off".to_owned(),
        }
    };
    let mut answer = ask.send().await.map_err(unanswered)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(unanswered)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_ANSWER {
            return Err("the answer is too long".to_owned());
        }
    }
    String::from_utf8(bytes).map(|text| (answer.status(), text)).map_err(|_| "the answer is no text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_taken_only_whole_and_alive() {
        let now: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        let check = |text: &str, expected: Result<&str, &str>| {
            let result = read(serde_json::from_str(text).unwrap(), now);
            match (result, expected) {
                (Ok(found), Ok(key)) => assert_eq!(found.access_key_id(), key),
                (Err(problem), Err(part)) => assert!(problem.contains(part) && !problem.contains("hunter2"), "{problem}"),
                (result, expected) => panic!("{text}: {result:?}, expected {expected:?}"),
            }
        };
        let whole = |expiry: &str| {
            format!(r#"{{"Code":"Success","AccessKeyId":"ASIA1","SecretAccessKey":"hunter2","Token":"t","Expiration":"{expiry}"}}"#)
        };
        check(&whole("2026-11-30T16:00:00Z"), Ok("ASIA1"));
        check(&whole("2026-11-30T16:00:00Z").replace(r#""Code":"Success","#, ""), Ok("ASIA1"));
        check(&whole("2026-11-30T10:00:00Z"), Err("stale"));
        check(&whole("2026-11-30T16:00:00Z").replace("ASIA1", ""), Err("not understood"));
        check(r#"{"Code":"Success","AccessKeyId":"ASIA1","SecretAccessKey":"hunter2"}"#, Err("not understood"));
        check(r#"{"Code":"AssumeRoleUnauthorizedAccess"}"#, Err("AssumeRoleUnauthorizedAccess"));
    }
}
