//! A real control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok in the kubelet's
//! place, so that Deployments become ready and Jobs complete. RBAC, Node authorization and admission are the real ones.
//!
//! No container runs, no Service has an address that answers, and webhooks cannot be called.

mod kubeconfig;
mod people;
mod programs;
mod token;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::sync::OnceCell;

use k8s_openapi::api::core::v1::{Namespace, Node, ServiceAccount};

pub use self::kubeconfig::CONTEXT;
use self::programs::Layout;
use self::token::ServiceAccountKey;
pub use self::token::SignedToken;
use crate::eventually::until;
use crate::folder::TempFolder;
use crate::pki::Authority;
use crate::process::{Finished, Process, Program};
use crate::tools::Tools;

/// How long any of its parts may take to answer; on a loaded machine it is far from the usual second or two.
const PATIENCE: Duration = Duration::from_secs(90);

/// The nodes that kwok plays.
const NODES: [&str; 2] = ["node-a", "node-b"];

/// A running control plane. It ends when this value is dropped, or with the test process.
#[derive(Debug)]
pub struct ControlPlane {
    authority: Authority,
    account_key: ServiceAccountKey,
    layout: Layout,
    kubectl: PathBuf,
    apiserver: Mutex<Process>,
    others: Vec<Process>,
    folder: TempFolder,
}

/// The control plane that all tests of this process share. When a test fails while it holds this, the logs are shown.
#[derive(Debug)]
pub struct Shared(&'static ControlPlane);

impl std::ops::Deref for Shared {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        self.0
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.show_logs();
        }
    }
}

impl ControlPlane {
    /// The one that tests share which only need namespaces of their own ([`ControlPlane::namespace`]).
    ///
    /// # Panics
    /// It cannot be started.
    pub async fn shared() -> Shared {
        static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
        match SHARED.get_or_try_init(Self::start).await {
            Ok(plane) => Shared(plane),
            Err(error) => panic!("{error:#}"),
        }
    }

    /// One of the test's own, for tests that write cluster-scoped objects, restart a part or break it.
    ///
    /// # Panics
    /// It cannot be started.
    pub async fn own() -> Self {
        match Self::start().await {
            Ok(plane) => plane,
            Err(error) => panic!("{error:#}"),
        }
    }

    /// Starts one and waits until it serves: default ServiceAccount there, nodes ready.
    ///
    /// # Errors
    /// A tool cannot be built, or a part ends or does not answer; the error has the end of its log.
    pub async fn start() -> Result<Self> {
        let tools = Tools::control_plane().await?;
        let folder = TempFolder::new("cluster")?;
        let authority = Authority::new("testbed-ca")?;
        let account_key = ServiceAccountKey::generate()?;
        let layout = Layout::write(&folder, &authority, &account_key)?;

        let etcd = layout.etcd(&tools).start(&folder)?;
        let apiserver = layout.apiserver(&tools).start(&folder)?;
        let mut plane = Self {
            authority,
            account_key,
            layout,
            kubectl: tools.path("kubectl").to_owned(),
            apiserver: Mutex::new(apiserver),
            others: vec![etcd],
            folder,
        };
        plane.until_ready().await?;
        for program in [plane.layout.controller_manager(&tools), plane.layout.scheduler(&tools), plane.layout.kwok(&tools)] {
            plane.others.push(program.start(&plane.folder)?);
        }
        plane.create_nodes().await?;
        plane.until_furnished().await?;
        Ok(plane)
    }

