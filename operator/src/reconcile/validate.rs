//! The rules of the resource once more, whoever wrote it, and the one that the API server cannot check: no secret in values.
//!
//! The patterns and limits are those of the definition. A finding names the path and never the value.

use std::fmt;

use agent_api::values::secrets_in;
use cluster::crd::managed_component::{
    Amount, LABEL_PATTERN, LOCAL_PATTERN, MAX_NAME, MAX_REPLICAS, MAX_SECRET_REFS, ManagedComponentSpec, OCI_PATTERN, PERCENT_PATTERN,
    SECRET_KEY_PATTERN, SUBDOMAIN_PATTERN, VALUE_PATH_PATTERN,
};
use regex_lite::Regex;
use serde_json::Value;

use super::reason::Reason;

/// Everything that is wrong with a resource; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violations {
    /// Each as path and what is wrong with it.
    pub rules: Vec<(String, String)>,
    /// Paths of values that look like secrets.
    pub secrets: Vec<String>,
}

impl Violations {
    /// A secret weighs more than a rule.
    #[must_use]
    pub fn reason(&self) -> Reason {
        if self.secrets.is_empty() { Reason::InvalidSpec } else { Reason::SecretInValues }
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.rules.iter().map(|(path, problem)| format!("{path}: {problem}"));
        let secrets = self.secrets.iter().map(|path| format!("values.{path}: looks like a secret; name a Secret in secretRefs"));
        f.write_str(&rules.chain(secrets).collect::<Vec<_>>().join("; "))
    }
}

impl std::error::Error for Violations {}

/// Checks a resource.
///
/// # Errors
/// All violations at once.
pub fn validate(name: &str, spec: &ManagedComponentSpec) -> Result<(), Violations> {
    let mut found = Findings::default();
    if name.len() > MAX_NAME {
        found.add("metadata.name", format!("at most {MAX_NAME} characters, so that charts can append to it"));
    }
    found.pattern("metadata.name", name, LABEL_PATTERN, "a DNS label, without dots");
    found.text("service", &spec.service, 63, LABEL_PATTERN, "a DNS label");
    source(spec, &mut found);
    secret_refs(spec, &mut found);
    counts(spec, &mut found);
    let secrets = secrets_in(&Value::Object(spec.values.clone()));
    if found.0.is_empty() && secrets.is_empty() { Ok(()) } else { Err(Violations { rules: found.0, secrets }) }
}

fn source(spec: &ManagedComponentSpec, found: &mut Findings) {
    if spec.source.local.is_some() == spec.source.oci.is_some() {
        found.add("source", "exactly one of local and oci");
    }
    if let Some(local) = &spec.source.local {
        found.text("source.local", local, 253, LOCAL_PATTERN, "a path below the charts folder, no part of which begins with a dot");
    }
    if let Some(oci) = &spec.source.oci {
        found.text("source.oci", oci, 512, OCI_PATTERN, "oci://host/path@sha256:…; a tag alone is refused");
    }
    if spec.version.as_ref().is_some_and(|version| version.is_empty() || version.len() > 128) {
        found.add("version", "1 to 128 characters");
    }
}

fn secret_refs(spec: &ManagedComponentSpec, found: &mut Findings) {
    if spec.secret_refs.len() > MAX_SECRET_REFS {
        found.add("secretRefs", format!("at most {MAX_SECRET_REFS}"));
    }
    for (i, reference) in spec.secret_refs.iter().enumerate() {
        found.text(&format!("secretRefs[{i}].secretName"), &reference.secret_name, 253, SUBDOMAIN_PATTERN, "a name of a Secret");
        found.text(&format!("secretRefs[{i}].key"), &reference.key, 253, SECRET_KEY_PATTERN, "a key of a Secret");
        found.text(&format!("secretRefs[{i}].valuePath"), &reference.value_path, 253, VALUE_PATH_PATTERN, "keys joined by dots");
        if spec.secret_refs[..i].iter().any(|other| other.value_path == reference.value_path) {
            found.add(&format!("secretRefs[{i}].valuePath"), "is given twice");
        }
    }
}

