//! AWS on one machine, as strict as the real one where the product could be wrong: the instance metadata service, STS, ECR and its
//! registry, under their real names and addresses, in a network of its own. Nothing in the product knows of it.
//!
//! [`Scenario`] says how they behave; [`Cloud::run`] runs a program there. The services themselves are the program `aws-fake`;
//! [`Moto`] can play some of them in its place.

mod cloud;
mod fake;
mod http;
mod moto;
mod relay;
mod scenario;
mod signature;

pub use self::cloud::{Cloud, Ran};
pub use self::fake::serve;
pub use self::moto::Moto;
pub use self::scenario::{Elsewhere, Imds, Keys, Scenario};
