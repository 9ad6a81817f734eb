//! File names inside the two access bundles, and inside the Secret that carries the token bundle into a pod.

/// A ServiceAccount token.
pub const TOKEN: &str = "token";
/// PEM certificates of the API server's CA.
pub const CA_CRT: &str = "ca.crt";
/// `https://host[:port]` of the API server.
pub const SERVER: &str = "server";
/// The approval that the token was minted for: [`crate::approval::Approval`]. Only in the token bundle of `pcm-platform`.
pub const APPROVAL: &str = "approval.json";
/// The rendered grant, for review. Only in `pcm-executor`'s bundle.
pub const RBAC: &str = "rbac.yaml";
