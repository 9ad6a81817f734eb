//! The services: each refuses what the real one would refuse.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::http::{Answer, Reply, Request, Service, listen};
use super::relay;
use super::scenario::{Imds, Keys, Noted, Order, Scenario};
use super::signature;
use crate::encode::base64;

/// The metadata service's own session token.
const IMDS_TOKEN: &str = "imds-session";
/// The query of an address in the store.
const SIGNED: &str = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=store-signature";
/// Name of the instance profile's role.
const PROFILE: &str = "connector-vm";
/// Where a container's credentials are, and the token for them.
const CONTAINER_PATH: &str = "/creds";

struct Fake {
    order: Order,
    /// Headers with the tokens that ECR gave, in order, and when they end.
    tokens: Mutex<Vec<(String, Timestamp)>>,
}

/// Serves as the order in this file says, for as long as the program runs.
///
/// # Errors
/// The order cannot be read, or a port is not to be had.
pub async fn serve(order: &Path) -> Result<()> {
    let order: Order = serde_json::from_slice(&std::fs::read(order)?).context("the order")?;
    let tls = acceptor(&order)?;
    let ready = order.ready.clone();
    if let Some(port) = order.scenario.relayed_port {
        relay::inside(port, order.socket.clone()).await?;
    }
    let imds = match order.scenario.imds {
        Imds::Absent => None,
        Imds::Ipv6 => Some("[fd00:ec2::254]:80"),
        Imds::Works | Imds::Silent | Imds::Off | Imds::NoProfile | Imds::Stale => Some("169.254.169.254:80"),
    };
    let fake = Arc::new(Fake { order, tokens: Mutex::default() });
    let service = |answer: fn(&Fake, &Request) -> Option<Answer>| -> Service {
        let fake = Arc::clone(&fake);
        Arc::new(move |request| {
            let reply = if fake.is_played_elsewhere(request) {
                Reply::Elsewhere(fake.order.elsewhere.clone())
            } else {
                answer(&fake, request).map_or(Reply::Never, Reply::Answer)
            };
            fake.note(request);
            reply
        })
    };
    if let Some(address) = imds {
        listen(TcpListener::bind(address).await.context("the metadata service's address")?, None, service(Fake::imds));
    }
    listen(TcpListener::bind("127.0.0.1:8099").await?, None, service(Fake::container));
    listen(TcpListener::bind("127.0.0.1:443").await?, Some(tls), service(Fake::https));
    std::fs::write(ready, "")?;
    std::future::pending().await
}

