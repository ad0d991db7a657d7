//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::{Operand, Program, View};
use crate::backend::cpu::algorithms::runs;
use crate::backend::cpu::common::epilogue::ImageEpilogue;
use crate::backend::cpu::common::operands::{DenseOperand, output, runner, view};
use crate::backend::cpu::common::widened;
use crate::backend::cpu::conv;
use crate::backend::cpu::conv::algorithms::PLAIN;
use crate::backend::cpu::elem::{is_widened, typed};
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::call::{Conv, ConvPass, Request};
use crate::error::Result;
use crate::layout::{BF16, DType, F16};
use crate::simd::instruction_set;
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

// SAFETY, of every function here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

/// A convolution with a program as its epilogue.
pub(in crate::backend::cpu) unsafe fn compute_with_epilogue(
    c: &Conv,
    ins: &[Operand<'_>],
    out: View<'_>,
    program: &Program<'_>,
) -> Result<()> {
    // SAFETY: see above; where the program runs twice on an element, it reads the same values.
    unsafe {
        let runner = runner(program)?;
        let epilogue = |start: usize, len: usize| runner.range(start, len, None);
        let epilogue = ImageEpilogue::new(&epilogue, c.shape.batch, out.numel() / c.shape.batch.max(1));
        // A program that overwrites its own input cannot run twice, so it waits for all images: a task may find no memory, and images may be
        // computed again in another way.
        let is_read = |to: *mut u8| program.inputs.iter().any(|i| i.memory.address() == to);
        let may_repeat = program.outputs.iter().all(|(_, to)| to.address() == out.ptr() || !is_read(to.address()));
        compute(c, ins, out, Some(&epilogue).filter(|_| may_repeat))?;
        if !epilogue.has_run() {
            runner.run(&|| (program.should_continue)());
        }
    }
    program.is_written.store(true, Ordering::Relaxed);
    Ok(())
}

unsafe fn compute(c: &Conv, ins: &[Operand<'_>], out: View<'_>, epilogue: Option<&ImageEpilogue<'_>>) -> Result<()> {
    {
        let views = (0..ins.len()).map(|k| view(c.op, ins, k)).collect::<Result<SmallVec<[View<'_>; 3]>>>()?;
        // SAFETY: see above.
        let dense = views.iter().map(|v| unsafe { DenseOperand::of(v) }).collect::<Result<SmallVec<[DenseOperand<'_>; 3]>>>()?;
        let from = |k: usize| dense.get(k).map_or(std::ptr::null(), |d| d.ptr());
        macro_rules! floats {
            ($T:ty, $S:ty) => {{
                let ins = [from(0).cast::<$S>(), from(1).cast::<$S>(), from(2).cast::<$S>()];
                // SAFETY: see above; `Conv` describes operands and output.
                unsafe { conv::floats::<$T, $S>(instruction_set(), c.pass, &c.shape, ins, out.ptr().cast(), epilogue) }
            }};
        }
        let ran = match out.dtype {
            DType::F32 => floats!(f32, f32),
            DType::F64 => floats!(f64, f64),
            DType::F16 => floats!(f32, F16),
            DType::BF16 => floats!(f32, BF16),
            _ => None,
        };
        if ran.is_some() {
            return Ok(());
        }
        if !is_widened(out.dtype) {
            runs(PLAIN);
            typed!(out.dtype, T => {
                let (a, b, bias, to) = (from(0).cast::<T>(), from(1).cast::<T>(), from(2).cast::<T>(), out.ptr().cast::<T>());
                // SAFETY: as above.
                unsafe {
                    match c.pass {
                        ConvPass::Forward { .. } => conv::plain::forward(&c.shape, a, b, bias, to),
                        ConvPass::Input { .. } => conv::plain::input(&c.shape, a, b, bias, to),
                        ConvPass::Weight => conv::plain::weight(&c.shape, a, b, to),
                    }
                }
            });
            return Ok(());
        }
    }
    // SAFETY: see above.
    unsafe { widened::run(&Request::Conv(*c), ins, &[Some(out)]) }
}

impl CpuFamily for Conv {
    const NARROW: NarrowElements = NarrowElements::Taken;

    fn takes_epilogue(&self, ins: &[View<'_>]) -> bool {
        ins.first().is_some_and(|x| x.dtype.is_float()) && conv::takes_epilogue(self.pass, &self.shape)
    }

    unsafe fn compute(c: &Conv, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { compute(c, ins, output(c.op, outs, 0)?, None) }
    }
}
