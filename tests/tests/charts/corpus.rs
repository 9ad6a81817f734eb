//! Every construct that charts use, a chart each (`tests/corpus`), against `helm template` and kubectl.

use futures::{StreamExt as _, stream};
use render::engine::Second;
use serde_json::{Value, json};
use system_tests::TempFolder;
use system_tests::chart_case::{self, Case};

use crate::helm::{self, Outcome};
use crate::{kept, ours};

const SIDE_BY_SIDE: usize = 4;

#[tokio::test]
async fn every_construct_renders_as_helm_renders_it() {
    let cases = chart_case::corpus();
    let differences = differences(&cases).await;
    println!("{} constructs, {} differ", cases.len(), differences.len());
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

/// Whatever a chart did in its first rendering: its second is what a process of its own makes of it.
#[tokio::test]
async fn a_second_rendering_finds_nothing_of_the_first() {
    let (cases, engine) = (chart_case::corpus(), ours::engine().await);
    let [one, two] = ours::inventions();
    let rendered = cases.iter().map(|case| {
        let engine = &engine;
        async move {
            let alone = (ours::renderings(engine, case, &[one]).await, ours::renderings(engine, case, &[two]).await);
            (case, alone, ours::renderings(engine, case, &[one, two]).await)
        }
    });
    let rendered: Vec<_> = stream::iter(rendered).buffered(SIDE_BY_SIDE).collect().await;
    let (mut same, mut other) = (0, 0);
    for (case, alone, twice) in rendered {
        match (alone, twice) {
            ((Ok(first), Ok(second)), Ok(twice)) => {
                assert_eq!(twice.first, first.first, "{}", case.name);
                let again = match twice.second {
                    Some(Second::Same) => twice.first,
                    Some(Second::Other(again)) => again,
                    None => panic!("{}: it is rendered once", case.name),
                };
                *if again == first.first { &mut same } else { &mut other } += 1;
                assert_eq!(again, second.first, "{}", case.name);
            }
            ((Err(first), _), Err(twice)) => assert!(same_words(&first, &twice), "{}: {first}, {twice}", case.name),
            (alone, twice) => panic!("{}: {alone:?}, {twice:?}", case.name),
        }
    }
    println!("{same} are the same again, {other} are not");
    assert!(same > 0 && other > 0, "{same} {other}");
}

/// One text for each chart that we and helm disagree on: construct, object, both values.
pub(crate) async fn differences(cases: &[Case]) -> Vec<String> {
    let folder = TempFolder::new("corpus").unwrap();
    let engine = ours::engine().await;
    let rendered = async {
        let renderings = cases.iter().map(|case| ours::outcome(&engine, case));
        stream::iter(renderings).buffered(SIDE_BY_SIDE).collect::<Vec<_>>().await
    };
    let (theirs, ours) = tokio::join!(helm::outcomes(cases, &folder), rendered);
    let compared = cases.iter().zip(theirs).zip(ours).filter_map(|((case, theirs), ours)| {
        let made_up = ours.as_ref().map(|output| output.functions.clone()).unwrap_or_default();
        let kept = ours.as_ref().map_or(Ok(()), kept::check);
        let ours = ours.map(|output| ours::objects(&output));
        let problem = if made_up == case.made_up { compare(case, theirs, ours) } else { Err(format!("made up by {made_up:?}")) };
        problem.and(kept).err().map(|problem| format!("{}: {problem}", case.name))
    });
    compared.collect()
}

fn compare(case: &Case, theirs: Outcome, ours: Outcome) -> Result<(), String> {
    match (theirs, ours) {
        (Err(theirs), Err(ours)) => {
            let silent = case.fails.iter().find(|text| !theirs.contains(*text) || !ours.contains(*text));
            let said = !case.fails.is_empty() && silent.is_none() && !ours.contains('\n') && same_words(&theirs, &ours);
            if said { Ok(()) } else { Err(format!("both refuse, without {silent:?} or in other words:\n  helm: {theirs}\n  ours: {ours}")) }
        }
        (Err(theirs), Ok(_)) if case.kubectl_refuses.iter().any(|text| theirs.contains(text)) => Ok(()),
        (Err(theirs), Ok(_)) => Err(format!("only helm refuses: {theirs}")),
        (Ok(_), Err(ours)) => Err(format!("only we refuse: {ours}")),
        (Ok(_), Ok(_)) if !case.fails.is_empty() || !case.kubectl_refuses.is_empty() => Err("nobody refuses".to_owned()),
        (Ok(theirs), Ok(ours)) => same_objects(&theirs, &ours, !case.made_up.is_empty()),
    }
}

/// We say what helm says, without its advice on what to run. What Helm lists in no order may come in another.
fn same_words(theirs: &str, ours: &str) -> bool {
    let theirs = theirs.rsplit_once("Error: ").map_or(theirs, |(_, words)| words).trim();
    let sorted = |text: &str| {
        let mut words: Vec<String> = text.split([' ', ',']).map(str::to_owned).collect();
        words.sort();
        words
    };
    theirs.ends_with(ours) || theirs.starts_with("error parsing printed/") || sorted(theirs) == sorted(ours)
}

fn same_objects(theirs: &[Value], ours: &[Value], made_up: bool) -> Result<(), String> {
    let names = |objects: &[Value]| objects.iter().map(identity).collect::<Vec<_>>();
    if names(theirs) != names(ours) {
        return Err(format!("other objects:\n  helm: {:?}\n  ours: {:?}", names(theirs), names(ours)));
    }
    for (theirs, ours) in theirs.iter().zip(ours) {
        let (theirs, ours) = (plain(theirs), plain(ours));
        if !made_up && !same(&theirs, &ours) {
            return Err(format!("{}:\n  helm: {theirs}\n  ours: {ours}", identity(&ours)));
        }
    }
    Ok(())
}

fn identity(object: &Value) -> String {
    format!("{} {}", object["kind"], object["metadata"]["name"])
}

/// Without empty annotations, which kubectl's reading leaves behind, and without an empty namespace, which it takes away.
fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, value| !(field == "annotations" && *value == json!({}) || field == "namespace" && value == ""));
    }
    object
}

/// Equality of JSON values. Beyond 64 bits, and between `1` and `1.0`, numbers are what Kubernetes makes of them: floating point.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) if a.is_i64() && b.is_i64() => a == b,
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b))),
        (a, b) => a == b,
    }
}
