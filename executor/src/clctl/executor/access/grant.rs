//! `clctl executor access grant --cluster`: renders the access bundle for review.

use std::process::ExitCode;

use clap::Args;
use cluster::connect::{self, ConnectError};

use super::Shared;
use super::bundle::{self, BundleError};
use crate::clctl::server::{Server, ServerError};
use crate::error_code::{Code, Coded};
use crate::terminal::{data, report, talk};

/// Arguments.
#[derive(Args)]
pub(crate) struct Grant {
    #[command(flatten)]
    shared: Shared,
}

#[derive(Debug, thiserror::Error)]
enum GrantError {
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error(transparent)]
    Server(#[from] ServerSourceError),
}

impl Coded for GrantError {
    fn code(&self) -> Code {
        match self {
            Self::Bundle(error) => error.code(),
            Self::Server(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Bundle(error) => error.hints(),
            Self::Server(error) => error.hints(),
        }
    }
}

impl Grant {
    pub(crate) async fn run(self) -> ExitCode {
        match self.grant().await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report(&error),
        }
    }

    async fn grant(&self) -> Result<(), GrantError> {
        let shared = &self.shared;
        let rendered = bundle::render(shared)?;
        let server = server(shared).await?;
        if shared.dry_run {
            data(rendered.rbac.trim_end());
            return Ok(());
        }
        if !shared.force {
            if rendered.on_disk.as_ref().is_some_and(|on_disk| *on_disk != rendered.rbac) {
                return Err(BundleError::Differs(agent_api::access::RBAC).into());
            }
            if rendered.server.as_ref().is_some_and(|on_disk| *on_disk != server) {
                return Err(BundleError::Differs("kubeconfig").into());
            }
        }
        if let Some(warning) = bundle::write(shared, &rendered.rbac, &server, rendered.token.as_deref())? {
            talk(format_args!("warning: {warning}"));
        }
        let folder = shared.output_dir.join(agent_api::names::CLUSTER_DIR);
        data(format_args!("Rendered {}; nothing was applied.", folder.display()));
        talk(format_args!("Look at {}, then run: clicklink clctl executor access apply --cluster", folder.join("rbac.yaml").display()));
        Ok(())
    }
}

/// What the flags say, else the context's; with both flags no kubeconfig is needed.
pub(super) async fn server(shared: &Shared) -> Result<Server, ServerSourceError> {
    let (address, ca_data) = (shared.server.as_deref(), shared.ca_data.as_deref());
    let found = match (address, ca_data) {
        (Some(_), Some(_)) => Server { address: String::new(), ca_pem: Vec::new() },
        _ => Server::of_context(&connect::person(shared.kubeconfig.as_deref(), shared.context.as_deref()).await?),
    };
    Ok(found.overridden(address, ca_data)?)
}

/// Why no address is known.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerSourceError {
    /// The kubeconfig.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Address or CA.
    #[error(transparent)]
    Server(#[from] ServerError),
}

impl Coded for ServerSourceError {
    fn code(&self) -> Code {
        match self {
            Self::Connect(error) => error.code(),
            Self::Server(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Connect(error) => error.hints(),
            Self::Server(error) => error.hints(),
        }
    }
}
