//! Runs requests on the CPU: prepares the kernels' arguments from the operands, family by family.

use super::reduce::kernels as reduce_kernels;
use super::reduce::reducers::Numeric;
use super::reduce::{ReduceInput, run as run_reduce};
use super::softmax::{SoftmaxElement, SoftmaxShape};
use super::{arg_reduce, conv, copy, index, mode, nonzero, norm, pointwise, scan, sort};
use crate::backend::contract::{CountedResult, Operand, Program, View};
use crate::backend::cpu::common::cast::convert_fn;
use crate::backend::cpu::common::epilogue::ImageEpilogue;
use crate::backend::cpu::common::operands::{
    DenseOperand, OrderedOperand, around, float, malformed, not_floating, output, runner, typed, view,
};
use crate::backend::cpu::common::widened;
use crate::backend::cpu::cumulative_extreme;
use crate::call::{
    ArgReduce, Conv, ConvPass, CumulativeExtreme, Mode, Nll, NllReduction, Norm, NormPass, Pointwise, Reduce, Request, Scan, Softmax, Sort,
    Triangle,
};
use crate::error::{Error, Result};
use crate::host::memory::alloc::Buffer;
use crate::host::memory::raw_slice::RawSlice;
use crate::layout::{BF16, DType, F16, Scalar};
use crate::simd::instruction_set;
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

// SAFETY, of every function here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

pub(super) unsafe fn fill(value: Scalar, out: View<'_>) {
    // SAFETY: see above.
    unsafe { copy::fill(out.dtype, out.shape, out.ptr(), out.strides, value) }
}

