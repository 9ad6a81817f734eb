//! The closing lines of `approve`, read to the letter.

use anyhow::{Context, Result, ensure};

use crate::process::Finished;

/// What an approval says at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    /// Permission objects of the bundle.
    pub permissions: usize,
    /// End of the token, as it is written there.
    pub expiry: String,
    /// Workload objects of the bundle.
    pub workload: usize,
    /// The platform namespaces, joined.
    pub namespaces: String,
    /// `namespace/name` of the Secret, in the Kubernetes form.
    pub secret: Option<String>,
}

impl Closing {
    /// Reads the last lines of an approval's stdout.
    ///
    /// # Errors
    /// They are not worded as they must be, or do not come last.
    pub fn of(finished: &Finished) -> Result<Self> {
        let lines: Vec<&str> = finished.stdout.lines().collect();
        let first = lines.iter().position(|line| line.starts_with("Approved: ")).context("no line says that it is approved")?;
        let (permissions, expiry) = two(lines[first], "Approved: ", " permission object(s) applied, platform token valid until ", ".")?;
        let second = lines.get(first + 1).context("there is no second line")?;
        let (workload, namespaces) = two(second, "The executor may now apply the ", " workload object(s) of this bundle inside ", ".")?;
        let secret = match lines.get(first + 2) {
            None => None,
            Some(third) => Some(one(
                third,
                "Bundle written to Secret ",
                "; the executor pod sees it once the kubelet refreshes the mount, within about a minute.",
            )?),
        };
        ensure!(lines.len() <= first + 3, "more follows: {:?}", &lines[first..]);
        Ok(Self {
            permissions: permissions.parse().context(permissions)?,
            expiry,
            workload: workload.parse().context(workload)?,
            namespaces,
            secret,
        })
    }
}

fn one(line: &str, before: &str, after: &str) -> Result<String> {
    let inner = line.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    Ok(inner.with_context(|| format!("not `{before}…{after}`: {line}"))?.to_owned())
}

fn two(line: &str, before: &str, between: &str, after: &str) -> Result<(String, String)> {
    let inner = one(line, before, after)?;
    let (left, right) = inner.split_once(between).with_context(|| format!("without `{between}`: {line}"))?;
    Ok((left.to_owned(), right.to_owned()))
}
