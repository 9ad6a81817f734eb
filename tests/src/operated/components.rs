//! ManagedComponents and what became of them, as an administrator sees and changes them.

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::PATIENCE;
use crate::eventually::eventually;

/// The components of a namespace.
#[derive(Clone)]
pub struct Components {
    client: Client,
    namespace: String,
}

/// What a status says, in short: `state health operationState securityState converged`.
pub type Seen = String;

impl Components {
    /// Of a namespace.
    #[must_use]
    pub fn of(client: Client, namespace: &str) -> Self {
        Self { client, namespace: namespace.to_owned() }
    }

    /// An API of any kind in the namespace; `plural` is guessed from the kind.
    #[must_use]
    pub fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Api::namespaced_with(self.client.clone(), &self.namespace, &ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)))
    }

    fn components(&self) -> Api<DynamicObject> {
        self.api("platform.navin.ai/v1alpha1", "ManagedComponent")
    }

    /// Creates a component.
    ///
    /// # Panics
    /// The API server refuses it.
    pub async fn create(&self, name: &str, spec: &Value) {
        let object =
            json!({"apiVersion": "platform.navin.ai/v1alpha1", "kind": "ManagedComponent", "metadata": {"name": name}, "spec": spec});
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        self.components().create(&PostParams::default(), &object).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// Changes fields of its spec.
    ///
    /// # Panics
    /// The API server refuses it.
    pub async fn change(&self, name: &str, spec: &Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.components().patch(name, &PatchParams::default(), &patch).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// Asks for its deletion.
    ///
    /// # Panics
    /// The API server refuses it.
    pub async fn delete(&self, name: &str) {
        self.components().delete(name, &DeleteParams::default()).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// The component; `None` where it is gone.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn get(&self, name: &str) -> Result<Option<Value>> {
        let found = self.components().get_opt(name).await?;
        found.map(|object| serde_json::to_value(object).map_err(Into::into)).transpose()
    }

    /// Waits until the newest generation's status reads so.
    ///
    /// # Panics
    /// It does not.
    pub async fn until(&self, name: &str, expected: &str) -> Value {
        eventually(&format!("{name} to be `{expected}`"), PATIENCE, || async {
            let component = self.get(name).await?.context("it is gone")?;
            let seen = seen(&component);
            ensure!(seen == expected, "`{seen}`: {}", component["status"]);
            ensure!(component["status"]["observedGeneration"] == component["metadata"]["generation"], "an older generation");
            Ok(component)
        })
        .await
    }

    /// Waits until the operation failed, or is blocked, for this reason; the condition's message.
    ///
    /// # Panics
    /// It is not.
    pub async fn until_reason(&self, name: &str, reason: &str) -> String {
        eventually(&format!("{name} to tell {reason}"), PATIENCE, || async {
            let component = self.get(name).await?.context("it is gone")?;
            let operation = condition(&component, "OperationSucceeded");
            ensure!(operation["reason"] == reason, "{}", component["status"]);
            ensure!(component["status"]["observedGeneration"] == component["metadata"]["generation"], "an older generation");
            Ok(operation["message"].as_str().unwrap_or_default().to_owned())
        })
        .await
    }

    /// Waits until it is gone.
    ///
    /// # Panics
    /// It is not.
    pub async fn until_gone(&self, name: &str) {
        eventually(&format!("{name} to be gone"), PATIENCE, || async {
            match self.get(name).await? {
                None => Ok(()),
                Some(component) => bail!("{} {}", component["metadata"], component["status"]),
            }
        })
        .await;
    }

    /// An object of a kind; `None` where it is not there.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn object(&self, api_version: &str, kind: &str, name: &str) -> Result<Option<Value>> {
        let found = self.api(api_version, kind).get_opt(name).await?;
        found.map(|object| serde_json::to_value(object).map_err(Into::into)).transpose()
    }

    /// A Deployment that has to be there.
    ///
    /// # Panics
    /// It is not.
    pub async fn deployment(&self, name: &str) -> Value {
        let found = self.object("apps/v1", "Deployment", name).await.unwrap_or_else(|error| panic!("{error:#}"));
        found.unwrap_or_else(|| panic!("Deployment {name} is not there"))
    }

    /// Names of all objects of a kind that are labelled with a component.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn owned(&self, api_version: &str, kind: &str, component: &str) -> Result<Vec<String>> {
        let labelled = ListParams::default().labels(&format!("platform.navin.ai/component={component}"));
        let mut names: Vec<String> =
            self.api(api_version, kind).list(&labelled).await?.items.iter().map(kube::ResourceExt::name_any).collect();
        names.sort();
        Ok(names)
    }

    /// Pods with `app=<name>`.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn pods(&self, app: &str) -> Result<Vec<Pod>> {
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        Ok(pods.list(&ListParams::default().labels(&format!("app={app}"))).await?.items)
    }

    /// Makes running pods unready until [`Components::heal`].
    ///
    /// # Panics
    /// The API server refuses it.
    pub async fn harm(&self, pods: &[Pod]) {
        let api = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        for pod in pods {
            let annotate = json!({"metadata": {"annotations": {"testbed.clicklink.io/pod": "unready"}}});
            let unready =
                json!({"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "False"}]}});
            api.patch(&pod.name_any(), &PatchParams::default(), &Patch::Merge(annotate)).await.expect("annotating a pod");
            api.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(unready)).await.expect("a pod's status");
        }
    }

    /// Makes harmed pods ready again, those that are still there.
    ///
    /// # Panics
    /// The API server refuses it.
    pub async fn heal(&self, pods: &[Pod]) {
        let api = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        for pod in pods {
            let patch = json!({"metadata": {"annotations": {"testbed.clicklink.io/pod": null}}});
            match api.patch(&pod.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// What a component's status says, in short.
#[must_use]
pub fn seen(component: &Value) -> Seen {
    let status = &component["status"];
    let words = ["state", "health", "operationState", "securityState"].map(|field| status[field].as_str().unwrap_or("none").to_owned());
    format!("{} {}", words.join(" "), status["converged"])
}

/// A condition of a component; null where it is not there.
#[must_use]
pub fn condition(component: &Value, kind: &str) -> Value {
    let conditions = component["status"]["conditions"].as_array().into_iter().flatten();
    let mut found = conditions.filter(|condition| condition["type"] == kind);
    found.next().cloned().unwrap_or_default()
}
