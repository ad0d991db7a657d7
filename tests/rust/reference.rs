//! A backend of its own, outside the crate: scalar loops over operands, as plainly as the requests' descriptions say it. What it gives is
//! compared with the CPU.

use super::reference_elements::V::{self, F, I};
use super::reference_elements::{Cells, X, get, indices, nth, put, rows, start, with};
use rgrad_kernels::backend::contract::{Backend, CountedResult, DeviceMemory, Memory, Operand, Program, Support, View, not_implemented};
use rgrad_kernels::backend::cpu::backend::CPU;
use rgrad_kernels::call::{Fill, IndexPlan, NllReduction, Pointwise, Reducer, Request, RequestKind, ScanKind, Write};
use rgrad_kernels::error::{Error, Result};
use rgrad_kernels::host::memory::raw_slice::RawSlice;
use rgrad_kernels::layout::{DType, ElementBytes, Layout};
use rgrad_kernels::program::{StepInput, StepKind};
use rgrad_kernels::rows::Func;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic;

thread_local! {
    /// The kinds of requests that have run here on this thread.
    static RAN: RefCell<HashSet<RequestKind>> = RefCell::default();
}

/// The kinds of requests that have run on this thread since the last call.
pub fn take_ran() -> HashSet<RequestKind> {
    RAN.take()
}

fn note(kind: RequestKind) {
    RAN.with_borrow_mut(|r| r.insert(kind));
}

#[derive(Debug)]
pub struct Reference;

pub fn find() -> Result<Arc<dyn Backend>> {
    Ok(Arc::new(Reference))
}

fn wrong(what: &str) -> Error {
    Error::internal("the reference backend", what)
}

fn view<'a>(ins: &[Operand<'a>], k: usize) -> Result<X<'a>> {
    match ins.get(k) {
        Some(Operand::View(v)) => Ok(X { v: *v }),
        _ => Err(wrong("no view")),
    }
}

/// The first operand as memory, where it is a program that is run now.
fn first<'a>(ins: &[Operand<'a>], cells: &'a Cells) -> Result<X<'a>> {
    match ins.first() {
        Some(Operand::Made { program, shape, strides }) => {
            let made = all_steps(program)?;
            let dtype = program.dtype();
            let last = made.last().ok_or_else(|| wrong("no step"))?;
            for (i, v) in last.iter().enumerate() {
                // SAFETY: the cells have room for all elements.
                unsafe { put(cells.start().add(i * dtype.size()), dtype, *v) };
            }
            Ok(X { v: View { memory: Memory::Device(cells), offset: 0, shape, strides, dtype } })
        }
        _ => view(ins, 0),
    }
}

