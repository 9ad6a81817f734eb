//! The testbed: the real parts that the system tests, and the demos, run the built binaries against.
//!
//! [`ControlPlane`] is a Kubernetes control plane, [`Registry`] an OCI registry with the real `helm` to push charts,
//! [`Program`] a supervised process, [`binaries`] the product. A test uses each in one line and leaves nothing behind,
//! however it ends. Tests `unwrap` rather than return errors: the logs of a part are shown when its value is dropped in a panic.
//!
//! Not here: what is tested, which is in `tests/`, and anything that the product needs.

mod api_between;
mod applied;
pub mod aws;
mod binaries;
pub mod bundle;
pub mod chart_case;
mod control_plane;
mod encode;
mod eventually;
mod folder;
pub mod landscape;
pub mod operated;
mod pki;
mod port;
mod process;
mod registry;
pub mod simulated;
mod tools;

pub use self::api_between::{ApiBetween, Asked, Disturbance, Refusal, When};
pub use self::applied::applied_by;
pub use self::binaries::{Binaries, binaries, chart_engine, engine_sandbox};
pub use self::control_plane::{CONTEXT, ControlPlane, Shared, SignedToken};
pub use self::eventually::{eventually, until};
pub use self::folder::TempFolder;
pub use self::pki::{Authority, Identity};
pub use self::port::free_port;
pub use self::process::{Exit, Finished, Process, Program};
pub use self::registry::{PushedChart, Registry};
pub use self::tools::Tools;
