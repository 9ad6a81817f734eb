//! The watches that fill the store: for each managed namespace one on components and one on each kind that a component may have. They relist where
//! the API server says that a version is too old (410), and begin again, later each time, where it does not answer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use agent_api::name::DnsLabel;
use agent_api::object::ObjectKey;
use cluster::Client;
use cluster::crd::component_kind::{COMPONENT_KINDS, ComponentKind, KEDA};
use cluster::crd::managed_component::{API_VERSION, GROUP, KIND, RESOURCE, VERSION};
use futures::StreamExt as _;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{debug, warn};

use super::queue::{Name, Queue};
use super::store::Store;
use crate::reconcile::unseen::Unseen;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// So long the news of an object wait for more of them: a rollout has many, a tenth of a second apart. A component's own are never held up.
pub const SETTLES: Duration = Duration::from_millis(150);
/// Items of a list page.
const PAGE: u32 = 250;
/// So many refusals in a row, over three seconds, are meant: an API server that has just begun refuses what it will allow in a moment.
const REFUSALS: u32 = 4;

/// One kind in one namespace.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Scope {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    resource: &'static str,
    namespace: String,
}

/// How the lists stand; one that is in neither set has been read whole and is followed.
#[derive(Clone, Default)]
struct Lists {
    unread: BTreeSet<Scope>,
    /// Those that the operator has no right to: nobody waits for them, and what lies there is not known.
    refused: BTreeSet<Scope>,
}

impl Lists {
    /// A list was read; whether somebody may have waited for it.
    fn read(&mut self, scope: &Scope) -> bool {
        let unread = self.unread.remove(scope);
        self.refused.remove(scope) || unread
    }

    fn refuse(&mut self, scope: &Scope) -> bool {
        self.unread.remove(scope);
        self.refused.insert(scope.clone())
    }
}

/// Which lists have been read whole.
#[derive(Clone)]
pub struct Synced(watch::Receiver<Lists>);

impl Synced {
    /// Waits until every list that the operator has a right to has been read once.
    pub async fn all(&mut self) {
        // The sender ends with the watches, and whoever waits with them.
        let _ = self.0.wait_for(|lists| lists.unread.is_empty()).await;
    }

    /// Lists that have not been read yet, as `resource.group namespace`.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        self.0.borrow().unread.iter().map(Scope::told).collect()
    }
}

/// Running watches; they end with this value.
pub struct Watches {
    tasks: JoinSet<()>,
    keda_tasks: JoinSet<()>,
    client: Client,
    store: Arc<Store>,
    queue: Arc<Queue>,
    namespaces: Vec<DnsLabel>,
    lists: Arc<watch::Sender<Lists>>,
    keda: bool,
}

impl Watches {
    /// Begins to watch; KEDA's kind only where it is served.
    #[must_use]
    pub fn start(client: Client, namespaces: &[DnsLabel], store: Arc<Store>, queue: Arc<Queue>, keda: bool) -> Self {
        let lists = Arc::new(watch::Sender::new(Lists::default()));
        let namespaces = namespaces.to_vec();
        let mut watches = Self { tasks: JoinSet::new(), keda_tasks: JoinSet::new(), client, store, queue, namespaces, lists, keda: false };
        watches.add(GROUP, VERSION, KIND, RESOURCE);
        for kind in COMPONENT_KINDS.iter().filter(|kind| kind.group != KEDA) {
            watches.add(kind.group, version_of(kind), kind.kind, kind.resource);
        }
        if keda {
            watches.add_keda();
        }
        watches
    }

    /// Which lists have been read.
    #[must_use]
    pub fn synced(&self) -> Synced {
        Synced(self.lists.subscribe())
    }

    /// Kinds of a namespace that the operator has no right to list.
    #[must_use]
    pub fn unseen(&self, namespace: &str) -> Unseen {
        let lists = self.lists.borrow();
        let here = lists.refused.iter().filter(|scope| scope.namespace == namespace);
        Unseen::of(here.map(|scope| (scope.group, scope.kind)))
    }

