//! The registry: credentials readable, and, where a bundle is pending, a login at its registry that is let in.

use agent_api::manifest::Bundle;
use agent_api::pending::{MAX_BYTES, PendingBundle};
use render::RegistryAccess;
use render::registry_check::check_login;

use super::finding::Findings;
use crate::config::Config;
use crate::error_code::Coded as _;
use crate::terminal::chain;

pub(super) async fn check(config: &Config, findings: &mut Findings) {
    let registry = &config.registry;
    let loaded = RegistryAccess::load(registry.credentials_file.as_deref(), registry.ca_file.as_deref());
    let access = match loaded {
        Ok(access) => access,
        Err(error) => {
            return findings.fail(chain(&error), "mend registry.credentials_file and registry.ca_file, readable for the executor's user");
        }
    };
    match &registry.credentials_file {
        Some(path) => findings.pass(format!("credentials of {} are readable", path.display())),
        None => findings.pass("no credentials are configured: registries that need none, and ECR, can be used"),
    }
    match pending(config) {
        Ok(Some(bundle)) => login(&access, &bundle, findings).await,
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

async fn login(access: &RegistryAccess, bundle: &Bundle, findings: &mut Findings) {
    let base = &bundle.manifest().registry.chart_base;
    match check_login(bundle.manifest(), access).await {
        Ok(who) => findings.pass(format!("{base} lets in {}", who.name.as_deref().unwrap_or("everybody"))),
        Err(error) => {
            let hint = error.hints().into_iter().next();
            let fix = hint.unwrap_or_else(|| "let this machine reach the registry; a private CA belongs into registry.ca_file".into());
            findings.fail(chain(&error), fix);
        }
    }
}
