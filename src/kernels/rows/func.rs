//! Which part of a row a kernel computes (the value or the gradient of an operand), what it reads and what it returns: the part of a kernel's
//! contract that all backends share.

use super::row::{OUTPUT, Output};
use crate::layout::{DType, Scalar};
use crate::rows::table::RowId;

/// The most parameters of a row.
pub const MAX_PARAMS: usize = 3;

/// The part of a row that is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Its value, from its operands.
    Forward,
    /// The gradient of operand `i`; from the cotangent, the operands and the output, in this order.
    Vjp(u8),
}

/// A row and the part of it that is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Func {
    pub row: RowId,
    pub part: Part,
}

impl Func {
    pub fn forward(row: RowId) -> Self {
        Func { row, part: Part::Forward }
    }

    pub fn vjp(row: RowId, operand: usize) -> Self {
        Func { row, part: Part::Vjp(operand as u8) }
    }

    /// How many inputs a kernel takes.
    pub fn inputs(self) -> usize {
        match self.part {
            Part::Forward => self.row.info().arity(),
            Part::Vjp(_) => self.row.info().arity() + 2,
        }
    }

    /// Bit `k`: input `k` is read. The others can be anything.
    pub fn reads(self) -> u32 {
        let info = self.row.info();
        match self.part {
            Part::Forward => (1 << info.arity()) - 1,
            Part::Vjp(i) => {
                let saves = info.saves(1 << i);
                1 | ((saves & !OUTPUT) as u32) << 1 | ((saves & OUTPUT != 0) as u32) << (info.arity() + 1)
            }
        }
    }

    /// Whether Python numbers beside floats of 16 bits are rounded to them first. Products, quotients and lerp see the number in the float32 that
    /// they are computed in, as PyTorch's kernels do.
    pub fn rounds_numbers(self) -> bool {
        !matches!(self.row, RowId::Mul | RowId::Div | RowId::FloorDivide | RowId::DivFloor | RowId::DivTrunc | RowId::Lerp)
    }

    /// The same for parameters: few of PyTorch's kernels round them.
    pub fn rounds_params(self) -> bool {
        let rounds = matches!(self.row, RowId::AddScaled | RowId::SubScaled | RowId::PowScalar | RowId::Hardshrink);
        rounds && self.part == Part::Forward
    }

    /// Parameter `value` as kernels that compute in `dtype` see it.
    pub fn param(self, value: Scalar, dtype: DType) -> Scalar {
        if dtype.is_half() && self.rounds_params() { value.stored_in(dtype) } else { value }
    }

    /// The element type of the result of computing in `dtype`.
    pub fn out_dtype(self, dtype: DType) -> DType {
        match (self.part, self.row.info().output()) {
            (Part::Forward, Output::Bool) => DType::Bool,
            (Part::Forward, Output::Real) => dtype.row().real,
            (Part::Forward, Output::Same) | (Part::Vjp(_), _) => dtype,
        }
    }

    /// The element type that input `k` is seen as: `dtype`, but bool for masks.
    pub fn in_dtype(self, k: usize, dtype: DType) -> DType {
        let operand = match self.part {
            Part::Forward => Some(k),
            Part::Vjp(_) => k.checked_sub(1),
        };
        match operand.and_then(|k| self.row.info().operands.get(k)) {
            Some(o) if o.mask => DType::Bool,
            _ => dtype,
        }
    }

    /// Whether integer operands may make it fail: the divisor is the last operand.
    pub fn divides(self) -> bool {
        self.part == Part::Forward && self.row.info().divides
    }
}
