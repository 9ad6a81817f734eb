//! Addresses and manifests; what goes over the wire is tested with a registry.

use super::*;

#[test]
fn bases_and_hosts() {
    for (base, expected) in [
        ("oci://R.example/platform", ("r.example", "platform")),
        ("oci://r.example:5000/a/b", ("r.example:5000", "a/b")),
        ("oci://r.example", ("r.example", "")),
    ] {
        let (host, path) = split_base(base);
        assert_eq!((host.as_str(), path.as_str()), expected);
    }
}

#[test]
fn only_a_helm_chart_has_a_layer() {
    let digest = OciDigest::of(b"");
    let layer = |kind: &str| format!(r#"{{"mediaType":"{kind}","digest":"{digest}","size":1}}"#);
    let manifest = |kind: &str, config: &str, layers: &[&str]| {
        let layers: Vec<String> = layers.iter().map(|kind| layer(kind)).collect();
        format!(r#"{{"mediaType":"{kind}","config":{},"layers":[{}]}}"#, layer(config), layers.join(","))
    };
    let chart = HELM_CHART[0];
    let provenance = "application/vnd.cncf.helm.chart.provenance.v1.prov";
    for (text, expected) in [
        (manifest(IMAGE_MANIFEST, HELM_CONFIG, &[chart]), None),
        (manifest(IMAGE_MANIFEST, HELM_CONFIG, &[provenance, chart]), None),
        (manifest(IMAGE_MANIFEST, HELM_CONFIG, &[HELM_CHART[1]]), None),
        (manifest("application/vnd.oci.image.index.v1+json", HELM_CONFIG, &[chart]), Some("image.index")),
        (manifest(IMAGE_MANIFEST, "application/vnd.oci.image.config.v1+json", &[chart]), Some("image.config")),
        (manifest(IMAGE_MANIFEST, HELM_CONFIG, &[provenance]), Some("no chart layer")),
        (manifest(IMAGE_MANIFEST, HELM_CONFIG, &[chart, chart]), Some("more than one")),
        ("{".to_owned(), Some("not an OCI manifest")),
    ] {
        let result = layer_of(text.as_bytes(), None, "r/c@d").map(|_| ()).map_err(|error| error.to_string());
        match (result, expected) {
            (Ok(()), None) => {}
            (Err(problem), Some(expected)) => assert!(problem.contains(expected), "{problem}"),
            (result, expected) => panic!("{text}: {result:?}, expected {expected:?}"),
        }
    }
}
