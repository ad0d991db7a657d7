//! Runs requests on a wgpu device: prepares dispatches from the operands, family by family.

use super::nll::NllInput;
use super::pointwise::fused::{DeviceProgram, ProgramRead, run as run_code};
use super::pointwise::many::{ProgramGroup, run_each};
use super::reduce::{DeviceReducer, reduce as dispatch_reduce, reduce_program};
use super::{
    Buffer, BufferView, Context, PointwiseInput, conv, copy, matmul, mode, nll, nonzero, norm, pointwise, pool, recurrent, resample, scan,
    scratch_size, softmax, sort, triangle,
};
use crate::backend::contract::{self, CountedResult, Memory, Operand};
use crate::backend::wgpu::{cumulative_extreme, grid_sample};
use crate::call;
use crate::call::{ArgReduce, Conv, CumulativeExtreme, Mode, Nll, Norm, Pointwise, Reduce, Scan, Softmax, Sort, Triangle};
use crate::error::{Error, Result};
use crate::layout::{DType, Layout, Scalar};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The buffer behind a `Memory` of the contract.
#[inline]
pub(super) fn buffer(m: Memory<'_>) -> Result<&Buffer> {
    match m {
        Memory::Device(d) => d.as_any().downcast_ref().ok_or_else(|| foreign("memory of another device")),
        Memory::Host(_) => Err(foreign("memory of the host")),
    }
}

#[cold]
pub(super) fn foreign(what: &str) -> Error {
    Error::internal("wgpu", &format!("a request came with {what}"))
}

#[inline]
pub(super) fn view<'a>(v: &contract::View<'a>) -> Result<BufferView<'a>> {
    Ok(BufferView { buffer: buffer(v.memory)?, offset: v.offset, shape: v.shape, strides: v.strides, dtype: v.dtype })
}

/// The view that operand `k` is.
#[inline]
pub(super) fn operand<'a>(ins: &[Operand<'a>], k: usize) -> Result<BufferView<'a>> {
    match ins.get(k) {
        Some(Operand::View(v)) => view(v),
        _ => Err(foreign("operands that its family does not describe")),
    }
}

/// The output `k`, which must be needed.
#[inline]
pub(super) fn output<'a>(outs: &[Option<contract::View<'a>>], k: usize) -> Result<BufferView<'a>> {
    outs.get(k).and_then(Option::as_ref).map_or_else(|| Err(foreign("an output missing")), view)
}

/// The first operand: an array, or the results of a program with shape and strides.
enum Elements<'a> {
    Memory(BufferView<'a>),
    Made(&'a DeviceProgram<'a>, &'a [usize], &'a [isize]),
}

impl Elements<'_> {
    fn shape(&self) -> &[usize] {
        match self {
            Elements::Memory(v) => v.shape,
            Elements::Made(_, shape, _) => shape,
        }
    }

    fn dtype(&self) -> DType {
        match self {
            Elements::Memory(v) => v.dtype,
            Elements::Made(p, ..) => p.dtype(),
        }
    }
}

fn inputs<'a>(program: &contract::Program<'a>) -> Result<SmallVec<[ProgramRead<'a>; 8]>> {
    program.inputs.iter().map(|i| Ok((buffer(i.memory)?, i.offset, i.dtype, i.strides))).collect()
}

fn outputs<'a>(program: &contract::Program<'a>) -> Result<SmallVec<[(usize, &'a Buffer); 4]>> {
    program.outputs.iter().map(|(step, m)| Ok((*step, buffer(*m)?))).collect()
}

/// Runs a whole program.
pub(super) fn run_program(context: &Context, program: &contract::Program<'_>) -> Result<()> {
    run_code(context, program.code, program.shape, program.strides, &inputs(program)?, &outputs(program)?)?;
    program.is_written.store(true, Ordering::Relaxed);
    Ok(())
}

fn group<'a>(run: &contract::ProgramRun<'a>) -> Result<ProgramGroup<'a>> {
    let inputs = run.inputs.iter().map(|(m, first)| Ok((buffer(*m)?, *first))).collect::<Result<_>>()?;
    let outputs = run.outputs.iter().map(|m| buffer(*m)).collect::<Result<_>>()?;
    Ok(ProgramGroup { elements: run.elements, inputs, outputs })
}

