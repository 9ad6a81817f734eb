//! The client certificate: valid now and for a while, for this endpoint, and of the key beside it.

use super::finding::Findings;
use crate::clctl::client_certificate::ClientCertificate;
use crate::config::Config;

/// The daemon renews when this many days are left; fewer mean that it did not.
const RENEWED_AT_DAYS: i64 = 10;
/// What mends most of it.
const FIX: &str = "ask for a new enrolment token and run: clicklink clctl init --force --enroll URL --region REGION";

pub(super) fn check(config: &Config, findings: &mut Findings) {
    let tls = &config.api.tls;
    let certificate = match ClientCertificate::read(&tls.cert_file) {
        Ok(certificate) => certificate,
        Err(error) => return findings.fail(error.to_string(), FIX),
    };
    match certificate.has_key(&tls.key_file) {
        Ok(true) => findings.pass("the key is the certificate's"),
        Ok(false) => findings.fail(format!("{} is not the key of {}", tls.key_file.display(), tls.cert_file.display()), FIX),
        Err(error) => findings.fail(error.to_string(), FIX),
    }
    let host = reqwest::Url::parse(&config.api.endpoint).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if certificate.host == host {
        findings.pass(format!("organisation {}, for {host}", certificate.common_name));
    } else {
        findings.warn(
            format!("the certificate is for `{}`, api.endpoint leads to {host}", certificate.host),
            "set api.endpoint to the address that the enrolment gave",
        );
    }
    validity(&certificate, jiff::Timestamp::now(), findings);
}

fn validity(certificate: &ClientCertificate, now: jiff::Timestamp, findings: &mut Findings) {
    let days = certificate.not_after.duration_since(now).as_hours().div_euclid(24);
    let told = format!("valid until {}, {days} days left", certificate.not_after);
    if now < certificate.not_before {
        findings.fail(format!("not valid before {}", certificate.not_before), "set the clock: timedatectl set-ntp true");
    } else if now >= certificate.not_after {
        findings.fail(format!("ended {}", certificate.not_after), FIX);
    } else if days < RENEWED_AT_DAYS {
        findings.warn(told, "the executor renews it at 10 days left: see that it runs, and what its log says");
    } else {
        findings.pass(told);
    }
}
