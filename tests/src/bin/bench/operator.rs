//! The operator with many components of five objects each: from empty to converged, one value changed in all, at rest, and how soon it begins. Beside
//! it, on the same API server, `helm upgrade --install` of the same chart, one release after another.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use system_tests::operated::{MANAGED, Operator, charts, install};
use system_tests::{ControlPlane, TempFolder};

use crate::footprint;
use crate::helm;
use crate::percentile::Times;
use crate::table::{Table, figure};

/// Components converged in a second, at least.
const RATE: f64 = 10.0;
/// Times helm's loop, at least.
const BESIDE_HELM: f64 = 10.0;
/// Memory at rest, MiB.
const MEMORY: f64 = 60.0;
/// Processor at rest, thousandths of a core.
const PROCESSOR: f64 = 10.0;
/// Requests of this program side by side.
const SIDE_BY_SIDE: usize = 8;
/// Releases of helm's loop: each takes as long as the one before.
const RELEASES: usize = 20;
/// Single changes of which the reaction is measured.
const CHANGES: usize = 100;
/// Longest wait for all of them.
const LIMIT: Duration = Duration::from_secs(900);
/// As the audit log names the operator.
const OPERATOR: &str = "system:serviceaccount:navin-system:navin-operator";
/// Starting is not resting.
const SETTLE: Duration = Duration::from_secs(10);

/// Measures with so many components; at rest over so long.
pub(crate) async fn measure(table: &mut Table, components: usize, window: Duration) -> Result<()> {
    let cp = ControlPlane::start().await?;
    install(&cp).await?;
    let client = cp.client().await?;
    let api = api(&client);
    let names: Vec<String> = (0..components).map(|n| format!("c{n:05}")).collect();
    let create = |name: &String| {
        let spec = json!({"service": "web", "source": {"local": "web"}, "replicas": 1});
        let object =
            json!({"apiVersion": "platform.navin.ai/v1alpha1", "kind": "ManagedComponent", "metadata": {"name": name}, "spec": spec});
        let api = api.clone();
        async move { api.create(&PostParams::default(), &serde_json::from_value(object)?).await.map(drop).context("creating a component") }
    };
    stream::iter(names.iter().map(create)).buffer_unordered(SIDE_BY_SIDE).try_collect::<()>().await?;

    let began = Instant::now();
    let operator = Operator::start(&cp, "operator", &[MANAGED], &charts(), &["--log-level", "warn"]).await?;
    let installed = until_converged(&api, components, began).await?;
    requests(table, &cp, components)?;
    let began = Instant::now();
    stream::iter(names.iter().map(|name| change(&api, name, "changed"))).buffer_unordered(SIDE_BY_SIDE).try_collect::<()>().await?;
    let changed = until_converged(&api, components, began).await?;
    let (helm_installs, helm_upgrades) = helm_loop(&cp).await?;
    for (what, took, helm) in [("from empty to converged", installed, helm_installs), ("one value changed in all", changed, helm_upgrades)]
    {
        let rate = components as f64 / took.as_secs_f64();
        let beside = format!("{} s in all; helm's loop {} releases/s", figure(took.as_secs_f64()), figure(helm));
        table.at_least(&format!("operator, {components} components of 5 objects, {what}"), rate, RATE, "/s", &beside);
        table.at_least(&format!("… {what}, times helm's loop"), rate / helm, BESIDE_HELM, "times", "");
    }
    reaction(table, &cp, &api, &names).await?;
    tokio::time::sleep(SETTLE).await;
    at_rest(table, &cp, &operator, components, window).await
}

fn api(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("platform.navin.ai", "v1alpha1", "ManagedComponent");
    Api::namespaced_with(client.clone(), MANAGED, &ApiResource::from_gvk(&kind))
}

async fn change(api: &Api<DynamicObject>, name: &str, greeting: &str) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": {"values": {"greeting": greeting}}}));
    api.patch(name, &PatchParams::default(), &patch).await.map(drop).context("changing a component")
}

