//! As much of HTTP/1.1 as the services need: one request a connection.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncBufReadExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader, copy};
use tokio::net::{TcpListener, UnixStream};
use tokio_rustls::TlsAcceptor;

/// Largest request that is read.
const MAX_BODY: usize = 1 << 20;

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    pub(super) query: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// As it came, without what is said of the connection.
    head: String,
}

impl Request {
    /// A header by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Answer {
    pub(super) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// What becomes of a request.
pub(super) enum Reply {
    /// This answers it.
    Answer(Answer),
    /// Nothing ever does.
    Never,
    /// Whoever is reached by this socket does.
    Elsewhere(PathBuf),
}

/// Who answers.
pub(super) type Service = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// Answers on a port for as long as the program runs.
pub(super) fn listen(listener: TcpListener, tls: Option<TlsAcceptor>, service: Service) {
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (tls, service) = (tls.clone(), Arc::clone(&service));
            tokio::spawn(async move {
                match tls {
                    Some(tls) => one(tls.accept(stream).await?, &service).await,
                    None => one(stream, &service).await,
                }
            });
        }
    });
}

async fn one(stream: impl AsyncRead + AsyncWrite + Unpin, service: &Service) -> Result<()> {
    let mut reader = BufReader::new(stream);
    let request = read(&mut reader).await?;
    let answer = match service(&request) {
        Reply::Answer(answer) => answer,
        Reply::Never => return std::future::pending().await,
        Reply::Elsewhere(socket) => return pass_on(&request, &socket, reader.into_inner()).await,
    };
    let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\nContent-Length: {}\r\n", answer.status, answer.body.len());
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut bytes = format!("{head}\r\n").into_bytes();
    if request.method != "HEAD" {
        bytes.extend_from_slice(&answer.body);
    }
    let mut stream = reader.into_inner();
    stream.write_all(&bytes).await?;
    stream.shutdown().await.context("ending a connection")
}

/// Asks at a socket, and sends back what comes.
async fn pass_on(request: &Request, socket: &Path, mut stream: impl AsyncWrite + Unpin) -> Result<()> {
    let mut there = UnixStream::connect(socket).await.with_context(|| format!("connecting to {}", socket.display()))?;
    there.write_all(format!("{}Connection: close\r\n\r\n", request.head).as_bytes()).await?;
    there.write_all(&request.body).await?;
    copy(&mut there, &mut stream).await?;
    stream.shutdown().await.context("ending a connection")
}

async fn read(reader: &mut BufReader<impl AsyncRead + Unpin>) -> Result<Request> {
    let mut first = String::new();
    reader.read_line(&mut first).await?;
    let mut parts = first.split_whitespace();
    let (method, target) = (parts.next().context("no method")?.to_owned(), parts.next().context("no target")?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    let mut headers = Vec::new();
    let mut head = first.clone();
    loop {
        let mut line = String::new();
        ensure!(reader.read_line(&mut line).await? > 0, "the request ends in its head");
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let name = name.to_ascii_lowercase();
        if name != "connection" {
            head.push_str(&line);
        }
        headers.push((name, value.trim().to_owned()));
    }
    let mut request = Request { method, path, query, headers, body: Vec::new(), head };
    let length: usize = request.header("content-length").unwrap_or("0").parse()?;
    ensure!(length <= MAX_BODY, "a body of {length} bytes");
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).await?;
    Ok(request)
}
