//! Keys and certificates: the own authority, the server's certificate, executors' certificates, and sealing.

pub mod authority;
pub mod peer;
pub mod request;
pub mod seal;
pub mod server;
