//! Logins at ECR: the built `clicklink` among the services of AWS, under their real names, in a network of its own.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and says why it is skipped")]

mod moto;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use system_tests::aws::{Cloud, Imds, Keys, Ran, Scenario};
use system_tests::bundle::{self, Edition};
use system_tests::{ControlPlane, Registry};

const FAKE: &str = env!("CARGO_BIN_EXE_aws-fake");
const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const CHART: &str = "/v2/platform/c/manifests/";
const IMAGE: &str = "/v2/platform/app/manifests/";

/// An instance whose registry has the chart and the image of [`manifest`].
fn scenario() -> Scenario {
    Scenario { manifests: vec![format!("{CHART}{DIGEST}"), format!("{IMAGE}{DIGEST}")], ..Scenario::new() }
}

fn manifest(scenario: &Scenario, mode: &str) -> Value {
    let host = &scenario.registry;
    let mut registry = json!({"mode": mode, "chartBase": format!("oci://{host}/platform")});
    if mode == "direct" {
        registry["pullRoleArn"] = json!(scenario.role);
    }
    json!({
        "apiVersion": "clicklink.io/v1", "kind": "PlatformBundle", "environment": "env-test", "createdAt": "2026-11-30T10:00:00Z",
        "registry": registry, "namespaces": ["platform"], "objects": [],
        "components": [{"name": "c", "namespace": "platform", "release": "c", "values": {},
            "chart": {"name": "c", "version": "1.0.0", "digest": DIGEST},
            "images": [format!("{host}/platform/app@{DIGEST}")]}]
    })
}

/// The services, behaving as the scenario says; `None` on a machine that allows no network of one's own.
fn prepared(scenario: &Scenario) -> Option<Cloud> {
    match Cloud::new(scenario.clone(), FAKE) {
        Ok(cloud) => Some(cloud),
        Err(error) if std::env::var_os("CI").is_none() => {
            eprintln!("skipped: AWS is played in a network namespace: {error:#}");
            None
        }
        Err(error) => panic!("{error:#}"),
    }
}

/// Runs `clctl registry check` on a manifest.
async fn check(cloud: &Cloud, manifest: &Value, env: &[(&str, &str)]) -> Ran {
    let file = cloud.folder().write("bundle.json", manifest.to_string()).unwrap();
    let ran = cloud.clicklink(&["clctl", "registry", "check", "-o", "json", "--bundle", file.to_str().unwrap()], env).await.unwrap();
    shows_no_secret(&ran);
    ran
}

fn shows_no_secret(ran: &Ran) {
    let shown = format!("{}{}", ran.finished.stdout, ran.finished.stderr);
    for secret in ["secret-of-", "session-of-", "QVdTOnRva2Vu", "imds-session", "store-signature"] {
        assert!(!shown.contains(secret), "{secret} is shown:\n{shown}");
    }
}

/// The one registry of a report.
fn report(ran: &Ran, code: i32) -> Value {
    assert_eq!(ran.finished.code(), Some(code), "{}\n{}\n{:#?}", ran.finished.stdout, ran.finished.stderr, ran.requests);
    let report: Value = serde_json::from_str(&ran.finished.stdout).unwrap();
    report["registries"][0].clone()
}

/// The error of a run that came to nothing.
fn refused(ran: &Ran, code: &str) -> String {
    let error = &ran.finished.stderr;
    assert_eq!(ran.finished.code(), Some(1), "{}\n{error}", ran.finished.stdout);
    assert!(error.contains(&format!("error[{code}]")), "{error}\n{:#?}", ran.requests);
    error.clone()
}

fn asked(ran: &Ran, what: &str) -> usize {
    ran.requests.iter().filter(|request| request.contains(what)).count()
}

