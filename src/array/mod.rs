//! Values without history: a storage, and arrays that look into it.

mod counted;
mod elements;
mod execution;
pub mod fusion;
mod gpu;
mod gpu_index;
mod gpu_reduce;
mod index;
mod lazy;
mod losses;
mod matmul;
mod pending;
mod program;
mod reduce;
mod running;
mod storage;
mod value;

pub use elements::Element;
pub use index::{Bounds, Plan, Write};
pub use reduce::{Classes, Reduction, Scan, SoftmaxPass, SortPart, reduced_shape};
pub use storage::{Access, Change, Device, Storage, Version, new_age};
pub use value::Array;
