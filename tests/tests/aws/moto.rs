//! The same requests before moto, which others wrote from their own understanding of AWS.
//!
//! What it forgives, and the services of `system_tests::aws` do not: its metadata service takes requests without the session token and
//! leaves `Code` out; its STS gives every role to everybody and its ECR a token to everybody, until it is told to verify; its ECR's
//! tokens have ended in 2015. Its refusals are not in the form of AWS's errors, so only their status is told. It has no registry: that stays the one of `system_tests::aws`, which takes moto's password at any time.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use system_tests::aws::{Keys, Moto, Ran, Scenario};

use super::{asked, check, manifest, prepared, refused, report, scenario};

const IMDS: &str = "169.254.169.254";
const REFUSED: &str = "the answer has status 403 and is not in the form of AWS's errors";
const PULLER: &str = "arn:aws:sts::111122223333:assumed-role/env-test-ecr-puller/clicklink-env-test";

/// None on a machine without Python, and that on stderr. Where everything is prepared for it that is a failure.
async fn started() -> Option<Moto> {
    let started = Moto::start().await.unwrap();
    if started.is_none() {
        assert!(std::env::var_os("CI").is_none(), "moto has to be there; `make tools` says why it is not");
        eprintln!("skipped: moto is not built; `make tools` says why");
    }
    started
}

/// The text of an element of an answer.
fn element(answer: &str, name: &str) -> String {
    let (_, rest) = answer.split_once(&format!("<{name}>")).unwrap_or_else(|| panic!("no {name}: {answer}"));
    rest.split_once('<').unwrap().0.to_owned()
}

fn outcomes(registry: &Value) -> Vec<&str> {
    registry["items"].as_array().unwrap().iter().map(|item| item["outcome"].as_str().unwrap()).collect()
}

fn shows_none_of(ran: &Ran, secrets: &[&str]) {
    let shown = format!("{}{}", ran.finished.stdout, ran.finished.stderr);
    for secret in secrets {
        assert!(!shown.contains(secret), "{secret} is shown:\n{shown}");
    }
}

#[tokio::test]
async fn moto_is_asked_as_aws_is_and_its_ended_login_is_told_and_used_once() {
    let Some(moto) = started().await else { return };
    let scenario = scenario();
    let hosts = [IMDS, &scenario.sts, &scenario.ecr];
    let scenario = Scenario { elsewhere: Some(moto.playing(&hosts, Scenario::ACCOUNT)), ..scenario.clone() };
    let Some(cloud) = prepared(&scenario) else { return };
    let direct = manifest(&scenario, "direct");

    let ran = check(&cloud, &direct, &[]).await;
    let registry = report(&ran, 0);
    assert_eq!(registry["identity"]["name"], PULLER);
    assert_eq!(registry["identity"]["source"], format!("role {}, by instance profile default-role", scenario.role));
    assert_eq!(registry["identity"]["ends"], "2015-01-01T00:00:00Z");
    assert_eq!(outcomes(&registry), ["ok", "ok"]);
    shows_none_of(&ran, &["test-secret-key", "test-session-token", &STANDARD.encode(&scenario.elsewhere.as_ref().unwrap().login)]);
    // A login that has ended by what is stated is not kept: one for who one is, one for each of the registry's three requests.
    assert_eq!((asked(&ran, "GetAuthorizationToken"), asked(&ran, &scenario.registry)), (4, 3), "{:#?}", ran.requests);
    assert_eq!((asked(&ran, " AssumeRole"), asked(&ran, " GetCallerIdentity")), (4, 1), "{:#?}", ran.requests);

    // In each login: a session token with a life of its own, and what is behind it only with that token.
    let seen = moto.seen(IMDS).unwrap();
    assert_eq!(seen.len(), 4 * 3, "{seen:#?}");
    for step in seen.chunks(3) {
        assert_eq!(step[0]["method"], "PUT");
        assert_eq!(step[0]["headers"]["X-Aws-Ec2-Metadata-Token-Ttl-Seconds"], "60");
        for request in &step[1..] {
            assert_eq!((&request["method"], &request["headers"]["X-Aws-Ec2-Metadata-Token"]), (&json!("GET"), &json!("fake-imdsv2-token")));
        }
    }
    let form = STANDARD.decode(moto.seen(&scenario.sts).unwrap()[0]["body"].as_str().unwrap()).unwrap();
    let form = String::from_utf8(form).unwrap();
    for field in ["Action=AssumeRole&", "RoleSessionName=clicklink-env-test", "env-test-ecr-puller"] {
        assert!(form.contains(field), "{form}");
    }

    let file = cloud.folder().write("bundle.json", direct.to_string()).unwrap();
    let ran = cloud.clicklink(&["clctl", "registry", "check", "-o", "table", "--bundle", file.to_str().unwrap()], &[]).await.unwrap();
    let text = &ran.finished.stdout;
    assert!(text.contains("Login ends: 2015-01-01T00:00:00Z (this is past: check this machine's clock)"), "{text}");

    let token = cloud.folder().write("token", "pod-token").unwrap();
    let env = [
        ("AWS_ROLE_ARN", scenario.role.as_str()),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap()),
        ("AWS_ROLE_SESSION_NAME", "executor"),
    ];
    let ran = check(&cloud, &manifest(&scenario, "mirror"), &env).await;
    let registry = report(&ran, 0);
    assert_eq!(registry["identity"]["source"], "web identity");
    assert_eq!(registry["identity"]["name"], "arn:aws:sts::111122223333:assumed-role/env-test-ecr-puller/executor");
    assert_eq!(outcomes(&registry), ["ok", "ok"]);
}

