//! One port of the machine's loopback, carried into a network namespace by a socket in the file system.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Outside: whoever connects to the socket reaches the port. Ends with the runtime.
pub(super) fn outside(socket: &Path, port: u16) -> Result<()> {
    let listener = UnixListener::bind(socket).with_context(|| format!("listening at {}", socket.display()))?;
    tokio::spawn(async move {
        while let Ok((mut inner, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut outer = TcpStream::connect(("127.0.0.1", port)).await?;
                copy_bidirectional(&mut inner, &mut outer).await
            });
        }
    });
    Ok(())
}

/// Inside: whoever connects to the port reaches the socket.
pub(super) async fn inside(port: u16, socket: PathBuf) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.with_context(|| format!("port {port}"))?;
    tokio::spawn(async move {
        while let Ok((mut inner, _)) = listener.accept().await {
            let socket = socket.clone();
            tokio::spawn(async move {
                let mut outer = UnixStream::connect(socket).await?;
                copy_bidirectional(&mut inner, &mut outer).await
            });
        }
    });
    Ok(())
}
