use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_api::approval::{Capabilities, ServerWords};
use serde_json::{Map, Value, json};

use super::*;
use crate::engine::{Answering, EngineOutput, Invention, Second};

/// Answers with one object for each rendering, and counts.
struct Fake {
    objects: Vec<Value>,
    identity: Mutex<&'static str>,
    replaced_when_asked: bool,
    asked: AtomicUsize,
}

impl Fake {
    fn new(object: Value) -> Arc<Self> {
        Self::of(vec![object])
    }

    fn of(objects: Vec<Value>) -> Arc<Self> {
        Arc::new(Self { objects, identity: Mutex::new("one"), replaced_when_asked: false, asked: AtomicUsize::new(0) })
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
        let chart = json!({"name": "c", "version": "1.0.0", "appVersion": "7"});
        let head = json!({"rendering": {"objects": 1, "functions": ["now"], "chart": chart}});
        let renderings = self.objects.iter().map(|object| {
            let object = json!({"template": "c/templates/x.yaml", "hooks": ["pre-install"], "weight": 3, "object": object});
            format!("{head}\n{object}\n")
        });
        let answer: String = renderings.collect();
        Box::pin(async move { Ok(answer.into_bytes()) })
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
    answer(cache, seed).await.first
}

async fn answer(cache: &Cache, seed: u64) -> Answer {
    let (values, capabilities) = (Map::new(), Capabilities::default());
    let request = Request {
        archive: "YQ==",
        release: "r",
        namespace: "n",
        values: &values,
        capabilities: &capabilities,
        inventions: &[Invention { clock: jiff::Timestamp::UNIX_EPOCH, seed }],
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
    // Another seed is another question.
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
async fn both_renderings_are_kept_and_a_secret_in_either_stays_in_the_process() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter2"}});
    let another = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "another"}});
    for (second, on_disk) in [(another, 1), (secret, 0)] {
        let (above, engine) = (tempfile::tempdir().unwrap(), Fake::of(vec![config_map(), second.clone()]));
        let process = cache(&engine, above.path());
        let fresh = answer(&process, 0).await;
        assert!(matches!(&fresh.second, Some(Second::Other(other)) if other.objects[0].object == second), "{fresh:?}");
        assert_eq!(answer(&process, 0).await, fresh);
        assert_eq!((engine.asked(), files(above.path()).len()), (1, on_disk));
    }
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
    let pair = Invention::pair(jiff::Timestamp::UNIX_EPOCH);
    let (later, other_seed) =
        ([Invention { clock: jiff::Timestamp::from_second(1).unwrap(), ..pair[0] }], [Invention { seed: 1, ..pair[0] }]);
    let base =
        Request { archive: "YQ==", release: "r", namespace: "n", values: &values, capabilities: &capabilities, inventions: &pair[..1] };
    let mut requests = vec![
        base.clone(),
        Request { archive: "Yg==", ..base.clone() },
        Request { release: "rn", namespace: "", ..base.clone() },
        Request { release: "n", namespace: "r", ..base.clone() },
        Request { values: &other_values, ..base.clone() },
        Request { values: &no_values, ..base.clone() },
        Request { inventions: &later, ..base.clone() },
        Request { inventions: &other_seed, ..base.clone() },
        Request { inventions: &pair, ..base.clone() },
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
