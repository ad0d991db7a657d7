//! The kernels of rgrad, a crate of their own: it is compiled with the same settings in every profile, and once for all that uses it.
//! The rooms stand in their order; each imports only from those before it.

pub mod error;
pub mod layout;
pub mod pointwise;
pub mod backend;
