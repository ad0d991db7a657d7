//! PyTorch's type promotion: operands as callers have them, their common dtype, and the dtype that a row computes in.

use super::refused;
use crate::autograd::{Tensor, primitives};
use crate::error::{Error, Result};
use crate::layout::{Category, DType, PromotionRank, Scalar, result_type};
use crate::rows::{DTypeRule, RowId, RowInfo};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU8, Ordering};

/// An operand as a caller has it.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    Tensor(&'a Tensor),
    Scalar(Scalar),
}

impl<'a> From<&'a Tensor> for Arg<'a> {
    fn from(t: &'a Tensor) -> Self {
        Arg::Tensor(t)
    }
}

impl From<Scalar> for Arg<'_> {
    fn from(s: Scalar) -> Self {
        Arg::Scalar(s)
    }
}

impl From<f64> for Arg<'_> {
    fn from(v: f64) -> Self {
        Arg::Scalar(Scalar::Float(v))
    }
}

/// The number of the default dtype.
static DEFAULT_FLOAT: AtomicU8 = AtomicU8::new(DType::F32 as u8);

/// The dtype of new float tensors, float32 unless set otherwise.
#[inline]
pub fn default_dtype() -> DType {
    DType::numbered(DEFAULT_FLOAT.load(Ordering::Relaxed)).unwrap_or(DType::F32)
}

pub fn set_default_dtype(dtype: DType) -> Result<()> {
    if !dtype.is_float() {
        return Err(Error::type_(format!("only floating-point types are supported as the default type, got {dtype}")));
    }
    DEFAULT_FLOAT.store(dtype as u8, Ordering::Relaxed);
    Ok(())
}

/// An operand's dtype and rank in promotion.
#[inline]
pub(super) fn promotion_of(a: &Arg<'_>) -> (DType, PromotionRank) {
    match a {
        Arg::Tensor(t) => {
            let (d, r) = (t.dtype(), t.promotion_rank());
            // The precision of a number does not count.
            match (r, d.category()) {
                (PromotionRank::Number, Category::Float) => (default_dtype(), r),
                (PromotionRank::Number, Category::Complex) => (default_dtype().to_complex(DType::F32), r),
                _ => (d, r),
            }
        }
        Arg::Scalar(s) => (s.dtype(default_dtype()), PromotionRank::Number),
    }
}

/// PyTorch's result type of operands, numbers included.
pub fn promote(args: &[Arg<'_>]) -> DType {
    if let [Arg::Tensor(t)] = args {
        return t.dtype();
    }
    result_type(args.iter().map(promotion_of)).unwrap_or_else(default_dtype)
}

/// Whether PyTorch computes a row in uint16, uint32 and uint64, or in floats instead of them.
fn computes_wide_unsigned(row: RowId) -> bool {
    use RowId::{BitwiseAnd, BitwiseOr, BitwiseXor, Ceil, Eq, Floor, IsInf, IsNan, MaskedFill, Mul, Ne, Round, Trunc, Where};
    row.info().rule == DTypeRule::Float
        || matches!(
            row,
            Mul | BitwiseAnd | BitwiseOr | BitwiseXor | Eq | Ne | IsNan | IsInf | Where | MaskedFill | Floor | Ceil | Round | Trunc
        )
}

/// The dtype that a row computes in, or an error if it does not accept the operands.
pub(super) fn compute_dtype(row: RowId, common: DType) -> Result<DType> {
    let info = row.info();
    let refuse = || Err(Error::not_implemented(format!("\"{}_cpu\" not implemented for '{}'", info.name, common.type_name())));
    if common.is_wide_unsigned() && !computes_wide_unsigned(row) {
        return refuse();
    }
    match row {
        RowId::Hardtanh if common == DType::Bool => return Err(Error::runtime("Bool inputs not supported for hardtanh")),
        RowId::Addcdiv if !common.is_differentiable() => {
            return Err(Error::runtime(
                "Integer division with addcdiv is no longer supported: convert the tensors to floats, or divide with \
                 div(tensor1, tensor2, rounding_mode='trunc') and add",
            ));
        }
        _ => {}
    }
    match info.rule {
        _ if common.is_complex() && !info.computes(Category::Complex) => Err(refused::complex(row, common)),
        DTypeRule::Float => Ok(if common.is_differentiable() { common } else { default_dtype() }),
        DTypeRule::FloatOnly if !common.is_differentiable() => refuse(),
        DTypeRule::NoBool if common == DType::Bool => refuse(),
        DTypeRule::Subtract if common == DType::Bool => Err(Error::runtime(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or \
             `logical_not()` operator instead.",
        )),
        DTypeRule::Negate if common == DType::Bool => Err(Error::runtime(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or \
             `logical_not()` operator instead.",
        )),
        DTypeRule::BoolAsInt if common == DType::Bool => Ok(DType::I64),
        DTypeRule::Bitwise if common.is_differentiable() => refuse(),
        DTypeRule::Shift if common.category() != Category::Integer => refuse(),
        _ => Ok(common),
    }
}

/// Refuses operands that PyTorch does not promote: of one rank, or where bool stands above an unsigned integer. Others follow the one of the
/// higher rank.
pub(super) fn check_common(operands: impl Iterator<Item = (DType, PromotionRank)>) -> Result<()> {
    let all: SmallVec<[(DType, PromotionRank); 3]> = operands.collect();
    for ((a, of_a), (b, of_b)) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))) {
        if of_a == of_b || of_a > of_b && a == DType::Bool {
            no_common(a, b)?;
        }
    }
    Ok(())
}

/// As `promote`, of operands that PyTorch may refuse.
pub fn result_type_of(args: &[Arg<'_>]) -> Result<DType> {
    check_common(args.iter().map(promotion_of))?;
    Ok(promote(args))
}

/// PyTorch's error for two dtypes without a common one.
pub fn no_common(a: DType, b: DType) -> Result<()> {
    if a.has_common(b) {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {} and {}",
        a.type_name(),
        b.type_name()
    )))
}

/// Refuses operands of another dtype than the first one's, except a 0-d last operand.
pub(super) fn check_unpromoted(info: &RowInfo, args: &[Arg<'_>]) -> Result<()> {
    let Arg::Tensor(first) = args[0] else { return Ok(()) };
    let have = first.dtype();
    for (i, arg) in args.iter().enumerate().skip(1) {
        match arg {
            Arg::Tensor(t) if t.dtype() != have && (i + 1 < args.len() || t.rank() > 0) => {
                let word = |d: DType| d.type_name().to_lowercase();
                return Err(Error::runtime(format!(
                    "{}: expected dtype {} for `{}` but got dtype {}",
                    info.name,
                    word(have),
                    info.operands[i].public,
                    word(t.dtype())
                )));
            }
            Arg::Scalar(s @ Scalar::Complex(_)) if have.is_float() => primitives::check_fits(*s, have)?,
            Arg::Scalar(_) if !have.is_differentiable() => {
                return Err(Error::not_implemented(format!("\"{}_kernel_scalar\" not implemented for '{}'", info.name, have.type_name())));
            }
            _ => {}
        }
    }
    Ok(())
}