/// A role of the account, who may assume it, and what it may.
async fn role(moto: &Moto, name: &str, trusted: Value, action: &str) {
    let statement = |statement: Value| json!({"Version": "2012-10-17", "Statement": [statement]}).to_string();
    let trust = statement(json!({"Effect": "Allow", "Principal": trusted, "Action": "sts:AssumeRole"}));
    let may = statement(json!({"Effect": "Allow", "Action": action, "Resource": "*"}));
    let version = ("Version", "2010-05-08");
    let create = [("Action", "CreateRole"), version, ("RoleName", name), ("AssumeRolePolicyDocument", &trust)];
    moto.ask(Scenario::ACCOUNT, "iam", &create).await.unwrap();
    let allow = [("Action", "PutRolePolicy"), version, ("RoleName", name), ("PolicyName", "may"), ("PolicyDocument", &may)];
    moto.ask(Scenario::ACCOUNT, "iam", &allow).await.unwrap();
}

/// Credentials in an answer.
fn keys(answer: &str, token: bool) -> Keys {
    let token = if token { element(answer, "SessionToken") } else { String::new() };
    Keys { id: element(answer, "AccessKeyId"), secret: element(answer, "SecretAccessKey"), token }
}

/// A session of the instance profile's role.
async fn instance(moto: &Moto) -> Keys {
    let role = format!("arn:aws:iam::{}:role/connector-vm", Scenario::ACCOUNT);
    let assume = [("Action", "AssumeRole"), ("Version", "2011-06-15"), ("RoleArn", &role), ("RoleSessionName", "i-0123")];
    keys(&moto.ask(Scenario::ACCOUNT, "sts", &assume).await.unwrap(), true)
}

/// A user who may get a token.
async fn user(moto: &Moto) -> Keys {
    let version = ("Version", "2010-05-08");
    let may = json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ecr:GetAuthorizationToken", "Resource": "*"}]});
    moto.ask(Scenario::ACCOUNT, "iam", &[("Action", "CreateUser"), version, ("UserName", "mirror")]).await.unwrap();
    let may = may.to_string();
    let allow = [("Action", "PutUserPolicy"), version, ("UserName", "mirror"), ("PolicyName", "may"), ("PolicyDocument", &may)];
    moto.ask(Scenario::ACCOUNT, "iam", &allow).await.unwrap();
    let create = [("Action", "CreateAccessKey"), version, ("UserName", "mirror")];
    keys(&moto.ask(Scenario::ACCOUNT, "iam", &create).await.unwrap(), false)
}