fn acceptor(order: &Order) -> Result<TlsAcceptor> {
    let certificate = CertificateDer::from_pem_slice(order.certificate.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(order.key.as_bytes())?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?.with_no_client_auth();
    Ok(TlsAcceptor::from(Arc::new(config.with_single_cert(vec![certificate], key)?)))
}

impl Fake {
    fn scenario(&self) -> &Scenario {
        &self.order.scenario
    }

    fn is_played_elsewhere(&self, request: &Request) -> bool {
        let host = request.header("host").unwrap_or_default();
        self.scenario().elsewhere.as_ref().is_some_and(|elsewhere| elsewhere.hosts.iter().any(|played| played == host))
    }

    /// Writes a request down.
    fn note(&self, request: &Request) {
        let action = request.header("x-amz-target").map(str::to_owned).or_else(|| form(request).remove("Action")).unwrap_or_default();
        let host = request.header("host").unwrap_or_default();
        let noted: Noted = [("host", host), ("method", &request.method), ("path", &request.path), ("action", &action)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.order.log);
        let written = file.and_then(|mut file| writeln!(file, "{}", json!(noted)));
        written.expect("the log can be written");
    }

    fn imds(&self, request: &Request) -> Option<Answer> {
        let imds = self.scenario().imds;
        if request.header("x-forwarded-for").is_some() || imds == Imds::Off {
            return Some(Answer::new(403, ""));
        }
        if imds == Imds::Silent {
            return None;
        }
        let path = request.path.as_str();
        if path == "/latest/api/token" {
            let ttl = request.header("x-aws-ec2-metadata-token-ttl-seconds").and_then(|ttl| ttl.parse::<u32>().ok());
            return Some(match (request.method.as_str(), ttl) {
                ("PUT", Some(ttl @ 1..=21_600)) => {
                    Answer::new(200, IMDS_TOKEN).header("x-aws-ec2-metadata-token-ttl-seconds", ttl.to_string())
                }
                ("PUT", _) => Answer::new(400, ""),
                (_, _) => Answer::new(405, ""),
            });
        }
        if request.header("x-aws-ec2-metadata-token") != Some(IMDS_TOKEN) {
            return Some(Answer::new(401, ""));
        }
        let folder = "/latest/meta-data/iam/security-credentials";
        Some(match path.trim_start_matches(folder).trim_matches('/') {
            _ if imds == Imds::NoProfile || !path.starts_with(folder) => Answer::new(404, ""),
            "" => Answer::new(200, PROFILE),
            PROFILE => {
                let life = if imds == Imds::Stale { -3_600 } else { 6 * 3_600 };
                let mut answer = credentials(&self.scenario().instance, life);
                answer["Code"] = json!("Success");
                Answer::new(200, answer.to_string())
            }
            _ => Answer::new(404, ""),
        })
    }

    fn container(&self, request: &Request) -> Option<Answer> {
        let keys = self.scenario().ambient.first().filter(|_| request.path == CONTAINER_PATH);
        let authorized = request.header("authorization") == Some("container-token");
        Some(match keys.filter(|_| authorized) {
            Some(keys) => Answer::new(200, credentials(keys, 3_600).to_string()),
            None => Answer::new(403, ""),
        })
    }

    fn https(&self, request: &Request) -> Option<Answer> {
        let scenario = self.scenario();
        let host = request.header("host").unwrap_or_default();
        Some(match host {
            host if host == scenario.sts => self.sts(request),
            host if host == scenario.ecr => self.ecr(request),
            host if host == scenario.registry => self.registry(request),
            Scenario::STORE => self.store(request),
            _ => Answer::new(421, ""),
        })
    }

    /// Everybody who exists.
    fn known(&self) -> Vec<Keys> {
        let mut known = self.scenario().ambient.clone();
        known.extend([self.scenario().instance.clone(), session()]);
        known
    }

    fn sts(&self, request: &Request) -> Answer {
        let scenario = self.scenario();
        let form = form(request);
        let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        if field("Action") == "AssumeRoleWithWebIdentity" {
            let right = field("WebIdentityToken") == "pod-token" && field("RoleArn") == scenario.role;
            let Some(keys) = scenario.ambient.first().filter(|_| right) else { return sts_error("InvalidIdentityToken", "no such token") };
            return assumed("AssumeRoleWithWebIdentity", &scenario.role, field("RoleSessionName"), keys, scenario.session_life);
        }
        let known = self.known();
        let signer = match signature::signer(request, &known, &scenario.region, "sts") {
            Ok(signer) => signer,
            Err(problem) => return sts_error("SignatureDoesNotMatch", &problem),
        };
        match field("Action") {
            "GetCallerIdentity" => {
                let arn = if signer.id == session().id { arn_of(&scenario.role, &scenario.session) } else { arn_of_user(&signer.id) };
                let result = format!("<Arn>{arn}</Arn><UserId>U</UserId><Account>{}</Account>", Scenario::ACCOUNT);
                sts_answer("GetCallerIdentity", &result)
            }
            "AssumeRole" => {
                let (role, name) = (field("RoleArn"), field("RoleSessionName"));
                if scenario.deny_role || signer.id != scenario.instance.id || role != scenario.role {
                    return sts_error("AccessDenied", &format!("User: {PROFILE} is not authorized to perform: sts:AssumeRole on {role}"));
                }
                if name != scenario.session {
                    return sts_error("ValidationError", &format!("roleSessionName {name}"));
                }
                assumed("AssumeRole", role, name, &session(), scenario.session_life)
            }
            other => sts_error("InvalidAction", other),
        }
    }

    fn ecr(&self, request: &Request) -> Answer {
        let scenario = self.scenario();
        let refused = |kind: &str, message: &str| {
            Answer::new(400, json!({"__type": kind, "message": message}).to_string()).header("Content-Type", "application/x-amz-json-1.1")
        };
        let known = self.known();
        let signer = match signature::signer(request, &known, &scenario.region, "ecr") {
            Ok(signer) => signer,
            Err(problem) => return refused("InvalidSignatureException", &problem),
        };
        if request.header("x-amz-target") != Some("AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken") {
            return refused("UnknownOperationException", "");
        }
        if scenario.deny_token || signer.id == scenario.instance.id {
            return refused("AccessDeniedException", "not authorized to perform: ecr:GetAuthorizationToken");
        }
        let ends = Timestamp::now() + SignedDuration::from_secs(scenario.token_life);
        let mut tokens = self.tokens.lock().expect("no holder of this lock panics");
        let token = base64(format!("AWS:token-{}", tokens.len()));
        tokens.push((format!("Basic {token}"), ends));
        let proxy = format!("https://{}", scenario.registry);
        let data = json!({"authorizationToken": token, "expiresAt": ends.as_second(), "proxyEndpoint": proxy});
        Answer::new(200, json!({"authorizationData": [data]}).to_string()).header("Content-Type", "application/x-amz-json-1.1")
    }

    fn registry(&self, request: &Request) -> Answer {
        let scenario = self.scenario();
        let refused = |status, message: &str| Answer::new(status, json!({"errors": [{"code": "DENIED", "message": message}]}).to_string());
        let Some(header) = request.header("authorization") else {
            let realm = format!("Basic realm=\"https://{}/\",service=\"ecr.amazonaws.com\"", scenario.registry);
            return Answer::new(401, "Not Authorized").header("Www-Authenticate", realm);
        };
        let elsewhere = scenario.elsewhere.as_ref().map(|elsewhere| format!("Basic {}", base64(&elsewhere.login)));
        if elsewhere.as_deref() != Some(header) {
            let tokens = self.tokens.lock().expect("no holder of this lock panics");
            let Some(turn) = tokens.iter().position(|(known, _)| known == header) else {
                return refused(403, "Your Authorization Token is invalid.");
            };
            if turn < scenario.revoked_tokens || tokens[turn].1 <= Timestamp::now() {
                return refused(403, "Your authorization token has expired. Reauthenticate and try again.");
            }
        }
        let path = request.path.as_str();
        match path {
            "/v2/" => Answer::new(200, "{}"),
            path if scenario.denied.iter().any(|denied| denied == path) => {
                refused(403, "not authorized to perform: ecr:BatchGetImage because no resource-based policy allows it")
            }
            path if scenario.contents.contains_key(path) && path.contains("/blobs/") => {
                Answer::new(307, "").header("Location", format!("https://{}{path}?{SIGNED}", Scenario::STORE))
            }
            path if scenario.contents.contains_key(path) => {
                let body = STANDARD.decode(&scenario.contents[path]).unwrap_or_default();
                Answer::new(200, body).header("Content-Type", "application/vnd.oci.image.manifest.v1+json")
            }
            path if scenario.manifests.iter().any(|there| there == path) => Answer::new(200, "{}"),
            _ => refused(404, "Requested image not found"),
        }
    }
}

impl Fake {
    fn store(&self, request: &Request) -> Answer {
        let content = self.scenario().contents.get(&request.path).and_then(|content| STANDARD.decode(content).ok());
        match content {
            // "Only one auth mechanism allowed".
            _ if request.header("authorization").is_some() => Answer::new(400, ""),
            _ if request.query != SIGNED => Answer::new(403, ""),
            Some(content) => Answer::new(200, content),
            None => Answer::new(404, ""),
        }
    }
}

fn session() -> Keys {
    Keys::session("role")
}

fn credentials(keys: &Keys, life: i64) -> serde_json::Value {
    let ends = Timestamp::now() + SignedDuration::from_secs(life);
    let ends = ends.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({"AccessKeyId": keys.id, "SecretAccessKey": keys.secret, "Token": keys.token, "Expiration": ends})
}

fn arn_of(role: &str, session: &str) -> String {
    let name = role.rsplit('/').next().unwrap_or_default();
    format!("arn:aws:sts::{}:assumed-role/{name}/{session}", Scenario::ACCOUNT)
}

fn arn_of_user(id: &str) -> String {
    format!("arn:aws:iam::{}:user/{id}", Scenario::ACCOUNT)
}

/// The fields of a form.
fn form(request: &Request) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(&request.body).into_owned();
    let Ok(url) = reqwest::Url::parse(&format!("http://form/?{text}")) else { return BTreeMap::new() };
    url.query_pairs().into_owned().collect()
}

