//! AWS on one machine, as strict as the real one where the product could be wrong: the instance metadata service, STS, ECR and its
//! registry, under their real names and addresses, in a network of its own. Nothing in the product knows of it.
//!
//! [`Scenario`] says how they behave; [`Cloud::run`] runs a program there. The services themselves are the program `aws-fake`.

mod cloud;
mod fake;
mod http;
mod relay;
mod scenario;
mod signature;

pub use self::cloud::{Cloud, Ran};
pub use self::fake::serve;
pub use self::scenario::{Imds, Keys, Scenario};
