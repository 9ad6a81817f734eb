//! The services of `system_tests::aws`: `aws-fake ORDER`, where ORDER is the file that `Cloud` writes.

use std::path::PathBuf;

use anyhow::{Context, Result};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let order = std::env::args_os().nth(1).map(PathBuf::from).context("usage: aws-fake ORDER")?;
    system_tests::aws::serve(&order).await
}
