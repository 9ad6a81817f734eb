//! Renderings are kept on a disk that is full: what a person is shown stays the same, one warning says it, and no part of a file is left.

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use system_tests::bundle::{self, Edition};
use system_tests::landscape::MountNamespace;
use system_tests::{ControlPlane, Registry, TempFolder, binaries};

/// The size of the disk, the cache folder, where to write what comes of it; then the command, which is run twice, and what was kept is taken out.
const SCRIPT: &str = "mount -t tmpfs -o \"size=$1,mode=700\" tmpfs \"$2\"; cache=\"$2\"; out=\"$3\"; shift 3; \
                      for run in 1 2; do \"$@\" >\"$out/stdout.$run\" 2>\"$out/stderr.$run\"; done; cp -r \"$cache\" \"$out/kept\"";
const PATIENCE: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_keeps_nobody_from_rendering() {
    let mounts = match MountNamespace::find() {
        Ok(mounts) => mounts,
        Err(refused) => return eprintln!("skipped: this machine allows no mount namespace: {refused:#}"),
    };
    let (cluster, registry) = tokio::join!(ControlPlane::shared(), Registry::start_anonymous());
    let release = bundle::push(&registry, Edition::First).await.unwrap();
    let manifest = release.manifest("env-test", "2026-11-30T10:00:00Z").to_string();

    // Room for all, for some of the files, and for none of them.
    let mut plans = Vec::new();
    for (size, warned, whole) in [("16m", 0, 3..), ("32k", 1, 1..), ("4k", 1, 0..)] {
        let home = TempFolder::new("full-disk").unwrap();
        let (cache, out) = (home.folder("cache").unwrap(), home.folder("out").unwrap());
        let bundle = home.write("bundle.json", &manifest).unwrap();
        let program = mounts.program("full-disk", SCRIPT).only_given_env().env("PATH", std::env::var("PATH").unwrap());
        let program = program.env("HOME", home.path()).env("XDG_CACHE_HOME", &cache).arg(size).arg(&cache).arg(&out);
        let program = program.arg(&binaries().clicklink).args(["clctl", "platform", "approve", "--dry-run", "-o", "json", "--kubeconfig"]);
        let program = program.arg(cluster.admin_kubeconfig()).arg("--bundle").arg(bundle).arg("--registry-ca-file").arg(registry.ca_file());
        program.run(&home, PATIENCE).await.unwrap().ok().unwrap();
        let text = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
        for run in ["1", "2"] {
            let stderr = text(&format!("stderr.{run}"));
            assert_eq!(stderr.matches("warning: there is no room to keep renderings in ").count(), warned, "{size}, run {run}: {stderr}");
            plans.push(text(&format!("stdout.{run}")));
        }
        let folder = out.join("kept/clicklink/renders");
        let kept: Vec<_> = folder.read_dir().map(|files| files.map(|file| file.unwrap()).collect()).unwrap_or_default();
        assert!(whole.contains(&kept.len()), "{size}: {} files", kept.len());
        for file in &kept {
            assert!(is_whole(&std::fs::read(file.path()).unwrap(), &file.file_name().to_string_lossy()), "{size}: {file:?} is torn");
        }
    }
    assert!(plans.iter().all(|plan| plan == &plans[0] && plan.contains("clicklink.io/plan/v1")), "{}", plans[0]);
}

/// Three lines of a head, of which the second is the file's name and the third the digest of all that follows.
fn is_whole(file: &[u8], name: &str) -> bool {
    let mut parts = file.splitn(4, |byte| *byte == b'\n');
    let (_, key, digest, answer) = (parts.next(), parts.next(), parts.next(), parts.next());
    let found = answer.map(|answer| Sha256::digest(answer).iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    key == Some(name.as_bytes()) && found.is_some() && digest == found.as_ref().map(String::as_bytes)
}
