//! Runs a row, or its derivative, over strided memory.

use super::cast::{Move, mover};
use super::kernels::{self, Kernel, LANES, MAX_INPUTS, MAX_OPERANDS, MAX_PARAMS};
use super::num::{Level, level};
use super::threads::parallel_for;
use super::walk::{Tiles, collapse};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use crate::pointwise::{OUTPUT, RowId};
use std::mem::MaybeUninit;

/// What of a row is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Its value, from its operands.
    Forward,
    /// What operand `i` gets from the cotangent; from the cotangent, the operands and the output, in this order.
    Vjp(u8),
}

/// A row and what of it is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Func {
    pub row: RowId,
    pub part: Part,
}

impl Func {
    pub fn forward(row: RowId) -> Self {
        Func { row, part: Part::Forward }
    }

    pub fn vjp(row: RowId, operand: usize) -> Self {
        Func { row, part: Part::Vjp(operand as u8) }
    }

    /// How many inputs `run` expects.
    pub fn inputs(self) -> usize {
        match self.part {
            Part::Forward => self.row.info().arity(),
            Part::Vjp(_) => self.row.info().arity() + 2,
        }
    }

    /// Bit `k`: input `k` of `run` is read. The others can be null.
    pub fn reads(self) -> u32 {
        let info = self.row.info();
        match self.part {
            Part::Forward => (1 << info.arity()) - 1,
            Part::Vjp(i) => {
                let saves = info.saves(1 << i);
                1 | ((saves & !OUTPUT) as u32) << 1 | ((saves & OUTPUT != 0) as u32) << (info.arity() + 1)
            }
        }
    }

    /// The element type of the result of computing in `dtype`.
    pub fn out_dtype(self, dtype: DType) -> DType {
        if self.part == Part::Forward && self.row.info().is_predicate() { DType::Bool } else { dtype }
    }

    /// The element type that input `k` is seen as: `dtype`, but bool for masks.
    fn in_dtype(self, k: usize, dtype: DType) -> DType {
        let operand = match self.part {
            Part::Forward => Some(k),
            Part::Vjp(_) => k.checked_sub(1),
        };
        match operand.and_then(|k| self.row.info().operands.get(k)) {
            Some(o) if o.mask => DType::Bool,
            _ => dtype,
        }
    }

    /// Whether this machine has a kernel for it that computes in `dtype`.
    pub fn has_kernel(self, dtype: DType) -> bool {
        match self.part {
            Part::Forward => kernels::forward_kernel(self.row, dtype, level()).is_some(),
            Part::Vjp(i) => kernels::vjp_kernel(self.row, i as usize, dtype, level()).is_some(),
        }
    }

    /// Whether integer operands may make it fail.
    fn divides(self) -> bool {
        self.part == Part::Forward
            && matches!(
                self.row,
                RowId::DivFloor | RowId::DivTrunc | RowId::FloorDivide | RowId::Fmod | RowId::Remainder
            )
    }
}

/// An input: its first element, and its strides in elements of the common shape. No strides at all stand for a single value.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    pub ptr: *const u8,
    pub strides: &'a [isize],
    pub dtype: DType,
}

/// The output and every input.
const N: usize = MAX_INPUTS + 1;
/// Elements of a tile: its buffers stay in the first-level cache.
const ROOM: usize = 512;
/// Work is split into pieces of so many elements, whatever the number of threads.
const GRAIN: usize = 1 << 15;

#[repr(C, align(64))]
struct Buffer<const B: usize>(MaybeUninit<[u8; B]>);

impl<const B: usize> Buffer<B> {
    #[inline(always)]
    fn new() -> Self {
        Buffer(MaybeUninit::uninit())
    }
    #[inline(always)]
    fn ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr() as *mut u8
    }
}

/// One kernel and its inputs, slots as the kernel numbers them.
struct Job {
    kernel: Kernel,
    params: [Scalar; MAX_PARAMS],
    /// Bytes of one element; 0 for an input that is not read.
    sizes: [usize; MAX_INPUTS],
    /// How an input gets into a buffer, and whether it may also be used where it is.
    moves: [Option<Move>; MAX_INPUTS],
    direct: [bool; MAX_INPUTS],
    out_size: usize,
    out_move: Move,
}

