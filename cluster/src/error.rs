//! What the API server, or the way to it, answered instead of an object.
//!
//! A message about a Secret never repeats the API server's text where that may quote the content.

use kube::core::Status;
use serde_json::Value;

/// What the API server says, with a 500, of an applied object that does not fit its schema.
const UNTYPED: &str = "failed to create typed patch object";

/// Why a request failed, after the retries that its kind allows. `about` names the object, or the request where there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// 401: the credential is not taken (any more).
    #[error("{about}: the API server does not accept the credential (401)")]
    Unauthorized {
        /// Object or request.
        about: String,
    },
    /// 403: not allowed, by RBAC, a quota or an admission plug-in.
    #[error("{about}: forbidden: {message}")]
    Forbidden {
        /// Object or request.
        about: String,
        /// The API server's text.
        message: String,
    },
    /// 409 on server-side apply: other field managers own fields with other values.
    #[error("{about}: field conflict: {}", show_fields(fields))]
    Conflict {
        /// Object.
        about: String,
        /// (manager, field) of each.
        fields: Vec<(String, String)>,
    },
    /// 409 on create.
    #[error("{about}: is there already")]
    AlreadyExists {
        /// Object.
        about: String,
    },
    /// 400, 413, 422: the object is refused as it is, by validation or an admission policy.
    #[error("{about}: refused: {message}")]
    Invalid {
        /// Object.
        about: String,
        /// The API server's text.
        message: String,
    },
    /// 404: the object, its namespace or its kind is not there.
    #[error("{about}: not found: {message}")]
    NotFound {
        /// Object or request.
        about: String,
        /// The API server's text.
        message: String,
    },
    /// What is there is being deleted: whatever is written to it goes with it.
    #[error("{about}: it is being deleted since {since}{}; wait until it is gone", held(finalizers))]
    Terminating {
        /// Object.
        about: String,
        /// When its deletion began, RFC 3339.
        since: String,
        /// What has to be done before it can go.
        finalizers: Vec<String>,
    },
    /// An admission webhook that must answer did not.
    #[error("{about}: blocked by webhook {webhook}{}: {message}", service.as_ref().map(|s| format!(" (Service {s})")).unwrap_or_default())]
    WebhookFailed {
        /// Object.
        about: String,
        /// Name of the webhook.
        webhook: String,
        /// `namespace/name` of its Service, where the text tells it.
        service: Option<String>,
        /// The API server's text.
        message: String,
    },
    /// No answer: connection, TLS, time-out.
    #[error("{about}: the API server cannot be reached: {message}")]
    Unreachable {
        /// Object or request.
        about: String,
        /// What happened.
        message: String,
    },
    /// Everything else: 429, 5xx, an answer that cannot be read, a kind that we do not know.
    #[error("{about}: {message}")]
    Other {
        /// Object or request.
        about: String,
        /// HTTP status, 0 where there is none.
        code: u16,
        /// What happened.
        message: String,
    },
}

fn held(finalizers: &[String]) -> String {
    if finalizers.is_empty() { String::new() } else { format!(" and is held by its finalizers {}", finalizers.join(", ")) }
}

fn show_fields(fields: &[(String, String)]) -> String {
    fields.iter().map(|(manager, field)| format!("{field} is owned by `{manager}`")).collect::<Vec<_>>().join(", ")
}

impl ClusterError {
    /// The error of a status document. `secret` withholds text that may quote content.
    pub(crate) fn of(about: &str, status: &Status, secret: bool) -> Self {
        let about = about.to_owned();
        let code = status.code;
        if let Some(webhook) = between(&status.message, "failed calling webhook \"", "\"") {
            let message = status.message.clone();
            return Self::WebhookFailed { about, webhook: webhook.to_owned(), service: webhook_service(&message), message };
        }
        let by_policy = status.message.contains("AdmissionPolicy '");
        let message = if secret && matches!(code, 400 | 413 | 422 | 500) && !by_policy {
            "the API server does not take the Secret (its text may quote the content and is not shown)".to_owned()
        } else {
            status.message.clone()
        };
        match code {
            401 => Self::Unauthorized { about },
            403 => Self::Forbidden { about, message },
            404 => Self::NotFound { about, message },
            409 if status.reason == "AlreadyExists" => Self::AlreadyExists { about },
            409 => match conflicts(status) {
                fields if fields.is_empty() => Self::Other { about, code, message },
                fields => Self::Conflict { about, fields },
            },
            400 | 413 | 422 => Self::Invalid { about, message },
            // So the API server says that an applied object has a field that its schema lacks: no other try will do.
            500 if status.message.contains(UNTYPED) => Self::Invalid { about, message },
            _ => Self::Other { about, code, message },
        }
    }

