//! Free loopback ports, with no two tests of this machine getting the same one.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the range from which the kernel takes ports for outgoing connections.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// Names in the abstract socket namespace, one a port: other test processes see them, and they vanish with this process.
static CLAIMS: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port of 127.0.0.1 that nobody listens on and that no other test gets while this process lives.
///
/// # Panics
/// No port is free.
#[must_use]
pub fn free_port() -> u16 {
    let pid = std::process::id();
    let start = u16::try_from(pid.wrapping_mul(97) % u32::from(COUNT)).unwrap_or_default();
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (start.wrapping_add(step) % COUNT);
        let Some(claim) = claim(port) else { continue };
        if TcpListener::bind(("127.0.0.1", port)).is_err() {
            continue;
        }
        CLAIMS.lock().expect("no holder of this lock panics").push(claim);
        return port;
    }
    panic!("no free port from {FIRST} on");
}

fn claim(port: u16) -> Option<UnixListener> {
    let name = SocketAddr::from_abstract_name(format!("clicklink-testbed-port-{port}")).ok()?;
    UnixListener::bind_addr(&name).ok()
}
