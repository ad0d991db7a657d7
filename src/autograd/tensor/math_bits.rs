//! Lazy conjugation and negation: arrays whose elements are read otherwise than they lie in memory.
//!
//! `conj()` and the imaginary part of its result are views of the same memory. Kernels do not know them: `Tensor::array` computes the elements
//! before a kernel reads them, and a write in place (`dispatch/apply.rs`) is made to computed elements, which are then converted and copied back.

use crate::array::Array;
use crate::autograd::complex_parts::computed;
use crate::autograd::tensor::{Tensor, Value};
use crate::error::Result;

/// What is done to each element when it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MathBits {
    pub conj: bool,
    pub neg: bool,
}

impl MathBits {
    pub const CONJ: MathBits = MathBits { conj: true, neg: false };
    pub const NEG: MathBits = MathBits { conj: false, neg: true };

    #[inline]
    pub fn any(self) -> bool {
        self.conj || self.neg
    }

    /// Both in turn: each undoes itself.
    pub fn toggled(self, other: MathBits) -> MathBits {
        MathBits { conj: self.conj ^ other.conj, neg: self.neg ^ other.neg }
    }

    /// The elements that are read where these lie in memory; the array itself if nothing is done to them. It is its own inverse.
    ///
    /// # Errors
    /// Truth values are negated, or memory for the result cannot be allocated.
    #[inline]
    pub fn apply(self, array: Array) -> Result<Array> {
        if self.any() { computed(&array, self) } else { Ok(array) }
    }
}

/// An array as it lies in memory, and how its elements are read. At least one of the bits is set.
#[derive(Clone, Debug)]
pub struct LazyArray {
    pub array: Array,
    pub bits: MathBits,
}

impl Value {
    /// The value of a tensor of level 0.
    #[inline]
    pub fn of(array: Array, bits: MathBits) -> Value {
        if bits.any() { Value::Lazy(Box::new(LazyArray { array, bits })) } else { Value::Array(array) }
    }

    /// How the elements below all levels are read.
    pub fn bits(&self) -> MathBits {
        match self {
            Value::Array(_) => MathBits::default(),
            Value::Lazy(l) => l.bits,
            Value::Wrapped(l) => l.inner.math_bits(),
        }
    }

    /// The elements below all levels. What is lazy is computed.
    ///
    /// # Errors
    /// As for `MathBits::apply`.
    #[inline]
    pub fn elements(&self) -> Result<Array> {
        if let Value::Array(a) = self { Ok(a.clone()) } else { self.bits().apply(self.beneath()) }
    }
}

impl Tensor {
    /// How the elements are read from memory.
    pub fn math_bits(&self) -> MathBits {
        let inner = match &self.read().value {
            Value::Array(_) => return MathBits::default(),
            Value::Lazy(l) => return l.bits,
            Value::Wrapped(l) => l.inner.clone(),
        };
        inner.math_bits()
    }

    /// Whether the tensor is a lazy conjugate.
    pub fn is_conj(&self) -> bool {
        self.math_bits().conj
    }

    /// Whether the tensor is a lazy negative.
    pub fn is_neg(&self) -> bool {
        self.math_bits().neg
    }
}
