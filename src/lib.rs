//! rgrad: an autograd engine. The rooms below stand in their order; each imports only from those before it.

pub(crate) use rgrad_kernels::{backend, host, program, simd};
pub use rgrad_kernels::{call, layout, rows};
pub mod error;
pub mod array;
pub mod autograd;
pub mod ops;
#[cfg(feature = "python")]
// Some of PyTorch's functions have `unsafe` in their names.
#[allow(clippy::unsafe_removed_from_name)]
mod python;

pub use array::Array;
pub use autograd::Tensor;
pub use error::{Error, Result};
pub use layout::{DType, Scalar};
