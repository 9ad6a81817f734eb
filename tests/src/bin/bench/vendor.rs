//! A vendor that sends whatever commands are to be measured, faster than a manager would propose them. Strict all the same: TLS 1.3, a
//! client certificate of its own CA, a valid signature, the contract's frames.

use std::sync::Arc;

use agent_api::enrolment::CHANNEL_PATH;
use agent_api::frame::{Down, PROTOCOL, SUBPROTOCOL, Up, Welcome};
use agent_api::secret::Secret;
use agent_api::signature::{self, Headers};
use anyhow::{Context as _, Result, bail, ensure};
use futures::{SinkExt as _, StreamExt as _};
use jiff::Timestamp;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use system_tests::{Authority, Identity};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

/// Name of the executor's key.
pub(crate) const ACCESS_KEY: &str = "ak-bench";
/// The executor's key.
pub(crate) const SECRET_KEY: &str = "YmVuY2gtYmVuY2gtYmVuY2gtYmVuY2gtYmVuY2gtMTI=";

/// Listens on loopback.
pub(crate) struct Vendor {
    authority: Authority,
    listener: TcpListener,
    tls: TlsAcceptor,
}

/// An executor's channel, after the welcome.
pub(crate) type Socket = WebSocketStream<TlsStream<TcpStream>>;

impl Vendor {
    pub(crate) async fn listen() -> Result<Self> {
        let authority = Authority::new("bench")?;
        let server = authority.server("127.0.0.1", &["127.0.0.1"])?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.certificate().as_bytes())?)?;
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build()?;
        let config = rustls::ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13])?;
        let chain = vec![CertificateDer::from_pem_slice(server.certificate.as_bytes())?];
        let key = PrivateKeyDer::from_pem_slice(server.key.as_bytes())?;
        let config = config.with_client_cert_verifier(clients).with_single_cert(chain, key)?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        Ok(Self { authority, listener, tls: TlsAcceptor::from(Arc::new(config)) })
    }

    pub(crate) fn endpoint(&self) -> Result<String> {
        Ok(format!("https://{}", self.listener.local_addr()?))
    }

    pub(crate) fn ca(&self) -> String {
        self.authority.certificate()
    }

    /// The executor's certificate.
    pub(crate) fn client(&self) -> Result<Identity> {
        self.authority.client("bench", None)
    }

    /// The first executor that comes, welcomed.
    pub(crate) async fn accept(&self) -> Result<Socket> {
        let (stream, _) = self.listener.accept().await?;
        stream.set_nodelay(true)?;
        let stream = self.tls.accept(stream).await.context("TLS with the executor")?;
        let mut socket = tokio_tungstenite::accept_hdr_async(stream, upgrade).await.context("the upgrade")?;
        let Up::Hello(hello) = next(&mut socket).await? else { bail!("the first frame is no hello") };
        ensure!(hello.protocols.contains(&PROTOCOL), "{hello:?}");
        let welcome = Welcome { protocol: PROTOCOL, heartbeat_interval_s: 10, server_time: Timestamp::now() };
        send(&mut socket, &Down::Welcome(welcome)).await?;
        Ok(socket)
    }
}

/// Answers an upgrade that is signed with the executor's key.
#[expect(clippy::result_large_err, reason = "the callback's type is the library's")]
fn upgrade(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    if !signed(request) {
        let mut refused = ErrorResponse::new(Some("not signed as it has to be".into()));
        *refused.status_mut() = http::StatusCode::UNAUTHORIZED;
        return Err(refused);
    }
    response.headers_mut().insert("sec-websocket-protocol", http::HeaderValue::from_static(SUBPROTOCOL));
    Ok(response)
}

fn signed(request: &Request) -> bool {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let headers = Headers {
        content_digest: header(signature::CONTENT_DIGEST),
        signature_input: header(signature::SIGNATURE_INPUT),
        signature: header(signature::SIGNATURE),
    };
    let secret = Secret::new(SECRET_KEY.to_owned());
    let now = Timestamp::now().as_second();
    signature::claim(&headers).is_ok_and(|claim| {
        let verified = signature::verify(&claim, &headers, &secret, "GET", CHANNEL_PATH, b"", now);
        claim.access_key == ACCESS_KEY && request.uri().path() == CHANNEL_PATH && verified.is_ok()
    })
}

/// The message of a frame.
pub(crate) fn message(frame: &Down) -> Result<Message> {
    Ok(Message::text(serde_json::to_string(frame)?))
}

/// The frame of a message; none for a ping or pong.
pub(crate) fn frame(message: Message) -> Result<Option<Up>> {
    match message {
        Message::Text(text) => Ok(Some(serde_json::from_str(&text)?)),
        Message::Ping(_) | Message::Pong(_) => Ok(None),
        other => bail!("the executor sent {other:?}"),
    }
}

/// Sends a frame.
pub(crate) async fn send(socket: &mut Socket, frame: &Down) -> Result<()> {
    Ok(socket.send(message(frame)?).await?)
}

/// The next frame.
pub(crate) async fn next(socket: &mut Socket) -> Result<Up> {
    loop {
        if let Some(frame) = frame(socket.next().await.context("the executor has left")??)? {
            return Ok(frame);
        }
    }
}