    /// Whether the same request may succeed a moment later. A denial, a field conflict and a refused object are answers, not faults.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::WebhookFailed { .. } | Self::Unreachable { .. } => true,
            Self::Other { code, .. } => matches!(code, 409 | 429 | 500..),
            Self::Unauthorized { .. }
            | Self::Forbidden { .. }
            | Self::Conflict { .. }
            | Self::AlreadyExists { .. }
            | Self::Invalid { .. }
            | Self::NotFound { .. }
            | Self::Terminating { .. } => false,
        }
    }

    /// Whether an admission policy of this name denied the request.
    #[must_use]
    pub fn denied_by(&self, policy: &str) -> bool {
        match self {
            Self::Invalid { message, .. } | Self::Forbidden { message, .. } => message.contains(&format!("AdmissionPolicy '{policy}'")),
            Self::Unauthorized { .. }
            | Self::Conflict { .. }
            | Self::AlreadyExists { .. }
            | Self::NotFound { .. }
            | Self::Terminating { .. }
            | Self::WebhookFailed { .. }
            | Self::Unreachable { .. }
            | Self::Other { .. } => false,
        }
    }
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let rest = text.split_once(start)?.1;
    Some(rest.split_once(end)?.0)
}

/// The error of an object whose deletion has begun; `None` for every other.
pub(crate) fn terminating(about: &str, object: &Value) -> Option<ClusterError> {
    let since = object.pointer("/metadata/deletionTimestamp")?.as_str()?.to_owned();
    Some(ClusterError::Terminating { about: about.to_owned(), since, finalizers: crate::object::finalizers(object) })
}

/// `Post "https://name.namespace.svc:443/path"` → `namespace/name`.
fn webhook_service(message: &str) -> Option<String> {
    let host = between(message, "https://", "/")?;
    let mut labels = host.split(':').next()?.split('.');
    let (name, namespace, svc) = (labels.next()?, labels.next()?, labels.next()?);
    (svc == "svc").then(|| format!("{namespace}/{name}"))
}

fn conflicts(status: &Status) -> Vec<(String, String)> {
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    causes
        .iter()
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .map(|cause| (between(&cause.message, "\"", "\"").unwrap_or("another manager").to_owned(), cause.field.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(value: serde_json::Value) -> Status {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn conflicts_name_manager_and_field() {
        let status = status(json!({"code": 409, "reason": "Conflict", "message": "Apply failed with 1 conflict", "details": {"causes": [
            {"reason": "FieldManagerConflict", "message": "conflict with \"kubectl\" using v1", "field": ".data.k"}]}}));
        let error = ClusterError::of("ConfigMap a/b", &status, false);
        assert_eq!(error.to_string(), "ConfigMap a/b: field conflict: .data.k is owned by `kubectl`");
        assert!(!error.is_transient());
    }

    #[test]
    fn a_dead_webhook_is_named_with_its_service() {
        let message = "Internal error occurred: failed calling webhook \"v.acme.io\": failed to call webhook: \
                       Post \"https://hook.acme.svc:443/validate?timeout=10s\": connection refused";
        let error = ClusterError::of("Pod a/b", &status(json!({"code": 500, "message": message})), false);
        let ClusterError::WebhookFailed { webhook, service, .. } = &error else { panic!("{error:?}") };
        assert_eq!((webhook.as_str(), service.as_deref()), ("v.acme.io", Some("acme/hook")));
        assert!(error.is_transient());
    }

    #[test]
    fn what_is_being_deleted_is_told_with_what_holds_it() {
        let told = |metadata: Value| terminating("Service a/b", &json!({"metadata": metadata})).map(|error| error.to_string());
        assert_eq!(told(json!({"name": "b", "finalizers": ["x.io/y"]})), None);
        let since = "2026-11-30T10:00:00Z";
        let expected = "Service a/b: it is being deleted since 2026-11-30T10:00:00Z; wait until it is gone";
        assert_eq!(told(json!({"deletionTimestamp": since})).as_deref(), Some(expected));
        let expected = "Service a/b: it is being deleted since 2026-11-30T10:00:00Z and is held by its finalizers x.io/y, foregroundDeletion; \
                        wait until it is gone";
        let held = json!({"deletionTimestamp": since, "finalizers": ["x.io/y", "foregroundDeletion"]});
        assert_eq!(told(held).as_deref(), Some(expected));
    }

    #[test]
    fn which_answers_are_worth_another_try() {
        for (code, reason, transient) in [
            (409, "Conflict", true),
            (409, "AlreadyExists", false),
            (429, "TooManyRequests", true),
            (500, "InternalError", true),
            (500, UNTYPED, false),
            (503, "ServiceUnavailable", true),
            (504, "Timeout", true),
            (401, "Unauthorized", false),
            (403, "Forbidden", false),
            (404, "NotFound", false),
            (422, "Invalid", false),
        ] {
            let error = ClusterError::of("x", &status(json!({"code": code, "reason": reason, "message": reason})), false);
            assert_eq!(error.is_transient(), transient, "{code} {reason}");
        }
    }

    #[test]
    fn a_refused_secret_is_not_quoted_but_a_policy_is() {
        let quoted = status(json!({"code": 422, "message": ".data: expected map, got &{hunter2}"}));
        assert!(!ClusterError::of("Secret a/b", &quoted, true).to_string().contains("hunter2"));
        let quoted = status(json!({"code": 500, "message": "failed to create typed patch object: got &{hunter2}"}));
        assert!(!ClusterError::of("Secret a/b", &quoted, true).to_string().contains("hunter2"));
        let denied = status(json!({"code": 422, "message":
            "secrets \"b\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: guard: namespace"}));
        let error = ClusterError::of("Secret a/b", &denied, true);
        assert!(error.denied_by("p") && !error.denied_by("q"));
    }
}
