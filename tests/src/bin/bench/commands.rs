//! Commands through the executor's journal: how long until one is acknowledged, and how many in a second.
//!
//! A command of an action that is not known takes the whole way of any other, into the journal and, before anything else is done, back as
//! an acknowledgement; it then ends at once, so that no cluster is part of what is measured.

use std::time::{Duration, Instant};

use agent_api::command::Command;
use agent_api::frame::{Down, ResultAck, Up};
use agent_api::name::CommandId;
use anyhow::{Context as _, Result, bail, ensure};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::append::Append;
use crate::lone::Lone;
use crate::percentile::Times;
use crate::table::{Table, figure};
use crate::vendor::{self, Socket, Vendor};

/// Commands that are sent one after the other.
const ONE_BY_ONE: u64 = 500;
/// Commands that are sent all at once.
const AT_ONCE: u64 = 1000;
/// After a command's end, so that the record of it is out of the next one's way.
const REST: Duration = Duration::from_millis(10);
/// All that is asked of the executor has happened by then.
const LIMIT: Duration = Duration::from_secs(300);

/// Bytes of a command's payload: the manifest of three components.
const PAYLOAD: usize = 2048;

/// Measures.
pub(crate) async fn measure(table: &mut Table) -> Result<()> {
    tokio::time::timeout(LIMIT, on_one_channel(table, PAYLOAD)).await.context("the executor is too slow")?
}

async fn on_one_channel(table: &mut Table, payload: usize) -> Result<()> {
    let vendor = Vendor::listen().await?;
    let executor = Lone::start(&vendor)?;
    let mut socket = vendor.accept().await?;
    let size = serde_json::to_vec(&command(1, payload))?.len();
    let mut bare = Append::new(&executor.home.join("state"), size)?;

    let (taken, appended) = one_by_one(&mut socket, &mut bare, payload).await?;
    let beside = |of_hundred| {
        let bare = appended.percentile(of_hundred);
        format!("bare append and fsync {} ms: {} times", figure(bare), figure(taken.percentile(of_hundred) / bare))
    };
    table.figure("command → acknowledgement, p50", taken.percentile(50), "ms", &beside(50));
    table.at_most("command → acknowledgement, p99", taken.percentile(99), 50.0, "ms", &beside(99));

    let (acknowledged, ended) = at_once(socket, payload).await?;
    let rate = AT_ONCE as f64 / acknowledged.as_secs_f64();
    let bare = in_a_row(&mut bare)?.per_second();
    let beside = format!("bare append and fsync, right after, {}/s: {} times", figure(bare), figure(rate / bare));
    table.figure("commands acknowledged, all sent at once", rate, "/s", &beside);
    let carried = AT_ONCE as f64 / ended.as_secs_f64();
    table.figure(
        "commands carried to a stored result",
        carried,
        "/s",
        "three records each; results beyond what the channel queues are delivered again after 15 s",
    );
    Ok(())
}

/// The bare appends that stand beside the commands sent at once: the disk as it is at that time.
fn in_a_row(bare: &mut Append) -> Result<Times> {
    let mut appended = Times::default();
    for _ in 0..AT_ONCE {
        appended.push(bare.once()?);
    }
    Ok(appended)
}

/// Each alone, and a bare append after each, so that both see the same disk.
async fn one_by_one(socket: &mut Socket, bare: &mut Append, payload: usize) -> Result<(Times, Times)> {
    let (mut taken, mut appended) = (Times::default(), Times::default());
    for sequence in 1..=ONE_BY_ONE {
        let command = command(sequence, payload);
        let (id, frame) = (command.id, Down::Command(command));
        let started = Instant::now();
        vendor::send(socket, &frame).await?;
        let mut acknowledged = false;
        loop {
            match vendor::next(socket).await? {
                Up::CommandAck(ack) if ack.id == id => {
                    taken.push(started.elapsed());
                    acknowledged = true;
                }
                Up::CommandResult(result) if result.id == id => break,
                Up::Heartbeat(_) => {}
                other => bail!("not expected: {other:?}"),
            }
        }
        ensure!(acknowledged, "a result came before its acknowledgement");
        vendor::send(socket, &Down::ResultAck(ResultAck { id })).await?;
        tokio::time::sleep(REST).await;
        appended.push(bare.once()?);
    }
    Ok((taken, appended))
}

/// All sent without waiting: when the last was acknowledged, and when the last result was here.
async fn at_once(socket: Socket, payload: usize) -> Result<(Duration, Duration)> {
    let (mut sink, mut stream) = socket.split();
    let (queue, mut queued) = mpsc::unbounded_channel();
    let started = Instant::now();
    for sequence in ONE_BY_ONE + 1..=ONE_BY_ONE + AT_ONCE {
        queue.send(Down::Command(command(sequence, payload)))?;
    }
    let sending = tokio::spawn(async move {
        while let Some(frame) = queued.recv().await {
            sink.send(vendor::message(&frame)?).await?;
        }
        Ok::<_, anyhow::Error>(())
    });
    let (mut acknowledged, mut ended, mut last) = (0, 0, Duration::ZERO);
    while acknowledged < AT_ONCE || ended < AT_ONCE {
        match vendor::frame(stream.next().await.context("the executor has left")??)? {
            Some(Up::CommandAck(_)) => {
                acknowledged += 1;
                last = started.elapsed();
            }
            Some(Up::CommandResult(result)) => {
                ended += 1;
                queue.send(Down::ResultAck(ResultAck { id: result.id }))?;
            }
            Some(Up::Heartbeat(_)) | None => {}
            Some(other) => bail!("not expected: {other:?}"),
        }
    }
    let end = started.elapsed();
    drop(queue);
    sending.await??;
    Ok((last, end))
}

fn command(sequence: u64, payload: usize) -> Command {
    Command {
        id: CommandId(Uuid::new_v4()),
        sequence,
        action: "measure".into(),
        target: "platform".into(),
        deadline: None,
        payload: json!("x".repeat(payload)),
    }
}
