//! After a restart all executors come at once: they are let in at the stated rate, the others are told when to come, and nobody is
//! answered wrongly. `EXECUTORS` says how many; a thousand need a minute to enrol.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;

use crate::executor::{Executor, client, come, enrol};
use crate::server::Server;

/// All are back by then.
const BACK: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn all_are_back_and_none_is_answered_wrongly() {
    let count: usize = std::env::var("EXECUTORS").map_or(200, |text| text.parse().unwrap());
    // As the defaults are for two thousand.
    let rate = (count / 20).max(5);
    let mut server = Server::configured(&format!("channel_connections_per_s: {rate}\nchannel_connections_burst: {rate}"));
    server.run(&["cluster", "create", "bank-eu"]);
    let (http, token) = (client(&server.ca(), None), server.token());
    let enrolled = futures::stream::iter(0..count).map(|_| enrol(&http, &server.endpoint, "bank-eu", &token)).buffer_unordered(16);
    let executors: Arc<Vec<Executor>> = Arc::new(enrolled.collect().await);
    server.restart();

    let began = Instant::now();
    let come = (0..count).map(|n| {
        let executors = Arc::clone(&executors);
        tokio::spawn(async move {
            let (mut channel, waits) = come(&executors[n], began + BACK).await;
            let at = began.elapsed();
            // As an executor does: read, so that pings are answered.
            tokio::spawn(async move { while channel.stream.next().await.is_some() {} });
            (waits, at)
        })
    });
    let back: Vec<(u32, Duration)> = futures::future::try_join_all(come).await.unwrap();
    let last = back.iter().map(|(_, at)| *at).max().unwrap();
    let waits = back.iter().map(|(waits, _)| *waits);
    let told: u32 = waits.clone().sum();
    println!("{count} executors at {rate}/s: the last was back after {last:?}; told to wait {told} times, one at most {:?}", waits.max());
    assert!(last >= Duration::from_secs(10), "a rate of {rate}/s lets nobody in so fast: {last:?}");
    let shown = server.json(&["executor", "list", "-o", "json"]);
    let connected = shown.as_array().unwrap().iter().filter(|executor| executor["connected"] == true).count();
    assert_eq!(connected, count);
}
