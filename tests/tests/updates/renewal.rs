//! The executor renews its own token on a real API server: in time, atomically, by the right to that one token, and says so when it can't.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;

use agent_api::names::{CLUSTER_DIR, HOME_NAMESPACE_VM as HOME, PCM_EXECUTOR};
use anyhow::ensure;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use system_tests::eventually;
use system_tests::landscape::{Landscape, Narrator, SOON};

/// What is asked for, in the configuration: 40 minutes.
const REQUESTED: SignedDuration = SignedDuration::from_mins(40);
const ROLE: &str = "pcm-executor-token";

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_nears_its_end_is_renewed_and_used_and_a_failure_is_told_once() {
    let mut landscape = Landscape::enrolled(&Narrator::silent()).await.unwrap();
    landscape.connector.grant_access().await.unwrap();
    let config = landscape.connector.config();
    let text = std::fs::read_to_string(&config).unwrap();
    let more = "token_renew: {sweep_interval: 1s, requested_ttl: 40m}\nobservability: {log_level: 'info,clicklink::token_renewal=debug'}\n";
    std::fs::write(config, text + more).unwrap();

    // Without the right: told once, with code and next step; the token stays, and the heartbeat says that it ends soon.
    let binding = landscape.control_plane.kubectl(&["get", "rolebinding", ROLE, "-n", HOME, "-o", "json"]).await.unwrap().ok().unwrap();
    landscape.control_plane.kubectl(&["delete", "rolebinding", ROLE, "-n", HOME]).await.unwrap().ok().unwrap();
    let former = nearly_ended(&landscape).await;
    landscape.connector.start_executor().unwrap();
    landscape.until_logged(0, &["WARN", "token_not_renewed", "cannot create resource", "executor access grant --cluster --force"]).await;
    until_access(&landscape, "expiring").await;
    assert_eq!(told_after_more_sweeps(&landscape).await, 1, "a failure that lasts is told once");
    assert_eq!(std::fs::read_to_string(token(&landscape)).unwrap(), former);

    // The right comes back, and the next sweep takes it.
    landscape.control_plane.apply(&binding.stdout).await.unwrap();
    until_renewed(&landscape, &former).await;
    landscape.until_logged(0, &["the access bundle was replaced"]).await;
    until_access(&landscape, "ok").await;
    let renewed = std::fs::read_to_string(token(&landscape)).unwrap();
    lasts_as_asked(&renewed);
    assert_eq!(who(&landscape, &renewed).await, format!("system:serviceaccount:{HOME}:{PCM_EXECUTOR}"));

    // A link in its place is neither followed nor left.
    let elsewhere = landscape.connector.folder().write("elsewhere", &former).unwrap();
    std::fs::remove_file(token(&landscape)).unwrap();
    std::os::unix::fs::symlink(&elsewhere, token(&landscape)).unwrap();
    let mark = landscape.executor_log_length();
    landscape.until_logged(mark, &["WARN", "token_not_renewed", "links are not followed"]).await;
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), former);

    // The executor runs on, and a token that is put there is used at once.
    std::fs::remove_file(token(&landscape)).unwrap();
    let former = nearly_ended(&landscape).await;
    until_renewed(&landscape, &former).await;
    until_access(&landscape, "ok").await;
    landscape.connector.executor().ensure_running().unwrap();
}

fn token(landscape: &Landscape) -> PathBuf {
    landscape.connector.access_dir().join(CLUSTER_DIR).join("token")
}

/// Puts a token of `pcm-executor` there that was issued yesterday and ends in five minutes, as a person would: by one rename.
async fn nearly_ended(landscape: &Landscape) -> String {
    let plane = &landscape.control_plane;
    let get = ["get", "serviceaccount", PCM_EXECUTOR, "-n", HOME, "-o", "jsonpath={.metadata.uid}"];
    let uid = plane.kubectl(&get).await.unwrap().ok().unwrap().stdout;
    let (age, left) = (SignedDuration::from_hours(24), SignedDuration::from_mins(5));
    let signed = plane.sign_aged_token(HOME, PCM_EXECUTOR, &uid, age, left).unwrap().token;
    let beside = landscape.connector.folder().write("token-of-yesterday", &signed).unwrap();
    std::fs::rename(beside, token(landscape)).unwrap();
    signed
}

/// Another token, a file of its own, readable by its owner only, and nothing left beside it.
async fn until_renewed(landscape: &Landscape, former: &str) {
    let before = std::fs::metadata(token(landscape)).unwrap().ino();
    eventually("another token", SOON, || async {
        ensure!(std::fs::read_to_string(token(landscape))? != former, "it is the former one");
        Ok(())
    })
    .await;
    let file = std::fs::symlink_metadata(token(landscape)).unwrap();
    assert_ne!(file.ino(), before, "it was replaced, not written over");
    assert_eq!((file.is_file(), file.permissions().mode() & 0o777), (true, 0o600));
    let folder = token(landscape).parent().unwrap().to_owned();
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let mut names: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["kubeconfig", "rbac.yaml", "token"]);
}

async fn until_access(landscape: &Landscape, state: &str) {
    eventually(&format!("the executor to call its access {state}"), SOON, || async {
        let said: Value = serde_json::from_slice(&landscape.connector.local_api("/v1/platform").await?.bytes().await?)?;
        ensure!(said["access"]["cluster"] == state && said["cluster"]["reachable"] == true, "{said}");
        Ok(())
    })
    .await;
}

/// How often the failure was told, once later sweeps were seen to fail as well.
async fn told_after_more_sweeps(landscape: &Landscape) -> usize {
    for _sweep in 0..2 {
        landscape.until_logged(landscape.executor_log_length(), &["DEBUG", "still not renewed"]).await;
    }
    let log = std::fs::read_to_string(landscape.connector.executor().log()).unwrap();
    log.lines().filter(|line| line.contains("token_not_renewed")).count()
}

fn lasts_as_asked(token: &str) {
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap()).unwrap();
    let whole = SignedDuration::from_secs(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap());
    assert_eq!(whole, REQUESTED, "{claims}");
    assert!(claims["exp"].as_i64().unwrap() > Timestamp::now().as_second() + 30 * 60, "{claims}");
}

/// Who the API server takes the bearer of this token for.
async fn who(landscape: &Landscape, token: &str) -> String {
    let kubeconfig = landscape.control_plane.kubeconfig_with_token("renewed", token).unwrap();
    let ask = ["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"];
    landscape.control_plane.kubectl_as(&kubeconfig, &ask).await.unwrap().ok().unwrap().stdout
}
