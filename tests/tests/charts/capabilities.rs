//! What a chart may ask of a cluster: read by us and by helm from one live API server, a part of which does not answer.

use std::time::Duration;

use agent_api::kind::{Kind, Refused};
use serde_json::Value;
use system_tests::chart_case::Case;
use system_tests::{ControlPlane, Program, Tools, eventually};

const PATIENCE: Duration = Duration::from_secs(60);

/// An aggregated API whose server is gone: nobody knows what it would serve.
const DEAD: &str = "
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: kube-system, name: gone}
";
const OWN: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ws.own.io}
spec:
  group: own.io
  scope: Namespaced
  names: {kind: W, plural: ws}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}, subresources: {status: {}}}
    - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
";

#[tokio::test]
async fn a_chart_is_told_of_a_cluster_what_helm_tells_it() {
    let cp = ControlPlane::own().await;
    cp.apply(OWN).await.unwrap();
    cp.apply(DEAD).await.unwrap();
    let client = cp.client().await.unwrap();
    let ours = eventually("both are in discovery", PATIENCE, || async {
        let read = cluster::capabilities::read(&client).await?;
        anyhow::ensure!(read.api_versions.iter().any(|name| name == "own.io/v1/W"), "{read:?}");
        anyhow::ensure!(!read.server.unknown_groups.is_empty(), "{read:?}");
        Ok(read)
    })
    .await;
    assert_eq!(ours.server.unknown_groups, ["metrics.k8s.io"]);

    let theirs = helms(&cp).await;
    let version = |field: &str| theirs["KubeVersion"][field].as_str().unwrap().to_owned();
    assert_eq!([ours.kube_version, ours.server.major, ours.server.minor], ["Version", "Major", "Minor"].map(version));
    let mut names: Vec<&str> = theirs["APIVersions"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(ours.api_versions, names);
    every_kind_has_its_place(&ours.api_versions);
}

/// Each kind that the API server serves is in one of the halves, or refused for a reason.
fn every_kind_has_its_place(served: &[String]) {
    let mut placed = 0;
    for (group, kind) in served.iter().filter_map(|name| match name.split('/').collect::<Vec<_>>()[..] {
        ["v1", kind] => Some(("", kind)),
        [group, _, kind] => Some((group, kind)),
        _ => None,
    }) {
        // Bodies of subresources, and what a request brings with it.
        let no_object =
            ["Scale", "Eviction", "TokenRequest", "PodExecOptions", "PodAttachOptions", "PodPortForwardOptions", "PodProxyOptions"];
        if !no_object.contains(&kind) && !kind.ends_with("ProxyOptions") {
            assert!(Kind::find(group, kind).is_some() || Refused::find(group, kind).is_some(), "{kind} of `{group}` has no place");
            placed += 1;
        }
    }
    assert!(placed > 60, "{placed} kinds");
}

/// `.Capabilities` as a template sees them in an installation that helm tries out on the server.
async fn helms(cp: &ControlPlane) -> Value {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {all: {{ .Capabilities | toJson | quote }}}\n";
    let case = Case::of("capabilities", template, "", serde_json::Map::new());
    let archive = cp.folder().write("c.tgz", case.archive()).unwrap();
    let program =
        Program::new("helm", Tools::registry().await.unwrap().path("helm")).only_given_env().env("HOME", cp.folder().join("helm"));
    let program = program.args(["template", "rel", "--dry-run=server", "--kubeconfig"]).arg(cp.admin_kubeconfig()).arg(archive);
    let printed = program.run(cp.folder(), PATIENCE).await.unwrap().ok().unwrap().stdout;
    let text = printed.lines().find_map(|line| line.strip_prefix("data: {all: ")).and_then(|rest| rest.strip_suffix('}')).unwrap();
    let json: String = serde_json::from_str(text).unwrap();
    serde_json::from_str(&json).unwrap()
}
