//! Our resources as Rust types, from which their CustomResourceDefinitions are generated.
//!
//! Deliberately absent: what is done about a resource, which is its process's own.

pub mod component_kind;
pub mod managed_component;
