//! Two renderings of one chart, compared: what is not a function of the chart and its values would change without an approval.

use std::fmt;

use agent_api::object::ObjectKey;
use serde_json::Value;

use crate::engine::{Answer, EngineError, EngineObject, EngineOutput, Second};
use crate::normalise;

/// A place where two renderings of a chart differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Component.
    pub component: String,
    /// Chart, as `name version`.
    pub chart: String,
    /// Template.
    pub template: String,
    /// The object, as `Kind.group namespace/name`, and the field in it.
    pub place: String,
    /// The called template functions that make up what they return.
    pub functions: Vec<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "component {} (chart {}), {}, {}: {}", self.component, self.chart, self.template, self.place, self.made_up())
    }
}

impl Difference {
    /// By what, for a person.
    #[must_use]
    pub fn made_up(&self) -> String {
        if self.functions.is_empty() {
            "no function is known to make it up".to_owned()
        } else {
            format!("made up by {}", self.functions.join(", "))
        }
    }
}

/// The first difference of each template between the two renderings of an answer; empty where they are equal in all that counts.
///
/// # Errors
/// An answer with one rendering: nothing is known of a second.
pub(crate) fn of(component: &str, chart: &str, answer: &Answer) -> Result<Vec<Difference>, EngineError> {
    match &answer.second {
        Some(Second::Same) => Ok(Vec::new()),
        Some(Second::Other(second)) => Ok(compare(component, chart, &answer.first, second)),
        None => Err(EngineError::Answer("the second rendering is missing".to_owned())),
    }
}

fn compare(component: &str, chart: &str, a: &EngineOutput, b: &EngineOutput) -> Vec<Difference> {
    let mut functions: Vec<String> = a.functions.iter().chain(&b.functions).cloned().collect();
    functions.sort();
    functions.dedup();
    let counts = |output: &EngineOutput| -> Vec<EngineObject> {
        output.objects.iter().filter(|object| normalise::left_out(object).is_none()).cloned().collect()
    };
    let (a, b) = (counts(a), counts(b));
    let mut found: Vec<Difference> = Vec::new();
    for i in 0..a.len().max(b.len()) {
        let (one, other) = (a.get(i), b.get(i));
        if one == other {
            continue;
        }
        let Some(shown) = one.or(other) else { continue };
        if found.iter().any(|difference| difference.template == shown.template) {
            continue;
        }
        let same_template = one.zip(other).filter(|(one, other)| one.template == other.template);
        let field = same_template.and_then(|(one, other)| differing_field(&one.object, &other.object, String::new()));
        let key = ObjectKey::of(&shown.object);
        let place = match field {
            Some(field) => format!("{key}, {field}"),
            None => format!("{key}, rendered once only"),
        };
        found.push(Difference {
            component: component.to_owned(),
            chart: chart.to_owned(),
            template: shown.template.clone(),
            place,
            functions: functions.clone(),
        });
        if a.len() != b.len() {
            // What follows is only shifted.
            break;
        }
    }
    found
}

/// Where two values first differ, as `spec.replicas` or `data.password`.
fn differing_field(a: &Value, b: &Value, path: String) -> Option<String> {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let changed = a.iter().find_map(|(key, value)| match b.get(key) {
                Some(other) => differing_field(value, other, below(key)),
                None => Some(below(key)),
            });
            changed.or_else(|| b.keys().find(|key| !a.contains_key(*key)).map(|key| below(key)))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(i, (a, b))| differing_field(a, b, format!("{path}[{i}]")))
        }
        _ => (a != b).then_some(path),
    }
}
