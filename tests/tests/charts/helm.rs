//! What a person without us gets: `helm template`, then kubectl's own reading of what it printed.
//!
//! kubectl reads offline (`annotate --local`, nothing annotated): its reader, which is Helm's too, opens documents, lists and YAML, and no
//! API server has its say. One kubectl reads the files of all charts.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use serde_json::Value;
use system_tests::chart_case::Case;
use system_tests::{Program, TempFolder, Tools};

use crate::generated::ascii;
use crate::ours::KUBE_VERSION;

const PATIENCE: Duration = Duration::from_secs(120);
const SIDE_BY_SIDE: usize = 4;
/// The kind of the object before those of a chart, whose name is the chart's number.
const MARK: &str = "Mark";

/// Objects in the order in which helm prints them, or why there are none.
pub(crate) type Outcome = Result<Vec<Value>, String>;

/// The outcomes of these charts, in order.
pub(crate) async fn outcomes(cases: &[Case], folder: &TempFolder) -> Vec<Outcome> {
    folder.folder("printed").unwrap();
    let templates = cases.iter().enumerate().map(|(i, case)| template(i, case, folder));
    let printed: Vec<Result<(), String>> = stream::iter(templates).buffered(SIDE_BY_SIDE).collect().await;
    let (objects, problems) = read(folder).await;
    assert!(problems.lines().all(|line| line.contains("printed/")), "a complaint without its file: {problems}");
    let outcome = |(i, printed): (usize, Result<(), String>)| {
        let problem = problems.lines().find(|line| line.contains(&file_of(i)));
        match (printed, problem) {
            (Err(problem), _) => Err(problem),
            (Ok(()), Some(problem)) => Err(problem.to_owned()),
            (Ok(()), None) => Ok(objects.get(&i.to_string()).unwrap_or_else(|| panic!("kubectl read nothing: {problems}")).clone()),
        }
    };
    printed.into_iter().enumerate().map(outcome).collect()
}

fn file_of(number: usize) -> String {
    format!("printed/{number:05}.yaml")
}

async fn template(number: usize, case: &Case, folder: &TempFolder) -> Result<(), String> {
    let archive = folder.write(format!("{number}.tgz"), case.archive()).unwrap();
    let values = folder.write(format!("{number}.json"), ascii(&Value::Object(case.values.clone()))).unwrap();
    let home = folder.join("helm");
    let program = Program::new("helm", Tools::registry().await.unwrap().path("helm")).only_given_env().env("HOME", &home);
    let program = program.args(["template", "rel", "--namespace", "platform", "--include-crds", "--kube-version", KUBE_VERSION]);
    let finished = program.arg("--values").arg(values).arg(archive).run(folder, PATIENCE).await.unwrap();
    if !finished.success() {
        return Err(one_line(&finished.stderr));
    }
    let mark = format!("apiVersion: v1\nkind: {MARK}\nmetadata: {{name: '{number}'}}\n");
    folder.write(file_of(number), mark + &finished.stdout).unwrap();
    Ok(())
}

fn one_line(text: &str) -> String {
    let text = text.split("Use --debug flag").next().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Every object by its chart's number, and what kubectl complained of.
async fn read(folder: &TempFolder) -> (BTreeMap<String, Vec<Value>>, String) {
    let kubectl = Program::new("kubectl", Tools::control_plane().await.unwrap().path("kubectl")).only_given_env();
    let kubectl = kubectl.args(["annotate", "--local", "--kubeconfig", "/dev/null", "-o", "json", "-f", "printed", "corpus.example/none-"]);
    let finished = kubectl.folder(folder.path()).run(folder, PATIENCE).await.unwrap();
    let mut objects: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut current = String::new();
    for object in serde_json::Deserializer::from_str(&finished.stdout).into_iter::<Value>() {
        let object = object.unwrap();
        if object["kind"] == MARK {
            current = object["metadata"]["name"].as_str().unwrap().to_owned();
            objects.entry(current.clone()).or_default();
        } else {
            objects.get_mut(&current).unwrap().push(object);
        }
    }
    (objects, finished.stderr)
}
