//! Elementary functions, accurate to 1 ULP over the whole range, generic over the instruction set and without branches. `f32` and `f64`
//! hold scalar functions that the compiler vectorises, `complex` those of complex numbers, `lanes` those with AVX-512 instructions of their
//! own, `special` functions that are computed in `f64` a block at a time. Not here: which row calls which function (`crate::rows`).

pub mod complex;
pub mod f32;
pub mod f64;
mod double_double;
#[cfg(target_arch = "x86_64")]
pub mod lanes;
pub mod special;
