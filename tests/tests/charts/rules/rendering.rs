//! "Rendering is always as install, revision 1": pulled from a real registry, rendered twice as `approve` does and once as the executor.

use agent_api::approval::Capabilities;
use agent_api::manifest::Bundle;
use futures::{StreamExt as _, stream};
use render::{Engine, RegistryAccess, RenderError, Renderer};
use serde_json::{Value, json};
use system_tests::{Registry, chart_engine, engine_sandbox};

/// Pushes at the same time.
const SIDE_BY_SIDE: usize = 4;

/// What a chart prints that is not a function of it and its values, and the functions that the refusal names.
const MADE_UP: [(&str, &str); 21] = [
    ("now", "now"),
    ("now | date \"2006\"", "now"),
    ("now | unixEpoch", "now"),
    ("date \"15:04\" \"no date\"", "date"),
    ("dateInZone \"15:04\" nil \"UTC\"", "dateInZone"),
    ("htmlDate nil", "htmlDate"),
    ("ago 0", "ago"),
    ("randAlphaNum 4", "randAlphaNum"),
    ("randAlpha 4", "randAlpha"),
    ("randNumeric 4", "randNumeric"),
    ("randAscii 4 | b64enc", "randAscii"),
    ("randInt 0 9", "randInt"),
    ("randBytes 4", "randBytes"),
    ("uuidv4", "uuidv4"),
    ("shuffle \"abc\"", "shuffle"),
    ("bcrypt \"x\"", "bcrypt"),
    ("htpasswd \"u\" \"p\"", "htpasswd"),
    ("encryptAES \"key\" \"text\"", "encryptAES"),
    ("genPrivateKey \"ecdsa\"", "genPrivateKey"),
    ("(genCA \"ca\" 10).Cert", "genCA"),
    ("(genSelfSignedCert \"c\" nil (list \"a.example\") 10).Key", "genSelfSignedCert"),
];

/// What renders the same each time, and to what.
const FIXED: [(&str, &str); 13] = [
    (".Release.IsInstall", "true"),
    (".Release.IsUpgrade", "false"),
    (".Release.Revision", "1"),
    (".Capabilities.KubeVersion.Version", "v1.32.3-eks-2d5f260"),
    (".Capabilities.KubeVersion.Minor", "32+"),
    (".Capabilities.APIVersions.Has \"apps/v1/Deployment\"", "true"),
    (".Capabilities.APIVersions.Has \"batch/v1\"", "false"),
    (".Capabilities.APIVersions.Has \"own.io/v1/W\"", "true"),
    (".Capabilities.APIVersions.Has \"own.io/v1alpha1\"", "false"),
    ("lookup \"v1\" \"Secret\" \"kube-system\" \"\" | len", "0"),
    ("getHostByName \"localhost\" | len", "0"),
    ("keys (dict \"b\" 1 \"a\" 2) | join \"\"", "ab"),
    ("sha256sum \"x\" | trunc 8", "2d711642"),
];

const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ws.own.io}
spec:
  group: own.io
  names: {kind: W, plural: ws}
  versions: [{name: v1, served: true}, {name: v1alpha1, served: false}]