fn counts(spec: &ManagedComponentSpec, found: &mut Findings) {
    found.range("replicas", spec.replicas, MAX_REPLICAS);
    let min_available = spec.pdb.as_ref().and_then(|pdb| match pdb.min_available {
        Some(Amount::Count(count)) => Some(count),
        Some(Amount::Percent(_)) | None => None,
    });
    if let Some(pdb) = &spec.pdb {
        if pdb.min_available.is_some() == pdb.max_unavailable.is_some() {
            found.add("pdb", "exactly one of minAvailable and maxUnavailable");
        }
        for (path, amount) in [("pdb.minAvailable", &pdb.min_available), ("pdb.maxUnavailable", &pdb.max_unavailable)] {
            match amount {
                Some(Amount::Count(count)) if *count > MAX_REPLICAS => found.add(path, format!("at most {MAX_REPLICAS}")),
                Some(Amount::Percent(text)) => found.pattern(path, text, PERCENT_PATTERN, "0% to 100%"),
                Some(Amount::Count(_)) | None => {}
            }
        }
    }
    if let (Some(replicas), Some(min)) = (spec.replicas, min_available)
        && replicas < min
    {
        found.add("replicas", "fewer than pdb.minAvailable");
    }
    if let Some(autoscaling) = &spec.autoscaling {
        found.range("autoscaling.minReplicas", Some(autoscaling.min_replicas), MAX_REPLICAS);
        found.range("autoscaling.maxReplicas", Some(autoscaling.max_replicas), MAX_REPLICAS);
        found.range("autoscaling.targetCPUUtilizationPercentage", Some(autoscaling.target_cpu_utilization_percentage), 1_000);
        if autoscaling.min_replicas > autoscaling.max_replicas {
            found.add("autoscaling", "minReplicas is more than maxReplicas");
        }
        if min_available.is_some_and(|min| autoscaling.min_replicas < min) {
            found.add("autoscaling.minReplicas", "fewer than pdb.minAvailable");
        }
    }
}

#[derive(Default)]
struct Findings(Vec<(String, String)>);

impl Findings {
    fn add(&mut self, path: &str, problem: impl Into<String>) {
        self.0.push((path.to_owned(), problem.into()));
    }

