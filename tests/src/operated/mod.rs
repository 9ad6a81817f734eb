//! A control plane on which an administrator has installed what `operator/config/` holds, with operators that run as their own ServiceAccount, and
//! with exactly the rights that are generated.

mod components;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::Api;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

pub use self::components::{Components, Seen, condition, seen};
use crate::binaries::binaries;
use crate::control_plane::{ControlPlane, Shared};
use crate::eventually::until;
use crate::folder::TempFolder;
use crate::port::free_port;
use crate::process::{Process, Program};

/// The namespace that the generated files give the operator to manage.
pub const MANAGED: &str = "navin-platform";
/// The operator's own namespace.
const HOME: &str = "navin-system";
/// Its ServiceAccount.
const OPERATOR: &str = "navin-operator";
/// How long anything may take on a loaded machine; far from the usual second or two.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A file of `operator/config/`, as it is committed.
#[must_use]
pub fn config(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../operator/config").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Where the charts of these tests lie.
#[must_use]
pub fn charts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("operator-charts")
}

/// An operator that was started.
pub struct Operator {
    /// The process.
    pub process: Process,
    /// `127.0.0.1:<port>` of health and metrics.
    pub listen: String,
    /// The id of its credential, as the audit log has it.
    pub credential: String,
}

/// The control plane that the tests of a process share, with one operator for [`MANAGED`].
pub struct Stage {
    /// The control plane.
    pub control_plane: Shared,
    /// The operator.
    pub operator: &'static Operator,
    /// Charts that the operator reads.
    pub charts: &'static TempFolder,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.operator.process.show_log();
        }
    }
}

impl Stage {
    /// The one of this process.
    ///
    /// # Panics
    /// A part of it cannot be started.
    pub async fn shared() -> Self {
        static OPERATOR: OnceCell<(Operator, TempFolder)> = OnceCell::const_new();
        let control_plane = ControlPlane::shared().await;
        let started = OPERATOR.get_or_try_init(|| async {
            install(&control_plane).await?;
            let charts = copy_of_charts()?;
            let operator = Operator::start(&control_plane, "operator", &[MANAGED], charts.path(), &[]).await?;
            operator.until_ready().await?;
            Ok::<_, anyhow::Error>((operator, charts))
        });
        match started.await {
            Ok((operator, charts)) => Self { control_plane, operator, charts },
            Err(error) => panic!("{error:#}"),
        }
    }

    /// Its components.
    ///
    /// # Panics
    /// There is no client.
    pub async fn components(&self) -> Components {
        let client = self.control_plane.client().await.unwrap_or_else(|error| panic!("{error:#}"));
        Components::of(client, MANAGED)
    }
}

/// A folder with the tests' charts that a test may change.
///
/// # Errors
/// It cannot be written.
pub fn copy_of_charts() -> Result<TempFolder> {
    let folder = TempFolder::new("charts")?;
    for chart in ["web", "store", "faulty"] {
        folder.folder(format!("{chart}/templates"))?;
        for file in ["Chart.yaml", "values.yaml", "templates/all.yaml"] {
            let name = format!("{chart}/{file}");
            folder.write(&name, std::fs::read(charts().join(&name)).with_context(|| name.clone())?)?;
        }
    }
    Ok(folder)
}

/// Installs definition, rights and accounts, as an administrator does.
///
/// # Errors
/// The API server refuses a file.
pub async fn install(control_plane: &ControlPlane) -> Result<()> {
    manage(control_plane, MANAGED).await?;
    for name in ["crd/platform.navin.ai_managedcomponents.yaml", "manager/manager.yaml", "rbac/role.yaml", "rbac/manager_access.yaml"] {
        let applied = control_plane.apply(&config(name)).await.with_context(|| name.to_owned())?;
        ensure!(applied.stderr.is_empty(), "{name}: {}", applied.stderr);
    }
    // Its Deployment would wait for an image that nobody runs here.
    control_plane.kubectl(&["delete", "deployment", "-n", HOME, OPERATOR]).await?.ok()?;
    bind(control_plane, MANAGED).await?;
    until("the definition", PATIENCE, || async {
        let definition = control_plane.kubectl(&["get", "crd", "managedcomponents.platform.navin.ai", "-o", "json"]).await?.ok()?;
        let definition: Value = serde_json::from_str(&definition.stdout)?;
        let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is = |kind: &str| conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == "True");
        ensure!(!is("NonStructuralSchema") && is("Established"), "{conditions:?}");
        Ok(())
    })
    .await
}

