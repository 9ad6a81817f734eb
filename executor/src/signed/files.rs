//! The credential files, and how key and certificate are replaced so that a crash at any moment leaves a pair that fits.
//!
//! Both are written whole beside their places, under names of their own, the certificate last; then both are renamed, the key first.
//! A start that finds the new certificate ends what was begun.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use agent_api::secret::Secret;
use agent_api::signature::KeyPair;

use super::SignedError;
use super::certificate::{Certificate, CertificateError};
use crate::config::Api;

/// Where the credentials lie.
#[derive(Debug)]
pub(super) struct Files {
    endpoint: String,
    access_key: PathBuf,
    secret_key: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    ca: PathBuf,
    /// Nobody reads a pair while it is replaced.
    replacing: Mutex<()>,
}

/// What they hold.
pub(super) struct Read {
    pub(super) key: KeyPair,
    /// Certificate and its key, PEM.
    pub(super) identity: Secret,
    pub(super) ca: Option<String>,
}

impl Files {
    pub(super) fn new(api: &Api) -> Self {
        Self {
            endpoint: api.endpoint.trim_end_matches('/').to_owned(),
            access_key: api.access_key_file.clone(),
            secret_key: api.secret_key_file.clone(),
            certificate: api.tls.cert_file.clone(),
            key: api.tls.key_file.clone(),
            ca: api.tls.ca_file.clone(),
            replacing: Mutex::new(()),
        }
    }

    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub(super) fn read(&self) -> Result<Read, SignedError> {
        let _pair = self.lock();
        Ok(Read {
            key: KeyPair {
                access_key: read(&self.access_key)?.trim().to_owned(),
                secret_key: Secret::new(read(&self.secret_key)?.trim().to_owned()),
            },
            identity: Secret::new(read(&self.certificate)? + "\n" + &read(&self.key)?),
            ca: if self.ca.exists() { Some(read(&self.ca)?) } else { None },
        })
    }

    pub(super) fn certificate(&self) -> Result<Certificate, CertificateError> {
        Certificate::parse(&std::fs::read_to_string(&self.certificate).map_err(CertificateError::File)?)
    }

    /// Replaces key and certificate.
    pub(super) fn replace(&self, key: &Secret, certificate: &str) -> Result<(), SignedError> {
        let _pair = self.lock();
        write(&next(&self.key), key.expose())?;
        if let Err(error) = write(&next(&self.certificate), certificate) {
            // It may have its name all the same; a new certificate without its key would be put beside the old key at the next start.
            let _ = std::fs::remove_file(next(&self.certificate));
            let _ = std::fs::remove_file(next(&self.key));
            return Err(error);
        }
        self.finish()
    }

    /// Ends what a crash interrupted, or another process has begun: both are new where the new certificate is there.
    pub(super) fn settle(&self) -> Result<(), SignedError> {
        let _pair = self.lock();
        if next(&self.certificate).exists() { self.finish() } else { Ok(()) }
    }

    /// Removes a key whose certificate never came. Only for who alone replaces the pair.
    pub(super) fn tidy(&self) {
        let _pair = self.lock();
        if !next(&self.certificate).exists() {
            // It is overwritten by the next renewal otherwise.
            let _ = std::fs::remove_file(next(&self.key));
        }
    }

    fn finish(&self) -> Result<(), SignedError> {
        rename(&self.key)?;
        rename(&self.certificate)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ()> {
        self.replacing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn next(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".next");
    path.with_file_name(name)
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> SignedError + '_ {
    move |source| SignedError::File { path: path.into(), source }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn read(path: &Path) -> Result<String, SignedError> {
    std::fs::read_to_string(path).map_err(failed(path))
}

/// Mode 0600 from its first moment, durable when it has its name.
fn write(path: &Path, text: &str) -> Result<(), SignedError> {
    let attempt = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".credential-").tempfile_in(folder(path))?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        File::open(folder(path))?.sync_all()
    };
    attempt().map_err(failed(path))
}

/// What is not there was renamed before.
fn rename(path: &Path) -> Result<(), SignedError> {
    match std::fs::rename(next(path), path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        renamed => renamed.and_then(|()| File::open(folder(path))?.sync_all()).map_err(failed(path)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::certificate::tests::self_signed;
    use super::*;
    use crate::config::Tls;

    fn files(folder: &Path) -> Files {
        for name in ["access", "secret"] {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        let (certificate, key) = self_signed("old");
        std::fs::write(folder.join("client.crt"), certificate).unwrap();
        std::fs::write(folder.join("client.key"), key).unwrap();
        Files::new(&Api {
            endpoint: "https://m".into(),
            access_key_file: folder.join("access"),
            secret_key_file: folder.join("secret"),
            tls: Tls { cert_file: folder.join("client.crt"), key_file: folder.join("client.key"), ca_file: folder.join("ca.crt") },
        })
    }

    fn organisation(files: &Files) -> String {
        reqwest::Identity::from_pem(files.read().unwrap().identity.expose().as_bytes()).unwrap();
        files.certificate().unwrap().organisation
    }

    /// A crash after each step of a replacement, then a start.
    #[test]
    fn a_crash_leaves_a_pair_that_fits() {
        let check = |crash: &dyn Fn(&Files, &str, &str), expected: &str| {
            let folder = tempfile::tempdir().unwrap();
            let files = files(folder.path());
            let (certificate, key) = self_signed("new");
            crash(&files, &certificate, &key);
            files.settle().unwrap();
            files.tidy();
            assert_eq!(organisation(&files), expected);
            let private = |entry: &std::fs::DirEntry| entry.metadata().unwrap().permissions().mode() & 0o777 == 0o600;
            let left: Vec<_> = folder.path().read_dir().unwrap().map(Result::unwrap).collect();
            assert_eq!(left.len(), 4, "{left:?}");
            assert!(expected == "old" || left.iter().filter(|entry| private(entry)).count() == 2);
        };
        check(&|_, _, _| {}, "old");
        check(&|files, _, key| write(&next(&files.key), key).unwrap(), "old");
        let both = |files: &Files, certificate: &str, key: &str| {
            write(&next(&files.key), key).unwrap();
            write(&next(&files.certificate), certificate).unwrap();
        };
        check(&both, "new");
        let half = |files: &Files, certificate: &str, key: &str| {
            both(files, certificate, key);
            rename(&files.key).unwrap();
        };
        check(&half, "new");
        check(&|files, certificate, key| files.replace(&Secret::new(key.into()), certificate).unwrap(), "new");
    }
}
