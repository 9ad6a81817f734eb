//! The images of pods: each pinned by digest, and each named by its component.
//!
//! `images` of a component may name more than its pods show (an operator starts some by itself), never less.

use agent_api::manifest::Manifest;
use agent_api::object::RenderedObject;
use serde_json::Value;

use super::refusal::Findings;

/// Lists of containers in a pod's spec.
const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// An image as it is compared: registry and repository in full, and the digest.
#[derive(PartialEq, Eq, Debug)]
struct Pinned {
    repository: String,
    digest: String,
}

/// Every image of the pods that a workload object makes.
pub(super) fn check(manifest: &Manifest, object: &RenderedObject, findings: &mut Findings<'_>) {
    let Some(pod) = object.object.pointer("/spec/template/spec") else { return };
    let component = manifest.components.iter().find(|component| Some(component.name.as_str()) == object.component.as_deref());
    let listed: Vec<Pinned> = component.map(|c| c.images.iter().filter_map(|image| parse(image)).collect()).unwrap_or_default();
    for (place, image) in images(pod) {
        match image {
            None => findings.object(object, format!("{place} has no image"), None),
            Some(image) => match parse(image) {
                None => findings.object(
                    object,
                    format!("{place}: image `{image}` has no digest"),
                    Some("set the chart's image digest (often `image.digest: sha256:…`)"),
                ),
                Some(pinned) if listed.contains(&pinned) => {}
                Some(_) => findings.object(
                    object,
                    format!("{place}: image `{image}` is not one of the component's `images`"),
                    Some("name it there with this repository and digest, or set the chart's image values to what is named"),
                ),
            },
        }
    }
}

/// Whether two references name the same image: repository and digest; a tag beside the digest says nothing.
#[must_use]
pub fn same_image(one: &str, other: &str) -> bool {
    parse(one).is_some_and(|one| parse(other).is_some_and(|other| one == other))
}

/// Place and reference of each image in a pod's spec; `None` where a container names none.
fn images(pod: &Value) -> Vec<(String, Option<&str>)> {
    let mut found = Vec::new();
    for list in CONTAINER_LISTS {
        for (i, container) in pod.get(list).and_then(Value::as_array).into_iter().flatten().enumerate() {
            let name =
                container.get("name").and_then(Value::as_str).map_or_else(|| format!("{list}[{i}]"), |name| format!("{list} `{name}`"));
            found.push((name, container.get("image").and_then(Value::as_str).filter(|image| !image.is_empty())));
        }
    }
    for (i, volume) in pod.get("volumes").and_then(Value::as_array).into_iter().flatten().enumerate() {
        if let Some(image) = volume.get("image").filter(|image| !image.is_null()) {
            found.push((format!("volumes[{i}].image"), image.get("reference").and_then(Value::as_str)));
        }
    }
    found
}

/// `[registry/]repository[:tag]@sha256:…`; a name without a registry means Docker Hub, as container runtimes read it.
fn parse(image: &str) -> Option<Pinned> {
    let (name, digest) = image.split_once('@')?;
    digest.parse::<agent_api::digest::OciDigest>().ok()?;
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let name = name[last..].find(':').map_or(name, |colon| &name[..last + colon]);
    let (registry, path) = match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first.to_ascii_lowercase(), rest.to_owned()),
        Some(_) => ("docker.io".to_owned(), name.to_owned()),
        None => ("docker.io".to_owned(), format!("library/{name}")),
    };
    let registry = if registry == "index.docker.io" { "docker.io".to_owned() } else { registry };
    (!path.is_empty()).then(|| Pinned { repository: format!("{registry}/{path}"), digest: digest.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_compared_by_repository_and_digest() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let repository = |image: &str| parse(&format!("{image}@{digest}")).map(|pinned| pinned.repository);
        for (image, expected) in [
            ("registry.example/a/b", "registry.example/a/b"),
            ("registry.example/a/b:v1", "registry.example/a/b"),
            ("Registry.example:5000/b:v1", "registry.example:5000/b"),
            ("localhost/b", "localhost/b"),
            ("nginx", "docker.io/library/nginx"),
            ("nginx:1", "docker.io/library/nginx"),
            ("team/app", "docker.io/team/app"),
            ("index.docker.io/team/app", "docker.io/team/app"),
        ] {
            assert_eq!(repository(image).as_deref(), Some(expected), "{image}");
        }
        assert_eq!(parse("nginx:1"), None);
        assert_eq!(parse("nginx@sha256:12"), None);
    }
}
