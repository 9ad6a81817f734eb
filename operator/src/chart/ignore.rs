//! `.helmignore` as Helm reads it (helm.sh/helm, `internal/ignore`): one pattern a line, `#` comments, `!` for all but what fits, a trailing `/`
//! for folders, a `/` within for the whole path, else the last part of it. `**` is refused by Helm and here.

use regex_lite::Regex;

/// Patterns of a file.
#[derive(Debug, Default)]
pub(super) struct Ignored(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    negated: bool,
    folders_only: bool,
    /// Over the whole path, else over its last part.
    whole: bool,
    pattern: Regex,
}

/// A pattern that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(".helmignore, `{0}`: not a pattern that Helm takes")]
pub(super) struct PatternError(String);

/// What Helm always ignores.
const ALWAYS: &str = "templates/.?*";

impl Ignored {
    pub(super) fn parse(text: &str) -> Result<Self, PatternError> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Ok(Self(std::iter::once(ALWAYS).chain(lines).map(Rule::parse).collect::<Result<_, _>>()?))
    }

    /// Whether a path of the chart, with `/` between its parts, is left out.
    pub(super) fn matches(&self, path: &str, is_folder: bool) -> bool {
        let last = path.rsplit('/').next().unwrap_or(path);
        self.0.iter().any(|rule| {
            let fits = rule.pattern.is_match(if rule.whole { path } else { last });
            if rule.negated {
                // Helm: whatever is a folder where one is meant and does not fit.
                (!rule.folders_only || is_folder) && !fits
            } else {
                (!rule.folders_only || is_folder) && fits
            }
        })
    }
}

impl Rule {
    fn parse(line: &str) -> Result<Self, PatternError> {
        let refused = || PatternError(line.to_owned());
        if line.contains("**") {
            return Err(refused());
        }
        let (negated, rest) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let (folders_only, rest) = rest.strip_suffix('/').map_or((false, rest), |rest| (true, rest));
        let pattern = expression(rest.strip_prefix('/').unwrap_or(rest)).and_then(|text| Regex::new(&text).ok()).ok_or_else(refused)?;
        Ok(Self { negated, folders_only, whole: rest.contains('/'), pattern })
    }
}

/// A pattern of Go's `filepath.Match` as a regular expression.
fn expression(pattern: &str) -> Option<String> {
    let mut out = "^".to_owned();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '[' => {
                out.push('[');
                let mut closed = false;
                for c in chars.by_ref() {
                    match c {
                        ']' => {
                            closed = true;
                            break;
                        }
                        '^' | '-' => out.push(c),
                        c if c.is_alphanumeric() || c == '_' || c == '.' => out.push(c),
                        _ => return None,
                    }
                }
                if !closed {
                    return None;
                }
                out.push(']');
            }
            '\\' => escaped(&mut out, chars.next()?),
            c => escaped(&mut out, c),
        }
    }
    out.push('$');
    Some(out)
}

fn escaped(out: &mut String, c: char) {
    if !c.is_alphanumeric() && c != '_' && c != '/' && c.is_ascii() {
        out.push('\\');
    }
    out.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_helm() {
        for (patterns, path, is_folder, expected) in [
            ("# a comment\n\n", "a", false, false),
            ("*.swp", "a/b/x.swp", false, true),
            ("*.swp", "a/x.swpx", false, false),
            ("foo.txt", "a/foo.txt", false, true),
            ("a/foo.txt", "a/foo.txt", false, true),
            ("a/foo.txt", "b/a/foo.txt", false, false),
            ("/foo.txt", "foo.txt", false, true),
            ("/foo.txt", "a/foo.txt", false, false),
            (".idea/", ".idea", true, true),
            ("cargo/", "cargo", false, false),
            ("a/*.txt", "a/b/c.txt", false, false),
            ("x[0-9].md", "x7.md", false, true),
            ("x[^0-9].md", "x7.md", false, false),
            ("*~", "values.yaml~", false, true),
            ("!*.yaml", "a.txt", false, true),
            ("!*.yaml", "a.yaml", false, false),
            ("a?c", "abc", false, true),
        ] {
            assert_eq!(Ignored::parse(patterns).unwrap().matches(path, is_folder), expected, "{patterns} {path}");
        }
    }

    #[test]
    fn what_helm_refuses_is_refused() {
        for pattern in ["**/x", "a[", "x\\"] {
            assert!(Ignored::parse(pattern).is_err(), "{pattern}");
        }
    }
}
