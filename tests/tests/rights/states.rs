//! Other tokens than the approval's, and states of the cluster that an attacker could wait for or prepare.

use agent_api::names::{PCM_PLATFORM, PINS_SECRET, PLATFORM_DIR};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use system_tests::bundle::NAMESPACE;
use system_tests::eventually;
use system_tests::landscape::{Landscape, SOON};

use crate::HOME;
use crate::ask::{Identity, apply, force};
use crate::attempts::{DEPLOYMENT, guard, pin};
use crate::honest::kubectl;
use crate::layers::denied;
use crate::live::Live;
use crate::row::{Row, row};

const MAP: &str = "monitoring-collectors";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    HandMinted,
    WithoutId,
    Unpinned,
    Planted,
    PinsGone,
    CurrentGone,
    Former,
}

impl State {
    pub(crate) const ALL: [Self; 7] =
        [Self::HandMinted, Self::WithoutId, Self::Unpinned, Self::Planted, Self::PinsGone, Self::CurrentGone, Self::Former];

    pub(crate) fn row(self) -> Row {
        let approved = |live: &Live| live.objects.iter().cloned().map(force).collect();
        let more = "another token of the account, by an administrator's hand or a former approval's";
        let open = "no comparison with the approval";
        match self {
            Self::HandMinted => row("the approved objects, with `kubectl create token pcm-platform`", more, &[pin::TOKEN], approved),
            Self::WithoutId => row("the approved objects, with a token Secret's token, which has no id", more, &[pin::TOKEN], approved),
            Self::Former => row("the approved objects, with the former approval's token", more, &[pin::TOKEN], approved),
            Self::CurrentGone => row("the approved objects, after `current` was deleted by hand", open, &[pin::NO_PARAMETER], approved),
            Self::PinsGone => {
                row("the bundle's Secret, after the pinned values were deleted by hand", open, &[pin::NO_PARAMETER], |live| {
                    vec![force(live.named("Secret", "monitoring-collectors-endpoints"))]
                })
            }
            Self::Unpinned => row(
                "other content for an object whose `pinned` label an administrator removed",
                open,
                &[pin::CONTENT, guard::LABEL],
                |live| {
                    let pinned = live.changed("ConfigMap", MAP, |map| map["data"]["more"] = json!("theirs"));
                    let mut unpinned = pinned.clone();
                    unpinned["metadata"]["labels"].as_object_mut().unwrap().remove(agent_api::keys::PINNED);
                    vec![force(pinned), force(unpinned)]
                },
            ),
            Self::Planted => row(
                "what another writer put into live objects before the next approval, which stops at it",
                "an approval of content that nobody saw: values, a variable, a selector, labels of pods",
                &[pin::CONTENT, pin::SECRET, pin::SPEC, pin::POD, pin::POD_LABELS],
                |live| PLANTED.map(|(kind, name, _, _)| apply(live.named(kind, name))).into(),
            ),
        }
    }

    /// Asks its row, as it is in the cluster now.
    pub(crate) async fn ask(self, who: &Identity, live: &Live) -> Vec<String> {
        let row = self.row();
        let mut wrong = Vec::new();
        for request in (row.requests)(live) {
            if let Err(said) = denied(who, &request, &row.denied).await {
                wrong.push(format!("{}: {said:#}", row.attempt));
            }
        }
        wrong
    }
}

/// A token that an administrator makes by hand.
pub(crate) async fn minted_by_hand(landscape: &Landscape) -> Identity {
    let token = kubectl(landscape, ["create", "token", PCM_PLATFORM, "-n", HOME].map(str::to_owned).into()).await;
    Identity::with_token(landscape, PCM_PLATFORM, token.trim())
}

