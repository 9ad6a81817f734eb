//! The registry: credentials readable, and, where a bundle is pending, its registry reachable.

use std::time::Duration;

use agent_api::manifest::{Bundle, RegistryMode};
use agent_api::pending::{MAX_BYTES, PendingBundle};
use render::RegistryAccess;

use super::finding::Findings;
use crate::config::Config;
use crate::terminal::chain;

/// How long a connection may take to stand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn check(config: &Config, findings: &mut Findings) {
    let registry = &config.registry;
    match (RegistryAccess::load(registry.credentials_file.as_deref(), registry.ca_file.as_deref()), &registry.credentials_file) {
        (Ok(_), Some(path)) => findings.pass(format!("credentials of {} are readable", path.display())),
        (Ok(_), None) => findings.pass("no credentials are configured: registries that need none can be used"),
        (Err(error), _) => {
            return findings.fail(chain(&error), "mend registry.credentials_file and registry.ca_file, readable for the executor's user");
        }
    }
    match pending(config) {
        Ok(Some(bundle)) => reachable(config, &bundle, findings).await,
        Ok(None) => findings.skip("no bundle is pending: its registry is not known yet"),
        Err(problem) => findings.warn(problem, "the executor writes the file anew at its next start"),
    }
}

fn pending(config: &Config) -> Result<Option<Bundle>, String> {
    let path = config.pending_file();
    let told = |problem: String| format!("{}: {problem}", path.display());
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(told(error.to_string())),
        Ok(metadata) if metadata.len() > MAX_BYTES => return Err(told(format!("more than {MAX_BYTES} bytes"))),
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(&path).map_err(|error| told(error.to_string()))?;
    let document: PendingBundle = serde_json::from_str(&text).map_err(|error| told(error.to_string()))?;
    Bundle::parse(document.manifest).map(Some).map_err(|error| told(chain(&error)))
}

/// `/v2/` answers 200, or 401 where a log-in is wanted: either way the registry is there, and its certificate is trusted.
async fn reachable(config: &Config, bundle: &Bundle, findings: &mut Findings) {
    let registry = &bundle.manifest().registry;
    let host = registry.chart_base.trim_start_matches("oci://").split('/').next().unwrap_or_default();
    if matches!(registry.mode, RegistryMode::Direct | RegistryMode::Mirror) {
        return findings.skip(format!("{host}: the log-in at ECR is not checked"));
    }
    let mut builder = reqwest::Client::builder().https_only(true).redirect(reqwest::redirect::Policy::none());
    if let Some(ca) = config.registry.ca_file.as_ref().and_then(|path| std::fs::read(path).ok()) {
        builder = builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(&ca).unwrap_or_default());
    }
    let http = match builder.connect_timeout(CONNECT_TIMEOUT).build() {
        Ok(http) => http,
        Err(error) => return findings.fail(chain(&error), "mend registry.ca_file"),
    };
    match http.head(format!("https://{host}/v2/")).send().await.map(|answer| answer.status().as_u16()) {
        Ok(200 | 401) => findings.pass(format!("{host} answers")),
        Ok(status) => findings.warn(format!("{host} answers with status {status}"), "see that this is an OCI registry"),
        Err(error) => findings.fail(
            format!("{host}: {}", chain(&error.without_url())),
            "let this machine reach the registry; where a private CA signed its certificate it belongs into registry.ca_file",
        ),
    }
}
