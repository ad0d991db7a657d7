//! Arithmetic of element types, shapes and strides: dtypes and promotion (`dtype`), elements as Rust numbers (`elem`), floats of 16 bits
//! (`half`), sizes and broadcasting (`shape`), strides and views (`strided`), the orders of an image in memory (`memory_format`). Not here: access to memory.

mod dtype;
mod elem;
mod half;
mod memory_format;
mod pairs;
mod scalar;
mod shape;
mod strided;

pub use crate::by_element;
pub use dtype::{Category, DType, DTypeRow, FloatFormat, Number, NumberKind, PromotionRank, result_type};
pub use elem::{ComplexHalf, Element, ElementBytes, Plain, WIDEST};
pub use half::{BF16, F16};
pub use memory_format::MemoryFormat;
pub use num_complex::{Complex, Complex32, Complex64};
pub use scalar::Scalar;
pub use shape::{
    Dims, MAX_DIMS, Strides, broadcast, broadcast_many, check_rank, checked_numel, fmt_shape, wrap_dim, wrap_dims, wrap_index,
};
pub use strided::Layout;
