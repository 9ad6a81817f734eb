//! `approve` cut off and disturbed at each of its writes, without an API server, and two of them at once. While the same bundle is approved again a token at hand can write at every
//! moment; of another bundle the token bundle is never torn; and what is run again converges.

mod faults;
mod killed;
mod writes;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};
use system_tests::bundle::{self, Edition, NAMESPACE};
use system_tests::landscape::{Landscape, SOON};
use system_tests::{ApiBetween, Asked, Disturbance, Refusal, eventually};

use self::writes::Cut;
use crate::file;

const HOME: &str = "clicklink-system";

/// A landscape with two bundles, the first of which is proposed and approved.
struct Place {
    landscape: Landscape,
    relay: ApiBetween,
    proposed: String,
    first: String,
    second: String,
}

impl Place {
    async fn new() -> Self {
        let landscape = Landscape::new().await;
        let relay = ApiBetween::start(&landscape.control_plane).await.unwrap();
        let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
        let second = bundle::push(&landscape.registry, Edition::Second).await.unwrap();
        let proposed = landscape.propose("platform-1", &first).await.unwrap();
        let (first, second) = (file(&landscape, "first", &first), file(&landscape, "second", &second));
        Cut { landscape: &landscape, relay: &relay }.approve(&first).await;
        Self { landscape, relay, proposed, first, second }
    }

    fn cut(&self) -> Cut<'_> {
        Cut { landscape: &self.landscape, relay: &self.relay }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_is_cut_off_leaves_one_that_holds() {
    let place = Place::new().await;
    let (cut, first, second) = (place.cut(), &place.first, &place.second);
    killed::of_the_same_bundle(&cut, first).await;
    killed::of_another_bundle(&cut, [first, second]).await;
    killed::the_former_bundle_is_refused(&cut, &place.proposed, second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_is_disturbed_leaves_one_that_holds() {
    let place = Place::new().await;
    let (cut, landscape, first, second) = (place.cut(), &place.landscape, &place.first, &place.second);
    // What is live is what a plan compares with.
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &place.proposed).await;
    faults::once_at_each_write(&cut, [first, second]).await;
    faults::silence(&cut, second).await;
    faults::that_stay(&cut, [first, second]).await;
    for live in [true, false] {
        what_was_shown_counts(&cut, second, live).await;
    }
    what_comes_meanwhile_counts(&cut, second).await;
    nothing_else_than_was_shown_is_deleted(&cut, second).await;
    the_scope_is_narrowed_before_the_pins_leave_it(&cut, second).await;

    let began = Instant::now();
    cut.approve(second).await;
    without_an_api_server(landscape, second, began.elapsed()).await;
    two_at_once(landscape, first, second).await;
}

/// Between the plan and the probe somebody puts in a policy that makes other objects of what was rendered: nobody has seen those, and what was
/// shown is what is pinned, of what is live and of what would be created.
async fn what_was_shown_counts(cut: &Cut<'_>, bundle: &str, live: bool) {
    if !live {
        cut.landscape.control_plane.kubectl(&["delete", "configmaps", "--all", "-n", NAMESPACE]).await.unwrap().ok().unwrap();
    }
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "late"},
        "spec": {"failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": {"resourceRules": [{"apiGroups": [""],
            "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]},
            "matchConditions": [{"name": "has-data", "expression": "has(object.data)"}],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression":
                "[JSONPatch{op: 'add', path: '/data/theirs', value: 'nobody saw it'}]"}}]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "late"}, "spec": {"policyName": "late"}});
    let (before, mut first) = (cut.landscape.connector.token_bundle().unwrap(), true);
    cut.relay.disturb(move |asked| {
        let applying = asked.is_write() && !asked.dry_run && std::mem::take(&mut first);
        applying.then_some(Disturbance::Late(Duration::from_secs(5)))
    });
    let put_in = async {
        eventually("the permissions half to be begun", SOON, async || {
            ensure!(cut.relay.take_seen().iter().any(|asked| asked.is_write() && !asked.dry_run), "nothing is written");
            Ok(())
        })
        .await;
        cut.landscape.control_plane.apply(&format!("{policy}\n---\n{binding}")).await.unwrap();
    };
    let (failed, ()) = tokio::join!(cut.try_approve(bundle), put_in);
    for told in
        ["error[workload_denied]: ", "ConfigMap clickhouse-platform/", "content is not the approved one", "run the same command again"]
    {
        assert!(failed.stderr.contains(told), "{told}: {failed:?}");
    }
    assert_eq!(cut.landscape.connector.token_bundle().unwrap(), before);
    let delete = ["delete", "mutatingadmissionpolicybinding/late", "mutatingadmissionpolicy/late"];
    cut.landscape.control_plane.kubectl(&delete).await.unwrap().ok().unwrap();
    cut.relay.disturb(|_| None);
    eventually("the policy to be gone", SOON, async || {
        cut.try_approve(bundle).await.ok()?;
        Ok(())
    })
    .await;
}

