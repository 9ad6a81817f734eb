//! The images that a bundle names, told apart by where they lie.

use agent_api::digest::OciDigest;
use agent_api::manifest::Manifest;

/// A bundle's images, each once, sorted.
pub(crate) struct Images {
    /// In the bundle's own registry.
    pub(crate) own: Vec<Image>,
    /// In another one, or without a registry's name: nobody asks for them.
    pub(crate) foreign: Vec<String>,
}

/// An image in the bundle's own registry.
pub(crate) struct Image {
    /// As the bundle names it.
    pub(crate) reference: String,
    /// Without host and tag.
    pub(crate) repository: String,
    pub(crate) digest: OciDigest,
}

impl Images {
    /// All images of a bundle whose registry is `host[:port]`.
    pub(crate) fn of(manifest: &Manifest, host: &str) -> Self {
        let mut references: Vec<&String> = manifest.components.iter().flat_map(|component| &component.images).collect();
        references.sort();
        references.dedup();
        let mut images = Self { own: Vec::new(), foreign: Vec::new() };
        for reference in references {
            match split_image(reference) {
                Some((own, repository, digest)) if own.eq_ignore_ascii_case(host) => {
                    images.own.push(Image { reference: reference.clone(), repository, digest });
                }
                Some(_) | None => images.foreign.push(reference.clone()),
            }
        }
        images
    }
}

/// Registry host, repository without a tag, digest; `None` for an image without a registry host.
fn split_image(image: &str) -> Option<(&str, String, OciDigest)> {
    let (name, digest) = image.split_once('@')?;
    let (host, path) = name.split_once('/')?;
    let last = path.rfind('/').map_or(0, |slash| slash + 1);
    let repository = path[last..].find(':').map_or(path, |colon| &path[..last + colon]);
    (host.contains(['.', ':']) || host == "localhost").then(|| Some((host, repository.to_owned(), digest.parse().ok()?)))?
}