#[tokio::test]
async fn moto_verifies_what_is_signed_and_who_may() {
    let Some(moto) = started().await else { return };
    let profile = json!({"AWS": format!("arn:aws:sts::{}:assumed-role/connector-vm/i-0123", Scenario::ACCOUNT)});
    role(&moto, "connector-vm", json!({"Service": "ec2.amazonaws.com"}), "sts:AssumeRole").await;
    role(&moto, "env-test-ecr-puller", profile.clone(), "ecr:GetAuthorizationToken").await;
    role(&moto, "of-others", json!({"AWS": "arn:aws:sts::111122223333:assumed-role/other-vm/i-0456"}), "ecr:GetAuthorizationToken").await;
    role(&moto, "without-ecr", profile, "s3:GetObject").await;
    let (instance, user) = (instance(&moto).await, user(&moto).await);
    moto.verify().await.unwrap();

    // moto's own metadata service gives keys that moto's STS does not know: here it is the other one, with keys of moto's.
    let scenario = scenario();
    let elsewhere = Some(moto.playing(&[&scenario.sts, &scenario.ecr], Scenario::ACCOUNT));
    let scenario = Scenario { elsewhere, instance, ..scenario };
    let secrets = [scenario.instance.secret.as_str(), &scenario.instance.token, &user.secret];
    let Some(cloud) = prepared(&scenario) else { return };
    let ran = check(&cloud, &manifest(&scenario, "direct"), &[]).await;
    let registry = report(&ran, 0);
    assert_eq!(registry["identity"]["name"], PULLER);
    assert_eq!(outcomes(&registry), ["ok", "ok"]);
    shows_none_of(&ran, &secrets);

    let of = |role: &str| format!("arn:aws:iam::{}:role/{role}", Scenario::ACCOUNT);
    let forged = Keys { secret: "another".into(), ..scenario.instance.clone() };
    for (scenario, expected) in [
        (Scenario { instance: forged, ..scenario.clone() }, "cannot be assumed with the instance profile"),
        (Scenario { role: of("of-others"), ..scenario.clone() }, "cannot be assumed with the instance profile"),
        (Scenario { role: of("without-ecr"), ..scenario.clone() }, "ECR in eu-west-1 gives no login"),
    ] {
        let Some(cloud) = prepared(&scenario) else { return };
        let ran = check(&cloud, &manifest(&scenario, "direct"), &[]).await;
        let error = refused(&ran, "aws_refused");
        assert!(error.contains(expected) && error.contains(REFUSED), "{error}");
        assert_eq!(asked(&ran, &scenario.registry), 0, "{:#?}", ran.requests);
        shows_none_of(&ran, &secrets);
    }

    let mirror = manifest(&scenario, "mirror");
    let ran = check(&cloud, &mirror, &[("AWS_ACCESS_KEY_ID", &user.id), ("AWS_SECRET_ACCESS_KEY", &user.secret)]).await;
    let registry = report(&ran, 0);
    assert_eq!(registry["identity"]["name"], "arn:aws:iam::111122223333:user/mirror");
    assert_eq!(outcomes(&registry), ["ok", "ok"]);
    shows_none_of(&ran, &secrets);
    let ran = check(&cloud, &mirror, &[("AWS_ACCESS_KEY_ID", &user.id), ("AWS_SECRET_ACCESS_KEY", "another")]).await;
    let error = refused(&ran, "aws_refused");
    assert!(error.contains("ECR in eu-west-1 gives no login") && error.contains(REFUSED), "{error}");
}
