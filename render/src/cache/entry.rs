//! The form of a kept answer: what it answers, the digest of both, the answer.
//!
//! A file that was cut short, damaged, renamed or written by something else is recognised. The digest is no signature: that nobody else
//! wrote the file is what the folder stands for.

use agent_api::digest::Sha256;

use super::FORMAT;

/// The file of an answer.
pub(super) fn close(key: &Sha256, answer: &[u8]) -> Vec<u8> {
    let mut file = head(key, answer).into_bytes();
    file.extend_from_slice(answer);
    file
}

/// The answer in a file; none where the file is not exactly what [`close`] made of it under this key.
pub(super) fn open<'a>(key: &Sha256, file: &'a [u8]) -> Option<&'a [u8]> {
    // The head's length is that of any head: format, key and digest have a fixed one.
    let (found, answer) = file.split_at_checked(head(key, &[]).len())?;
    (found == head(key, answer).as_bytes()).then_some(answer)
}

fn head(key: &Sha256, answer: &[u8]) -> String {
    format!("clicklink rendering {FORMAT}\n{key}\n{}\n", Sha256::of(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_but_the_whole_file_under_its_own_key_is_nothing() {
        let (key, other) = (Sha256::of(b"a question"), Sha256::of(b"another"));
        let file = close(&key, b"an answer");
        assert_eq!(open(&key, &file), Some(&b"an answer"[..]));
        assert_eq!(open(&key, &close(&key, b"")), Some(&b""[..]));
        assert_eq!(open(&other, &file), None);
        for length in 0..file.len() {
            assert_eq!(open(&key, &file[..length]), None, "cut after {length}");
        }
        for place in 0..file.len() {
            let mut damaged = file.clone();
            damaged[place] ^= 1;
            assert_eq!(open(&key, &damaged), None, "damaged at {place}");
        }
        assert_eq!(open(&key, &[file, b"!".to_vec()].concat()), None);
    }
}
