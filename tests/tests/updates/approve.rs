//! How `approve` behaves where it must not succeed, and what bounds an approval: a person at the command line, their cluster, the
//! registry, and a token bundle that stays as it is until another one is whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use serde_json::{Value, json};
use system_tests::bundle::{self, Edition, NAMESPACE, Release};
use system_tests::landscape::{Closing, Landscape, SOON};
use system_tests::{ControlPlane, Finished, TempFolder, eventually};

use crate::file;

/// A namespace that the platform has for a while.
const EXTRA: &str = "clickhouse-extra";
/// What a policy of the customer's says.
const FROZEN: &str = "changes are frozen until Monday";

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_approve_says_why_and_leaves_the_token_bundle_alone() {
    let landscape = Landscape::new().await;
    let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let second = bundle::push(&landscape.registry, Edition::Second).await.unwrap();
    let sha256 = landscape.propose("platform-1", &first).await.unwrap();
    landscape.until_ended(&sha256).await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;

    let bundle = file(&landscape, "second", &second);
    the_registry_fails(&landscape, &second, &bundle).await;
    the_person_may_not(&landscape, &bundle).await;
    the_target_is_no_folder(&landscape, &bundle).await;
    the_cluster_refuses_an_object(&landscape, &second).await;
    others_own_fields(&landscape, &bundle).await;
    the_bundle_breaks_rules(&landscape, &first).await;
    a_chart_renders_differently(&landscape, &first).await;
    a_secret_in_values_is_warned_of(&landscape, &first).await;
    it_stops_in_the_middle_and_converges(&landscape, &bundle, &sha256).await;
    no_token_is_granted(&landscape, &bundle).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_for_one_cluster_for_a_time_and_for_the_bundles_namespaces() {
    let (landscape, other) = tokio::join!(Landscape::new(), ControlPlane::own());
    granting_access_only_renders(&landscape, &other).await;
    let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let mut wide = first.clone();
    wide.namespaces.push(EXTRA.to_owned());
    wide.component("monitoring-collectors").namespace = EXTRA.to_owned();
    let sha256 = landscape.propose("platform-wide", &wide).await.unwrap();
    landscape.until_ended(&sha256).await;

    another_cluster_is_refused(&landscape, &other).await;
    a_short_time_is_refused(&landscape).await;
    a_given_time_is_shown_and_obeyed(&landscape, &sha256).await;
    another_cluster_is_refused(&landscape, &other).await;

    let sha256 = landscape.propose("platform-narrow", &first).await.unwrap();
    landscape.until_ended(&sha256).await;
    rights_end_with_a_namespace(&landscape, &sha256).await;
}

async fn the_registry_fails(landscape: &Landscape, release: &Release, bundle: &str) {
    let registry = &landscape.registry;
    registry.stop().await.unwrap();
    fails(landscape, &["--bundle", bundle], &[&registry.host(), "the registry cannot be reached"]).await;
    registry.restart().await.unwrap();

    let chart = &release.components[1].chart;
    let archive = registry.archive_digest(chart).unwrap();
    let honest = registry.read(&archive).unwrap();
    let theirs = registry.read(&registry.archive_digest(&release.components[0].chart).unwrap()).unwrap();
    registry.falsify(&archive, &theirs).unwrap();
    fails(landscape, &["--bundle", bundle], &["chart clickhouse-operator 0.3.0 cannot be pulled", "the registry sent other bytes"]).await;
    registry.falsify(&archive, &honest).unwrap();

    let image = release.components[2].images[0].split_once('@').unwrap().1.to_owned();
    let kept = registry.read(&image).unwrap();
    registry.lose(&image).unwrap();
    fails(landscape, &["--bundle", bundle], &["error[registry_not_found]", &image]).await;
    registry.restore(&image, &kept).unwrap();

    let wrong = registry.wrong_docker_config().unwrap();
    let before = Before::of(landscape).await;
    let refused = approve_by_hand(landscape, bundle, &landscape.connector.access_dir(), &wrong).await;
    before.is_untouched_by(landscape, &refused, &["the registry does not accept the credentials (401)"]).await;
}

async fn the_person_may_not(landscape: &Landscape, bundle: &str) {
    let cluster = &landscape.control_plane;
    let stranger = cluster.kubeconfig_for("stranger", None).unwrap().display().to_string();
    fails(landscape, &["--bundle", bundle, "--kubeconfig", &stranger], &["forbidden", "stranger"]).await;
    let reader = cluster.kubeconfig_for("auditor", Some("auditors")).unwrap().display().to_string();
    cluster.kubectl(&["create", "clusterrole", "audit", "--verb=get,list,watch", "--resource=*.*"]).await.unwrap().ok().unwrap();
    let bind = ["create", "clusterrolebinding", "audit", "--clusterrole=audit", "--group=auditors"];
    cluster.kubectl(&bind).await.unwrap().ok().unwrap();
    // Every object that would be written is told, in one message.
    let expected =
        ["objects cannot be applied, and nothing was changed", "ClusterRole.rbac.authorization.k8s.io clickhouse-operator: forbidden"];
    fails(landscape, &["--bundle", bundle, "--kubeconfig", &reader], &expected).await;
}

async fn the_target_is_no_folder(landscape: &Landscape, bundle: &str) {
    let folder = landscape.connector.folder();
    let file = folder.write("a-file", "").unwrap();
    let link = folder.join("a-link");
    std::os::unix::fs::symlink(landscape.connector.access_dir(), &link).unwrap();
    for target in [file, link, PathBuf::from("/proc/clicklink/access")] {
        let before = Before::of(landscape).await;
        let refused = approve_by_hand(landscape, bundle, &target, landscape.registry.docker_config()).await;
        before.is_untouched_by(landscape, &refused, &[&target.display().to_string()]).await;
    }
}

async fn the_cluster_refuses_an_object(landscape: &Landscape, release: &Release) {
    let mut release = release.clone();
    release.objects[0]["reclaimPolicy"] = json!("Perhaps");
    let bundle = file(landscape, "invalid", &release);
    fails(landscape, &["--bundle", &bundle], &["an object cannot be applied, and nothing was changed", "gp3-encrypted", "Perhaps"]).await;
}

/// Conflicts in both halves are told by object, field and manager.
async fn others_own_fields(landscape: &Landscape, bundle: &str) {
    let cluster = &landscape.control_plane;
    let scale = async |replicas: &str| {
        let args = ["scale", "deployment", "snapshot-controller", "-n", NAMESPACE, replicas];
        cluster.kubectl(&args).await.unwrap().ok().unwrap();
    };
    scale("--replicas=2").await;
    let rules = json!([{"op": "replace", "path": "/rules", "value": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}]);
    let patch = ["patch", "clusterrole", "monitoring-collectors", "--type=json", "--field-manager=somebody", "-p", &rules.to_string()];
    cluster.kubectl(&patch).await.unwrap().ok().unwrap();
    eventually("a settled cluster", SOON, || settled(landscape)).await;
    let expected = [
        "objects cannot be applied, and nothing was changed",
        "Deployment.apps clickhouse-platform/snapshot-controller: field conflict: .spec.replicas is owned by `kubectl`",
        "ClusterRole.rbac.authorization.k8s.io monitoring-collectors: field conflict: .rules is owned by `somebody`",
    ];
    fails(landscape, &["--bundle", bundle], &expected).await;
    // The plan is told all the same, each of its lines; and who will scale again is named.
    let autoscale = ["autoscale", "deployment", "snapshot-controller", "-n", NAMESPACE, "--name=scaler", "--min=1", "--max=3", "--cpu=80%"];
    cluster.kubectl(&autoscale).await.unwrap().ok().unwrap();
    let looked = landscape.connector.approve(&["--dry-run", "--show", "all", "--bundle", bundle]).await.unwrap();
    assert_eq!(looked.code(), Some(1), "{looked:?}");
    for line in [
        "  refused    Deployment.apps clickhouse-platform/snapshot-controller",
        "  refused    ClusterRole.rbac.authorization.k8s.io monitoring-collectors",
        "  change     PodDisruptionBudget.policy clickhouse-platform/snapshot-controller",
    ] {
        assert!(looked.stdout.contains(line), "{line}: {looked:?}");
    }
    let hint = "HorizontalPodAutoscaler clickhouse-platform/scaler writes .spec.replicas of Deployment.apps clickhouse-platform/snapshot-controller";
    assert!(looked.stderr.contains(hint), "{looked:?}");
    cluster.kubectl(&["delete", "horizontalpodautoscaler", "scaler", "-n", NAMESPACE]).await.unwrap().ok().unwrap();
    scale("--replicas=1").await;
    cluster.kubectl(&["delete", "clusterrole", "monitoring-collectors"]).await.unwrap().ok().unwrap();
    eventually("a settled cluster", SOON, || settled(landscape)).await;
}

/// All that is wrong with a bundle is told in one message, with chart, template, object, and what avoids it.
async fn the_bundle_breaks_rules(landscape: &Landscape, release: &Release) {
    let template = r"
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: everywhere}
spec:
  selector: {matchLabels: {app: everywhere}}
  template:
    metadata: {labels: {app: everywhere}}
    spec: {containers: []}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: elsewhere, namespace: default}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: unpinned}