/// A token of the kind that never ends, in a Secret that an administrator makes. Such a token has no id.
pub(crate) async fn without_id(landscape: &Landscape) -> Identity {
    let metadata = json!({"name": "by-hand", "namespace": HOME, "annotations": {"kubernetes.io/service-account.name": PCM_PLATFORM}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": metadata});
    landscape.control_plane.apply(&secret.to_string()).await.unwrap();
    let token = eventually("the Secret's token", SOON, || async {
        let got =
            landscape.control_plane.kubectl(&["get", "secret", "by-hand", "-n", HOME, "-o", "go-template={{.data.token | base64decode}}"]);
        let got = got.await?.ok()?.stdout;
        ensure!(got.starts_with("ey"), "{got}");
        Ok(got)
    })
    .await;
    Identity::with_token(landscape, PCM_PLATFORM, token.trim())
}

pub(crate) async fn remove_by_hand(landscape: &Landscape) {
    kubectl(landscape, ["delete", "secret", "by-hand", "-n", HOME].map(str::to_owned).into()).await;
}

/// Another writer's changes of live objects: kind, name, patch, and the patch that takes it back.
type Planting = (&'static str, &'static str, &'static str, &'static str);

const PLANTED: [Planting; 4] = [
    ("ConfigMap", MAP, r#"{"data": {"planted": "x"}}"#, r#"{"data": {"planted": null}}"#),
    ("Secret", "monitoring-collectors-endpoints", r#"{"data": {"planted": "eA=="}}"#, r#"{"data": {"planted": null}}"#),
    (
        "Deployment",
        DEPLOYMENT,
        r#"{"spec": {"template": {"metadata": {"labels": {"planted": "x"}}, "spec": {"terminationGracePeriodSeconds": 77}}}}"#,
        r#"{"spec": {"template": {"metadata": {"labels": {"planted": null}}, "spec": {"terminationGracePeriodSeconds": null}}}}"#,
    ),
    (
        "Service",
        "clickhouse-operator-webhook",
        r#"{"spec": {"sessionAffinity": "ClientIP", "publishNotReadyAddresses": true}}"#,
        r#"{"spec": {"sessionAffinity": null, "sessionAffinityConfig": null, "publishNotReadyAddresses": null}}"#,
    ),
];

pub(crate) async fn plant(landscape: &Landscape) {
    for (kind, name, patch, _) in PLANTED {
        patched(landscape, kind, name, patch).await;
    }
}

pub(crate) async fn take_back(landscape: &Landscape) {
    for (kind, name, _, patch) in PLANTED {
        patched(landscape, kind, name, patch).await;
    }
}

async fn patched(landscape: &Landscape, kind: &str, name: &str, patch: &str) {
    let args = ["patch", kind, name, "-n", NAMESPACE, "--type=merge", "--field-manager=another-writer", "-p", patch];
    landscape.control_plane.kubectl(&args).await.unwrap().ok().unwrap();
}

/// What is pinned: the workloads of `current`, and the values beside it.
async fn pinned(landscape: &Landscape) -> [Value; 2] {
    let read = async |kind: &str, name: &str| -> Value {
        let got = kubectl(landscape, ["get", kind, name, "-n", HOME, "-o", "json"].map(str::to_owned).into()).await;
        serde_json::from_str(&got).unwrap()
    };
    let (current, values) = (read("platformapproval", "current").await, read("secret", PINS_SECRET).await);
    [current["spec"]["workloads"].clone(), values["data"].clone()]
}

/// Deletes an object at home, and waits until a request is denied for want of it.
pub(crate) async fn delete_parameter(landscape: &Landscape, platform: &Identity, live: &Live, kind: &str, name: &str) {
    kubectl(landscape, ["delete", kind, name, "-n", HOME].map(str::to_owned).into()).await;
    let secret = force(live.named("Secret", "monitoring-collectors-endpoints")).dry();
    eventually("the deletion to be noticed", SOON, || denied(platform, &secret, &[pin::NO_PARAMETER])).await;
}

/// Administrators write what is not pinned, and controllers bring new pods about. A change of what is pinned is refused for want of the approval, so
/// that nobody can get round it by deleting it.
pub(crate) async fn others_go_on(landscape: &Landscape) -> Result<()> {
    let cluster = &landscape.control_plane;
    cluster.kubectl(&["create", "configmap", "not-pinned", "-n", NAMESPACE]).await?.ok()?;
    cluster.kubectl(&["delete", "configmap", "not-pinned", "-n", NAMESPACE]).await?.ok()?;
    cluster.kubectl(&["delete", "pods", "--all", "-n", NAMESPACE, "--wait=false"]).await?.ok()?;
    let object = format!("deployment/{DEPLOYMENT}");
    cluster.kubectl(&["rollout", "status", &object, "-n", NAMESPACE, "--timeout=60s"]).await?.ok()?;
    let pinned = cluster.kubectl(&["annotate", &object, "-n", NAMESPACE, "--overwrite", "example.com/without=approval"]).await?;
    ensure!(!pinned.success() && pinned.stderr.contains("no params found for policy binding"), "{pinned:?}");
    Ok(())
}

/// The person approves what is staged, over objects that another writer changed: it stops, and says at what. Tells where it does not, or
/// where its pins are of what is live.
pub(crate) async fn not_stopped(landscape: &Landscape) -> Vec<String> {
    let before = pinned(landscape).await;
    let stopped = landscape.connector.approve(&["--yes"]).await.unwrap();
    let mut wrong = Vec::new();
    if stopped.success() || !PLANTED.iter().any(|(_, name, ..)| stopped.stderr.contains(&format!(" {NAMESPACE}/{name}: "))) {
        wrong.push(format!("an approval over planted content stops at it: {}", stopped.stderr));
    }
    if pinned(landscape).await != before {
        wrong.push("what was planted is pinned".to_owned());
    }
    wrong
}

/// The person approves what is staged, once more; answers with the new token.
pub(crate) async fn approved_again(landscape: &Landscape) -> Identity {
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    Identity::of_bundle(landscape, PCM_PLATFORM, PLATFORM_DIR)
}

/// The same where the approval that held was deleted by hand: what it left is ended first, as the refusal's hint says.
pub(crate) async fn approved_anew(landscape: &Landscape) -> Result<Identity> {
    landscape.connector.revoke(&[]).await?.ok()?;
    eventually("the approval to go through", SOON, || async {
        landscape.connector.approve(&["--yes"]).await?.ok()?;
        Ok(())
    })
    .await;
    Ok(Identity::of_bundle(landscape, PCM_PLATFORM, PLATFORM_DIR))
}
