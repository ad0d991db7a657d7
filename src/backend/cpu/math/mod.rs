//! Elementary functions, accurate to 1 ULP over the whole range, generic over the instruction set.

pub mod f32;
pub mod f64;
