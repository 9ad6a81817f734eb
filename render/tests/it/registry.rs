//! Pulling: digests, media types, log-ins, redirects, and where credentials go.

use std::sync::Arc;

use agent_api::chain::chain;
use agent_api::digest::{OciDigest, Sha256};
use render::engine::{Answering, ChartRenderer};
use render::{RegistryAccess, RenderError, Renderer};
use serde_json::json;

use crate::support::registry::{Answer, Asked, Content, FakeRegistry};
use crate::support::{capabilities, chart, component, manifest};

/// Renders every chart to nothing.
pub(crate) struct Nothing;

impl ChartRenderer for Nothing {
    fn version(&self) -> &str {
        "nothing"
    }

    fn identity(&self) -> Option<Sha256> {
        None
    }

    fn answer<'a>(&'a self, _input: &'a [u8]) -> Answering<'a> {
        Box::pin(async { Ok(b"{\"rendering\":{\"objects\":0,\"chart\":{\"name\":\"c\",\"version\":\"1.0.0\"}}}\n".to_vec()) })
    }
}

pub(crate) async fn pull(registry: &FakeRegistry, access: RegistryAccess, mode: &str, digest: &OciDigest) -> Result<(), String> {
    let manifest = manifest(&registry.host, mode, vec![component("c", digest, json!({}))]);
    let renderer = Renderer::over(Arc::new(Nothing), access);
    renderer.render(&manifest, &capabilities()).await.map(|_| ()).map_err(|error| chain(&error))
}

pub(crate) fn content() -> (Content, OciDigest) {
    let mut content = Content::default();
    let digest = content.chart("c", chart("c", &[("templates/x.yaml", "")]));
    (content, digest)
}

pub(crate) const USER: Option<(&str, &str)> = Some(("user", "hunter2"));
pub(crate) const BASIC: &str = "Basic dXNlcjpodW50ZXIy";

