//! An open channel: what the executor says and hears.

use std::time::Duration;

use agent_api::command::{Command, CommandStatus, SyncPlatform};
use agent_api::digest::Sha256;
use agent_api::frame::{CommandAck, CommandProgress, CommandResult, Down, Hello, PROTOCOL, Up};
use agent_api::heartbeat::{
    AccessInfo, AccessState, ClusterInfo, CommandCounts, ExecutorInfo, ExecutorKind, Heartbeat, Platform, PlatformStatus,
};
use agent_api::name::{CommandId, ExecutorId};
use futures::{SinkExt as _, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// The first frame.
pub fn hello(executor_id: ExecutorId, last_sequence: u64) -> Up {
    Up::Hello(Hello {
        executor_id,
        cluster_uid: None,
        version: "0.1.0".into(),
        protocols: vec![PROTOCOL],
        last_sequence,
        unacknowledged_results: Vec::new(),
    })
}

/// An open channel.
pub struct Channel {
    /// The socket below.
    pub stream: WebSocketStream<reqwest::Upgraded>,
    id: ExecutorId,
    /// End of the approval that it reports, in whole seconds as approvals have it.
    until: Timestamp,
}

impl Channel {
    pub(super) fn new(stream: WebSocketStream<reqwest::Upgraded>, id: ExecutorId) -> Self {
        let now = Timestamp::now();
        let until = Timestamp::from_second(now.as_second()).unwrap() + SignedDuration::from_hours(2);
        Self { stream, id, until }
    }

    /// Says who it is, and where its journal stands.
    pub async fn hello(&mut self, last_sequence: u64) {
        self.say(&hello(self.id, last_sequence)).await;
    }

    /// Says any frame.
    pub async fn say(&mut self, frame: &Up) {
        self.raw(Message::text(serde_json::to_string(frame).unwrap())).await;
    }

    /// Sends what need not be a frame.
    pub async fn raw(&mut self, message: Message) {
        self.stream.send(message).await.unwrap();
    }

    /// The next frame; none when the channel ended. A test never waits longer than ten seconds.
    pub async fn next(&mut self) -> Option<Down> {
        loop {
            match tokio::time::timeout(Duration::from_secs(10), self.stream.next()).await.expect("a frame in time")? {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(other) => panic!("{other:?}"),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Whether nothing comes within a moment.
    pub async fn silent(&mut self) -> bool {
        loop {
            match tokio::time::timeout(Duration::from_millis(700), self.stream.next()).await {
                Err(_) => return true,
                Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => {}
                Ok(_) => return false,
            }
        }
    }

    /// The close code that the channel ends with.
    pub async fn close_code(&mut self) -> u16 {
        loop {
            match tokio::time::timeout(Duration::from_secs(10), self.stream.next()).await.expect("an end in time") {
                Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// A `sync_platform`, its payload checked.
    pub async fn sync(&mut self) -> (Command, SyncPlatform) {
        let Some(Down::Command(command)) = self.next().await else { panic!("no command") };
        assert_eq!((command.action.as_str(), command.target.as_str()), ("sync_platform", "platform"));
        let payload: SyncPlatform = serde_json::from_value(command.payload.clone()).unwrap();
        assert_eq!(Sha256::of(payload.manifest.as_bytes()), payload.sha256);
        (command, payload)
    }

    /// Says that a command is on disk.
    pub async fn ack(&mut self, id: CommandId) {
        self.say(&Up::CommandAck(CommandAck { id })).await;
    }

    /// Says how far a command has come.
    pub async fn progress(&mut self, id: CommandId, stage: &str) {
        self.say(&Up::CommandProgress(CommandProgress { id, stage: stage.into(), step: 1, of: 3, object: None })).await;
    }

    /// Says how a command ended, and takes the acknowledgement.
    pub async fn result(&mut self, id: CommandId, status: CommandStatus, text: &str) {
        let objects =
            serde_json::from_value(json!([{"group": "apps", "kind": "Deployment", "namespace": "n", "name": "d", "outcome": "created"}]));
        self.say(&Up::CommandResult(CommandResult { id, status, result: text.into(), objects: objects.unwrap(), code: None })).await;
        match self.next().await {
            Some(Down::ResultAck(ack)) => assert_eq!(ack.id, id),
            other => panic!("{other:?}"),
        }
    }

    /// Says what it sees of the platform.
    pub async fn heartbeat(&mut self, status: PlatformStatus, approved: Option<&Sha256>) {
        let heartbeat = Heartbeat {
            executor: ExecutorInfo {
                id: self.id,
                version: "0.1.0".into(),
                started_at: Timestamp::now(),
                uptime_s: 1,
                kind: ExecutorKind::Vm,
            },
            cluster: ClusterInfo::default(),
            access: AccessInfo { cluster: AccessState::Ok, platform: AccessState::Absent },
            platform: Platform {
                status,
                pending_sha256: approved.cloned(),
                approved_sha256: approved.cloned(),
                approval_expires_at: approved.map(|_| self.until),
                applied_sha256: None,
                attempts: 0,
                message: None,
                drift: approved.map(|_| 2),
                leftovers: 0,
            },
            components: Vec::new(),
            commands: CommandCounts::default(),
            approvals: Vec::new(),
        };
        self.say(&Up::Heartbeat(Box::new(heartbeat))).await;
    }

    /// Ends it in order.
    pub async fn close(mut self) {
        self.stream.close(None).await.unwrap();
        while self.stream.next().await.is_some() {}
    }
}
