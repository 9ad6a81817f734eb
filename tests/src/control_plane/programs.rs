//! The programs of a control plane: their files, ports and flags.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use super::kubeconfig;
use super::token::{ISSUER, ServiceAccountKey};
use crate::folder::TempFolder;
use crate::pki::{Authority, Identity};
use crate::port::free_port;
use crate::process::Program;
use crate::tools::Tools;

/// What none of them can lose: the data goes with the folder.
const GRACE: Duration = Duration::from_millis(300);

/// The log of requests, one JSON event a line.
pub(super) const AUDIT_LOG: &str = "audit.log";

/// Whose requests are logged, and no more of them than who asked for what: the operator's.
const AUDIT: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
  {"level": "Metadata", "userGroups": ["system:serviceaccounts:navin-system"]}, {"level": "None"}]}
"#;

/// Where the files are that the programs read, and which ports they have.
#[derive(Debug)]
pub(super) struct Layout {
    url: String,
    port: u16,
    etcd_url: String,
    etcd_peer_url: String,
    root: PathBuf,
    admin: PathBuf,
    admin_identity: Identity,
}

impl Layout {
    pub(super) fn write(folder: &TempFolder, authority: &Authority, account_key: &ServiceAccountKey) -> Result<Self> {
        let port = free_port();
        let url = format!("https://127.0.0.1:{port}");
        let ca = authority.certificate();
        folder.folder("pki")?;
        folder.folder("home")?;
        folder.write("pki/ca.crt", &ca)?;
        folder.write("pki/account.key", account_key.private_pem())?;
        folder.write("pki/account.pub", account_key.public_pem())?;
        let hosts = ["127.0.0.1", "localhost", "10.96.0.1", "kubernetes.default.svc"];
        let server = authority.server("kube-apiserver", &hosts)?;
        folder.write("pki/apiserver.crt", server.certificate)?;
        folder.write("pki/apiserver.key", server.key)?;
        folder.write("kwok.yaml", include_bytes!("kwok.yaml"))?;
        folder.write("audit.yaml", AUDIT)?;
        for (user, group) in [("system:kube-controller-manager", None), ("system:kube-scheduler", None), ("kwok", Some("system:masters"))] {
            let identity = authority.client(user, group)?;
            let config = kubeconfig::with_certificate(&url, &ca, user, &identity);
            folder.write(format!("{}.kubeconfig", user.trim_start_matches("system:")), config)?;
        }
        let admin_identity = authority.client("testbed-admin", Some("system:masters"))?;
        let admin = kubeconfig::with_certificate(&url, &ca, "testbed-admin", &admin_identity);
        Ok(Self {
            port,
            url,
            etcd_url: format!("http://127.0.0.1:{}", free_port()),
            etcd_peer_url: format!("http://127.0.0.1:{}", free_port()),
            root: folder.path().to_owned(),
            admin: folder.write("admin.kubeconfig", admin)?,
            admin_identity,
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn admin(&self) -> &Path {
        &self.admin
    }

    pub(super) fn admin_identity(&self) -> &Identity {
        &self.admin_identity
    }

    pub(super) fn etcd(&self, tools: &Tools) -> Program {
        self.program("etcd", tools)
            .arg("--unsafe-no-fsync")
            .arg("--log-level=warn")
            .arg(format!("--data-dir={}", self.root.join("etcd").display()))
            .arg(format!("--listen-client-urls={}", self.etcd_url))
            .arg(format!("--advertise-client-urls={}", self.etcd_url))
            .arg(format!("--listen-peer-urls={}", self.etcd_peer_url))
            .arg(format!("--initial-advertise-peer-urls={}", self.etcd_peer_url))
            .arg(format!("--initial-cluster=default={}", self.etcd_peer_url))
    }

    pub(super) fn apiserver(&self, tools: &Tools) -> Program {
        self.program("kube-apiserver", tools)
            .arg(format!("--secure-port={}", self.port))
            .arg("--bind-address=127.0.0.1")
            .arg("--advertise-address=127.0.0.1")
            .arg("--endpoint-reconciler-type=none")
            .arg(format!("--etcd-servers={}", self.etcd_url))
            .arg("--authorization-mode=Node,RBAC")
            .arg("--enable-admission-plugins=NodeRestriction")
            .arg("--allow-privileged=true")
            .arg("--service-cluster-ip-range=10.96.0.0/16")
            .arg(format!("--cert-dir={}", self.root.join("pki").display()))
            .arg(self.file("--tls-cert-file", "pki/apiserver.crt"))
            .arg(self.file("--tls-private-key-file", "pki/apiserver.key"))
            .arg(self.file("--client-ca-file", "pki/ca.crt"))
            .arg(self.file("--audit-policy-file", "audit.yaml"))
            .arg(self.file("--audit-log-path", AUDIT_LOG))
            .arg(format!("--service-account-issuer={ISSUER}"))
            .arg(self.file("--service-account-key-file", "pki/account.pub"))
            .arg(self.file("--service-account-signing-key-file", "pki/account.key"))
    }

    pub(super) fn controller_manager(&self, tools: &Tools) -> Program {
        self.controller("kube-controller-manager", tools)
            .arg("--use-service-account-credentials=true")
            .arg(self.file("--service-account-private-key-file", "pki/account.key"))
            .arg(self.file("--root-ca-file", "pki/ca.crt"))
            .arg(format!("--flex-volume-plugin-dir={}", self.root.join("plugins").display()))
            .args(["--kube-api-qps=500", "--kube-api-burst=1000"])
    }

    pub(super) fn scheduler(&self, tools: &Tools) -> Program {
        self.controller("kube-scheduler", tools)
    }

    pub(super) fn kwok(&self, tools: &Tools) -> Program {
        self.program("kwok", tools)
            .arg(self.file("--kubeconfig", "kwok.kubeconfig"))
            .arg(self.file("--config", "kwok.yaml"))
            .arg("--manage-all-nodes=true")
            .arg("--node-lease-duration-seconds=40")
    }

    fn controller(&self, name: &str, tools: &Tools) -> Program {
        let kubeconfig = format!("{name}.kubeconfig");
        self.program(name, tools)
            .arg(self.file("--kubeconfig", &kubeconfig))
            .arg(self.file("--authentication-kubeconfig", &kubeconfig))
            .arg(self.file("--authorization-kubeconfig", &kubeconfig))
            .args(["--leader-elect=false", "--secure-port=0"])
    }

    fn program(&self, name: &str, tools: &Tools) -> Program {
        Program::new(name, tools.path(name)).only_given_env().env("HOME", self.root.join("home")).grace(GRACE)
    }

    fn file(&self, flag: &str, name: &str) -> String {
        format!("{flag}={}", self.root.join(name).display())
    }
}
