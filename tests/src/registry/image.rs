//! Images in the registry: as small as they can be, for nobody runs them.

use anyhow::{Context, Result, ensure};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use serde_json::json;

use super::{BASE, Registry};
use crate::encode::digest;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// A tar archive without entries.
const EMPTY_TAR: [u8; 1024] = [0; 1024];

impl Registry {
    /// Pushes an image for `platform/<name>` whose digest depends on name and tag, and gives
    /// `127.0.0.1:<port>/platform/<name>@sha256:…`.
    ///
    /// # Errors
    /// The registry refuses.
    pub async fn push_image(&self, name: &str, tag: &str) -> Result<String> {
        let http = self.http()?;
        let config = json!({
            "architecture": "amd64",
            "os": "linux",
            "config": { "Labels": { "org.opencontainers.image.title": name, "org.opencontainers.image.version": tag } },
            "rootfs": { "type": "layers", "diff_ids": [digest(EMPTY_TAR)] },
        });
        let config = config.to_string().into_bytes();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": { "mediaType": CONFIG, "digest": digest(&config), "size": config.len() },
            "layers": [{ "mediaType": LAYER, "digest": digest(EMPTY_TAR), "size": EMPTY_TAR.len() }],
        });
        let manifest = manifest.to_string().into_bytes();
        self.push_blob(&http, name, config).await?;
        self.push_blob(&http, name, EMPTY_TAR.to_vec()).await?;
        let pinned = digest(&manifest);
        let put = http.put(self.manifest_url(name, tag)).header(CONTENT_TYPE, MANIFEST).body(manifest);
        let answer = self.authorize(put).send().await.context("pushing a manifest")?;
        ensure!(answer.status().is_success(), "pushing the manifest of {name}: {}", answer.status());
        Ok(format!("{}/{BASE}/{name}@{pinned}", self.host()))
    }

    /// Whether the registry has `<host>/platform/<name>@sha256:…`, asked by HEAD.
    ///
    /// # Errors
    /// The reference is not this registry's, or it answers with anything but 200 and 404.
    pub async fn has_image(&self, reference: &str) -> Result<bool> {
        let prefix = format!("{}/{BASE}/", self.host());
        let rest = reference.strip_prefix(&prefix);
        let (name, digest) = rest.and_then(|rest| rest.split_once('@')).context("a reference of this registry")?;
        let head = self.http()?.head(self.manifest_url(name, digest)).header(ACCEPT, MANIFEST);
        let answer = self.authorize(head).send().await.context("asking for a manifest")?;
        match answer.status().as_u16() {
            200 => Ok(true),
            404 => Ok(false),
            other => anyhow::bail!("HEAD of {reference}: {other}"),
        }
    }

    /// What the registry answers for `platform/<name>` at a tag or digest, unchecked.
    ///
    /// # Errors
    /// It does not answer with 200.
    pub async fn get_manifest(&self, name: &str, reference: &str) -> Result<Vec<u8>> {
        let get = self.http()?.get(self.manifest_url(name, reference)).header(ACCEPT, MANIFEST);
        let answer = self.authorize(get).send().await.context("getting a manifest")?;
        ensure!(answer.status() == 200, "GET of the manifest {name} {reference}: {}", answer.status());
        Ok(answer.bytes().await.context("reading a manifest")?.to_vec())
    }

    async fn push_blob(&self, http: &reqwest::Client, name: &str, bytes: Vec<u8>) -> Result<()> {
        let start = http.post(format!("https://{}/v2/{BASE}/{name}/blobs/uploads/", self.host()));
        let started = self.authorize(start).send().await.context("beginning an upload")?;
        ensure!(started.status().is_success(), "beginning an upload to {name}: {}", started.status());
        let location = started.headers().get(LOCATION).context("the upload has no place")?.to_str()?;
        let mut place = started.url().join(location).context("the upload's place")?;
        place.query_pairs_mut().append_pair("digest", &digest(&bytes));
        let put = http.put(place).body(bytes);
        let answer = self.authorize(put).send().await.context("uploading a blob")?;
        ensure!(answer.status().is_success(), "uploading a blob to {name}: {}", answer.status());
        Ok(())
    }

    fn manifest_url(&self, name: &str, reference: &str) -> String {
        format!("https://{}/v2/{BASE}/{name}/manifests/{reference}", self.host())
    }
}
