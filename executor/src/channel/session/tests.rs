//! A connection against a manager of our own, with a relay between them that swallows, cuts and delays. Time is simulated.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_api::command::CommandStatus;
use agent_api::frame::{CommandResult, ResultAck};
use agent_api::name::{CommandId, ExecutorId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::{mpsc, watch};

use super::super::counters::Counters;
use super::super::outgoing::{End, Outgoing};
use super::super::{Incoming, Standing, read};
use super::*;

/// What the relay's buffers hold, as the kernel's would.
const BUFFER: usize = 64 << 10;

/// The relay's switches.
#[derive(Clone, Default)]
struct Relay {
    swallow_up: Arc<AtomicBool>,
    swallow_down: Arc<AtomicBool>,
    /// Bytes a second each way; 0 for as many as come.
    speed: u64,
}

impl Relay {
    /// The executor's and the manager's end.
    fn between(&self) -> (DuplexStream, DuplexStream) {
        let (executor, left) = duplex(BUFFER);
        let (right, manager) = duplex(BUFFER);
        let ((from_executor, to_executor), (from_manager, to_manager)) = (split(left), split(right));
        tokio::spawn(pass(from_executor, to_manager, Arc::clone(&self.swallow_up), self.speed));
        tokio::spawn(pass(from_manager, to_executor, Arc::clone(&self.swallow_down), self.speed));
        (executor, manager)
    }
}

async fn pass(mut from: ReadHalf<DuplexStream>, mut to: WriteHalf<DuplexStream>, swallow: Arc<AtomicBool>, speed: u64) {
    let mut buffer = vec![0; 4096];
    while let Ok(read) = from.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        if let Some(micros) = (1_000_000 * read as u64).checked_div(speed) {
            tokio::time::sleep(Duration::from_micros(micros)).await;
        }
        if !swallow.load(Ordering::SeqCst) && to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
    // An end is not told where bytes are swallowed.
    if swallow.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    let _ = to.shutdown().await;
}

/// The executor's side of a test.
struct Side {
    ends: Ends,
    incoming: mpsc::Receiver<Incoming>,
    leave: watch::Sender<()>,
}

fn side() -> Side {
    let (sender, incoming) = mpsc::channel(1024);
    let counters = Arc::<Counters>::default();
    let (leave, left) = watch::channel(());
    let ends = Ends {
        incoming: sender,
        outgoing: Arc::new(Outgoing::new(Arc::clone(&counters))),
        counters,
        state: watch::Sender::new(Standing::new()),
        leave: left,
    };
    Side { ends, incoming, leave }
}

fn hello() -> Hello {
    Hello {
        executor_id: ExecutorId(uuid::Uuid::nil()),
        cluster_uid: None,
        version: "0.1.0".into(),
        protocols: vec![1],
        last_sequence: 0,
        unacknowledged_results: Vec::new(),
    }
}

fn welcome() -> Message {
    let welcome = Welcome { protocol: 1, heartbeat_interval_s: 10, server_time: jiff::Timestamp::UNIX_EPOCH };
    Message::text(serde_json::to_string(&Down::Welcome(welcome)).unwrap())
}

fn id(n: u128) -> CommandId {
    CommandId(uuid::Uuid::from_u128(n))
}

fn result(n: u128, text: &str) -> Up {
    Up::CommandResult(CommandResult { id: id(n), status: CommandStatus::Completed, result: text.into(), objects: Vec::new(), code: None })
}

type Manager = WebSocketStream<DuplexStream>;

async fn manager(stream: DuplexStream) -> Manager {
    WebSocketStream::from_raw_socket(stream, Role::Server, None).await
}

/// The next frame up; none when the connection ended.
async fn heard(manager: &mut Manager) -> Option<Up> {
    loop {
        match manager.next().await {
            Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
            Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
            Some(Ok(_)) => {}
        }
    }
}

/// Answers pings until the connection ends.
async fn attend(mut manager: Manager) {
    while heard(&mut manager).await.is_some() {}
}

async fn connect(side: &Side, relay: &Relay, act: impl AsyncFnOnce(Manager)) -> Ended {
    let (executor, far) = relay.between();
    let far = async {
        let mut manager = manager(far).await;
        assert!(matches!(heard(&mut manager).await, Some(Up::Hello(_))));
        act(manager).await;
    };
    let (ended, ()) = tokio::join!(hold(executor, hello(), &side.ends), far);
    ended
}

async fn until_dead(switch: impl Fn(&Relay) -> Vec<Arc<AtomicBool>>) -> f64 {
    let (side, relay) = (side(), Relay::default());
    let switches = switch(&relay);
    let cut = Arc::new(std::sync::Mutex::new(None));
    let at = Arc::clone(&cut);
    let (executor, far) = relay.between();
    tokio::spawn(async move {
        let mut manager = manager(far).await;
        heard(&mut manager).await;
        manager.send(welcome()).await.unwrap();
        let attending = tokio::spawn(attend(manager));
        // Between two pings, and long after the first.
        tokio::time::sleep(Duration::from_millis(95_100)).await;
        *at.lock().unwrap() = Some(Instant::now());
        switches.iter().for_each(|switch| switch.store(true, Ordering::SeqCst));
        attending.await.unwrap();
    });
    let ended = hold(executor, hello(), &side.ends).await;
    assert!(matches!(ended.error, Some(SessionError::Dead)), "{ended:?}");
    let since = cut.lock().unwrap().expect("the link was good until then");
    since.elapsed().as_secs_f64()
}

#[tokio::test(start_paused = true)]
async fn a_dead_link_is_noticed_in_thirty_seconds() {
    let both = until_dead(|relay| vec![Arc::clone(&relay.swallow_up), Arc::clone(&relay.swallow_down)]).await;
    let up = until_dead(|relay| vec![Arc::clone(&relay.swallow_up)]).await;
    let down = until_dead(|relay| vec![Arc::clone(&relay.swallow_down)]).await;
    for seconds in [both, up, down] {
        assert!((15.0..=30.0).contains(&seconds), "both ways {both} s, up {up} s, down {down} s");
    }
}

/// The largest frames both ways, at once, on the slowest line that is served: neither is cut, though each takes longer than makes a
/// silent link dead.
#[tokio::test(start_paused = true)]
async fn a_slow_line_is_no_dead_link() {
    let (mut side, relay) = (side(), Relay { speed: agent_api::frame::SLOWEST as u64 + 1024, ..Relay::default() });
    let outgoing = Arc::clone(&side.ends.outgoing);
    let text = "x".repeat(MAX_BYTES - 1024);
    let ended = connect(&side, &relay, async |mut manager: Manager| {
        manager.send(welcome()).await.unwrap();
        outgoing.push(&result(1, &text));
        let command = agent_api::command::Command {
            id: id(2),
            sequence: 1,
            action: "sync_platform".into(),
            target: "platform".into(),
            deadline: None,
            payload: serde_json::Value::String(text.clone()),
        };
        let command = serde_json::to_string(&Down::Command(command)).unwrap();
        let (mut sink, mut stream) = manager.split();
        let down = async {
            sink.send(Message::text(command)).await.unwrap();
            // Further messages would end the connection's silence.
            std::future::pending::<()>().await;
        };
        let up = async {
            let mut seen = false;
            while let Some(Ok(message)) = stream.next().await {
                seen = seen || matches!(message, Message::Text(text) if text.len() > MAX_BYTES - 1024);
                if seen && side.incoming.len() == 2 {
                    return;
                }
            }
            panic!("cut before both were through");
        };
        tokio::select! { () = down => {}, () = up => {} }
    })
    .await;
    assert!(matches!(ended.error, Some(SessionError::Socket(_)) | None), "{ended:?}");
    assert!(matches!(side.incoming.recv().await, Some(Incoming::Connected(_))));
    assert!(matches!(side.incoming.recv().await, Some(Incoming::Command(command)) if command.id == id(2)));
}

#[tokio::test(start_paused = true)]
async fn what_breaks_the_protocol_is_closed_with_its_code() {
    let check = async |messages: Vec<Message>, expected: u16| {
        let (side, relay) = (side(), Relay::default());
        let seen = Arc::new(std::sync::Mutex::new(0));
        let code = Arc::clone(&seen);
        let ended = connect(&side, &relay, async move |mut manager: Manager| {
            for message in messages {
                manager.send(message).await.unwrap();
            }
            while let Some(Ok(message)) = manager.next().await {
                if let Message::Close(Some(close)) = message {
                    *code.lock().unwrap() = u16::from(close.code);
                }
            }
        })
        .await;
        assert!(matches!(ended.error, Some(SessionError::Broken(_))), "{ended:?}");
        assert_eq!(*seen.lock().unwrap(), expected);
        assert_eq!(Counters::get(&side.ends.counters.refused), 1);
    };
    check(vec![welcome(), Message::text("x".repeat(MAX_BYTES + 1))], 1009).await;
    check(vec![welcome(), Message::text(r#"{"type":"command","id":"#)], 1007).await;
    check(vec![welcome(), Message::text(r#"{"type":"result_ack"}"#)], 1007).await;
    check(vec![welcome(), Message::binary(vec![1])], 1003).await;
    check(vec![welcome(), welcome()], 1002).await;
    let ack = Message::text(serde_json::to_string(&Down::ResultAck(ResultAck { id: id(1) })).unwrap());
    check(vec![ack], 1002).await;
    check(vec![Message::binary(vec![1])], 1003).await;
}

#[tokio::test(start_paused = true)]
async fn unknown_types_are_counted_and_passed_over() {
    let (mut side, relay) = (side(), Relay::default());
    let ended = connect(&side, &relay, async |mut manager: Manager| {
        let later = Message::text(r#"{"type":"of_a_later_version","x":1}"#);
        let ack = Message::text(serde_json::to_string(&Down::ResultAck(ResultAck { id: id(7) })).unwrap());
        for message in [later.clone(), welcome(), later, ack] {
            manager.send(message).await.unwrap();
        }
        manager.close(None).await.unwrap();
        attend(manager).await;
    })
    .await;
    assert!(ended.welcomed.is_some() && ended.error.is_none(), "{ended:?}");
    assert_eq!(Counters::get(&side.ends.counters.skipped), 2);
    assert!(matches!(side.incoming.recv().await, Some(Incoming::Connected(_))));
    assert!(matches!(side.incoming.recv().await, Some(Incoming::ResultAck(acked)) if acked == id(7)));
}

/// The manager closes whenever it sees one of three results; the daemon delivers all of them on each connection.
#[tokio::test(start_paused = true)]
async fn a_poisoned_result_holds_up_no_other() {
    let (side, relay) = (side(), Relay::default());
    let mut stored = Vec::new();
    let mut connections = 0;
    while stored.len() < 2 {
        connections += 1;
        let outgoing = Arc::clone(&side.ends.outgoing);
        let seen = &mut stored;
        let ended = connect(&side, &relay, async |mut manager: Manager| {
            manager.send(welcome()).await.unwrap();
            for n in 1..=3 {
                outgoing.push(&result(n, "done"));
            }
            while let Some(Up::CommandResult(result)) = heard(&mut manager).await {
                if result.id == id(1) {
                    let refusal = CloseFrame { code: CloseCode::Error, reason: "internal error".into() };
                    manager.close(Some(refusal)).await.unwrap();
                    continue;
                }
                let ack = Down::ResultAck(ResultAck { id: result.id });
                manager.send(Message::text(serde_json::to_string(&ack).unwrap())).await.unwrap();
                seen.push(result.id);
                if seen.len() == 2 {
                    manager.close(None).await.unwrap();
                }
            }
        })
        .await;
        side.ends.outgoing.ended(ended.end());
    }
    assert_eq!((stored, connections), (vec![id(2), id(3)], 2));
}

/// A manager that reads nothing: what waits stays bounded, and the link ends.
#[tokio::test(start_paused = true)]
async fn a_manager_that_reads_nothing_costs_no_memory() {
    let (side, relay) = (side(), Relay::default());
    let outgoing = Arc::clone(&side.ends.outgoing);
    let began = Instant::now();
    let ended = connect(&side, &relay, async |mut manager: Manager| {
        manager.send(welcome()).await.unwrap();
        for n in 0..500 {
            outgoing.push(&result(n, &"x".repeat(1 << 20)));
        }
        tokio::time::sleep(Duration::from_secs(200)).await;
    })
    .await;
    assert!(matches!(ended.error, Some(SessionError::Dead)), "{ended:?}");
    assert!(began.elapsed() <= Duration::from_secs(201));
    assert!(Counters::get(&side.ends.counters.dropped) > 490);
    assert_eq!(ended.end(), End::Cut);
}

#[tokio::test(start_paused = true)]
async fn leaves_in_order_for_a_new_certificate() {
    let (side, relay) = (side(), Relay::default());
    let leave = side.leave.clone();
    let ended = connect(&side, &relay, async |mut manager: Manager| {
        manager.send(welcome()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        leave.send_replace(());
        let Some(Ok(Message::Close(Some(close)))) = manager.next().await else { panic!("no close") };
        assert_eq!(close.code, CloseCode::Normal);
        attend(manager).await;
    })
    .await;
    assert!(matches!(ended.error, Some(SessionError::Leaving)), "{ended:?}");
    assert!(matches!(read::frame("{}"), Read::Broken(_)));
}
