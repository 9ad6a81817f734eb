//! Logins: the forms in which a registry asks for one, tokens that end, denials that stay.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::registry::{BASIC, USER, content, pull};
use crate::support::registry::{Answer, Asked, FakeRegistry};
use crate::support::{component, manifest};
use render::registry_check::{ItemKind, check_registry};

/// A token service whose tokens are `t0`, `t1`, …; each answer is made by `form`.
async fn tokens(form: fn(usize) -> String) -> (FakeRegistry, Arc<AtomicUsize>) {
    let given = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&given);
    let service = FakeRegistry::start(move |_| Answer::body(form(count.fetch_add(1, Ordering::SeqCst)).into_bytes())).await;
    (service, given)
}

fn asks(realm: &str) -> Answer {
    Answer::status(401).header("WWW-Authenticate", format!(r#"Bearer realm="{realm}",service="s""#))
}

#[tokio::test]
async fn every_legal_form_of_a_challenge_is_understood() {
    type Form = fn(&str) -> Vec<String>;
    let forms: [Form; 6] = [
        |realm| vec![format!(r#"Bearer realm="{realm}",service="s",scope="repository:charts/c:pull""#)],
        |realm| vec![format!(r#"bEaReR scope="repository:charts/c:pull" , SERVICE=s ,Realm="{realm}""#)],
        |realm| vec![format!(r#"Basic realm="a, b", Bearer service="x,y",realm="{realm}""#)],
        |realm| vec![r#"Basic realm="r""#.to_owned(), format!(r#"Bearer realm="{realm}""#)],
        |realm| vec![format!(r#"Bearer realm="{realm}""#), "Negotiate".to_owned()],
        |realm| vec![format!(r#"Bearer realm="{realm}?account=a\"b",error="invalid_token""#)],
    ];
    for form in forms {
        let (all, digest) = content();
        let (service, _) = tokens(|_| json!({"access_token": "t"}).to_string()).await;
        let headers = form(&format!("https://{}/token", service.host));
        let shown = headers.join("; ");
        let registry = FakeRegistry::start(move |asked| match asked.authorization.as_deref() {
            Some("Bearer t") => all.answer(asked),
            Some(_) | None => headers.iter().fold(Answer::status(401), |answer, header| answer.header("WWW-Authenticate", header.clone())),
        })
        .await;
        let result = pull(&registry, FakeRegistry::access(&[&registry, &service], USER), "basic", &digest).await;
        assert_eq!(result, Ok(()), "{shown}");
        let asked = service.asked();
        assert_eq!(asked.len(), 1, "{shown}");
        assert!(asked[0].path().contains("scope=repository%3Acharts%2Fc%3Apull"), "{shown}: {asked:?}");
        assert_eq!(asked[0].authorization.as_deref(), Some(BASIC), "{shown}");
    }
}

#[tokio::test]
async fn odd_token_services_are_refused() {
    let (_, digest) = content();
    let (service, _) = tokens(|_| json!({"token": ""}).to_string()).await;
    let open = format!("http://{}/token", service.host);
    let with_user = format!("https://u:p@{}/token", service.host);
    let empty = format!("https://{}/token", service.host);
    for (realm, asked) in [(open, 0), (with_user, 0), ("token".to_owned(), 0), (empty, 1)] {
        let shown = realm.clone();
        let registry = FakeRegistry::start(move |_| asks(&realm)).await;
        let error = pull(&registry, FakeRegistry::access(&[&registry, &service], USER), "basic", &digest).await.unwrap_err();
        assert!(error.contains("log-in that is not supported"), "{error}");
        assert_eq!(service.asked().len(), asked, "{shown}");
    }
    // A redirect of the token service would carry the password on.
    let elsewhere = FakeRegistry::start(|_| Answer::body(br#"{"token":"t"}"#.to_vec())).await;
    let target = format!("https://{}/", elsewhere.host);
    let service = FakeRegistry::start(move |_| Answer::status(307).header("Location", target.clone())).await;
    let realm = format!("https://{}/token", service.host);
    let registry = FakeRegistry::start(move |_| asks(&realm)).await;
    let error = pull(&registry, FakeRegistry::access(&[&registry, &service, &elsewhere], USER), "basic", &digest).await.unwrap_err();
    assert!(error.contains("307"), "{error}");
    assert_eq!(elsewhere.asked().len(), 0);
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends_and_once_when_it_is_refused() {
    // Its life is over at once by what its service states: every request brings its own.
    let (all, digest) = content();
    let (service, given) = tokens(|turn| json!({"token": format!("t{turn}"), "expires_in": 0}).to_string()).await;
    let realm = format!("https://{}/token", service.host);
    let registry = FakeRegistry::start(move |asked| match asked.authorization.as_deref() {
        Some(_) => all.answer(asked),
        None => asks(&realm),
    })
    .await;
    pull(&registry, FakeRegistry::access(&[&registry, &service], USER), "basic", &digest).await.unwrap();
    assert_eq!(given.load(Ordering::SeqCst), 2, "one token for the manifest, one for the layer");

    // It is taken for one request only, whatever was stated; the second kind is how ECR says it.
    let refused = "Your authorization token has expired. Reauthenticate and try again.";
    for refusal in [None, Some(Answer::refusal(403, "DENIED", refused))] {
        let (all, digest) = content();
        let (service, given) = tokens(|turn| json!({"token": format!("t{turn}"), "expires_in": 3600}).to_string()).await;
        let realm = format!("https://{}/token", service.host);
        let used = AtomicUsize::new(0);
        let registry = FakeRegistry::start(move |asked| {
            let fresh = asked.authorization.as_deref() == Some(&format!("Bearer t{}", used.load(Ordering::SeqCst)));
            match (fresh, &asked.authorization, &refusal) {
                (true, _, _) => {
                    used.fetch_add(1, Ordering::SeqCst);
                    all.answer(asked)
                }
                (false, Some(_), Some(refusal)) => refusal.clone(),
                (false, _, _) => asks(&realm),
            }
        })
        .await;
        pull(&registry, FakeRegistry::access(&[&registry, &service], USER), "basic", &digest).await.unwrap();
        assert_eq!(given.load(Ordering::SeqCst), 2);
    }

    // It is never taken: one token, one more, and an end.
    let (_, digest) = content();
    let (service, given) = tokens(|turn| json!({"token": format!("t{turn}"), "expires_in": 3600}).to_string()).await;
    let realm = format!("https://{}/token", service.host);
    let registry = FakeRegistry::start(move |_| asks(&realm)).await;
    let error = pull(&registry, FakeRegistry::access(&[&registry, &service], USER), "basic", &digest).await.unwrap_err();
    assert!(error.contains("does not accept the credentials (401)"), "{error}");
    assert_eq!((registry.asked().len(), given.load(Ordering::SeqCst)), (2, 1));
}

#[tokio::test]
async fn a_denial_and_a_wrong_password_are_not_asked_again() {
    let (_, digest) = content();
    let registry = FakeRegistry::start(|asked: &Asked| match asked.authorization {
        Some(_) => Answer::refusal(403, "DENIED", "user \u{202e}has no right"),
        None => Answer::status(401).header("WWW-Authenticate", "Basic realm=r"),
    })
    .await;
    let error = pull(&registry, FakeRegistry::access(&[&registry], USER), "basic", &digest).await.unwrap_err();
    assert!(error.ends_with(r"refuses the pull (403): user \u{202e}has no right"), "{error}");
    assert_eq!(registry.asked().len(), 2);

    // Whoever has no credentials is not told that theirs are refused.
    let registry = FakeRegistry::start(|_| Answer::refusal(403, "DENIED", "denied")).await;
    let error = pull(&registry, FakeRegistry::access(&[&registry], None), "basic", &digest).await.unwrap_err();
    assert!(error.contains("no credentials for"), "{error}");

    let registry = FakeRegistry::start(|_| Answer::status(401).header("WWW-Authenticate", "Basic realm=r")).await;
    pull(&registry, FakeRegistry::access(&[&registry], USER), "basic", &digest).await.unwrap_err();
    assert_eq!(registry.asked().iter().filter(|asked| asked.authorization.is_some()).count(), 1);
}

#[tokio::test]
async fn a_check_tells_what_is_there_missing_and_denied() {
    let (all, digest) = content();
    let registry = FakeRegistry::start(move |asked| match (asked.authorization.as_deref(), asked.path()) {
        (Some(BASIC), "/v2/") => Answer::body(b"{}".to_vec()),
        (Some(BASIC), path) if path.contains("/secret/") => Answer::refusal(403, "DENIED", "not yours"),
        (Some(BASIC), _) => all.answer(asked),
        (_, _) => Answer::status(401).header("WWW-Authenticate", "Basic realm=r"),
    })
    .await;
    let mut described = component("c", &digest, json!({}));
    let host = &registry.host;
    described["images"] =
        json!([format!("{host}/absent@{digest}"), format!("{host}/secret/i@{digest}"), format!("other.example/i@{digest}")]);
    let manifest = manifest(host, "basic", vec![described]);
    let report = check_registry(&manifest, &FakeRegistry::access(&[&registry], USER)).await.unwrap();
    assert_eq!((report.who.name.as_deref(), report.unchecked.len()), (Some("user"), 1));
    let found: Vec<_> = report.items.iter().map(|item| (item.kind, item.found.as_ref().map_err(ToString::to_string))).collect();
    assert_eq!(found[0], (ItemKind::Chart, Ok(&true)));
    assert_eq!(found[1], (ItemKind::Image, Ok(&false)));
    assert!(matches!(&found[2], (ItemKind::Image, Err(problem)) if problem.ends_with("(403): not yours")), "{found:?}");

    let error = check_registry(&manifest, &FakeRegistry::access(&[&registry], Some(("user", "wrong")))).await.unwrap_err();
    assert!(error.to_string().contains("(401)"), "{error}");
}
