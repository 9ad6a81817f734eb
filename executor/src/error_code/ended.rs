//! Codes that are no error of a program: why a command ended without success, and what the local API answers. Their pages lie with the
//! others, and the index lists them behind the others.

use executor_core::EndCode;

use crate::local_api::CODES as LOCAL;

/// The code of a result's `code`, if this version knows it.
pub(crate) fn of_result(name: &str) -> Option<EndCode> {
    EndCode::ALL.iter().copied().find(|code| code.as_str() == name)
}

/// The index's part on them.
pub(super) fn index() -> String {
    let mut text = String::from(
        "\n## Commands that failed\n\nThe `code` of a command's result, as `clicklink clctl commands get` shows it. A refusal's text ends with the \
         command to run.\n\n| code | meaning |\n| --- | --- |\n",
    );
    for code in EndCode::ALL {
        let (name, meaning) = (code.as_str(), code.meaning());
        text.push_str(&format!("| [`{name}`]({name}.md) | {meaning} |\n"));
    }
    text.push_str(
        "\n## Problem documents of the local API\n\nThose of navin-manager have [an index of their own](http/README.md).\n\n\
         | code | status | meaning |\n| --- | --- | --- |\n",
    );
    for code in LOCAL {
        let (name, status, meaning) = (code.name, code.status.as_u16(), code.meaning);
        text.push_str(&format!("| [`{name}`](http/{name}.md) | {status} | {meaning} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::super::Code;
    use super::*;

    fn pages() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors")
    }

    #[test]
    fn every_end_has_its_page() {
        let names: BTreeSet<&str> = EndCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), EndCode::ALL.len(), "a name is there twice");
        assert!(Code::ALL.iter().all(|code| !names.contains(code.name())), "a page has one meaning");
        for code in EndCode::ALL {
            let text = std::fs::read_to_string(pages().join(format!("{}.md", code.as_str()))).unwrap();
            let heading = format!("# `{}`\n\n{}\n\nThe `code` of a command that failed.\n", code.as_str(), code.meaning());
            assert!(text.starts_with(&heading), "{code:?}: it must begin with\n{heading}");
            assert!(text.contains("\n## Why\n") && text.contains("\n## What to do\n"), "{code:?}: a section is missing");
            assert_eq!(of_result(code.as_str()), Some(*code));
        }
    }

    /// Whose a page is, it says itself; navin-manager's own test looks at the others.
    #[test]
    fn every_code_of_the_local_api_has_its_page_and_every_page_its_code() {
        let mut found = BTreeSet::new();
        for entry in std::fs::read_dir(pages().join("http")).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let Some(line) = text.lines().find(|line| line.starts_with("HTTP ")) else { continue };
            let ours = line.contains("the executor's local API");
            assert!(ours || line.contains("navin-manager"), "{}: nobody answers so", path.display());
            if ours {
                found.insert((path.file_stem().unwrap().to_string_lossy().into_owned(), line[5..8].to_owned()));
            }
        }
        let expected: BTreeSet<(String, String)> =
            LOCAL.iter().map(|code| (code.name.to_owned(), code.status.as_str().to_owned())).collect();
        assert_eq!(found, expected);
    }
}
