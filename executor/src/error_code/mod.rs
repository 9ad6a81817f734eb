//! Stable codes of the errors that a person can see: name, exit code, meaning. Each has a page in `docs/errors/`.
//!
//! Which error has which code is said by an exhaustive match: beside the enum for what is this program's own to tell a person, in
//! this folder for enums of other crates and of the daemon. Deliberately absent: what an HTTP interface answers (its own problem codes).

mod cluster;
mod daemon;
mod ended;
mod render;

use std::error::Error;

pub(crate) use daemon::of_start;
pub(crate) use ended::of_result;

/// An error that a person is shown.
pub(crate) trait Coded: Error {
    /// Which one it is.
    fn code(&self) -> Code;

    /// What to run or do next, one a line.
    fn hints(&self) -> Vec<String> {
        Vec::new()
    }
}

macro_rules! codes {
    ($($variant:ident $name:literal $exit:literal $meaning:literal,)+) => {
        /// A stable code.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Code {
            $(#[doc = $meaning] $variant,)+
        }

        impl Code {
            /// All of them, in the order of the index.
            pub(crate) const ALL: &[Self] = &[$(Self::$variant,)+];

            /// As printed: `error[name]`.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The program's exit code.
            pub(crate) fn exit(self) -> u8 {
                match self { $(Self::$variant => $exit,)+ }
            }

            /// One sentence.
            pub(crate) fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }
        }
    };
}