#[tokio::test]
async fn direct_goes_from_the_instance_profile_by_the_role_to_a_token() {
    let scenario = scenario();
    let Some(cloud) = prepared(&scenario) else { return };
    let ran = check(&cloud, &manifest(&scenario, "direct"), &[]).await;
    let registry = report(&ran, 0);
    let arn = "arn:aws:sts::111122223333:assumed-role/env-test-ecr-puller/clicklink-env-test";
    assert_eq!(registry["identity"]["name"], arn);
    assert_eq!(registry["identity"]["source"], format!("role {}, by instance profile connector-vm", scenario.role));
    let ends: jiff::Timestamp = registry["identity"]["ends"].as_str().unwrap().parse().unwrap();
    let left = ends.duration_since(jiff::Timestamp::now()).as_secs();
    assert!((3_000..=3_600).contains(&left), "the login ends with the role's session, not in {left} s");
    let outcomes: Vec<_> = registry["items"].as_array().unwrap().iter().map(|item| (&item["kind"], &item["outcome"])).collect();
    assert_eq!(outcomes, [(&json!("chart"), &json!("ok")), (&json!("image"), &json!("ok"))]);
    let imds = "169.254.169.254 /latest";
    let folder = format!("GET {imds}/meta-data/iam/security-credentials");
    let (sts, ecr, host) = (&scenario.sts, &scenario.ecr, &scenario.registry);
    let mut expected = vec![
        format!("PUT {imds}/api/token"),
        format!("{folder}/"),
        format!("{folder}/connector-vm"),
        format!("POST {sts} / AssumeRole"),
        format!("POST {sts} / GetCallerIdentity"),
        format!("POST {ecr} / AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"),
        format!("GET {host} /v2/"),
        format!("HEAD {host} {CHART}{DIGEST}"),
        format!("HEAD {host} {IMAGE}{DIGEST}"),
    ];
    let mut requests = ran.requests.clone();
    // Chart and image are asked for side by side.
    expected[7..].sort();
    requests[7..].sort();
    assert_eq!(requests, expected);
}

#[tokio::test]
async fn every_partition_has_its_own_endpoints() {
    for (region, sts, ecr, registry) in [
        ("cn-north-1", "sts.cn-north-1.amazonaws.com.cn", "api.ecr.cn-north-1.amazonaws.com.cn", "dkr.ecr.cn-north-1.amazonaws.com.cn"),
        ("us-gov-west-1", "sts.us-gov-west-1.amazonaws.com", "api.ecr.us-gov-west-1.amazonaws.com", "dkr.ecr.us-gov-west-1.amazonaws.com"),
        ("us-east-1", "sts-fips.us-east-1.amazonaws.com", "ecr-fips.us-east-1.amazonaws.com", "dkr.ecr-fips.us-east-1.amazonaws.com"),
        (
            "us-gov-east-1",
            "sts.us-gov-east-1.amazonaws.com",
            "ecr-fips.us-gov-east-1.amazonaws.com",
            "dkr.ecr-fips.us-gov-east-1.amazonaws.com",
        ),
        ("us-east-2", "sts-fips.us-east-2.api.aws", "ecr-fips.us-east-2.api.aws", "dkr-ecr-fips.us-east-2.on.aws"),
        ("eu-central-1", "sts.eu-central-1.api.aws", "ecr.eu-central-1.api.aws", "dkr-ecr.eu-central-1.on.aws"),
    ] {
        let registry = format!("{}.{registry}", Scenario::ACCOUNT);
        let scenario = scenario().at(region, [sts, ecr, &registry]);
        let Some(cloud) = prepared(&scenario) else { return };
        let ran = check(&cloud, &manifest(&scenario, "direct"), &[]).await;
        assert_eq!(report(&ran, 0)["host"], registry.as_str());
        assert_eq!((asked(&ran, &format!(" {sts} ")), asked(&ran, &format!(" {ecr} "))), (2, 1), "{:#?}", ran.requests);
    }
}

#[tokio::test]
async fn nothing_stands_in_for_the_instance_profile() {
    let keys = Keys::session("person");
    for (imds, expected) in [
        (Imds::Absent, "no connection"),
        (Imds::Silent, "session token (PUT /latest/api/token): no answer within 1s"),
        (Imds::Off, "it is turned off for this instance (403)"),
        (Imds::NoProfile, "the instance has no instance profile (404)"),
        (Imds::Stale, "they are stale: they ended at"),
    ] {
        let scenario = Scenario { imds, ambient: vec![keys.clone()], ..scenario() };
        let Some(cloud) = prepared(&scenario) else { return };
        let profile = format!("[default]\naws_access_key_id={}\naws_secret_access_key={}\n", keys.id, keys.secret);
        let profile = cloud.folder().write("credentials", profile).unwrap();
        let env = [
            ("AWS_ACCESS_KEY_ID", keys.id.as_str()),
            ("AWS_SECRET_ACCESS_KEY", &keys.secret),
            ("AWS_SESSION_TOKEN", &keys.token),
            ("AWS_SHARED_CREDENTIALS_FILE", profile.to_str().unwrap()),
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:8099/creds"),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-token"),
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:8099"),
        ];
        let ran = check(&cloud, &manifest(&scenario, "direct"), &env).await;
        let error = refused(&ran, "instance_profile");
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("hint: run this on the connector's EC2 instance") && error.contains("curl -sS -m 2 -X PUT"), "{error}");
        assert!(ran.took < Duration::from_secs(10), "{imds:?}: {:?}", ran.took);
        assert!(ran.requests.iter().all(|request| request.contains(" 169.254.169.254 ")), "{:#?}", ran.requests);
    }
}