    /// Whether KEDA's kind is watched.
    #[must_use]
    pub fn keda(&self) -> bool {
        self.keda
    }

    /// Watches KEDA's kind, too.
    pub fn add_keda(&mut self) {
        if !std::mem::replace(&mut self.keda, true) {
            for kind in keda_kinds() {
                self.add(kind.group, version_of(kind), kind.kind, kind.resource);
            }
        }
    }

    /// KEDA's kind is served no more: with its definition its objects have gone.
    pub fn remove_keda(&mut self) {
        self.keda = false;
        self.keda_tasks = JoinSet::new();
        for (kind, namespace) in keda_kinds().flat_map(|kind| self.namespaces.iter().map(move |namespace| (kind, namespace))) {
            let scope = scope(kind, namespace);
            self.lists.send_if_modified(|lists| lists.read(&scope));
            let gone = self.store.keep_only(kind.group, kind.kind, namespace.as_str(), &BTreeSet::new());
            gone.into_iter().for_each(|name| self.queue.add(name));
        }
    }

    fn add(&mut self, group: &'static str, version: &'static str, kind: &'static str, resource: &'static str) {
        for namespace in self.namespaces.clone() {
            let scope = Scope { group, version, kind, resource, namespace: namespace.to_string() };
            self.lists.send_if_modified(|lists| lists.unread.insert(scope.clone()));
            let task = follow(self.client.clone(), scope, Arc::clone(&self.store), Arc::clone(&self.queue), Arc::clone(&self.lists));
            if group == KEDA {
                self.keda_tasks.spawn(task)
            } else {
                self.tasks.spawn(task)
            };
        }
    }
}

fn keda_kinds() -> impl Iterator<Item = &'static ComponentKind> {
    COMPONENT_KINDS.iter().filter(|kind| kind.group == KEDA)
}

fn scope(kind: &ComponentKind, namespace: &DnsLabel) -> Scope {
    Scope { group: kind.group, version: version_of(kind), kind: kind.kind, resource: kind.resource, namespace: namespace.to_string() }
}

/// The version in which a kind is watched and deleted.
#[must_use]
pub fn version_of(kind: &ComponentKind) -> &'static str {
    match kind.group {
        "autoscaling" => "v2",
        KEDA => "v1alpha1",
        _ => "v1",
    }
}

impl Scope {
    fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            GROUP => API_VERSION.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    fn told(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{}{dot}{} {}", self.resource, self.group, self.namespace)
    }
}

async fn follow(client: Client, scope: Scope, store: Arc<Store>, queue: Arc<Queue>, lists: Arc<watch::Sender<Lists>>) {
    let api_version = scope.api_version();
    let resource = ApiResource {
        group: scope.group.to_owned(),
        version: scope.version.to_owned(),
        api_version: api_version.clone(),
        kind: scope.kind.to_owned(),
        plural: scope.resource.to_owned(),
    };
    let api: Api<DynamicObject> = Api::namespaced_with(client, &scope.namespace, &resource);
    let config = watcher::Config::default().page_size(PAGE);
    let mut events = std::pin::pin!(watcher(api, config).backoff(Pauses::default()));
    let mut listed = BTreeSet::new();
    let mut refusals = 0;
    let whole = |object: DynamicObject| {
        let mut object = serde_json::to_value(object).unwrap_or_default();
        object["apiVersion"] = Value::from(api_version.as_str());
        object["kind"] = Value::from(scope.kind);
        object
    };
    let at_once = scope.group == GROUP;
    let enqueue = |names: Vec<Name>| {
        for name in names {
            if at_once { queue.add(name) } else { queue.add_after(name, SETTLES) }
        }
    };
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => listed.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                let object = whole(object);
                listed.insert(ObjectKey::of(&object));
                enqueue(store.put(&object));
            }
            Ok(watcher::Event::InitDone) => {
                enqueue(store.keep_only(scope.group, scope.kind, &scope.namespace, &listed));
                listed.clear();
                refusals = 0;
                if lists.send_if_modified(|lists| lists.read(&scope)) {
                    // Some may have been told that they wait for it.
                    store.components_of(&scope.namespace).into_iter().for_each(|name| queue.add(name));
                }
            }
            Ok(watcher::Event::Apply(object)) => enqueue(store.put(&whole(object))),
            Ok(watcher::Event::Delete(object)) => enqueue(store.remove(&whole(object))),
            Err(error) => {
                refusals = if is_refusal(&error) { refusals + 1 } else { 0 };
                if refusals == REFUSALS && lists.send_if_modified(|lists| lists.refuse(&scope)) {
                    warn!(watch = scope.told(), "the operator has no right to list this, and goes on without it");
                    store.components_of(&scope.namespace).into_iter().for_each(|name| queue.add(name));
                } else if lists.borrow().unread.contains(&scope) {
                    warn!(watch = scope.told(), "cannot list yet: {error}");
                } else {
                    debug!(watch = scope.told(), "the watch begins again: {error}");
                }
            }
        }
    }
}

