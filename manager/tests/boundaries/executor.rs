//! The simulated executor of the testbed, at the server of these tests.

use std::time::Duration;

use serde_json::Value;
pub(crate) use system_tests::simulated::{Executor, client, come, enrol, headers, hello, problem};

use crate::server::Server;

impl system_tests::simulated::Server for Server {
    fn organisation(&self) -> &str {
        "bank"
    }

    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn ca(&self) -> String {
        self.ca()
    }

    fn enrolment_token(&self, cluster: &str) -> String {
        self.run(&["executor", "enroll", "--cluster", cluster])
    }
}

/// Asks until it is so, for ten seconds at most.
pub(crate) async fn eventually(what: &str, mut ask: impl FnMut() -> Value, so: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..100 {
        let seen = ask();
        if so(&seen) {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what} did not come: {:#}", ask());
}
