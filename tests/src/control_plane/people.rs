//! Who talks to the control plane: kubeconfigs, clients and tokens for users and ServiceAccounts.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::token::{Account, SignedToken};
use super::{ControlPlane, kubeconfig};

impl ControlPlane {
    /// A client of the administrator. Each test makes its own: a client belongs to the async runtime it was made in.
    ///
    /// # Errors
    /// The kubeconfig cannot be read.
    pub async fn client(&self) -> Result<Client> {
        self.client_from(self.admin_kubeconfig()).await
    }

    /// A client with another kubeconfig.
    ///
    /// # Errors
    /// The kubeconfig cannot be read.
    pub async fn client_from(&self, kubeconfig: &Path) -> Result<Client> {
        let file = Kubeconfig::read_from(kubeconfig).with_context(|| format!("reading {}", kubeconfig.display()))?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// The kubeconfig (mode 0600) of a user with a client certificate, in one group besides `system:authenticated`.
    ///
    /// # Errors
    /// The certificate or file cannot be made.
    pub fn kubeconfig_for(&self, user: &str, group: Option<&str>) -> Result<PathBuf> {
        let identity = self.authority.client(user, group)?;
        let config = kubeconfig::with_certificate(self.url(), &self.ca(), user, &identity);
        self.write_kubeconfig(user, &config)
    }

    /// The kubeconfig (mode 0600) of somebody with a bearer token; `name` names file and user.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn kubeconfig_with_token(&self, name: &str, token: &str) -> Result<PathBuf> {
        self.kubeconfig_to(self.url(), &self.ca(), name, token)
    }

    /// The same, that leads to who stands before the API server.
    pub(crate) fn kubeconfig_to(&self, url: &str, ca: &str, name: &str, token: &str) -> Result<PathBuf> {
        self.write_kubeconfig(name, &kubeconfig::with_token(url, ca, name, token))
    }

    /// A ServiceAccount's token as the API server would issue it, signed with its key: accepted until `lifetime` from now is
    /// over, and with a negative `lifetime` one that has expired. The server takes a token for one more minute after its end (clocks
    /// differ), so one that it refuses has a `lifetime` under -60 s. It still asks whether the account exists and has this uid.
    ///
    /// # Errors
    /// The token cannot be signed.
    pub fn sign_token(&self, namespace: &str, account: &str, uid: &str, lifetime: SignedDuration) -> Result<SignedToken> {
        let account = Account { namespace, name: account, uid };
        self.account_key.sign(&account, Timestamp::now(), lifetime)
    }

    /// As [`ControlPlane::sign_token`], but one that was issued `age` ago.
    ///
    /// # Errors
    /// The token cannot be signed.
    pub fn sign_aged_token(
        &self,
        namespace: &str,
        account: &str,
        uid: &str,
        age: SignedDuration,
        left: SignedDuration,
    ) -> Result<SignedToken> {
        let (account, now) = (Account { namespace, name: account, uid }, Timestamp::now());
        self.account_key.sign_between(&account, now - age, now + left)
    }

    /// An HTTP client of the administrator, without `kube` in between.
    pub(crate) fn admin_http(&self) -> Result<reqwest::Client> {
        let identity = self.layout.admin_identity();
        let identity = format!("{}{}", identity.certificate, identity.key);
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([reqwest::Certificate::from_pem(self.ca().as_bytes())?])
            .identity(reqwest::Identity::from_pem(identity.as_bytes())?);
        client.build().context("an HTTP client")
    }

    fn write_kubeconfig(&self, name: &str, config: &[u8]) -> Result<PathBuf> {
        let file: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        self.folder.folder("people")?;
        self.folder.write(format!("people/{file}.kubeconfig"), config)
    }
}