spec:
  selector: {matchLabels: {app: unpinned}}
  template:
    metadata: {labels: {app: unpinned}}
    spec: {containers: [{name: main, image: 'docker.io/library/nginx:1.29'}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: stops-pods}
webhooks:
  - name: pods.example.com
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    clientConfig: {service: {name: snapshot-controller, namespace: clickhouse-platform, path: /}}
    rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
---
apiVersion: v1
kind: Service
metadata: {name: snapshot-controller}
spec: {ports: [{port: 443}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: lottery}
data: {ticket: '{{ randAlphaNum 12 }}'}
";
    let bundle = with_template(landscape, release, "refused", template).await;
    let place = "component snapshot-controller (chart snapshot-controller 4.1.0), snapshot-controller/templates/refused.yaml, ";
    let of = |object: &str, problem: &str| format!("  - {place}{object}: {problem}");
    let expected = [
        "the bundle is refused for 5 reasons:".to_owned(),
        of("DaemonSet.apps everywhere", "DaemonSet.apps is in neither half of a bundle; set the chart's deployment mode"),
        of("ConfigMap default/elsewhere", "a workload object may lie in the bundle's `namespaces` only, not in `default`"),
        of("Deployment.apps clickhouse-platform/unpinned", "containers `main`: image `docker.io/library/nginx:1.29` has no digest"),
        of("ValidatingWebhookConfiguration.admissionregistration.k8s.io stops-pods", "webhook pods.example.com: "),
        of("ConfigMap lottery, data.ticket", "it renders differently each time: made up by randAlphaNum; give it a fixed value"),
    ];
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    fails(landscape, &["--bundle", &bundle], &expected).await;
}

async fn a_chart_renders_differently(landscape: &Landscape, release: &Release) {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lottery}\ndata: {ticket: {{ randAlphaNum 12 | quote }}}\n";
    let bundle = with_template(landscape, release, "lottery", template).await;
    fails(landscape, &["--bundle", &bundle], &["snapshot-controller", "templates/lottery.yaml", "randAlphaNum"]).await;
}

