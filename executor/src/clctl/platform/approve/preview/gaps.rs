//! What the API server did not let a person ask, so that a plan can say what in it is an estimate or not known.

use std::collections::BTreeMap;

use agent_api::kind::Kind;
use agent_api::object::ObjectKey;
use cluster::ClusterError;

/// What authorization says, of whatever authorizer (Kubernetes, `forbiddenMessage`). Quotas and admission say "forbidden" as well, and
/// those would stop everybody.
const NO_RIGHT: [&str; 2] = [" cannot ", " resource "];
/// What it says of somebody who may write roles, but not these.
const NO_HIGHER: &str = "attempting to grant RBAC permissions not currently held";

/// A question that was forbidden: in the order in which they are told.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Question {
    /// (resource, namespace).
    Read(String, String),
    DryRun(String, String),
    List(String, String, &'static str),
}

/// All of them.
pub(super) struct Gaps {
    estimates: bool,
    found: BTreeMap<Question, usize>,
}

impl Gaps {
    /// Without `estimates` nothing that is agreed to is let pass.
    pub(super) fn new(estimates: bool) -> Self {
        Self { estimates, found: BTreeMap::new() }
    }

    /// Whether a forbidden question may be answered by an estimate.
    pub(super) fn lets_pass(&self, error: &ClusterError) -> bool {
        self.estimates && is_missing_right(error)
    }

    /// An object could not be read.
    pub(super) fn unread(&mut self, key: &ObjectKey) {
        self.note(Question::Read(resource(key), key.namespace.clone()));
    }

    /// An object could not be dry-run.
    pub(super) fn undried(&mut self, key: &ObjectKey) {
        self.note(Question::DryRun(resource(key), key.namespace.clone()));
    }

    /// A kind could not be listed, in a namespace or (empty) everywhere; `then` says what follows.
    pub(super) fn unlisted(&mut self, kind: &Kind, namespace: &str, then: &'static str) {
        self.note(Question::List(qualified(kind.resource, kind.group), namespace.to_owned(), then));
    }

    fn note(&mut self, question: Question) {
        *self.found.entry(question).or_default() += 1;
    }

    /// What was forbidden and what follows, one a sentence.
    pub(super) fn sentences(&self) -> Vec<String> {
        let place = |namespace: &str| if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
        let objects = |n: usize| if n == 1 { "1 object is".to_owned() } else { format!("{n} objects are") };
        let sentence = |(question, n): (&Question, &usize)| match question {
            Question::Read(resource, namespace) => {
                format!("you may not get {resource}{}: {} not known", place(namespace), objects(*n))
            }
            Question::DryRun(resource, namespace) => {
                format!("you may not patch {resource}{}: {} estimated from what is live", place(namespace), objects(*n))
            }
            Question::List(resource, namespace, then) => format!("you may not list {resource}{}: {then}", place(namespace)),
        };
        self.found.iter().map(sentence).collect()
    }
}

/// Whether a question was forbidden for want of a right.
pub(super) fn is_missing_right(error: &ClusterError) -> bool {
    let ClusterError::Forbidden { message, .. } = error else { return false };
    NO_RIGHT.iter().all(|words| message.contains(words)) || message.contains(NO_HIGHER)
}

fn resource(key: &ObjectKey) -> String {
    qualified(key.row().map_or(key.kind.as_str(), |row| row.resource), &key.group)
}

/// As in a role: `clusterroles.rbac.authorization.k8s.io`.
fn qualified(resource: &str, group: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{resource}{dot}{group}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_right_is_let_pass_and_only_to_look() {
        let forbidden = |message: &str| ClusterError::Forbidden { about: "x".into(), message: message.into() };
        let right = "roles.rbac.authorization.k8s.io \"r\" is forbidden: User \"u\" cannot patch resource \"roles\" in API group \"g\"";
        let higher =
            "clusterroles \"r\" is forbidden: user \"u\" (groups=[\"g\"]) is attempting to grant RBAC permissions not currently held:";
        let quota = "pods \"p\" is forbidden: exceeded quota: q";
        for (estimates, message, expected) in
            [(true, right, true), (true, higher, true), (true, quota, false), (false, right, false), (false, higher, false)]
        {
            assert_eq!(Gaps::new(estimates).lets_pass(&forbidden(message)), expected, "{message}");
        }
        assert!(!Gaps::new(true).lets_pass(&ClusterError::Invalid { about: "x".into(), message: right.into() }));
    }

    #[test]
    fn each_missing_right_is_a_sentence() {
        let key = |kind: &str, namespace: &str| ObjectKey {
            group: String::new(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: "n".into(),
        };
        let mut gaps = Gaps::new(true);
        gaps.undried(&key("Secret", "n"));
        gaps.unread(&key("Secret", "n"));
        gaps.unread(&key("Secret", "n"));
        gaps.unlisted(&agent_api::kind::KINDS[7], "", "so it is");
        assert_eq!(
            gaps.sentences(),
            [
                "you may not get secrets in namespace n: 2 objects are not known",
                "you may not patch secrets in namespace n: 1 object is estimated from what is live",
                "you may not list clusterroles.rbac.authorization.k8s.io: so it is",
            ]
        );
    }
}
