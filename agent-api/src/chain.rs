//! How an error is told: with all its causes, in one line, the same in every program.

use std::error::Error;

/// The error and its causes, `: ` between them. A cause that an outer one has quoted already is left out.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes
        .map(ToString::to_string)
        .fold(error.to_string(), |text, cause| if text.contains(&cause) { text } else { format!("{text}: {cause}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Told(&'static str, #[source] Option<Box<Told>>);

    #[test]
    fn each_cause_once() {
        let error = Told("a", Some(Box::new(Told("b: c", Some(Box::new(Told("c", Some(Box::new(Told("d", None))))))))));
        assert_eq!(chain(&error), "a: b: c: d");
    }
}
