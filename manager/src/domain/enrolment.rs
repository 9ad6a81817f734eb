//! Who may enrol: a one-time token that is still good, for an executor that nobody else is.

use jiff::Timestamp;

/// A one-time token as stored.
#[derive(Clone, Debug)]
pub struct Token {
    /// Good until then.
    pub expires_at: Timestamp,
    /// Redeemed before.
    pub used: bool,
}

/// An executor that enrolled before under the same id.
#[derive(Clone, Debug)]
pub struct Known {
    /// Whether it is in the token's cluster.
    pub same_cluster: bool,
    /// When its certificate ends, if it has one that was not revoked.
    pub certificate_until: Option<Timestamp>,
}

/// Why an executor may not enrol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Unknown, used or expired; which of them is not told.
    #[error("the enrolment token is not valid: it is good once, for one hour")]
    Token,
    /// The id is another cluster's executor.
    #[error("this executor id belongs to another cluster")]
    OtherCluster,
    /// The id has an unexpired certificate.
    #[error("this executor has an unexpired certificate")]
    HasCertificate,
}

/// Whether a token makes an executor. A known executor without a valid certificate (it stopped between its two requests, was
/// away too long, or was revoked) may enrol again in the same cluster and gets new keys.
///
/// # Errors
/// The first rule that is broken.
pub fn may_enroll(token: &Token, known: Option<&Known>, now: Timestamp) -> Result<(), Refusal> {
    if token.used || token.expires_at <= now {
        return Err(Refusal::Token);
    }
    match known {
        Some(known) if !known.same_cluster => Err(Refusal::OtherCluster),
        Some(known) if known.certificate_until.is_some_and(|until| until > now) => Err(Refusal::HasCertificate),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn check(used: bool, known: Option<(bool, Option<i64>)>, now: i64, expected: Result<(), Refusal>) {
        let token = Token { expires_at: at(3600), used };
        let known = known.map(|(same_cluster, until)| Known { same_cluster, certificate_until: until.map(at) });
        assert_eq!(may_enroll(&token, known.as_ref(), at(now)), expected, "{token:?} {known:?} {now}");
    }

    #[test]
    fn rules() {
        check(false, None, 0, Ok(()));
        check(false, None, 3599, Ok(()));
        check(false, None, 3600, Err(Refusal::Token));
        check(true, None, 0, Err(Refusal::Token));
        check(false, Some((true, None)), 0, Ok(()));
        check(false, Some((true, Some(10))), 10, Ok(()));
        check(false, Some((true, Some(10))), 9, Err(Refusal::HasCertificate));
        check(false, Some((false, None)), 0, Err(Refusal::OtherCluster));
    }
}
