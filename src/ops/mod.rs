//! What can be done with tensors: one file per family, each with shape rule, forward and derivative together.

pub mod create;
pub mod gather;
pub mod index;
pub mod indexing;
pub mod join;
pub mod matmul;
pub mod pointwise;
pub mod random;
pub mod shape;