fn room(ins: &[Operand<'_>]) -> Cells {
    match ins.first() {
        Some(Operand::Made { shape, .. }) => Cells::new(shape.iter().product::<usize>() * 8),
        _ => Cells::new(0),
    }
}

/// One element of a row, by the table's own definition.
fn row(p: &Pointwise, ins: &[Option<(V, DType)>]) -> Result<V> {
    let out = p.func.out_dtype(p.compute);
    let mut cells = [[0u64; 1]; 6];
    let mut operands = Vec::new();
    for (k, i) in ins.iter().enumerate() {
        operands.push(match i {
            None => Operand::Unread,
            Some((v, dtype)) => {
                let memory = cells[k].as_mut_ptr().cast::<u8>();
                // SAFETY: eight bytes hold any element.
                unsafe { put(memory, *dtype, *v) };
                Operand::View(View { memory: Memory::Host(memory), offset: 0, shape: &[], strides: &[], dtype: *dtype })
            }
        });
    }
    let to = cells[5].as_mut_ptr().cast::<u8>();
    let target = View { memory: Memory::Host(to), offset: 0, shape: &[], strides: &[], dtype: out };
    // SAFETY: one element each.
    unsafe {
        CPU.run(&Request::Pointwise(p.clone()), &operands, &[Some(target)])?;
        Ok(get(to, out))
    }
}

#[repr(align(16))]
struct Aligned(ElementBytes);

/// What each step of a program makes, in its memory order; outputs are written.
fn all_steps(program: &Program<'_>) -> Result<Vec<Vec<V>>> {
    // The elements' places in memory order.
    let mut order: Vec<Vec<usize>> = indices(program.shape).collect();
    order.sort_by_key(|i| i.iter().zip(program.strides).map(|(i, s)| *i as isize * s).sum::<isize>());
    let mut made: Vec<Vec<V>> = Vec::new();
    for step in &program.code.steps {
        let mut values = Vec::new();
        for (n, at) in order.iter().enumerate() {
            let read = |(from, dtype): &(StepInput, DType)| match from {
                StepInput::Nothing => None,
                // SAFETY: the bytes of an element, aligned for any.
                StepInput::Value(bytes) => Some((unsafe { get(Aligned(*bytes).0.as_ptr(), *dtype) }, *dtype)),
                StepInput::Step(j) => Some((made[*j][n], *dtype)),
                StepInput::Input(k) => {
                    let i = &program.inputs[*k];
                    let off = i.strides.map_or(n as isize, |s| at.iter().zip(s).map(|(i, s)| *i as isize * s).sum());
                    // SAFETY: the promise of `Backend::run_program`.
                    Some((unsafe { get(start(i.memory).add((i.offset as isize + off) as usize * i.dtype.size()), i.dtype) }, *dtype))
                }
            };
            let ins: Vec<Option<(V, DType)>> = step.ins.iter().map(read).collect();
            let v = match step.kind {
                StepKind::Cast => ins[0].map_or(I(0), |i| i.0),
                StepKind::Row { func, compute, params } => row(&Pointwise { func, compute, params }, &ins)?,
            };
            let mut cell = 0u64;
            // SAFETY: eight bytes hold any element: a step gives its dtype's values.
            values.push(unsafe {
                put((&raw mut cell).cast(), step.out, v);
                get((&raw const cell).cast(), step.out)
            });
        }
        made.push(values);
    }
    for (step, memory) in program.outputs {
        let dtype = program.code.steps[*step].out;
        for (i, v) in made[*step].iter().enumerate() {
            // SAFETY: the promise of `Backend::run_program`.
            unsafe { put(start(*memory).add(i * dtype.size()), dtype, *v) };
        }
    }
    program.is_written.store(true, atomic::Ordering::Relaxed);
    Ok(made)
}

fn reduce(r: Reducer, x: &[V]) -> V {
    let best = |max: bool| x.iter().copied().reduce(|a, b| if b.beats(a, max) { b } else { a }).unwrap_or(I(0));
    let float = x.first().is_none_or(|v| matches!(v, F(_)));
    match r {
        Reducer::Sum => x.iter().fold(if float { F(0.0) } else { I(0) }, |a, b| a.plus(*b)),
        Reducer::Prod => x.iter().fold(if float { F(1.0) } else { I(1) }, |a, b| a.times(*b)),
        Reducer::Extreme { max } => best(max),
        Reducer::Truth { all } => I(i64::from(if all { x.iter().all(|v| v.is_true()) } else { x.iter().any(|v| v.is_true()) })),
        Reducer::CountNonzero => I(x.iter().filter(|v| v.is_true()).count() as i64),
        Reducer::SquaredDeviations => {
            let mean = x.iter().map(|v| v.f()).sum::<f64>() / x.len() as f64;
            F(x.iter().map(|v| (v.f() - mean).powi(2)).sum())
        }
        Reducer::LogSumExp => {
            let top = best(true).f();
            if x.is_empty() { F(f64::NEG_INFINITY) } else { F(top + x.iter().map(|v| (v.f() - top).exp()).sum::<f64>().ln()) }
        }
        Reducer::Norm(p) => {
            let sizes = x.iter().map(|v| v.f().abs());
            F(match p {
                0.0 => sizes.filter(|v| *v != 0.0).count() as f64,
                f64::INFINITY => sizes.fold(0.0, f64::max),
                f64::NEG_INFINITY => sizes.fold(f64::INFINITY, f64::min),
                _ => sizes.map(|v| v.powf(p)).sum::<f64>().powf(1.0 / p),
            })
        }
    }
}

fn softmax(pass: rgrad::call::SoftmaxPass, first: &[V], y: &[V]) -> Vec<V> {
    let first: Vec<f64> = first.iter().map(|v| v.f()).collect();
    let y: Vec<f64> = y.iter().map(|v| v.f()).collect();
    let made: Vec<f64> = if pass.backward {
        let s: f64 = if pass.log { first.iter().sum() } else { first.iter().zip(&y).map(|(g, y)| g * y).sum() };
        first.iter().zip(&y).map(|(g, y)| if pass.log { g - y.exp() * s } else { (g - s) * y }).collect()
    } else {
        let top = first.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = first.iter().map(|v| (v - top).exp()).sum();
        first.iter().map(|v| if pass.log { v - top - total.ln() } else { (v - top).exp() / total }).collect()
    };
    made.into_iter().map(F).collect()
}

fn combine(how: Write, old: V, new: V) -> V {
    match how {
        Write::Set => new,
        Write::Add => old.plus(new),
        Write::Multiply => old.times(new),
    }
}

/// Calls `f(index of the result, index of the array)` for each element that a plan names, in order.
fn positions(i: &IndexPlan, x: &X<'_>, at: &[X<'_>], mut f: impl FnMut(&[usize], &[usize])) -> Result<()> {
    let (before, after) = i.rest(x.rank());
    let shape = i.shape(x.v.shape, at[0].v.shape);
    // All positions are checked before anything is done.
    for (a, dim) in at.iter().zip(&i.dims) {
        for v in a.all() {
            let low = if i.bounds.wraps() { -(x.size(*dim) as i64) } else { 0 };
            if v.i() < low || v.i() >= x.size(*dim) as i64 {
                return Err(i.bounds.error(v.i(), *dim, x.size(*dim)));
            }
        }
    }
    for to in indices(&shape) {
        let inner = &to[before.len()..before.len() + at[0].rank()];
        let mut from = vec![0; x.rank()];
        for (k, d) in before.iter().enumerate() {
            from[*d] = to[k];
        }
        for (k, d) in after.iter().enumerate() {
            from[*d] = to[before.len() + inner.len() + k];
        }
        for (a, d) in at.iter().zip(&i.dims) {
            from[*d] = a.get(inner).i().rem_euclid(x.size(*d) as i64) as usize;
        }
        f(&to, &from);
    }
    Ok(())
}

