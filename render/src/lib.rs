//! From a chart's reference to normalised objects: pull by digest, check the archive, let the confined chart engine render it,
//! normalise what comes back.
//!
//! Deliberately absent: any judgement of what was rendered (`executor-core`, module `bundle`), the Kubernetes API, and files of
//! ours on disk but for what the engine answered before (`cache`).

pub mod archive;
pub mod confine;
pub mod engine;
pub mod normalise;
pub mod pinned;
pub mod registry_access;
pub mod registry_check;
pub mod renderer;

mod cache;
mod capabilities;
mod difference;
mod images;
mod pull;

pub use cache::{Cache, CacheFolder};
pub use capabilities::own_crd_api_versions;
pub use confine::confined_main;
pub use difference::Difference;
pub use engine::{Engine, EngineError};
pub use normalise::LeftOut;
pub use pull::{AwsError, PullError, Who};
pub use registry_access::{RegistryAccess, RegistryAccessError};
pub use renderer::{DeniedImage, ImageReport, RenderError, Rendered, Renderer};