codes! {
    Usage "usage" 2 "The command line is not understood.",
    Internal "internal" 1 "Something failed that has no code of its own.",

    ConfigMissing "config_missing" 78 "The configuration file is not there.",
    ConfigUnreadable "config_unreadable" 78 "The configuration file is there and cannot be read.",
    ConfigInvalid "config_invalid" 78 "The configuration says something that is not taken.",
    CredentialsMissing "credentials_missing" 78 "A key or certificate of the connector cannot be read.",
    CredentialsDamaged "credentials_damaged" 78 "The connector's certificate, key or CA is damaged.",
    StateFolder "state_folder" 1 "The executor's state folder cannot be used.",
    StateFolderInUse "state_folder_in_use" 1 "Another executor works on the same state folder.",
    JournalFailed "journal_failed" 1 "The journal of commands cannot be read or written.",
    JournalDamaged "journal_damaged" 78 "The journal of commands is damaged.",
    JournalNewer "journal_newer" 78 "The journal of commands was written by a newer version.",
    JournalForeign "journal_foreign" 78 "The file at the journal's place is another program's database.",
    PortUnavailable "port_unavailable" 1 "A port that the executor listens on cannot be had.",

    LocalApiUnreachable "local_api_unreachable" 1 "The executor's local API does not answer.",
    LocalApiAnswer "local_api_answer" 1 "What answers at the address is not the executor's local API.",
    NotFound "not_found" 1 "The executor knows no such thing.",
    RequestRefused "request_refused" 1 "The executor's local API refused the request.",
    ExecutorStopping "executor_stopping" 1 "The executor is stopping and answers no more.",

    EnrolmentTokenMissing "enrolment_token_missing" 1 "No one-time enrolment token was given.",
    EnrolmentTokenInvalid "enrolment_token_invalid" 1 "The manager does not take the one-time enrolment token.",
    CertificateUnexpired "certificate_unexpired" 1 "The manager still counts a certificate of this executor as valid.",
    CertificateMissing "certificate_missing" 1 "The connector is configured, but its certificate is gone.",
    CertificateNotMade "certificate_not_made" 1 "The certificate request could not be made.",
    ExecutorElsewhere "executor_elsewhere" 1 "The manager knows this executor as one of another cluster.",
    SignatureInvalid "signature_invalid" 1 "The manager does not take the request's signature.",
    ChannelClosed "channel_closed" 1 "The manager closed the command channel.",
    ManagerUnreachable "manager_unreachable" 1 "The manager does not answer.",
    ManagerRefused "manager_refused" 1 "The manager refused the request.",
    ManagerAnswer "manager_answer" 1 "The manager's answer is not understood.",
    EndpointInvalid "endpoint_invalid" 1 "The manager's address is not of the form https://host[:port].",
    HandoffInvalid "handoff_invalid" 1 "The handoff file cannot be taken.",
    FileUnreadable "file_unreadable" 1 "A file that was named cannot be read.",
    FileNotWritten "file_not_written" 1 "A file or folder cannot be written.",

    KubeconfigUnusable "kubeconfig_unusable" 1 "Your kubeconfig gives no connection.",
    ContextNeeded "context_needed" 1 "It is not clear which context of your kubeconfig is meant.",
    KubeconfigRefused "kubeconfig_refused" 1 "The access bundle's kubeconfig has what is not allowed there.",
    ServerAddress "server_address" 1 "The API server's address or CA is not taken.",
    AccessDiffers "access_differs" 1 "The rendered access is not what this command would render.",
    AccessFolder "access_folder" 1 "The executor's access folder cannot be read or written.",
    TokenNotRenewed "token_not_renewed" 1 "The executor's own token was not renewed.",
    NotRegularFile "not_regular_file" 1 "A link, folder or device lies where a regular file is expected.",
    FileTooLarge "file_too_large" 1 "A file is larger than this program reads.",

    NothingStaged "nothing_staged" 1 "No platform bundle waits for approval.",
    StagedDamaged "staged_damaged" 1 "The staged bundle is damaged.",
    BundleUnreadable "bundle_unreadable" 1 "The bundle file that was named cannot be read.",
    BundleRefused "bundle_refused" 1 "The bundle breaks a rule, and nothing of it is taken.",
    OtherCluster "other_cluster" 1 "The chosen context leads to another cluster than the bundle was staged for.",
    NotApproved "not_approved" 1 "You did not agree, and nothing was changed.",
    KubernetesTooOld "kubernetes_too_old" 1 "The cluster is older than Kubernetes 1.30.",
    ObjectsRefused "objects_refused" 1 "Objects of the bundle cannot be applied as they are.",
    ApprovalTooLarge "approval_too_large" 1 "The workload half is too large to be pinned in one approval.",
    ApprovalChanged "approval_changed" 1 "Something in the cluster changes the approval while it is stored.",
    ApprovalOvertaken "approval_overtaken" 1 "Another approval, or a revocation, took the place of this one.",
    PermissionsStopped "permissions_stopped" 1 "Approval stopped in the middle of the permissions half.",
    ServicesExist "services_exist" 1 "Services run on the platform that was to be reset.",
    NotGone "not_gone" 1 "Something that was deleted is still there.",
    NotReady "not_ready" 1 "Something that was applied did not become ready.",
    GuardNotInForce "guard_not_in_force" 1 "An admission policy lets pass what it must deny.",
    GuardUnclear "guard_unclear" 1 "It could not be seen whether an admission policy denies.",
    WorkloadDenied "workload_denied" 1 "The executor would not be allowed to apply an object of the bundle.",
    OtherRights "other_rights" 1 "The executor's account has rights that somebody else gave.",
    TokenBundleNotWritten "token_bundle_not_written" 1 "The approval's token could not be handed to the executor.",

    ChartEngine "chart_engine" 1 "The chart engine is missing or does not run.",
    ChartStopped "chart_stopped" 1 "A chart used more time, memory or output than it may.",
    ChartNotRendered "chart_not_rendered" 1 "A chart cannot be rendered.",
    ChartDiffers "chart_differs" 1 "A chart renders differently each time.",
    ChartRefused "chart_refused" 1 "A chart's archive breaks a bound or is another chart.",
    RegistryAccess "registry_access" 78 "The registry's credentials or CA file cannot be used.",
    RegistryCredentials "registry_credentials" 1 "The registry does not let this program in.",
    RegistryNotFound "registry_not_found" 1 "The registry does not have a chart or image of the bundle.",
    RegistryUnreachable "registry_unreachable" 1 "The registry does not answer.",
    RegistryPlace "registry_place" 1 "The bundle's registry does not fit its mode or its region.",
    InstanceProfile "instance_profile" 1 "The EC2 instance profile gives no credentials.",
    AwsCredentials "aws_credentials" 1 "This process has no AWS credentials.",
    AwsRefused "aws_refused" 1 "AWS refuses the pull role or the login at ECR.",
    RegistryAnswer "registry_answer" 1 "The registry's answer is not what was pinned or expected.",

    ClusterUnauthorized "cluster_unauthorized" 1 "The API server does not accept the credential.",
    ClusterForbidden "cluster_forbidden" 1 "The API server does not allow the request.",
    FieldConflict "field_conflict" 1 "Somebody else owns fields of an object.",
    ObjectExists "object_exists" 1 "An object is there already.",
    ObjectRefused "object_refused" 1 "The API server refuses an object as it is.",
    ObjectNotFound "object_not_found" 1 "An object, its namespace or its kind is not there.",
    ObjectGoing "object_going" 1 "An object is being deleted.",
    WebhookFailed "webhook_failed" 1 "An admission webhook that must answer did not.",
    ClusterUnreachable "cluster_unreachable" 1 "The API server does not answer.",
    ClusterError "cluster_error" 1 "The API server failed in another way.",
}

