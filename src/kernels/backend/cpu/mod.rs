//! The CPU backend: host memory (`memory`), parallel loops (`threads`), numbers and functions for each instruction set (`num`, `math`), and
//! one module or folder of kernels for each family of requests. `backend` implements the contract, `answer*` turn requests into calls of
//! kernels. Not here: shapes and dtypes of results (`ops`), and the decision when a program runs (`array`).

pub mod along;
mod answer;
mod answer_attention;
mod answer_gather;
mod answer_gemm;
mod answer_pool;
mod answer_random;
mod answer_recurrent;
mod arg_narrow;
pub mod arg_reduce;
pub mod attention;
pub mod blocks;
pub mod backend;
pub mod cast;
#[cfg(target_arch = "x86_64")]
mod cast_half;
mod conv;
pub mod copy;
pub mod cummax;
mod epilogue;
pub mod grid;
mod in_lanes;
pub mod index;
pub mod math;
pub mod matmul;
pub mod memory;
pub mod nll;
pub mod nonzero;
pub mod norm;
pub mod num;
pub mod mode;
mod operands;
pub mod pointwise;
pub mod pool;
pub mod random;
mod recurrent;
pub mod reduce;
pub mod resample;
pub mod resample_bytes;
pub mod scan;
#[cfg(test)]
mod seed;
pub mod softmax;
pub mod sort;
pub mod special;
pub mod strided;
pub mod threads;
mod widened;
