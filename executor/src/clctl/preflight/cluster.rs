//! The executor's own access to the cluster: reachable, as whom, with which rights; and the approval at hand, if any.

use cluster::connect::Connection;
use cluster::review::{self, Action};
use executor_core::TokenBundleError;

use super::finding::Findings;
use crate::approval;
use crate::clctl::executor::READS;
use crate::config::Config;
use crate::observe::Access;
use crate::terminal::chain;

/// What gives access.
const GRANT: &str = "clicklink clctl executor access grant --cluster, then clicklink clctl executor access apply --cluster";

pub(super) async fn check(config: &Config, findings: &mut Findings) {
    match Access::of(config).connect().await {
        Ok(Some(accessed)) => {
            rights(&accessed.connection, findings).await;
            if let Some(end) = accessed.expires_at {
                renewal(&accessed.connection, end, findings).await;
            }
        }
        Ok(None) => findings.warn("no access bundle _cluster: the executor cannot see the cluster, components stay unknown", GRANT),
        Err(error) => findings.fail(chain(&error), GRANT),
    }
    platform(config, findings);
}

async fn rights(connection: &Connection, findings: &mut Findings) {
    let server = &connection.server;
    match review::who_am_i(&connection.client).await {
        Ok(user) => findings.pass(format!("{server} is reachable as {user}")),
        Err(error) => {
            let fix =
                format!("let this machine reach {server}; where the token has ended: clicklink clctl executor access apply --cluster");
            return findings.fail(chain(&error), fix);
        }
    }
    let mut lacking = Vec::new();
    for (group, resources) in READS {
        for resource in resources.iter() {
            for verb in ["list", "watch"] {
                match review::may_i(&connection.client, Action { verb, group, resource, ..Action::default() }).await {
                    Ok(true) => {}
                    Ok(false) => lacking.push(format!("{verb} {resource}")),
                    Err(error) => return findings.fail(chain(&error), "see that the API server answers SelfSubjectAccessReviews"),
                }
            }
        }
    }
    if lacking.is_empty() {
        findings.pass("it may read all that is observed");
    } else {
        findings.fail(format!("it may not {}", lacking.join(", ")), "clicklink clctl executor access apply --cluster");
    }
}

/// Whether the executor may keep its token from ending; in a pod the kubelet does that.
async fn renewal(connection: &Connection, end: jiff::Timestamp, findings: &mut Findings) {
    let user = match review::who_am_i(&connection.client).await {
        Ok(user) => user,
        // Whoever is not let in was told so before.
        Err(_told) => return,
    };
    let Some((namespace, name)) = user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':')) else { return };
    let action = Action { verb: "create", resource: "serviceaccounts", subresource: "token", namespace, name, ..Action::default() };
    match review::may_i(&connection.client, action).await {
        Ok(true) => findings.pass(format!("its token is valid until {end}, and it may ask for the next one")),
        Ok(false) => findings.warn(
            format!("its token ends {end}, and it may not ask for the next one"),
            "clicklink clctl executor access grant --cluster --force, then clicklink clctl executor access apply --cluster",
        ),
        Err(error) => findings.fail(chain(&error), "see that the API server answers SelfSubjectAccessReviews"),
    }
}

fn platform(config: &Config, findings: &mut Findings) {
    match approval::read(&config.executor.access_dir) {
        Err(TokenBundleError::Absent) => findings.skip("no approval is at hand"),
        Err(TokenBundleError::Damaged(problem)) => {
            findings.warn(format!("the approval at hand: {problem}"), "clicklink clctl platform approve writes it anew");
        }
        Ok(credentials) => {
            let (sha256, end) = (&credentials.bundle.approval.bundle_sha256, credentials.bundle.expires_at());
            if end <= jiff::Timestamp::now() {
                findings.skip(format!("the approval of bundle {} ended {end}", sha256.short()));
            } else {
                findings.pass(format!("an approval of bundle {} is valid until {end}", sha256.short()));
            }
        }
    }
}