    fn pattern(&mut self, path: &str, text: &str, pattern: &str, expected: &str) {
        if !Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text)) {
            self.add(path, format!("is not {expected}"));
        }
    }

    fn text(&mut self, path: &str, text: &str, longest: usize, pattern: &str, expected: &str) {
        if text.len() > longest {
            self.add(path, format!("at most {longest} characters"));
        }
        self.pattern(path, text, pattern, expected);
    }

    fn range(&mut self, path: &str, count: Option<u32>, most: u32) {
        if count.is_some_and(|count| count == 0 || count > most) {
            self.add(path, format!("1 to {most}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DIGEST: &str = "sha256:0920e45a4d371a6a9096c0019afea688e3aecbd1167182f5dacfe86b37605449";

    fn spec(over: Value) -> ManagedComponentSpec {
        let mut whole = json!({"service": "redis", "source": {"local": "redis"}});
        for (field, value) in over.as_object().unwrap() {
            whole[field] = value.clone();
        }
        serde_json::from_value(whole).unwrap()
    }

    fn found(name: &str, over: Value) -> String {
        validate(name, &spec(over)).err().map(|violations| violations.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_is_right_passes() {
        for over in [
            json!({}),
            json!({"source": {"oci": format!("oci://127.0.0.1:5000/a/redis:1.2.3@{DIGEST}")}}),
            json!({"replicas": 2, "pdb": {"minAvailable": 2}}),
            json!({"pdb": {"maxUnavailable": "100%"}}),
            json!({"autoscaling": {"minReplicas": 2, "maxReplicas": 2}, "pdb": {"minAvailable": 2}}),
            json!({"secretRefs": [{"secretName": "redis-auth", "key": "password", "valuePath": "auth.existingSecret"}]}),
        ] {
            assert_eq!(found(&"x".repeat(53), over.clone()), "", "{over}");
        }
    }

    /// The API server's rules, each broken alone; the same rows are asked of a real one in the system tests.
    #[test]
    fn each_rule_of_the_definition_is_checked_again() {
        let reference = |name: &str, key: &str, path: &str| json!({"secretName": name, "key": key, "valuePath": path});
        for (over, expected) in [
            (json!({"service": ""}), "service: is not a DNS label"),
            (json!({"source": {}}), "source: exactly one of local and oci"),
            (json!({"source": {"local": "a", "oci": format!("oci://h/a@{DIGEST}")}}), "source: exactly one of local and oci"),
            (json!({"source": {"local": "../etc"}}), "source.local: is not a path"),
            (json!({"source": {"local": "a/../../b"}}), "source.local: is not a path"),
            (json!({"source": {"oci": "oci://ghcr.io/acme/redis:1.2.3"}}), "a tag alone is refused"),
            (json!({"version": ""}), "version: 1 to 128"),
            (json!({"replicas": 0}), "replicas: 1 to 10000"),
            (json!({"replicas": 1, "pdb": {"minAvailable": 2}}), "replicas: fewer than pdb.minAvailable"),
            (json!({"pdb": {}}), "pdb: exactly one of minAvailable and maxUnavailable"),
            (json!({"pdb": {"minAvailable": 1, "maxUnavailable": 1}}), "pdb: exactly one of minAvailable and maxUnavailable"),
            (json!({"pdb": {"minAvailable": "101%"}}), "pdb.minAvailable: is not 0% to 100%"),
            (json!({"autoscaling": {"minReplicas": 3, "maxReplicas": 2}}), "autoscaling: minReplicas is more than maxReplicas"),
            (json!({"autoscaling": {"minReplicas": 0, "maxReplicas": 2}}), "autoscaling.minReplicas: 1 to"),
            (
                json!({"autoscaling": {"minReplicas": 1, "maxReplicas": 2}, "pdb": {"minAvailable": 2}}),
                "autoscaling.minReplicas: fewer than pdb.minAvailable",
            ),
            (json!({"secretRefs": [reference("S", "k", "a")]}), "secretRefs[0].secretName"),
            (json!({"secretRefs": [reference("s", "a/b", "a")]}), "secretRefs[0].key"),
            (json!({"secretRefs": [reference("s", "k", "a..b")]}), "secretRefs[0].valuePath"),
            (json!({"secretRefs": [reference("s", "k", "a"), reference("t", "k", "a")]}), "secretRefs[1].valuePath: is given twice"),
        ] {
            let found = found("redis", over.clone());
            assert!(found.contains(expected), "{over}: {found}");
        }
        for (name, expected) in [("x".repeat(54), "metadata.name: at most 53"), ("a.b".into(), "metadata.name: is not a DNS label")] {
            assert!(found(&name, json!({})).contains(expected), "{name}");
        }
    }

    #[test]
    fn a_secret_in_values_is_named_by_its_path_and_never_shown() {
        let planted = "planted-5e0b7a";
        let over = json!({"values": {"auth": {"password": planted, "passwordKey": "k"}, "list": [{"apiKey": planted}]}, "replicas": 0});
        let violations = validate("redis", &spec(over)).unwrap_err();
        assert_eq!(violations.secrets, ["auth.password", "list[0].apiKey"]);
        assert_eq!(violations.reason(), Reason::SecretInValues);
        let told = format!("{violations} {violations:?}");
        assert!(!told.contains(planted), "{told}");
        assert!(told.contains("replicas: 1 to"), "all at once: {told}");
    }
}
