//! Which part of a row a kernel computes (the value or the gradient of an operand), what it reads and what it returns: the part of a kernel's
//! contract that all backends share.

use super::row::{OUTPUT, Output};
use super::rows::RowId;
use crate::layout::DType;

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
