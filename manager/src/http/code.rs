//! Stable codes of the problem documents: name, HTTP status, title, meaning. Each has a page in `docs/errors/http/`.

use axum::http::StatusCode;

macro_rules! codes {
    ($($variant:ident $name:literal $status:ident $title:literal $meaning:literal,)+) => {
        /// A stable code.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Code {
            $(#[doc = $meaning] $variant,)+
        }

        impl Code {
            /// All of them, in the order of the index.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// As in a problem document's `code`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The answer's status.
            #[must_use]
            pub fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)+ }
            }

            /// A problem document's `title`.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            /// One sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }
        }
    };
}

codes! {
    Unauthenticated "unauthenticated" UNAUTHORIZED "Not authenticated" "The request came without a valid bearer token.",
    Forbidden "forbidden" FORBIDDEN "Not allowed" "Whoever asks may not do this.",
    NotFound "not_found" NOT_FOUND "Not found" "There is no such thing, or no such route.",
    MethodNotAllowed "method_not_allowed" METHOD_NOT_ALLOWED "Method not allowed" "The path is right, the method is not.",
    InvalidRequest "invalid_request" BAD_REQUEST "Invalid request" "The body or a parameter is not right.",
    TooLarge "too_large" PAYLOAD_TOO_LARGE "Too large" "The body is larger than this route takes.",
    Timeout "timeout" REQUEST_TIMEOUT "Too slow" "The request was not complete in time.",
    AlreadyExists "already_exists" CONFLICT "Already there" "The name is in use.",
    ClusterHasEnvironment "cluster_has_environment" CONFLICT "Cluster has an environment" "The cluster has an environment already.",
    LastToken "last_token" CONFLICT "Last token" "The last valid token cannot be revoked.",
    ValuesSecret "values_secret" UNPROCESSABLE_ENTITY "Secrets in values" "Chart values of the release hold a secret.",
    ManifestRefused "manifest_refused" UNPROCESSABLE_ENTITY "Manifest refused" "The release becomes no valid manifest for this environment.",
    NothingProposed "nothing_proposed" NOT_FOUND "Nothing proposed" "Nothing was proposed to the environment.",
    EnrolmentTokenInvalid "enrolment_token_invalid" UNAUTHORIZED "Enrolment token not valid" "The one-time enrolment token is not good.",
    ExecutorElsewhere "executor_elsewhere" CONFLICT "Executor of another cluster" "The executor's id belongs to another cluster.",
    CertificateUnexpired "certificate_unexpired" CONFLICT "Certificate unexpired" "The executor has a certificate that has not ended.",
    CertificateRequestRefused "certificate_request_refused" UNPROCESSABLE_ENTITY "Certificate request refused" "The certificate request is not as it must be.",
    ClockApart "clock_apart" UNAUTHORIZED "Clocks apart" "The request was signed at another time than it is here.",
    SignatureInvalid "signature_invalid" UNAUTHORIZED "Signature not valid" "The request's signature is not right.",
    Replayed "replayed" UNAUTHORIZED "Request replayed" "The request was seen before.",
    SignedBeforeStart "signed_before_start" UNAUTHORIZED "Signed before the server's start" "The request was signed before this server started.",
    TooManyRequests "too_many_requests" TOO_MANY_REQUESTS "Too many requests" "Too many requests came with this key.",
    Busy "busy" SERVICE_UNAVAILABLE "Busy" "Executors are let in one after the other.",
    PollSessionUnknown "poll_session_unknown" CONFLICT "Poll session not known" "The poll session is over.",
    PollOvertaken "poll_overtaken" CONFLICT "Poll overtaken" "A newer request took the place of this one.",
    FrameRefused "frame_refused" BAD_REQUEST "Frame refused" "A frame in the poll breaks the protocol.",
    Stopping "stopping" SERVICE_UNAVAILABLE "Stopping" "The program is stopping.",
    CertificateRequired "certificate_required" UNAUTHORIZED "Certificate required" "The request came without a client certificate.",
    CertificateMismatch "certificate_mismatch" FORBIDDEN "Another certificate" "The client certificate is not the one of the executor that signed.",
    ExecutorRevoked "executor_revoked" UNAUTHORIZED "Executor revoked" "The vendor revoked this executor.",
    UpgradeRefused "upgrade_refused" BAD_REQUEST "Upgrade refused" "The request does not open a WebSocket.",
    Internal "internal" INTERNAL_SERVER_ERROR "Internal error" "Something failed in the manager.",
}

/// The index of the pages, as committed in `docs/errors/http/README.md`.
#[must_use]
pub fn index() -> String {
    let mut text = String::from(
        "# HTTP problem codes\n\nGenerated by `make gen`. An error of an HTTP interface is a problem document (RFC 9457); its `code` is \
         stable. These are navin-manager's; those of the executor's local API are [at the end of its errors](../README.md), with pages in \
         the same folder.\n\n| code | status | meaning |\n| --- | --- | --- |\n",
    );
    for code in Code::ALL {
        let (name, status, meaning) = (code.name(), code.status().as_u16(), code.meaning());
        text.push_str(&format!("| [`{name}`]({name}.md) | {status} | {meaning} |\n"));
    }
    text.push_str(
        "\n## The command line\n\n`navin-manager` prints an error as `error[code]: what happened` and ends with exit code 1. The code is the \
         API's, or one of its own:\n\n| code | meaning |\n| --- | --- |\n",
    );
    for (name, meaning) in crate::cli::code::ALL {
        text.push_str(&format!("| `{name}` | {meaning} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors/http")
    }

    /// Pages that say that the manager answers so.
    fn pages() -> BTreeSet<String> {
        let all = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
        let ours = |path: &PathBuf| {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().any(|line| line.starts_with("HTTP ") && line.contains("answered by navin-manager"))
        };
        all.filter(ours).map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn every_code_has_its_page_and_every_page_its_code() {
        let codes: BTreeSet<String> = Code::ALL.iter().map(|code| code.name().to_owned()).collect();
        assert_eq!(codes.len(), Code::ALL.len(), "a name is there twice");
        assert_eq!(pages(), codes);
    }

    #[test]
    fn every_page_tells_its_code_and_what_to_do() {
        for code in Code::ALL {
            let text = std::fs::read_to_string(folder().join(format!("{}.md", code.name()))).unwrap();
            let (name, meaning, status) = (code.name(), code.meaning(), code.status().as_u16());
            let heading = format!("# `{name}`\n\n{meaning}\n\nHTTP {status}, answered by navin-manager");
            assert!(text.starts_with(&heading), "{name}: it must begin with\n{heading}");
            for section in ["\n## Why\n", "\n## What to do\n"] {
                assert!(text.contains(section), "{name}: no section {section:?}");
            }
        }
    }

    #[test]
    fn the_index_is_fresh() {
        assert_eq!(std::fs::read_to_string(folder().join("README.md")).unwrap(), index(), "run `make gen`");
    }
}
