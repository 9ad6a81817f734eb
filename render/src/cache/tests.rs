use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_api::approval::{Capabilities, ServerWords};
use serde_json::{Map, Value, json};

use super::*;
use crate::engine::Answering;

/// Answers with one object, and counts.
struct Fake {
    object: Value,
    identity: Mutex<&'static str>,
    replaced_when_asked: bool,
    asked: AtomicUsize,
}

impl Fake {
    fn new(object: Value) -> Arc<Self> {
        Arc::new(Self { object, identity: Mutex::new("one"), replaced_when_asked: false, asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl ChartRenderer for Fake {
    fn version(&self) -> &str {
        "fake"
    }

    fn identity(&self) -> Option<Sha256> {
        let identity = self.identity.lock().unwrap();
        (!identity.is_empty()).then(|| Sha256::of(identity.as_bytes()))
    }

    fn answer<'a>(&'a self, _input: &'a [u8]) -> Answering<'a> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.replaced_when_asked {
            *self.identity.lock().unwrap() = "two";
        }
        let object = json!({"template": "c/templates/x.yaml", "hooks": ["pre-install"], "weight": 3, "object": self.object});
        let done = json!({"done": true, "functions": ["now"], "chart": {"name": "c", "version": "1.0.0", "appVersion": "7"}});
        Box::pin(async move { Ok(format!("{object}\n{done}\n").into_bytes()) })
    }
}

fn config_map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"float": 0.1, "big": 9_007_199_254_740_993_u64}})
}

/// As a process would have it that starts now.
fn cache(engine: &Arc<Fake>, above: &Path) -> Cache {
    Cache::new(Arc::<Fake>::clone(engine)).keeping_in(CacheFolder::of_person(Some(above.into()), None).unwrap())
}

async fn render(cache: &Cache, seed: u64) -> EngineOutput {
    let (values, capabilities) = (Map::new(), Capabilities::default());
    let request = Request {
        archive: "YQ==",
        release: "r",
        namespace: "n",
        values: &values,
        capabilities: &capabilities,
        clock: jiff::Timestamp::UNIX_EPOCH,
        seed,
    };
    cache.render(request).await.unwrap()
}

/// The files of kept answers.
fn files(above: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(above.join("clicklink/renders"));
    entries.map(|entries| entries.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default()
}

#[tokio::test]
async fn the_next_process_asks_nothing_twice_and_gets_the_same() {
    let (above, engine) = (tempfile::tempdir().unwrap(), Fake::new(config_map()));
    let first = render(&cache(&engine, above.path()), 0).await;
    assert_eq!(
        (first.functions.clone(), first.chart.app_version.clone(), first.objects[0].weight),
        (vec!["now".to_owned()], "7".into(), 3)
    );
    assert_eq!(render(&cache(&engine, above.path()), 0).await, first);
    assert_eq!(engine.asked(), 1);
    // Another seed is another question: both turns are compared, also from what is kept.
    render(&cache(&engine, above.path()), 1).await;
    assert_eq!((engine.asked(), files(above.path()).len()), (2, 2));
}

#[tokio::test]
async fn what_was_tampered_with_is_rendered_again() {
    let (above, engine) = (tempfile::tempdir().unwrap(), Fake::new(config_map()));
    let expected = render(&cache(&engine, above.path()), 0).await;
    let file = files(above.path()).remove(0);
    let whole = std::fs::read(&file).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    for (n, damaged) in [
        whole[..whole.len() - 1].to_vec(),
        Vec::new(),
        text.replace("ConfigMap", "ClusterRole").into_bytes(),
        text.replace("rendering 1", "rendering 0").into_bytes(),
        b"something else".to_vec(),
    ]
    .into_iter()
    .enumerate()
    {
        std::fs::write(&file, damaged).unwrap();
        assert_eq!(render(&cache(&engine, above.path()), 0).await, expected);
        assert_eq!(engine.asked(), n + 2);
        assert_eq!(std::fs::read(&file).unwrap(), whole);
    }
}

#[tokio::test]
async fn a_secret_stays_in_the_process() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter2"}});
    let (above, engine) = (tempfile::tempdir().unwrap(), Fake::new(secret));
    let process = cache(&engine, above.path());
    assert_eq!(render(&process, 0).await, render(&process, 0).await);
    assert_eq!((engine.asked(), files(above.path()).len()), (1, 0));
    render(&cache(&engine, above.path()), 0).await;
    assert_eq!(engine.asked(), 2);
}

