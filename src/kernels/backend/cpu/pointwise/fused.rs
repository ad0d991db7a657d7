//! Runs fused programs block by block, with the kernels of the unfused rows: intermediate values stay in the first-level cache, and results
//! have the same bits as the rows one after the other.

use super::kernels::{self, LANES, MAX_INPUTS, MAX_OPERANDS};
use crate::backend::cpu::common::cast::{CastRoute, ConvertFn, convert_fn, stored};
use crate::backend::cpu::common::strided::{StridedDims, collapse};
use crate::backend::cpu::pointwise::{DenseLoop, specialise};
use crate::error::{Error, Result};
use crate::host::threads::parallel_for;
use crate::layout::{DType, ElementBytes, Scalar};
use crate::program::{Code, StepInput, StepKind};
use crate::rows::{MAX_PARAMS, Part};
use crate::simd::instruction_set;
use smallvec::SmallVec;
use std::cell::RefCell;

/// Elements of a block.
const BLOCK: usize = 1024;
/// Bytes of a register: a block of the widest elements.
const REGISTER: usize = BLOCK * 16;
/// Elements that one task computes.
const GRAIN: usize = 1 << 15;
/// Tasks between two checks whether to continue.
const TOGETHER: usize = 128;

/// An input of a program, in memory.
#[derive(Debug, Clone, Copy)]
pub struct FusedInput<'a> {
    pub ptr: *const u8,
    pub dtype: DType,
    /// None: same layout as the results. Otherwise strides in elements over the program's shape.
    pub strides: Option<&'a [isize]>,
}

/// The source of a kernel's input.
#[derive(Clone, Copy)]
enum SlotRead {
    Register(usize),
    /// The result of a step that is in memory.
    Written(usize),
    Aligned(usize),
    Strided(usize),
    /// A buffer filled with one value.
    Constant(usize),
}

struct KernelSlot {
    slot: usize,
    read: SlotRead,
    /// Bytes of an element as read.
    size: usize,
    convert: Option<(CastRoute, usize)>,
}

struct PreparedStep {
    kernel: Option<DenseLoop>,
    slots: Vec<KernelSlot>,
    register: usize,
    size: usize,
    /// The move of a cast.
    cast: Option<(ConvertFn, usize)>,
    /// For a kernel that computes in a wider type than the result of its step: the narrowing conversion, the size of a computed element,
    /// and its buffer.
    narrow: Option<(ConvertFn, usize, usize)>,
}

struct StridedRead {
    ptr: *const u8,
    size: usize,
    read: ConvertFn,
    dims: StridedDims<2>,
}

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct ConstantLine([u8; 64]);

/// Where a program reads and writes.
pub struct Placement {
    /// Elements of each input and output.
    pub n: usize,
    pub inputs: SmallVec<[*const u8; 8]>,
    /// For each step where its result is written; null if it is not kept.
    pub places: SmallVec<[*mut u8; 16]>,
}

// SAFETY: the pointers are into operands that the caller keeps alive while the program runs; each range is written by one thread only.
unsafe impl Send for Placement {}
// SAFETY: as above.
unsafe impl Sync for Placement {}

/// A program with its memory, ready to be run over any range of its elements.
pub struct Runner {
    placement: Box<Placement>,
    steps: Vec<PreparedStep>,
    walks: Vec<StridedRead>,
    constants: Vec<ConstantLine>,
    /// Registers, with those that conversions and strided inputs use.
    registers: usize,
    converted: usize,
    gathered: usize,
    /// A lone step from memory to memory needs no registers, and so no blocks.
    lone: bool,
    /// Elements of a row of the strided inputs, and those of a block.
    row: usize,
    block: usize,
}

// SAFETY: the pointers are into operands that the caller keeps alive while the program runs; each range is written by one thread only.
unsafe impl Send for Runner {}
// SAFETY: as above.
unsafe impl Sync for Runner {}

thread_local! {
    static SCRATCH: RefCell<Vec<ConstantLine>> = const { RefCell::new(Vec::new()) };
}

