//! A chart below the charts folder: an archive as it is, or a folder packed as `helm package` packs it.
//!
//! Links are followed, as mounted ConfigMaps need it, and must end within the charts folder. Names that begin with a dot are left out; what
//! `.helmignore` says is.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use render::archive::{self, ArchiveError, MAX_COMPRESSED, MAX_FILES, MAX_UNPACKED};

use super::ignore::{Ignored, PatternError};
use crate::reconcile::reason::Reason;

/// Why a local chart cannot be had. Paths are told from the charts folder.
#[derive(Debug, thiserror::Error)]
pub(super) enum LocalError {
    /// Nothing there.
    #[error("source.local: `{0}` is not in the charts folder")]
    Missing(String),
    /// It cannot be read.
    #[error("source.local: `{path}` cannot be read")]
    Read {
        /// The path.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A link that leads out of the folder.
    #[error("source.local: `{0}` leads out of the charts folder")]
    Outside(String),
    /// More files, or more bytes, than a chart may have.
    #[error("source.local: `{0}` has more than {MAX_FILES} files or {MAX_UNPACKED} bytes")]
    TooLarge(String),
    /// A line of `.helmignore`.
    #[error("source.local: `{path}`")]
    Ignore {
        /// The chart.
        path: String,
        /// The line.
        #[source]
        source: PatternError,
    },
    /// It breaks a bound.
    #[error("source.local: `{path}` is refused")]
    Archive {
        /// The chart.
        path: String,
        /// Why.
        #[source]
        source: ArchiveError,
    },
}

impl LocalError {
    /// The reason in the condition.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Missing(_) | Self::Read { .. } => Reason::ChartUnavailable,
            Self::Outside(_) | Self::TooLarge(_) | Self::Ignore { .. } | Self::Archive { .. } => Reason::ChartRefused,
        }
    }
}

