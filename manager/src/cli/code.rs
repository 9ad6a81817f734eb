//! Stable codes of errors that are this command line's own. What the API answers has the API's codes; see `http::code`.

/// Name and meaning of each.
pub(crate) const ALL: [(&str, &str); 10] = [
    (USAGE, "The command line is not understood; exit code 2."),
    (NO_TOKEN, "No bearer token was given."),
    (FILE_UNREADABLE, "A file that was named cannot be read."),
    (FILE_INVALID, "A file that was named does not say what it must."),
    (FILE_NOT_WRITTEN, "The output could not be written."),
    (MANAGER_UNREACHABLE, "The server does not answer."),
    (MANAGER_ANSWER, "What answers is not this API."),
    (NOT_AGREED, "You did not agree, and nothing was changed."),
    (CONFIG_INVALID, "The server's configuration cannot be taken."),
    (SERVER_FAILED, "The server could not start, or not go on."),
];

pub(super) const USAGE: &str = "usage";
pub(super) const NO_TOKEN: &str = "no_token";
pub(super) const FILE_UNREADABLE: &str = "file_unreadable";
pub(super) const FILE_INVALID: &str = "file_invalid";
pub(super) const FILE_NOT_WRITTEN: &str = "file_not_written";
pub(super) const MANAGER_UNREACHABLE: &str = "manager_unreachable";
pub(super) const MANAGER_ANSWER: &str = "manager_answer";
pub(super) const NOT_AGREED: &str = "not_agreed";
pub(super) const CONFIG_INVALID: &str = "config_invalid";
pub(super) const SERVER_FAILED: &str = "server_failed";
