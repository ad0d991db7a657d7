//! Elementary functions, accurate to 1 ULP over the whole range, generic over the instruction set and without branches.

pub mod f32;
pub mod f64;
#[cfg(target_arch = "x86_64")]
pub mod lanes;
mod double_double;
#[cfg(test)]
mod tests;