/// The index of the pages, as committed in `docs/errors/README.md`.
pub(crate) fn index() -> String {
    let mut text = String::from(
        "# Errors\n\nGenerated by `make gen`. Every error is printed as `error[code]: what happened`, and where there is a next step, as \
         `hint: what to run` below it.\n\n\
         | exit code | means |\n| --- | --- |\n\
         | 0 | done |\n\
         | 1 | failed; the error says why |\n\
         | 2 | the command line is not understood; `platform approve --dry-run --detailed-exitcode` found something to change; \
         `preflight` found a failure; `registry check` found something that cannot be pulled |\n\
         | 78 | the configuration or the connector's credentials have to be mended first; starting again does not help |\n\n\
         | code | exit | meaning |\n| --- | --- | --- |\n",
    );
    for code in Code::ALL {
        let (name, exit, meaning) = (code.name(), code.exit(), code.meaning());
        text.push_str(&format!("| [`{name}`]({name}.md) | {exit} | {meaning} |\n"));
    }
    text.push_str(&ended::index());
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    fn pages() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors")
    }

    #[test]
    fn every_code_has_its_page_and_every_page_its_code() {
        let names = Code::ALL.iter().map(|code| code.name()).chain(executor_core::EndCode::ALL.iter().map(|code| code.as_str()));
        let expected: BTreeSet<String> = names.map(|name| format!("{name}.md")).chain(["README.md".into(), "http".into()]).collect();
        assert_eq!(expected.len(), Code::ALL.len() + executor_core::EndCode::ALL.len() + 2, "a name is there twice");
        let found: BTreeSet<String> =
            std::fs::read_dir(pages()).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_page_tells_its_code_and_what_to_do() {
        for code in Code::ALL {
            let text = std::fs::read_to_string(pages().join(format!("{}.md", code.name()))).unwrap();
            let heading = format!("# `{}`\n\n{}\n\nExit code {}.\n", code.name(), code.meaning(), code.exit());
            assert!(text.starts_with(&heading), "{}: it must begin with\n{heading}", code.name());
            for section in ["\n## Why\n", "\n## What to do\n"] {
                assert!(text.contains(section), "{}: no section {section:?}", code.name());
            }
        }
    }

    #[test]
    fn the_index_is_fresh() {
        assert_eq!(std::fs::read_to_string(pages().join("README.md")).unwrap(), index(), "run `make gen`");
    }
}
