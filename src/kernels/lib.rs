//! The kernels of rgrad, a crate of their own, so that they are compiled with the same settings in every profile, and once for all users.
//! Modules are listed in order: each imports only from those before it.

pub mod error;
pub mod layout;
pub mod rows;
pub mod host;
pub mod simd;
pub mod call;
pub mod program;
pub mod backend;
