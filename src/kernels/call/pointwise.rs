//! A row of the table of pointwise operations.

use crate::layout::{DType, Scalar};
use crate::rows::Func;
use crate::rows::MAX_PARAMS;

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
