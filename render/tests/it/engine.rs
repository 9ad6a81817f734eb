//! The real engine on small charts: what comes back, in which order, and what is made up.

use agent_api::approval::{Capabilities, ServerWords};
use base64::Engine as _;
use render::engine::{Answer, ChartRenderer as _, EngineOutput, Invention, Request};
use render::{Engine, EngineError};
use serde_json::{Value, json};

use crate::support::{capabilities, chart, engine};

pub(crate) async fn render(archive: &[u8], values: Value, seed: u64) -> Result<EngineOutput, EngineError> {
    render_on(archive, values, seed, &capabilities()).await
}

async fn render_on(archive: &[u8], values: Value, seed: u64, capabilities: &Capabilities) -> Result<EngineOutput, EngineError> {
    render_with(&engine().await, archive, values, seed, capabilities).await
}

pub(crate) async fn render_with(
    engine: &Engine,
    archive: &[u8],
    values: Value,
    seed: u64,
    capabilities: &Capabilities,
) -> Result<EngineOutput, EngineError> {
    let clock = if seed == 0 { "2026-11-30T10:00:00Z" } else { "2038-05-04T17:13:17Z" };
    let invention = Invention { clock: clock.parse().unwrap(), seed };
    Ok(answer(engine, archive, values, &[invention], capabilities).await?.first)
}

pub(crate) async fn answer(
    engine: &Engine,
    archive: &[u8],
    values: Value,
    inventions: &[Invention],
    capabilities: &Capabilities,
) -> Result<Answer, EngineError> {
    let archive = base64::engine::general_purpose::STANDARD.encode(archive);
    let request =
        Request { archive: &archive, release: "rel", namespace: "platform", values: values.as_object().unwrap(), capabilities, inventions };
    engine.render(request).await
}

/// One ConfigMap whose data is what a template expression makes.
fn expression(text: &str) -> Vec<u8> {
    let template = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\ndata:\n  v: {{{{ {text} | toString | quote }}}}\n");
    chart("c", &[("templates/x.yaml", &template)])
}

async fn value_of(text: &str, seed: u64) -> (String, Vec<String>) {
    let output = render(&expression(text), json!({}), seed).await.unwrap_or_else(|error| panic!("{text}: {error}"));
    (output.objects[0].object["data"]["v"].as_str().unwrap().to_owned(), output.functions)
}