async fn a_secret_in_values_is_warned_of(landscape: &Landscape, release: &Release) {
    let mut release = release.clone();
    release.component("clickhouse-operator").values["auth"] = json!({"users": [{"name": "a", "password": "hunter2"}]});
    let bundle = file(landscape, "secret", &release);
    let before = Before::of(landscape).await;
    let plan = landscape.connector.approve(&["--dry-run", "--bundle", &bundle]).await.unwrap().ok().unwrap();
    let warning = "component clickhouse-operator: value auth.users[0].password looks like a secret; a bundle is no place for one";
    assert!(plan.stdout.lines().any(|line| line.trim() == warning), "{}", plan.stdout);
    assert!(!plan.stdout.contains("hunter2") && !plan.stderr.contains("hunter2"));
    before.is_still_so(landscape).await;
}

/// A refusal that no dry run shows: what was applied stays, the former token bundle and the account's annotations too, and the next
/// run goes on from there.
async fn it_stops_in_the_middle_and_converges(landscape: &Landscape, bundle: &str, former: &str) {
    let cluster = &landscape.control_plane;
    freeze(cluster, "rbac.authorization.k8s.io", "clusterroles", &["clickhouse-operator", "frozen"]).await;
    eventually("the freeze to be in force", SOON, || async {
        let tried = cluster.kubectl(&["create", "clusterrole", "frozen", "--verb=get", "--resource=pods"]).await?;
        if tried.success() {
            cluster.kubectl(&["delete", "clusterrole", "frozen"]).await?.ok()?;
            bail!("it is not yet");
        }
        ensure!(tried.stderr.contains(FROZEN), "{}", tried.stderr);
        Ok(())
    })
    .await;
    let (token_bundle, folder) = (landscape.connector.token_bundle().unwrap(), names(&landscape.connector.access_dir()));
    let account = account(landscape).await;
    let stopped = landscape.connector.approve(&["--yes", "--bundle", bundle]).await.unwrap();
    assert!(!matches!(stopped.code(), Some(0) | None), "{stopped:?}");
    for expected in [
        "stopped after 12 of 21 permission objects: ClusterRole.rbac.authorization.k8s.io clickhouse-operator: ",
        FROZEN,
        "the token bundle is untouched, and approve can be run again",
    ] {
        assert!(stopped.stderr.contains(expected), "{expected} is not in:\n{}", stopped.stderr);
    }
    assert!(!stopped.stdout.contains("Approved:"));
    assert_eq!(landscape.connector.token_bundle().unwrap(), token_bundle);
    assert_eq!(names(&landscape.connector.access_dir()), folder);
    assert_eq!(self::account(landscape).await, account, "the account still tells of the former approval");
    // The former bundle cannot be synced any more: it stops at the first object that is not its own.
    let known = landscape.known_commands().await.unwrap();
    let workload = landscape.workload().await.unwrap();
    landscape.rearm().await.unwrap();
    let ended = landscape.until_new_ended(&known).await;
    let result = ended["result"].as_str().unwrap();
    let hint = format!("run: clctl platform approve (pending bundle sha {former})");
    assert!(result.contains("is stamped with another bundle") && result.ends_with(&hint), "{ended}");
    assert_eq!(landscape.workload().await.unwrap(), workload);

    let closing = thaw_and_approve(landscape, bundle).await;
    assert_eq!((closing.permissions, closing.workload), (21, 12));
    assert_ne!(landscape.connector.token_bundle().unwrap()["token"], token_bundle["token"]);
}

