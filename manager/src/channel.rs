//! The executor channel: who is connected, what goes over a connection, and the task that decides what is sent.
//!
//! Who may connect was settled before, in `http`. Frames are the same on every transport, so handling them is apart from the socket.

pub mod connection;
pub mod connections;
pub mod counters;
pub mod deliveries;
pub mod fleet;
pub mod heard;
pub mod inbound;
pub mod poll;
pub mod progress;
pub mod read;
