//! Elementary functions, accurate to 1 ULP over the whole range, generic over the instruction set and without branches. `f32` and `f64`
//! hold scalar functions that the compiler vectorises, `lanes` those with AVX-512 instructions of their own. Not here: which row calls
//! which function (`crate::rows`).

pub mod f32;
pub mod f64;
#[cfg(target_arch = "x86_64")]
pub mod lanes;
mod double_double;