/// Everything is applied, and the last step fails: the token.
async fn no_token_is_granted(landscape: &Landscape, bundle: &str) {
    let cluster = &landscape.control_plane;
    freeze(cluster, "", "serviceaccounts/token", &["pcm-platform"]).await;
    eventually("the freeze to be in force", SOON, || async {
        let tried = cluster.kubectl(&["create", "token", "pcm-platform", "-n", "clicklink-system"]).await?;
        ensure!(!tried.success() && tried.stderr.contains(FROZEN), "{}", tried.stderr);
        Ok(())
    })
    .await;
    let (token_bundle, folder) = (landscape.connector.token_bundle().unwrap(), names(&landscape.connector.access_dir()));
    let failed = landscape.connector.approve(&["--yes", "--bundle", bundle]).await.unwrap();
    assert!(!matches!(failed.code(), Some(0) | None) && failed.stderr.contains(FROZEN), "{failed:?}");
    assert!(!failed.stdout.contains("Approved:"));
    assert_eq!(landscape.connector.token_bundle().unwrap(), token_bundle);
    assert_eq!(names(&landscape.connector.access_dir()), folder);
    thaw_and_approve(landscape, bundle).await;
    assert_ne!(landscape.connector.token_bundle().unwrap()["token"], token_bundle["token"]);
}

