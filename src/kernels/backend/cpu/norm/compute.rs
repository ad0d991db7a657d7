//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{DenseOperand, output, view};
use crate::backend::cpu::elem::float;
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::backend::cpu::norm;
use crate::call::{Family, Norm, NormPass};
use crate::error::Result;
use smallvec::SmallVec;

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for Norm {
    const NARROW: NarrowElements = NarrowElements::Widened;

    fn may_write_over(&self) -> bool {
        matches!(self.pass, NormPass::Backward { .. })
    }

    unsafe fn compute(n: &Norm, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let views = (0..ins.len()).map(|k| view(n.op, ins, k)).collect::<Result<SmallVec<[View<'_>; 5]>>>()?;
        // SAFETY: see above.
        let dense = views.iter().map(|v| unsafe { DenseOperand::of(v) }).collect::<Result<SmallVec<[DenseOperand<'_>; 5]>>>()?;
        let made = (0..n.outputs()).map(|k| output(n.op, outs, k)).collect::<Result<SmallVec<[View<'_>; 4]>>>()?;
        let (shape, eps) = (&n.shape, n.eps.to_f64());
        float!(made[0].dtype, T => {
            let (from, to) = (|k: usize| dense[k].ptr().cast::<T>(), |k: usize| made[k].ptr().cast::<T>());
            let optional = |at: usize, there: bool| if there { from(at) } else { std::ptr::null() };
            // SAFETY: see above; `Norm` describes operands and outputs.
            unsafe {
                match n.pass {
                    NormPass::Forward { weight, bias } => {
                        let affine = norm::Affine { weight: optional(1, weight), bias: optional(1 + usize::from(weight), bias) };
                        let var = if shape.across { to(3) } else { std::ptr::null_mut() };
                        norm::forward::<T>(shape, eps, from(0), affine, to(0), norm::Stats { mean: to(1), rstd: to(2), var });
                    }
                    NormPass::Apply { weight, bias } => {
                        let affine = norm::Affine { weight: optional(3, weight), bias: optional(3 + usize::from(weight), bias) };
                        norm::apply::<T>(shape, eps, [from(0), from(1), from(2)], affine, to(0));
                    }
                    NormPass::Backward { weight, fixed, params } => {
                        let params = if params { Some((to(1), to(2))) } else { None };
                        norm::backward::<T>(shape, fixed, [from(0), from(1), from(2), from(3)], optional(4, weight), to(0), params);
                    }
                }
            }
        });
        Ok(())
    }
}
