//! Which ECR registry a host name means: its region, and by which kind of endpoint its services are reached.
//!
//! A login of AWS is sent to such a host and to no other. That is why a host without a region in its name is refused rather than
//! given the manifest's region: a manifest could name any host.

use super::error::AwsError;

/// Domains behind `<account>.dkr.ecr[-fips].<region>.`, one for each partition.
const IPV4_DOMAINS: [&str; 7] =
    ["amazonaws.com", "amazonaws.com.cn", "amazonaws.eu", "c2s.ic.gov", "sc2s.sgov.gov", "cloud.adc-e.uk", "csp.hci.ic.gov"];
/// Domains behind `<account>.dkr-ecr[-fips].<region>.`, which also have IPv6 addresses.
const DUAL_STACK_DOMAINS: [&str; 7] = [
    "on.aws",
    "on.amazonwebservices.com.cn",
    "on.amazonwebservices.eu",
    "on.aws.ic.gov",
    "on.aws.scloud",
    "on.cloud-aws.adc-e.uk",
    "on.aws.hci.ic.gov",
];

/// A private ECR registry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct EcrPlace {
    /// E.g. `eu-west-1`.
    pub(crate) region: String,
    /// Whether its endpoints are the validated ones.
    pub(crate) fips: bool,
    /// Whether its endpoints are those with IPv6 addresses too.
    pub(crate) dual_stack: bool,
    /// What the names of its endpoints end in, e.g. `amazonaws.com`.
    domain: &'static str,
}

impl EcrPlace {
    /// Reads a registry's host (`host[:port]`, lower case). A region that the manifest states must be the host's own.
    pub(super) fn of(host: &str, stated_region: Option<&str>) -> Result<Self, AwsError> {
        let place = Self::read(host.strip_suffix(":443").unwrap_or(host)).ok_or_else(|| AwsError::NotEcr(host.to_owned()))?;
        match stated_region {
            Some(stated) if stated != place.region => {
                Err(AwsError::Region { host: host.to_owned(), found: place.region, stated: stated.to_owned() })
            }
            Some(_) | None => Ok(place),
        }
    }

    fn read(host: &str) -> Option<Self> {
        let (account, rest) = host.split_once('.')?;
        if account.len() != 12 || !account.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let forms = [
            ("dkr.ecr.", false, false, &IPV4_DOMAINS),
            ("dkr.ecr-fips.", true, false, &IPV4_DOMAINS),
            ("dkr-ecr.", false, true, &DUAL_STACK_DOMAINS),
            ("dkr-ecr-fips.", true, true, &DUAL_STACK_DOMAINS),
        ];
        forms.into_iter().find_map(|(prefix, fips, dual_stack, domains)| {
            let (region, domain) = rest.strip_prefix(prefix)?.split_once('.')?;
            let plain = !region.is_empty() && region.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
            let domain = domains.iter().find(|known| **known == domain)?;
            plain.then(|| Self { region: region.to_owned(), fips, dual_stack, domain })
        })
    }

    /// Where ECR's validated API is by AWS's documentation, `ecr-fips.<region>.amazonaws.com`. The AWS library makes it `api.ecr-fips.…`,
    /// which is documented nowhere. `None` where the library is right.
    pub(super) fn fips_api(&self) -> Option<String> {
        (self.fips && !self.dual_stack).then(|| format!("https://ecr-fips.{}.{}", self.region, self.domain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_all_partitions() {
        for (host, expected) in [
            ("111122223333.dkr.ecr.eu-west-1.amazonaws.com", Some(("eu-west-1", false, false))),
            ("111122223333.dkr.ecr.eu-west-1.amazonaws.com:443", Some(("eu-west-1", false, false))),
            ("111122223333.dkr.ecr.cn-north-1.amazonaws.com.cn", Some(("cn-north-1", false, false))),
            ("111122223333.dkr.ecr.us-gov-west-1.amazonaws.com", Some(("us-gov-west-1", false, false))),
            ("111122223333.dkr.ecr-fips.us-gov-east-1.amazonaws.com", Some(("us-gov-east-1", true, false))),
            ("111122223333.dkr.ecr.eusc-de-east-1.amazonaws.eu", Some(("eusc-de-east-1", false, false))),
            ("111122223333.dkr.ecr.us-iso-east-1.c2s.ic.gov", Some(("us-iso-east-1", false, false))),
            ("111122223333.dkr.ecr.us-isob-east-1.sc2s.sgov.gov", Some(("us-isob-east-1", false, false))),
            ("111122223333.dkr-ecr.eu-west-1.on.aws", Some(("eu-west-1", false, true))),
            ("111122223333.dkr-ecr-fips.us-east-1.on.aws", Some(("us-east-1", true, true))),
            ("111122223333.dkr-ecr.cn-north-1.on.amazonwebservices.com.cn", Some(("cn-north-1", false, true))),
            // Anybody could own these.
            ("111122223333.dkr.ecr.eu-west-1.amazonaws.com.evil.example", None),
            ("111122223333.dkr.ecr.eu-west-1.evil-amazonaws.com", None),
            ("111122223333.dkr.ecr.evil.example.amazonaws.com", None),
            ("evil.example/111122223333.dkr.ecr.eu-west-1.amazonaws.com", None),
            ("111122223333.dkr.ecr.eu-west-1.on.aws", None),
            ("111122223333.dkr-ecr.eu-west-1.amazonaws.com", None),
            ("111122223333.dkr.ecr.eu-west-1.amazonaws.com:8443", None),
            ("111122223333.dkr.ecr..amazonaws.com", None),
            ("11112222333.dkr.ecr.eu-west-1.amazonaws.com", None),
            ("public.ecr.aws", None),
            ("registry.example:5000", None),
        ] {
            let found = EcrPlace::of(host, None).ok();
            let found = found.as_ref().map(|place| (place.region.as_str(), place.fips, place.dual_stack));
            assert_eq!(found, expected, "{host}");
        }
    }

    #[test]
    fn a_stated_region_must_be_the_host_s() {
        let host = "111122223333.dkr.ecr.eu-west-1.amazonaws.com";
        assert!(EcrPlace::of(host, Some("eu-west-1")).is_ok());
        let problem = EcrPlace::of(host, Some("us-east-1")).unwrap_err().to_string();
        assert!(problem.contains("eu-west-1") && problem.contains("us-east-1"), "{problem}");
    }
}