/// Runs a program on each group of operands.
pub(super) fn run_program_each(context: &Context, program: &contract::ProgramRuns<'_, '_>) -> Result<()> {
    let groups: Vec<ProgramGroup<'_>> = program.runs.iter().filter(|run| run.elements > 0).map(group).collect::<Result<_>>()?;
    run_each(context, program.code, program.dtype, program.outputs, &groups)
}

/// Calls `f` with the first operand. A program is fused into the kernel that reads it, if the results of its steps are not needed otherwise and
/// `can` allows it. Otherwise it runs first.
fn first<R>(
    context: &Arc<Context>,
    ins: &[Operand<'_>],
    can: impl FnOnce(&DeviceProgram<'_>) -> bool,
    f: impl FnOnce(Elements<'_>) -> Result<R>,
) -> Result<R> {
    let (program, shape, strides) = match ins.first() {
        Some(Operand::View(v)) => return f(Elements::Memory(view(v)?)),
        Some(Operand::Made { program, shape, strides }) => (*program, *shape, *strides),
        _ => return Err(foreign("operands that its family does not describe")),
    };
    let own;
    let (reads, mut outs) = (inputs(program)?, outputs(program)?);
    let made = DeviceProgram { code: program.code, shape: program.shape, strides: program.strides, inputs: &reads };
    if outs.is_empty() && can(&made) {
        return f(Elements::Made(&made, shape, strides));
    }
    let (last, dtype) = (program.code.steps.len() - 1, program.dtype());
    let from = match outs.iter().find(|o| o.0 == last) {
        Some((_, b)) => *b,
        None => {
            own = Buffer::new(context, shape.iter().product::<usize>() * scratch_size(dtype))?;
            outs.push((last, &own));
            &own
        }
    };
    run_code(context, made.code, made.shape, made.strides, made.inputs, &outs)?;
    program.is_written.store(true, Ordering::Relaxed);
    f(Elements::Memory(BufferView { buffer: from, offset: 0, shape, strides, dtype }))
}

pub(super) fn fill(value: Scalar, out: BufferView<'_>) -> Result<()> {
    copy::fill(out, value)
}

pub(super) fn copy(ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    let x = operand(ins, 0)?;
    copy::copy(out, BufferView { shape: out.shape, ..x })
}

pub(super) fn row(p: &Pointwise, ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    let mut operands: SmallVec<[PointwiseInput<'_>; 5]> = SmallVec::new();
    for i in ins {
        operands.push(match i {
            Operand::View(v) => PointwiseInput::View(view(v)?),
            Operand::Number(value) => PointwiseInput::Number(*value),
            Operand::Unread => PointwiseInput::Unread,
            Operand::Made { .. } => return Err(foreign("a program")),
        });
    }
    pointwise::run(p.func, p.compute, out, &operands, &p.params)
}

pub(super) fn triangle(t: &Triangle, ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    triangle::triangle(t.name(), out, operand(ins, 0)?, t.diagonal, t.upper)
}

fn reduce_elements(
    op: &'static str,
    r: DeviceReducer,
    x: &Elements<'_>,
    shift: Option<BufferView<'_>>,
    over: &[bool],
    power: f64,
    outs: &[BufferView<'_>],
) -> Result<()> {
    match x {
        Elements::Memory(x) => dispatch_reduce(op, r, &[*x], shift, over, power, outs),
        Elements::Made(p, shape, strides) => reduce_program(op, r, p, (shape, strides), shift, over, power, outs),
    }
}

pub(super) fn reduce(context: &Arc<Context>, r: &Reduce, ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    let op = r.reducer.name();
    first(
        context,
        ins,
        |p| p.can_be_read(context),
        |x| {
            let Some(what) = DeviceReducer::of(r.reducer) else {
                let call::Reducer::Norm(p) = r.reducer else { return Err(foreign("a reducer that this device does not know")) };
                return power_norm(context, p, &x, &r.reduced, out);
            };
            reduce_elements(op, what, &x, None, &r.reduced, 0.0, &[out])
        },
    )
}

/// The norm of any order. Elements are scaled by the one that dominates, so that powers neither overflow nor vanish. The elements are read (or
/// computed) twice.
fn power_norm(context: &Arc<Context>, p: f64, x: &Elements<'_>, over: &[bool], out: BufferView<'_>) -> Result<()> {
    let numel: usize = out.shape.iter().product();
    let scale = Buffer::new(context, numel * scratch_size(out.dtype))?;
    let dense = Layout::contiguous_strides(out.shape);
    let scale = BufferView { buffer: &scale, offset: 0, strides: &dense, ..out };
    reduce_elements("norm", DeviceReducer::ExtremeAbs { max: p > 0.0 }, x, None, over, 0.0, &[scale])?;
    reduce_elements("norm", DeviceReducer::Power, x, Some(scale), over, p, &[out])
}

pub(super) fn arg_reduce(context: &Arc<Context>, r: &ArgReduce, ins: &[Operand<'_>], outs: &[Option<contract::View<'_>>]) -> Result<()> {
    first(
        context,
        ins,
        |p| p.can_be_read(context),
        |x| {
            let over: SmallVec<[bool; 8]> = (0..x.shape().len()).map(|d| d == r.dim).collect();
            let [values, positions] = outs else { return Err(foreign("other outputs than two")) };
            let Some(like) = values.as_ref().or(positions.as_ref()) else { return Ok(()) };
            let like = view(like)?;
            let numel: usize = like.shape.iter().product();
            let (own, dense);
            let other = if values.is_some() && positions.is_some() {
                None
            } else {
                let dtype = if values.is_some() { DType::I64 } else { x.dtype() };
                own = Buffer::new(context, numel * scratch_size(dtype))?;
                dense = Layout::contiguous_strides(like.shape);
                Some(BufferView { buffer: &own, offset: 0, shape: like.shape, strides: &dense, dtype })
            };
            match (values, positions, other) {
                (Some(v), Some(p), _) => {
                    reduce_elements(r.name(), DeviceReducer::Place { max: r.max }, &x, None, &over, 0.0, &[view(v)?, view(p)?])
                }
                (Some(v), None, Some(p)) => {
                    reduce_elements(r.name(), DeviceReducer::Place { max: r.max }, &x, None, &over, 0.0, &[view(v)?, p])
                }
                (None, Some(p), Some(v)) => {
                    reduce_elements(r.name(), DeviceReducer::Place { max: r.max }, &x, None, &over, 0.0, &[v, view(p)?])
                }
                _ => Ok(()),
            }
        },
    )
}

pub(super) fn scan(context: &Arc<Context>, s: &Scan, ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    first(
        context,
        ins,
        |p| p.can_be_read(context),
        |x| match x {
            Elements::Memory(x) => scan::scan(s.name(), s.kind, x, s.dim, out),
            Elements::Made(p, shape, strides) => scan::scan_program(s.name(), s.kind, p, (shape, strides), s.dim, out),
        },
    )
}

pub(super) fn cumulative_extreme(
    c: &CumulativeExtreme,
    ins: &[Operand<'_>],
    values: BufferView<'_>,
    positions: BufferView<'_>,
) -> Result<()> {
    cumulative_extreme::cummax(c.name(), c.max, values, positions, operand(ins, 0)?, c.dim)
}

pub(super) fn sort(s: &Sort, ins: &[Operand<'_>], values: BufferView<'_>, positions: BufferView<'_>) -> Result<()> {
    sort::sort("sort", values, positions, operand(ins, 0)?, s.dim, *s)
}

pub(super) fn mode(context: &Arc<Context>, m: &Mode, ins: &[Operand<'_>], values: BufferView<'_>, positions: BufferView<'_>) -> Result<()> {
    let x = operand(ins, 0)?;
    let strides = Layout::contiguous_strides(x.shape);
    let numel: usize = x.shape.iter().product();
    let (sorted, order) = (Buffer::new(context, numel * scratch_size(x.dtype))?, Buffer::new(context, numel * scratch_size(DType::I64))?);
    let sorted = BufferView { buffer: &sorted, offset: 0, strides: &strides, ..x };
    let order = BufferView { buffer: &order, dtype: DType::I64, ..sorted };
    let keep = x.shape.get(m.dim).copied().unwrap_or(1);
    sort::sort("mode", sorted, order, x, m.dim, Sort { dim: m.dim, descending: false, keep })?;
    mode::mode("mode", values, positions, sorted, order, m.dim)
}

pub(super) fn softmax(context: &Arc<Context>, s: &Softmax, ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    let y = if s.pass.backward { Some(operand(ins, 1)?) } else { None };
    first(
        context,
        ins,
        |_| true,
        |x| match (x, y) {
            (Elements::Made(p, ..), y) => softmax::softmax_program(s.pass, p, y, s.dim, out),
            (Elements::Memory(g), Some(y)) => softmax::softmax(s.pass, y, s.dim, Some(g), out),
            (Elements::Memory(x), None) => softmax::softmax(s.pass, x, s.dim, None, out),
        },
    )
}

pub(super) fn nll_loss(context: &Arc<Context>, n: &Nll, ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    let targets = operand(ins, 1)?;
    let weight = if ins.len() > 2 { Some(operand(ins, 2)?) } else { None };
    let ticket = if n.ticket == 0 { context.ticket("nll_loss") } else { n.ticket };
    let loss = nll::NllArrays { op: "nll_loss", classes: n.classes, dim: n.dim, targets, weight, real: out.dtype, ticket };
    let can = |p: &DeviceProgram<'_>| p.can_be_read(context) && !p.reads(targets.buffer) && weight.is_none_or(|w| !p.reads(w.buffer));
    first(context, ins, can, |x| match x {
        Elements::Memory(g) if n.adjoint => loss.backward(out, g),
        Elements::Memory(x) => loss.forward(out, NllInput::Memory(x)),
        Elements::Made(p, ..) => loss.forward(out, NllInput::Made(p)),
    })
}

pub(super) fn norm(n: &Norm, ins: &[Operand<'_>], outs: &[Option<contract::View<'_>>]) -> Result<()> {
    let from = (0..ins.len()).map(|k| operand(ins, k)).collect::<Result<SmallVec<[BufferView<'_>; 5]>>>()?;
    let to = (0..n.outputs()).map(|k| output(outs, k)).collect::<Result<SmallVec<[BufferView<'_>; 4]>>>()?;
    norm::norm(n, &from, &to)
}

pub(super) fn conv(c: &Conv, ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    let from = (0..ins.len()).map(|k| operand(ins, k)).collect::<Result<SmallVec<[BufferView<'_>; 3]>>>()?;
    conv::conv(c, &from, out)
}

pub(super) fn pool(p: &call::Pool, ins: &[Operand<'_>], outs: &[Option<contract::View<'_>>]) -> Result<()> {
    let from = (0..ins.len()).map(|k| operand(ins, k)).collect::<Result<SmallVec<[BufferView<'_>; 2]>>>()?;
    let to = (0..p.outputs()).map(|k| output(outs, k)).collect::<Result<SmallVec<[BufferView<'_>; 2]>>>()?;
    pool::pool(p, &from, &to)
}

pub(super) fn resample(r: &call::Resample, ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    resample::resample(r, operand(ins, 0)?, out)
}

pub(super) fn grid_sample(g: &call::GridSample, ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    let from = (0..ins.len()).map(|k| operand(ins, k)).collect::<Result<SmallVec<[BufferView<'_>; 3]>>>()?;
    grid_sample::grid_sample(g, &from, out)
}

pub(super) fn recurrent(r: &call::Recurrent, ins: &[Operand<'_>], outs: &[Option<contract::View<'_>>]) -> Result<()> {
    let from = (0..ins.len()).map(|k| operand(ins, k)).collect::<Result<SmallVec<[BufferView<'_>; 12]>>>()?;
    let to = (0..outs.len()).map(|k| output(outs, k)).collect::<Result<SmallVec<[BufferView<'_>; 6]>>>()?;
    recurrent::recurrent(r, &from, &to)
}

pub(super) fn gemm(ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    matmul::matmul("matmul", operand(ins, 0)?, operand(ins, 1)?, out)
}

/// Elements that are not zero, counted on the device.
pub(super) struct NonzeroCount<'a>(nonzero::Nonzero<'a>);

pub(super) fn count_nonzero<'a>(x: &contract::View<'a>) -> Result<NonzeroCount<'a>> {
    Ok(NonzeroCount(nonzero::Nonzero::count("nonzero", view(x)?)?))
}

impl CountedResult for NonzeroCount<'_> {
    fn count(&self) -> usize {
        self.0.count
    }

    unsafe fn fill(&self, out: contract::View<'_>) -> Result<()> {
        self.0.positions(view(&out)?)
    }
}
