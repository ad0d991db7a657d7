//! A Python number, and what is left of it in a dtype.

use super::dtype::{Category, DType};
use num_complex::{Complex, Complex64};
use std::fmt;

/// A Python number, such as `2`, `2.5` or `True`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
    Complex(Complex64),
    /// An integer that uint64 holds alone.
    Unsigned(u64),
}

impl Scalar {
    /// The value as a float; of a complex number its real part.
    #[inline]
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(i) => i as f64,
            Scalar::Float(f) => f,
            Scalar::Complex(z) => z.re,
            Scalar::Unsigned(u) => u as f64,
        }
    }

    #[inline]
    pub fn to_complex(self) -> Complex64 {
        match self {
            Scalar::Complex(z) => z,
            v => Complex::new(v.to_f64(), 0.0),
        }
    }

    /// The value as an integer; floats are truncated towards zero, as a C cast does where that is defined.
    #[inline]
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => b as i64,
            Scalar::Int(i) => i,
            Scalar::Float(f) => f as i64,
            Scalar::Complex(z) => z.re as i64,
            Scalar::Unsigned(u) => u as i64,
        }
    }

    /// As `to_i64`, but nan and what is out of range become the least integer, as in x86's conversion.
    #[inline]
    pub fn truncated(self) -> i64 {
        match self {
            Scalar::Float(f) | Scalar::Complex(Complex { re: f, .. }) if f.is_nan() || f >= 9_223_372_036_854_775_808.0 => i64::MIN,
            v => v.to_i64(),
        }
    }

    /// As uint64: of numbers below 0 the low bits, of floats beyond the largest that one.
    #[inline]
    pub fn truncated_unsigned(self) -> u64 {
        match self {
            Scalar::Float(f) | Scalar::Complex(Complex { re: f, .. }) if f >= 9_223_372_036_854_775_808.0 => f as u64,
            v => v.truncated() as u64,
        }
    }

    #[inline]
    pub fn to_bool(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::Float(f) => f != 0.0,
            Scalar::Complex(z) => z.re != 0.0 || z.im != 0.0,
            Scalar::Unsigned(_) => true,
        }
    }

    /// Whether the number can be converted to an integer dtype: not nan, infinities and numbers beyond 64 bits.
    #[inline]
    pub fn has_value_in(self, dtype: DType) -> bool {
        match self {
            Scalar::Float(v) | Scalar::Complex(Complex { re: v, .. }) => {
                dtype.category() != Category::Integer || v.abs() < 9_223_372_036_854_775_808.0
            }
            _ => true,
        }
    }

    /// Whether PyTorch takes this number for a parameter, or a value, of `dtype`. An unsigned type also takes the negatives of its numbers, which
    /// wrap around.
    pub fn fits(self, dtype: DType) -> bool {
        let Some((low, high)) = dtype.integers() else { return true };
        match self {
            Scalar::Unsigned(_) => dtype == DType::U64,
            Scalar::Bool(_) => true,
            Scalar::Int(i) => (if low == 0 { -high } else { low }..=high).contains(&i),
            Scalar::Float(f) => f >= low as f64 && f <= high as f64 && self.has_value_in(dtype),
            Scalar::Complex(z) => z.im == 0.0 && Scalar::Float(z.re).fits(dtype),
        }
    }

    #[inline]
    pub fn category(self) -> Category {
        match self {
            Scalar::Bool(_) => Category::Bool,
            Scalar::Int(_) | Scalar::Unsigned(_) => Category::Integer,
            Scalar::Float(_) => Category::Float,
            Scalar::Complex(_) => Category::Complex,
        }
    }

    /// The dtype of a tensor made from this scalar, given the default float dtype.
    #[inline]
    pub fn dtype(self, default_float: DType) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Unsigned(_) => DType::U64,
            Scalar::Float(_) => default_float,
            Scalar::Complex(_) => default_float.to_complex(default_float),
        }
    }
}

impl From<f64> for Scalar {
    fn from(v: f64) -> Self {
        Scalar::Float(v)
    }
}

impl From<Complex64> for Scalar {
    fn from(v: Complex64) -> Self {
        Scalar::Complex(v)
    }
}

impl From<i64> for Scalar {
    fn from(v: i64) -> Self {
        Scalar::Int(v)
    }
}

impl From<bool> for Scalar {
    fn from(v: bool) -> Self {
        Scalar::Bool(v)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(b) => write!(f, "{}", if *b { "True" } else { "False" }),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::Unsigned(u) => write!(f, "{u}"),
            Scalar::Float(v) => write!(f, "{v}"),
            Scalar::Complex(z) => write!(f, "({}{:+}j)", z.re, z.im),
        }
    }
}
