//! "Charts locaux …, ou charts OCI épinglés par empreinte @sha256:", with a real registry that wants a password and has an authority of its own.

use serde_json::json;
use system_tests::operated::{Components, Operator, PATIENCE, Stage, bind, charts, condition, spec};
use system_tests::{Registry, eventually};

use crate::STARTED;

#[tokio::test(flavor = "multi_thread")]
async fn charts_oci_epingles_par_empreinte() {
    let (stage, registry) = tokio::join!(Stage::shared(), Registry::start());
    let cp = &stage.control_plane;
    let namespace = cp.namespace("pinned").await.unwrap();
    let files = [registry.docker_config(), registry.ca_file()].map(|path| path.display().to_string());
    let flags = ["--registry-config", files[0].as_str(), "--registry-ca-file", files[1].as_str()];
    let operator = Operator::start(cp, "pinned", &[&namespace], &charts(), &flags).await.unwrap();
    // Where nobody bound it, it says so, and its log names the right that it lacks.
    eventually("the operator to say what it lacks", PATIENCE, || async {
        let (status, text) = operator.page("/readyz").await?;
        anyhow::ensure!((status, text.as_str()) == (503, r#"{"for":"lease","status":"waiting"}"#), "{status} {text}");
        let log = operator.process.log_tail(20);
        anyhow::ensure!(log.contains("cannot get resource \"leases\""), "{log}");
        Ok(())
    })
    .await;
    bind(cp, &namespace).await.unwrap();
    operator.until_ready().await.unwrap();
    let components = Components::of(cp.client().await.unwrap(), &namespace);
    let pushed = registry.push_chart(&charts().join("web"), None).await.unwrap();
    let oci = |reference: &str| json!({"source": {"oci": reference, "local": null}});
    components.create("web-oci", &spec("web", &json!({"source": {"oci": pushed.pinned()}}))).await;
    let component = components.until("web-oci", STARTED).await;
    assert_eq!(component["status"]["version"], "1.0.0");

    // A digest that the registry does not have.
    let nowhere = format!("{}@sha256:{}", pushed.reference, "0".repeat(64));
    components.change("web-oci", &oci(&nowhere)).await;
    let told = components.until_reason("web-oci", "ChartUnavailable").await;
    assert!(told.contains(&"0".repeat(64)), "{told}");
    components.until("web-oci", "started ok failed unknown false").await;

    // A registry that is away: what is new waits and goes on by itself, the rest is unharmed, a deletion needs none.
    let second = registry.push_chart(&charts().join("store"), None).await.unwrap();
    registry.stop().await.unwrap();
    components.create("store-oci", &spec("store", &json!({"source": {"oci": second.pinned()}}))).await;
    components.until_reason("store-oci", "ChartUnavailable").await;
    components.delete("web-oci").await;
    components.until_gone("web-oci").await;
    registry.restart().await.unwrap();
    let component = components.until("store-oci", STARTED).await;
    assert_eq!(condition(&component, "Converged")["reason"], "AsDesired");

    // Bytes that are not those of the digest.
    let third = registry.push_chart(&charts().join("faulty"), None).await.unwrap();
    registry.falsify(&registry.archive_digest(&third).unwrap(), b"something else").unwrap();
    components.create("faulty-oci", &spec("faulty", &json!({"source": {"oci": third.pinned()}}))).await;
    components.until_reason("faulty-oci", "ChartUnavailable").await;
    assert_eq!(components.owned("v1", "ConfigMap", "faulty-oci").await.unwrap(), [""; 0]);
    let log = operator.process.log_tail(100_000);
    assert!(!log.contains(Registry::PASSWORD), "{log}");
}
