//! The others: the manager with its proposals, and the cluster with the person's approvals.

use std::collections::BTreeMap;

use agent_api::approval::{Approval, Capabilities, Versions};
use agent_api::command::{Command, CommandStatus, SYNC_PLATFORM, TARGET_PLATFORM};
use agent_api::digest::Sha256;
use agent_api::frame::CommandResult;
use agent_api::keys;
use agent_api::name::{CommandId, InstallId};
use agent_api::object::ObjectKey;
use executor_core::TokenBundle;
use executor_core::bundle::stamped;
use serde_json::{Value, json};

use crate::bundles::Made;

/// The manager: what it sent, and what it was told.
#[derive(Default)]
pub(crate) struct Manager {
    pub(crate) sent: BTreeMap<CommandId, Sent>,
    pub(crate) proposal: Option<usize>,
    sequence: u64,
}

/// A command, as the manager knows it.
pub(crate) struct Sent {
    pub(crate) command: Command,
    /// The bundle, `None` where the command was damaged on purpose.
    pub(crate) bundle: Option<Sha256>,
    pub(crate) acknowledged: bool,
    pub(crate) result: Option<CommandResult>,
}

impl Manager {
    /// A new sync command of a bundle; its id grows with its sequence.
    pub(crate) fn sync(&mut self, bundle: &Made, damaged: bool) -> Command {
        self.sequence += 1;
        let id = CommandId(agent_api::Uuid::from_u128(u128::from(self.sequence)));
        let manifest = if damaged { format!("{} ", bundle.text) } else { bundle.text.clone() };
        let command = Command {
            id,
            sequence: self.sequence,
            action: SYNC_PLATFORM.into(),
            target: TARGET_PLATFORM.into(),
            deadline: None,
            payload: json!({"sha256": bundle.sha256, "manifest": manifest}),
        };
        let bundle = (!damaged).then(|| bundle.sha256.clone());
        self.sent.insert(id, Sent { command: command.clone(), bundle, acknowledged: false, result: None });
        command
    }

    /// A result has come; the first is kept, and every later one must be the same, unless the executor has forgotten the command.
    pub(crate) fn take_result(&mut self, result: CommandResult, forgotten: bool) {
        let sent = self.sent.get_mut(&result.id).unwrap_or_else(|| panic!("a result of command {}, which was never sent", result.id));
        match &sent.result {
            Some(first) => {
                let dismissed = forgotten && result.status == CommandStatus::Failed && result.result.contains("is not run again");
                assert!(first == &result || dismissed, "one command, two results: {first:?} and {result:?}");
            }
            None => sent.result = Some(result),
        }
    }

    /// Whether a sync of this bundle is under way.
    pub(crate) fn waits_for(&self, sha256: &Sha256) -> bool {
        self.sent.values().any(|sent| sent.result.is_none() && sent.command.payload["sha256"] == sha256.as_str())
    }
}

/// The cluster: what the person applied, what the executor wrote.
#[derive(Default)]
pub(crate) struct Cluster {
    account: Option<Value>,
    permissions: BTreeMap<ObjectKey, Value>,
    pub(crate) token: Option<Token>,
    pub(crate) workload: BTreeMap<ObjectKey, Value>,
}

/// What `approve` left for the executor.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) bundle: TokenBundle,
    /// When the API server stops taking it, by its own clock.
    valid_until: u64,
    revoked: bool,
}

impl Cluster {
    /// A person approves; times in milliseconds, `shown` by the person's clock, `now` by the API server's.
    pub(crate) fn approve(&mut self, bundle: &Made, now: u64, shown: jiff::Timestamp, ttl_ms: u64) {
        let workload = bundle.judged.workload_sha256();
        let expires_at = shown + std::time::Duration::from_millis(ttl_ms);
        for object in bundle.judged.permissions() {
            self.permissions.insert(object.key(), stamped(object, &bundle.sha256));
        }
        self.account = Some(json!({"metadata": {"annotations": {keys::BUNDLE_SHA256: bundle.sha256, keys::WORKLOAD_SHA256: workload}}}));
        let approval = Approval {
            bundle_sha256: bundle.sha256.clone(),
            workload_sha256: workload,
            cluster_uid: "uid".into(),
            install_id: InstallId(agent_api::Uuid::from_u128(1)),
            approved_by: "person".into(),
            approved_at: shown,
            expires_at,
            home_namespace: "home".into(),
            capabilities: Capabilities::default(),
            versions: Versions::default(),
            leftovers: 0,
        };
        let bundle = TokenBundle { approval, token_expires_at: expires_at };
        self.token = Some(Token { bundle, valid_until: now + ttl_ms, revoked: false });
    }

    /// Somebody edits what was approved.
    pub(crate) fn tamper(&mut self) {
        if let Some(object) = self.permissions.values_mut().next() {
            object["metadata"]["labels"]["edition"] = json!("mine");
        }
    }

    /// The account's token is taken back.
    pub(crate) fn revoke(&mut self) {
        if let Some(token) = &mut self.token {
            token.revoked = true;
        }
    }

    pub(crate) fn account(&self) -> Option<Value> {
        self.account.clone()
    }

    pub(crate) fn permission(&self, key: &ObjectKey) -> Option<Value> {
        self.permissions.get(key).cloned()
    }

    /// Whether another token took this one's place.
    pub(crate) fn replaced(&self, token: &Token) -> bool {
        self.token.as_ref().is_none_or(|live| live.bundle != token.bundle)
    }

    /// Whether the API server takes this token. One that was replaced admission denies.
    pub(crate) fn takes(&self, token: &Token, now: u64) -> bool {
        !self.replaced(token) && self.token.as_ref().is_some_and(|live| !live.revoked) && now < token.valid_until
    }

    /// The bundle that the live account is annotated with.
    pub(crate) fn approved(&self) -> Option<String> {
        let account = self.account.as_ref()?;
        account["metadata"]["annotations"][keys::BUNDLE_SHA256].as_str().map(str::to_owned)
    }
}
