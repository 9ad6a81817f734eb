//! The testbed's charts on the testbed's control plane, by helm and kubectl alone: what the product is given can be applied.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams};
use system_tests::bundle::{self, Edition, NAMESPACE, Release};
use system_tests::{ControlPlane, Registry, eventually};

const PATIENCE: Duration = Duration::from_secs(60);

async fn apply(cp: &ControlPlane, registry: &Registry, release: &Release, hooks: bool) {
    for component in &release.components {
        let values = registry.folder().write("values.json", component.values.to_string()).unwrap();
        let pinned = component.chart.pinned();
        let mut args = vec!["template", &component.name, &pinned, "--include-crds", "--kube-version", "1.37"];
        args.extend(["--namespace", NAMESPACE, "--values", values.to_str().unwrap()]);
        if !hooks {
            args.push("--no-hooks");
        }
        let rendered = registry.helm_on_registry(args).await.unwrap().ok().unwrap().stdout;
        let file = cp.folder().write(format!("{}.yaml", component.name), rendered).unwrap();
        let applied = cp.kubectl(&["apply", "--server-side", "-n", NAMESPACE, "-f", file.to_str().unwrap()]).await;
        applied.unwrap().ok().unwrap();
    }
    for object in &release.objects {
        cp.apply(&object.to_string()).await.unwrap();
    }
}

async fn until_rolled_out(deployments: &Api<Deployment>) {
    eventually("all Deployments rolled out", PATIENCE, || async {
        let list = deployments.list(&ListParams::default()).await?;
        anyhow::ensure!(list.items.len() == 4, "{} Deployments", list.items.len());
        for deployment in list {
            let status = deployment.status.unwrap_or_default();
            let done = status.observed_generation == deployment.metadata.generation
                && status.updated_replicas == Some(1)
                && status.available_replicas == Some(1)
                && status.replicas == Some(1);
            anyhow::ensure!(done, "{:?}: {status:?}", deployment.metadata.name);
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn both_editions_apply_one_after_the_other() {
    let (cp, registry) = tokio::join!(ControlPlane::own(), Registry::start());
    let client = cp.client().await.unwrap();
    let deployments = Api::<Deployment>::namespaced(client.clone(), NAMESPACE);
    cp.kubectl(&["create", "namespace", NAMESPACE]).await.unwrap().ok().unwrap();

    let first = bundle::push(&registry, Edition::First).await.unwrap();
    apply(&cp, &registry, &first, true).await;
    until_rolled_out(&deployments).await;
    let jobs = Api::<Job>::namespaced(client.clone(), NAMESPACE);
    eventually("the hook's completion", PATIENCE, || async {
        let job = jobs.get("monitoring-collectors-migration").await?.status.unwrap_or_default();
        anyhow::ensure!(job.succeeded == Some(1), "{job:?}");
        Ok(())
    })
    .await;
    let before: Vec<_> = deployments.list(&ListParams::default()).await.unwrap().into_iter().map(|d| d.metadata.generation).collect();

    let second = bundle::push(&registry, Edition::Second).await.unwrap();
    apply(&cp, &registry, &second, false).await;
    until_rolled_out(&deployments).await;
    let after: Vec<_> = deployments.list(&ListParams::default()).await.unwrap().into_iter().map(|d| d.metadata.generation).collect();
    assert!(before.iter().zip(&after).all(|(before, after)| before < after), "{before:?} {after:?}");

    let definitions = Api::<CustomResourceDefinition>::all(client).list(&ListParams::default()).await.unwrap();
    let mut groups: Vec<_> = definitions.into_iter().map(|crd| crd.spec.group).collect();
    groups.dedup();
    assert_eq!(groups, ["clickhouse.com", "snapshot.storage.k8s.io"]);
    cp.kubectl(&["get", "storageclass", "gp3-encrypted"]).await.unwrap().ok().unwrap();
}
