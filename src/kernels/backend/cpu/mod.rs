//! The CPU backend: host memory (`memory`), parallel loops (`threads`), numbers and functions for each instruction set (`num`, `math`), and
//! one module or folder of kernels for each family of requests. `backend` implements the contract, `answer*` turn requests into calls of
//! kernels. Not here: shapes and dtypes of results (`ops`), and the decision when a program runs (`array`).

mod answer;
mod answer_attention;
mod answer_gather;
mod answer_gemm;
mod answer_pool;
mod answer_random;
mod answer_recurrent;
pub mod arg_reduce;
pub mod attention;
pub mod backend;
mod conv;
pub mod common;
pub mod copy;
pub mod cumulative_extreme;
pub mod gather;
pub mod grid_sample;
pub mod index;
pub mod matmul;
pub mod nll;
pub mod nonzero;
pub mod norm;
pub mod mode;
pub mod pointwise;
pub mod pool;
pub mod random;
mod recurrent;
pub mod reduce;
pub mod resample;
pub mod scan;
pub mod softmax;
pub mod sort;
pub mod special;
