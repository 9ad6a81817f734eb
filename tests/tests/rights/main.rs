//! The red team of an approval: what the two identities may do, asked of a real API server with their real tokens. One table says what is
//! attempted, what for, and which layers deny it; it is this test, and the page `docs/red-team.md`.
//!
//! Each layer is asked alone too. Everything is collected, so that one run tells all that was not denied as it must be.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ask;
mod attempts;
mod executor;
mod honest;
mod layers;
mod live;
mod page;
mod row;
mod states;

use agent_api::names::{CLUSTER_DIR, PCM_EXECUTOR, PCM_PLATFORM, PINS_SECRET, PLATFORM_DIR};
use serde_json::json;
use system_tests::bundle::{Edition, NAMESPACE};
use system_tests::eventually;
use system_tests::landscape::{Landscape, SOON};

use self::ask::{Identity, apply};
use self::honest::{Honest, applied_again, kubectl, synced_again};
use self::live::Live;
use self::states::State;

const HOME: &str = "clicklink-system";

#[test]
fn the_page_is_the_table() {
    let text = page::text(&attempts::sections(), &executor::sections());
    let file = page::file();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, text).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(written == text, "{} is not the table any more; UPDATE_DOCS=1 writes it anew", file.display());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_token_can_only_write_again_what_a_person_approved() {
    let landscape = Landscape::new().await;
    let sha256 = approved(&landscape, Edition::First).await;
    furnished(&landscape).await;
    let mut live = Live::read(&landscape).await;
    let platform = Identity::of_bundle(&landscape, PCM_PLATFORM, PLATFORM_DIR);

    let mut wrong = honest_use(&landscape, &platform, &mut live, &sha256).await;
    wrong.extend(layers::every_layer(&landscape, &platform, &live, &attempts::sections()).await);
    let executor = Identity::of_bundle(&landscape, PCM_EXECUTOR, CLUSTER_DIR);
    wrong.extend(layers::both_layers(&landscape, &executor, &live, &executor::sections()).await);
    kubectl(&landscape, ["scale", "deployment", "snapshot-controller", "-n", NAMESPACE, "--replicas=1"].map(str::to_owned).into()).await;
    wrong.extend(other_tokens(&landscape, &live).await);
    let platform = prepared(&landscape, &platform, &live, &mut wrong).await;
    let platform = without_approval(&landscape, &platform, &live, &sha256, &mut wrong).await;
    upgraded(&landscape, &platform, &mut wrong).await;
    assert!(wrong.is_empty(), "{} findings:\n{}", wrong.len(), wrong.join("\n"));
}

/// Proposed, approved, synced.
async fn approved(landscape: &Landscape, edition: Edition) -> String {
    let release = honest::release(landscape, edition).await;
    let sha256 = landscape.propose(if edition == Edition::First { "first" } else { "second" }, &release).await.unwrap();
    landscape.until_ended(&sha256).await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;
    sha256
}

/// What others have in the cluster: a service's namespace with all that the cluster puts there, a Secret beside the bundle's.
async fn furnished(landscape: &Landscape) {
    kubectl(landscape, ["create", "namespace", "ns-service"].map(str::to_owned).into()).await;
    let metadata = json!({"name": attempts::FOREIGN, "namespace": NAMESPACE});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": "x"}});
    landscape.control_plane.apply(&secret.to_string()).await.unwrap();
    eventually("what every namespace has", SOON, || async {
        let there = ["get", "serviceaccount/default", "configmap/kube-root-ca.crt", "-n", "ns-service"];
        landscape.control_plane.kubectl(&there).await?.ok()
    })
    .await;
}

/// Everything that happens in an honest cluster; its traces stay for the attempts.
async fn honest_use(landscape: &Landscape, platform: &Identity, live: &mut Live, sha256: &str) -> Vec<String> {
    let mut wrong = honest::asks_about_itself(platform).await;
    for honest in Honest::REPEATED {
        honest.happens(landscape, live).await;
        let refused = applied_again(landscape, platform, live, sha256).await;
        wrong.extend(refused.into_iter().map(|said| format!("{honest:?}: {said}")));
    }
    // Both went with the Service.
    honest::balance(landscape).await;
    Honest::ScaledFixed.happens(landscape, live).await;
    wrong.extend(honest::is_told_of_the_conflict(platform, live).await);
    share_a_label(platform, live).await;
    live.refresh(landscape).await;
    wrong
}

