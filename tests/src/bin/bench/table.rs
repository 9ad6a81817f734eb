//! The one table that is printed.

use std::fmt::{Display, Formatter, Result};

const HEAD: [&str; 4] = ["measure", "value", "goal", "verdict, or what is beside it"];

/// Rows in the order in which they were measured.
#[derive(Default)]
pub(crate) struct Table(Vec<[String; 4]>);

impl Table {
    /// A figure with a goal that it must not exceed.
    pub(crate) fn at_most(&mut self, measure: &str, value: f64, goal: f64, unit: &str, beside: &str) {
        let verdict = if value <= goal { "met" } else { "MISSED" };
        let beside = if beside.is_empty() { verdict.to_owned() } else { format!("{verdict}; {beside}") };
        self.0.push([measure.into(), format!("{} {unit}", figure(value)), format!("≤ {} {unit}", figure(goal)), beside]);
    }

    /// A figure with a goal that it must reach.
    pub(crate) fn at_least(&mut self, measure: &str, value: f64, goal: f64, unit: &str, beside: &str) {
        let verdict = if value >= goal { "met" } else { "MISSED" };
        let beside = if beside.is_empty() { verdict.to_owned() } else { format!("{verdict}; {beside}") };
        self.0.push([measure.into(), format!("{} {unit}", figure(value)), format!("≥ {} {unit}", figure(goal)), beside]);
    }

    /// A figure without a goal of its own.
    pub(crate) fn figure(&mut self, measure: &str, value: f64, unit: &str, beside: &str) {
        self.0.push([measure.into(), format!("{} {unit}", figure(value)), "–".into(), beside.into()]);
    }
}

/// Three figures that matter.
pub(crate) fn figure(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let head = HEAD.map(str::to_owned);
        let width = |column: usize| {
            let cells = self.0.iter().chain([&head]).map(|row| row[column].chars().count());
            cells.max().unwrap_or_default()
        };
        let widths: [usize; 4] = std::array::from_fn(width);
        let line = |f: &mut Formatter<'_>, row: &[String; 4]| {
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
            writeln!(f, "| {} |", cells.collect::<Vec<_>>().join(" | "))
        };
        line(f, &head)?;
        line(f, &widths.map(|width| "-".repeat(width)))?;
        self.0.iter().try_for_each(|row| line(f, row))
    }
}
