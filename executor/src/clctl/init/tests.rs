use super::*;

fn id(last: u8) -> ExecutorId {
    format!("019b0000-0000-7000-8000-0000000000{last:02}").parse().unwrap()
}

fn handoff(id: ExecutorId) -> Handoff {
    let secret_key = agent_api::secret::Secret::new("s3cret".into());
    Handoff {
        pcm_infra_uuid: id,
        organisation: "org-1".into(),
        endpoint: "https://127.0.0.1:1".into(),
        access_key: "ak".into(),
        secret_key,
        ca: String::new(),
    }
}

#[test]
fn an_identity_is_the_same_in_every_run() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    let settle = |given| identity::settle(&config, folder.path(), given);
    let first = settle(None).unwrap();
    assert_eq!(settle(None).unwrap(), first);
    assert!(matches!(settle(Some(id(1))), Err(InitError::OtherIdentity { .. })));
    std::fs::write(&config, format!("cloud: aws\npcm_infra_uuid: \"{}\"\n", id(2))).unwrap();
    assert_eq!(settle(None).unwrap(), id(2), "the configuration outranks what an interrupted run left");
    let key = |path: &Path| identity::key(path).unwrap().serialize_pem();
    let path = folder.path().join("client.key");
    assert_eq!(key(&path), key(&path));
    std::fs::write(&path, "nonsense").unwrap();
    assert!(matches!(identity::key(&path), Err(InitError::Key(_))));
}

#[test]
fn a_handoff_resumes_its_own_executor_and_is_told_without_its_secret() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    assert!(handoff::resume(folder.path(), id(1)).unwrap().is_none());
    handoff::keep(folder.path(), &handoff(id(1))).unwrap();
    let file = folder.path().join(handoff::FILE);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(handoff::resume(folder.path(), id(1)).unwrap().unwrap().secret_key.expose(), "s3cret");
    assert!(matches!(handoff::resume(folder.path(), id(2)), Err(InitError::OtherIdentity { .. })));
    std::fs::write(&file, "secret_key: [s3cret]\n").unwrap();
    let told = handoff::resume(folder.path(), id(1)).unwrap_err().to_string();
    assert!(told.contains("not a handoff") && !told.contains("s3cret"), "{told}");
    handoff::clear(folder.path()).unwrap();
    handoff::clear(folder.path()).unwrap();
}

/// Root runs `init` on a connector VM; the executor's own user has to read what it wrote.
#[test]
fn what_root_makes_belongs_to_whom_the_folder_belongs() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = tempfile::tempdir().unwrap();
    let mine = std::fs::metadata(folder.path()).unwrap().uid();
    let owner = if rustix::process::geteuid().is_root() { 12_345 } else { mine };
    std::os::unix::fs::chown(folder.path(), Some(owner), None).unwrap();
    let inner = folder.path().join("access/executor");
    write::folder(&inner).unwrap();
    write::file(&inner.join("key"), "k").unwrap();
    for path in [folder.path().join("access"), inner.clone(), inner.join("key")] {
        assert_eq!(std::fs::metadata(&path).unwrap().uid(), owner, "{}", path.display());
    }
}
