//! What may stand between a person and the API server: a relay that sees each of their requests and disturbs those that it is told to.
//!
//! The person's kubeconfig leads to it: TLS by an authority of its own, and a bearer token that only this kubeconfig has. What comes with
//! that token goes on as the administrator. Not here: which requests are disturbed, which each test decides.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use futures::TryStreamExt as _;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, RETRY_AFTER, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::control_plane::ControlPlane;
use crate::pki::{Authority, Identity};

/// The relay. It ends with this value.
pub struct ApiBetween {
    kubeconfig: PathBuf,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

/// A request as the relay saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Method.
    pub method: Method,
    /// Path without query.
    pub path: String,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// In somebody else's name.
    pub impersonating: bool,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// The API server never hears of it; the person is answered this, as the API server, or what stands before it, says it.
    Answer(Refusal),
    /// It is carried out, and the answer comes so much later.
    Late(Duration),
    /// The connection is closed.
    Cut(When),
    /// It is not answered, ever; [`ApiBetween::held`] tells.
    Hold(When),
}

/// When, seen from the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// It never hears of the request.
    Before,
    /// It has carried the request out.
    After,
}

/// An answer in the API server's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 429 by priority and fairness: plain text, and a header `Retry-After: 1`.
    TooManyRequests,
    /// 500 with a status document.
    InternalError,
    /// 503 by a load balancer: a page.
    Unavailable,
    /// 409 with a status document: somebody else wrote in between.
    Conflict,
    /// 403 with a status document.
    Forbidden,
}

type Decide = Box<dyn FnMut(&Asked) -> Option<Disturbance> + Send>;

struct State {
    far: String,
    token: String,
    as_administrator: reqwest::Client,
    decide: Mutex<Decide>,
    seen: Mutex<Vec<Asked>>,
    held: Notify,
}

type Answer = Response<UnsyncBoxBody<Bytes, reqwest::Error>>;

impl ApiBetween {
    /// Stands before a control plane, and disturbs nothing yet.
    ///
    /// # Errors
    /// It cannot listen, or its certificate or kubeconfig cannot be made.
    pub async fn start(control_plane: &ControlPlane) -> Result<Self> {
        let authority = Authority::new("relay-ca")?;
        let accept = acceptor(&authority.server("relay", &["127.0.0.1"])?)?;
        let listener = TcpListener::bind("127.0.0.1:0").await.context("a port for the relay")?;
        let url = format!("https://{}", listener.local_addr()?);
        let token = uuid::Uuid::new_v4().to_string();
        let state = Arc::new(State {
            far: control_plane.url().to_owned(),
            token: format!("Bearer {token}"),
            as_administrator: control_plane.admin_http()?,
            decide: Mutex::new(Box::new(|_| None)),
            seen: Mutex::default(),
            held: Notify::new(),
        });
        let serving = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, accept.clone(), Arc::clone(&serving)));
            }
        });
        let kubeconfig = control_plane.kubeconfig_to(&url, &authority.certificate(), "through-the-relay", &token)?;
        Ok(Self { kubeconfig, state, accepting })
    }

    /// Leads to the relay.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// From now on this decides for each request; what was seen before is forgotten.
    ///
    /// # Panics
    /// A decision panicked.
    pub fn disturb(&self, decide: impl FnMut(&Asked) -> Option<Disturbance> + Send + 'static) {
        *self.state.decide.lock().expect("no decision panics") = Box::new(decide);
        self.seen();
    }

    /// What was asked since the last time this was called, in order.
    ///
    /// # Panics
    /// A decision panicked.
    #[must_use]
    pub fn take_seen(&self) -> Vec<Asked> {
        self.seen()
    }

    fn seen(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.state.seen.lock().expect("no holder of this lock panics"))
    }

    /// Waits until a request is held.
    pub async fn held(&self) {
        self.state.held.notified().await;
    }
}

impl Drop for ApiBetween {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Asked {
    /// Whether it would change something, if only in a dry run. Questions about rights are posted, and are none.
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.method != Method::GET && !self.path.contains("reviews")
    }

    fn of(head: &http::request::Parts) -> Self {
        Self {
            method: head.method.clone(),
            path: head.uri.path().to_owned(),
            dry_run: head.uri.query().is_some_and(|query| query.contains("dryRun=All")),
            impersonating: head.headers.contains_key("impersonate-user"),
        }
    }
}

