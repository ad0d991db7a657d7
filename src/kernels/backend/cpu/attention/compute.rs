//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::{Operand, View};
use crate::backend::cpu::attention;
use crate::backend::cpu::attention::{AttentionJob, AttentionMask, GradientSources};
use crate::backend::cpu::common::blocks::{BlockElement, Strided4};
use crate::backend::cpu::common::operands::{DenseOperand, malformed, output, view};
use crate::backend::cpu::elem::float;
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::call::{Attention, AttentionPass, Family};
use crate::error::Result;
use crate::layout::{DType, Layout};

/// Batch, head, row and column; of three dimensions (logarithms) there is no column.
fn strided<T>(op: &str, v: &View<'_>) -> Result<Strided4<T>> {
    let strides = match *v.strides {
        [b, h, i] => [b, h, i, 0],
        [b, h, i, c] => [b, h, i, c],
        _ => return Err(malformed(op)),
    };
    Ok(Strided4 { ptr: v.ptr().cast_const().cast(), strides })
}

/// An operand whose rows lie densely in memory: itself, or a copy.
struct DenseRows<'a> {
    at: *const u8,
    strides: [isize; 4],
    _copy: Option<DenseOperand<'a>>,
}

impl<'a> DenseRows<'a> {
    /// # Safety
    /// The view lies inside memory of the host.
    unsafe fn of(op: &str, v: &View<'a>) -> Result<DenseRows<'a>> {
        let Strided4 { ptr, strides } = strided::<u8>(op, v)?;
        if strides[3] == 1 && strides[2] >= 0 {
            return Ok(DenseRows { at: ptr, strides, _copy: None });
        }
        // SAFETY: the caller's.
        let copy = unsafe { DenseOperand::of(v)? };
        let dense = Layout::contiguous_strides(v.shape);
        let strides = [dense[0], dense[1], dense[2], dense[3]];
        Ok(DenseRows { at: copy.ptr(), strides, _copy: Some(copy) })
    }

    fn strided<T>(&self) -> Strided4<T> {
        Strided4 { ptr: self.at.cast(), strides: self.strides }
    }
}

impl CpuFamily for Attention {
    const NARROW: NarrowElements = NarrowElements::Widened;

    unsafe fn compute(a: &Attention, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let op = a.name();
        let back = usize::from(a.pass == AttentionPass::Backward);
        let out = output(op, outs, 0)?;
        let (k, v) = (view(op, ins, 1 + back)?, view(op, ins, 2 + back)?);
        let mask = if a.mask { Some(view(op, ins, if back == 1 { 6 } else { 3 })?) } else { None };
        // SAFETY: the caller's, all of them; `Attention` describes operands and outputs.
        unsafe {
            let q = DenseRows::of(op, &view(op, ins, back)?)?;
            float!(out.dtype, T => {
                let mask = match &mask {
                    None => AttentionMask::Nothing,
                    Some(m) if m.dtype == DType::Bool => AttentionMask::Bool(strided(op, m)?),
                    Some(m) if m.dtype == out.dtype => AttentionMask::Number(strided(op, m)?),
                    Some(_) => return Err(malformed(op)),
                };
                let job = AttentionJob {
                    shape: a.shape,
                    scale: <T as BlockElement>::narrow(a.scale.to_f64()),
                    causal: a.causal,
                    q: q.strided::<T>(),
                    k: strided(op, &k)?,
                    v: strided(op, &v)?,
                    mask,
                    row_steps: a.row_steps(),
                };
                match a.pass {
                    AttentionPass::Forward => attention::forward(&job, out.ptr().cast(), output(op, outs, 1)?.ptr().cast()),
                    AttentionPass::Backward => {
                        let (g, o) = (DenseRows::of(op, &view(op, ins, 0)?)?, DenseRows::of(op, &view(op, ins, 4)?)?);
                        let from = GradientSources { g: g.strided(), o: o.strided(), lse: strided(op, &view(op, ins, 5)?)? };
                        let to = [out.ptr().cast(), output(op, outs, 1)?.ptr().cast(), output(op, outs, 2)?.ptr().cast()];
                        attention::backward(&job, &from, to)
                    }
                }
            })
        }
    }
}
