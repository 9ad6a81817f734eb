//! How answers are printed: as a table for people, as JSON, YAML or bare names for programs.

use std::io::IsTerminal as _;

use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

use super::{CliError, Global, print};

/// How to print.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// All there is.
    Json,
    /// All there is.
    Yaml,
    /// Names only, one a line.
    Name,
}

/// A column: its heading, and where in the answer its text is (a JSON pointer).
pub type Column = (&'static str, &'static str);

/// Prints an answer: an object, or a list of them. The first column is the name.
///
/// # Errors
/// stdout.
pub fn show(global: &Global, answer: &Value, columns: &[Column]) -> Result<(), CliError> {
    let terminal = std::io::stdout().is_terminal();
    let format = global.output.unwrap_or(if terminal { Format::Table } else { Format::Json });
    print(&render(format, answer, columns))
}

fn render(format: Format, answer: &Value, columns: &[Column]) -> String {
    let rows = match answer {
        Value::Array(rows) => rows.as_slice(),
        one => std::slice::from_ref(one),
    };
    match format {
        Format::Json => format!("{answer:#}\n"),
        Format::Yaml => serde_saphyr::to_string(answer).unwrap_or_else(|_| format!("{answer:#}\n")),
        Format::Name => rows.iter().map(|row| format!("{}\n", columns.first().map(|c| cell(row, c.1)).unwrap_or_default())).collect(),
        Format::Table => table(rows, columns),
    }
}

fn table(rows: &[Value], columns: &[Column]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns.iter().map(|column| column.0));
    for row in rows {
        table.add_row(columns.iter().map(|column| cell(row, column.1)));
    }
    format!("{}\n", table.trim_fmt())
}

/// One value as text; control characters are shown, not obeyed.
fn cell(row: &Value, pointer: &str) -> String {
    let text = match row.pointer(pointer) {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().map(|item| cell(item, "")).collect::<Vec<_>>().join(","),
        Some(Value::Object(object)) => object.get("id").map_or_else(|| Value::from(object.clone()).to_string(), |id| cell(id, "")),
        Some(other) => other.to_string(),
    };
    text.chars().flat_map(|c| if c.is_control() && c != '\n' { c.escape_default().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn formats() {
        let answer = json!([{"name": "a", "n": 1, "deep": {"x": ["p", "q"]}}, {"name": "b\u{1b}[1m", "n": null}]);
        let columns = [("NAME", "/name"), ("N", "/n"), ("X", "/deep/x")];
        assert_eq!(render(Format::Name, &answer, &columns), "a\nb\\u{1b}[1m\n");
        let table = render(Format::Table, &answer, &columns);
        let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words, [vec!["NAME", "N", "X"], vec!["a", "1", "p,q"], vec!["b\\u{1b}[1m", "-", "-"]]);
        assert_eq!(serde_json::from_str::<Value>(&render(Format::Json, &answer, &columns)).unwrap(), answer);
        assert_eq!(serde_saphyr::from_str::<Value>(&render(Format::Yaml, &answer, &columns)).unwrap(), answer);
    }
}
