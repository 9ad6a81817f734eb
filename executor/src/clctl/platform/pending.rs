//! The bundle to approve, taken once: a file that was handed over, the staged file, or the executor's local API.
//!
//! What is read here is what is shown and applied; nobody reads it again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_api::digest::Sha256;
use agent_api::manifest::{Bundle, MAX_BYTES as MAX_MANIFEST, ManifestError};
use agent_api::names::PENDING_FILE;
use agent_api::pending::{MAX_BYTES, PendingBundle};
use agent_api::problem::Problem;
use agent_api::strict_json::{self, StrictJsonError};

use crate::access_folder::{AccessFolder, AccessFolderError};
use crate::error_code::{Code, Coded};
use crate::terminal::chain;

/// Where the bundle comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::clctl) enum Source {
    /// The manifest's bytes, handed over out of band.
    File(PathBuf),
    /// The same, or a copy of the staged document.
    Either(PathBuf),
    /// The executor's local API, reached through a port-forward.
    LocalApi {
        /// Base address.
        endpoint: String,
        /// The connector's namespace, for the command that is printed.
        namespace: String,
    },
    /// The staged file in the access folder.
    Staged(PathBuf),
}

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
pub(in crate::clctl) enum PendingError {
    /// Nothing is staged.
    #[error("no platform bundle is staged{0}")]
    NothingStaged(String),
    /// The file cannot be taken.
    #[error(transparent)]
    Folder(#[from] AccessFolderError),
    /// The file that was handed over.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The local API does not answer: there is no port-forward.
    #[error(
        "the executor's local API does not answer at {endpoint} ({problem})\nopen a port-forward, leave it open, and try again:\n\n  {command}\n"
    )]
    NoPortForward {
        /// Address.
        endpoint: String,
        /// What happened.
        problem: String,
        /// What to run.
        command: String,
    },
    /// The local API answers something else.
    #[error("{endpoint}: {problem}")]
    LocalApi {
        /// Address.
        endpoint: String,
        /// What it said.
        problem: String,
    },
    /// The document is not a pending bundle.
    #[error("the staged document is not readable: {0}")]
    Document(#[from] StrictJsonError),
    /// Its text is not that of its digest.
    #[error("the staged document says bundle {stated}, but its manifest has sha256 {actual}: it is damaged")]
    Digest {
        /// As stated.
        stated: Sha256,
        /// Of the text.
        actual: Sha256,
    },
    /// The manifest breaks a rule.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

impl Coded for PendingError {
    fn code(&self) -> Code {
        match self {
            Self::NothingStaged(_) => Code::NothingStaged,
            Self::Folder(error) => error.code(),
            Self::File { .. } => Code::BundleUnreadable,
            Self::NoPortForward { .. } => Code::LocalApiUnreachable,
            Self::LocalApi { .. } => Code::LocalApiAnswer,
            Self::Document(_) | Self::Digest { .. } => Code::StagedDamaged,
            Self::Manifest(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::NothingStaged(_) => vec!["see what the executor has: clicklink clctl status".into()],
            Self::Folder(error) => error.hints(),
            Self::Manifest(error) => error.hints(),
            // The command to run stands in the message.
            Self::NoPortForward { .. } => Vec::new(),
            Self::File { .. } | Self::LocalApi { .. } | Self::Document(_) | Self::Digest { .. } => Vec::new(),
        }
    }
}

/// A bundle, and what its staging tells.
#[derive(Debug)]
pub(in crate::clctl) struct Pending {
    pub(in crate::clctl) bundle: Bundle,
    /// The cluster that the executor that staged it manages.
    pub(super) cluster_uid: Option<String>,
    pub(super) received_at: Option<jiff::Timestamp>,
}

/// Takes the bundle.
pub(in crate::clctl) async fn take(source: &Source) -> Result<Pending, PendingError> {
    let document = match source {
        Source::File(path) => return from_file(path),
        Source::Either(path) => return from_either(path),
        Source::Staged(folder) => AccessFolder::open(folder)?
            .read(None, PENDING_FILE, MAX_BYTES)?
            .ok_or_else(|| PendingError::NothingStaged(format!(" in {}", folder.display())))?,
        Source::LocalApi { endpoint, namespace } => ask(endpoint, namespace).await?,
    };
    read(&document)
}

fn from_file(path: &Path) -> Result<Pending, PendingError> {
    let wrong = |problem: String| PendingError::File { path: path.to_owned(), problem };
    let size = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
    if size > MAX_MANIFEST as u64 {
        return Err(ManifestError::TooLarge(usize::try_from(size).unwrap_or(usize::MAX)).into());
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    Ok(Pending { bundle: Bundle::parse(text)?, cluster_uid: None, received_at: None })
}

/// A staged document is told by its manifest, which is a text there.
fn from_either(path: &Path) -> Result<Pending, PendingError> {
    #[derive(serde::Deserialize)]
    struct Staged {
        #[serde(rename = "manifest")]
        _manifest: String,
    }
    let wrong = |error: std::io::Error| PendingError::File { path: path.to_owned(), problem: error.to_string() };
    if std::fs::metadata(path).map_err(wrong)?.len() > MAX_BYTES {
        return from_file(path);
    }
    let document = std::fs::read(path).map_err(wrong)?;
    if serde_json::from_slice::<Staged>(&document).is_ok() { read(&document) } else { from_file(path) }
}

fn read(document: &[u8]) -> Result<Pending, PendingError> {
    let text = std::str::from_utf8(document).map_err(|error| StrictJsonError { path: String::new(), problem: error.to_string() })?;
    let pending: PendingBundle = strict_json::from_str(text)?;
    let actual = Sha256::of(pending.manifest.as_bytes());
    if actual != pending.sha256 {
        return Err(PendingError::Digest { stated: pending.sha256, actual });
    }
    Ok(Pending { bundle: Bundle::parse(pending.manifest)?, cluster_uid: pending.cluster_uid, received_at: Some(pending.received_at) })
}

async fn ask(endpoint: &str, namespace: &str) -> Result<Vec<u8>, PendingError> {
    let url = format!("{}/v1/platform/pending", endpoint.trim_end_matches('/'));
    let unanswered = |error: reqwest::Error| PendingError::NoPortForward {
        endpoint: endpoint.to_owned(),
        problem: chain(&error.without_url()),
        command: format!("kubectl -n {namespace} port-forward deployment/clicklink-connector-executor 9999:9999"),
    };
    let odd = |problem: String| PendingError::LocalApi { endpoint: endpoint.to_owned(), problem };
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(5))
        .timeout(Duration::from_secs(30))
        .build()
        .map_err(|error| odd(chain(&error)))?;
    let mut response = client.get(url).send().await.map_err(unanswered)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(unanswered)? {
        body.extend_from_slice(&piece);
        if body.len() as u64 > MAX_BYTES {
            return Err(odd(format!("the answer has more than {MAX_BYTES} bytes")));
        }
    }
    if status.is_success() {
        return Ok(body);
    }
    let detail = serde_json::from_slice::<Problem>(&body).map(|problem| problem.detail).ok();
    match (status.as_u16(), detail) {
        (404, Some(_)) => Err(PendingError::NothingStaged(String::new())),
        (_, Some(detail)) => Err(odd(format!("HTTP {status}: {detail}"))),
        (_, None) => Err(odd(format!("HTTP {status}: this is not the executor's local API"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn manifest() -> String {
        json!({"apiVersion": "clicklink.io/v1", "kind": "PlatformBundle", "environment": "env-1", "createdAt": "2026-11-30T10:00:00Z",
            "registry": {"mode": "anonymous", "chartBase": "oci://localhost:5000/charts"}, "namespaces": ["platform"],
            "components": [{"name": "a", "namespace": "platform", "release": "a", "chart": {"name": "a", "version": "1.0.0",
            "digest": format!("sha256:{}", "0".repeat(64))}}]})
        .to_string()
    }

    fn document(sha256: &Sha256, manifest: &str) -> String {
        json!({"sha256": sha256, "received_at": "2026-11-30T10:00:00Z", "cluster_uid": "u", "manifest": manifest}).to_string()
    }

    #[tokio::test]
    async fn the_staged_file_is_hashed_again() {
        let folder = tempfile::tempdir().unwrap();
        let source = Source::Staged(folder.path().to_owned());
        assert!(matches!(take(&source).await, Err(PendingError::NothingStaged(_))));
        let text = manifest();
        let sha256 = Sha256::of(text.as_bytes());
        let file = folder.path().join(PENDING_FILE);
        std::fs::write(&file, document(&sha256, &text)).unwrap();
        let pending = take(&source).await.unwrap();
        assert_eq!((pending.bundle.sha256(), pending.cluster_uid.as_deref()), (&sha256, Some("u")));
        std::fs::write(&file, document(&sha256, &text.replace("1.0.0", "1.0.1"))).unwrap();
        assert!(matches!(take(&source).await, Err(PendingError::Digest { .. })));
        std::fs::write(&file, "{").unwrap();
        assert!(matches!(take(&source).await, Err(PendingError::Document(_))));
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
        assert!(matches!(take(&source).await, Err(PendingError::Folder(AccessFolderError::NotRegular(_)))));
    }

    #[tokio::test]
    async fn a_file_is_the_manifest_itself() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), manifest()).unwrap();
        let pending = take(&Source::File(file.path().to_owned())).await.unwrap();
        assert_eq!((pending.cluster_uid, pending.received_at), (None, None));
    }

    #[tokio::test]
    async fn where_either_form_is_taken_a_staged_document_is_hashed_and_names_its_cluster() {
        let (file, text) = (tempfile::NamedTempFile::new().unwrap(), manifest());
        let (source, sha256) = (Source::Either(file.path().to_owned()), Sha256::of(text.as_bytes()));
        for (content, uid) in [(text.clone(), None), (document(&sha256, &text), Some("u"))] {
            std::fs::write(file.path(), content).unwrap();
            let pending = take(&source).await.unwrap();
            assert_eq!((pending.bundle.sha256(), pending.cluster_uid.as_deref()), (&sha256, uid));
        }
        std::fs::write(file.path(), document(&sha256, &text.replace("1.0.0", "1.0.1"))).unwrap();
        assert!(matches!(take(&source).await, Err(PendingError::Digest { .. })));
        std::fs::write(file.path(), "{").unwrap();
        assert!(matches!(take(&source).await, Err(PendingError::Manifest(_))));
    }

    #[tokio::test]
    async fn without_a_port_forward_the_command_is_told() {
        let source = Source::LocalApi { endpoint: "http://127.0.0.1:1".into(), namespace: "ns1".into() };
        let text = take(&source).await.unwrap_err().to_string();
        assert!(text.contains("kubectl -n ns1 port-forward deployment/clicklink-connector-executor 9999:9999"), "{text}");
    }
}