    /// The API server's address, `https://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> &str {
        self.layout.url()
    }

    /// The certificate of the authority that signed the API server's, PEM.
    #[must_use]
    pub fn ca(&self) -> String {
        self.authority.certificate()
    }

    /// The folder that goes with it: a place for a test's files.
    #[must_use]
    pub fn folder(&self) -> &TempFolder {
        &self.folder
    }

    /// Finished requests of the operator's accounts, in the API server's own log: audit events of level Metadata.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn audit(&self) -> Result<Vec<serde_json::Value>> {
        let path = self.folder.join(programs::AUDIT_LOG);
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        // The last line may be in the writing.
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// The kubeconfig of a cluster administrator (group `system:masters`).
    #[must_use]
    pub fn admin_kubeconfig(&self) -> &Path {
        self.layout.admin()
    }

    /// Runs the real `kubectl` as the administrator.
    ///
    /// # Errors
    /// It cannot be started or hangs. Its own failure is in [`Finished`]; see [`Finished::ok`].
    pub async fn kubectl(&self, args: &[&str]) -> Result<Finished> {
        self.kubectl_as(self.admin_kubeconfig(), args).await
    }

    /// Runs the real `kubectl` with another kubeconfig.
    ///
    /// # Errors
    /// As [`ControlPlane::kubectl`].
    pub async fn kubectl_as(&self, kubeconfig: &Path, args: &[&str]) -> Result<Finished> {
        self.kubectl_program(kubeconfig).args(args).run(&self.folder, PATIENCE).await
    }

    /// Applies YAML or JSON documents as the administrator with `kubectl apply -f -`.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn apply(&self, documents: &str) -> Result<Finished> {
        let program = self.kubectl_program(self.admin_kubeconfig());
        program.args(["apply", "-f", "-"]).stdin(documents).run(&self.folder, PATIENCE).await?.ok()
    }

    fn kubectl_program(&self, kubeconfig: &Path) -> Program {
        Program::new("kubectl", &self.kubectl).only_given_env().env("HOME", self.folder.join("home")).env("KUBECONFIG", kubeconfig)
    }

    /// Creates a namespace whose name begins with `prefix` and that no other test has, and waits for its ServiceAccount.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn namespace(&self, prefix: &str) -> Result<String> {
        let client = self.client().await?;
        let namespace = Namespace {
            metadata: ObjectMeta { generate_name: Some(format!("{prefix}-")), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        let created = Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await?;
        let name = created.metadata.name.context("the namespace has no name")?;
        until_default_account(&client, &name).await?;
        Ok(name)
    }

    /// Stops the API server; etcd and its data stay.
    ///
    /// # Errors
    /// It does not end.
    pub async fn stop_apiserver(&self) -> Result<()> {
        let stopped = self.with_apiserver(Process::stop);
        stopped.await.map(drop)
    }

    /// Starts the API server again, at the same address, and waits until it serves.
    ///
    /// # Errors
    /// It does not come up.
    pub async fn start_apiserver(&self) -> Result<()> {
        let tools = Tools::control_plane().await?;
        ensure!(self.with_apiserver(|process| process.exit().is_some()), "the API server is running");
        let started = self.layout.apiserver(&tools).start(&self.folder)?;
        *self.apiserver.lock().expect("no holder of this lock panics") = started;
        self.until_ready().await
    }

    /// Prints the ends of all logs to stderr.
    pub fn show_logs(&self) {
        self.others.iter().for_each(Process::show_log);
        self.with_apiserver(Process::show_log);
    }

    fn with_apiserver<T>(&self, use_it: impl FnOnce(&Process) -> T) -> T {
        use_it(&self.apiserver.lock().expect("no holder of this lock panics"))
    }

    async fn until_ready(&self) -> Result<()> {
        let http = self.admin_http()?;
        let url = format!("{}/readyz", self.url());
        let ready = until("the API server's /readyz", PATIENCE, || async {
            if let Err(ended) = self.ensure_running() {
                return Ok(Err(ended));
            }
            let answer = http.get(&url).send().await.context("GET /readyz")?;
            let status = answer.status();
            let said = answer.text().await.unwrap_or_default();
            ensure!(status.is_success(), "GET /readyz: {status} {said}");
            Ok(Ok(()))
        });
        ready.await?
    }

    async fn create_nodes(&self) -> Result<()> {
        let nodes = Api::<Node>::all(self.client().await?);
        for name in NODES {
            let node = Node {
                metadata: ObjectMeta {
                    name: Some(name.to_owned()),
                    labels: Some([("kubernetes.io/hostname".to_owned(), name.to_owned())].into()),
                    ..ObjectMeta::default()
                },
                ..Node::default()
            };
            nodes.create(&PostParams::default(), &node).await.with_context(|| format!("creating node {name}"))?;
        }
        Ok(())
    }

    /// Waits for what the controllers and kwok make of an empty cluster.
    async fn until_furnished(&self) -> Result<()> {
        let client = self.client().await?;
        let nodes = Api::<Node>::all(client.clone());
        let usable = until("nodes without taints", PATIENCE, || async {
            if let Err(ended) = self.ensure_running() {
                return Ok(Err(ended));
            }
            for name in NODES {
                let node = nodes.get(name).await?;
                let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
                ensure!(taints.is_empty(), "{name} has taints: {taints:?}");
            }
            Ok(Ok(()))
        });
        usable.await??;
        until_default_account(&client, "default").await
    }

    fn ensure_running(&self) -> Result<()> {
        self.with_apiserver(Process::ensure_running)?;
        self.others.iter().try_for_each(Process::ensure_running)
    }
}

async fn until_default_account(client: &Client, namespace: &str) -> Result<()> {
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), namespace);
    let there = until("the namespace's default ServiceAccount", PATIENCE, || async {
        match accounts.get_opt("default").await? {
            Some(_) => Ok(()),
            None => bail!("ServiceAccount {namespace}/default is not there"),
        }
    });
    there.await
}
