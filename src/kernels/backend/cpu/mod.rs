//! The CPU backend: one module or folder for each family of requests, and what they share (`common`). `elem` has the dtypes. `backend` implements the contract. In
//! each family `compute` prepares the kernels' arguments from the operands. Not here: shapes and dtypes of results (`ops`), and the decision when a program runs (`array`).

pub mod algorithms;
pub mod arg_reduce;
pub mod attention;
pub mod backend;
mod conv;
pub mod common;
pub mod copy;
mod elem;
pub mod cumulative_extreme;
mod custom;
mod factor;
mod family;
mod fft;
mod fill;
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
mod search;
pub mod softmax;
pub mod sort;
mod triangle;