/// An admission policy of the customer's that denies what is meant, and lets dry runs pass.
async fn freeze(cluster: &ControlPlane, group: &str, resource: &str, names: &[&str]) {
    let (version, name) = ("admissionregistration.k8s.io/v1", json!({"name": "change-freeze"}));
    let rule = json!({"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [resource],
        "resourceNames": names});
    let validation = json!({"expression": "request.?dryRun.orValue(false)", "message": FROZEN});
    let policy = json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": name,
        "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]}, "validations": [validation]}});
    let binding = json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": name,
        "spec": {"policyName": "change-freeze", "validationActions": ["Deny"]}});
    cluster.apply(&json!({"apiVersion": "v1", "kind": "List", "items": [policy, binding]}).to_string()).await.unwrap();
}

/// The policy is in force for a moment after it is gone.
async fn thaw_and_approve(landscape: &Landscape, bundle: &str) -> Closing {
    let delete = ["delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "change-freeze"];
    landscape.control_plane.kubectl(&delete).await.unwrap().ok().unwrap();
    eventually("the freeze to be over", SOON, || async {
        Closing::of(&landscape.connector.approve(&["--yes", "--bundle", bundle]).await?.ok()?)
    })
    .await
}

/// What is rendered for review is whole, and nothing of it is on the cluster.
async fn granting_access_only_renders(landscape: &Landscape, other: &ControlPlane) {
    let before = inventory(other).await;
    let folder = TempFolder::new("review").unwrap();
    let output = folder.join("access");
    let program = landscape.connector.clctl("grant").args(["executor", "access", "grant", "--cluster", "--kubeconfig"]);
    let program = program.arg(other.admin_kubeconfig()).arg("--output-dir").arg(&output);
    let granted = program.run(&folder, SOON).await.unwrap().ok().unwrap();
    assert!(granted.stdout.ends_with("; nothing was applied.\n"), "{}", granted.stdout);
    assert_eq!(inventory(other).await, before);
    let bundle = output.join("_cluster");
    assert_eq!(names(&bundle), BTreeSet::from(["kubeconfig".to_owned(), "rbac.yaml".to_owned()]), "no token before it is applied");
    let review = bundle.join("rbac.yaml").display().to_string();
    let read = other.kubectl(&["apply", "--dry-run=client", "-o", "name", "-f", &review]).await.unwrap().ok().unwrap();
    let objects: Vec<&str> = read.stdout.lines().collect();
    let expected = [
        "namespace/clicklink-system",
        "serviceaccount/pcm-executor",
        "clusterrole.rbac.authorization.k8s.io/pcm-executor-cluster",
        "role.rbac.authorization.k8s.io/pcm-executor-token",
        "validatingadmissionpolicy.admissionregistration.k8s.io/pcm-executor-prefix-guard",
        "validatingadmissionpolicybinding.admissionregistration.k8s.io/pcm-executor-prefix-guard",
        "rolebinding.rbac.authorization.k8s.io/pcm-executor-token",
        "clusterrolebinding.rbac.authorization.k8s.io/pcm-executor-cluster",
    ];
    assert_eq!(objects, expected);
}

async fn another_cluster_is_refused(landscape: &Landscape, other: &ControlPlane) {
    let uid = async |cluster: &ControlPlane| {
        let args = ["get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"];
        cluster.kubectl(&args).await.unwrap().ok().unwrap().stdout
    };
    let (staged, live) = (uid(&landscape.control_plane).await, uid(other).await);
    let before = inventory(other).await;
    let theirs = other.admin_kubeconfig().display().to_string();
    let expected = format!("the bundle was staged for the cluster with uid {staged}, but context testbed leads to {live}");
    fails(landscape, &["--kubeconfig", &theirs, "--context", "testbed"], &[&expected, "--context"]).await;
    assert_eq!(inventory(other).await, before);
    fails(landscape, &["--context", "nowhere"], &["nowhere", "testbed"]).await;
}

async fn a_short_time_is_refused(landscape: &Landscape) {
    fails(landscape, &["--ttl", "5m"], &["5m is too short", "10m"]).await;
}

/// Told, granted, written down and heard alike.
async fn a_given_time_is_shown_and_obeyed(landscape: &Landscape, sha256: &str) {
    let asked_at = jiff::Timestamp::now();
    let closing = Closing::of(&landscape.connector.approve(&["--yes", "--ttl", "15m"]).await.unwrap().ok().unwrap()).unwrap();
    assert_eq!(closing.namespaces, format!("{NAMESPACE}, {EXTRA}"));
    let lasts = closing.expiry.parse::<jiff::Timestamp>().unwrap().duration_since(asked_at).as_secs();
    assert!((15 * 60 - 1..15 * 60 + 60).contains(&lasts), "{lasts} s");
    assert_eq!(landscape.connector.approval().unwrap()["expires_at"], closing.expiry);
    assert_eq!(account(landscape).await["metadata"]["annotations"]["clicklink.io/expires-at"], closing.expiry);
    let token = String::from_utf8(landscape.connector.token_bundle().unwrap()["token"].clone()).unwrap();
    assert_eq!(jiff::Timestamp::from_second(expiry_of(&token)).unwrap().to_string(), closing.expiry);
    landscape.until_status("synced", sha256).await;
    let environment = landscape.environment().await.unwrap();
    assert_eq!(environment["executors"][0]["platform"]["approval_expires_at"], closing.expiry, "{environment}");
}

/// An update without a platform namespace takes the account's rights there away; what lies there stays.
async fn rights_end_with_a_namespace(landscape: &Landscape, sha256: &str) {
    let cluster = &landscape.control_plane;
    let may_write = async |namespace: &str| {
        let account = "--as=system:serviceaccount:clicklink-system:pcm-platform";
        let asked = ["auth", "can-i", "patch", "deployments.apps/monitoring-collectors", "-n", namespace, account];
        cluster.kubectl(&asked).await.unwrap().stdout.trim() == "yes"
    };
    let content = landscape.content().await.unwrap();
    let ours = |content: &BTreeMap<String, Value>, namespace: &str| {
        ["roles", "rolebindings"]
            .map(|kind| content.contains_key(&format!("/apis/rbac.authorization.k8s.io/v1/{kind} {namespace}/pcm-platform")))
    };
    assert_eq!((ours(&content, EXTRA), ours(&content, NAMESPACE)), ([true, true], [true, true]));
    assert!(may_write(EXTRA).await && !may_write(NAMESPACE).await);
    let collectors = |namespace: &str| format!("/apis/apps/v1/deployments {namespace}/monitoring-collectors");
    assert!(content.contains_key(&collectors(EXTRA)));

    let approved = landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    assert_eq!(Closing::of(&approved).unwrap().namespaces, NAMESPACE);
    for kind in ["RoleBinding", "Role"] {
        let line = format!("removed: {kind}.rbac.authorization.k8s.io {EXTRA}/pcm-platform");
        assert!(approved.stderr.lines().any(|said| said.trim() == line), "{line} is not in:\n{}", approved.stderr);
    }
    let content = landscape.content().await.unwrap();
    assert_eq!((ours(&content, EXTRA), ours(&content, NAMESPACE)), ([false, false], [true, true]));
    landscape.until_status("synced", sha256).await;
    assert!(!may_write(EXTRA).await && may_write(NAMESPACE).await);
    let content = landscape.content().await.unwrap();
    assert!(content.contains_key(&collectors(EXTRA)), "what lies there is left over");
    assert!(content.contains_key(&collectors(NAMESPACE)));
}

/// What a failed approve must leave alone.
struct Before {
    content: BTreeMap<String, Value>,
    token_bundle: BTreeMap<String, Vec<u8>>,
    folder: BTreeSet<String>,
}

impl Before {
    async fn of(landscape: &Landscape) -> Self {
        Self {
            content: landscape.content().await.unwrap(),
            token_bundle: landscape.connector.token_bundle().unwrap(),
            folder: names(&landscape.connector.access_dir()),
        }
    }

    async fn is_untouched_by(&self, landscape: &Landscape, failed: &Finished, expected: &[&str]) {
        assert!(!matches!(failed.code(), Some(0) | None), "{failed:?}");
        for expected in expected {
            assert!(failed.stderr.contains(expected), "{expected} is not in:\n{}", failed.stderr);
        }
        assert!(!failed.stdout.contains("Approved:"), "{}", failed.stdout);
        self.is_still_so(landscape).await;
    }

    async fn is_still_so(&self, landscape: &Landscape) {
        assert_eq!(landscape.connector.token_bundle().unwrap(), self.token_bundle, "byte for byte");
        assert_eq!(names(&landscape.connector.access_dir()), self.folder, "nothing beside it");
        let content = landscape.content().await.unwrap();
        let keys = |content: &BTreeMap<String, Value>| content.keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(keys(&content), keys(&self.content));
        for (key, object) in &content {
            assert_eq!(object, &self.content[key], "{key}");
        }
    }
}

/// An approval that is agreed to and fails.
async fn fails(landscape: &Landscape, args: &[&str], expected: &[&str]) {
    let before = Before::of(landscape).await;
    let failed = landscape.connector.approve(&[&["--yes"], args].concat()).await.unwrap();
    before.is_untouched_by(landscape, &failed, expected).await;
}

/// With another access folder, or other credentials for the registry, than the connector's own.
async fn approve_by_hand(landscape: &Landscape, bundle: &str, output: &Path, registry_config: &Path) -> Finished {
    let program =
        landscape.connector.clctl("approve").args(["platform", "approve", "--yes", "--bundle", bundle, "--output-dir"]).arg(output);
    let program = program.arg("--registry-config").arg(registry_config).arg("--registry-ca-file").arg(landscape.registry.ca_file());
    program.run(landscape.connector.folder(), SOON).await.unwrap()
}

/// The release with one template more in its first chart.
async fn with_template(landscape: &Landscape, release: &Release, name: &str, template: &str) -> String {
    let mut release = release.clone();
    let component = &mut release.components[0];
    let chart: PathBuf = bundle::copy_chart(&component.chart.name, &component.chart.version, landscape.registry.folder()).unwrap();
    std::fs::write(chart.join(format!("templates/{name}.yaml")), template).unwrap();
    component.chart = landscape.registry.push_chart(&chart, None).await.unwrap();
    file(landscape, name, &release)
}

/// Two looks see the same: rollouts are over.
async fn settled(landscape: &Landscape) -> anyhow::Result<()> {
    let once = landscape.content().await?;
    let again = landscape.content().await?;
    ensure!(once == again, "objects still change");
    for (key, object) in once.iter().filter(|(key, _)| key.starts_with("/apis/apps/v1/deployments ")) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let rolled = ["rollout", "status", "deployment", name, "-n", NAMESPACE, "--watch=false"];
        let rolled = landscape.control_plane.kubectl(&rolled).await?.ok()?;
        ensure!(rolled.stdout.contains("successfully rolled out"), "{key}: {}", rolled.stdout);
    }
    Ok(())
}