async fn manage(control_plane: &ControlPlane, namespace: &str) -> Result<()> {
    control_plane.kubectl(&["create", "namespace", namespace]).await?.ok()?;
    Ok(())
}

/// Binds the operator in a namespace, by the generated file with another namespace in it.
///
/// # Errors
/// The API server refuses it.
pub async fn bind(control_plane: &ControlPlane, namespace: &str) -> Result<()> {
    control_plane
        .apply(&config("rbac/role_binding.yaml").replace(&format!("namespace: {MANAGED}"), &format!("namespace: {namespace}")))
        .await?;
    Ok(())
}

impl Operator {
    /// Starts an operator with a token of its own.
    ///
    /// # Errors
    /// It cannot be started.
    pub async fn start(control_plane: &ControlPlane, name: &str, namespaces: &[&str], charts: &Path, more: &[&str]) -> Result<Self> {
        let (kubeconfig, credential) = token_kubeconfig(control_plane, name).await?;
        let listen = format!("127.0.0.1:{}", free_port());
        let program = Program::new(name, binaries().navin_operator)
            .only_given_env()
            .env("HOSTNAME", name)
            .args(["run", "--log-format", "text", "--namespaces", &namespaces.join(",")])
            .arg("--charts-dir")
            .arg(charts)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["--api-server", control_plane.url(), "--listen", &listen])
            .args(more);
        Ok(Self { process: program.start(control_plane.folder())?, listen, credential })
    }

    /// A page of its health port: status and text.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn page(&self, path: &str) -> Result<(u16, String)> {
        let answer = reqwest::Client::builder().no_proxy().build()?.get(format!("http://{}{path}", self.listen)).send().await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    }

    /// Waits until it leads, and has read everything.
    ///
    /// # Errors
    /// It does not.
    pub async fn until_ready(&self) -> Result<()> {
        until("the operator to lead", PATIENCE, || async {
            self.process.ensure_running()?;
            let (status, text) = self.page("/readyz").await?;
            let metrics = self.page("/metrics").await?.1;
            ensure!(status == 200 && metrics.contains("navin_operator_leader 1\n"), "{status} {text}");
            Ok(())
        })
        .await
    }
}

/// A kubeconfig with a token of the operator's account, and the credential's id.
async fn token_kubeconfig(control_plane: &ControlPlane, name: &str) -> Result<(PathBuf, String)> {
    let client = control_plane.client().await?;
    let account = Api::<ServiceAccount>::namespaced(client, HOME).get(OPERATOR).await.context("the operator's ServiceAccount")?;
    let uid = account.metadata.uid.context("it has no uid")?;
    let token = control_plane.sign_token(HOME, OPERATOR, &uid, SignedDuration::from_hours(2))?;
    Ok((control_plane.kubeconfig_with_token(&format!("{name}-{}", &token.id[..8]), &token.token)?, format!("JTI={}", token.id)))
}

/// A client of the administrator for what no [`Components`] does.
///
/// # Errors
/// There is none.
pub async fn administrator(control_plane: &ControlPlane) -> Result<Client> {
    control_plane.client().await
}

/// A spec of a component that comes from one of the tests' charts, with fields over it.
#[must_use]
pub fn spec(chart: &str, over: &Value) -> Value {
    let mut spec = json!({"service": chart, "source": {"local": chart}});
    for (field, value) in over.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    spec
}
