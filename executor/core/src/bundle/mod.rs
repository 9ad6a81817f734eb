//! The rules of a bundle over its rendered, normalised objects: halves, scope, images, webhooks, order, stamps, pins.
//!
//! Pure: what is live in a cluster comes in through [`LiveServices`]. Nothing here renders, reads or applies. The only way to a
//! [`Judged`] bundle is [`judge`], and it reports every refusal at once.

mod fields;
mod images;
mod judged;
mod order;
pub mod pins;
mod refusal;
mod reserved;
mod scope;
mod stamp;
mod webhooks;

#[cfg(test)]
mod tests;

pub use images::same_image;
pub use judged::{Judged, LiveServices, Trusted, judge};
pub use order::{Phase, Wave};
pub use refusal::{Refusal, Refusals};
pub use scope::Scope;
pub use stamp::stamped;
pub use webhooks::Interception;
