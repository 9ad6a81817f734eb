//! What the engine answers, read: bounded, counted, and never taken for whole where it was cut short.
//!
//! Of each rendering one line that says what it is and how many objects follow, then a line for each; of a second that is the first again,
//! a word. Deliberately absent: whether two that are not the same differ in what counts (`difference`).

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{EngineError, MAX_OBJECT, MAX_OUTPUT};

/// An object as the engine rendered it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineObject {
    /// Source, as `chart/templates/x.yaml` or `chart/crds/x.yaml`.
    pub template: String,
    /// Hook events in Helm's words; empty for an object that is no hook.
    #[serde(default)]
    pub hooks: Vec<String>,
    /// Hook weight.
    #[serde(default)]
    pub weight: i64,
    /// Whether it comes from a `crds/` folder.
    #[serde(default)]
    pub crd: bool,
    /// The object.
    pub object: Value,
}

/// What a chart became.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EngineOutput {
    /// Objects in Helm's order, `crds/` first.
    pub objects: Vec<EngineObject>,
    /// Called template functions whose value is not a function of the chart and its values.
    pub functions: Vec<String>,
    /// What `Chart.yaml` says.
    pub chart: ChartMetadata,
}

/// Name and versions in `Chart.yaml`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartMetadata {
    /// Name.
    pub name: String,
    /// Version of the chart.
    pub version: String,
    /// Version of what it installs; empty where the chart gives none.
    pub app_version: String,
}

/// All that was asked for in one request.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// The rendering with the first invention.
    pub first: EngineOutput,
    /// The one with the second; none where none was asked for.
    pub second: Option<Second>,
}

/// A second rendering.
#[derive(Clone, PartialEq, Debug)]
pub enum Second {
    /// The first again.
    Same,
    /// Its templates printed something else.
    Other(EngineOutput),
}

/// The line before a rendering's objects.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Head {
    Rendering {
        objects: usize,
        #[serde(default)]
        functions: Vec<String>,
        #[serde(default)]
        chart: ChartMetadata,
    },
    Same,
}

impl Answer {
    /// Reads an engine's answer.
    ///
    /// # Errors
    /// An answer that is not of the protocol, or cut short; a rendering or an object that is larger than it may be.
    pub fn read(answer: &[u8]) -> Result<Self, EngineError> {
        let mut rest = answer;
        let Second::Other(first) = one(&mut rest)? else { return Err(unreadable("it begins with a second rendering")) };
        let second = if rest.is_empty() { None } else { Some(one(&mut rest)?) };
        if rest.is_empty() { Ok(Self { first, second }) } else { Err(unreadable("something follows it")) }
    }
}

/// Takes one rendering off what is left.
fn one(rest: &mut &[u8]) -> Result<Second, EngineError> {
    let Head::Rendering { objects: count, functions, chart } = parse(line(rest)?)? else { return Ok(Second::Same) };
    let (mut objects, before) = (Vec::new(), rest.len());
    for _ in 0..count {
        let line = line(rest)?;
        if before - rest.len() > MAX_OUTPUT {
            return Err(EngineError::Output);
        }
        let object: EngineObject = parse(line)?;
        if line.len() > MAX_OBJECT {
            return Err(EngineError::Object { template: object.template, bytes: line.len() });
        }
        objects.push(object);
    }
    Ok(Second::Other(EngineOutput { objects, functions, chart }))
}

fn line<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], EngineError> {
    let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(|| unreadable("it is cut short"))?;
    let (line, after) = rest.split_at(end);
    *rest = after.get(1..).unwrap_or_default();
    Ok(line)
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, EngineError> {
    serde_json::from_slice(line).map_err(unreadable)
}

fn unreadable(why: impl ToString) -> EngineError {
    EngineError::Answer(why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RENDERING: &str = "{\"rendering\":{\"objects\":1,\"functions\":[\"now\"],\"chart\":{\"name\":\"c\",\"version\":\"1.0.0\"}}}\n";
    const OBJECT: &str = "{\"template\":\"c/templates/x.yaml\",\"object\":{\"kind\":\"A\"}}\n";
    const OTHER: &str = "{\"template\":\"c/templates/x.yaml\",\"object\":{\"kind\":\"B\"}}\n";

    #[test]
    fn one_rendering_the_same_again_and_another() {
        let kind = |output: &EngineOutput| output.objects[0].object["kind"].clone();
        let once = Answer::read([RENDERING, OBJECT].concat().as_bytes()).unwrap();
        assert_eq!((kind(&once.first), once.first.functions.concat(), once.second), ("A".into(), "now".into(), None));
        let same = Answer::read([RENDERING, OBJECT, "\"same\"\n"].concat().as_bytes()).unwrap();
        assert_eq!((same.first, same.second), (once.first.clone(), Some(Second::Same)));
        let other = Answer::read([RENDERING, OBJECT, RENDERING, OTHER].concat().as_bytes()).unwrap();
        let Some(Second::Other(second)) = other.second else { panic!("{other:?}") };
        assert_eq!((other.first, kind(&second)), (once.first, "B".into()));
    }

    #[test]
    fn what_was_cut_short_or_has_too_much_is_no_answer() {
        for whole in [[RENDERING, OBJECT, RENDERING, OTHER].concat(), [RENDERING, OBJECT, "\"same\"\n"].concat()] {
            let first = RENDERING.len() + OBJECT.len();
            for length in (0..whole.len()).filter(|length| *length != first) {
                assert!(Answer::read(&whole.as_bytes()[..length]).is_err(), "cut after {length}: {whole}");
            }
            // One rendering is an answer, too, but not to the question for two.
            assert_eq!(Answer::read(&whole.as_bytes()[..first]).unwrap().second, None);
            assert!(Answer::read([&whole, "\"same\"\n"].concat().as_bytes()).is_err());
        }
        for wrong in ["\"same\"\n", "{}\n", "\n", "{\"done\":true}\n", &[RENDERING, "\"same\"\n"].concat()] {
            assert!(Answer::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    /// Whatever the whole answer may hold, a rendering may only have its part.
    #[test]
    fn each_rendering_has_a_bound_of_its_own() {
        let object = format!("{{\"template\":\"t\",\"object\":{{\"a\":\"{}\"}}}}\n", "x".repeat(MAX_OBJECT / 2));
        let fitting = MAX_OUTPUT / object.len();
        let rendering = |count: usize| format!("{{\"rendering\":{{\"objects\":{count}}}}}\n{}", object.repeat(count));
        assert!(Answer::read([rendering(fitting), rendering(fitting)].concat().as_bytes()).is_ok());
        for (first, second) in [(fitting + 1, 0), (0, fitting + 1)] {
            let read = Answer::read([rendering(first), rendering(second)].concat().as_bytes());
            assert!(matches!(read, Err(EngineError::Output)), "{first} {second}");
        }
    }
}