/// After an approval has read what holds, somebody takes that back, or approves the same bundle: it is the later word, and what it ended stays ended.
async fn what_comes_meanwhile_counts(cut: &Cut<'_>, bundle: &str) {
    let connector = &cut.landscape.connector;
    for revoked in [true, false] {
        cut.approve(bundle).await;
        let mut first = true;
        cut.relay.disturb(move |asked| {
            let reading_is_over = asked.path.ends_with("/roles/pcm-platform") && std::mem::take(&mut first);
            reading_is_over.then_some(Disturbance::Late(Duration::from_secs(8)))
        });
        let meanwhile = async {
            eventually("the approval to have read what holds", SOON, async || {
                ensure!(cut.relay.take_seen().iter().any(|asked| asked.path.ends_with("/roles/pcm-platform")), "no role is written");
                Ok(())
            })
            .await;
            match revoked {
                true => connector.revoke(&[]).await,
                false => connector.approve(&["--yes", "--bundle", bundle]).await,
            }
            .unwrap()
            .ok()
            .unwrap();
            current(cut.landscape).await
        };
        let (failed, later) = tokio::join!(cut.try_approve(bundle), meanwhile);
        assert!(failed.stderr.contains("error[approval_overtaken]: "), "{failed:?}");
        assert_eq!(current(cut.landscape).await, later);
        cut.relay.disturb(|_| None);
        if !revoked {
            may_write(cut.landscape).await.unwrap();
        }
    }
    cut.approve(bundle).await;
    agree(cut.landscape).await;
}

