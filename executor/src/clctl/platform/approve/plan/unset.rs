//! What must be unset before an apply is taken at all: a field that the API server filled in, and that what is rendered rules out.
//!
//! A Deployment that turns to `Recreate` may not keep the `rollingUpdate` of its former strategy (Kubernetes, "Deployments"), and an apply only
//! takes away what its own manager set. Unsetting it starts no rollout.

use serde_json::{Value, json};

const STRATEGY: &str = "/spec/strategy";
const FIELD: &str = "spec.strategy.rollingUpdate";

/// The fields, and the live object without them; `None` where there are none.
pub(in super::super) fn unset(live: &Value, rendered: &Value) -> Option<(Vec<String>, Value)> {
    let recreate = rendered.pointer(STRATEGY)?.get("type")? == "Recreate";
    let filled = live.pointer(STRATEGY)?.get("rollingUpdate").is_some_and(|field| !field.is_null());
    if !recreate || !filled {
        return None;
    }
    let mut mended = live.clone();
    *mended.pointer_mut(STRATEGY)? = json!({"type": "Recreate"});
    Some((vec![FIELD.to_owned()], mended))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_turn_to_recreate_unsets() {
        let deployment = |strategy: Value| json!({"spec": {"replicas": 1, "strategy": strategy}});
        let rolling = deployment(json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}));
        let recreate = deployment(json!({"type": "Recreate"}));
        assert_eq!(unset(&rolling, &recreate), Some((vec![FIELD.to_owned()], recreate.clone())));
        for (live, rendered) in [(&rolling, &rolling), (&recreate, &recreate), (&recreate, &rolling), (&json!({}), &recreate)] {
            assert_eq!(unset(live, rendered), None, "{live} {rendered}");
        }
    }
}
