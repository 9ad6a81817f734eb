//! A chart's archive, bounded before anything else reads it: size, files, names, links, and archives inside it.

use std::collections::BTreeSet;
use std::io::Read;

use flate2::read::MultiGzDecoder;

/// Largest archive, compressed: 10 MiB. Large public charts have 0.2–3 MB.
pub const MAX_COMPRESSED: u64 = 10 << 20;
/// Largest sum of all files, nested archives unpacked: 64 MiB.
pub const MAX_UNPACKED: u64 = 64 << 20;
/// Most entries, nested archives' included.
pub const MAX_FILES: usize = 10_000;
/// Longest path of a file, in bytes.
pub const MAX_PATH: usize = 512;
/// How deep sub-charts may be packed into one another.
pub const MAX_NESTED: usize = 5;

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Over [`MAX_COMPRESSED`].
    #[error("the archive has {0} bytes; at most {MAX_COMPRESSED} are allowed")]
    Compressed(u64),
    /// Over [`MAX_UNPACKED`].
    #[error("{0}: the archive unpacks to more than {MAX_UNPACKED} bytes")]
    Unpacked(String),
    /// Over [`MAX_FILES`].
    #[error("the archive has more than {MAX_FILES} files")]
    Files,
    /// Over [`MAX_NESTED`].
    #[error("{0}: archives are nested more than {MAX_NESTED} deep")]
    Nested(String),
    /// An absolute path, one that leaves the chart, one with odd characters, or too long.
    #[error("{0:?}: not a file name that a chart may have")]
    Name(String),
    /// Two entries with one path.
    #[error("{0}: the file is there twice")]
    Twice(String),
    /// Two folders at the top, or a file outside the chart's folder.
    #[error("{0}: the file lies outside the chart's folder")]
    Outside(String),
    /// A link, device, pipe or another thing that is neither file nor folder.
    #[error("{0}: neither a file nor a folder")]
    Type(String),
    /// No `Chart.yaml` at its place.
    #[error("the archive has no <chart>/Chart.yaml")]
    NoChart,
    /// Not a gzipped tar, or a damaged one.
    #[error("{path}: the archive is not readable")]
    Unreadable {
        /// The archive: empty for the outer one's name.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// What is still allowed.
struct Budget {
    bytes: u64,
    files: usize,
}

/// Checks an archive whole, with the archives of sub-charts inside it.
///
/// # Errors
/// The first thing that breaks a bound, by name.
pub fn check(archive: &[u8]) -> Result<(), ArchiveError> {
    if archive.len() as u64 > MAX_COMPRESSED {
        return Err(ArchiveError::Compressed(archive.len() as u64));
    }
    check_level(archive, "chart archive", 0, &mut Budget { bytes: MAX_UNPACKED, files: MAX_FILES })
}

fn check_level(archive: &[u8], name: &str, depth: usize, budget: &mut Budget) -> Result<(), ArchiveError> {
    let unreadable = |source| ArchiveError::Unreadable { path: name.to_owned(), source };
    // Bounds what is inflated, headers and padding included, not only what headers claim.
    let inflated = MultiGzDecoder::new(archive).take(2 * MAX_UNPACKED);
    let mut tar = tar::Archive::new(inflated);
    let mut seen = BTreeSet::new();
    let mut top: Option<String> = None;
    let mut has_chart = false;
    for entry in tar.entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        budget.files = budget.files.checked_sub(1).ok_or(ArchiveError::Files)?;
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() {
            continue;
        }
        let path = checked_path(&entry.path_bytes())?;
        if kind.is_dir() {
            continue;
        }
        if !kind.is_file() {
            return Err(ArchiveError::Type(path));
        }
        let Some((folder, inner)) = path.split_once('/') else { return Err(ArchiveError::Outside(path)) };
        if *top.get_or_insert_with(|| folder.to_owned()) != folder {
            return Err(ArchiveError::Outside(path));
        }
        if !seen.insert(path.clone()) {
            return Err(ArchiveError::Twice(path));
        }
        has_chart |= inner == "Chart.yaml";
        let bytes = read_bounded(&mut entry, &path, name, budget)?;
        if is_subchart(inner) {
            if depth + 1 > MAX_NESTED {
                return Err(ArchiveError::Nested(path));
            }
            check_level(&bytes, &path, depth + 1, budget)?;
        }
    }
    if has_chart { Ok(()) } else { Err(ArchiveError::NoChart) }
}

fn read_bounded(entry: &mut impl Read, path: &str, archive: &str, budget: &mut Budget) -> Result<Vec<u8>, ArchiveError> {
    let mut bytes = Vec::new();
    let read = entry.take(budget.bytes + 1).read_to_end(&mut bytes);
    let read = read.map_err(|source| ArchiveError::Unreadable { path: archive.to_owned(), source })? as u64;
    budget.bytes = budget.bytes.checked_sub(read).ok_or_else(|| ArchiveError::Unpacked(path.to_owned()))?;
    Ok(bytes)
}

/// What Helm unpacks as a sub-chart: a `.tgz` directly in `charts/`, at any depth of folders, names beginning with `_` or `.` aside.
fn is_subchart(inner: &str) -> bool {
    let mut parts = inner.split('/').rev();
    let (name, folder) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    folder == "charts" && name.ends_with(".tgz") && !name.starts_with(['_', '.'])
}

/// A path as Helm reads it, where it reads it in one way only.
fn checked_path(bytes: &[u8]) -> Result<String, ArchiveError> {
    let refused = || ArchiveError::Name(String::from_utf8_lossy(bytes).chars().take(MAX_PATH).collect());
    let path = std::str::from_utf8(bytes).map_err(|_| refused())?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let odd = |part: &str| part.is_empty() || part == "." || part == "..";
    let plain = |c: char| !c.is_control() && c != '\\';
    let drive = |part: &str| part.len() == 2 && part.ends_with(':');
    if path.len() > MAX_PATH || !path.chars().all(plain) || path.split('/').any(|part| odd(part) || drive(part)) {
        return Err(refused());
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests;