async fn serve(stream: TcpStream, accept: TlsAcceptor, state: Arc<State>) {
    let Ok(stream) = accept.accept(stream).await else { return };
    let service = service_fn(|request| answer(request, &state));
    // An error is a connection that was cut, by either side.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, state: &State) -> Result<Answer> {
    let (head, body) = request.into_parts();
    if head.headers.get(AUTHORIZATION).is_none_or(|given| given.as_bytes() != state.token.as_bytes()) {
        return status(StatusCode::UNAUTHORIZED, "Unauthorized");
    }
    let asked = Asked::of(&head);
    state.seen.lock().expect("no holder of this lock panics").push(asked.clone());
    let disturbance = (state.decide.lock().expect("no decision panics"))(&asked);
    let body = body.collect().await?.to_bytes();
    let forwarded = || forward(state, &head, body);
    match disturbance {
        None => forwarded().await,
        Some(Disturbance::Answer(refusal)) => refused(refusal),
        Some(Disturbance::Late(pause)) => {
            let answer = forwarded().await;
            tokio::time::sleep(pause).await;
            answer
        }
        Some(Disturbance::Cut(when)) => {
            if when == When::After {
                carried_out(forwarded().await?).await?;
            }
            Err(anyhow!("cut"))
        }
        Some(Disturbance::Hold(when)) => {
            if when == When::After {
                carried_out(forwarded().await?).await?;
            }
            state.held.notify_one();
            std::future::pending().await
        }
    }
}

async fn carried_out(answer: Answer) -> Result<()> {
    answer.into_body().collect().await?;
    Ok(())
}

async fn forward(state: &State, head: &http::request::Parts, body: Bytes) -> Result<Answer> {
    let url = format!("{}{}", state.far, head.uri.path_and_query().context("a request without a path")?);
    let mut headers = head.headers.clone();
    for own in [AUTHORIZATION, HOST, CONTENT_LENGTH] {
        headers.remove(own);
    }
    end_to_end(&mut headers);
    let answer = state.as_administrator.request(head.method.clone(), url).headers(headers).body(body).send().await?;
    let mut forwarded = Response::builder().status(answer.status());
    if let Some(headers) = forwarded.headers_mut() {
        headers.clone_from(answer.headers());
        end_to_end(headers);
    }
    Ok(forwarded.body(StreamBody::new(answer.bytes_stream().map_ok(Frame::data)).boxed_unsync())?)
}

/// Removes what is between two neighbours only.
fn end_to_end(headers: &mut HeaderMap) {
    headers.remove(CONNECTION);
    headers.remove(TRANSFER_ENCODING);
}

fn refused(refusal: Refusal) -> Result<Answer> {
    let document = |code: StatusCode, reason: &str, message: &str| {
        let document = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason,
            "message": message, "code": code.as_u16()});
        status(code, &document.to_string())
    };
    match refusal {
        Refusal::TooManyRequests => {
            let mut answer = status(StatusCode::TOO_MANY_REQUESTS, "Too many requests, please try again later.\n")?;
            answer.headers_mut().insert(RETRY_AFTER, 1.into());
            Ok(answer)
        }
        Refusal::InternalError => document(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "etcdserver: leader changed"),
        Refusal::Unavailable => status(StatusCode::SERVICE_UNAVAILABLE, "<html>no healthy upstream</html>"),
        Refusal::Conflict => {
            document(StatusCode::CONFLICT, "Conflict", "the object has been modified; please apply your changes to the latest version")
        }
        Refusal::Forbidden => document(StatusCode::FORBIDDEN, "Forbidden", "you may not"),
    }
}

fn status(code: StatusCode, text: &str) -> Result<Answer> {
    let body = Full::new(Bytes::from(text.to_owned())).map_err(|never: Infallible| match never {}).boxed_unsync();
    Ok(Response::builder().status(code).body(body)?)
}

fn acceptor(identity: &Identity) -> Result<TlsAcceptor> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let chain = CertificateDer::pem_slice_iter(identity.certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes())?;
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(TlsAcceptor::from(Arc::new(config.with_no_client_auth().with_single_cert(chain, key)?)))
}