/// An instance may have the service at its IPv6 address alone; that it is found there is the instance's doing, not the environment's.
#[tokio::test]
async fn an_instance_with_ipv6_only_gives_its_profile() {
    let scenario = Scenario { imds: Imds::Ipv6, ..scenario() };
    let Some(cloud) = prepared(&scenario) else { return };
    for env in
        [&[][..], &[("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv4"), ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:8099")]]
    {
        let ran = check(&cloud, &manifest(&scenario, "direct"), env).await;
        let registry = report(&ran, 0);
        assert_eq!(registry["identity"]["source"], format!("role {}, by instance profile connector-vm", scenario.role));
        assert_eq!(asked(&ran, "[fd00:ec2::254] /latest"), 3, "{:#?}", ran.requests);
        assert!(ran.took < Duration::from_secs(10), "{:?}", ran.took);
    }
    // Nothing at the one address is no reason to wait for long at the other.
    let scenario = Scenario { imds: Imds::Absent, ..scenario };
    let Some(cloud) = prepared(&scenario) else { return };
    let ran = check(&cloud, &manifest(&scenario, "direct"), &[("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6")]).await;
    let error = refused(&ran, "instance_profile");
    assert!(error.contains("no connection; by IPv6: no connection") && error.contains("[fd00:ec2::254]"), "{error}");
    assert!(ran.took < Duration::from_secs(10), "{:?}", ran.took);
}

/// Whose certificate is not trusted has refused nobody.
#[tokio::test]
async fn a_service_without_trusted_tls_is_out_of_reach_and_not_one_that_denies() {
    let scenario = scenario();
    let Some(cloud) = prepared(&scenario) else { return };
    let other = cloud.folder().write("other.pem", Registry::start_anonymous().await.ca()).unwrap();
    let ran = check(&cloud, &manifest(&scenario, "direct"), &[("SSL_CERT_FILE", other.to_str().unwrap())]).await;
    let error = refused(&ran, "registry_unreachable");
    assert!(error.contains("STS in eu-west-1 cannot be reached") && error.contains("UnknownIssuer"), "{error}");
    assert!(error.contains("--registry-ca-file FILE"), "{error}");
}

#[tokio::test]
async fn what_aws_denies_is_told_in_its_words() {
    for (scenario, expected) in [
        (Scenario { deny_role: true, ..scenario() }, "AccessDenied: User: connector-vm is not authorized to perform: sts:AssumeRole"),
        (Scenario { session: "other".into(), ..scenario() }, "roleSessionName clicklink-env-test"),
        (Scenario { deny_token: true, ..scenario() }, "not authorized to perform: ecr:GetAuthorizationToken"),
    ] {
        let Some(cloud) = prepared(&scenario) else { return };
        let ran = check(&cloud, &manifest(&scenario, "direct"), &[]).await;
        let error = refused(&ran, "aws_refused");
        assert!(error.contains(expected), "{error}");
        assert!(ran.requests.iter().all(|request| !request.contains(&scenario.registry)), "{:#?}", ran.requests);
    }

    let denied = vec![format!("{IMAGE}{DIGEST}")];
    let scenario = Scenario { manifests: Vec::new(), denied, ..scenario() };
    let Some(cloud) = prepared(&scenario) else { return };
    let ran = check(&cloud, &manifest(&scenario, "direct"), &[]).await;
    let registry = report(&ran, 2);
    assert_eq!((&registry["items"][0]["outcome"], &registry["items"][1]["outcome"]), (&json!("missing"), &json!("denied")));
    let detail = registry["items"][1]["detail"].as_str().unwrap();
    assert!(detail.ends_with("(403): not authorized to perform: ecr:BatchGetImage because no resource-based policy allows it"), "{detail}");
    assert_eq!(asked(&ran, "GetAuthorizationToken"), 1, "a denial brings no new login: {:#?}", ran.requests);
}

#[tokio::test]
async fn a_token_that_is_expired_is_renewed_once() {
    let scenario = Scenario { revoked_tokens: 1, ..scenario() };
    let Some(cloud) = prepared(&scenario) else { return };
    let ran = check(&cloud, &manifest(&scenario, "direct"), &[]).await;
    report(&ran, 0);
    assert_eq!(asked(&ran, "GetAuthorizationToken"), 2, "{:#?}", ran.requests);

    // By what is stated it has ended already: each request brings its own login, and there is an end.
    let scenario = Scenario { token_life: -1, ..scenario };
    let Some(cloud) = prepared(&scenario) else { return };
    let ran = check(&cloud, &manifest(&scenario, "direct"), &[]).await;
    let error = refused(&ran, "registry_credentials");
    assert!(error.contains("Your authorization token has expired"), "{error}");
    assert!(asked(&ran, "GetAuthorizationToken") <= 3, "{:#?}", ran.requests);
}

#[tokio::test]
async fn mirror_takes_what_the_process_has() {
    let keys = Keys::session("ambient");
    let scenario = Scenario { ambient: vec![keys.clone()], ..scenario() };
    let Some(cloud) = prepared(&scenario) else { return };
    let profile =
        format!("[team]\naws_access_key_id={}\naws_secret_access_key={}\naws_session_token={}\n", keys.id, keys.secret, keys.token);
    let profile = cloud.folder().write("credentials", profile).unwrap();
    let token = cloud.folder().write("token", "pod-token").unwrap();
    let sources: [(&str, Vec<(&str, &str)>); 4] = [
        ("environment", vec![("AWS_ACCESS_KEY_ID", &keys.id), ("AWS_SECRET_ACCESS_KEY", &keys.secret), ("AWS_SESSION_TOKEN", &keys.token)]),
        ("profile", vec![("AWS_PROFILE", "team"), ("AWS_SHARED_CREDENTIALS_FILE", profile.to_str().unwrap())]),
        ("web identity", vec![("AWS_ROLE_ARN", &scenario.role), ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap())]),
        (
            "container",
            vec![
                ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:8099/creds"),
                ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-token"),
                // Metadata services are asked without a proxy.
                ("HTTP_PROXY", "http://127.0.0.1:1"),
            ],
        ),
    ];
    for (source, env) in sources {
        let ran = check(&cloud, &manifest(&scenario, "mirror"), &env).await;
        let registry = report(&ran, 0);
        assert_eq!(registry["identity"]["source"], source);
        assert_eq!(registry["identity"]["name"], format!("arn:aws:iam::111122223333:user/{}", keys.id));
        assert_eq!(asked(&ran, " AssumeRole"), usize::from(source == "web identity"), "{:#?}", ran.requests);
    }

    // The instance profile's own credentials may not ask ECR here; that it was their turn is seen by whom ECR refuses.
    let ran = check(&cloud, &manifest(&scenario, "mirror"), &[]).await;
    let error = refused(&ran, "aws_refused");
    assert!(error.contains("with instance profile"), "{error}");
}

#[tokio::test]
async fn without_any_source_each_is_named() {
    let scenario = Scenario { imds: Imds::Silent, ..scenario() };
    let Some(cloud) = prepared(&scenario) else { return };
    let ran = check(&cloud, &manifest(&scenario, "mirror"), &[]).await;
    let error = refused(&ran, "aws_credentials");
    for source in ["environment", "profile", "web identity", "container", "instance profile"] {
        assert!(error.contains(&format!("\n  - {source}: ")), "{source}: {error}");
    }
    assert!(ran.took < Duration::from_secs(15), "{:?}", ran.took);

    // What is set up and fails ends the search: nobody else's credentials are taken in its place.
    let ran =
        check(&cloud, &manifest(&scenario, "mirror"), &[("AWS_ROLE_ARN", &scenario.role), ("AWS_WEB_IDENTITY_TOKEN_FILE", "/none")]).await;
    let error = refused(&ran, "aws_credentials");
    assert!(error.contains("web identity: ") && !error.contains("instance profile: "), "{error}");
}

#[tokio::test]
async fn an_aws_login_goes_to_ecr_alone() {
    let scenario = Scenario { ambient: vec![Keys::session("ambient")], ..scenario() };
    let Some(cloud) = prepared(&scenario) else { return };
    for (mode, key, value) in [
        ("mirror", "chartBase", "oci://registry.example/platform"),
        ("direct", "chartBase", "oci://111122223333.dkr.ecr.eu-west-1.amazonaws.com.evil.example/platform"),
        ("direct", "region", "us-east-1"),
    ] {
        let mut manifest = manifest(&scenario, mode);
        manifest["registry"][key] = json!(value);
        let ran = check(&cloud, &manifest, &[]).await;
        refused(&ran, "registry_place");
        assert_eq!(ran.requests, Vec::<String>::new());
    }
}

#[tokio::test]
async fn approve_pulls_each_chart_with_one_login_that_does_not_follow_to_the_store() {
    let cluster = ControlPlane::shared().await;
    let registry = Registry::start_anonymous().await;
    let release = bundle::push(&registry, Edition::First).await.unwrap();
    let mut scenario = Scenario { revoked_tokens: 1, ..Scenario::new() };
    for component in &release.components {
        let (chart, repository) = (&component.chart, format!("/v2/platform/{}", component.chart.name));
        let archive = registry.archive_digest(chart).unwrap();
        for (kind, digest) in [("manifests", &chart.digest), ("blobs", &archive)] {
            scenario.contents.insert(format!("{repository}/{kind}/{digest}"), STANDARD.encode(registry.read(digest).unwrap()));
        }
    }
    scenario.relayed_port = Some(cluster.url().rsplit(':').next().unwrap().parse().unwrap());
    let manifest = release.manifest("env-test", "2026-11-30T10:00:00Z").to_string().replace(&registry.host(), &scenario.registry);
    let mut manifest: Value = serde_json::from_str(&manifest).unwrap();
    manifest["registry"] = self::manifest(&scenario, "direct")["registry"].clone();
    // The images are asked for, and not pulled.
    for image in manifest["components"].as_array().unwrap().iter().flat_map(|component| component["images"].as_array().unwrap()) {
        let own = image.as_str().unwrap().strip_prefix(&scenario.registry);
        scenario.manifests.extend(own.map(|path| format!("/v2{}", path.replace("@", "/manifests/"))));
    }
    let Some(cloud) = prepared(&scenario) else { return };
    let file = cloud.folder().write("bundle.json", manifest.to_string()).unwrap();
    let args = ["clctl", "platform", "approve", "--dry-run", "--bundle", file.to_str().unwrap(), "--kubeconfig"];
    let args = [&args[..], &[cluster.admin_kubeconfig().to_str().unwrap()]].concat();
    let ran = cloud.clicklink(&args, &[]).await.unwrap();
    assert!(ran.finished.success(), "{}\n{}\n{:#?}", ran.finished.stdout, ran.finished.stderr, ran.requests);
    shows_no_secret(&ran);
    // The first token is refused as expired in the middle of it; whoever noticed renews it for all.
    assert_eq!((asked(&ran, "GetAuthorizationToken"), asked(&ran, " AssumeRole")), (2, 2), "{:#?}", ran.requests);
    assert_eq!(asked(&ran, Scenario::STORE), release.components.len(), "{:#?}", ran.requests);

    // A workstation's own credentials open nothing.
    let scenario = Scenario { imds: Imds::Absent, ambient: vec![Keys::session("person")], ..scenario };
    let keys = &scenario.ambient[0];
    let env = [("AWS_ACCESS_KEY_ID", keys.id.as_str()), ("AWS_SECRET_ACCESS_KEY", &keys.secret), ("AWS_SESSION_TOKEN", &keys.token)];
    let Some(workstation) = prepared(&scenario) else { return };
    let ran = workstation.clicklink(&args, &env).await.unwrap();
    refused(&ran, "instance_profile");
    assert_eq!(ran.requests, Vec::<String>::new());
}