struct Found(Vec<Vec<usize>>, usize);

impl CountedResult for Found {
    fn count(&self) -> usize {
        self.0.len()
    }
    unsafe fn fill(&self, out: View<'_>) -> Result<()> {
        let out = X { v: out };
        for (k, at) in self.0.iter().enumerate() {
            (0..self.1).for_each(|d| out.put(&[d, k], I(at[d] as i64)));
        }
        Ok(())
    }
}

impl Backend for Reference {
    fn element_size(&self, dtype: DType) -> usize {
        dtype.size()
    }
    fn has_dtype(&self, _dtype: DType) -> Result<()> {
        Ok(())
    }
    fn allocate(&self, bytes: usize, _dtype: DType) -> Result<Box<dyn DeviceMemory>> {
        Ok(Box::new(Cells::new(bytes)))
    }
    fn has_room(&self, _bytes: usize) -> bool {
        true
    }
    fn upload(&self, from: RawSlice<'_, u8>, _dtype: DType, to: &dyn DeviceMemory) -> Result<()> {
        for (i, b) in from.iter().enumerate() {
            // SAFETY: the contract: there is room.
            unsafe { *start(Memory::Device(to)).add(i) = b };
        }
        Ok(())
    }
    unsafe fn download(&self, from: &dyn DeviceMemory, at: usize, n: usize, dtype: DType, to: *mut u8) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { std::ptr::copy_nonoverlapping(start(Memory::Device(from)).add(at * dtype.size()), to, n * dtype.size()) };
        Ok(())
    }
    fn support(&self, request: &Request, dtype: DType) -> Support {
        CPU.support(request, dtype)
    }
    fn has_row(&self, func: Func, dtype: DType) -> bool {
        CPU.has_row(func, dtype)
    }
    fn reads_strided(&self, _shape: &[usize], _out: &[isize], _strides: &[isize], _dtype: DType) -> bool {
        true
    }
    unsafe fn check(&self, request: &Request, ins: &[Operand<'_>]) -> Result<()> {
        let Request::Nll(n) = request else { return Ok(()) };
        let bad = view(ins, 1)?.all().into_iter().find(|t| t.i() != n.classes.ignore && t.i() as u64 >= n.classes.classes as u64);
        bad.map_or(Ok(()), |t| Err(Error::index(format!("Target {} is out of bounds. There are {} classes.", t.i(), n.classes.classes))))
    }

    unsafe fn run(&self, request: &Request, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        note(request.kind());
        let cells = room(ins);
        let target = |k: usize| outs[k].map(|v| X { v });
        let values = |k: usize, at: &[usize], v: V| {
            if let Some(o) = target(k) {
                o.put(at, v);
            }
        };
        let out = target(0).or_else(|| target(1)).ok_or_else(|| wrong("no output"))?;
        match request {
            Request::Fill(Fill(s)) => {
                indices(out.v.shape).for_each(|i| out.put(&i, if let rgrad::Scalar::Int(n) = s { I(*n) } else { F(s.to_f64()) }))
            }
            Request::Copy(_) => {
                let x = view(ins, 0)?;
                indices(out.v.shape).for_each(|i| out.put(&i, x.get(&i)));
            }
            Request::Pointwise(p) => {
                for at in indices(out.v.shape) {
                    let read = |i: &Operand<'_>| match i {
                        Operand::View(v) => Some((X { v: *v }.get(&at), v.dtype)),
                        Operand::Number(s) => Some((F(s.to_f64()), DType::F64)),
                        _ => None,
                    };
                    out.put(&at, row(p, &ins.iter().map(read).collect::<Vec<_>>())?);
                }
            }
            Request::Triangle(t) => {
                let x = view(ins, 0)?;
                for i in indices(out.v.shape) {
                    let (r, c) = (i[i.len() - 2] as i64, i[i.len() - 1] as i64);
                    let kept = if t.upper { c - r >= t.diagonal } else { c - r <= t.diagonal };
                    out.put(&i, if kept { x.get(&i) } else { I(0) });
                }
            }
            Request::Reduce(r) => {
                let x = first(ins, &cells)?;
                let kept: Vec<usize> = (0..x.rank()).filter(|d| !r.reduced[*d]).collect();
                let dense = Layout::contiguous(&kept.iter().map(|d| x.size(*d)).collect::<Vec<_>>());
                let out = X { v: View { shape: dense.shape(), strides: dense.strides(), ..out.v } };
                let mut parts = vec![Vec::new(); dense.numel()];
                for i in indices(x.v.shape) {
                    let at: usize = kept.iter().zip(dense.strides()).map(|(d, s)| i[*d] * *s as usize).sum();
                    parts[at].push(x.get(&i));
                }
                let zero = if x.v.dtype.is_float() { F(0.0) } else { I(0) };
                let empty = |p: &Vec<V>| if p.is_empty() && matches!(r.reducer, Reducer::Sum) { zero } else { reduce(r.reducer, p) };
                indices(dense.shape()).zip(&parts).for_each(|(i, p)| out.put(&i, empty(p)));
            }
            Request::ArgReduce(r) => {
                let x = first(ins, &cells)?;
                for (n, at) in rows(x.v.shape, r.dim).enumerate() {
                    let all = x.row(&at, r.dim);
                    let best = (1..all.len()).fold(0, |b, i| if all[i].beats(all[b], r.max) { i } else { b });
                    nth(outs, n, all[best], best);
                }
            }
            Request::Scan(s) => {
                let x = first(ins, &cells)?;
                for at in rows(x.v.shape, s.dim) {
                    let mut acc = None;
                    for (i, v) in x.row(&at, s.dim).into_iter().enumerate() {
                        let next = acc.map_or(v, |a: V| match s.kind {
                            ScanKind::Sum => a.plus(v),
                            ScanKind::Prod => a.times(v),
                            ScanKind::LogSumExp => F((a.f().exp() + v.f().exp()).ln()),
                        });
                        out.put(&with(&at, s.dim, i), next);
                        acc = Some(next);
                    }
                }
            }
            Request::CumulativeExtreme(c) => {
                let x = view(ins, 0)?;
                for at in rows(x.v.shape, c.dim) {
                    let (all, mut best) = (x.row(&at, c.dim), 0);
                    for (i, v) in all.iter().enumerate() {
                        if v.beats(all[best], c.max) || *v == all[best] || v.is_nan() {
                            best = i;
                        }
                        values(0, &with(&at, c.dim, i), all[best]);
                        values(1, &with(&at, c.dim, i), I(best as i64));
                    }
                }
            }
            Request::Fft(f) => super::reference_fft::fft(f, &view(ins, 0)?, &out),
            Request::Sort(s) => {
                let x = view(ins, 0)?;
                for at in rows(x.v.shape, s.dim) {
                    let all = x.row(&at, s.dim);
                    let mut order: Vec<usize> = (0..all.len()).collect();
                    order.sort_by(|a, b| if s.descending { all[*b].order(all[*a]) } else { all[*a].order(all[*b]) });
                    for (i, from) in order.into_iter().take(s.keep).enumerate() {
                        values(0, &with(&at, s.dim, i), all[from]);
                        values(1, &with(&at, s.dim, i), I(from as i64));
                    }
                }
            }
            Request::Mode(m) => {
                let x = view(ins, 0)?;
                for (n, at) in rows(x.v.shape, m.dim).enumerate() {
                    let all = x.row(&at, m.dim);
                    let times = |v: V| all.iter().filter(|o| o.order(v).is_eq()).count();
                    // The most frequent, the smallest of those.
                    let better = |a: V, b: V| times(b).cmp(&times(a)).then(a.order(b)).is_gt();
                    let best = all.iter().copied().reduce(|a, b| if better(a, b) { b } else { a }).unwrap_or(I(0));
                    nth(outs, n, best, all.iter().rposition(|v| v.order(best).is_eq()).unwrap_or(0));
                }
            }
            Request::Search(s) => {
                let (sorted, x) = (view(ins, 0)?, view(ins, 1)?);
                let last = x.v.shape.len() - 1;
                for at in rows(x.v.shape, last) {
                    let all = sorted.row(&at, last);
                    for (i, v) in x.row(&at, last).into_iter().enumerate() {
                        let before = |o: &&V| if s.right { o.order(v).is_le() } else { o.order(v).is_lt() };
                        out.put(&with(&at, last, i), I(all.iter().filter(before).count() as i64));
                    }
                }
            }
            Request::Softmax(s) => {
                let x = first(ins, &cells)?;
                let y = if s.pass.backward { Some(view(ins, 1)?) } else { None };
                for at in rows(x.v.shape, s.dim) {
                    let made = softmax(s.pass, &x.row(&at, s.dim), &y.as_ref().map(|y| y.row(&at, s.dim)).unwrap_or_default());
                    made.into_iter().enumerate().for_each(|(i, v)| out.put(&with(&at, s.dim, i), v));
                }
            }
            Request::Nll(n) => {
                let (c, x, targets) = (&n.classes, first(ins, &cells)?.all(), view(ins, 1)?.all());
                let weights = if ins.len() > 2 { view(ins, 2)?.all() } else { vec![F(1.0); c.classes] };
                let chosen = targets.iter().enumerate().filter(|(_, t)| t.i() != c.ignore).map(|(i, t)| {
                    let (o, r, t) = (i / c.inner, i % c.inner, t.i() as usize);
                    (i, (o * c.classes + t) * c.inner + r, weights[t].f())
                });
                let total: f64 = if c.reduction == NllReduction::Mean { chosen.clone().map(|t| t.2).sum() } else { 1.0 };
                let mut made = vec![0.0; out.v.numel()];
                for (i, place, w) in chosen {
                    match (n.adjoint, c.reduction) {
                        (true, NllReduction::None) => made[place] = -w * x[i].f(),
                        (true, _) => made[place] = -w * x[0].f() / total,
                        (false, NllReduction::None) => made[i] = -w * x[place].f(),
                        (false, _) => made[0] -= w * x[place].f() / total,
                    }
                }
                indices(out.v.shape).zip(made).for_each(|(i, v)| out.put(&i, F(v)));
            }
            Request::Norm(n) => {
                let operands = (0..ins.len())
                    .map(|k| Ok(view(ins, k)?.all().into_iter().map(|v| v.f()).collect()))
                    .collect::<Result<Vec<Vec<f64>>>>()?;
                for (to, made) in outs.iter().flatten().zip(super::reference_norm::outputs(n, &operands)) {
                    let to = X { v: *to };
                    indices(to.v.shape).zip(made).for_each(|(i, v)| to.put(&i, F(v)));
                }
            }
            Request::Conv(c) => {
                let operands = (0..ins.len()).map(|k| Ok(view(ins, k)?.all())).collect::<Result<Vec<Vec<V>>>>()?;
                let zero = if out.v.dtype.is_float() { F(0.0) } else { I(0) };
                let made = super::reference_conv::output(c, zero, &operands);
                indices(out.v.shape).zip(made).for_each(|(i, v)| out.put(&i, v));
            }
            Request::Attention(a) => {
                let operands = (0..ins.len())
                    .map(|k| Ok(view(ins, k)?.all().into_iter().map(|v| v.f()).collect()))
                    .collect::<Result<Vec<Vec<f64>>>>()?;
                let is_bool = a.mask && view(ins, ins.len() - 1)?.v.dtype == DType::Bool;
                for (to, made) in outs.iter().flatten().zip(super::reference_attention::outputs(a, &operands, is_bool)) {
                    let to = X { v: *to };
                    indices(to.v.shape).zip(made).for_each(|(i, v)| to.put(&i, F(v)));
                }
            }
            Request::Pool(_) | Request::Resample(_) | Request::GridSample(_) | Request::Recurrent(_) => {
                let operands = (0..ins.len())
                    .map(|k| Ok(view(ins, k)?.all().into_iter().map(|v| v.f()).collect()))
                    .collect::<Result<Vec<Vec<f64>>>>()?;
                let made = match request {
                    Request::Pool(p) => super::reference_pool::outputs(p, &operands),
                    Request::Resample(r) => vec![super::reference_images::resampled(r, &operands[0])],
                    Request::GridSample(g) => vec![super::reference_images::sampled(g, &operands)],
                    Request::Recurrent(r) => super::reference_recurrence::outputs(r, &operands),
                    _ => return Err(wrong("another request")),
                };
                for (to, made) in outs.iter().flatten().zip(made) {
                    let to = X { v: *to };
                    indices(to.v.shape).zip(made).for_each(|(i, v)| to.put(&i, F(v)));
                }
            }
            #[allow(clippy::type_complexity)]
            Request::Factor(f) => {
                let views = (0..ins.len()).map(|k| Ok(view(ins, k)?.v)).collect::<Result<Vec<View<'_>>>>()?;
                let seen = |all: &[View<'_>]| all.iter().map(|v| Some((v.shape.to_vec(), v.dtype))).collect::<Vec<_>>();
                let (from, to) = (seen(&views), seen(&outs.iter().flatten().copied().collect::<Vec<_>>()));
                let borrowed = |all: &[Option<(Vec<usize>, DType)>], f: &mut dyn FnMut(&[Option<(&[usize], DType)>])| {
                    f(&all.iter().map(|s| s.as_ref().map(|(s, d)| (&s[..], *d))).collect::<Vec<_>>());
                };
                let mut sizes = None;
                borrowed(&from, &mut |i| borrowed(&to, &mut |o| sizes = f.sizes(i, o)));
                let sizes = sizes.ok_or_else(|| wrong("other sizes"))?;
                let count = views[0].shape[..views[0].shape.len() - 2].iter().product();
                let operands: Vec<Vec<f64>> = views.iter().map(|v| X { v: *v }.all().into_iter().map(|v| v.f()).collect()).collect();
                let made =
                    super::reference_factor::outputs(f, sizes, count, &operands).ok_or_else(|| wrong("vectors that are not unique"))?;
                for (to, made) in outs.iter().flatten().zip(made) {
                    let to = X { v: *to };
                    indices(to.v.shape).zip(made).for_each(|(i, v)| to.put(&i, if to.v.dtype == DType::I32 { I(v as i64) } else { F(v) }));
                }
            }
            Request::Matmul(_) => {
                let (a, b) = (view(ins, 0)?, view(ins, 1)?);
                let r = out.rank();
                for at in indices(out.v.shape) {
                    let product = |k: usize| a.get(&with(&at, r - 1, k)).times(b.get(&with(&at, r - 2, k)));
                    out.put(&at, (0..a.size(r - 1)).map(product).reduce(V::plus).unwrap_or(I(0)));
                }
            }
            Request::IndexRead(i) => {
                let x = view(ins, 0)?;
                let at = (1..ins.len()).map(|k| view(ins, k)).collect::<Result<Vec<_>>>()?;
                positions(i, &x, &at, |to, from| out.put(to, x.get(from)))?;
            }
            Request::IndexWrite(w) => {
                let x = view(ins, 0)?;
                let at = (1..ins.len()).map(|k| view(ins, k)).collect::<Result<Vec<_>>>()?;
                positions(&w.index, &out, &at, |from, to| out.put(to, combine(w.how, out.get(to), x.get(from))))?;
            }
            Request::Gather(a) => {
                let (x, index) = (view(ins, 0)?, view(ins, 1)?);
                for at in indices(index.v.shape) {
                    out.put(&at, x.get(&with(&at, a.dim, index.get(&at).i() as usize)));
                }
            }
            Request::Scatter(s) => {
                let (x, index) = (view(ins, 0)?, view(ins, 1)?);
                for at in indices(index.v.shape) {
                    let to = with(&at, s.dim, index.get(&at).i() as usize);
                    out.put(&to, combine(s.how, out.get(&to), x.get(if x.rank() == 0 { &[] } else { &at })));
                }
            }
            Request::Random(r) => {
                let chances = if ins.is_empty() { None } else { Some(view(ins, 0)?) };
                let (single, float) = (out.v.dtype.computed() == DType::F32, out.v.dtype.is_float());
                for (i, at) in indices(out.v.shape).enumerate() {
                    let v = super::reference_random::number(r, i, single, chances.as_ref().map_or(0.0, |c| c.get(&at).f()));
                    out.put(&at, if float { F(v) } else { I(v as i64) });
                }
            }
            _ => return Err(not_implemented(request, "reference")),
        }
        Ok(())
    }

    unsafe fn run_program(&self, program: &Program<'_>) -> Result<()> {
        note(RequestKind::Pointwise);
        all_steps(program).map(|_| ())
    }

    unsafe fn count<'a>(&'a self, request: &Request, x: View<'a>) -> Result<Box<dyn CountedResult + 'a>> {
        note(request.kind());
        match request {
            Request::Nonzero(_) => {
                let x = X { v: x };
                Ok(Box::new(Found(indices(x.v.shape).filter(|i| x.get(i).is_true()).collect(), x.rank())))
            }
            _ => Err(not_implemented(request, "reference")),
        }
    }
}
