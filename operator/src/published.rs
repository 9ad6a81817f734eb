//! Tables of docs/operator.md that are what the tests hold: `UPDATE_DOCS=1 cargo test -p navin-operator` writes them.

use std::path::PathBuf;

/// Compares a table of the page with the lines it should have, or writes it.
pub(crate) fn check(name: &str, lines: &[String]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/operator.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let marker = format!("<!-- table: {name} -->\n");
    let (before, rest) = page.split_once(&marker).unwrap();
    let (found, after) = rest.split_once("<!-- end -->").unwrap();
    let expected: String = lines.iter().map(|line| format!("{line}\n")).collect();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{marker}{expected}<!-- end -->{after}")).unwrap();
    } else {
        assert!(found == expected, "table `{name}` of docs/operator.md is stale: UPDATE_DOCS=1 cargo test -p navin-operator");
    }
}
