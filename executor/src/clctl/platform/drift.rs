//! How the live workload half departs from the approval that holds, as the executor sees it through its own rights.

use agent_api::heartbeat::ClusterInfo;
use serde::Deserialize;

use crate::clctl::local_api::LocalApi;
use crate::local_api::DriftedObject;
use crate::terminal::chain;

/// What of the executor's answer counts here.
#[derive(Deserialize)]
struct Answer {
    drift: Option<Vec<DriftedObject>>,
    cluster: ClusterInfo,
}

/// Asks the executor at this address, which has to be one of the cluster with this uid.
///
/// # Errors
/// Why the drift is not known, for a person.
pub(super) async fn read(endpoint: &str, cluster_uid: &str) -> Result<Vec<DriftedObject>, String> {
    let answer: Answer = LocalApi::at(endpoint).get("/v1/platform", &[]).await.map_err(|error| chain(&error))?;
    known(answer, endpoint, cluster_uid)
}

fn known(answer: Answer, endpoint: &str, cluster_uid: &str) -> Result<Vec<DriftedObject>, String> {
    match answer.cluster.uid {
        Some(uid) if uid != cluster_uid => Err(format!("the executor at {endpoint} is one of another cluster (uid {uid})")),
        Some(_) => {
            answer.drift.ok_or_else(|| "the executor does not know: it cannot look, or another bundle is approved than applied".into())
        }
        None => Err("the executor cannot look into the cluster".into()),
    }
}

/// A row for each field that differs, or for the object that is missing.
pub(super) fn rows(drift: &[DriftedObject]) -> Vec<Vec<String>> {
    let row = |object: &DriftedObject, field: &str| vec![object.object.clone(), field.to_owned()];
    let of = |object: &DriftedObject| match object.missing {
        true => vec![row(object, "missing")],
        false => object.fields.iter().map(|field| row(object, &field.path)).collect(),
    };
    drift.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn drift_is_that_of_the_cluster_in_question() {
        let check = |uid: Option<&str>, drift: serde_json::Value, expected: Result<usize, &str>| {
            let answer = json!({"drift": drift, "cluster": {"uid": uid, "kubernetes_version": null, "api_address": null,
                "reachable": true, "observed_at": null}});
            let found = known(serde_json::from_value(answer).unwrap(), "http://e", "u").map(|drift| drift.len());
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
                (found, expected) => panic!("{found:?}, expected {expected:?}"),
            }
        };
        check(Some("u"), json!([]), Ok(0));
        check(Some("u"), json!([{"object": "Service n/s", "missing": true, "fields": []}]), Ok(1));
        check(Some("u"), json!(null), Err("does not know"));
        check(Some("other"), json!([]), Err("of another cluster (uid other)"));
        check(None, json!(null), Err("cannot look"));
    }
}
