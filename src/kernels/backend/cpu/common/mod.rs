//! What kernels of several families share: operands as they are found in memory, conversions, epilogues, blocks of matrices.
//! Not here: kernels of a family.

pub mod blocks;
pub mod cast;
pub mod epilogue;
pub(in crate::backend::cpu) mod in_lanes;
pub(in crate::backend::cpu) mod operands;
#[cfg(test)]
pub(in crate::backend::cpu) mod seed;
pub(in crate::backend::cpu) mod sort_keys;
pub mod strided;
pub(in crate::backend::cpu) mod widened;
