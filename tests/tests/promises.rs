//! Every promise of docs/security.md has tests, and they are there under the names that the page gives them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How many there are.
const PROMISES: usize = 10;

#[test]
fn every_promise_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let tests = tests_of(root);
    let page = std::fs::read_to_string(root.join("docs/security.md")).unwrap();
    let rows: Vec<Vec<&str>> =
        page.lines().filter(|line| line.starts_with("| ")).map(|line| line.split('|').map(str::trim).collect()).collect();
    let promises: Vec<&Vec<&str>> = rows.iter().filter(|row| row[1].parse::<usize>().is_ok()).collect();
    let numbers: Vec<usize> = promises.iter().map(|row| row[1].parse().unwrap()).collect();
    assert_eq!(numbers, (1..=PROMISES).collect::<Vec<_>>());
    for row in promises {
        let named: Vec<&str> = row[3].split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "promise {} has no test", row[1]);
        for name in named {
            assert!(tests.contains(name), "promise {}: there is no test `{name}`", row[1]);
        }
    }
}

/// Names of all functions that are marked as tests.
fn tests_of(root: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in sources(root) {
        let text = std::fs::read_to_string(file).unwrap();
        let mut marked = false;
        for line in text.lines().map(str::trim_start) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                marked = true;
            } else if marked && let Some((_, rest)) = line.split_once("fn ") {
                names.extend(rest.split_once('(').map(|(name, _)| name.to_owned()));
                marked = false;
            }
        }
    }
    names
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            found.extend(sources(&path));
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
    found
}
