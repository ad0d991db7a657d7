//! Reductions: the traversal of strided memory, the loops that it calls, and the tables that choose them by operation and dtype.
//!
//! `reducers` define accumulators and how they merge; `loops` are compiled for each reducer and instruction set; `kernels` is the table;
//! `loaders` convert elements block by block before the loops; `variance` and `logsumexp` read each segment twice.
//!
//! Not here: argmax and argmin (`arg_reduce`), scans (`scan`, `cummax`), softmax.

pub(super) mod compute;
pub(super) mod input;
pub mod kernels;
mod loaders;
pub mod logsumexp;
pub(super) mod loops;
pub mod reducers;
mod segments;
mod traversal;
pub mod variance;

pub use input::{BlockProducer, ReduceInput};
pub use traversal::{FinishFn, ReduceKernel, run};