/// Applies a label of an administrator's with the value that it has: nothing changes, and it is owned by both.
async fn share_a_label(platform: &Identity, live: &Live) {
    let shared = live.changed("Deployment", attempts::DEPLOYMENT, |object| object["metadata"]["labels"][attempts::SHARED] = json!("42"));
    let (status, message) = platform.ask(&apply(shared)).await;
    assert_eq!(status, 200, "{message}");
}

async fn other_tokens(landscape: &Landscape, live: &Live) -> Vec<String> {
    let mut wrong = State::HandMinted.ask(&states::minted_by_hand(landscape).await, live).await;
    wrong.extend(State::WithoutId.ask(&states::without_id(landscape).await, live).await);
    states::remove_by_hand(landscape).await;
    wrong
}

/// States that somebody else made, each left by the next approval; answers with the last token.
async fn prepared(landscape: &Landscape, platform: &Identity, live: &Live, wrong: &mut Vec<String>) -> Identity {
    let unpin = ["label", "configmap", "monitoring-collectors", "-n", NAMESPACE, "clicklink.io/pinned-"];
    kubectl(landscape, unpin.map(str::to_owned).into()).await;
    wrong.extend(State::Unpinned.ask(platform, live).await);
    wrong.extend(live::not_taken_again(platform, &live.objects).await);

    states::plant(landscape).await;
    wrong.extend(states::not_stopped(landscape).await);
    wrong.extend(State::Planted.ask(platform, live).await);
    states::take_back(landscape).await;
    let platform = states::approved_again(landscape).await;
    wrong.extend(live::not_taken_again(&platform, &live.objects).await);

    platform
}

/// No approval is there any more: the account writes nothing, everybody else what they always did. Answers with the last token.
async fn without_approval(landscape: &Landscape, platform: &Identity, live: &Live, sha256: &str, wrong: &mut Vec<String>) -> Identity {
    states::delete_parameter(landscape, platform, live, "platformapproval", "current").await;
    wrong.extend(State::CurrentGone.ask(platform, live).await);
    if let Err(error) = states::others_go_on(landscape).await {
        wrong.push(format!("without an approval: {error:#}"));
    }
    let platform = states::approved_anew(landscape).await.unwrap();
    if let Err(error) = synced_again(landscape, sha256).await {
        wrong.push(format!("approved again: {error:#}"));
    }
    wrong.extend(live::not_taken_again(&platform, &live.objects).await);
    platform
}

/// The second edition, with its own token; the first one's writes nothing of it.
async fn upgraded(landscape: &Landscape, former: &Identity, wrong: &mut Vec<String>) {
    // The first edition's Job has done its work, and is no part of the second's.
    kubectl(landscape, ["delete", "jobs", "--all", "-n", NAMESPACE].map(str::to_owned).into()).await;
    let sha256 = approved(landscape, Edition::Second).await;

    let live = Live::read(landscape).await;
    let platform = Identity::of_bundle(landscape, PCM_PLATFORM, PLATFORM_DIR);
    let refused = applied_again(landscape, &platform, &live, &sha256).await;
    wrong.extend(refused.into_iter().map(|said| format!("{:?}: {said}", Honest::Upgraded)));
    wrong.extend(State::Former.ask(former, &live).await);
    without_pins(landscape, &platform, &live, wrong).await;
}

/// The pinned values are gone: no Secret is written, until the person approves anew.
async fn without_pins(landscape: &Landscape, platform: &Identity, live: &Live, wrong: &mut Vec<String>) {
    states::delete_parameter(landscape, platform, live, "secret", PINS_SECRET).await;
    wrong.extend(State::PinsGone.ask(platform, live).await);
    match states::approved_anew(landscape).await {
        Ok(platform) => wrong.extend(live::not_taken_again(&platform, &live.objects).await),
        Err(error) => wrong.push(format!("no approval after the pinned values were deleted: {error:#}")),
    }
}
