//! Layers switched off one by one, and every row asked of those that are left: alone, each must deny what it is said to deny.

use agent_api::names::{APPROVED_POLICY, APPROVED_SECRETS_POLICY, PCM_EXECUTOR, PCM_PLATFORM, PREFIX_GUARD, SCOPE_GUARD};
use anyhow::{Result, ensure};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use system_tests::bundle::NAMESPACE;
use system_tests::eventually;
use system_tests::landscape::{Landscape, SOON, difference};

use crate::HOME;
use crate::ask::{Identity, apply, config_map, force, get};
use crate::attempts::Section;
use crate::honest::{balance, unbalance};
use crate::live::{Live, not_taken_again, remove_some};
use crate::row::{Denial, Request, When};

/// Requests at one time: each costs the API server some ten milliseconds of policies.
const SIDE_BY_SIDE: usize = 8;

/// Which layers are in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layers {
    /// All, as `approve` leaves them.
    All,
    /// A careless administrator made the account an administrator too.
    WithoutRbac,
    /// That, and the scope guard is not bound.
    GuardAside,
    /// That, and the policies that compare with the approval are not bound.
    PinsAside,
}

impl Layers {
    /// What of a row's denials is left: the first alone where everything is in force and RBAC is among them.
    pub(crate) fn left(self, denied: &[Denial]) -> Vec<Denial> {
        let keep = |denial: &Denial| match (self, denial) {
            (_, Denial::Server(_)) => true,
            (Self::All, _) => *denial == Denial::Rbac || !denied.contains(&Denial::Rbac),
            (_, Denial::Rbac) | (Self::GuardAside, Denial::Guard(_)) | (Self::PinsAside, Denial::Pin(_)) => false,
            (_, _) => true,
        };
        denied.iter().copied().filter(keep).collect()
    }

    fn unbound(self) -> &'static [&'static str] {
        match self {
            Self::All | Self::WithoutRbac => &[],
            Self::GuardAside => &[SCOPE_GUARD],
            Self::PinsAside => &[APPROVED_POLICY, APPROVED_SECRETS_POLICY],
        }
    }
}

/// Asks all rows in each state of the layers; tells what was not denied as it must be, and what was changed.
pub(crate) async fn every_layer(landscape: &Landscape, platform: &Identity, live: &Live, sections: &[Section]) -> Vec<String> {
    let mut wrong = Vec::new();
    for layers in [Layers::All, Layers::WithoutRbac, Layers::GuardAside, Layers::PinsAside] {
        if layers == Layers::WithoutRbac {
            widen(landscape, platform).await;
        }
        let bindings = unbind(landscape, platform, live, layers).await;
        wrong.extend(unchanged(landscape, ask_all(platform, live, sections, layers, When::Present)).await);
        unbalance(landscape).await;
        let gone = remove_some(landscape, live).await;
        wrong.extend(unchanged(landscape, ask_all(platform, live, sections, layers, When::Gone)).await);
        wrong.extend(not_taken_again(platform, &gone).await.into_iter().map(|said| format!("not made anew: {said}")));
        balance(landscape).await;
        bind_again(landscape, platform, live, layers, &bindings).await;
    }
    narrow(landscape, platform).await;
    wrong
}

/// The same for `pcm-executor`, which RBAC and its prefix guard bound.
pub(crate) async fn both_layers(landscape: &Landscape, executor: &Identity, live: &Live, sections: &[Section]) -> Vec<String> {
    let mut wrong = crate::executor::does_its_work(executor).await;
    wrong.extend(unchanged(landscape, ask_all(executor, live, sections, Layers::All, When::Present)).await);
    widen(landscape, executor).await;
    wrong.extend(unchanged(landscape, ask_all(executor, live, sections, Layers::WithoutRbac, When::Present)).await);
    wrong.extend(crate::executor::does_its_work(executor).await);
    narrow(landscape, executor).await;
    wrong
}

/// What was not denied, and beside it what the cluster lost or got meanwhile.
async fn unchanged(landscape: &Landscape, asked: impl Future<Output = Vec<String>>) -> Vec<String> {
    let before = landscape.content().await.unwrap();
    let mut wrong = asked.await;
    let after = landscape.content().await.unwrap();
    wrong.extend(difference(&before, &after).into_iter().map(|line| format!("changed: {line}")));
    wrong
}

async fn ask_all(who: &Identity, live: &Live, sections: &[Section], layers: Layers, when: When) -> Vec<String> {
    let mut asked = Vec::new();
    for row in sections.iter().flat_map(|section| &section.rows) {
        let left = layers.left(&row.denied);
        let requests = if left.is_empty() { Vec::new() } else { (row.requests)(live) };
        // Where everything is in force nothing is spared: a real write must be denied.
        let real = |request: Request| if layers == Layers::All { request } else { request.dry() };
        let requests = requests.into_iter().filter(|request| request.when == when).map(real);
        asked.extend(requests.map(|request| (&row.attempt, request, left.clone())));
    }
    let answers = stream::iter(asked).map(async |(attempt, request, left)| {
        let said = denied(who, &request, &left).await.err()?;
        Some(format!("{attempt} ({layers:?}, {when:?}): {said:#}"))
    });
    // Services that are made at one time would be refused for want of the same node port.
    let side_by_side = if when == When::Gone { 1 } else { SIDE_BY_SIDE };
    answers.buffered(side_by_side).filter_map(async |said| said).collect().await
}

