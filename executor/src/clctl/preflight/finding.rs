//! What a check found, and how all of it is shown.

use std::fmt::Write as _;

use serde::Serialize;

use crate::terminal::escaped;

/// What a check is about, in the order of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Category {
    Config,
    Files,
    Network,
    Certificate,
    Clock,
    Cluster,
    Registry,
    Engine,
    Landlock,
    Disk,
}

impl Category {
    pub(super) const ALL: [Self; 10] = [
        Self::Config,
        Self::Files,
        Self::Network,
        Self::Certificate,
        Self::Clock,
        Self::Cluster,
        Self::Registry,
        Self::Engine,
        Self::Landlock,
        Self::Disk,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Files => "files",
            Self::Network => "network",
            Self::Certificate => "certificate",
            Self::Clock => "clock",
            Self::Cluster => "cluster",
            Self::Registry => "registry",
            Self::Engine => "engine",
            Self::Landlock => "landlock",
            Self::Disk => "disk",
        }
    }
}

/// How a check ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// As it should be.
    Pass,
    /// It works, and somebody should look.
    Warn,
    /// It does not work.
    Fail,
    /// Not checked, and why.
    Skip,
}

/// One check's answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) category: Category,
    pub(super) outcome: Outcome,
    /// What was seen.
    pub(super) detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
}

/// Collects what the checks of one category find.
pub(super) struct Findings {
    category: Category,
    pub(super) found: Vec<Finding>,
}

impl Findings {
    pub(super) fn of(category: Category) -> Self {
        Self { category, found: Vec::new() }
    }

    fn add(&mut self, outcome: Outcome, detail: impl Into<String>, fix: Option<String>) {
        self.found.push(Finding { category: self.category, outcome, detail: detail.into(), fix });
    }

    pub(super) fn pass(&mut self, detail: impl Into<String>) {
        self.add(Outcome::Pass, detail, None);
    }

    pub(super) fn warn(&mut self, detail: impl Into<String>, fix: impl Into<String>) {
        self.add(Outcome::Warn, detail, Some(fix.into()));
    }

    pub(super) fn fail(&mut self, detail: impl Into<String>, fix: impl Into<String>) {
        self.add(Outcome::Fail, detail, Some(fix.into()));
    }

    pub(super) fn skip(&mut self, why: impl Into<String>) {
        self.add(Outcome::Skip, why, None);
    }
}

/// Whether the connector cannot work as it is.
pub(super) fn any_failed(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.outcome == Outcome::Fail)
}

/// A line for each, the fix below it, and the count at the end.
pub(super) fn text(findings: &[Finding]) -> String {
    let mut out = String::new();
    for finding in findings {
        let outcome = match finding.outcome {
            Outcome::Pass => "pass",
            Outcome::Warn => "warn",
            Outcome::Fail => "FAIL",
            Outcome::Skip => "skip",
        };
        let _ = writeln!(out, "{outcome}  {:<12}{}", finding.category.name(), escaped(&finding.detail, &[]));
        if let Some(fix) = &finding.fix {
            let _ = writeln!(out, "      {:<12}fix: {}", "", escaped(fix, &[]));
        }
    }
    let count = |outcome| findings.iter().filter(|finding| finding.outcome == outcome).count();
    let (passed, warned) = (count(Outcome::Pass), count(Outcome::Warn));
    let (failed, skipped) = (count(Outcome::Fail), count(Outcome::Skip));
    let _ = write!(out, "\n{passed} passed, {warned} warned, {failed} failed, {skipped} skipped");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_with_its_fix_and_counts() {
        let mut findings = Findings::of(Category::Files);
        findings.pass("a");
        findings.warn("b", "c");
        assert!(!any_failed(&findings.found));
        findings.fail("d", "e");
        assert!(any_failed(&findings.found));
        let text = text(&findings.found);
        assert!(text.contains("FAIL  files       d\n                  fix: e\n"), "{text}");
        assert!(text.ends_with("\n1 passed, 1 warned, 1 failed, 0 skipped"), "{text}");
    }
}
