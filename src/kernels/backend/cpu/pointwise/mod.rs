//! Pointwise operations: runs a row, or its derivative, over strided memory. `kernels` is the table of compiled `loops`, `small` the path for
//! few elements, `fused` runs programs of several steps. Not here: what a row computes (`crate::rows`), copies and conversions alone
//! (`copy`, `cast`).

pub(super) mod compute;
#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(test)]
mod complex_tests;
#[cfg(test)]
mod math_tests;
pub mod fused;
pub mod kernels;
mod loops;
#[cfg(target_arch = "x86_64")]
mod roots;
pub mod small;
mod special;

use self::kernels::{KernelFn, LANES, MAX_INPUTS, MAX_OPERANDS};
use crate::backend::cpu::common::cast::{CastRoute, ConvertFn, convert_fn, stored};
use crate::backend::cpu::common::strided::{StridedDim, Tiles, collapse};
use crate::error::{Error, Result};
use crate::host::threads::parallel_for;
use crate::layout::{Complex64, DType, Scalar, WIDEST};
pub use crate::rows::{Func, Part};
use crate::rows::{MAX_PARAMS, RowId};
use crate::simd::{InstructionSet, instruction_set};
use std::mem::MaybeUninit;

/// Whether this machine has a kernel for `func` that computes in `dtype`.
pub fn has_kernel(func: Func, dtype: DType) -> bool {
    match func.part {
        Part::Forward => kernels::forward_kernel(func.row, dtype, instruction_set()).is_some(),
        Part::Vjp(i) => kernels::vjp_kernel(func.row, i as usize, dtype, instruction_set()).is_some(),
    }
}

/// An input: its first element, and its strides in elements of the common shape. No strides at all stand for a single value.
#[derive(Debug, Clone, Copy)]
pub struct StridedOperand<'a> {
    pub ptr: *const u8,
    pub strides: &'a [isize],
    pub dtype: DType,
}

/// The output and every input.
const N: usize = MAX_INPUTS + 1;
/// Elements of a tile: its buffers stay in the first-level cache.
const ROOM: usize = 512;
/// Work is split into pieces of this many elements, for any number of threads.
const GRAIN: usize = 1 << 15;

/// As wide as the widest elements.
type Widest = Complex64;

#[repr(C, align(64))]
struct TileBuffer<const B: usize>(MaybeUninit<[u8; B]>);

impl<const B: usize> TileBuffer<B> {
    #[inline(always)]
    fn new() -> Self {
        TileBuffer(MaybeUninit::uninit())
    }
    #[inline(always)]
    fn ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr() as *mut u8
    }
}

/// A kernel over dense memory; slots are numbered as the kernel numbers them.
pub(super) struct DenseLoop {
    kernel: KernelFn,
    params: [Scalar; MAX_PARAMS],
    /// Bytes of one element; 0 for an input that is not read.
    sizes: [usize; MAX_INPUTS],
    out_size: usize,
}

impl DenseLoop {
    pub(super) fn new(kernel: KernelFn, params: &[Scalar], out_size: usize) -> DenseLoop {
        let mut all = [Scalar::Int(0); MAX_PARAMS];
        for (to, from) in all.iter_mut().zip(params) {
            *to = *from;
        }
        DenseLoop { kernel, params: all, sizes: [0; MAX_INPUTS], out_size }
    }

    /// Says that slot `k` is read, and how large its elements are.
    pub(super) fn set_input(&mut self, k: usize, size: usize) {
        self.sizes[k] = size;
    }

    pub(super) fn input_size(&self, k: usize) -> usize {
        self.sizes[k]
    }

    /// Computes `n` elements from dense inputs to a dense output.
    ///
    /// # Safety
    /// All pointers hold `n` elements, or are of inputs that are not read.
    #[inline]
    pub(super) unsafe fn run(&self, n: usize, out: *mut u8, ins: &[*const u8; MAX_INPUTS]) {
        let (blocks, rest) = (n / LANES, n % LANES);
        // SAFETY: the caller's.
        unsafe {
            if blocks > 0 {
                (self.kernel)(blocks, out, ins, &self.params);
            }
            if rest == 0 {
                return;
            }
            if blocks > 0 && !ins.iter().any(|p| std::ptr::eq(*p, out)) {
                // The last block again, moved back so that it is whole. Not in place, where that would read results.
                let last = n - LANES;
                (self.kernel)(1, out.add(last * self.out_size), &self.advance(ins, last), &self.params);
            } else {
                let done = blocks * LANES;
                self.partial(rest, out.add(done * self.out_size), &self.advance(ins, done));
            }
        }
    }

