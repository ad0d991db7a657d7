//! The CPU backend: memory, threads, and kernels over strided memory.

pub mod alloc;
pub(crate) mod cast;
pub mod copy;
pub(crate) mod direct;
#[cfg(target_arch = "x86_64")]
mod few;
mod helpers;
pub(crate) mod index;
pub(crate) mod kernels;
#[cfg(target_arch = "x86_64")]
mod lanes;
pub(crate) mod logsumexp;
pub(crate) mod math;
pub(crate) mod matmul;
pub(crate) mod moments;
pub(crate) mod nll;
pub(crate) mod nonzero;
pub mod num;
pub(crate) mod places;
pub mod pointwise;
pub(crate) mod program;
pub(crate) mod random;
pub mod raw_slice;
pub(crate) mod reduce;
mod reduce_loops;
pub(crate) mod reducers;
pub(crate) mod running;
pub(crate) mod scan;
pub(crate) mod select;
pub(crate) mod softmax;
#[cfg(target_arch = "x86_64")]
mod softmax_lanes;
mod tally;
pub mod threads;
pub(crate) mod walk;
