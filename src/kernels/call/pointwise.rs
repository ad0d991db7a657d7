//! A row of the table of pointwise operations.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements};
use crate::layout::{DType, Scalar};
use crate::rows::{Func, MAX_PARAMS, RowId};

/// `func` of the operands, which are expanded to the output's shape; a number is a 0-d operand. The output may be an operand that lies
/// exactly as it does.
#[derive(Debug, Clone, Hash)]
pub struct Pointwise {
    pub func: Func,
    /// The dtype that the row computes in. Operands of others are converted as they are read.
    pub compute: DType,
    pub params: [Scalar; MAX_PARAMS],
}

impl Pointwise {
    /// Parameters that are not given are zero.
    pub fn new(func: Func, compute: DType, params: &[Scalar]) -> Pointwise {
        let mut all = [Scalar::Int(0); MAX_PARAMS];
        all[..params.len()].copy_from_slice(params);
        Pointwise { func, compute, params: all }
    }
}

/// Every pointwise row, computed in this dtype.
pub fn rows(compute: DType) -> impl Iterator<Item = Pointwise> {
    RowId::ALL.iter().map(move |row| Pointwise::new(Func::forward(*row), compute, &[]))
}

impl Family for Pointwise {
    fn name(&self) -> &'static str {
        self.func.row.info().name
    }

    fn elems(&self) -> Elems {
        // Which rows have kernels for which dtypes is asked of the backend (`Backend::has_row`).
        Elems::ALL
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        matches!(outs, [Some((o, _))] if ins.iter().flatten().all(|(x, _)| x == o || x.is_empty()))
    }

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        elements(ins, outs)
    }

    fn outputs(&self) -> usize {
        1
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        Vec::new()
    }
}
