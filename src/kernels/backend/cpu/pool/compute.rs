//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::{Operand, View};
use crate::backend::cpu::algorithms::runs;
use crate::backend::cpu::common::operands::{DenseOperand, not_floating, output, view};
use crate::backend::cpu::elem::{Loops, by_width, float, loops, typed};
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::backend::cpu::pool;
use crate::backend::cpu::pool::algorithms::ROWS;
use crate::call::{Pool, PoolPass};
use crate::error::Result;
use crate::layout::DType;
use smallvec::SmallVec;

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for Pool {
    const NARROW: NarrowElements = NarrowElements::Widened;

    unsafe fn compute(p: &Pool, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let views = (0..ins.len()).map(|k| view(p.op, ins, k)).collect::<Result<SmallVec<[View<'_>; 2]>>>()?;
        // SAFETY: see above.
        let dense = views.iter().map(|v| unsafe { DenseOperand::of(v) }).collect::<Result<SmallVec<[DenseOperand<'_>; 2]>>>()?;
        let out = output(p.op, outs, 0)?;
        let from = |k: usize| dense[k].ptr();
        // SAFETY: see above; `Pool` describes operands and outputs.
        unsafe {
            match p.pass {
                PoolPass::Max { indices, given } => {
                    let at = match if indices { Some(output(p.op, outs, 1)?) } else { None } {
                        None => pool::Places::Nowhere,
                        Some(v) if v.dtype == DType::U8 => pool::Places::taps(v.ptr()),
                        Some(v) => pool::Places::positions(v.ptr().cast()),
                    };
                    let starts = if given { from(1).cast() } else { std::ptr::null() };
                    match loops(out.dtype) {
                        Some(Loops::F32) => pool::max_of_floats::<f32>(p, from(0).cast(), starts, out.ptr().cast(), at)?,
                        Some(Loops::F64) => pool::max_of_floats::<f64>(p, from(0).cast(), starts, out.ptr().cast(), at)?,
                        _ => {
                            runs(ROWS);
                            typed!(out.dtype, T => pool::max::<T>(p, from(0).cast(), starts, out.ptr().cast(), at)?);
                        }
                    }
                }
                PoolPass::MaxAdjoint if views[1].dtype == DType::U8 => {
                    float!(out.dtype, T => pool::max_adjoint_of_taps::<T>(p, from(0).cast(), from(1), out.ptr().cast())?);
                }
                PoolPass::MaxAdjoint => {
                    float!(out.dtype, T => pool::max_adjoint::<T>(p, from(0).cast(), from(1).cast(), out.ptr().cast())?)
                }
                PoolPass::Average(divisor) => match loops(out.dtype) {
                    Some(Loops::F32) => pool::average_of_floats::<f32>(p, divisor, from(0).cast(), out.ptr().cast()),
                    Some(Loops::F64) => pool::average_of_floats::<f64>(p, divisor, from(0).cast(), out.ptr().cast()),
                    Some(Loops::I64) => {
                        runs(ROWS);
                        pool::average::<i64>(p, divisor, from(0).cast(), out.ptr().cast());
                    }
                    _ => return Err(not_floating(out.dtype)),
                },
                PoolPass::AverageAdjoint(divisor) => {
                    float!(out.dtype, T => pool::average_adjoint::<T>(p, divisor, from(0).cast(), out.ptr().cast()));
                }
                PoolPass::Unfold => by_width!(out.dtype, T => pool::unfold::<T>(p, from(0).cast(), out.ptr().cast(), T::default())),
                PoolPass::Fold => float!(out.dtype, T => pool::fold::<T>(p, from(0).cast(), out.ptr().cast())),
            }
        }
        Ok(())
    }
}