fn is_refusal(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => {
            status.code == 403
        }
        _ => false,
    }
}

/// Pauses between tries: doubled up to the longest, from the beginning after a good answer.
#[derive(Default)]
struct Pauses(u32);

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.0.min(5)).min(LONGEST_PAUSE);
        self.0 += 1;
        Some(pause)
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.0 = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    fn map(name: &str, version: u64) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "here", "resourceVersion": version.to_string(),
            "labels": {"platform.navin.ai/component": name}}})
    }

    /// An API server that lists two maps, says of the first watch that its version is too old, and then lists another two.
    fn server(asked: Arc<Mutex<Vec<String>>>) -> Client {
        let service = tower::service_fn(move |request: Request<Body>| {
            let uri = request.uri().to_string();
            let watches = uri.contains("watch=true");
            let before = asked.lock().unwrap().iter().filter(|uri| uri.contains("watch=true") == watches).count();
            let of_maps = uri.contains("/configmaps?");
            if of_maps {
                asked.lock().unwrap().push(uri);
            }
            let items = match before {
                _ if !of_maps => json!([]),
                0 => json!([map("a", 1), map("b", 2)]),
                _ => json!([map("b", 2), map("c", 9)]),
            };
            let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": items});
            let gone = json!({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410,
                "reason": "Expired", "message": "too old resource version"}});
            async move {
                if watches && (!of_maps || before > 0) {
                    return std::future::pending().await;
                }
                let text = if watches { format!("{gone}\n") } else { list.to_string() };
                Ok::<_, Infallible>(Response::new(Body::from(text.into_bytes())))
            }
        });
        Client::new(service, "here")
    }

    /// Known faults, kind 24.
    #[tokio::test(start_paused = true)]
    async fn a_version_that_is_too_old_is_listed_anew() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (store, queue) = (Arc::new(Store::default()), Arc::new(Queue::default()));
        let namespaces = ["here".parse().unwrap()];
        let watches = Watches::start(server(Arc::clone(&asked)), &namespaces, Arc::clone(&store), Arc::clone(&queue), false);
        watches.synced().all().await;
        let there = |name: &str| store.read(&ObjectKey::of(&map(name, 0))).is_some();
        while !there("c") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(["a", "b", "c"].map(there), [false, true, true], "what the new list does not have is gone");
        let kinds: Vec<&str> = asked.lock().unwrap().iter().map(|uri| if uri.contains("watch=true") { "watch" } else { "list" }).collect();
        assert_eq!(kinds, ["list", "watch", "list", "watch"]);
        let mut told = Vec::new();
        for _ in 0..3 {
            told.push(queue.take().await.name);
        }
        told.sort();
        assert_eq!(told, ["a", "b", "c"]);
    }
}
