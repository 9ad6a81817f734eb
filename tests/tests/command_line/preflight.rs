//! `clctl preflight` on machines where little or nothing is there.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;
use system_tests::TempFolder;

use crate::{Ended, NOBODY, clctl, write_config};

/// Outcomes by category.
pub(crate) fn outcomes(ended: &Ended) -> Vec<(String, String)> {
    let findings: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout));
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    for finding in &findings {
        let to_mend = ["fail", "warn"].contains(&finding["outcome"].as_str().unwrap());
        assert_eq!(finding["fix"].is_string(), to_mend, "{finding}");
    }
    findings.iter().map(|finding| (text(finding, "category"), text(finding, "outcome"))).collect()
}

#[test]
fn preflight_says_for_each_failure_what_mends_it() {
    let folder = TempFolder::new("command-line").unwrap();
    let run = || clctl(folder.path(), &["preflight", "--config", "{}/config.yaml", "-o", "json", "--timeout", "20s"], "");
    let has = |ended: &Ended, category: &str, outcome: &str| {
        assert!(outcomes(ended).contains(&(category.to_owned(), outcome.to_owned())), "{category} {outcome}: {}", ended.stdout);
    };
    let empty = run();
    assert_eq!(empty.code, 2, "{}", empty.stderr);
    has(&empty, "config", "fail");
    for category in ["files", "network", "certificate", "clock", "cluster", "registry", "disk"] {
        has(&empty, category, "skip");
    }
    has(&empty, "engine", "pass");

    write_config(folder.path(), NOBODY);
    let bare = run();
    assert_eq!(bare.code, 2, "{}", bare.stderr);
    has(&bare, "config", "pass");
    for category in ["files", "network", "certificate", "disk"] {
        has(&bare, category, "fail");
    }
    has(&bare, "cluster", "warn");

    for (name, mode) in [("secret-key", 0o644), ("access-key", 0o600)] {
        let file = folder.path().join(name);
        std::fs::write(&file, "k").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let yaml = clctl(folder.path(), &["preflight", "--config", "{}/config.yaml", "-o", "yaml"], "");
    let findings: Value = serde_saphyr::from_str(&yaml.stdout).unwrap();
    let json: Value = serde_json::from_str(&run().stdout).unwrap();
    let categories = |findings: &Value| findings.as_array().unwrap().iter().map(|one| one["category"].clone()).collect::<Vec<_>>();
    assert_eq!((yaml.code, categories(&findings)), (2, categories(&json)), "{}", yaml.stdout);
    let open = clctl(folder.path(), &["preflight", "--config", "{}/config.yaml"], "");
    assert_eq!(open.code, 2);
    assert!(open.stdout.contains("fix: chmod 0600 <folder>/secret-key\n"), "{}", open.stdout);
    assert!(open.stdout.contains("pass  files       <folder>/access-key (mode 0600)\n"), "{}", open.stdout);
}