async fn account(landscape: &Landscape) -> Value {
    let args = ["get", "serviceaccount", "pcm-platform", "-n", "clicklink-system", "-o", "json"];
    serde_json::from_str(&landscape.control_plane.kubectl(&args).await.unwrap().ok().unwrap().stdout).unwrap()
}

/// What is in a cluster, without the namespaces that the cluster keeps for itself.
async fn inventory(cluster: &ControlPlane) -> BTreeSet<String> {
    let kinds = "namespaces,serviceaccounts,clusterroles,clusterrolebindings,roles,rolebindings,customresourcedefinitions,storageclasses,\
                 validatingadmissionpolicies,validatingadmissionpolicybindings,secrets,configmaps";
    let line = "{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}";
    let listed = cluster.kubectl(&["get", kinds, "-A", "-o", &format!("jsonpath={line}")]).await.unwrap().ok().unwrap();
    let found: BTreeSet<String> =
        listed.stdout.lines().filter(|line| !line.contains(" kube-") && !line.contains(" /kube-")).map(str::to_owned).collect();
    assert!(found.contains("ClusterRole /cluster-admin") && found.contains("Namespace /default"), "{found:?}");
    found
}

/// The claim `exp` of a token.
fn expiry_of(token: &str) -> i64 {
    use base64::Engine as _;
    let claims = token.split('.').nth(1).unwrap();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).unwrap();
    serde_json::from_slice::<Value>(&claims).unwrap()["exp"].as_i64().unwrap()
}

fn names(folder: &Path) -> BTreeSet<String> {
    folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
