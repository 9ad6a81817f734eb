//! JSON for documents of ours: a duplicate key is refused, and every error names its place.
//!
//! RFC 8259 leaves duplicate keys to the reader, so two readers of one document may see two documents; ours has to be one.

use std::cell::RefCell;
use std::fmt;

use serde::de::{self, DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Why a document is refused. `path` is in the manner of `components[1].chart.digest`, empty for the document itself.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{}{problem}", place(path))]
pub struct StrictJsonError {
    /// Where.
    pub path: String,
    /// What.
    pub problem: String,
}

fn place(path: &str) -> String {
    if path.is_empty() || path == "." { String::new() } else { format!("{path}: ") }
}

/// Parses a document, refusing a duplicate key at any depth.
///
/// # Errors
/// Names the path of the offending key, or line and column of a syntax error.
pub fn parse(text: &str) -> Result<Value, StrictJsonError> {
    let path = RefCell::new(Vec::new());
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict { path: &path }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| StrictJsonError { path: path.borrow().concat().trim_start_matches('.').to_owned(), problem: error.to_string() })?;
    Ok(value)
}

/// Parses a document into a type, refusing a duplicate key at any depth; unknown fields are ignored.
///
/// # Errors
/// Names the path of what is missing, misplaced or of a wrong type.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, StrictJsonError> {
    let value = parse(text)?;
    serde_path_to_error::deserialize(value)
        .map_err(|error| StrictJsonError { path: error.path().to_string(), problem: error.inner().to_string() })
}

struct Strict<'a> {
    path: &'a RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            self.path.borrow_mut().push(format!("[{}]", items.len()));
            // On an error the path stays as it is: it names the place.
            let item = seq.next_element_seed(Strict { path: self.path })?;
            self.path.borrow_mut().pop();
            match item {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            self.path.borrow_mut().push(format!(".{key}"));
            if entries.contains_key(&key) {
                return Err(de::Error::custom("duplicate key"));
            }
            let value = map.next_value_seed(Strict { path: self.path })?;
            self.path.borrow_mut().pop();
            entries.insert(key, value);
        }
        Ok(Value::Object(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, path: &str, problem: &str) {
        let error = parse(text).expect_err(text);
        assert_eq!(error.path, path, "{text}");
        assert!(error.problem.starts_with(problem), "{text}: {}", error.problem);
    }

    #[test]
    fn duplicates_are_named_by_place() {
        check(r#"{"a":1,"a":2}"#, "a", "duplicate key");
        check(r#"{"components":[{},{"values":{"x":{"k":1,"k":1}}}]}"#, "components[1].values.x.k", "duplicate key");
        check(r#"{"a":1} x"#, "", "trailing characters");
        check(r#"{"a":"#, "a", "EOF while parsing");
        check(r#"{"\u0061":1,"a":2}"#, "a", "duplicate key");
    }

    #[test]
    fn what_is_whole_is_read_as_serde_json_reads_it() {
        let text = r#"{"n":null,"i":-3,"u":18446744073709551615,"f":1.5,"s":"x","l":[1,[2]],"o":{"p":{}}}"#;
        assert_eq!(parse(text), Ok(serde_json::from_str(text).unwrap()));
    }
}
