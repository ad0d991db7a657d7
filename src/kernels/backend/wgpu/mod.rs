//! The WebGPU backend: `device` drives a device, `native` is the C interface of wgpu-native, `wgsl` the language of shaders, and each
//! family of requests has a module or folder of kernels. wgpu-py owns the device; this backend uses it through the library that wgpu-py has
//! loaded. Without a device only the generators of shaders can be used. Not here: shapes and dtypes of results (`ops`), and the decision
//! when a program runs (`array`).
//!
//! Elements on the device: f32 and i32 unchanged; bool and uint8 as one `u32`, int8 and int16 as one sign-extended `i32` (WGSL cannot write
//! single bytes without races); int64 as two words, low first; float64 if the adapter has it; floats of 16 bits in two bytes (`wgsl::packed`).
//! Offsets and strides count elements.

mod arg_reduce;
mod attention;
pub mod backend;
mod common;
mod conv;
pub mod copy;
pub mod cumulative_extreme;
mod custom;
mod elem;
pub mod device;
mod factor;
mod family;
mod fft;
mod fill;
mod gather;
mod grid_sample;
pub mod index;
pub mod matmul;
pub mod mode;
pub mod native;
pub mod nll;
pub mod nonzero;
mod norm;
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
pub mod triangle;
pub mod wgsl;

pub use device::buffer::Buffer;
pub use device::context::Context;
pub use device::dispatch::{Bindings, Dispatch, Key};
pub use elem::{element_size, scratch_size};

use crate::layout::{DType, Scalar};

/// Strided elements of a buffer.
#[derive(Debug, Clone, Copy)]
pub struct BufferView<'a> {
    pub buffer: &'a Buffer,
    /// The first element.
    pub offset: usize,
    pub shape: &'a [usize],
    /// One for each dimension, in elements; 0 where a dimension is broadcast.
    pub strides: &'a [isize],
    pub dtype: DType,
}

/// An input of a pointwise kernel.
#[derive(Debug, Clone, Copy)]
pub enum PointwiseInput<'a> {
    View(BufferView<'a>),
    /// One value for all elements, known on the host.
    Number(Scalar),
    /// Not read by this kernel.
    Unread,
}
