//! The connector as in a pod, without a container engine: a process in a mount namespace of its own, where the files that a kubelet
//! mounts lie at their places. The test is the kubelet.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::Connector;
use crate::binaries::binaries;
use crate::control_plane::ControlPlane;
use crate::process::Program;

/// A `/run` of its own, the ServiceAccount's folder in it, and an `/etc/hosts` with the API server's name in the cluster.
const SCRIPT: &str = "mount -t tmpfs tmpfs /run && mkdir -p /var/run/secrets/kubernetes.io/serviceaccount && \
                      mount --bind \"$1\" /var/run/secrets/kubernetes.io/serviceaccount && mount --bind \"$2\" /etc/hosts && shift 2 && \
                      exec \"$@\"";

/// The API server as the pods of a cluster know it.
const NAME_IN_CLUSTER: &str = "kubernetes.default.svc";

/// A way to a mount namespace of one's own.
#[derive(Debug, Clone, Copy)]
pub struct MountNamespace(&'static str);

impl MountNamespace {
    /// The one that this machine allows.
    ///
    /// # Errors
    /// It allows none; the error has what each try said.
    pub fn find() -> Result<Self> {
        Self::first(&["-rm", "-m"])
    }

    /// One with root's own rights, in which devices and terminals can be mounted: a user namespace does not do.
    ///
    /// # Errors
    /// This machine does not allow it.
    pub fn of_root() -> Result<Self> {
        Self::first(&["-m"])
    }

    fn first(ways: &[&'static str]) -> Result<Self> {
        let mut said = Vec::new();
        for flags in ways {
            let tried = Command::new("unshare").args([flags, "--", "mount", "-t", "tmpfs", "tmpfs", "/run"]).output();
            match tried {
                Ok(output) if output.status.success() => return Ok(Self(flags)),
                Ok(output) => said.push(format!("unshare {flags}: {}", String::from_utf8_lossy(&output.stderr).trim())),
                Err(error) => said.push(format!("unshare: {error}")),
            }
        }
        bail!("{}", said.join("; "))
    }
}

impl MountNamespace {
    /// A shell script, with what follows as its arguments, in a mount namespace of its own.
    #[must_use]
    pub fn program(self, name: &str, script: &str) -> Program {
        Program::new(name, "unshare").args([self.0, "--", "sh", "-ec", script, "sh"])
    }
}

impl Connector {
    /// Starts the daemon as in a pod of `namespace`, as its ServiceAccount `pcm-executor`, with nothing in the mounted Secret yet.
    ///
    /// # Errors
    /// The account is not there, or the daemon cannot be started.
    pub async fn start_executor_in_pod(&mut self, mounts: MountNamespace, cluster: &ControlPlane, namespace: &str) -> Result<()> {
        let account = self.folder().folder("serviceaccount")?;
        let token = cluster.kubectl(&["create", "token", "pcm-executor", "-n", namespace]).await?.ok()?;
        for (name, content) in [("token", token.stdout.trim()), ("ca.crt", &cluster.ca()), ("namespace", namespace)] {
            std::fs::write(account.join(name), content).with_context(|| format!("writing {name}"))?;
        }
        let hosts = self.folder().write("hosts", format!("127.0.0.1 localhost {NAME_IN_CLUSTER}\n"))?;
        std::fs::create_dir_all(self.mounted_secret()).context("making the place of the mounted Secret")?;
        let text = std::fs::read_to_string(self.config())?;
        let in_pod = text.replace("  cluster:\n", "  cluster:\n    in_cluster: true\n");
        std::fs::write(self.config(), in_pod).context("writing the configuration")?;
        let port = cluster.url().rsplit(':').next().unwrap_or_default();
        let program = mounts.program("executor", SCRIPT).arg(account).arg(hosts);
        let program = program.env("KUBERNETES_SERVICE_HOST", "127.0.0.1").env("KUBERNETES_SERVICE_PORT", port);
        self.start(&program.arg(binaries().clicklink).args(["executor", "--config"]).arg(self.config()))
    }

    /// What a kubelet does when a mounted Secret changes: the keys in a new folder, then one rename of the link `..data` to it.
    ///
    /// # Errors
    /// The Secret is not there, or a file cannot be made.
    pub async fn refresh_mounted_secret(&self, cluster: &ControlPlane, namespace: &str, name: &str) -> Result<()> {
        let data = secret(cluster, namespace, name).await?;
        let mount = self.mounted_secret();
        let version = format!("..{}", uuid::Uuid::new_v4());
        let folder = mount.join(&version);
        std::fs::create_dir(&folder).context("making the folder of the keys")?;
        for (key, content) in &data {
            std::fs::write(folder.join(key), content).with_context(|| format!("writing {key}"))?;
        }
        let former = std::fs::read_link(mount.join("..data")).ok();
        let beside = mount.join("..data_tmp");
        symlink(&version, &beside).context("making the link")?;
        std::fs::rename(&beside, mount.join("..data")).context("putting the link in place")?;
        for (key, _) in &data {
            if !mount.join(key).is_symlink() {
                symlink(Path::new("..data").join(key), mount.join(key)).context("making a key's link")?;
            }
        }
        if let Some(former) = former {
            std::fs::remove_dir_all(mount.join(former)).context("removing the former keys")?;
        }
        Ok(())
    }

    /// Where the pod has the token bundle.
    #[must_use]
    pub fn mounted_secret(&self) -> PathBuf {
        self.access_dir().join("_platform")
    }
}

/// The address that an executor in a pod is told: the name in the cluster, at the port of this control plane.
#[must_use]
pub fn server_in_cluster(cluster: &ControlPlane) -> String {
    let port = cluster.url().rsplit(':').next().unwrap_or_default();
    format!("https://{NAME_IN_CLUSTER}:{port}")
}

/// The keys of a live Secret and what they hold.
///
/// # Errors
/// It is not there.
pub async fn secret(cluster: &ControlPlane, namespace: &str, name: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let got = cluster.kubectl(&["get", "secret", name, "-n", namespace, "-o", "json"]).await?.ok()?;
    let got: Value = serde_json::from_str(&got.stdout)?;
    let data = got["data"].as_object().context("the Secret has no data")?;
    data.iter().map(|(key, value)| Ok((key.clone(), STANDARD.decode(value.as_str().unwrap_or_default())?))).collect()
}
