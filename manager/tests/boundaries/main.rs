//! The manager at its boundaries: the real program on loopback, a strict executor of our own, and the command line.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails, and shows the server's log")]

mod approvals;
mod certificate;
mod command_line;
mod executor;
mod executor_channel;
mod poll;
mod revocation;
mod server;
mod shedding;