#[tokio::test]
async fn anonymous_basic_and_token_logins() {
    let (all, digest) = content();
    let open = all.clone();
    let registry = FakeRegistry::start(move |asked| open.answer(asked)).await;
    pull(&registry, FakeRegistry::access(&[&registry], USER), "anonymous", &digest).await.unwrap();
    assert!(registry.asked().iter().all(|asked| asked.authorization.is_none()));

    let basic = all.clone();
    let registry = FakeRegistry::start(move |asked| match asked.authorization.as_deref() {
        Some(BASIC) => basic.answer(asked),
        Some(_) | None => Answer::status(401).header("WWW-Authenticate", "basic realm=\"r\""),
    })
    .await;
    pull(&registry, FakeRegistry::access(&[&registry], USER), "basic", &digest).await.unwrap();
    let error = pull(&registry, FakeRegistry::access(&[&registry], None), "basic", &digest).await.unwrap_err();
    assert!(error.contains("no credentials") && error.contains(&registry.host), "{error}");
    let error = pull(&registry, FakeRegistry::access(&[&registry], Some(("user", "other"))), "basic", &digest).await.unwrap_err();
    assert!(error.contains("401") && !error.contains("other"), "{error}");

    let service = FakeRegistry::start(|asked: &Asked| match asked.authorization.as_deref() {
        Some(BASIC) if asked.path().contains("scope=repository%3Acharts%2Fc%3Apull") => Answer::body(br#"{"access_token":"t0"}"#.to_vec()),
        Some(_) | None => Answer::status(401),
    })
    .await;
    let realm = format!("BEARER service=\"a,b\",realm=\"https://{}/token\"", service.host);
    let registry = FakeRegistry::start(move |asked| match asked.authorization.as_deref() {
        Some("Bearer t0") => all.answer(asked),
        Some(_) | None => Answer::status(401).header("WWW-Authenticate", realm.clone()),
    })
    .await;
    pull(&registry, FakeRegistry::access(&[&registry, &service], USER), "basic", &digest).await.unwrap();
    assert_eq!(service.asked().len(), 1);
}

#[tokio::test]
async fn each_refusal_is_one_clear_error() {
    let (all, digest) = content();
    let manifest_of = |status: u16| move |_: &Asked| Answer::status(status);
    for (status, expected) in [(403, "403"), (404, "404"), (500, "status 500"), (401, "log-in that is not supported")] {
        let registry = FakeRegistry::start(manifest_of(status)).await;
        let error = pull(&registry, FakeRegistry::access(&[&registry], USER), "basic", &digest).await.unwrap_err();
        assert!(error.contains(expected) && error.contains("component c: chart c 1.0.0"), "{error}");
    }
    let mut changed = all.clone();
    for bytes in changed.0.values_mut() {
        bytes.push(b'\n');
    }
    let registry = FakeRegistry::start(move |asked| changed.answer(asked)).await;
    let error = pull(&registry, FakeRegistry::access(&[&registry], None), "anonymous", &digest).await.unwrap_err();
    assert!(error.contains("sent other bytes"), "{error}");

    let mut other_layer = all.clone();
    for (path, bytes) in &mut other_layer.0 {
        if path.contains("/blobs/") {
            bytes[20] ^= 1;
        }
    }
    let registry = FakeRegistry::start(move |asked| other_layer.answer(asked)).await;
    let error = pull(&registry, FakeRegistry::access(&[&registry], None), "anonymous", &digest).await.unwrap_err();
    assert!(error.contains("sent other bytes"), "{error}");

    let mut images = Content::default();
    let image = images.manifest("c", "application/vnd.oci.image.config.v1+json", vec![]);
    let empty = images.manifest("c", "application/vnd.cncf.helm.config.v1+json", vec![]);
    let registry = FakeRegistry::start(move |asked| images.answer(asked)).await;
    for (digest, expected) in
        [(image, "not a Helm chart: a container image (application/vnd.oci.image.config.v1+json)"), (empty, "no chart layer")]
    {
        let error = pull(&registry, FakeRegistry::access(&[&registry], None), "anonymous", &digest).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    for (media_type, expected) in [
        ("application/vnd.oci.image.index.v1+json", "not a Helm chart: an index of images (application/vnd.oci.image.index.v1+json)"),
        ("application/vnd.docker.distribution.manifest.v2+json", "not a Helm chart: a container image"),
        ("text/html", "not a Helm chart: text/html"),
    ] {
        let mut other = Content::default();
        let digest = other.raw("c", json!({"schemaVersion": 2, "mediaType": media_type, "manifests": []}).to_string().into_bytes());
        let registry = FakeRegistry::start(move |asked| other.answer(asked)).await;
        let error = pull(&registry, FakeRegistry::access(&[&registry], None), "anonymous", &digest).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }

    let registry = FakeRegistry::start(move |asked| all.answer(asked)).await;
    let error = pull(&registry, RegistryAccess::anonymous(), "anonymous", &digest).await.unwrap_err();
    assert!(error.contains("no trusted TLS connection"), "{error}");
    let error = pull(&registry, RegistryAccess::anonymous(), "mirror", &digest).await.unwrap_err();
    assert!(error.contains("is not the host of a private ECR registry"), "{error}");
    assert_eq!(registry.asked().len(), 0, "an AWS login went to a host that is not AWS's");
}

#[tokio::test]
async fn credentials_do_not_follow_a_redirect() {
    let (all, digest) = content();
    let store = all.clone();
    let elsewhere =
        FakeRegistry::start(move |asked| store.answer(&Asked { line: asked.line.replace("?X-Signature=s3cret", ""), ..asked.clone() }))
            .await;
    let other = elsewhere.host.clone();
    let registry = FakeRegistry::start(move |asked| match asked.authorization.as_deref() {
        Some(BASIC) if asked.path().contains("/blobs/") => {
            Answer::status(307).header("Location", format!("https://{other}{}?X-Signature=s3cret", asked.path()))
        }
        Some(BASIC) => all.answer(asked),
        Some(_) | None => Answer::status(401).header("WWW-Authenticate", "Basic realm=r"),
    })
    .await;
    pull(&registry, FakeRegistry::access(&[&registry, &elsewhere], USER), "basic", &digest).await.unwrap();
    assert_eq!(elsewhere.asked().len(), 1);
    assert_eq!(elsewhere.asked()[0].authorization, None);

    for (location, expected) in [
        ("http://localhost:1/x?s3cret", "without TLS"),
        ("/same", "once too often"),
        ("https://u:s3cret@localhost:1/x", "with a user in it"),
    ] {
        let registry = FakeRegistry::start(move |_| Answer::status(302).header("Location", location)).await;
        let error = pull(&registry, FakeRegistry::access(&[&registry], USER), "basic", &digest).await.unwrap_err();
        assert!(error.contains(expected) && !error.contains("s3cret"), "{error}");
    }
}

#[tokio::test]
async fn whoever_is_redirected_to_cannot_ask_for_the_password() {
    let (all, digest) = content();
    let thief = FakeRegistry::start(|_| Answer::body(br#"{"token":"t"}"#.to_vec())).await;
    let realm = format!("https://{}/token", thief.host);
    for challenge in [format!(r#"Bearer realm="{realm}""#), "Basic realm=r".to_owned()] {
        for status in [401, 403] {
            let challenge = challenge.clone();
            let store = FakeRegistry::start(move |_| {
                Answer::refusal(status, "DENIED", "token has expired").header("WWW-Authenticate", challenge.clone())
            })
            .await;
            let (all, target) = (all.clone(), format!("https://{}/blob", store.host));
            let registry = FakeRegistry::start(move |asked| match asked.path().contains("/blobs/") {
                true => Answer::status(307).header("Location", target.clone()),
                false => all.answer(asked),
            })
            .await;
            let access = FakeRegistry::access(&[&registry, &store, &thief], USER);
            let error = pull(&registry, access, "basic", &digest).await.unwrap_err();
            assert!(error.contains("redirects to a place that wants a login of its own"), "{error}");
            assert_eq!(thief.asked(), vec![]);
            assert!(store.asked().iter().all(|asked| asked.authorization.is_none()), "{:?}", store.asked());
        }
    }
}

#[tokio::test]
async fn images_of_the_own_registry_are_looked_for() {
    let mut content = Content::default();
    let there = content.manifest("app", "application/vnd.oci.image.config.v1+json", vec![]);
    let registry = FakeRegistry::start(move |asked| content.answer(asked)).await;
    let absent = OciDigest::of(b"absent");
    let mut described = component("c", &there, json!({}));
    let missing = format!("{}/charts/app@{absent}", registry.host);
    let foreign = format!("other.example/app@{there}");
    described["images"] = json!([format!("{}/charts/app:v1@{there}", registry.host), missing, foreign, missing]);
    let manifest = manifest(&registry.host, "anonymous", vec![described]);
    let renderer = Renderer::over(Arc::new(Nothing), FakeRegistry::access(&[&registry], None));
    let report = renderer.check_images(&manifest).await.unwrap();
    assert_eq!((report.checked, report.missing, report.denied.len(), report.unchecked), (2, vec![missing], 0, vec![foreign]));
    assert!(registry.asked().iter().all(|asked| asked.line.starts_with("HEAD ")));
    let error = renderer.require_images(&manifest).await.unwrap_err().to_string();
    assert!(error.ends_with(&format!("\n  - missing: {}/charts/app@{absent}", registry.host)), "{error}");

    let broken = FakeRegistry::start(|_| Answer::status(500)).await;
    let renderer = Renderer::over(Arc::new(Nothing), FakeRegistry::access(&[&broken], None));
    let mut described = component("c", &there, json!({}));
    described["images"] = json!([format!("{}/app@{there}", broken.host)]);
    let error = renderer.check_images(&crate::support::manifest(&broken.host, "anonymous", vec![described])).await.unwrap_err();
    assert!(matches!(error, RenderError::Image { .. }), "{error}");
}

/// What is missing and what is denied, in whatever order they come, stands in one message.
#[tokio::test]
async fn every_image_that_cannot_be_pulled_is_listed() {
    let mut content = Content::default();
    let there = content.manifest("app", "application/vnd.oci.image.config.v1+json", vec![]);
    let registry = FakeRegistry::start(move |asked| match asked.path() {
        path if path.contains("/secret/") => Answer::refusal(403, "DENIED", "not yours"),
        path if path.contains("/private/") => Answer::status(401).header("WWW-Authenticate", "Basic realm=\"r\""),
        _ => content.answer(asked),
    })
    .await;
    let mut described = component("c", &there, json!({}));
    let image = |repository: &str, digest: &OciDigest| format!("{}/{repository}@{digest}", registry.host);
    let absent = OciDigest::of(b"absent");
    let names = ["charts/private/b", "charts/secret/a", "charts/app", "charts/secret/c"];
    let mut images: Vec<String> = names.iter().map(|name| image(name, &there)).collect();
    images.extend(["charts/app", "charts/zzz"].map(|name| image(name, &absent)));
    described["images"] = json!(images);
    let manifest = manifest(&registry.host, "basic", vec![described]);
    let renderer = Renderer::over(Arc::new(Nothing), FakeRegistry::access(&[&registry], USER));
    let report = renderer.check_images(&manifest).await.unwrap();
    assert_eq!((report.checked, report.missing.as_slice()), (6, &images[4..]));
    assert_eq!(report.denied.iter().map(|denied| &denied.image).collect::<Vec<_>>(), [&images[0], &images[1], &images[3]]);
    let text = renderer.require_images(&manifest).await.unwrap_err().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    assert_eq!(lines[0], "images of the bundle cannot be pulled from its registry:");
    assert_eq!(lines[1], format!("  - missing: {}", images[4]));
    assert!(lines[3].starts_with(&format!("  - denied: {}: the registry does not accept the credentials (401)", images[0])), "{text}");
    assert!(lines[4].starts_with(&format!("  - denied: {}", images[1])) && lines[4].ends_with("not yours"), "{text}");
}
