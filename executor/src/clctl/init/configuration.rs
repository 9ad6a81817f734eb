//! The text of the configuration that is written.

use std::path::Path;

use agent_api::name::ExecutorId;

use super::{Init, Places};

impl Init {
    pub(super) fn configuration(&self, id: ExecutorId, endpoint: &str, places: &Places) -> String {
        let quote = |text: &str| serde_json::Value::from(text).to_string();
        let path = |path: &Path| quote(&path.display().to_string());
        let name = self.cluster_name.as_deref().map(|name| format!("    name: {}\n", quote(name))).unwrap_or_default();
        format!(
            "# Written by `clicklink clctl init`. It holds no credential, only where they lie.\n\
             pcm_infra_uuid: {id}\ncloud: {}\nregion: {}\nnamespace_prefix: ns-\n\
             api:\n  endpoint: {}\n  access_key_file: {}\n  secret_key_file: {}\n  \
             tls:\n    cert_file: {}\n    key_file: {}\n    ca_file: {}\n\
             executor:\n  db_path: {}\n  api_port: {}\n  access_dir: {}\n  cluster:\n{name}    region: {}\n",
            quote(&self.cloud),
            quote(&self.region),
            quote(endpoint),
            path(&places.dir.join("access-key")),
            path(&places.dir.join("secret-key")),
            path(&places.certificate()),
            path(&places.key()),
            path(&places.tls.join("ca.crt")),
            path(&self.state_dir.join("executor.db")),
            self.api_port,
            path(&places.access),
            quote(&self.region),
        )
    }
}