    /// Less than a block, in buffers.
    ///
    /// # Safety
    /// As for `run`, and `n < LANES`.
    #[inline]
    unsafe fn partial(&self, n: usize, out: *mut u8, ins: &[*const u8; MAX_INPUTS]) {
        let mut buffers = [const { MaybeUninit::<[Widest; LANES]>::uninit() }; MAX_INPUTS];
        let mut result = MaybeUninit::<[Widest; LANES]>::uninit();
        let mut at = *ins;
        // SAFETY: the caller's; a kernel reads no more than a block of the widest elements, all of which is set.
        unsafe {
            for k in 0..MAX_INPUTS {
                let size = self.sizes[k];
                if size > 0 {
                    let buffer = buffers[k].as_mut_ptr() as *mut u8;
                    std::ptr::write_bytes(buffer, 0, LANES * size);
                    copy_few(ins[k], buffer, n, size);
                    at[k] = buffer;
                }
            }
            let buffer = result.as_mut_ptr() as *mut u8;
            (self.kernel)(1, buffer, &at, &self.params);
            copy_few(buffer, out, n, self.out_size);
        }
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
}

/// Copies `n` elements of `size` bytes: few, for which a call of `memcpy` costs more than the copy.
///
/// # Safety
/// Both hold `n` elements, aligned, and do not overlap.
#[inline]
unsafe fn copy_few(src: *const u8, dst: *mut u8, n: usize, size: usize) {
    for i in 0..n {
        // SAFETY: the caller's.
        unsafe {
            match size {
                1 => *dst.add(i) = *src.add(i),
                2 => *(dst as *mut u16).add(i) = *(src as *const u16).add(i),
                4 => *(dst as *mut u32).add(i) = *(src as *const u32).add(i),
                8 => (dst as *mut u64).add(i).write_unaligned((src as *const u64).add(i).read_unaligned()),
                _ => *(dst as *mut Widest).add(i) = *(src as *const Widest).add(i),
            }
        }
    }
}

/// A loop over operands of any layout.
struct StridedLoop {
    kernel: DenseLoop,
    /// How an input is copied into a buffer, and whether it may also be used in place.
    moves: [Option<CastRoute>; MAX_INPUTS],
    direct: [bool; MAX_INPUTS],
    /// How results are copied from a buffer to the output, and whether they may be written there directly.
    out_move: ConvertFn,
    out_direct: bool,
}

impl StridedLoop {
    /// One dense run of the output. Inputs are dense too, or single values.
    ///
    /// # Safety
    /// The output holds `n` elements, inputs with `single` false as many, the others one.
    unsafe fn flat(&self, n: usize, out: *mut u8, ins: &[*const u8; MAX_INPUTS], single: &[bool; MAX_INPUTS]) {
        let (kernel, sizes, out_size) = (&self.kernel, &self.kernel.sizes, self.kernel.out_size);
        split(n, |start, len| {
            let mut buffers = [const { TileBuffer::<{ ROOM * WIDEST }>(MaybeUninit::uninit()) }; MAX_INPUTS];
            let mut at = *ins;
            let room = len.min(ROOM);
            // SAFETY: the caller's; a single value fills a buffer once, and the buffer is used again for each run of `ROOM`.
            unsafe {
                for k in 0..MAX_INPUTS {
                    if single[k]
                        && let Some(mv) = self.moves[k]
                    {
                        at[k] = buffers[k].ptr();
                        mv.run(1, room, ins[k], (0, 0), buffers[k].ptr(), (0, sizes[k] as isize));
                    }
                }
                let mut done = 0;
                while done < len {
                    let now = (len - done).min(ROOM);
                    let mut here = at;
                    for k in 0..MAX_INPUTS {
                        if !single[k] && sizes[k] > 0 {
                            here[k] = ins[k].add((start + done) * sizes[k]);
                        }
                    }
                    kernel.run(now, out.add((start + done) * out_size), &here);
                    done += now;
                }
            }
        });
    }