pub(super) unsafe fn copy(ins: &[Operand<'_>], out: View<'_>) -> Result<()> {
    let x = view("copy", ins, 0)?;
    // SAFETY: see above.
    unsafe { copy::copy(x.dtype, out.dtype, out.shape, x.ptr(), x.strides, out.ptr(), out.strides) };
    Ok(())
}

pub(super) unsafe fn row(p: &Pointwise, ins: &[Operand<'_>], out: View<'_>) -> Result<()> {
    let mut operands: SmallVec<[pointwise::StridedOperand<'_>; 5]> = SmallVec::new();
    for i in ins {
        operands.push(match i {
            Operand::View(v) => pointwise::StridedOperand { ptr: v.ptr(), strides: v.strides, dtype: v.dtype },
            Operand::Unread => pointwise::StridedOperand { ptr: std::ptr::null(), strides: &[], dtype: DType::Bool },
            _ => return Err(malformed(p.func.row.info().name)),
        });
    }
    // SAFETY: see above.
    unsafe { pointwise::run(p.func, p.compute, out.shape, out.ptr(), out.strides, &operands, &p.params) }
}

pub(super) unsafe fn triangle(t: &Triangle, ins: &[Operand<'_>], out: View<'_>) -> Result<()> {
    let x = view(t.name(), ins, 0)?;
    let Some(r) = out.shape.len().checked_sub(2) else { return Err(malformed(t.name())) };
    let (to, from) =
        (index::StridedBlock::new(&out.shape[..r], &out.strides[..r]), index::StridedBlock::new(&out.shape[..r], &x.strides[..r]));
    let size = out.dtype.size() as isize;
    for b in 0..out.shape[..r].iter().product() {
        // SAFETY: each matrix lies inside its array; the arrays are equal or disjoint.
        unsafe {
            index::triangle(
                (out.ptr().offset(to.offset(b) * size), [out.strides[r], out.strides[r + 1]]),
                (x.ptr().offset(from.offset(b) * size), [x.strides[r], x.strides[r + 1]]),
                size as usize,
                (out.shape[r], out.shape[r + 1]),
                t.diagonal,
                t.upper,
            );
        }
    }
    Ok(())
}

pub(super) unsafe fn reduce(r: &Reduce, ins: &[Operand<'_>], out: View<'_>) -> Result<()> {
    // SAFETY: see above.
    let x = unsafe { OrderedOperand::strided(r.reducer.name(), ins)? };
    let d = x.dtype();
    let kernel = reduce_kernels::kernel_of(r.reducer, d).ok_or_else(|| not_floating(d))?;
    if d.is_half() && out.dtype == d {
        let n = out.numel();
        let (size, wide) = (d.computed().size(), Buffer::new(n * d.computed().size())?);
        // SAFETY: see above; the kernel's results are of the wider type, and there is room for them.
        unsafe {
            run_reduce(&kernel, x.shape(), x.strides(), &r.reduced, x.source(), wide.as_ptr());
            convert_fn(d.computed(), d)(1, n, wide.as_ptr(), (0, size as isize), out.ptr(), (0, d.size() as isize));
        }
        return Ok(());
    }
    // SAFETY: see above.
    unsafe { run_reduce(&kernel, x.shape(), x.strides(), &r.reduced, x.source(), out.ptr()) };
    Ok(())
}

pub(super) unsafe fn arg_reduce(r: &ArgReduce, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
    // SAFETY: see above.
    let x = unsafe { OrderedOperand::dense(r.name(), ins)? };
    let [values, positions] = outs else { return Err(malformed(r.name())) };
    let sizes = around(x.shape(), r.dim);
    let all = sizes.0 * sizes.2;
    if all == 0 {
        return Ok(());
    }
    let other;
    let (v, p) = match (values, positions) {
        (Some(v), Some(p)) => (v.ptr(), p.ptr()),
        (Some(v), None) => {
            // Memory for an output that is not needed.
            other = Buffer::new(all * size_of::<i64>())?;
            (v.ptr(), other.as_ptr())
        }
        (None, Some(p)) => {
            other = Buffer::new(all * x.dtype().size())?;
            (other.as_ptr(), p.ptr())
        }
        (None, None) => return Ok(()),
    };
    // SAFETY: see above; the spare memory has as many elements.
    unsafe { arg_reduce::extreme(r.max, x.dtype(), sizes, x.source(), v, p.cast()) };
    Ok(())
}

pub(super) unsafe fn scan(s: &Scan, ins: &[Operand<'_>], out: View<'_>) -> Result<()> {
    // SAFETY: see above.
    let x = unsafe { OrderedOperand::dense(s.name(), ins)? };
    let sizes = around(x.shape(), s.dim);
    if sizes.0 * sizes.1 * sizes.2 == 0 {
        return Ok(());
    }
    let from = match x.source() {
        ReduceInput::Memory(p) => p,
        ReduceInput::Made(blocks) => {
            // SAFETY: such results are of the elements' type (`reads_programs`), so they are made where the scan writes.
            unsafe { scan::make(blocks, out.ptr(), sizes.0 * sizes.1 * sizes.2, x.dtype().size()) };
            if !blocks.should_continue() {
                return Ok(());
            }
            out.ptr().cast_const()
        }
    };
    // SAFETY: see above; in place both are of one type.
    unsafe { scan::scan(s.kind, x.dtype(), sizes, from, out.ptr()) }
}

/// The elements of an operand as dense numbers. Those of bool become 0 and 1: foreign memory may hold other bytes.
unsafe fn numbers<'a>(x: &View<'a>) -> Result<DenseOperand<'a>> {
    // SAFETY: see above.
    unsafe { DenseOperand::cast(x, if x.dtype == DType::Bool { DType::U8 } else { x.dtype }) }
}

pub(super) unsafe fn cumulative_extreme(c: &CumulativeExtreme, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
    let x = view(c.name(), ins, 0)?;
    let (values, positions) = (output(c.name(), outs, 0)?, output(c.name(), outs, 1)?);
    // SAFETY: see above.
    unsafe {
        let from = numbers(&x)?;
        typed!(x.dtype, T => {
            cumulative_extreme::cummax::<T>(c.max, around(x.shape, c.dim), from.ptr().cast(), values.ptr().cast(), positions.ptr().cast());
        });
    }
    Ok(())
}

pub(super) unsafe fn sort(s: &Sort, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
    let x = view("sort", ins, 0)?;
    let (values, positions) = (output("sort", outs, 0)?, output("sort", outs, 1)?);
    let sizes = around(x.shape, s.dim);
    if sizes.1 > u32::MAX as usize {
        return Err(Error::not_implemented(format!("sort: dimensions of more than {} elements are not supported", u32::MAX)));
    }
    // SAFETY: see above.
    unsafe {
        let from = numbers(&x)?;
        typed!(x.dtype, T => sort::sort::<T>(*s, sizes, from.ptr().cast(), values.ptr().cast(), positions.ptr().cast()));
    }
    Ok(())
}

pub(super) unsafe fn mode(m: &Mode, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
    let x = view("mode", ins, 0)?;
    let (values, positions) = (output("mode", outs, 0)?, output("mode", outs, 1)?);
    // SAFETY: see above.
    unsafe {
        let from = numbers(&x)?;
        typed!(x.dtype, T => mode::mode::<T>(around(x.shape, m.dim), from.ptr().cast(), values.ptr().cast(), positions.ptr().cast()));
    }
    Ok(())
}

pub(super) unsafe fn softmax(s: &Softmax, ins: &[Operand<'_>], out: View<'_>) -> Result<()> {
    // SAFETY: see above.
    let first = unsafe { OrderedOperand::dense(s.name(), ins)? };
    let second = if s.pass.backward { Some(view(s.name(), ins, 1)?) } else { None };
    // SAFETY: see above.
    let second = second.as_ref().map(|y| unsafe { DenseOperand::of(y) }).transpose()?;
    let (outer, n, inner) = around(first.shape(), s.dim);
    if outer * n * inner == 0 {
        return Ok(());
    }
    let (from, made) = match first.source() {
        ReduceInput::Memory(p) => (p, None),
        ReduceInput::Made(blocks) => (std::ptr::null(), Some(blocks)),
    };
    let (x, g) = second.as_ref().map_or((from, std::ptr::null()), |y| (y.ptr(), from));
    // SAFETY: see above.
    float!(first.dtype(), T => unsafe {
        <T as SoftmaxElement>::softmax(s.pass, SoftmaxShape { outer, n, inner }, x.cast(), g.cast(), made, out.ptr().cast());
    });
    Ok(())
}

/// Refuses a target that is no class.
pub(super) unsafe fn check_nll(n: &Nll, ins: &[Operand<'_>]) -> Result<()> {
    let targets = view("nll_loss", ins, 1)?;
    // SAFETY: see above.
    unsafe {
        let dense = DenseOperand::cast(&targets, DType::I64)?;
        let targets = RawSlice::new(dense.ptr().cast::<i64>(), n.classes.outer * n.classes.inner);
        match n.classes.first_bad(targets) {
            None => Ok(()),
            Some(bad) => Err(Error::index(format!("Target {bad} is out of bounds. There are {} classes.", n.classes.classes))),
        }
    }
}

pub(super) unsafe fn nll_loss(n: &Nll, ins: &[Operand<'_>], out: View<'_>) -> Result<()> {
    let c = &n.classes;
    let targets = view("nll_loss", ins, 1)?;
    let weight = if ins.len() > 2 { Some(view("nll_loss", ins, 2)?) } else { None };
    let losses = if n.adjoint { c.outer * c.classes * c.inner } else { out.numel() };
    // SAFETY: see above. There is a target for each place beside the classes, and a weight for each class; what is picked lies inside the
    // input, whatever the targets are.
    unsafe {
        let x = OrderedOperand::dense("nll_loss", ins)?;
        let (dense, weight) = (DenseOperand::cast(&targets, DType::I64)?, weight.as_ref().map(|w| DenseOperand::of(w)).transpose()?);
        let targets = RawSlice::new(dense.ptr().cast::<i64>(), c.outer * c.inner);
        float!(x.dtype(), T => {
            let weight = weight.as_ref().map(|w| RawSlice::new(w.ptr().cast::<T>(), c.classes));
            let to = std::slice::from_raw_parts_mut(out.ptr().cast::<T>(), losses);
            match (x.source(), n.adjoint) {
                (ReduceInput::Memory(g), true) => {
                    let singles = if c.reduction == NllReduction::None { c.outer * c.inner } else { 1 };
                    c.backward(RawSlice::new(g.cast::<T>(), singles), targets, weight, to);
                }
                (ReduceInput::Memory(p), false) => c.forward(|i| *p.cast::<T>().add(i), targets, weight, to),
                (ReduceInput::Made(_), true) => return Err(malformed("nll_loss")),
                (ReduceInput::Made(blocks), false) => match blocks.produce_all() {
                    Some(_) if !blocks.should_continue() => {}
                    Some(p) => c.forward(|i| *p.cast::<T>().add(i), targets, weight, to),
                    None => {
                        let alone = |i: usize| {
                            let mut element = <T as Numeric>::ZERO;
                            let made = blocks.produce(i, 1, (&raw mut element).cast());
                            if std::ptr::eq(made, (&raw const element).cast()) { element } else { *made.cast::<T>() }
                        };
                        c.forward(alone, targets, weight, to);
                    }
                },
            }
        });
    }
    Ok(())
}

pub(super) unsafe fn norm(n: &Norm, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
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

/// A convolution with a program as its epilogue.
pub(super) unsafe fn conv_with_epilogue(
    request: &Request,
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
        conv(request, c, ins, out, Some(&epilogue).filter(|_| may_repeat))?;
        if !epilogue.has_run() {
            runner.run(&|| (program.should_continue)());
        }
    }
    program.is_written.store(true, Ordering::Relaxed);
    Ok(())
}

pub(super) unsafe fn conv(
    request: &Request,
    c: &Conv,
    ins: &[Operand<'_>],
    out: View<'_>,
    epilogue: Option<&ImageEpilogue<'_>>,
) -> Result<()> {
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
        let done = match out.dtype {
            DType::F32 => floats!(f32, f32),
            DType::F64 => floats!(f64, f64),
            DType::F16 => floats!(f32, F16),
            DType::BF16 => floats!(f32, BF16),
            _ => false,
        };
        if done {
            return Ok(());
        }
        if !out.dtype.is_half() {
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
    unsafe { widened::run(request, ins, &[Some(out)]) }
}

/// A mask, and the counts of its true elements.
pub(super) struct NonzeroMask<'a> {
    x: View<'a>,
    mask: DenseOperand<'a>,
    counts: Vec<usize>,
}

pub(super) unsafe fn count_nonzero<'a>(x: View<'a>) -> Result<NonzeroMask<'a>> {
    // SAFETY: see above. Elements of bool are read as bytes, of which any but 0 holds.
    let mask = unsafe { DenseOperand::cast(&x, DType::Bool)? };
    // SAFETY: as many bytes as elements.
    let counts = nonzero::count(unsafe { RawSlice::new(mask.ptr(), x.numel()) });
    Ok(NonzeroMask { x, mask, counts })
}

impl CountedResult for NonzeroMask<'_> {
    fn count(&self) -> usize {
        self.counts.last().copied().unwrap_or(0)
    }

    unsafe fn fill(&self, out: View<'_>) -> Result<()> {
        // SAFETY: as for `count_nonzero`; there is room for all that were counted, even if another thread changed the mask after that.
        unsafe { nonzero::positions(RawSlice::new(self.mask.ptr(), self.x.numel()), self.x.shape, &self.counts, out.ptr().cast()) };
        Ok(())
    }
}
