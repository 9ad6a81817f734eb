//! A chart in one text file: what it is there for, then each of its files under a line `-- path --`.
//!
//! Paths are the chart's own, but for these: `(values)` is given to the release; `(fails)` are texts that must be in both refusals, one
//! a line; `(kubectl refuses)` is what kubectl says of objects that we judge ourselves, later and by other rules; `(made up)` are the
//! functions whose results are chance or time, one a line. A path through `x.tgz/` goes into a packed sub-chart. After a path, `(crlf)`, `(bom)` and `(no end)` say which bytes are written: CRLF for every line's end, a byte
//! order mark before the first line, no line's end after the last one. A folder of a chart without `Chart.yaml` gets a plain one.

#![expect(clippy::unwrap_used, reason = "a case that is wrong fails the test by panicking")]

use std::collections::BTreeMap;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value};

/// The chart's name, and its folder's.
pub const NAME: &str = "c";

/// One chart, and what is known of it.
#[derive(Debug, Clone, Default)]
pub struct Case {
    /// `folder/construct`.
    pub name: String,
    /// Bytes by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Given to the release.
    pub values: Map<String, Value>,
    /// Texts of both refusals.
    pub fails: Vec<String>,
    /// What kubectl says of objects that we judge ourselves.
    pub kubectl_refuses: Vec<String>,
    /// Functions whose results are chance or time.
    pub made_up: Vec<String>,
}

/// Every construct that charts use (`tests/corpus`), by name.
///
/// # Panics
/// A case is not written as it has to be.
#[must_use]
pub fn corpus() -> Vec<Case> {
    all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus"))
}

fn all(folder: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for group in entries(folder).into_iter().filter(|path| path.is_dir()) {
        for file in entries(&group) {
            let name = format!("{}/{}", name_of(&group), name_of(&file));
            cases.push(Case::parse(&name, &std::fs::read_to_string(&file).unwrap()));
        }
    }
    cases
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

impl Case {
    fn parse(name: &str, text: &str) -> Self {
        let mut case = Self { name: name.to_owned(), ..Self::default() };
        let mut sections: Vec<(&str, String)> = Vec::new();
        for line in text.lines() {
            match line.strip_prefix("-- ").and_then(|rest| rest.strip_suffix(" --")) {
                Some(title) => sections.push((title, String::new())),
                None => {
                    if let Some((_, content)) = sections.last_mut() {
                        content.push_str(line);
                        content.push('\n');
                    }
                }
            }
        }
        assert!(!text.starts_with("--") && !sections.is_empty(), "{name}: it does not say what it is there for, or has no files");
        for (title, content) in sections {
            match title {
                "(values)" => case.values = serde_json::from_str(&content).unwrap_or_else(|error| panic!("{name}: values: {error}")),
                "(fails)" => case.fails = content.lines().map(str::to_owned).collect(),
                "(kubectl refuses)" => case.kubectl_refuses = content.lines().map(str::to_owned).collect(),
                "(made up)" => case.made_up = content.lines().map(str::to_owned).collect(),
                file => {
                    let (path, bytes) = written(file, &content);
                    assert!(case.files.insert(path.clone(), bytes).is_none(), "{name}: {path} is there twice");
                }
            }
        }
        case.complete();
        case
    }

    /// A chart of one template, with default values and values over them.
    #[must_use]
    pub fn of(name: &str, template: &str, defaults: &str, values: Map<String, Value>) -> Self {
        let files = [("templates/x.yaml", template), ("values.yaml", defaults)];
        let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
        let mut case = Self { name: name.to_owned(), files: files.into(), values, ..Self::default() };
        case.complete();
        case
    }

    fn complete(&mut self) {
        let mut folders = vec![(String::new(), NAME.to_owned())];
        for path in self.files.keys() {
            let mut parts = path.split('/').collect::<Vec<_>>();
            while parts.len() > 1 {
                parts.pop();
                if parts.len() > 1 && parts[parts.len() - 2] == "charts" && !parts[parts.len() - 1].contains('.') {
                    folders.push((format!("{}/", parts.join("/")), parts[parts.len() - 1].to_owned()));
                }
            }
        }
        for (folder, name) in folders {
            let plain = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
            self.files.entry(format!("{folder}Chart.yaml")).or_insert_with(|| plain.into_bytes());
        }
    }

    /// The chart as an archive.
    ///
    /// # Panics
    /// Never for bytes in memory.
    #[must_use]
    pub fn archive(&self) -> Vec<u8> {
        archive(NAME, &self.files)
    }
}

fn written(title: &str, content: &str) -> (String, Vec<u8>) {
    let (mut path, mut content) = (title, content.to_owned());
    while let Some((rest, how)) = path.rsplit_once(' ') {
        content = match how {
            "(crlf)" => content.replace('\n', "\r\n"),
            "(bom)" => format!("\u{feff}{content}"),
            "end)" => {
                path = rest.strip_suffix(" (no").unwrap_or(rest);
                content.pop();
                continue;
            }
            _ => break,
        };
        path = rest;
    }
    (path.to_owned(), content.into_bytes())
}

/// A gzipped tar of one folder; files below `x.tgz/` are packed into it.
fn archive(folder: &str, files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut plain = BTreeMap::new();
    let mut packed: BTreeMap<String, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
    for (path, bytes) in files {
        match path.split_once(".tgz/") {
            Some((outer, inner)) => packed.entry(format!("{outer}.tgz")).or_default().insert(inner.to_owned(), bytes.clone()),
            None => plain.insert(path.clone(), bytes.clone()),
        };
    }
    for (path, files) in packed {
        let folder = path.rsplit('/').next().unwrap().split('-').next().unwrap().to_owned();
        plain.insert(path, archive(&folder, &files));
    }
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, bytes) in plain {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("{folder}/{path}"), bytes.as_slice()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}
