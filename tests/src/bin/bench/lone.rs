//! An executor with neither cluster nor registry, enrolled at a vendor of this program's own.

use anyhow::Result;
use system_tests::{Process, TempFolder, binaries, free_port};

use crate::vendor::{ACCESS_KEY, SECRET_KEY, Vendor};

/// The executor, and its folders.
pub(crate) struct Lone {
    pub(crate) home: TempFolder,
    _process: Process,
}

impl Lone {
    /// Starts it.
    pub(crate) fn start(vendor: &Vendor) -> Result<Self> {
        let home = TempFolder::new("bench")?;
        for folder in ["etc/tls", "etc/access/executor", "state"] {
            home.folder(folder)?;
        }
        let client = vendor.client()?;
        home.write("etc/access-key", ACCESS_KEY)?;
        home.write("etc/secret-key", SECRET_KEY)?;
        home.write("etc/tls/client.crt", client.certificate)?;
        home.write("etc/tls/client.key", client.key)?;
        home.write("etc/tls/ca.crt", vendor.ca())?;
        let etc = home.join("etc").display().to_string();
        let text = format!(
            "pcm_infra_uuid: {}\ncloud: aws\nregion: eu-west-1\n\
             api:\n  endpoint: {}\n  access_key_file: {etc}/access-key\n  secret_key_file: {etc}/secret-key\n  \
             tls: {{cert_file: {etc}/tls/client.crt, key_file: {etc}/tls/client.key, ca_file: {etc}/tls/ca.crt}}\n\
             executor:\n  db_path: {}/executor.db\n  api_port: {}\n  access_dir: {etc}/access/executor\n  \
             observability: {{health_port: 0}}\n",
            uuid::Uuid::new_v4(),
            vendor.endpoint()?,
            home.join("state").display(),
            free_port(),
        );
        let config = home.write("etc/config.yaml", text)?;
        let process = binaries().clicklink("executor").args(["executor", "--config"]).arg(config).start(&home)?;
        Ok(Self { home, _process: process })
    }
}
