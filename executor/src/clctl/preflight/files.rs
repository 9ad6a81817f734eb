//! Credential files: there, readable, and readable by nobody else.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::finding::Findings;
use crate::config::Config;

pub(super) fn check(config: &Config, findings: &mut Findings) {
    let api = &config.api;
    for secret in [&api.access_key_file, &api.secret_key_file, &api.tls.key_file] {
        file(secret, true, findings);
    }
    file(&api.tls.cert_file, false, findings);
    if api.tls.ca_file.exists() {
        file(&api.tls.ca_file, false, findings);
    }
    folder(&config.executor.access_dir, findings);
}

fn file(path: &Path, secret: bool, findings: &mut Findings) {
    let name = path.display();
    // Opened, not only looked at: rights of the folders above count, too.
    match std::fs::File::open(path).and_then(|file| file.metadata()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            findings.fail(format!("{name} is not there"), "enrol with: clicklink clctl init --enroll URL --region REGION");
        }
        Err(error) => findings.fail(format!("{name}: {error}"), "run this as the executor's user, and see that it owns the file"),
        Ok(metadata) if !metadata.is_file() => findings.fail(format!("{name} is not a regular file"), "put the file itself there"),
        Ok(metadata) if metadata.len() == 0 => {
            findings.fail(format!("{name} is empty"), "enrol anew with: clicklink clctl init --force --enroll URL --region REGION");
        }
        Ok(metadata) if secret && metadata.mode() & 0o077 != 0 => {
            findings.fail(format!("{name} may be read by others (mode {:04o})", metadata.mode() & 0o7777), format!("chmod 0600 {name}"));
        }
        Ok(metadata) => findings.pass(format!("{name} (mode {:04o})", metadata.mode() & 0o7777)),
    }
}

fn folder(path: &Path, findings: &mut Findings) {
    let name = path.display();
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_dir() => findings.fail(format!("{name} is not a folder"), format!("mkdir -m 0700 {name}")),
        Ok(metadata) if metadata.mode() & 0o022 != 0 => {
            findings.fail(format!("{name} may be written by others (mode {:04o})", metadata.mode() & 0o7777), format!("chmod 0700 {name}"));
        }
        Ok(metadata) => findings.pass(format!("{name} (mode {:04o})", metadata.mode() & 0o7777)),
        Err(error) => findings.fail(format!("{name}: {error}"), format!("mkdir -p -m 0700 {name}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::finding::{Category, Outcome};
    use super::*;

    #[test]
    fn a_secret_that_others_may_read_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret-key");
        let check = |expected: Outcome| {
            let mut findings = Findings::of(Category::Files);
            file(&path, true, &mut findings);
            assert_eq!(findings.found[0].outcome, expected, "{:?}", findings.found);
        };
        check(Outcome::Fail);
        std::fs::write(&path, "").unwrap();
        check(Outcome::Fail);
        std::fs::write(&path, "k").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        check(Outcome::Fail);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        check(Outcome::Pass);
    }
}
