//! A registry on loopback with a certificate of its own authority; what it answers is a function.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use agent_api::digest::OciDigest;
use render::RegistryAccess;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// What a client asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) authorization: Option<String>,
    pub(crate) range: Option<String>,
}

impl Asked {
    pub(crate) fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }
}

/// What it is told.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// How much of the body is sent before the connection ends; all of it where it is `None`.
    pub(crate) cut: Option<usize>,
}

impl Answer {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), cut: None }
    }

    pub(crate) fn body(body: Vec<u8>) -> Self {
        Self { status: 200, headers: Vec::new(), body, cut: None }
    }

    /// As a registry explains a refusal.
    pub(crate) fn refusal(status: u16, code: &str, message: &str) -> Self {
        let body = json!({"errors": [{"code": code, "message": message}]}).to_string().into_bytes();
        Self { status, ..Self::body(body) }
    }

    pub(crate) fn cut_after(self, bytes: usize) -> Self {
        Self { cut: Some(bytes), ..self }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A running registry; it ends with the runtime of its test.
pub(crate) struct FakeRegistry {
    pub(crate) host: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    authority: String,
}

impl FakeRegistry {
    pub(crate) async fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = format!("localhost:{}", listener.local_addr().unwrap().port());
        let asked = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), Arc::clone(&asked), Arc::new(answer)));
        Self { host, asked, authority: certified.cert.pem() }
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Access that trusts these registries and has a user for the first.
    pub(crate) fn access(registries: &[&FakeRegistry], user: Option<(&str, &str)>) -> RegistryAccess {
        let folder = tempfile::tempdir().unwrap();
        let (config, ca) = (folder.path().join("config.json"), folder.path().join("ca.pem"));
        let auths = match user {
            Some((user, password)) => json!({&registries[0].host: {"username": user, "password": password}}),
            None => json!({}),
        };
        std::fs::write(&config, json!({"auths": auths}).to_string()).unwrap();
        std::fs::write(&ca, registries.iter().map(|registry| registry.authority.as_str()).collect::<String>()).unwrap();
        RegistryAccess::load(Some(&config), Some(&ca)).unwrap()
    }
}

async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    asked: Arc<Mutex<Vec<Asked>>>,
    answer: Arc<dyn Fn(&Asked) -> Answer + Send + Sync>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, asked, answer) = (tls.clone(), Arc::clone(&asked), Arc::clone(&answer));
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let mut lines = BufReader::new(stream);
            let (mut head, mut authorization, mut range) = (String::new(), None, None);
            lines.read_line(&mut head).await.unwrap();
            loop {
                let mut line = String::new();
                lines.read_line(&mut line).await.unwrap();
                if line.trim().is_empty() {
                    break;
                }
                let Some((name, value)) = line.split_once(':') else { continue };
                match name.to_ascii_lowercase().as_str() {
                    "authorization" => authorization = Some(value.trim().to_owned()),
                    "range" => range = Some(value.trim().to_owned()),
                    _ => {}
                }
            }
            let request = Asked { line: head.trim().to_owned(), authorization, range };
            asked.lock().unwrap().push(request.clone());
            let answer = answer(&request);
            let mut out = format!("HTTP/1.1 {} X\r\nContent-Length: {}\r\nConnection: close\r\n", answer.status, answer.body.len());
            for (name, value) in &answer.headers {
                out.push_str(&format!("{name}: {value}\r\n"));
            }
            out.push_str("\r\n");
            let mut bytes = out.into_bytes();
            if !request.line.starts_with("HEAD") {
                bytes.extend_from_slice(&answer.body[..answer.cut.unwrap_or(answer.body.len())]);
            }
            let mut stream = lines.into_inner();
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        });
    }
}

/// Content of a registry by path, for charts.
#[derive(Clone, Default)]
pub(crate) struct Content(pub(crate) BTreeMap<String, Vec<u8>>);

impl Content {
    /// Adds a chart; gives the digest of its manifest.
    pub(crate) fn chart(&mut self, name: &str, archive: Vec<u8>) -> OciDigest {
        let layer = json!({"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
            "digest": OciDigest::of(&archive).to_string(), "size": archive.len()});
        let digest = self.manifest(name, "application/vnd.cncf.helm.config.v1+json", vec![layer]);
        self.0.insert(format!("/v2/charts/{name}/blobs/{}", OciDigest::of(&archive)), archive);
        digest
    }

    /// Adds a manifest alone.
    pub(crate) fn manifest(&mut self, name: &str, config: &str, layers: Vec<serde_json::Value>) -> OciDigest {
        let manifest = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": config, "digest": OciDigest::of(b"{}").to_string(), "size": 2}, "layers": layers});
        self.raw(name, manifest.to_string().into_bytes())
    }

    /// Adds anything as a manifest.
    pub(crate) fn raw(&mut self, name: &str, bytes: Vec<u8>) -> OciDigest {
        let digest = OciDigest::of(&bytes);
        self.0.insert(format!("/v2/charts/{name}/manifests/{digest}"), bytes);
        digest
    }

    /// The plain answer: what is there, or 404.
    pub(crate) fn answer(&self, asked: &Asked) -> Answer {
        self.0.get(asked.path()).map_or_else(|| Answer::status(404), |bytes| Answer::body(bytes.clone()))
    }
}
