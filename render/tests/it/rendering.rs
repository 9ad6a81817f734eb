//! A bundle from the registry through the real engine to normalised objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_api::digest::Sha256;
use render::engine::{Answering, ChartRenderer};
use render::{CacheFolder, Engine, RegistryAccess, RenderError, Renderer};
use serde_json::{Value, json};

use crate::support::registry::{Content, FakeRegistry};
use crate::support::{capabilities, chart, component, engine, manifest};

/// A registry that holds these charts, and a manifest of them.
async fn bundle(charts: Vec<(&str, Vec<u8>, Value)>) -> (Renderer, agent_api::manifest::Manifest) {
    let (access, manifest) = pushed(charts).await;
    (Renderer::new(engine().await, access), manifest)
}

async fn pushed(charts: Vec<(&str, Vec<u8>, Value)>) -> (RegistryAccess, agent_api::manifest::Manifest) {
    let mut content = Content::default();
    let components: Vec<Value> =
        charts.into_iter().map(|(name, archive, values)| component(name, &content.chart(name, archive), values)).collect();
    let registry = FakeRegistry::start(move |asked| content.answer(asked)).await;
    let manifest = manifest(&registry.host, "anonymous", components);
    (FakeRegistry::access(&[&registry], None), manifest)
}

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {v: {{ .Values.v | quote }}}\n";
const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: ws.own.io}\nspec:\n  group: own.io\n  \
    names: {kind: W, plural: ws}\n  versions: [{name: v1, served: true}, {name: v1alpha1, served: false}]\n";

#[tokio::test]
async fn objects_in_order_with_their_origin() {
    let (renderer, manifest) = bundle(vec![
        ("one", chart("one", &[("templates/x.yaml", CONFIG)]), json!({"v": "1"})),
        ("two", chart("two", &[("templates/x.yaml", CONFIG), ("crds/w.yaml", CRD)]), json!({"v": "2"})),
    ])
    .await;
    let rendered = renderer.render_twice(&manifest, &capabilities()).await.unwrap();
    let told: Vec<_> = rendered.objects.iter().map(|object| (object.template.clone(), object.key().to_string())).collect();
    assert_eq!(
        told,
        [
            ("one/templates/x.yaml".to_owned(), "ConfigMap platform/one".to_owned()),
            ("two/crds/w.yaml".to_owned(), "CustomResourceDefinition.apiextensions.k8s.io ws.own.io".to_owned()),
            ("two/templates/x.yaml".to_owned(), "ConfigMap platform/two".to_owned()),
            ("namespaces[0]".to_owned(), "Namespace platform".to_owned()),
        ]
    );
    assert_eq!(rendered.charts["two"].app_version, "7");
    assert_eq!(renderer.engine_version(), "helm v4.3.1");
    assert_eq!(renderer.render(&manifest, &capabilities()).await.unwrap(), rendered);
}

#[tokio::test]
async fn what_differs_is_named_by_chart_template_and_function() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: {{ randAlphaNum 8 }}}\n";
    let test = "apiVersion: v1\nkind: Pod\nmetadata: {name: 't-{{ randAlpha 4 | lower }}', annotations: {helm.sh/hook: test}}\n";
    let (renderer, manifest) = bundle(vec![
        ("harmless", chart("harmless", &[("templates/t.yaml", test), ("templates/x.yaml", CONFIG)]), json!({"v": "1"})),
        ("random", chart("random", &[("templates/s.yaml", secret)]), json!({})),
    ])
    .await;
    let error = renderer.render_twice(&manifest, &capabilities()).await.unwrap_err();
    let RenderError::Differs(differences) = &error else { panic!("{error}") };
    assert_eq!(differences.len(), 1);
    let text = error.to_string();
    assert!(
        text.contains(
            "component random (chart random 1.0.0), random/templates/s.yaml, Secret s, stringData.password: made up by randAlphaNum"
        ),
        "{text}"
    );
    // The executor's way renders once, and gives the same each time.
    let once = renderer.render(&manifest, &capabilities()).await.unwrap();
    assert_eq!(renderer.render(&manifest, &capabilities()).await.unwrap(), once);
    assert_eq!(once.left_out.len(), 1);
}

#[tokio::test]
async fn a_chart_is_what_the_manifest_says() {
    let other = "apiVersion: v2\nname: c\nversion: 2.0.0\n";
    let (renderer, manifest) = bundle(vec![("c", chart("c", &[("Chart.yaml", other)]), json!({}))]).await;
    let error = renderer.render(&manifest, &capabilities()).await.unwrap_err();
    assert_eq!(error.to_string(), "component c: the archive holds chart c 2.0.0, the bundle names c 1.0.0");
}