impl Runner {
    /// Prepares `code` over `shape`. `out_strides` (in elements) give the order of the results, which are dense. `places[i]` is where step
    /// `i` writes its result; null if it is not kept.
    ///
    /// # Errors
    /// A row without a kernel for its type.
    ///
    /// # Safety
    /// While the runner is used: every input is readable, aligned and initialised over the shape, and every place writable for as many
    /// elements. A place may be the memory of an aligned input if no step after the one that writes there reads the input; otherwise no
    /// memory overlaps.
    pub unsafe fn new(
        code: &Code,
        shape: &[usize],
        out_strides: &[isize],
        inputs: &[FusedInput<'_>],
        places: &[*mut u8],
    ) -> Result<Runner> {
        let n = shape.iter().product();
        let last = code.last_uses();
        let mut free: Vec<usize> = Vec::new();
        let (mut registers, mut converted) = (0, 0);
        let mut constants: Vec<ConstantLine> = Vec::new();
        let mut walks = Vec::new();
        let mut walk_of = vec![usize::MAX; inputs.len()];
        for (i, input) in inputs.iter().enumerate() {
            if let Some(strides) = input.strides {
                walk_of[i] = walks.len();
                let size = input.dtype.size();
                let dims = collapse::<2>(shape, [out_strides, strides], [1, size]);
                walks.push(StridedRead { ptr: input.ptr, size, read: convert_fn(input.dtype, input.dtype), dims });
            }
        }
        let mut steps: Vec<PreparedStep> = Vec::with_capacity(code.steps.len());
        let mut register_of = vec![usize::MAX; code.steps.len()];
        for (i, step) in code.steps.iter().enumerate() {
            let (mut kernel, mut cast, mut narrow) = (None, None, None);
            let mut is_vjp = false;
            match &step.kind {
                StepKind::Row { func, compute, params } => {
                    let (func, params) = specialise(*func, params);
                    let found = match func.part {
                        Part::Forward => kernels::forward_kernel(func.row, *compute, instruction_set()),
                        Part::Vjp(k) => kernels::vjp_kernel(func.row, k as usize, *compute, instruction_set()),
                    };
                    let found = found.ok_or_else(|| {
                        Error::not_implemented(format!("\"{}_cpu\" not implemented for '{}'", func.row.info().name, compute.type_name()))
                    })?;
                    is_vjp = func.part != Part::Forward;
                    let made = func.out_dtype(compute.computed());
                    let params: SmallVec<[Scalar; MAX_PARAMS]> =
                        params.iter().map(|p| stored(func.param(*p, *compute), *compute)).collect();
                    kernel = Some(DenseLoop::new(found, &params, made.size()));
                    narrow = (made != step.out).then(|| (convert_fn(made, step.out), made.size()));
                }
                StepKind::Cast => cast = Some((convert_fn(step.ins[0].1, step.out), step.ins[0].1.size())),
            }
            let mut slots = Vec::new();
            let mut conversions = 0;
            for (k, (from, dtype)) in step.ins.iter().enumerate() {
                let stored = step.sees(k);
                let sees = if kernel.is_some() { stored.computed() } else { stored };
                let read = match from {
                    StepInput::Nothing => continue,
                    StepInput::Input(j) if walk_of[*j] != usize::MAX => SlotRead::Strided(walk_of[*j]),
                    StepInput::Input(j) => SlotRead::Aligned(*j),
                    StepInput::Step(j) if !places[*j].is_null() => SlotRead::Written(*j),
                    StepInput::Step(j) => SlotRead::Register(register_of[*j]),
                    StepInput::Value(bytes) => {
                        let at = constants.len() / (REGISTER / 64);
                        constants.resize(constants.len() + REGISTER / 64, ConstantLine([0; 64]));
                        let to = constants[at * (REGISTER / 64)..].as_mut_ptr().cast::<u8>();
                        // SAFETY: the value is aligned and as long as its type; the buffer holds a block of the widest type.
                        unsafe {
                            let value = AlignedValue(*bytes);
                            CastRoute::new(*dtype, stored, sees).run(1, BLOCK, value.0.as_ptr(), (0, 0), to, (0, sees.size() as isize));
                        }
                        SlotRead::Constant(at)
                    }
                };
                let convert = if *dtype == stored && stored == sees || matches!(read, SlotRead::Constant(_)) {
                    None
                } else {
                    conversions += 1;
                    Some((CastRoute::new(*dtype, stored, sees), conversions - 1))
                };
                let slot = if is_vjp && k + 1 == step.ins.len() { 1 + MAX_OPERANDS } else { k };
                if let Some(kernel) = &mut kernel {
                    kernel.set_input(slot, sees.size());
                }
                slots.push(KernelSlot { slot, read, size: dtype.size(), convert });
            }
            let narrow = narrow.map(|(mv, size)| (mv, size, conversions));
            converted = converted.max(conversions + usize::from(narrow.is_some()));
            // The register of a value that is read here for the last time is free only after this step, because operands of a kernel must
            // not overlap partly.
            let register = if places[i].is_null() {
                free.pop().unwrap_or_else(|| {
                    registers += 1;
                    registers - 1
                })
            } else {
                usize::MAX
            };
            register_of[i] = register;
            for (j, end) in last.iter().enumerate().take(i) {
                if *end == i && places[j].is_null() {
                    free.push(register_of[j]);
                }
            }
            steps.push(PreparedStep { kernel, slots, register, size: step.out.size(), cast, narrow });
        }
        let placement = Box::new(Placement { n, inputs: inputs.iter().map(|i| i.ptr).collect(), places: SmallVec::from_slice(places) });
        let gathered = walks.len();
        let lone = match &steps[..] {
            [step] => {
                !places[0].is_null()
                    && step.kernel.is_some()
                    && step.narrow.is_none()
                    && step.slots.iter().all(|s| matches!(s.read, SlotRead::Aligned(_)) && s.convert.is_none())
            }
            _ => false,
        };
        let row = walks.iter().filter_map(|w: &StridedRead| w.dims.last()).map(|d| d.size).min().unwrap_or(n).max(1);
        Ok(Runner { placement, steps, walks, constants, registers, converted, gathered, lone, row, block: block_of(row) })
    }

    /// Computes every element, unless `goes_on` returns false; this thread calls it regularly.
    pub fn run(&self, should_continue: &dyn Fn() -> bool) {
        let n = self.placement.n;
        let tasks = n.div_ceil(GRAIN);
        let mut first = 0;
        while first < tasks {
            parallel_for(TOGETHER.min(tasks - first), |i| {
                let start = (first + i) * GRAIN;
                // SAFETY: below n; each range is computed once.
                unsafe { self.range(start, GRAIN.min(n - start), None) };
            });
            first += TOGETHER;
            if first < tasks && !should_continue() {
                return;
            }
        }
    }

    /// Computes every element of other memory than that of `new`, one run for each placement. No input may have strides of its own.
    ///
    /// # Safety
    /// As for `new`, of every placement: the same inputs and kept steps. What one run writes, no other run reads or writes.
    pub unsafe fn run_each(&self, all: &[Placement]) {
        debug_assert!(self.walks.is_empty(), "runs over other memory are dense");
        let mut pieces: Vec<(usize, usize, usize)> = Vec::new();
        for (run, placement) in all.iter().enumerate() {
            pieces.extend((0..placement.n).step_by(GRAIN).map(|start| (run, start, GRAIN.min(placement.n - start))));
        }
        // By their place in their run: in a loop over that run alone a thread has about the same part, and may still have it in its caches.
        let middle = |(run, start, len): &(usize, usize, usize)| (2 * start + len) as f64 / all[*run].n as f64;
        pieces.sort_by(|a, b| middle(a).total_cmp(&middle(b)));
        // Small runs share a task.
        let (mut tasks, mut elements) = (vec![0], 0);
        for (i, (_, _, len)) in pieces.iter().enumerate() {
            elements += len;
            if elements >= GRAIN || i + 1 == pieces.len() {
                tasks.push(i + 1);
                elements = 0;
            }
        }
        parallel_for(tasks.len() - 1, |i| {
            for (run, start, len) in &pieces[tasks[i]..tasks[i + 1]] {
                // SAFETY: the caller's; each range is computed once.
                unsafe { self.range_of(&all[*run], *start, *len, None) };
            }
        });
    }

    /// Computes the elements `start..start + len`; with `to`, the last step's results go there, densely, too or instead of into a register.
    ///
    /// # Safety
    /// There are so many, no other thread computes them at the same time, and `to` has room for them, aligned.
    pub unsafe fn range(&self, start: usize, len: usize, to: Option<*mut u8>) {
        // SAFETY: the caller's.
        unsafe { self.range_of(&self.placement, start, len, to) };
    }

    /// As `range`, in other memory.
    ///
    /// # Safety
    /// As for `range` and `run_each`.
    unsafe fn range_of(&self, placement: &Placement, start: usize, len: usize, to: Option<*mut u8>) {
        let lines = (self.registers + self.converted + self.gathered) * (REGISTER / 64);
        SCRATCH.with(|s| {
            let mut s = s.borrow_mut();
            if s.len() < lines {
                s.resize(lines, ConstantLine([0; 64]));
            }
            let scratch = s.as_mut_ptr().cast::<u8>();
            let size = self.steps.last().map_or(0, |s| s.size);
            let mut done = 0;
            while done < len {
                let now = if self.lone { len - done } else { (len - done).min(self.up_to_block(start + done)) };
                // SAFETY: the scratch holds all registers; the rest is the promise made to `new`.
                unsafe { self.block(placement, start + done, now, scratch, to.map(|p| p.add(done * size))) };
                done += now;
            }
        });
    }

    /// How many elements from `at` on are computed together. Where rows are long, blocks do not go across their ends: what has the stride of the
    /// results along a row is read where it lies then.
    fn up_to_block(&self, at: usize) -> usize {
        if self.walks.is_empty() || !is_long(self.row) {
            return BLOCK;
        }
        let column = at % self.row;
        (self.block - column % self.block).min(self.row - column)
    }

    /// # Safety
    /// `scratch` holds all registers, `to` as many elements as the block, and the block lies inside the program's elements.
    unsafe fn block(&self, placement: &Placement, start: usize, len: usize, scratch: *mut u8, to: Option<*mut u8>) {
        let mut loaded = 0u64;
        let end = self.steps.len() - 1;
        for (i, step) in self.steps.iter().enumerate() {
            let mut at = [std::ptr::null::<u8>(); MAX_INPUTS];
            // SAFETY: the caller's; registers have room for a block of the widest elements.
            unsafe {
                let place = placement.places[i];
                let dst = match to {
                    _ if !place.is_null() => place.add(start * step.size),
                    Some(to) if i == end => to,
                    _ => scratch.add(step.register * REGISTER),
                };
                for slot in &step.slots {
                    let mut src: *const u8 = match slot.read {
                        SlotRead::Register(r) => scratch.add(r * REGISTER),
                        SlotRead::Written(j) => placement.places[j].add(start * slot.size).cast_const(),
                        SlotRead::Aligned(j) => placement.inputs[j].add(start * slot.size),
                        SlotRead::Strided(w) => match self.walks[w].dense(start, len) {
                            Some(p) => p,
                            None => {
                                let buffer = scratch.add((self.registers + self.converted + w) * REGISTER);
                                if loaded >> w & 1 == 0 {
                                    self.walks[w].load(start, len, buffer);
                                    loaded |= 1 << w;
                                }
                                buffer
                            }
                        },
                        SlotRead::Constant(c) => self.constants.as_ptr().cast::<u8>().add(c * REGISTER),
                    };
                    if let Some((mv, c)) = slot.convert {
                        let buffer = scratch.add((self.registers + c) * REGISTER);
                        let seen = step.kernel.as_ref().map_or(0, |k| k.input_size(slot.slot));
                        mv.run(1, len, src, (0, slot.size as isize), buffer, (0, seen as isize));
                        src = buffer;
                    }
                    at[slot.slot] = src;
                }
                match (&step.kernel, step.cast) {
                    (Some(kernel), _) => match step.narrow {
                        None => kernel.run(len, dst, &at),
                        Some((mv, size, c)) => {
                            let buffer = scratch.add((self.registers + c) * REGISTER);
                            kernel.run(len, buffer, &at);
                            mv(1, len, buffer, (0, size as isize), dst, (0, step.size as isize));
                        }
                    },
                    (None, Some((mv, size))) => mv(1, len, at[0], (0, size as isize), dst, (0, step.size as isize)),
                    (None, None) => {}
                }
                if i == end
                    && !place.is_null()
                    && let Some(to) = to
                {
                    std::ptr::copy_nonoverlapping(dst.cast_const(), to, len * step.size);
                }
            }
        }
    }
}

/// Whether a block of one row, or of a part of it, costs less than a copy of what lies otherwise. What is left behind whole vectors is slow.
fn is_long(row: usize) -> bool {
    row > BLOCK / 2 || row >= BLOCK / 4 && row.is_multiple_of(LANES)
}

/// Elements of a block where long rows have so many: equal parts of one.
fn block_of(row: usize) -> usize {
    row.div_ceil(row.div_ceil(BLOCK)).next_multiple_of(LANES).min(BLOCK)
}

/// A single value, aligned for every type.
#[repr(C, align(16))]
struct AlignedValue(ElementBytes);

impl StridedRead {
    /// A pointer to the elements `start..start + len`, if they are contiguous.
    ///
    /// # Safety
    /// They lie inside the program's elements.
    unsafe fn dense(&self, start: usize, len: usize) -> Option<*const u8> {
        let (inner, outer) = self.dims.split_last()?;
        let (mut row, col) = (start / inner.size, start % inner.size);
        if inner.strides[1] != self.size as isize || col + len > inner.size {
            return None;
        }
        let mut offset = col as isize * inner.strides[1];
        for d in outer.iter().rev() {
            offset += (row % d.size) as isize * d.strides[1];
            row /= d.size;
        }
        // SAFETY: the caller's.
        Some(unsafe { self.ptr.offset(offset) })
    }

