//! A strict executor: it enrols, signs every request, holds a connection, and says only what the test tells it to.

use std::time::Duration;

use agent_api::command::{Command, CommandStatus, SyncPlatform};
use agent_api::digest::Sha256;
use agent_api::enrolment::{CHANNEL_PATH, ENROLL_PATH, EnrollRequest, EnrollResponse, RENEW_PATH, SIGN_PATH, SignRequest, SignResponse};
use agent_api::frame::{CommandAck, CommandProgress, CommandResult, Down, Hello, MAX_BYTES, PROTOCOL, SUBPROTOCOL, Up};
use agent_api::heartbeat::{
    AccessInfo, AccessState, ClusterInfo, CommandCounts, ExecutorInfo, ExecutorKind, Heartbeat, Platform, PlatformStatus,
};
use agent_api::name::{CommandId, ExecutorId};
use agent_api::problem::Problem;
use agent_api::secret::Secret;
use agent_api::signature::{self, Headers, KeyPair};
use futures::{SinkExt as _, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use rcgen::{CertificateParams, DistinguishedName, DnType};
use reqwest::{Certificate, Identity, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::server::Server;

/// An enrolled executor.
pub(crate) struct Executor {
    pub(crate) id: ExecutorId,
    pub(crate) endpoint: String,
    pub(crate) ca: String,
    pub(crate) key: KeyPair,
    pub(crate) identity: Option<String>,
}

/// Headers of a request, to send as often as a test likes.
pub(crate) fn headers(key: &KeyPair, method: &str, target: &str, body: &[u8]) -> Headers {
    signature::sign(key, method, target, body, Timestamp::now().as_second(), &uuid::Uuid::new_v4().to_string())
}

fn signed(request: RequestBuilder, headers: &Headers) -> RequestBuilder {
    request
        .header(signature::CONTENT_DIGEST, &headers.content_digest)
        .header(signature::SIGNATURE_INPUT, &headers.signature_input)
        .header(signature::SIGNATURE, &headers.signature)
}

/// The code of a problem document.
pub(crate) async fn problem(response: Response) -> (StatusCode, String) {
    let status = response.status();
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    (status, response.json::<Problem>().await.unwrap().code)
}

impl Executor {
    /// Enrols for a cluster and gets its certificate.
    pub(crate) async fn enrolled(server: &Server, cluster: &str) -> Self {
        let token = server.run(&["executor", "enroll", "--cluster", cluster]);
        let mut executor = Self::redeem(server, &token, ExecutorId(uuid::Uuid::new_v4())).await.expect("enrolled");
        let response = executor.sign().await;
        assert_eq!(response.status(), StatusCode::OK);
        assert!(executor.identity.is_some());
        let again = executor.sign().await;
        assert_eq!(problem(again).await, (StatusCode::CONFLICT, "certificate_unexpired".to_owned()));
        executor
    }

    /// Redeems a token; the problem otherwise.
    pub(crate) async fn redeem(server: &Server, token: &str, id: ExecutorId) -> Result<Self, (StatusCode, String)> {
        let request = EnrollRequest { token: Secret::new(token.to_owned()), executor_id: id };
        let http = client(&server.ca(), None);
        let response = http.post(format!("{}{ENROLL_PATH}", server.endpoint)).json(&request).send().await.unwrap();
        if response.status() != StatusCode::OK {
            return Err(problem(response).await);
        }
        let answer: EnrollResponse = response.json().await.unwrap();
        assert_eq!((answer.organisation.as_str(), answer.endpoint.as_str()), ("bank", server.endpoint.as_str()));
        assert_eq!(answer.ca, server.ca());
        let key = KeyPair { access_key: answer.access_key, secret_key: answer.secret_key };
        Ok(Self { id, endpoint: answer.endpoint, ca: answer.ca, key, identity: None })
    }

    /// Asks for a certificate with a new key, and keeps both if it gets one.
    pub(crate) async fn sign(&mut self) -> Response {
        let (key, csr) = request_for("bank");
        let body = serde_json::to_vec(&SignRequest { csr }).unwrap();
        let response = self.post(None, SIGN_PATH, body).await;
        if response.status() != StatusCode::OK {
            return response;
        }
        let text = response.text().await.unwrap();
        let answer: SignResponse = serde_json::from_str(&text).unwrap();
        self.identity = Some(format!("{}{key}", answer.certificate));
        Response::from(axum::http::Response::new(text))
    }

    /// Asks for the certificate that follows: the new identity.
    pub(crate) async fn renew(&self, identity: Option<&str>, name: &str) -> Result<(String, Timestamp), (StatusCode, String)> {
        let (key, csr) = request_for(name);
        let response = self.post(identity, RENEW_PATH, serde_json::to_vec(&SignRequest { csr }).unwrap()).await;
        if response.status() != StatusCode::OK {
            return Err(problem(response).await);
        }
        let answer: SignResponse = response.json().await.unwrap();
        Ok((format!("{}{key}", answer.certificate), answer.not_after))
    }

    /// Signs a body and sends it.
    pub(crate) async fn post(&self, identity: Option<&str>, path: &str, body: Vec<u8>) -> Response {
        let request = client(&self.ca, identity).post(format!("{}{path}", self.endpoint)).body(body.clone());
        signed(request, &headers(&self.key, "POST", path, &body)).send().await.unwrap()
    }

    /// Asks for the upgrade with these headers and this identity.
    pub(crate) async fn upgrade(&self, headers: &Headers, identity: Option<&str>) -> Response {
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
    pub(crate) fn headers(&self) -> Headers {
        headers(&self.key, "GET", CHANNEL_PATH, b"")
    }

    /// Opens the channel; nothing is said yet.
    pub(crate) async fn connect(&self) -> Channel {
        self.opened(self.upgrade(&self.headers(), self.identity.as_deref()).await).await
    }

    /// The channel that an answer opened.
    pub(crate) async fn opened(&self, response: Response) -> Channel {
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS, "{}", response.text().await.unwrap_or_default());
        assert_eq!(response.headers()["sec-websocket-protocol"], SUBPROTOCOL);
        assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let config = WebSocketConfig::default().max_message_size(Some(MAX_BYTES)).max_frame_size(Some(MAX_BYTES));
        let stream = WebSocketStream::from_raw_socket(response.upgrade().await.unwrap(), Role::Client, Some(config)).await;
        Channel { stream, id: self.id }
    }

    /// Opens the channel and says hello.
    pub(crate) async fn online(&self, last_sequence: u64) -> Channel {
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

pub(crate) fn client(ca: &str, identity: Option<&str>) -> reqwest::Client {
    let builder = reqwest::Client::builder().no_proxy().http1_only().tls_certs_only([Certificate::from_pem(ca.as_bytes()).unwrap()]);
    match identity {
        Some(pem) => builder.identity(Identity::from_pem(pem.as_bytes()).unwrap()).build().unwrap(),
        None => builder.build().unwrap(),
    }
}

/// The first frame.
pub(crate) fn hello(executor_id: ExecutorId, last_sequence: u64) -> Up {
    Up::Hello(Hello {
        executor_id,
        cluster_uid: None,
        version: "0.1.0".into(),
        protocols: vec![PROTOCOL],
        last_sequence,
        unacknowledged_results: Vec::new(),
    })
}

/// An open channel.
pub(crate) struct Channel {
    pub(crate) stream: WebSocketStream<reqwest::Upgraded>,
    id: ExecutorId,
}

impl Channel {
    pub(crate) async fn hello(&mut self, last_sequence: u64) {
        self.say(&hello(self.id, last_sequence)).await;
    }

    pub(crate) async fn say(&mut self, frame: &Up) {
        self.raw(Message::text(serde_json::to_string(frame).unwrap())).await;
    }

    pub(crate) async fn raw(&mut self, message: Message) {
        self.stream.send(message).await.unwrap();
    }

    /// The next frame; none when the channel ended. A test never waits longer than ten seconds.
    pub(crate) async fn next(&mut self) -> Option<Down> {
        loop {
            match tokio::time::timeout(Duration::from_secs(10), self.stream.next()).await.expect("a frame in time")? {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(other) => panic!("{other:?}"),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Whether nothing comes within a moment.
    pub(crate) async fn silent(&mut self) -> bool {
        loop {
            match tokio::time::timeout(Duration::from_millis(700), self.stream.next()).await {
                Err(_) => return true,
                Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => {}
                Ok(_) => return false,
            }
        }
    }

    /// The close code that the channel ends with.
    pub(crate) async fn close_code(&mut self) -> u16 {
        loop {
            match tokio::time::timeout(Duration::from_secs(10), self.stream.next()).await.expect("an end in time") {
                Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// A `sync_platform`, its payload checked.
    pub(crate) async fn sync(&mut self) -> (Command, SyncPlatform) {
        let Some(Down::Command(command)) = self.next().await else { panic!("no command") };
        assert_eq!((command.action.as_str(), command.target.as_str()), ("sync_platform", "platform"));
        let payload: SyncPlatform = serde_json::from_value(command.payload.clone()).unwrap();
        assert_eq!(Sha256::of(payload.manifest.as_bytes()), payload.sha256);
        (command, payload)
    }

    pub(crate) async fn ack(&mut self, id: CommandId) {
        self.say(&Up::CommandAck(CommandAck { id })).await;
    }

    pub(crate) async fn progress(&mut self, id: CommandId, stage: &str) {
        self.say(&Up::CommandProgress(CommandProgress { id, stage: stage.into(), step: 1, of: 3, object: None })).await;
    }

    /// Says how a command ended, and takes the acknowledgement.
    pub(crate) async fn result(&mut self, id: CommandId, status: CommandStatus, text: &str) {
        let objects =
            serde_json::from_value(json!([{"group": "apps", "kind": "Deployment", "namespace": "n", "name": "d", "outcome": "created"}]));
        self.say(&Up::CommandResult(CommandResult { id, status, result: text.into(), objects: objects.unwrap() })).await;
        match self.next().await {
            Some(Down::ResultAck(ack)) => assert_eq!(ack.id, id),
            other => panic!("{other:?}"),
        }
    }

    /// Says what it sees of the platform.
    pub(crate) async fn heartbeat(&mut self, status: PlatformStatus, approved: Option<&Sha256>) {
        let heartbeat = Heartbeat {
            executor: ExecutorInfo {
                id: self.id,
                version: "0.1.0".into(),
                started_at: Timestamp::now(),
                uptime_s: 1,
                kind: ExecutorKind::Vm,
            },
            cluster: ClusterInfo::default(),
            access: AccessInfo { cluster: AccessState::Ok, platform: AccessState::Absent },
            platform: Platform {
                status,
                pending_sha256: approved.cloned(),
                approved_sha256: approved.cloned(),
                approval_expires_at: approved.map(|_| Timestamp::now() + SignedDuration::from_hours(2)),
                applied_sha256: None,
                attempts: 0,
                message: None,
                leftovers: 0,
            },
            components: Vec::new(),
            commands: CommandCounts::default(),
        };
        self.say(&Up::Heartbeat(Box::new(heartbeat))).await;
    }

    pub(crate) async fn close(mut self) {
        self.stream.close(None).await.unwrap();
        while self.stream.next().await.is_some() {}
    }
}

/// Asks until it is so, for ten seconds at most.
pub(crate) async fn eventually(what: &str, mut ask: impl FnMut() -> Value, so: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..100 {
        let seen = ask();
        if so(&seen) {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what} did not come: {:#}", ask());
}
