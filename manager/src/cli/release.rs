//! `release`: what is proposed, and proposing it.

use std::path::{Path, PathBuf};

use agent_api::strict_json;
use clap::Subcommand;
use serde_json::{Value, json};

use super::client::{read, segment};
use super::output::{Column, show};
use super::{CliError, Global, next, print};

const COLUMNS: [Column; 4] =
    [("NAME", "/name"), ("NAMESPACES", "/namespaces"), ("COMPONENTS", "/component_names"), ("CREATED", "/created_at")];
const PROPOSED: [Column; 4] =
    [("SHA256", "/sha256"), ("RELEASE", "/release"), ("ENVIRONMENT", "/environment"), ("COMMANDS", "/command_ids")];

/// Verbs of `release`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Make a release from a file.
    Create {
        /// YAML, or JSON if it ends in .json.
        #[arg(short, long)]
        file: PathBuf,
    },
    /// List releases.
    List,
    /// Show a release.
    Get {
        /// Which.
        name: String,
    },
    /// Print the exact bytes of the manifest that was last proposed from a release.
    Manifest {
        /// Which.
        name: String,
        /// To which environment.
        #[arg(long)]
        environment: String,
    },
    /// Generate the manifest for an environment and propose it.
    Propose {
        /// Which.
        name: String,
        /// To which environment.
        #[arg(long)]
        environment: String,
        /// Generate a new manifest also when the newest proposal is of this release already.
        #[arg(long)]
        new: bool,
    },
}

/// Carries out a verb.
///
/// # Errors
/// See [`CliError`].
pub async fn run(verb: Verb, global: &Global) -> Result<(), CliError> {
    let client = global.client()?;
    match verb {
        Verb::Create { file } => {
            let created = client.post("releases", &document(&file)?).await?;
            let name = created.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            show(global, &with_names(created), &COLUMNS)?;
            next(&format!("navin-manager release propose {name} --environment ENV"));
            Ok(())
        }
        Verb::List => show(global, &with_names(client.get("releases").await?), &COLUMNS),
        Verb::Get { name } => show(global, &with_names(client.get(&format!("releases/{}", segment(&name))).await?), &COLUMNS),
        Verb::Manifest { name, environment } => {
            print(&client.text(&format!("environments/{}/manifest?release={}", segment(&environment), segment(&name))).await?)
        }
        Verb::Propose { name, environment, new } => {
            let body = json!({ "release": name, "new": new });
            show(global, &client.post(&format!("environments/{}/proposals", segment(&environment)), &body).await?, &PROPOSED)?;
            next(&format!("navin-manager environment get {environment}"));
            Ok(())
        }
    }
}

fn document(path: &Path) -> Result<Value, CliError> {
    let text = read(path)?;
    let wrong = |problem: String| CliError::Parse { path: path.to_owned(), problem };
    if path.extension().is_some_and(|extension| extension == "json") {
        return strict_json::parse(&text).map_err(|error| wrong(error.to_string()));
    }
    // As Kubernetes reads YAML: `0644` is a mode in octal. A duplicate key is refused.
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    serde_saphyr::from_str_with_options(&text, options).map_err(|error| wrong(error.to_string()))
}

/// Adds the names of the components for the table.
fn with_names(mut answer: Value) -> Value {
    let rows = match &mut answer {
        Value::Array(rows) => rows.as_mut_slice(),
        one => std::slice::from_mut(one),
    };
    for row in rows {
        let name = |part: &Value| Some(format!("{}@{}", part.get("name")?.as_str()?, part.pointer("/chart/version")?.as_str()?));
        let names: Vec<String> = row.get("components").and_then(Value::as_array).into_iter().flatten().filter_map(name).collect();
        row["component_names"] = json!(names);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(name: &str, text: &str) -> Result<Value, CliError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        document(&path)
    }

    #[test]
    fn yaml_is_read_as_kubernetes_reads_it() {
        let text = "values: { mode: 0644, on: yes, big: 9007199254740993, text: \"0644\", float: 1.5 }";
        let expected = json!({"values": {"mode": 420, "on": true, "big": 9_007_199_254_740_993_u64, "text": "0644", "float": 1.5}});
        assert_eq!(read_as("r.yaml", text).unwrap(), expected);
    }

    #[test]
    fn duplicate_keys_are_refused_with_their_place() {
        let error = read_as("r.yaml", "a:\n  b: 1\n  b: 2\n").unwrap_err().to_string();
        assert!(error.contains("duplicate") && error.contains('3'), "{error}");
        let error = read_as("r.json", r#"{"a": {"b": 1, "b": 2}}"#).unwrap_err().to_string();
        assert!(error.contains("a.b: duplicate key"), "{error}");
    }
}