#[tokio::test]
async fn without_a_folder_to_trust_it_goes_on_and_keeps_in_the_process() {
    use std::os::unix::fs::PermissionsExt as _;
    let (above, engine) = (tempfile::tempdir().unwrap(), Fake::new(config_map()));
    render(&cache(&engine, above.path()), 0).await;
    let folder = above.path().join("clicklink/renders");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let process = cache(&engine, above.path());
    render(&process, 0).await;
    render(&process, 0).await;
    assert_eq!((engine.asked(), files(above.path()).len()), (2, 1));
}

#[tokio::test]
async fn another_engine_answers_for_itself() {
    let (above, engine) = (tempfile::tempdir().unwrap(), Fake::new(config_map()));
    let process = cache(&engine, above.path());
    render(&process, 0).await;
    *engine.identity.lock().unwrap() = "another";
    render(&process, 0).await;
    assert_eq!((engine.asked(), files(above.path()).len()), (2, 2));
    *engine.identity.lock().unwrap() = "";
    render(&process, 0).await;
    render(&process, 0).await;
    assert_eq!((engine.asked(), files(above.path()).len()), (4, 2));
}

#[tokio::test]
async fn an_engine_that_is_replaced_while_it_answers_is_not_believed_again() {
    let (above, mut engine) = (tempfile::tempdir().unwrap(), Fake::new(config_map()));
    Arc::get_mut(&mut engine).unwrap().replaced_when_asked = true;
    render(&cache(&engine, above.path()), 0).await;
    assert_eq!(files(above.path()).len(), 0);
}

#[test]
fn each_part_of_the_question_makes_another_key() {
    let values = json!({"a": 1}).as_object().unwrap().clone();
    let (other_values, no_values) = (json!({"a": "1"}).as_object().unwrap().clone(), Map::new());
    let served = |git: &str, minor: &str, api: &[&str]| Capabilities {
        kube_version: git.into(),
        api_versions: api.iter().map(|api| (*api).to_owned()).collect(),
        server: Box::new(ServerWords { minor: minor.into(), ..ServerWords::default() }),
    };
    let capabilities = served("v1.37.2", "37", &["v1"]);
    let others = [served("v1.37.3", "37", &["v1"]), served("v1.37.2", "37+", &["v1"]), served("v1.37.2", "37", &["v1", "apps/v1"])];
    let base = Request {
        archive: "YQ==",
        release: "r",
        namespace: "n",
        values: &values,
        capabilities: &capabilities,
        clock: jiff::Timestamp::UNIX_EPOCH,
        seed: 0,
    };
    let mut requests = vec![
        base.clone(),
        Request { archive: "Yg==", ..base.clone() },
        Request { release: "rn", namespace: "", ..base.clone() },
        Request { release: "n", namespace: "r", ..base.clone() },
        Request { values: &other_values, ..base.clone() },
        Request { values: &no_values, ..base.clone() },
        Request { clock: jiff::Timestamp::from_second(1).unwrap(), ..base.clone() },
        Request { seed: 1, ..base.clone() },
    ];
    requests.extend(others.iter().map(|capabilities| Request { capabilities, ..base.clone() }));
    let (engine, other_engine) = (Sha256::of(b"engine"), Sha256::of(b"another"));
    let mut keys: Vec<_> = requests.iter().map(|request| key(&engine, &request.input().unwrap())).collect();
    keys.push(key(&other_engine, &base.input().unwrap()));
    let all = keys.len();
    assert_eq!(keys[0], key(&engine, &base.input().unwrap()));
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), all);
}
