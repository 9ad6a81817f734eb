//! A text that must not be shown.

use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

/// A token, key or password. It has no `Display`, its `Debug` shows nothing, and its memory is cleared when it is dropped.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Takes a text into custody.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself; each use is a place to look at.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails<E>(error: E) -> Result<(), E> {
        Err(error)
    }

    /// What a panic prints of a value, of an error, and of what holds them.
    #[test]
    fn a_panic_shows_nothing() {
        #[derive(Debug)]
        struct Holder {
            #[expect(dead_code, reason = "it is there to be shown")]
            token: Option<Secret>,
        }
        let planted = || Secret::new("hunter2".into());
        let text = |panicked: Result<(), Box<dyn std::any::Any + Send>>| *panicked.unwrap_err().downcast::<String>().unwrap();
        let panics = [
            text(std::panic::catch_unwind(|| fails(planted()).unwrap())),
            text(std::panic::catch_unwind(|| fails(Holder { token: Some(planted()) }).expect("a holder"))),
            text(std::panic::catch_unwind(|| assert_eq!(planted(), Secret::new("another".into())))),
        ];
        for text in panics {
            assert!(text.contains("[secret]") && !text.contains("hunter2") && !text.contains("another"), "{text}");
        }
    }

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", Secret::new("hunter2".into())), "[secret]");
    }
}
