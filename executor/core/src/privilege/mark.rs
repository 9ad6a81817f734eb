//! Rights that lead to more rights than their rule says, by the list of Kubernetes ("Role Based Access Control Good Practices",
//! "Privilege escalation risks").

use serde::Serialize;

use super::grant::{Grant, Scope, Target};

/// Why a right is escalation-grade.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// A `*`: it grows with what is installed later.
    Wildcard,
    /// Secrets hold the credentials of others; so does a list of them.
    ReadsSecrets,
    /// Verb `bind`: gives itself roles that it does not hold.
    Binds,
    /// Verb `escalate`: writes roles with rights that it does not hold.
    Escalates,
    /// Verb `impersonate` (and those that begin so): acts as somebody else.
    Impersonates,
    /// Subresources of nodes reach their kubelet; a write to a node moves pods.
    ReachesNodes,
    /// A shell in a pod of somebody else's.
    EntersPods,
    /// Tokens of ServiceAccounts.
    MintsTokens,
    /// Webhooks and admission policies see and change everybody's requests.
    WritesWebhooks,
    /// A definition can drop or convert everybody's objects.
    WritesDefinitions,
    /// An API service answers for the API server.
    WritesApiServices,
    /// A pod runs as any ServiceAccount of its namespace, and may mount its Secrets; what makes pods from a template is the same.
    RunsPods,
    /// A volume may be any folder of a node.
    MakesVolumes,
    /// An approved request is a client certificate.
    ApprovesCertificates,
}

impl Mark {
    /// What an identity with it can do, after "it could".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Wildcard => "use whatever a `*` fits, now and later",
            Self::ReadsSecrets => "read Secrets",
            Self::Binds => "give out roles that it does not hold",
            Self::Escalates => "write roles with rights that it does not hold",
            Self::Impersonates => "act as somebody else",
            Self::ReachesNodes => "reach into nodes",
            Self::EntersPods => "run commands in pods",
            Self::MintsTokens => "make tokens of ServiceAccounts",
            Self::WritesWebhooks => "change who sees and alters everybody's requests",
            Self::WritesDefinitions => "change definitions of custom kinds",
            Self::WritesApiServices => "answer in place of the API server",
            Self::RunsPods => "run pods, as any ServiceAccount there",
            Self::MakesVolumes => "make volumes of a node's folders",
            Self::ApprovesCertificates => "approve client certificates",
        }
    }
}

/// A row: what it is about, and whether it lies in no namespace (a right in one namespace then gives nothing).
struct Row {
    mark: Mark,
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    cluster_only: bool,
}

const fn row(mark: Mark, group: &'static str, resources: &'static [&'static str], verbs: &'static [&'static str]) -> Row {
    Row { mark, group, resources, verbs, cluster_only: false }
}

const fn of_cluster(mark: Mark, group: &'static str, resources: &'static [&'static str], verbs: &'static [&'static str]) -> Row {
    Row { mark, group, resources, verbs, cluster_only: true }
}

const WRITES: &[&str] = &["create", "update", "patch", "delete", "deletecollection"];
const TEMPLATES: &[&str] = &["create", "update", "patch"];
const RBAC: &str = "rbac.authorization.k8s.io";

const ROWS: [Row; 18] = [
    row(Mark::ReadsSecrets, "", &["secrets"], &["get", "list", "watch"]),
    row(Mark::Binds, RBAC, &["roles", "clusterroles"], &["bind"]),
    row(Mark::Escalates, RBAC, &["roles", "clusterroles"], &["escalate"]),
    row(Mark::Impersonates, "", &["users", "groups", "serviceaccounts"], &["impersonate"]),
    row(Mark::Impersonates, "authentication.k8s.io", &["uids", "userextras"], &["impersonate"]),
    // The verbs that the kubelet's API is asked with.
    of_cluster(Mark::ReachesNodes, "", &["nodes/proxy"], &["get", "create", "update", "patch", "delete"]),
    of_cluster(Mark::ReachesNodes, "", &["nodes"], WRITES),
    // Over a WebSocket both are a GET.
    row(Mark::EntersPods, "", &["pods/exec", "pods/attach"], &["create", "get"]),
    row(Mark::EntersPods, "", &["pods/ephemeralcontainers"], &["update", "patch"]),
    row(Mark::MintsTokens, "", &["serviceaccounts/token"], &["create"]),
    of_cluster(
        Mark::WritesWebhooks,
        "admissionregistration.k8s.io",
        &[
            "validatingwebhookconfigurations",
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
        ],
        WRITES,
    ),
    of_cluster(Mark::WritesDefinitions, "apiextensions.k8s.io", &["customresourcedefinitions"], WRITES),
    of_cluster(Mark::WritesApiServices, "apiregistration.k8s.io", &["apiservices"], WRITES),
    row(Mark::RunsPods, "", &["pods", "replicationcontrollers"], &["create"]),
    row(Mark::RunsPods, "apps", &["deployments", "daemonsets", "statefulsets", "replicasets"], TEMPLATES),
    row(Mark::RunsPods, "batch", &["jobs", "cronjobs"], TEMPLATES),
    of_cluster(Mark::MakesVolumes, "", &["persistentvolumes"], &["create"]),
    of_cluster(Mark::ApprovesCertificates, "certificates.k8s.io", &["certificatesigningrequests/approval"], &["update", "patch"]),
];

/// All marks of a grant.
pub(super) fn marks(grant: &Grant) -> Vec<Mark> {
    let verb = grant.verb.as_str();
    let (group, resource) = match &grant.target {
        Target::Url(url) => return if verb == "*" || url == "*" || url == "/*" { vec![Mark::Wildcard] } else { Vec::new() },
        Target::Resource { group, resource, .. } => (group.as_str(), resource.as_str()),
    };
    let mut found = Vec::new();
    if verb == "*" || group == "*" || resource.contains('*') {
        found.push(Mark::Wildcard);
    }
    // A whole cluster or namespace: a list of what that holds would only hide it.
    if (verb, group, resource) == ("*", "*", "*") {
        return found;
    }
    let cluster = grant.scope == Scope::Cluster;
    let rows = ROWS.iter().filter(|row| {
        (cluster || !row.cluster_only)
            && fits(group, row.group)
            && row.resources.iter().any(|wanted| fits_resource(resource, wanted))
            && row.verbs.iter().any(|wanted| fits(verb, wanted))
    });
    found.extend(rows.map(|row| row.mark));
    if cluster && fits(group, "") && resource.starts_with("nodes/") {
        found.push(Mark::ReachesNodes);
    }
    // On whatever resource: a verb of this name has no other meaning.
    found.extend((verb == "bind").then_some(Mark::Binds));
    found.extend((verb == "escalate").then_some(Mark::Escalates));
    found.extend(verb.starts_with("impersonate").then_some(Mark::Impersonates));
    found.sort();
    found.dedup();
    found
}

fn fits(granted: &str, wanted: &str) -> bool {
    granted == "*" || granted == wanted
}

/// As RBAC compares: `*/scale` is that subresource of everything.
fn fits_resource(granted: &str, wanted: &str) -> bool {
    let of_all = |sub: &str| wanted.split_once('/').is_some_and(|(_, wanted)| wanted == sub);
    fits(granted, wanted) || granted.strip_prefix("*/").is_some_and(of_all)
}
