//! What shaders of several families share: offsets of strided elements, prefix sums, elements as words.
//! Not here: shaders of a family.

pub(in crate::backend::wgpu) mod operands;
pub(in crate::backend::wgpu) mod prefix_sum;
pub(in crate::backend::wgpu) mod strided;
pub(in crate::backend::wgpu) mod word_kernels;