fn assumed(action: &str, role: &str, name: &str, keys: &Keys, life: i64) -> Answer {
    let ends = Timestamp::now() + SignedDuration::from_secs(life);
    let ends = ends.strftime("%Y-%m-%dT%H:%M:%SZ");
    let user = format!("<AssumedRoleUser><AssumedRoleId>R:{name}</AssumedRoleId><Arn>{}</Arn></AssumedRoleUser>", arn_of(role, name));
    let given = format!(
        "<Credentials><AccessKeyId>{}</AccessKeyId><SecretAccessKey>{}</SecretAccessKey><SessionToken>{}</SessionToken>\
         <Expiration>{ends}</Expiration></Credentials>",
        keys.id, keys.secret, keys.token
    );
    sts_answer(action, &format!("{user}{given}"))
}

fn sts_answer(action: &str, result: &str) -> Answer {
    let body = format!(
        "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result>{result}</{action}Result>\
         <ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></{action}Response>"
    );
    Answer::new(200, body).header("Content-Type", "text/xml")
}

fn sts_error(code: &str, message: &str) -> Answer {
    let body = format!(
        "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type><Code>{code}</Code>\
         <Message>{message}</Message></Error><RequestId>r</RequestId></ErrorResponse>"
    );
    Answer::new(403, body).header("Content-Type", "text/xml")
}
