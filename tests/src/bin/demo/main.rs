//! `make demo`: the main job on real parts, told step by step. Exit code 0 only if every step was seen.

mod story;

use std::process::ExitCode;

use system_tests::landscape::{Landscape, Narrator};

#[tokio::main]
async fn main() -> ExitCode {
    let narrator = Narrator::aloud();
    let told = async {
        let mut landscape = Landscape::start(&narrator).await?;
        story::tell(&mut landscape, &narrator).await?;
        Ok::<_, anyhow::Error>(landscape)
    };
    let landscape = match told.await {
        Ok(landscape) => landscape,
        Err(error) => {
            narrator.end(&format!("The demo FAILED: {error:#}"));
            return ExitCode::FAILURE;
        }
    };
    narrator.end("Every step was seen.");
    if std::env::var_os("KEEP").is_some_and(|keep| !keep.is_empty()) {
        keep(&landscape).await;
    }
    ExitCode::SUCCESS
}

/// Says how to talk to what runs, and waits for Ctrl-C.
async fn keep(landscape: &Landscape) {
    let narrator = Narrator::aloud();
    let binaries = system_tests::binaries();
    narrator.note("");
    narrator.note("Still running; Ctrl-C ends it. To talk to it:");
    let folder = binaries.clicklink.parent().unwrap_or(std::path::Path::new("."));
    narrator.note(&format!("  export PATH=\"{}:$PATH\"", folder.display()));
    narrator.note(&format!("  export KUBECONFIG={}", landscape.control_plane.admin_kubeconfig().display()));
    narrator.note(&format!("  export CLCTL_ENDPOINT={}", landscape.connector.endpoint()));
    narrator.note(&format!("  export CLCTL_EXECUTOR_OUTPUT_DIR={}", landscape.connector.access_dir().display()));
    narrator.note(&format!("  export NAVIN_MANAGER_ENDPOINT={}", landscape.manager.endpoint()));
    narrator.note(&format!("  export NAVIN_MANAGER_CA_FILE={}", landscape.manager.ca_file().display()));
    narrator.note(&format!("  export NAVIN_MANAGER_TOKEN_FILE={}/token", landscape.manager.folder().display()));
    narrator.note("  kubectl get deployments,jobs,configmaps -n clickhouse-platform");
    narrator.note("  clicklink clctl commands list");
    narrator.note(&format!("  clicklink clctl platform approve --dry-run {}", landscape.connector.registry_args().join(" ")));
    narrator.note(&format!("  navin-manager environment get {}", system_tests::landscape::ENVIRONMENT));
    let _ = tokio::signal::ctrl_c().await;
}