#[tokio::test]
async fn the_bundles_own_crds_are_among_the_capabilities() {
    let needs = "{{ if not (.Capabilities.APIVersions.Has \"own.io/v1/W\") }}{{ fail \"no W\" }}{{ end }}";
    let (renderer, manifest) = bundle(vec![
        ("needs", chart("needs", &[("templates/x.yaml", needs)]), json!({})),
        ("brings", chart("brings", &[("templates/w.yaml", CRD)]), json!({})),
    ])
    .await;
    let error = renderer.render(&manifest, &capabilities()).await.unwrap_err();
    assert!(matches!(error, RenderError::Chart { .. }), "{error}");
    let known = renderer.capabilities_with_own_crds(&manifest, &capabilities()).await.unwrap();
    assert_eq!(known.api_versions, ["apps/v1", "apps/v1/Deployment", "own.io/v1", "own.io/v1/W", "v1"]);
    renderer.render_twice(&manifest, &known).await.unwrap();
}

#[tokio::test]
async fn an_archive_that_breaks_a_bound_never_reaches_the_engine() {
    let twice = crate::support::archive("c", &[("Chart.yaml", b"name: c"), ("Chart.yaml", b"name: d")]);
    let (renderer, manifest) = bundle(vec![("c", twice, json!({}))]).await;
    let error = renderer.render(&manifest, &capabilities()).await.unwrap_err();
    assert!(matches!(error, RenderError::Archive { .. }), "{error}");
}

/// The real engine; how often it was started to render.
struct Counted {
    engine: Engine,
    started: AtomicUsize,
}

impl ChartRenderer for Counted {
    fn version(&self) -> &str {
        self.engine.version()
    }

    fn identity(&self) -> Option<Sha256> {
        self.engine.identity()
    }

    fn answer<'a>(&'a self, input: &'a [u8]) -> Answering<'a> {
        self.started.fetch_add(1, Ordering::Relaxed);
        self.engine.answer(input)
    }
}

#[tokio::test]
async fn what_was_rendered_before_starts_no_engine() {
    let made_up = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made-up}\ndata: {v: {{ randAlphaNum 8 }}}\n";
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n";
    let (access, manifest) = pushed(vec![
        ("one", chart("one", &[("templates/x.yaml", CONFIG)]), json!({"v": "1"})),
        ("two", chart("two", &[("crds/w.yaml", CRD)]), json!({})),
    ])
    .await;
    let folder = tempfile::tempdir().unwrap();
    let counted = Arc::new(Counted { engine: engine().await, started: AtomicUsize::new(0) });
    let started = || counted.started.swap(0, Ordering::Relaxed);
    // As a process that starts now has it.
    let renderer = |access: &RegistryAccess| {
        let place = CacheFolder::of_service(None, folder.path());
        Renderer::over(Arc::<Counted>::clone(&counted), access.clone()).keeping_in(place)
    };

    let approve = async |access: &RegistryAccess, manifest: &agent_api::manifest::Manifest| {
        let renderer = renderer(access);
        let known = renderer.capabilities_with_own_crds(manifest, &capabilities()).await.unwrap();
        let rendered = renderer.render_twice(manifest, &known).await;
        (known, rendered)
    };
    let (known, first) = approve(&access, &manifest).await;
    let first = first.unwrap();
    // With the capabilities as they were found and as they end, both renderings each time.
    assert_eq!(started(), 2 * manifest.components.len());
    let (again, second) = approve(&access, &manifest).await;
    assert_eq!((again, second.unwrap()), (known.clone(), first.clone()));
    assert_eq!(started(), 0);
    // The executor's way, in two of its lives: one rendering is a question of its own.
    for engines in [manifest.components.len(), 0] {
        assert_eq!(renderer(&access).render(&manifest, &known).await.unwrap(), first);
        assert_eq!(started(), engines);
    }

    // A difference is found in what is kept as it is in what is fresh.
    let (access, manifest) = pushed(vec![("random", chart("random", &[("templates/x.yaml", made_up)]), json!({}))]).await;
    let fresh = approve(&access, &manifest).await.1.unwrap_err().to_string();
    assert_eq!(started(), 1);
    assert_eq!(approve(&access, &manifest).await.1.unwrap_err().to_string(), fresh);
    assert_eq!(started(), 0);
    assert!(fresh.contains("data.v: made up by randAlphaNum"), "{fresh}");

    // A Secret's data is not on the disk: another process renders it again.
    let (access, manifest) = pushed(vec![("secret", chart("secret", &[("templates/x.yaml", secret)]), json!({}))]).await;
    for _ in 0..2 {
        approve(&access, &manifest).await.1.unwrap();
        assert_eq!(started(), 1);
    }
    for entry in std::fs::read_dir(folder.path().join("renders")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
    }
}
