//! `clctl init`, stopped at each of its steps and run again; against nobody, and against a real manager.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;
use system_tests::TempFolder;
use system_tests::landscape::Manager;

use crate::preflight::outcomes;
use crate::{Ended, clctl};

const INIT: [&str; 6] = ["--region", "eu-west-1", "--config", "{}/etc/config.yaml", "--state-dir", "{}/state"];

fn init(folder: &Path, entry: &[&str], stdin: &str) -> Ended {
    clctl(folder, &[&["init"], entry, &INIT].concat(), stdin)
}

#[test]
fn an_identity_is_on_disk_before_anything_is_asked() {
    let folder = TempFolder::new("command-line").unwrap();
    let etc = folder.path().join("etc");
    let enroll = ["--enroll", "https://127.0.0.1:1"];
    let read = |name: &str| std::fs::read_to_string(etc.join(name)).unwrap();
    let ended = init(folder.path(), &enroll, "token\n");
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.starts_with("error[manager_unreachable]: enrolment at "), "{}", ended.stderr);
    let (identity, key) = (read("pcm_infra_uuid"), read("tls/client.key"));
    for name in ["pcm_infra_uuid", "tls/client.key"] {
        assert_eq!(std::fs::metadata(etc.join(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    init(folder.path(), &enroll, "token\n");
    assert_eq!((read("pcm_infra_uuid"), read("tls/client.key")), (identity.clone(), key));

    let handoff = format!(
        "pcm_infra_uuid: {identity}organisation: navin\nendpoint: https://127.0.0.1:1\naccess_key: ak\nsecret_key: s3cret\nca: ''\n"
    );
    let file = folder.write("given.yaml", &handoff).unwrap();
    let given = init(folder.path(), &["--handoff", &file.display().to_string()], "");
    assert!(given.stderr.starts_with("error[manager_unreachable]: certificate signing at "), "{}", given.stderr);
    assert_eq!(read("secret-key"), "s3cret");
    let resumed = init(folder.path(), &enroll, "");
    assert!(resumed.stderr.contains("no token is asked for\nerror[manager_unreachable]: certificate signing at "), "{}", resumed.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enrolment_converges_wherever_it_was_stopped() {
    let manager = Manager::alone().await.unwrap();
    let folder = TempFolder::new("command-line").unwrap();
    let etc = folder.path().join("etc");
    let ca = manager.ca_file().display().to_string();
    let enroll = ["--enroll", manager.endpoint(), "--api-private-ca", &ca];

    let refused = init(folder.path(), &enroll, "no-such-token\n");
    assert!(refused.stderr.starts_with("error[enrolment_token_invalid]: "), "{}", refused.stderr);
    let token = manager.enrolment_token().await.unwrap() + "\n";
    let done = init(folder.path(), &enroll, &token);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains("clicklink clctl executor access grant --cluster --config <folder>/etc/config.yaml"), "{}", done.stderr);
    for left in ["handoff.yaml", "pcm_infra_uuid"] {
        assert!(!etc.join(left).exists(), "{left}");
    }

    let certificate = std::fs::read(etc.join("tls/client.crt")).unwrap();
    let config = std::fs::read_to_string(etc.join("config.yaml")).unwrap();
    let again = init(folder.path(), &enroll, "");
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stderr.contains("is kept; --force"), "{}", again.stderr);

    // Signed, but stopped before the configuration was written: nothing is asked anew.
    let secret = std::fs::read_to_string(etc.join("secret-key")).unwrap();
    let access = std::fs::read_to_string(etc.join("access-key")).unwrap();
    let ca_pem = std::fs::read_to_string(etc.join("tls/ca.crt")).unwrap();
    let id = config.lines().find_map(|line| line.strip_prefix("pcm_infra_uuid: ")).unwrap().to_owned();
    let handoff = json!({"pcm_infra_uuid": id, "organisation": "navin", "endpoint": manager.endpoint(), "access_key": access,
        "secret_key": secret, "ca": ca_pem});
    std::fs::write(etc.join("handoff.yaml"), handoff.to_string()).unwrap();
    std::fs::write(etc.join("pcm_infra_uuid"), &id).unwrap();
    std::fs::remove_file(etc.join("config.yaml")).unwrap();
    let resumed = init(folder.path(), &enroll, "");
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(std::fs::read_to_string(etc.join("config.yaml")).unwrap(), config);
    assert_eq!(std::fs::read(etc.join("tls/client.crt")).unwrap(), certificate);

    // Signed, but the certificate never reached the disk: the manager's 409 is explained.
    std::fs::write(etc.join("handoff.yaml"), handoff.to_string()).unwrap();
    std::fs::remove_file(etc.join("config.yaml")).unwrap();
    std::fs::write(etc.join("pcm_infra_uuid"), &id).unwrap();
    std::fs::remove_file(etc.join("tls/client.crt")).unwrap();
    let lost = init(folder.path(), &enroll, "");
    assert_eq!(lost.code, 1);
    assert!(lost.stderr.contains("error[certificate_unexpired]: certificate signing: the manager answered 409"), "{}", lost.stderr);
    assert!(lost.stderr.contains("hint: if a former run was interrupted here"), "{}", lost.stderr);
    std::fs::write(etc.join("tls/client.crt"), &certificate).unwrap();
    assert_eq!(init(folder.path(), &enroll, "").code, 0);

    // --force keeps the identity, and says before what the manager will answer.
    let forced = init(folder.path(), &[enroll.as_slice(), &["--force"]].concat(), &(manager.enrolment_token().await.unwrap() + "\n"));
    assert!(forced.stderr.contains("until then the manager answers 409"), "{}", forced.stderr);
    assert!(forced.stderr.contains("error[certificate_unexpired]: enrolment: the manager answered 409"), "{}", forced.stderr);
    assert_eq!(std::fs::read_to_string(etc.join("config.yaml")).unwrap(), config);
    assert!(!etc.join("handoff.yaml").exists());

    let preflight = clctl(folder.path(), &["preflight", "--config", "{}/etc/config.yaml", "-o", "json"], "");
    let found = outcomes(&preflight);
    for category in ["config", "files", "network", "certificate", "clock", "disk"] {
        assert!(found.iter().all(|(of, outcome)| of != category || outcome != "fail"), "{category}: {}", preflight.stdout);
        assert!(found.contains(&(category.to_owned(), "pass".to_owned())), "{category}: {}", preflight.stdout);
    }
    assert_eq!(preflight.code, 0, "{}", preflight.stdout);
}
