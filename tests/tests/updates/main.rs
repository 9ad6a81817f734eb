//! A platform update at the customer's, with the built binaries on the real parts: what a person is told and asked, what is refused and why, and how
//! an approval holds and ends. Each file has a landscape of its own; two of them run side by side.

mod approve;
mod attributed;
mod changes;
mod checks;
mod consent;
mod interrupted;
mod least_secret;
mod plan;
mod renewal;
mod reset;
