//! A row of the table: what is attempted, what for, and which layers deny it. The test asks it, the page shows it.

use reqwest::Method;
use serde_json::Value;

use crate::live::Live;

/// What denies an attempt, and by which words it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// RBAC: the account has no such right.
    Rbac,
    /// A rule of the scope guard.
    Guard(&'static str),
    /// A rule of the policies that compare with the approval.
    Pin(&'static str),
    /// The prefix guard of `pcm-executor`.
    Prefix,
    /// The API server's own validation: nobody can, whatever their rights.
    Server(&'static str),
}

impl Denial {
    /// As the page names it.
    pub(crate) fn layer(self) -> &'static str {
        match self {
            Self::Rbac => "RBAC",
            Self::Guard(_) => "scope guard",
            Self::Pin(_) => "pin",
            Self::Prefix => "prefix guard",
            Self::Server(_) => "API server",
        }
    }
}

/// Made only once there is a cluster to refer to: the page needs none.
type Requests = Box<dyn Fn(&Live) -> Vec<Request>>;

/// One line of the page, and the requests that make it true.
pub(crate) struct Row {
    pub(crate) attempt: String,
    pub(crate) hope: &'static str,
    /// Every layer that denies it alone, the first to be asked first. More than one entry of a layer: by either rule.
    pub(crate) denied: Vec<Denial>,
    pub(crate) requests: Requests,
}

/// A row of one or more requests.
pub(crate) fn row(
    attempt: impl Into<String>,
    hope: &'static str,
    denied: &[Denial],
    requests: impl Fn(&Live) -> Vec<Request> + 'static,
) -> Row {
    Row { attempt: attempt.into(), hope, denied: denied.to_vec(), requests: Box::new(requests) }
}

/// When a request is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// While all approved objects are there.
    Present,
    /// While one approved object of each kind is gone, so that the request would create it.
    Gone,
}

/// One request, as any client would send it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) body: Option<(&'static str, Value)>,
    pub(crate) when: When,
}

impl Request {
    pub(crate) fn body(mut self, media: &'static str, body: Value) -> Self {
        self.body = Some((media, body));
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn while_gone(mut self) -> Self {
        self.when = When::Gone;
        self
    }

    /// The same without storing anything; admission answers as if it were stored. Reads stay reads, and a connection has no such form.
    pub(crate) fn dry(mut self) -> Self {
        let connects = ["/exec", "/attach", "/portforward"].iter().any(|subresource| self.path.contains(subresource));
        if self.method != Method::GET && !connects && !self.path.contains("dryRun=") {
            self.path.push(if self.path.contains('?') { '&' } else { '?' });
            self.path.push_str("dryRun=All");
        }
        self
    }
}