#[tokio::test]
async fn built_ins_are_an_install_and_exactly_these_capabilities() {
    for (text, expected) in [
        (".Release.IsInstall", "true"),
        (".Release.IsUpgrade", "false"),
        (".Release.Revision", "1"),
        (".Release.Name", "rel"),
        (".Release.Namespace", "platform"),
        (".Capabilities.KubeVersion.Version", "v1.37.2"),
        (r#".Capabilities.APIVersions.Has "apps/v1/Deployment""#, "true"),
        (r#".Capabilities.APIVersions.Has "batch/v1""#, "false"),
        (".Capabilities.HelmVersion.Version", "v4.3.1"),
        (r#"lookup "v1" "Secret" "a" "b" | len"#, "0"),
        (r#"getHostByName "localhost" | len"#, "0"),
        (r#"keys (dict "b" 1 "a" 2 "c" 3) | join ",""#, "a,b,c"),
        (r#"0 | date "2006""#, "1970"),
        (r#"dateInZone "15" 0 "Asia/Tokyo""#, "09"),
    ] {
        assert_eq!(value_of(text, 0).await, (expected.to_owned(), Vec::new()), "{text}");
    }
}

/// On a live cluster Helm takes version, major and minor from the server's own words.
#[tokio::test]
async fn the_cluster_is_of_the_version_that_it_says() {
    let template = "v: {{ .Capabilities.KubeVersion.Version }} {{ .Capabilities.KubeVersion.GitVersion }} {{ .Capabilities.KubeVersion.Major }} \
        {{ .Capabilities.KubeVersion.Minor }} {{ semverCompare \">=1.30-0\" .Capabilities.KubeVersion.Version }} \
        {{ semverCompare \">=1.30\" .Capabilities.KubeVersion.Version }}\n";
    // What the chart itself asks for is compared without the provider's suffix.
    let metadata = "apiVersion: v2\nname: c\nversion: 1.0.0\nkubeVersion: '>=1.30'\n";
    let archive = chart("c", &[("Chart.yaml", metadata), ("templates/x.yaml", template)]);
    for (git, major, minor, expected) in [
        ("v1.37.2", "1", "37", "v1.37.2 v1.37.2 1 37 true true"),
        ("v1.32.3-eks-2d5f260", "1", "32+", "v1.32.3-eks-2d5f260 v1.32.3-eks-2d5f260 1 32+ true false"),
        ("v1.31.4-gke.1183000", "1", "31", "v1.31.4-gke.1183000 v1.31.4-gke.1183000 1 31 true false"),
        ("v1.33.1+k3s1", "1", "33", "v1.33.1+k3s1 v1.33.1+k3s1 1 33 true true"),
        // As recorded by an older approval.
        ("v1.32.3-eks-2d5f260", "", "", "v1.32.3-eks-2d5f260 v1.32.3-eks-2d5f260 1 32 true false"),
    ] {
        let server = ServerWords { major: major.into(), minor: minor.into(), ..ServerWords::default() };
        let capabilities = Capabilities { kube_version: git.into(), server: Box::new(server), ..capabilities() };
        let output = render_on(&archive, json!({}), 0, &capabilities).await.unwrap();
        assert_eq!(output.objects[0].object["v"], expected, "{git} {minor}");
    }
}

#[tokio::test]
async fn what_is_made_up_is_a_function_of_clock_and_seed_and_is_told() {
    for (text, functions) in [
        ("now", vec!["now"]),
        (r#"now | date "15:04:05""#, vec!["now"]),
        (r#"date "2006-01-02" "no date""#, vec!["date"]),
        ("ago 0", vec!["ago"]),
        ("htmlDate nil", vec!["htmlDate"]),
        ("randAlphaNum 1", vec!["randAlphaNum"]),
        ("randAlpha 1", vec!["randAlpha"]),
        ("randNumeric 1", vec!["randNumeric"]),
        ("randAscii 1 | b64enc", vec!["randAscii"]),
        ("randInt 0 2", vec!["randInt"]),
        ("randBytes 1", vec!["randBytes"]),
        (r#"shuffle "ab""#, vec!["shuffle"]),
        ("uuidv4", vec!["uuidv4"]),
        (r#"bcrypt "x""#, vec!["bcrypt"]),
        (r#"htpasswd "u" "p""#, vec!["htpasswd"]),
        (r#"encryptAES "k" "p""#, vec!["encryptAES"]),
        (r#"genPrivateKey "rsa""#, vec!["genPrivateKey"]),
        (r#"(genCA "ca" 10).Cert"#, vec!["genCA"]),
        (r#"(genSelfSignedCert "c" (list "10.0.0.1") (list "a.b") 10).Key"#, vec!["genSelfSignedCert"]),
        (r#"(genSignedCert "c" nil (list "a") 10 (genCA "ca" 10)).Cert"#, vec!["genCA", "genSignedCert"]),
        (r#"(genCAWithKey "ca" 10 (genPrivateKey "ecdsa")).Cert"#, vec!["genCAWithKey", "genPrivateKey"]),
    ] {
        let (first, told) = value_of(text, 0).await;
        assert_eq!(told, functions, "{text}");
        assert_eq!(value_of(text, 0).await.0, first, "{text}");
        assert_ne!(value_of(text, 1).await.0, first, "{text}");
    }
}

#[tokio::test]
async fn objects_come_with_origin_hooks_and_order() {
    let object = |kind: &str, name: &str, hook: &str| {
        let annotation = if hook.is_empty() {
            String::new()
        } else {
            format!("\n  annotations: {{helm.sh/hook: \"{hook}\", helm.sh/hook-weight: \"-3\"}}")
        };
        format!("apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}{annotation}\n")
    };
    let sub = chart("sub", &[("crds/s.yaml", &object("A", "sub-crd", "")), ("templates/s.yaml", &object("ConfigMap", "sub", ""))]);
    let all = [object("Service", "service", ""), "# empty\n".into(), object("ConfigMap", "config", "")].join("---\n");
    let hooks = [
        object("ConfigMap", "before", "pre-install,pre-upgrade"),
        object("Pod", "test", "test-success"),
        object("Pod", "odd", "crd-install"),
    ];
    let archive = {
        let (hooks, crd) = (hooks.join("---\n"), object("A", "crd", ""));
        let files: Vec<(&str, &[u8])> = vec![
            ("Chart.yaml", b"apiVersion: v2\nname: c\nversion: 1.0.0\nappVersion: \"7\"\n"),
            ("templates/NOTES.txt", b"not applied"),
            ("templates/_partial.tpl", b"{{ define \"x\" }}{{ end }}"),
            ("templates/all.yaml", all.as_bytes()),
            ("templates/hooks.yaml", hooks.as_bytes()),
            ("crds/c.yaml", crd.as_bytes()),
            ("charts/sub-1.0.0.tgz", &sub),
        ];
        crate::support::archive("c", &files)
    };
    let output = render(&archive, json!({}), 0).await.unwrap();
    let told: Vec<_> = output
        .objects
        .iter()
        .map(|o| (o.template.as_str(), o.object["metadata"]["name"].as_str().unwrap(), o.hooks.join(","), o.weight, o.crd))
        .collect();
    assert_eq!(
        told,
        [
            ("c/charts/sub/crds/s.yaml", "sub-crd", String::new(), 0, true),
            ("c/crds/c.yaml", "crd", String::new(), 0, true),
            ("c/charts/sub/templates/s.yaml", "sub", String::new(), 0, false),
            ("c/templates/all.yaml", "config", String::new(), 0, false),
            ("c/templates/all.yaml", "service", String::new(), 0, false),
            ("c/templates/hooks.yaml", "before", "pre-install,pre-upgrade".into(), -3, false),
            ("c/templates/hooks.yaml", "test", "test".into(), -3, false),
            ("c/templates/hooks.yaml", "odd", "unknown,crd-install".into(), 0, false),
        ]
    );
    assert_eq!((output.chart.name.as_str(), output.chart.version.as_str(), output.chart.app_version.as_str()), ("c", "1.0.0", "7"));
}

#[tokio::test]
async fn yaml_is_read_as_kubernetes_reads_it() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, labels: {a: one, a: two}}\n\
        mode: 0644\nyes: yes\nbig: 9007199254740993\ntext: \"0644\"\nvalue: {{ .Values.n }}\n";
    let output = render(&chart("c", &[("templates/x.yaml", template)]), json!({"n": 1_000_000}), 0).await.unwrap();
    let object = &output.objects[0].object;
    assert_eq!(object["metadata"]["labels"], json!({"a": "two"}));
    assert_eq!(object["mode"], json!(420));
    assert_eq!(object["true"], json!(true));
    assert_eq!(object["big"], json!(9_007_199_254_740_993_u64));
    assert_eq!(object["text"], json!("0644"));
    assert_eq!(object["value"], json!(1_000_000));
}

#[tokio::test]
async fn what_is_wrong_with_a_chart_is_one_line() {
    let missing = "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: [{name: sub, version: 1.0.0, repository: ''}]\n";
    for (files, expected) in [
        (vec![("templates/x.yaml", "a: {{ required \"set it\" .Values.it }}\n")], "set it"),
        (vec![("templates/x.yaml", "a: {{ fail \"no\" }}\n")], "c/templates/x.yaml:1"),
        (vec![("templates/x.yaml", "a: {{ nothing }}\n")], "function \"nothing\" not defined"),
        (vec![("templates/x.yaml", "a: [\n")], "c/templates/x.yaml"),
        (vec![("templates/x.yaml", "- a\n")], "c/templates/x.yaml"),
        (vec![("values.schema.json", r#"{"required": ["port"]}"#)], "port"),
        (vec![("Chart.yaml", missing)], "missing in charts/ directory: sub"),
        (vec![("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\ntype: library\n")], "library charts are not installable"),
        (vec![("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\nkubeVersion: '>=1.99'\n")], "incompatible with Kubernetes v1.37.2"),
        (vec![("Chart.yaml", "apiVersion: v3\nname: c\nversion: 1.0.0\n")], "unsupported chart version"),
        (vec![("Chart.yaml", "apiVersion: v9\nname: c\nversion: 1.0.0\n")], "unsupported chart version"),
        (vec![("templates/x.yaml", "a: {{ env \"HOME\" }}\n")], "function \"env\" not defined"),
    ] {
        let error = render(&chart("c", &files), json!({}), 0).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, EngineError::Chart(_)) && text.contains(expected) && !text.contains('\n'), "{text}");
    }
}