impl Job {
    /// Computes `n` elements from dense inputs to a dense output.
    ///
    /// # Safety
    /// All pointers hold `n` elements, or are of inputs that are not read.
    #[inline]
    unsafe fn dense(&self, n: usize, out: *mut u8, ins: &[*const u8; MAX_INPUTS]) {
        let blocks = n / LANES;
        // SAFETY: the caller's; the last, partial block is computed in buffers.
        unsafe {
            if blocks > 0 {
                (self.kernel)(blocks, out, ins, &self.params);
            }
            let (done, rest) = (blocks * LANES, n % LANES);
            if rest > 0 {
                let mut buffers = [const { [0u64; LANES] }; MAX_INPUTS];
                let mut result = [0u64; LANES];
                let mut at = [std::ptr::null(); MAX_INPUTS];
                for k in 0..MAX_INPUTS {
                    let size = self.sizes[k];
                    let buffer = buffers[k].as_mut_ptr() as *mut u8;
                    if size > 0 {
                        std::ptr::copy_nonoverlapping(ins[k].add(done * size), buffer, rest * size);
                    }
                    at[k] = buffer as *const u8;
                }
                (self.kernel)(1, result.as_mut_ptr() as *mut u8, &at, &self.params);
                std::ptr::copy_nonoverlapping(
                    result.as_ptr() as *const u8,
                    out.add(done * self.out_size),
                    rest * self.out_size,
                );
            }
        }
    }

    /// One dense run of the output. Inputs are dense too, or single values.
    ///
    /// # Safety
    /// The output holds `n` elements, inputs with `single` false as many, the others one.
    unsafe fn flat(&self, n: usize, out: *mut u8, ins: &[*const u8; MAX_INPUTS], single: &[bool; MAX_INPUTS]) {
        if !single.iter().any(|s| *s) {
            // SAFETY: the caller's.
            return split(n, |start, len| unsafe {
                self.dense(len, out.add(start * self.out_size), &self.advance(ins, start))
            });
        }
        split(n, |start, len| {
            let mut buffers = [const { Buffer::<{ ROOM * 8 }>(MaybeUninit::uninit()) }; MAX_INPUTS];
            let mut at = *ins;
            let room = len.min(ROOM);
            // SAFETY: the caller's; a single value fills a buffer once, and the buffer is used again for each run of `ROOM`.
            unsafe {
                for k in 0..MAX_INPUTS {
                    if single[k]
                        && let Some(mv) = self.moves[k]
                    {
                        at[k] = buffers[k].ptr();
                        mv(1, room, ins[k], (0, 0), buffers[k].ptr(), (0, self.sizes[k] as isize));
                    }
                }
                let mut done = 0;
                while done < len {
                    let now = (len - done).min(ROOM);
                    let mut here = at;
                    for k in 0..MAX_INPUTS {
                        if !single[k] && self.sizes[k] > 0 {
                            here[k] = ins[k].add((start + done) * self.sizes[k]);
                        }
                    }
                    self.dense(now, out.add((start + done) * self.out_size), &here);
                    done += now;
                }
            }
        });
    }

    #[inline]
    unsafe fn advance(&self, ins: &[*const u8; MAX_INPUTS], start: usize) -> [*const u8; MAX_INPUTS] {
        let mut at = *ins;
        for k in 0..MAX_INPUTS {
            // SAFETY: the input holds `start` elements; one that is not read has the size 0 and stays where it is.
            at[k] = unsafe { ins[k].add(start * self.sizes[k]) };
        }
        at
    }

    /// Any strides: tile by tile, through buffers where an operand is not dense within the tile.
    ///
    /// # Safety
    /// The tiles lie within the operands.
    unsafe fn tiled(&self, tiles: &Tiles<N>, out: *mut u8, ins: &[*const u8; MAX_INPUTS]) {
        let (count, per) = (tiles.count(), tiles.per_grain(GRAIN));
        let (out, ins) = (Shared(out), Shared(*ins));
        parallel_for(count.div_ceil(per), |piece| {
            let (out, ins) = (out.get(), ins.get());
            let mut buffers = [const { Buffer::<{ ROOM * 8 }>(MaybeUninit::uninit()) }; MAX_INPUTS];
            let mut result = Buffer::<{ ROOM * 8 }>::new();
            tiles.for_each(piece * per, count.min((piece + 1) * per), |tile| {
                let dense_here = |s: (isize, isize), size: usize| {
                    (s.1 == size as isize || tile.cols == 1)
                        && (tile.rows == 1 || s.0 == (size * tile.cols) as isize)
                };
                let mut at = [std::ptr::null(); MAX_INPUTS];
                // SAFETY: tiles have at most ROOM elements, each of at most 8 bytes; the rest is the caller's.
                unsafe {
                    for k in 0..MAX_INPUTS {
                        let Some(mv) = self.moves[k] else { continue };
                        let (s, size) = (tiles.strides(k + 1), self.sizes[k]);
                        let src = ins[k].offset(tile.offsets[k + 1]);
                        at[k] = if self.direct[k] && dense_here(s, size) {
                            src
                        } else {
                            let buffer = buffers[k].ptr();
                            mv(tile.rows, tile.cols, src, s, buffer, ((size * tile.cols) as isize, size as isize));
                            buffer as *const u8
                        };
                    }
                    let (s, size) = (tiles.strides(0), self.out_size);
                    let dst = out.offset(tile.offsets[0]);
                    if dense_here(s, size) {
                        self.dense(tile.rows * tile.cols, dst, &at);
                    } else {
                        self.dense(tile.rows * tile.cols, result.ptr(), &at);
                        (self.out_move)(
                            tile.rows,
                            tile.cols,
                            result.ptr(),
                            ((size * tile.cols) as isize, size as isize),
                            dst,
                            s,
                        );
                    }
                }
            });
        });
    }
}