    /// Reads the elements `start..start + len`, in the order of the results.
    ///
    /// # Safety
    /// They lie inside the program's elements; `to` holds as many.
    unsafe fn load(&self, start: usize, len: usize, mut to: *mut u8) {
        let (mut at, mut left) = (start, len);
        let size = self.size as isize;
        let (inner, outer) = match self.dims.split_last() {
            Some((inner, outer)) => (*inner, outer),
            None => {
                // SAFETY: one element.
                return unsafe { (self.read)(1, len, self.ptr, (0, 0), to, (0, size)) };
            }
        };
        while left > 0 {
            let (row, col) = (at / inner.size, at % inner.size);
            let (mut rest, mut offset, mut next) = (row, 0isize, 1);
            let mut step = 0isize;
            for (i, d) in outer.iter().rev().enumerate() {
                offset += (rest % d.size) as isize * d.strides[1];
                if i == 0 {
                    // Whole rows up to the end of this dimension can be read at once.
                    next = d.size - rest % d.size;
                    step = d.strides[1];
                }
                rest /= d.size;
            }
            let (rows, cols) =
                if col == 0 && left >= inner.size { ((left / inner.size).min(next), inner.size) } else { (1, left.min(inner.size - col)) };
            // SAFETY: the elements lie inside the operand.
            unsafe {
                let src = self.ptr.offset(offset + col as isize * inner.strides[1]);
                (self.read)(rows, cols, src, (step, inner.strides[1]), to, (size * cols as isize, size));
                to = to.add(rows * cols * self.size);
            }
            at += rows * cols;
            left -= rows * cols;
        }
    }
}

const _: () = assert!(BLOCK.is_multiple_of(LANES));