/// After the plan somebody else takes the name of a webhook configuration that is to be withdrawn, and makes an object of a kind that is to be
/// defined anew: nobody has agreed to lose those.
async fn nothing_else_than_was_shown_is_deleted(cut: &Cut<'_>, bundle: &str) {
    let mut manifest: Value = serde_json::from_str(&std::fs::read_to_string(bundle).unwrap()).unwrap();
    let storage_class = manifest["objects"][0].clone();
    let mut variant = |name: &str, webhook: bool, scope: &str| {
        manifest["components"][1]["values"]["webhook"]["enabled"] = webhook.into();
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.org"}, "spec": {"group": "example.org", "scope": scope, "versions": [version],
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}}});
        manifest["objects"] = json!([storage_class, definition]);
        cut.landscape.connector.folder().write(format!("{name}.json"), manifest.to_string()).unwrap().display().to_string()
    };
    let before = variant("with-both", true, "Namespaced");
    let (withdrawn, replaced) = (variant("withdrawn", false, "Namespaced"), variant("replaced", true, "Cluster"));
    let theirs = |kind: &str, version: &str, more: Value| {
        let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "clickhouse-operator", "namespace": "default"}});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object
    };
    let configuration = theirs("ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1", json!({"webhooks": []}));
    let thing = theirs("Thing", "example.org/v1", json!({}));
    for (bundle, object, place) in [
        (&withdrawn, configuration, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"),
        (&replaced, thing, "/apis/example.org/v1/namespaces/default/things"),
    ] {
        cut.relay.disturb(|_| None);
        cut.approve(&before).await;
        let mut first = true;
        cut.relay.disturb(move |asked| {
            let applying = asked.is_write() && !asked.dry_run && std::mem::take(&mut first);
            applying.then_some(Disturbance::Late(Duration::from_secs(8)))
        });
        let kubectl = async |args: &[&str]| cut.landscape.control_plane.kubectl(args).await.unwrap().ok().unwrap().stdout;
        let make = async {
            eventually("the approval to be agreed to", SOON, async || {
                ensure!(cut.relay.take_seen().iter().any(|asked| asked.is_write() && !asked.dry_run), "nothing is written");
                Ok(())
            })
            .await;
            if bundle == &withdrawn {
                kubectl(&["delete", "validatingwebhookconfiguration", "clickhouse-operator"]).await;
            }
            let file = cut.landscape.connector.folder().write("theirs.json", object.to_string()).unwrap().display().to_string();
            kubectl(&["create", "--raw", place, "-f", &file]).await;
        };
        let (approved, ()) = tokio::join!(cut.try_approve_with(bundle, &["--replace"]), make);
        if bundle == &withdrawn {
            assert!(approved.stderr.contains("clickhouse-operator is another one than was shown, and stays"), "{approved:?}");
        } else {
            assert!(approved.stderr.contains("error[objects_refused]: ") && approved.stderr.contains("has objects"), "{approved:?}");
        }
        let place = format!("{place}/clickhouse-operator");
        kubectl(&["get", "--raw", &place]).await;
        kubectl(&["delete", "--raw", &place]).await;
    }
    cut.relay.disturb(|_| None);
    cut.approve(bundle).await;
}

/// Where the scope guard is not written, no other policy is: one that compares less, beside a scope that is as wide as before, would let the former
/// token write whatever it likes into a namespace that the bundle leaves.
async fn the_scope_is_narrowed_before_the_pins_leave_it(cut: &Cut<'_>, bundle: &str) {
    let of_policies = |asked: &Asked| asked.is_write() && asked.path.contains("validatingadmissionpolic");
    cut.relay.disturb(move |asked| {
        let guard = of_policies(asked) && asked.path.ends_with("policies/pcm-platform-scope-guard");
        guard.then_some(Disturbance::Answer(Refusal::Forbidden))
    });
    assert!(!cut.try_approve(bundle).await.success());
    let written: Vec<String> = cut.relay.take_seen().into_iter().filter(of_policies).map(|asked| asked.path).collect();
    assert_eq!(written, ["/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/pcm-platform-scope-guard"]);
    cut.relay.disturb(|_| None);
    cut.approve(bundle).await;
}

/// The API server goes away at a moment of the approval and comes back seconds later: the approval goes through, or says what it could not reach and
/// leaves the token bundle whole. Run again it converges.
async fn without_an_api_server(landscape: &Landscape, bundle: &str, takes: Duration) {
    for n in 1..4 {
        let connector = &landscape.connector;
        let restarting = async {
            tokio::time::sleep(takes * n / 4).await;
            landscape.control_plane.stop_apiserver().await.unwrap();
            landscape.control_plane.start_apiserver().await.unwrap();
        };
        let again = ["--yes", "--bundle", bundle];
        let (approved, ()) = tokio::join!(connector.approve(&again), restarting);
        let approved = approved.unwrap();
        let at = format!("the API server restarted at {n} of 4");
        if !approved.success() {
            assert!(approved.stderr.lines().any(|line| line.starts_with("error[")), "{at}: {approved:?}");
        }
        whole(landscape, &at).await;
        // An API server that has just started does not know the approval's kind yet, and its policies refuse everybody.
        eventually("an approval to go through", SOON, async || {
            connector.approve(&["--yes", "--bundle", bundle]).await?.ok()?;
            Ok(())
        })
        .await;
        agree(landscape).await;
    }
}

