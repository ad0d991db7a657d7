//! The CPU backend: memory, threads, and kernels over strided memory.

pub mod alloc;
mod answer;
mod answer_gather;
mod answer_random;
pub mod backend;
pub mod cast;
pub mod copy;
pub mod direct;
#[cfg(target_arch = "x86_64")]
mod few;
mod helpers;
pub mod index;
pub mod kernels;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod loaders;
pub mod logsumexp;
pub mod math;
pub mod matmul;
pub mod moments;
pub mod nll;
pub mod nonzero;
pub mod num;
pub mod places;
mod operands;
pub mod pointwise;
pub mod program;
pub mod random;
pub mod raw_slice;
pub mod reduce;
mod reduce_loops;
pub mod reducers;
pub mod reductions;
pub mod running;
pub mod scan;
pub mod select;
pub mod softmax;
#[cfg(target_arch = "x86_64")]
mod softmax_lanes;
mod source;
mod tally;
pub mod threads;
pub mod walk;