    /// Any strides: tile by tile, through buffers where an operand is not dense within the tile.
    ///
    /// # Safety
    /// The tiles lie within the operands.
    unsafe fn tiled(&self, tiles: &Tiles<N>, out: *mut u8, ins: &[*const u8; MAX_INPUTS]) {
        let (kernel, sizes, out_size) = (&self.kernel, &self.kernel.sizes, self.kernel.out_size);
        let (count, per) = (tiles.count(), tiles.per_grain(GRAIN));
        let (out, ins) = (SharedAcrossThreads(out), SharedAcrossThreads(*ins));
        parallel_for(count.div_ceil(per), |piece| {
            let (out, ins) = (out.get(), ins.get());
            let mut buffers = [const { TileBuffer::<{ ROOM * WIDEST }>(MaybeUninit::uninit()) }; MAX_INPUTS];
            let mut result = TileBuffer::<{ ROOM * WIDEST }>::new();
            tiles.for_each(piece * per, count.min((piece + 1) * per), |tile| {
                let dense_here = |s: (isize, isize), size: usize| {
                    (s.1 == size as isize || tile.cols == 1) && (tile.rows == 1 || s.0 == (size * tile.cols) as isize)
                };
                let mut at = [std::ptr::null(); MAX_INPUTS];
                // SAFETY: tiles have at most ROOM elements, none wider than the widest; the rest is the caller's.
                unsafe {
                    for k in 0..MAX_INPUTS {
                        let Some(mv) = self.moves[k] else { continue };
                        let (s, size) = (tiles.strides(k + 1), sizes[k]);
                        let src = ins[k].offset(tile.offsets[k + 1]);
                        at[k] = if self.direct[k] && dense_here(s, size) {
                            src
                        } else {
                            let buffer = buffers[k].ptr();
                            mv.run(tile.rows, tile.cols, src, s, buffer, ((size * tile.cols) as isize, size as isize));
                            buffer as *const u8
                        };
                    }
                    let (s, size) = (tiles.strides(0), out_size);
                    let dst = out.offset(tile.offsets[0]);
                    if self.out_direct && dense_here(s, size) {
                        kernel.run(tile.rows * tile.cols, dst, &at);
                    } else {
                        kernel.run(tile.rows * tile.cols, result.ptr(), &at);
                        (self.out_move)(tile.rows, tile.cols, result.ptr(), ((size * tile.cols) as isize, size as isize), dst, s);
                    }
                }
            });
        });
    }
}

/// A value that the threads of one kernel share.
#[derive(Clone, Copy)]
struct SharedAcrossThreads<T>(T);
// SAFETY: only used for pointers into operands that outlive the kernel, of which each thread writes another part.
unsafe impl<T> Send for SharedAcrossThreads<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for SharedAcrossThreads<T> {}

impl<T: Copy> SharedAcrossThreads<T> {
    #[inline(always)]
    fn get(&self) -> T {
        self.0
    }
}

/// Calls `f(start, len)` for the pieces of `0..n`, on all threads if there is enough work.
#[inline]
fn split(n: usize, f: impl Fn(usize, usize)) {
    if n < 2 * GRAIN {
        return f(0, n);
    }
    let f = SharedAcrossThreads(&f);
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
    ins: &[StridedOperand<'_>],
    params: &[Scalar],
) -> Result<()> {
    // SAFETY: the caller's.
    unsafe { run_at(instruction_set(), func, dtype, shape, out, out_strides, ins, params) }
}

/// `run` with a given instruction set, which the machine must have.
///
/// # Safety
/// As for `run`, and the machine has this instruction set.
#[allow(clippy::too_many_arguments)]
pub unsafe fn run_at(
    isa: InstructionSet,
    func: Func,
    dtype: DType,
    shape: &[usize],
    out: *mut u8,
    out_strides: &[isize],
    ins: &[StridedOperand<'_>],
    params: &[Scalar],
) -> Result<()> {
    debug_assert_eq!(ins.len(), func.inputs());
    let (func, params) = specialise(func, params);
    let kernel = match func.part {
        Part::Forward => kernels::forward_kernel(func.row, dtype, isa),
        Part::Vjp(i) => kernels::vjp_kernel(func.row, i as usize, dtype, isa),
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
        unsafe { refuse_zero(func, dtype, shape, &ins[1])? };
    }

    // Narrow numbers are widened tile by tile; the kernel sees the wider type.
    let computed = dtype.computed();
    let mut kernel =
        DenseLoop { kernel, params: [Scalar::Int(0); MAX_PARAMS], sizes: [0; MAX_INPUTS], out_size: func.out_dtype(computed).size() };
    // Not a `memcpy`, since the call alone costs as much as the addition of two small tensors.
    for (to, from) in kernel.params.iter_mut().zip(params) {
        *to = stored(func.param(*from, dtype), dtype);
    }
    let mut ptrs = [std::ptr::null(); MAX_INPUTS];
    let mut slots = [0u8; MAX_INPUTS];
    // All operands dense and of the right type: by far the most frequent case, and for tiny tensors the only one that must be fast.
    let mut plain = computed == dtype && is_contiguous(shape, out_strides);
    let reads = func.reads();
    for (i, operand) in ins.iter().enumerate() {
        if reads >> i & 1 == 0 {
            continue;
        }
        // In a derivative the output has a slot of its own, whatever the arity.
        let k = if i + 1 == ins.len() && func.part != Part::Forward { 1 + MAX_OPERANDS } else { i };
        let seen = func.in_dtype(i, computed);
        slots[i] = k as u8;
        ptrs[k] = operand.ptr;
        kernel.sizes[k] = seen.size();
        plain = plain && operand.dtype == seen && (numel == 1 || same_strides(shape, operand.strides, out_strides));
    }
    // SAFETY: the caller's.
    unsafe {
        if plain {
            let out = SharedAcrossThreads(out);
            split(numel, |start, len| kernel.run(len, out.get().add(start * kernel.out_size), &kernel.advance(&ptrs, start)));
        } else {
            strided(kernel, func, dtype, shape, out, out_strides, ins, &slots, &ptrs);
        }
    }
    Ok(())
}

/// The rest of `run_at`: any layout, any types.
///
/// # Safety
/// As for `run`.
#[allow(clippy::too_many_arguments)]
#[inline(never)]
unsafe fn strided(
    kernel: DenseLoop,
    func: Func,
    dtype: DType,
    shape: &[usize],
    out: *mut u8,
    out_strides: &[isize],
    ins: &[StridedOperand<'_>],
    slots: &[u8; MAX_INPUTS],
    ptrs: &[*const u8; MAX_INPUTS],
) {
    let out_dtype = func.out_dtype(dtype);
    let made = func.out_dtype(dtype.computed());
    let (out_move, out_direct) = (convert_fn(made, out_dtype), made == out_dtype);
    let mut job = StridedLoop { kernel, moves: [None; MAX_INPUTS], direct: [false; MAX_INPUTS], out_move, out_direct };
    let mut strides: [&[isize]; N] = [&[]; N];
    let mut steps = [0usize; N];
    strides[0] = out_strides;
    steps[0] = out_dtype.size();
    let reads = func.reads();
    for (i, operand) in ins.iter().enumerate() {
        if reads >> i & 1 == 0 {
            continue;
        }
        let k = slots[i] as usize;
        let (stored, seen) = (func.in_dtype(i, dtype), func.in_dtype(i, dtype.computed()));
        strides[k + 1] = operand.strides;
        steps[k + 1] = operand.dtype.size();
        job.moves[k] = Some(CastRoute::new(operand.dtype, stored, seen));
        job.direct[k] = operand.dtype == stored && stored == seen;
    }
    let dims = collapse(shape, strides, steps);
    let one = StridedDim { size: 1, strides: [0; N] };
    if dims.len() <= 1 {
        let dim = *dims.first().unwrap_or(&one);
        let mut single = [false; MAX_INPUTS];
        let dense = (0..MAX_INPUTS).all(|k| {
            let s = dim.strides[k + 1];
            single[k] = job.moves[k].is_some() && s == 0;
            s == 0 || job.direct[k] && s == steps[k + 1] as isize
        });
        if dense && out_direct && (dim.size == 1 || dim.strides[0] == job.kernel.out_size as isize) {
            // SAFETY: the caller's.
            return unsafe { job.flat(dim.size, out, ptrs, &single) };
        }
    }
    // SAFETY: the caller's.
    unsafe { job.tiled(&Tiles::new(dims, ROOM, steps), out, ptrs) }
}

/// Powers that have a faster row with the same bits.
#[inline]
pub(super) fn specialise(func: Func, params: &[Scalar]) -> (Func, &[Scalar]) {
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
        Part::Vjp(i) => Error::runtime(format!("{}: there is no derivative with respect to operand {i} in {dtype}", info.name)),
    }
}

/// # Safety
/// As for `run`, of this input.
unsafe fn refuse_zero(func: Func, dtype: DType, shape: &[usize], divisor: &StridedOperand<'_>) -> Result<()> {
    let size = divisor.dtype.size();
    // A number that is 0 only after conversion to the computed type counts as a zero, too.
    let to_bool = CastRoute::new(divisor.dtype, dtype, DType::Bool);
    // Broadcast dimensions repeat the same elements, which need not be checked again.
    let shape: smallvec::SmallVec<[usize; 8]> =
        shape.iter().enumerate().map(|(i, &n)| if divisor.strides.get(i).is_none_or(|s| *s == 0) { 1 } else { n }).collect();
    let tiles = Tiles::new(collapse::<1>(&shape, [divisor.strides], [size]), ROOM, [size]);
    let mut found = false;
    tiles.for_each(0, tiles.count(), |tile| {
        let mut truth = [1u8; ROOM];
        // SAFETY: the caller's; a tile has at most ROOM elements.
        unsafe {
            let src = divisor.ptr.offset(tile.offsets[0]);
            to_bool.run(tile.rows, tile.cols, src, tiles.strides(0), truth.as_mut_ptr(), (tile.cols as isize, 1));
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
