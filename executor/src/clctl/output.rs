//! `-o table|json|yaml|name`: a table on a terminal, JSON otherwise.

use std::process::ExitCode;

use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use crate::error_code::Code;
use crate::terminal::{data, escaped, fail, stdout_is_terminal};

/// How data is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Columns, for people.
    Table,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Names only, one a line.
    Name,
}

impl Output {
    /// What was asked for, or what fits stdout.
    pub(crate) fn or_default(chosen: Option<Self>) -> Self {
        chosen.unwrap_or(if stdout_is_terminal() { Self::Table } else { Self::Json })
    }

    /// Prints a value in the chosen form; `rows` and `name` are made only where they are wanted.
    pub(crate) fn print<T: Serialize>(
        self,
        value: &T,
        header: &[&str],
        rows: impl FnOnce() -> Vec<Vec<String>>,
        names: impl FnOnce() -> Vec<String>,
    ) -> ExitCode {
        match self {
            Self::Table => data(table(header, rows())),
            Self::Json => match serde_json::to_string_pretty(value) {
                Ok(text) => data(text),
                Err(error) => return fail(Code::Internal, &error),
            },
            Self::Yaml => match serde_saphyr::to_string(value) {
                Ok(text) => data(text.trim_end()),
                Err(error) => return fail(Code::Internal, &error),
            },
            Self::Name => names().into_iter().for_each(data),
        }
        ExitCode::SUCCESS
    }
}

/// Columns without lines, as kubectl prints them; nothing is cut.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(header.to_vec());
    for row in rows {
        table.add_row(row.iter().map(|cell| escaped(cell, &[])));
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