/// Whoever is later holds; the other one says so, or was through before. A third run finds nothing in its way.
async fn two_at_once(landscape: &Landscape, first: &str, second: &str) {
    for _ in 0..2 {
        let bundles = ["--yes", "--bundle"];
        let (one, other) = ([&bundles[..], &[first]].concat(), [&bundles[..], &[second]].concat());
        let (one, other) = tokio::join!(landscape.connector.approve(&one), landscape.connector.approve(&other));
        let (one, other) = (one.unwrap(), other.unwrap());
        assert!(one.success() || other.success(), "{one:?}\n{other:?}");
        for failed in [&one, &other].iter().filter(|finished| !finished.success()) {
            assert!(
                ["error[approval_overtaken]", "error[workload_denied]", "error[guard_"].iter().any(|code| failed.stderr.contains(code)),
                "{failed:?}"
            );
        }
        // The token bundle may be of the one that was through before; then its token does not write.
        if whole(landscape, "two at once").await != current(landscape).await["sha256"] {
            may_write(landscape).await.unwrap_err();
        }
        landscape.connector.approve(&["--yes", "--bundle", second]).await.unwrap().ok().unwrap();
        agree(landscape).await;
    }
}

/// The token bundle is whole; whose it is.
async fn whole(landscape: &Landscape, at: &str) -> Value {
    let files = landscape.connector.token_bundle().unwrap();
    assert_eq!(files.keys().map(String::as_str).collect::<Vec<_>>(), ["approval.json", "ca.crt", "server", "token"], "{at}");
    landscape.connector.approval().unwrap()["bundle_sha256"].clone()
}

/// `spec` of the approval that holds.
async fn current(landscape: &Landscape) -> Value {
    let shown = landscape.control_plane.kubectl(&["get", "platformapproval", "current", "-n", HOME, "-o", "json"]).await.unwrap().ok();
    serde_json::from_str::<Value>(&shown.unwrap().stdout).unwrap()["spec"].take()
}

/// Everything says the same bundle, and one token may write.
async fn agree(landscape: &Landscape) {
    let (approval, current) = (landscape.connector.approval().unwrap(), current(landscape).await);
    let account = landscape.control_plane.kubectl(&["get", "serviceaccount", "pcm-platform", "-n", HOME, "-o", "json"]).await.unwrap().ok();
    let account: Value = serde_json::from_str(&account.unwrap().stdout).unwrap();
    let annotations = &account["metadata"]["annotations"];
    assert_eq!((&approval["bundle_sha256"], &annotations["clicklink.io/bundle-sha256"]), (&current["sha256"], &current["sha256"]));
    assert_eq!((&approval["expires_at"], &annotations["clicklink.io/expires-at"]), (&current["expiresAt"], &current["expiresAt"]));
    assert_eq!(current["credentials"].as_array().unwrap().len(), 1, "{}", current["credentials"]);
}

/// Whether the token at hand may write a listed object of the approval, in a dry run.
async fn may_write(landscape: &Landscape) -> anyhow::Result<()> {
    let files = landscape.connector.token_bundle()?;
    let kubeconfig: PathBuf = landscape.control_plane.kubeconfig_with_token("at-hand", std::str::from_utf8(&files["token"])?.trim())?;
    let (key, pinned) = ("/ConfigMap/clickhouse-platform/clickhouse-operator-config", current(landscape).await);
    let pinned = &pinned["workloads"][key];
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": pinned["data"], "metadata": {"name": "clickhouse-operator-config",
        "namespace": NAMESPACE, "labels": pinned["labels"], "annotations": pinned["annotations"]}});
    let file = landscape.connector.folder().write("try.json", object.to_string())?.display().to_string();
    let write = ["apply", "--server-side", "--validate=false", "--dry-run=server", "--field-manager=clicklink-executor", "-f", &file];
    let tried = landscape.control_plane.kubectl_as(&kubeconfig, &write).await?;
    ensure!(tried.success(), "{}", tried.stderr);
    Ok(())
}
