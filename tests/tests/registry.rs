//! The testbed's registry: charts by the real helm, images by digest, authentication and falsified content.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use serde_json::Value;
use system_tests::bundle::{self, Edition};
use system_tests::{Finished, Registry, TempFolder, binaries};

/// `helm template` of a chart in the registry by digest, with values.
async fn render(registry: &Registry, component: &bundle::Component) -> String {
    let home = TempFolder::new("values").unwrap();
    let values = home.write("values.json", component.values.to_string()).unwrap();
    let pinned = component.chart.pinned();
    let args = ["template", component.name.as_str(), pinned.as_str(), "--include-crds", "--kube-version", "1.37"];
    let args = args.into_iter().chain(["--namespace", component.namespace.as_str(), "--values", values.to_str().unwrap()]);
    registry.helm_on_registry(args).await.unwrap().ok().unwrap().stdout
}

#[tokio::test]
async fn both_editions_are_pushed_and_render_by_digest() {
    let registry = Registry::start().await;
    let first = bundle::push(&registry, Edition::First).await.unwrap();
    let second = bundle::push(&registry, Edition::Second).await.unwrap();
    let manifest = first.manifest("env-test", "2026-11-30T10:00:00Z");
    assert_eq!(manifest["registry"]["mode"], "basic");
    for (old, new) in first.components.iter().zip(&second.components) {
        assert_eq!(old.name, new.name);
        assert_ne!(old.chart.digest, new.chart.digest);
        let (before, after) = (render(&registry, old).await, render(&registry, new).await);
        assert_ne!(before, after);
        for image in &old.images {
            assert!(before.contains(image), "{image} is not in what {} renders:\n{before}", old.name);
            assert!(registry.has_image(image).await.unwrap());
        }
        assert!(!before.contains("registry.invalid"), "an image without a value in {}", old.name);
    }
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_an_anonymous_registry_wants_none() {
    let registry = Registry::start().await;
    let chart = bundle::copy_chart("snapshot-controller", "4.1.0", registry.folder()).unwrap();
    let pushed = registry.push_chart(&chart, Some("4.1.1")).await.unwrap();
    assert_eq!((pushed.name.as_str(), pushed.version.as_str()), ("snapshot-controller", "4.1.1"));
    let wrong = registry.wrong_docker_config().unwrap();
    let pinned = pushed.pinned();
    let args = ["show", "chart", pinned.as_str(), "--registry-config", wrong.to_str().unwrap()];
    let refused = registry.helm_on_registry(args).await.unwrap();
    assert!(!refused.success(), "{}", refused.stdout);

    let open = Registry::start_anonymous().await;
    let pushed = open.push_chart(&chart, None).await.unwrap();
    open.helm_on_registry(["show", "chart", &pushed.pinned()]).await.unwrap().ok().unwrap();
}

#[tokio::test]
async fn a_tag_moves_and_a_falsified_manifest_is_served() {
    let registry = Registry::start().await;
    let chart = bundle::copy_chart("clickhouse-operator", "0.2.0", registry.folder()).unwrap();
    let first = registry.push_chart(&chart, None).await.unwrap();
    std::fs::write(chart.join("templates/more.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: more\n").unwrap();
    let moved = registry.push_chart(&chart, None).await.unwrap();
    assert_eq!(first.version, moved.version);
    assert_ne!(first.digest, moved.digest);

    // A reader that does not check sees the other content under the first digest.
    let other = registry.read(&moved.digest).unwrap();
    registry.falsify(&first.digest, &other).unwrap();
    assert_eq!(registry.get_manifest("clickhouse-operator", &first.digest).await.unwrap(), other);
    assert_ne!(registry.archive_digest(&moved).unwrap(), moved.digest);
    let missing = format!("{}/platform/clickhouse-operator@{}", registry.host(), first.digest);
    registry.lose(&first.digest).unwrap();
    assert!(!registry.has_image(&missing).await.unwrap());

    registry.stop().await.unwrap();
    registry.restart().await.unwrap();
    registry.helm_on_registry(["show", "chart", &moved.pinned()]).await.unwrap().ok().unwrap();
}

/// `clctl registry check` of a manifest, with a docker config.
async fn check(registry: &Registry, manifest: &Value, docker_config: &std::path::Path) -> Finished {
    let home = TempFolder::new("check").unwrap();
    let bundle = home.write("bundle.json", manifest.to_string()).unwrap();
    let ca = home.write("ca.pem", registry.ca()).unwrap();
    let program = binaries().clicklink("check").only_given_env().env("HOME", home.path());
    let program = program.args(["clctl", "registry", "check", "-o", "json", "--bundle"]).arg(bundle);
    let program = program.arg("--registry-config").arg(docker_config).arg("--registry-ca-file").arg(ca);
    program.run(&home, Duration::from_secs(60)).await.unwrap()
}

/// `kind outcome` of each item that is not there.
fn not_there(checked: &Finished) -> Vec<String> {
    let report: Value = serde_json::from_str(&checked.stdout).unwrap_or_else(|error| panic!("{error}: {}", checked.stderr));
    let items = report["registries"][0]["items"].as_array().unwrap().clone();
    assert!(items.len() > 3, "{report:#}");
    let failed = items.iter().filter(|item| item["outcome"] != "ok");
    failed.map(|item| format!("{} {}", item["kind"].as_str().unwrap(), item["outcome"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn a_check_tells_what_of_a_bundle_may_be_pulled() {
    let registry = Registry::start().await;
    let first = bundle::push(&registry, Edition::First).await.unwrap();
    let manifest = first.manifest("env-test", "2026-11-30T10:00:00Z");
    let all = check(&registry, &manifest, registry.docker_config()).await;
    assert_eq!((all.code(), not_there(&all)), (Some(0), vec![]), "{}", all.stdout);
    let report: Value = serde_json::from_str(&all.stdout).unwrap();
    assert_eq!(report["registries"][0]["identity"]["name"], Registry::USER);

    registry.lose(&first.components[0].chart.digest).unwrap();
    let (_, lost) = first.components[1].images[0].split_once('@').unwrap();
    registry.lose(lost).unwrap();
    let some = check(&registry, &manifest, registry.docker_config()).await;
    assert_eq!((some.code(), not_there(&some)), (Some(2), vec!["chart missing".to_owned(), "image missing".to_owned()]), "{}", some.stdout);

    let wrong = check(&registry, &manifest, &registry.wrong_docker_config().unwrap()).await;
    assert_eq!(wrong.code(), Some(1), "{}", wrong.stdout);
    assert!(wrong.stderr.contains("error[registry_credentials]") && wrong.stderr.contains("(401)"), "{}", wrong.stderr);
    let hint = format!("hint: user and password are not taken: log in anew with `docker login {}`", registry.host());
    assert!(wrong.stderr.contains(&hint) && !wrong.stderr.contains("clctl registry check"), "{}", wrong.stderr);
}

/// Nothing is staged yet: the registries of the credentials file are logged in at, and the exit code says how that went.
#[tokio::test]
async fn a_check_without_a_bundle_logs_in_where_there_are_credentials() {
    let (registry, other) = tokio::join!(Registry::start(), Registry::start());
    let home = TempFolder::new("check").unwrap();
    let ca = home.write("ca.pem", format!("{}{}", registry.ca(), other.ca())).unwrap();
    let credentials = |name: &str, parts: &[&std::path::Path]| {
        let mut auths = serde_json::Map::new();
        for part in parts {
            let text: Value = serde_json::from_slice(&std::fs::read(part).unwrap()).unwrap();
            auths.extend(text["auths"].as_object().unwrap().clone());
        }
        home.write(name, serde_json::json!({ "auths": auths }).to_string()).unwrap()
    };
    let (good, wrong) = (registry.docker_config(), registry.wrong_docker_config().unwrap());
    let (good_too, wrong_too) = (other.docker_config(), other.wrong_docker_config().unwrap());
    let check = async |credentials: &std::path::Path, ca: &std::path::Path| {
        let program = binaries().clicklink("check").only_given_env().env("HOME", home.path());
        let program = program.args(["clctl", "registry", "check", "-o", "json", "--output-dir"]).arg(home.folder("access").unwrap());
        let program = program.arg("--registry-config").arg(credentials).arg("--registry-ca-file").arg(ca);
        program.run(&home, Duration::from_secs(60)).await.unwrap()
    };
    for (name, parts, code, refusals) in
        [("both.json", [good, good_too], 0, 0), ("one.json", [good, &wrong_too], 2, 1), ("none.json", [&wrong, &wrong_too], 1, 2)]
    {
        let checked = check(&credentials(name, &parts), &ca).await;
        assert_eq!(checked.code(), Some(code), "{name}: {}\n{}", checked.stdout, checked.stderr);
        assert!(checked.stderr.contains("note: no bundle is staged"), "{}", checked.stderr);
        let report: Value = serde_json::from_str(&checked.stdout).unwrap();
        let registries = report["registries"].as_array().unwrap();
        let problems: Vec<&str> = registries.iter().filter_map(|registry| registry["problem"].as_str()).collect();
        assert_eq!((registries.len(), problems.len()), (2, refusals), "{report:#}");
        assert!(problems.iter().all(|problem| problem.contains("does not accept the credentials (401)")), "{problems:?}");
        assert_eq!(checked.stderr.matches("log in anew with `docker login 127.0.0.1:").count(), refusals, "{}", checked.stderr);
        assert!(registries.iter().filter(|registry| registry["problem"].is_null()).all(|one| one["identity"]["name"] == Registry::USER));
    }

    // A CA file that is none is told as such; one of another authority is a matter of TLS.
    let both = home.join("both.json");
    let broken = home.write("broken.pem", "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n").unwrap();
    let checked = check(&both, &broken).await;
    let said = format!("error[registry_access]: the registry CA file {} is wrong in certificate 1: ", broken.display());
    assert!(checked.code() == Some(78) && checked.stderr.contains(&said), "{:?}: {}", checked.code(), checked.stderr);
    assert!(!checked.stderr.contains("credentials"), "{}", checked.stderr);
    let elsewhere = home.write("elsewhere.pem", Registry::start_anonymous().await.ca()).unwrap();
    let checked = check(&both, &elsewhere).await;
    assert_eq!(checked.code(), Some(1), "{}", checked.stdout);
    assert_eq!(checked.stdout.matches("no trusted TLS connection to the registry").count(), 2, "{}", checked.stdout);
    assert!(checked.stderr.contains("name the registry's CA with --registry-ca-file FILE"), "{}", checked.stderr);

    // Without credentials there is nobody to be.
    let nothing = check(&home.write("empty.json", r#"{"auths":{}}"#).unwrap(), &ca).await;
    assert!(nothing.code() == Some(1) && nothing.stderr.contains("error[nothing_staged]"), "{}", nothing.stderr);
}
