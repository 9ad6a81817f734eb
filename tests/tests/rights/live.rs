//! The bundle's objects as the executor applied them, and what of the cluster attempts refer to.

use agent_api::names::FIELD_MANAGER_EXECUTOR;
use serde_json::{Value, json};
use system_tests::applied_by;
use system_tests::bundle::NAMESPACE;
use system_tests::landscape::Landscape;

use crate::ask::{Identity, apply, path_of};

/// The kinds that `pcm-platform` may write.
pub(crate) const KINDS: [&str; 6] = ["ConfigMap", "Deployment", "Job", "PodDisruptionBudget", "Secret", "Service"];

pub(crate) struct Live {
    /// What was applied, without what others or the cluster added.
    pub(crate) objects: Vec<Value>,
    /// What each of them is live, in the same order.
    whole: Vec<Value>,
    /// A pod of the platform's.
    pub(crate) pod: String,
}

impl Live {
    pub(crate) async fn read(landscape: &Landscape) -> Self {
        let kinds = "deployments,services,configmaps,secrets,jobs,poddisruptionbudgets";
        let get = ["get", kinds, "-n", NAMESPACE, "-l", "clicklink.io/pinned=true", "-o", "json", "--show-managed-fields"];
        let listed = landscape.control_plane.kubectl(&get).await.unwrap().ok().unwrap();
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let whole = listed["items"].as_array().unwrap().clone();
        let objects = whole.iter().map(|object| applied_by(object, FIELD_MANAGER_EXECUTOR).unwrap()).collect();
        let pods = ["get", "pods", "-n", NAMESPACE, "-o", "jsonpath={.items[0].metadata.name}"];
        let pod = landscape.control_plane.kubectl(&pods).await.unwrap().ok().unwrap().stdout;
        Self { objects, whole, pod }
    }

    /// Reads again what the objects are live; what was applied stays as it was read first.
    pub(crate) async fn refresh(&mut self, landscape: &Landscape) {
        let now = Self::read(landscape).await;
        let name = |object: &Value| [object["kind"].clone(), object["metadata"]["name"].clone()];
        for whole in &mut self.whole {
            *whole = now.whole.iter().find(|object| name(object) == name(whole)).unwrap().clone();
        }
        self.pod = now.pod;
    }

    /// As applied. Of a Job the name goes on with a digest.
    pub(crate) fn named(&self, kind: &str, name: &str) -> Value {
        self.objects[self.position(kind, name)].clone()
    }

    /// As it is live.
    pub(crate) fn whole(&self, kind: &str, name: &str) -> &Value {
        &self.whole[self.position(kind, name)]
    }

    fn position(&self, kind: &str, name: &str) -> usize {
        let is = |object: &Value| {
            let found = object["metadata"]["name"].as_str().unwrap();
            object["kind"] == kind && (found == name || kind == "Job" && found.starts_with(name))
        };
        self.objects.iter().position(is).unwrap_or_else(|| panic!("{kind} {name} is in the bundle"))
    }

    /// As applied, with a change.
    pub(crate) fn changed(&self, kind: &str, name: &str, change: impl FnOnce(&mut Value)) -> Value {
        let before = self.named(kind, name);
        let mut after = before.clone();
        change(&mut after);
        assert_ne!(after, before, "the change of {kind} {name} does something");
        after
    }
}

/// Applies every object as it was applied before; tells what is not taken.
pub(crate) async fn not_taken_again(platform: &Identity, objects: &[Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    for object in objects {
        let (status, message) = platform.ask(&apply(object.clone())).await;
        if status != 200 && status != 201 {
            wrong.push(format!("{}: {status} {message}", path_of(object)));
        }
    }
    wrong
}

/// One object of each kind that an attacker could try to create anew in another form; Deployments are changed where they are.
pub(crate) const GONE: [(&str, &str); 5] = [
    ("ConfigMap", "monitoring-collectors-gateway"),
    ("Job", "monitoring-collectors-migration"),
    ("PodDisruptionBudget", "snapshot-controller"),
    ("Secret", "monitoring-collectors-endpoints"),
    ("Service", "monitoring-collectors"),
];

/// Removes the objects of [`GONE`], as a person would; answers with them.
pub(crate) async fn remove_some(landscape: &Landscape, live: &Live) -> Vec<Value> {
    let objects: Vec<Value> = GONE.iter().map(|(kind, name)| live.named(kind, name)).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let file = landscape.connector.folder().write("gone.json", list).unwrap().display().to_string();
    landscape.control_plane.kubectl(&["delete", "-f", &file]).await.unwrap().ok().unwrap();
    objects
}
