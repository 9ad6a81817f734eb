//! What may stand between executor and manager.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::pair::Pair;

/// An HTTP proxy that knows `CONNECT` only.
pub(crate) struct Proxy {
    address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(tunnel(stream, Arc::clone(&seen)));
            }
        });
        Self { address, heads }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address with a user and a password in it.
    pub(crate) fn url_with_login(&self, user: &str, password: &str) -> String {
        format!("http://{user}:{password}@{}", self.address)
    }

    /// `host:port` of every `CONNECT`.
    pub(crate) fn asked_for(&self) -> Vec<String> {
        self.heads().iter().map(|head| head.split(' ').nth(1).unwrap_or_default().to_owned()).collect()
    }

    /// What it was asked, to the empty line.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn tunnel(mut stream: TcpStream, heads: Arc<Mutex<Vec<String>>>) -> io::Result<()> {
    let head = head(&mut stream).await?;
    heads.lock().unwrap().push(head.clone());
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    if !head.starts_with("CONNECT ") {
        return stream.write_all(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n").await;
    }
    let mut far = TcpStream::connect(target).await?;
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    copy_bidirectional(&mut stream, &mut far).await.map(|_| ())
}

/// The head of a request.
async fn head(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Somebody who counts connections and says nothing.
pub(crate) struct Silent {
    pub(crate) address: String,
    count: Arc<AtomicU32>,
}

impl Silent {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let count = Arc::<AtomicU32>::default();
        let seen = Arc::clone(&count);
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                seen.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { address, count }
    }

    pub(crate) fn connections(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }
}

/// A reverse proxy with the endpoint's certificate that answers a request for an upgrade with a page of its own.
pub(crate) struct Intermediary {
    address: String,
    refused: Arc<AtomicU32>,
    cut: watch::Sender<()>,
}

impl Intermediary {
    pub(crate) async fn start(pair: &Pair) -> Self {
        let (accept, connect, far) = (acceptor(pair), connector(pair), pair.address());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let refused = Arc::<AtomicU32>::default();
        let cut = watch::Sender::new(());
        let (count, cuts) = (Arc::clone(&refused), cut.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (accept, connect, far, count) = (accept.clone(), connect.clone(), far.clone(), Arc::clone(&count));
                let mut end = cuts.subscribe();
                tokio::spawn(async move {
                    tokio::select! {
                        passed = pass(stream, accept, connect, far, count) => drop(passed),
                        _ = end.changed() => {}
                    }
                });
            }
        });
        Self { address, refused, cut }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn refused(&self) -> u32 {
        self.refused.load(Ordering::SeqCst)
    }

    /// Cuts every connection there is.
    pub(crate) fn cut(&self) {
        self.cut.send_replace(());
    }
}

async fn pass(stream: TcpStream, accept: TlsAcceptor, connect: TlsConnector, far: String, refused: Arc<AtomicU32>) -> io::Result<()> {
    let mut near = accept.accept(stream).await?;
    let first = head(&mut near).await?;
    if first.to_ascii_lowercase().contains("upgrade: websocket") {
        refused.fetch_add(1, Ordering::SeqCst);
        let page = "<html>Bad gateway</html>";
        let answer = format!("HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n{page}", page.len());
        near.write_all(answer.as_bytes()).await?;
        return near.shutdown().await;
    }
    let name = ServerName::try_from("127.0.0.1").map_err(io::Error::other)?;
    let mut far = connect.connect(name, TcpStream::connect(far).await?).await?;
    far.write_all(first.as_bytes()).await?;
    copy_bidirectional(&mut near, &mut far).await.map(|_| ())
}

fn chain(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap).collect()
}

fn key(pem: &str) -> PrivateKeyDer<'static> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap()
}

fn acceptor(pair: &Pair) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(chain(&pair.managers("server.crt")), key(&pair.managers("server.key")));
    TlsAcceptor::from(Arc::new(config.unwrap()))
}

/// As the executor: the manager wants to see its certificate.
fn connector(pair: &Pair) -> TlsConnector {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(chain(&pair.managers("ca.crt")));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_client_auth_cert(chain(&pair.tls("client.crt")), key(&pair.tls("client.key")));
    TlsConnector::from(Arc::new(config.unwrap()))
}