/// The archive of a chart at a path below the folder. The same files give the same bytes.
pub(super) fn archive(folder: &Path, path: &str) -> Result<Vec<u8>, LocalError> {
    let read = |source| LocalError::Read { path: path.to_owned(), source };
    let root = folder.canonicalize().map_err(read)?;
    let chart = match root.join(path).canonicalize() {
        Ok(chart) if chart.starts_with(&root) => chart,
        Ok(_) => return Err(LocalError::Outside(path.to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(LocalError::Missing(path.to_owned())),
        Err(error) => return Err(read(error)),
    };
    let bytes = if chart.is_dir() {
        Packer { root, path, files: Vec::new(), bytes: 0 }.packed(&chart)?
    } else {
        let mut bytes = Vec::new();
        File::open(&chart).and_then(|file| file.take(MAX_COMPRESSED + 1).read_to_end(&mut bytes)).map_err(read)?;
        bytes
    };
    archive::check(&bytes).map_err(|source| LocalError::Archive { path: path.to_owned(), source })?;
    Ok(bytes)
}

struct Packer<'a> {
    root: PathBuf,
    path: &'a str,
    /// Name in the archive, content.
    files: Vec<(String, Vec<u8>)>,
    bytes: u64,
}

impl Packer<'_> {
    fn packed(mut self, chart: &Path) -> Result<Vec<u8>, LocalError> {
        let rules = match fs::read_to_string(chart.join(".helmignore")) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(self.read(error)),
        };
        let ignored = Ignored::parse(&rules).map_err(|source| LocalError::Ignore { path: self.path.to_owned(), source })?;
        self.add(chart, "", &ignored, 0)?;
        self.files.sort();
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (name, content) in &self.files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, format!("chart/{name}"), content.as_slice()).map_err(|error| self.read(error))?;
        }
        tar.into_inner().and_then(GzEncoder::finish).map_err(|error| self.read(error))
    }

    /// Adds what lies in a folder; `inside` is the folder's path in the chart.
    fn add(&mut self, folder: &Path, inside: &str, ignored: &Ignored, depth: usize) -> Result<(), LocalError> {
        for entry in fs::read_dir(folder).map_err(|error| self.read(error))? {
            let entry = entry.map_err(|error| self.read(error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let name = if inside.is_empty() { name } else { format!("{inside}/{name}") };
            let path = entry.path().canonicalize().map_err(|error| self.read(error))?;
            if !path.starts_with(&self.root) {
                return Err(LocalError::Outside(format!("{}/{name}", self.path)));
            }
            if ignored.matches(&name, path.is_dir()) {
                continue;
            }
            if path.is_dir() {
                // A link to a folder above would never end.
                if depth == 32 {
                    return Err(LocalError::TooLarge(self.path.to_owned()));
                }
                self.add(&path, &name, ignored, depth + 1)?;
            } else {
                self.file(&path, name)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: String) -> Result<(), LocalError> {
        let mut content = Vec::new();
        let left = MAX_UNPACKED.saturating_sub(self.bytes);
        File::open(path).and_then(|file| file.take(left + 1).read_to_end(&mut content)).map_err(|error| self.read(error))?;
        self.bytes += content.len() as u64;
        if self.bytes > MAX_UNPACKED || self.files.len() == MAX_FILES {
            return Err(LocalError::TooLarge(self.path.to_owned()));
        }
        self.files.push((name, content));
        Ok(())
    }

    fn read(&self, source: std::io::Error) -> LocalError {
        LocalError::Read { path: self.path.to_owned(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::os::unix::fs::symlink;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn names(archive: &[u8]) -> BTreeMap<String, String> {
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(archive));
        let read = |mut entry: tar::Entry<'_, flate2::read::GzDecoder<&[u8]>>| {
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (entry.path().unwrap().display().to_string(), text)
        };
        tar.entries().unwrap().map(|entry| read(entry.unwrap())).collect()
    }

    const CHART: &str = "name: redis\nversion: 1.0.0\n";

    #[test]
    fn a_folder_is_packed_without_what_is_ignored_and_always_the_same() {
        let folder = folder(&[
            ("redis/Chart.yaml", CHART),
            ("redis/.helmignore", "*.bak\nnotes/\n"),
            ("redis/templates/a.yaml", "a: 1"),
            ("redis/templates/a.yaml.bak", "old"),
            ("redis/notes/x", "x"),
            ("redis/.git/config", "x"),
        ]);
        let first = archive(folder.path(), "redis").unwrap();
        let expected = [("chart/Chart.yaml", CHART), ("chart/templates/a.yaml", "a: 1")];
        assert_eq!(names(&first), expected.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
        assert_eq!(first, archive(folder.path(), "redis").unwrap());
        fs::write(folder.path().join("redis.tgz"), &first).unwrap();
        assert_eq!(archive(folder.path(), "redis.tgz").unwrap(), first, "an archive is taken as it is");
    }

    #[test]
    fn a_mounted_configmap_is_read_through_its_links() {
        let folder = folder(&[("..2026/redis.tgz", "no archive"), ("..2026/Chart.yaml", CHART)]);
        symlink("..2026", folder.path().join("..data")).unwrap();
        fs::create_dir(folder.path().join("redis")).unwrap();
        symlink("../..data/Chart.yaml", folder.path().join("redis/Chart.yaml")).unwrap();
        assert_eq!(names(&archive(folder.path(), "redis").unwrap()).len(), 1);
    }

    #[test]
    fn what_cannot_be_had_or_is_refused_is_told_by_its_path() {
        let folder =
            folder(&[("redis/templates/a.yaml", "a: 1"), ("broken.tgz", "x"), ("bad/Chart.yaml", CHART), ("bad/.helmignore", "a/**")]);
        symlink("/etc", folder.path().join("out")).unwrap();
        fs::create_dir(folder.path().join("loop")).unwrap();
        symlink("../loop", folder.path().join("loop/again")).unwrap();
        fs::create_dir(folder.path().join("link")).unwrap();
        symlink("/etc/hostname", folder.path().join("link/Chart.yaml")).unwrap();
        for (path, reason, part) in [
            ("none", Reason::ChartUnavailable, "`none` is not in the charts folder"),
            ("redis", Reason::ChartRefused, "`redis` is refused"),
            ("broken.tgz", Reason::ChartRefused, "`broken.tgz` is refused"),
            ("out", Reason::ChartRefused, "`out` leads out"),
            ("link", Reason::ChartRefused, "`link/Chart.yaml` leads out"),
            ("loop", Reason::ChartRefused, "`loop` has more than"),
            ("bad", Reason::ChartRefused, "`bad`"),
        ] {
            let error = archive(folder.path(), path).unwrap_err();
            assert!(error.reason() == reason && error.to_string().contains(part), "{path}: {error}");
        }
    }
}