/// Whether a request is denied by one of these.
pub(crate) async fn denied(who: &Identity, request: &Request, by: &[Denial]) -> Result<()> {
    let (status, message) = who.ask(request).await;
    let shown: String = message.chars().take(600).collect();
    let expected = by.iter().any(|denial| is(who, status, &message, *denial));
    ensure!(expected, "{} {}: {status} {shown}, where {by:?} was expected", request.method, request.path);
    Ok(())
}

fn is(who: &Identity, status: u16, message: &str, denial: Denial) -> bool {
    let policy = |name: &str| (400..500).contains(&status) && message.contains(&format!("ValidatingAdmissionPolicy '{name}' "));
    match denial {
        Denial::Rbac => {
            let user = format!("User \"system:serviceaccount:{HOME}:{}\" cannot", who.account);
            status == 403 && message.contains(&user) && !message.contains("ValidatingAdmissionPolicy")
        }
        Denial::Guard(rule) => policy(SCOPE_GUARD) && message.contains(rule),
        Denial::Pin(rule) => (policy(APPROVED_POLICY) || policy(APPROVED_SECRETS_POLICY)) && message.contains(rule),
        Denial::Prefix => policy(PREFIX_GUARD),
        Denial::Server(text) => (400..500).contains(&status) && !message.contains("ValidatingAdmissionPolicy") && message.contains(text),
    }
}

/// As a careless administrator would: the account becomes an administrator. Seen to be so before anything is asked.
async fn widen(landscape: &Landscape, who: &Identity) {
    let (name, account) = (format!("{}-widened", who.account), format!("{HOME}:{}", who.account));
    let create = ["create", "clusterrolebinding", &name, "--clusterrole=cluster-admin", "--serviceaccount", &account];
    landscape.control_plane.kubectl(&create).await.unwrap().ok().unwrap();
    eventually("the widened rights", SOON, || reads_secrets(who, 200)).await;
}

async fn narrow(landscape: &Landscape, who: &Identity) {
    let name = format!("{}-widened", who.account);
    landscape.control_plane.kubectl(&["delete", "clusterrolebinding", &name]).await.unwrap().ok().unwrap();
    eventually("the widened rights to end", SOON, || reads_secrets(who, 403)).await;
}

async fn reads_secrets(who: &Identity, expected: u16) -> Result<()> {
    assert!([PCM_PLATFORM, PCM_EXECUTOR].contains(&who.account));
    let (status, message) = who.ask(&get("/api/v1/secrets")).await;
    ensure!(status == expected, "{status} {message}");
    Ok(())
}

/// Removes bindings of policies, and waits until none of them denies any more; answers with them.
async fn unbind(landscape: &Landscape, platform: &Identity, live: &Live, layers: Layers) -> Vec<Value> {
    let mut bindings = Vec::new();
    for name in layers.unbound() {
        let binding = ["validatingadmissionpolicybinding", name];
        let got = landscape.control_plane.kubectl(&[&["get", "-o", "json"], &binding[..]].concat()).await.unwrap().ok().unwrap();
        let got: Value = serde_json::from_str(&got.stdout).unwrap();
        let metadata = json!({"name": name, "labels": got["metadata"]["labels"]});
        bindings.push(json!({"apiVersion": got["apiVersion"], "kind": got["kind"], "metadata": metadata, "spec": got["spec"]}));
        landscape.control_plane.kubectl(&[&["delete"], &binding[..]].concat()).await.unwrap().ok().unwrap();
        let probe = only_denied_by(name, live);
        eventually(&format!("{name} to be unbound"), SOON, || async {
            let (status, message) = platform.ask(&probe).await;
            ensure!(status == 200 || status == 201, "{status} {message}");
            Ok(())
        })
        .await;
    }
    bindings
}

async fn bind_again(landscape: &Landscape, platform: &Identity, live: &Live, layers: Layers, bindings: &[Value]) {
    for (name, binding) in layers.unbound().iter().zip(bindings) {
        landscape.control_plane.apply(&binding.to_string()).await.unwrap();
        let probe = only_denied_by(name, live);
        eventually(&format!("{name} to be in force"), SOON, || async {
            let (status, message) = platform.ask(&probe).await;
            ensure!(status == 422 && message.contains(name), "{status} {message}");
            Ok(())
        })
        .await;
    }
}

/// A dry-run write that one policy alone denies, for an account with all rights.
fn only_denied_by(policy: &str, live: &Live) -> Request {
    let request = match policy {
        SCOPE_GUARD => apply(config_map("default", "x")),
        APPROVED_POLICY => apply(config_map(NAMESPACE, "x")),
        _ => force(live.changed("Secret", "monitoring-collectors-endpoints", |secret| secret["data"]["x"] = json!("eA=="))),
    };
    request.dry()
}