";

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_that_renders_differently_is_refused_with_chart_template_and_function() {
    // A chart that never runs its random hook beside them.
    let hook = "{apiVersion: v1, kind: Pod, metadata: {name: 't-{{ randNumeric 4 }}', annotations: {helm.sh/hook: test}}}".to_owned();
    let charts = MADE_UP.iter().map(|(text, _)| printing(text)).chain([hook]).collect();
    let (renderer, bundle) = pushed(charts).await;
    let error = renderer.render_twice(bundle.manifest(), &served()).await.unwrap_err();
    assert!(matches!(error, RenderError::Differs(_)), "{error}");
    let text = error.to_string();
    assert_eq!(text.lines().count(), 1 + MADE_UP.len(), "{text}");
    for (n, (_, function)) in MADE_UP.iter().enumerate() {
        let line = format!("  - component c{n} (chart c{n} 1.0.0), c{n}/templates/x.yaml, ConfigMap c{n}, data.v: made up by {function}");
        assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
    }
    // The executor's way is once, and the same each time.
    let once = renderer.render(bundle.manifest(), &served()).await.unwrap();
    assert_eq!(renderer.render(bundle.manifest(), &served()).await.unwrap(), once);
    assert_eq!(once.left_out.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_is_told_of_an_install_and_of_exactly_this_cluster_and_its_own_definitions() {
    let (renderer, bundle) = pushed(FIXED.iter().map(|(text, _)| printing(text)).chain([CRD.to_owned()]).collect()).await;
    let recorded = renderer.capabilities_with_own_crds(bundle.manifest(), &served()).await.unwrap();
    assert_eq!(recorded.api_versions, ["apps/v1", "apps/v1/Deployment", "own.io/v1", "own.io/v1/W", "v1"]);
    let rendered = renderer.render_twice(bundle.manifest(), &recorded).await.unwrap();
    for (n, (text, expected)) in FIXED.iter().enumerate() {
        assert_eq!(rendered.objects[n].object["data"]["v"], *expected, "{text}");
    }
    // Given again to the executor, where the definitions are installed by then.
    assert_eq!(renderer.render(bundle.manifest(), &recorded).await.unwrap(), rendered);
}

/// A ConfigMap whose data is what an expression makes.
fn printing(expression: &str) -> String {
    let data = format!("{{{{ {expression} | toString | quote }}}}");
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {{{{ .Release.Name }}}}}}\ndata:\n  v: {data}\n")
}

fn served() -> Capabilities {
    let api_versions = ["apps/v1", "apps/v1/Deployment", "v1"].map(str::to_owned).into();
    let mut served = Capabilities { kube_version: "v1.32.3-eks-2d5f260".into(), api_versions, ..Capabilities::default() };
    (served.server.major, served.server.minor) = ("1".into(), "32+".into());
    served
}

/// Charts `c0`, `c1`, … of one template each in a registry, a bundle of them, and what renders it.
async fn pushed(templates: Vec<String>) -> (Renderer, Bundle) {
    let registry = Registry::start_anonymous().await;
    let pushes: Vec<_> = templates
        .iter()
        .enumerate()
        .map(|(n, template)| {
            let folder = registry.folder();
            folder.folder(format!("charts/c{n}/templates")).unwrap();
            folder.write(format!("charts/c{n}/Chart.yaml"), format!("apiVersion: v2\nname: c{n}\nversion: 1.0.0\n")).unwrap();
            folder.write(format!("charts/c{n}/templates/x.yaml"), template).unwrap();
            let (registry, chart) = (&registry, folder.join(format!("charts/c{n}")));
            async move { registry.push_chart(&chart, None).await.unwrap() }
        })
        .collect();
    let charts: Vec<_> = stream::iter(pushes).buffered(SIDE_BY_SIDE).collect().await;
    let components: Vec<Value> = charts
        .iter()
        .map(|chart| {
            json!({"name": chart.name, "namespace": "platform", "release": chart.name, "images": [],
                "chart": {"name": chart.name, "version": chart.version, "digest": chart.digest}})
        })
        .collect();
    let text = json!({
        "apiVersion": "clicklink.io/v1", "kind": "PlatformBundle", "environment": "e", "createdAt": "2026-11-30T10:00:00Z",
        "registry": {"mode": "anonymous", "chartBase": registry.chart_base()}, "namespaces": ["platform"], "components": components,
    });
    let bundle = Bundle::parse(text.to_string()).unwrap();
    let engine = Engine::at(chart_engine(), engine_sandbox()).await.unwrap();
    let renderer = Renderer::new(engine, RegistryAccess::load(None, Some(registry.ca_file())).unwrap());
    // What is pulled once is kept; the registry may end with this function.
    renderer.render(bundle.manifest(), &served()).await.unwrap();
    (renderer, bundle)
}
