//! Who connects: enrolment, certificates, signed requests.

use agent_api::enrolment::{CHANNEL_PATH, ENROLL_PATH, EnrollRequest, EnrollResponse, RENEW_PATH, SIGN_PATH, SignRequest, SignResponse};
use agent_api::frame::{Down, MAX_BYTES, PROTOCOL, SUBPROTOCOL};
use agent_api::name::ExecutorId;
use agent_api::problem::Problem;
use agent_api::secret::Secret;
use agent_api::signature::{self, Headers, KeyPair};
use jiff::Timestamp;
use rcgen::{CertificateParams, DistinguishedName, DnType};
use reqwest::{Certificate, Identity, Method, RequestBuilder, Response, StatusCode};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::{Channel, Server};

/// An enrolled executor.
pub struct Executor {
    /// Its id.
    pub id: ExecutorId,
    /// Whose it is: the name in its certificates.
    pub organisation: String,
    /// `https://host:port` of the manager.
    pub endpoint: String,
    /// PEM of the manager's CA.
    pub ca: String,
    /// What it signs with.
    pub key: KeyPair,
    /// PEM of its certificate and key, once it has them.
    pub identity: Option<String>,
}

/// Headers of a request, to send as often as a test likes.
pub fn headers(key: &KeyPair, method: &str, target: &str, body: &[u8]) -> Headers {
    signature::sign(key, method, target, body, Timestamp::now().as_second(), &uuid::Uuid::new_v4().to_string())
}

fn signed(request: RequestBuilder, headers: &Headers) -> RequestBuilder {
    request
        .header(signature::CONTENT_DIGEST, &headers.content_digest)
        .header(signature::SIGNATURE_INPUT, &headers.signature_input)
        .header(signature::SIGNATURE, &headers.signature)
}

/// The code of a problem document.
pub async fn problem(response: Response) -> (StatusCode, String) {
    let status = response.status();
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    (status, response.json::<Problem>().await.unwrap().code)
}

impl Executor {
    /// Enrols for a cluster and gets its certificate.
    pub async fn enrolled(server: &impl Server, cluster: &str) -> Self {
        let token = server.enrolment_token(cluster);
        let mut executor = Self::redeem(server, &token, ExecutorId(uuid::Uuid::new_v4())).await.expect("enrolled");
        let response = executor.sign().await;
        assert_eq!(response.status(), StatusCode::OK);
        assert!(executor.identity.is_some());
        let again = executor.sign().await;
        assert_eq!(problem(again).await, (StatusCode::CONFLICT, "certificate_unexpired".to_owned()));
        executor
    }

    /// Redeems a token; the problem otherwise.
    pub async fn redeem(server: &impl Server, token: &str, id: ExecutorId) -> Result<Self, (StatusCode, String)> {
        let request = EnrollRequest { token: Secret::new(token.to_owned()), executor_id: id };
        let http = client(&server.ca(), None);
        let response = http.post(format!("{}{ENROLL_PATH}", server.endpoint())).json(&request).send().await.unwrap();
        if response.status() != StatusCode::OK {
            return Err(problem(response).await);
        }
        let answer: EnrollResponse = response.json().await.unwrap();
        assert_eq!((answer.organisation.as_str(), answer.endpoint.as_str()), (server.organisation(), server.endpoint()));
        assert_eq!(answer.ca, server.ca());
        let key = KeyPair { access_key: answer.access_key, secret_key: answer.secret_key };
        Ok(Self { id, organisation: answer.organisation, endpoint: answer.endpoint, ca: answer.ca, key, identity: None })
    }

    /// Asks for a certificate with a new key, and keeps both if it gets one.
    pub async fn sign(&mut self) -> Response {
        let (key, csr) = request_for(&self.organisation);
        let body = serde_json::to_vec(&SignRequest { csr }).unwrap();
        let response = self.post(None, SIGN_PATH, body).await;
        if response.status() != StatusCode::OK {
            return response;
        }
        let text = response.text().await.unwrap();
        let answer: SignResponse = serde_json::from_str(&text).unwrap();
        self.identity = Some(format!("{}{key}", answer.certificate));
        Response::from(http::Response::new(text))
    }

    /// Asks for the certificate that follows: the new identity.
    pub async fn renew(&self, identity: Option<&str>, name: &str) -> Result<(String, Timestamp), (StatusCode, String)> {
        let (key, csr) = request_for(name);
        let response = self.post(identity, RENEW_PATH, serde_json::to_vec(&SignRequest { csr }).unwrap()).await;
        if response.status() != StatusCode::OK {
            return Err(problem(response).await);
        }
        let answer: SignResponse = response.json().await.unwrap();
        Ok((format!("{}{key}", answer.certificate), answer.not_after))
    }

    /// Signs a body and sends it.
    pub async fn post(&self, identity: Option<&str>, path: &str, body: Vec<u8>) -> Response {
        let request = client(&self.ca, identity).post(format!("{}{path}", self.endpoint)).body(body.clone());
        signed(request, &headers(&self.key, "POST", path, &body)).send().await.unwrap()
    }

    /// Asks for the upgrade with these headers and this identity.
    pub async fn upgrade(&self, headers: &Headers, identity: Option<&str>) -> Response {
        let request = client(&self.ca, identity)
            .request(Method::GET, format!("{}{CHANNEL_PATH}", self.endpoint))
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .header("sec-websocket-protocol", SUBPROTOCOL);
        signed(request, headers).send().await.unwrap()
    }

    /// Signs the upgrade.
    pub fn headers(&self) -> Headers {
        headers(&self.key, "GET", CHANNEL_PATH, b"")
    }

    /// Opens the channel; nothing is said yet.
    pub async fn connect(&self) -> Channel {
        self.opened(self.upgrade(&self.headers(), self.identity.as_deref()).await).await
    }

    /// The channel that an answer opened.
    pub async fn opened(&self, response: Response) -> Channel {
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS, "{}", response.text().await.unwrap_or_default());
        assert_eq!(response.headers()["sec-websocket-protocol"], SUBPROTOCOL);
        assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let config = WebSocketConfig::default().max_message_size(Some(MAX_BYTES)).max_frame_size(Some(MAX_BYTES));
        let stream = WebSocketStream::from_raw_socket(response.upgrade().await.unwrap(), Role::Client, Some(config)).await;
        Channel::new(stream, self.id)
    }

    /// Opens the channel and says hello.
    pub async fn online(&self, last_sequence: u64) -> Channel {
        let mut channel = self.connect().await;
        channel.hello(last_sequence).await;
        let Some(Down::Welcome(welcome)) = channel.next().await else { panic!("no welcome") };
        assert_eq!((welcome.protocol, welcome.heartbeat_interval_s), (PROTOCOL, 10));
        channel
    }
}

/// A new key in PEM, and the request to certify it.
fn request_for(name: &str) -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    (key.serialize_pem(), params.serialize_request(&key).unwrap().pem().unwrap())
}

/// A client that trusts this CA alone, and shows this certificate.
pub fn client(ca: &str, identity: Option<&str>) -> reqwest::Client {
    let builder = reqwest::Client::builder().no_proxy().http1_only().tls_certs_only([Certificate::from_pem(ca.as_bytes()).unwrap()]);
    match identity {
        Some(pem) => builder.identity(Identity::from_pem(pem.as_bytes()).unwrap()).build().unwrap(),
        None => builder.build().unwrap(),
    }
}