/// Something that the threads of one kernel share.
#[derive(Clone, Copy)]
struct Shared<T>(T);
// SAFETY: only used for pointers into operands that outlive the kernel, of which each thread writes its own part.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    #[inline(always)]
    fn get(&self) -> T {
        self.0
    }
}

/// Calls `f(start, len)` for the pieces of `0..n`, on all threads when there is enough to do.
#[inline]
fn split(n: usize, f: impl Fn(usize, usize)) {
    if n < 2 * GRAIN {
        return f(0, n);
    }
    let f = Shared(&f);
    parallel_for(n.div_ceil(GRAIN), |i| (f.get())(i * GRAIN, GRAIN.min(n - i * GRAIN)));
}

/// Computes `func` in `dtype` for every element of `shape`.
///
/// Inputs of another element type than the function sees are converted on the way (nothing is promoted here).
/// Errors: a dtype that the row does not take; integer division by zero, before anything is written.
///
/// # Safety
/// Every element that the shape and the strides (in elements) name is inside the memory of its operand, aligned, and initialised
/// for inputs. Input pointers that `func.reads()` leaves out may be null. No two indices name the same output element. An input may
/// be the output's memory element for element, but may not overlap it otherwise.
pub unsafe fn run(
    func: Func,
    dtype: DType,
    shape: &[usize],
    out: *mut u8,
    out_strides: &[isize],
    ins: &[Operand<'_>],
    params: &[Scalar],
) -> Result<()> {
    // SAFETY: the caller's.
    unsafe { run_at(level(), func, dtype, shape, out, out_strides, ins, params) }
}

/// `run` with a given instruction set, which the machine must have.
///
/// # Safety
/// As for `run`, and the machine has `level`.
#[allow(clippy::too_many_arguments)]
pub unsafe fn run_at(
    level: Level,
    func: Func,
    dtype: DType,
    shape: &[usize],
    out: *mut u8,
    out_strides: &[isize],
    ins: &[Operand<'_>],
    params: &[Scalar],
) -> Result<()> {
    debug_assert_eq!(ins.len(), func.inputs());
    let (func, params) = specialise(func, params);
    let kernel = match func.part {
        Part::Forward => kernels::forward_kernel(func.row, dtype, level),
        Part::Vjp(i) => kernels::vjp_kernel(func.row, i as usize, dtype, level),
    };
    let Some(kernel) = kernel else {
        return Err(refused(func, dtype));
    };
    let numel: usize = shape.iter().product();
    if numel == 0 {
        return Ok(());
    }
    if func.divides() && !dtype.is_float() {
        // SAFETY: the caller's.
        unsafe { refuse_zero(func, shape, &ins[1])? };
    }

    let out_dtype = func.out_dtype(dtype);
    let mut job = Job {
        kernel,
        params: [Scalar::Int(0); MAX_PARAMS],
        sizes: [0; MAX_INPUTS],
        moves: [None; MAX_INPUTS],
        direct: [false; MAX_INPUTS],
        out_size: out_dtype.size(),
        out_move: mover(out_dtype, out_dtype),
    };
    job.params[..params.len()].copy_from_slice(params);
    let mut ptrs = [std::ptr::null(); MAX_INPUTS];
    let mut strides: [&[isize]; MAX_INPUTS] = [&[]; MAX_INPUTS];
    let mut steps = [0usize; N];
    steps[0] = job.out_size;

    let out_flat = is_contiguous(shape, out_strides);
    let mut flat = out_flat;
    let mut single = [false; MAX_INPUTS];
    let reads = func.reads();
    let last = ins.len() - 1;
    for (i, operand) in ins.iter().enumerate() {
        if reads >> i & 1 == 0 {
            continue;
        }
        // In a derivative the output has a slot of its own, whatever the arity.
        let k = if i == last && func.part != Part::Forward { 1 + MAX_OPERANDS } else { i };
        let seen = func.in_dtype(i, dtype);
        ptrs[k] = operand.ptr;
        strides[k] = operand.strides;
        steps[k + 1] = operand.dtype.size();
        job.sizes[k] = seen.size();
        job.moves[k] = Some(mover(operand.dtype, seen));
        job.direct[k] = operand.dtype == seen;
        single[k] = numel == 1 && operand.dtype != seen || numel > 1 && all_zero(shape, operand.strides);
        flat = flat && (single[k] || job.direct[k] && (numel == 1 || same_strides(shape, operand.strides, out_strides)));
    }
    // SAFETY: the caller's.
    unsafe {
        if flat {
            job.flat(numel, out, &ptrs, &single);
        } else {
            let mut all: [&[isize]; N] = [&[]; N];
            all[0] = out_strides;
            all[1..].copy_from_slice(&strides);
            let dims = collapse(shape, all, steps);
            if let [dim] = dims.as_slice()
                && dim.strides[0] == job.out_size as isize
                && (0..MAX_INPUTS).all(|k| {
                    let s = dim.strides[k + 1];
                    single[k] = job.moves[k].is_some() && s == 0;
                    s == 0 || job.direct[k] && s == steps[k + 1] as isize
                })
            {
                job.flat(dim.size, out, &ptrs, &single);
            } else {
                job.tiled(&Tiles::new(dims, ROOM, steps), out, &ptrs);
            }
        }
    }
    Ok(())
}

/// Powers that have a faster row with the same bits.
#[inline]
fn specialise(func: Func, params: &[Scalar]) -> (Func, &[Scalar]) {
    if func.row == RowId::PowScalar && params[0].to_f64() == 2.0 {
        return (Func { row: RowId::Square, ..func }, &[]);
    }
    (func, params)
}

#[inline]
fn is_contiguous(shape: &[usize], strides: &[isize]) -> bool {
    let mut step = 1;
    for (&size, &stride) in shape.iter().zip(strides).rev() {
        if size != 1 && stride != step {
            return false;
        }
        step *= size as isize;
    }
    true
}

#[inline]
fn same_strides(shape: &[usize], a: &[isize], b: &[isize]) -> bool {
    a.len() == b.len() && (0..a.len()).all(|i| a[i] == b[i] || shape[i] == 1)
}

#[inline]
fn all_zero(shape: &[usize], strides: &[isize]) -> bool {
    strides.iter().zip(shape).all(|(&s, &n)| s == 0 || n == 1)
}

#[cold]
fn refused(func: Func, dtype: DType) -> Error {
    let info = func.row.info();
    match func.part {
        Part::Forward => Error::not_implemented(format!(
            "{}: \"{}_cpu\" not implemented for '{}'; convert the input first, for example with .to()",
            info.name,
            info.name,
            dtype.type_name()
        )),
        Part::Vjp(i) => Error::runtime(format!(
            "{}: there is no derivative with respect to operand {i} in {dtype}",
            info.name
        )),
    }
}

/// # Safety
/// As for `run`, of this input.
unsafe fn refuse_zero(func: Func, shape: &[usize], divisor: &Operand<'_>) -> Result<()> {
    let size = divisor.dtype.size();
    let to_bool = mover(divisor.dtype, DType::Bool);
    // Broadcast dimensions name the same elements again: they need not be looked at.
    let shape: smallvec::SmallVec<[usize; 8]> = shape
        .iter()
        .enumerate()
        .map(|(i, &n)| if divisor.strides.get(i).is_none_or(|s| *s == 0) { 1 } else { n })
        .collect();
    let tiles = Tiles::new(collapse::<1>(&shape, [divisor.strides], [size]), ROOM, [size]);
    let mut found = false;
    tiles.for_each(0, tiles.count(), |tile| {
        let mut truth = [1u8; ROOM];
        // SAFETY: the caller's; a tile has at most ROOM elements.
        unsafe {
            let src = divisor.ptr.offset(tile.offsets[0]);
            to_bool(tile.rows, tile.cols, src, tiles.strides(0), truth.as_mut_ptr(), (tile.cols as isize, 1));
        }
        found |= truth[..tile.rows * tile.cols].contains(&0);
    });
    if found {
        return Err(Error::runtime(format!(
            "ZeroDivisionError: {}: integer division by zero; the divisor has zeros, mask them or divide floats",
            func.row.info().name
        )));
    }
    Ok(())
}