async fn until_converged(api: &Api<DynamicObject>, components: usize, began: Instant) -> Result<Duration> {
    loop {
        let all = api.list(&ListParams::default()).await?;
        let converged = all.items.iter().filter(|object| {
            let status = &object.data["status"];
            status["converged"] == true && status["observedGeneration"].as_i64() == object.metadata.generation
        });
        let converged = converged.count();
        if converged == components {
            return Ok(began.elapsed());
        }
        ensure!(began.elapsed() < LIMIT, "only {converged} of {components} converged within {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Releases a second: installed, then changed by one value.
async fn helm_loop(cp: &ControlPlane) -> Result<(f64, f64)> {
    let home = TempFolder::new("bench-helm")?;
    let namespace = cp.namespace("helm").await?;
    let chart = charts().join("web").display().to_string();
    let kubeconfig = cp.admin_kubeconfig().display().to_string();
    let mut rates = [0.0; 2];
    for (rate, greeting) in rates.iter_mut().zip(["hello", "changed"]) {
        let mut took = Duration::ZERO;
        for n in 0..RELEASES {
            let (name, set) = (format!("r{n}"), format!("greeting={greeting},replicas=1"));
            let args = ["upgrade", "--install", &name, &chart, "--namespace", &namespace, "--kubeconfig", &kubeconfig, "--set", &set];
            took += helm::timed(&home, args).await?;
        }
        *rate = RELEASES as f64 / took.as_secs_f64();
    }
    Ok((rates[0], rates[1]))
}

/// From sending a change to the API server's receipt of the first write for it, by its audit log: one change after another.
async fn reaction(table: &mut Table, cp: &ControlPlane, api: &Api<DynamicObject>, names: &[String]) -> Result<()> {
    let mut sent: BTreeMap<&str, Timestamp> = BTreeMap::new();
    let chosen: Vec<&String> = names.iter().take(CHANGES).collect();
    for (n, name) in chosen.iter().enumerate() {
        sent.insert(name, Timestamp::now());
        change(api, name, &format!("change {n}")).await?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(SETTLE).await;
    let mut times = Times::default();
    let mut first: BTreeMap<String, Timestamp> = BTreeMap::new();
    for event in cp.audit()?.iter().filter(|event| is_write(event) && !is_dry_run(event)) {
        let name = event["objectRef"]["name"].as_str().unwrap_or_default();
        let Some(since) = sent.get(name) else { continue };
        let at: Timestamp = event["requestReceivedTimestamp"].as_str().unwrap_or_default().parse().context("an event's time")?;
        if at > *since {
            let known = first.entry(name.to_owned()).or_insert(at);
            *known = at.min(*known);
        }
    }
    for (name, at) in &first {
        times.push(Duration::try_from(at.duration_since(sent[name.as_str()])).context("a reaction")?);
    }
    ensure!(times.len() == chosen.len(), "only {} of {} changes were written for", times.len(), chosen.len());
    for of_hundred in [50, 99] {
        table.figure(
            &format!("operator, spec change → first write, p{of_hundred}"),
            times.percentile(of_hundred),
            "ms",
            "by the audit log",
        );
    }
    Ok(())
}

/// What the operator asked of the API server until all had converged, by its audit log.
fn requests(table: &mut Table, cp: &ControlPlane, components: usize) -> Result<()> {
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for event in cp.audit()?.iter().filter(|event| event["user"]["username"] == OPERATOR && is_write(event)) {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let tried = if is_dry_run(event) { "dry run" } else { text("/verb") };
        let of = match (text("/objectRef/resource"), text("/objectRef/subresource")) {
            ("managedcomponents", "") => "component",
            ("managedcomponents", part) => part,
            (_, _) => "object",
        };
        *asked.entry(format!("{tried} {of}")).or_default() += 1;
    }
    let each = |count: usize| count as f64 / components as f64;
    let told: Vec<String> = asked.iter().map(|(what, count)| format!("{} {what}", figure(each(*count)))).collect();
    table.figure("… from empty to converged, writes and dry runs for each", each(asked.values().sum()), "", &told.join(", "));
    Ok(())
}

fn is_write(event: &Value) -> bool {
    let verb = event["verb"].as_str().unwrap_or_default();
    ["create", "update", "patch", "delete"].contains(&verb) && event["objectRef"]["resource"] != "leases"
}

fn is_dry_run(event: &Value) -> bool {
    event["requestURI"].as_str().is_some_and(|uri| uri.contains("dryRun=All"))
}

async fn at_rest(table: &mut Table, cp: &ControlPlane, operator: &Operator, components: usize, window: Duration) -> Result<()> {
    let since = Timestamp::now();
    let [seen] = footprint::of([operator.process.pid()], window).await?;
    let mut requests: BTreeMap<String, usize> = BTreeMap::new();
    for event in cp.audit()? {
        let at: Timestamp = event["requestReceivedTimestamp"].as_str().unwrap_or_default().parse().context("an event's time")?;
        let (verb, resource) = (event["verb"].as_str().unwrap_or_default(), event["objectRef"]["resource"].as_str().unwrap_or_default());
        if at >= since && resource != "leases" {
            *requests.entry(format!("{verb} {resource}")).or_default() += 1;
        }
    }
    let others: usize = requests.iter().filter(|(what, _)| !what.starts_with("watch ")).map(|(_, count)| count).sum();
    let told: Vec<String> = requests.iter().map(|(what, count)| format!("{count} {what}")).collect();
    let beside = format!("highest {} MiB, RssAnon {} MiB", figure(seen.rss_max), figure(seen.anonymous));
    table.at_most(&format!("operator, {components} components, idle: RSS"), seen.rss, MEMORY, "MiB", &beside);
    table.at_most(&format!("operator, {components} components, idle: CPU"), seen.millicores, PROCESSOR, "mCPU", "");
    let what = format!("operator, {components} components, idle {} s: requests but watches and the Lease", window.as_secs());
    table.at_most(&what, others as f64, 0.0, "", &told.join(", "));
    Ok(())
}
