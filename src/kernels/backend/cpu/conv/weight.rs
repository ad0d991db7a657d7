//! The gradient of the weight: that of the output times the patches of the input, where the sum goes over positions. Patches are packed with
//! positions as rows of panels, and the gradient is read as it lies.

use super::algorithms::WeightPass;
use super::geometry::{Patches, Strip};
use super::patches::{LoadPlan, clear, fill, pack_transposed, reserve, widen};
use crate::backend::cpu::algorithms::{Asked, Why};
use crate::backend::cpu::matmul::on_vectors::on_vectors;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector, widths};
use crate::backend::cpu::matmul::panels::{ColumnRun, Depth, PanelProduct, block_depth, multiply};
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::backend::cpu::reduce::reducers::Arithmetic;
use crate::call::ConvShape;
use crate::host::interrupt;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::InstructionSet;

/// Tasks that a large product has at least, where its sizes allow for them.
const TASKS: usize = 16;
/// The most panels of one task.
const PANELS: usize = 4;
/// Multiply-adds of a task that is worth a thread.
const WORTH: usize = 1 << 18;
/// The most numbers of all partial sums together.
const PARTIAL: usize = 1 << 20;
/// Elements of all strips of a task, which stay in the second cache.
const STRIPS: usize = 1 << 16;
/// Positions of one image that are enough for a block of their own.
const POSITIONS: usize = 48;

/// The product of one group and some of its columns, over some blocks of positions.
struct WeightTask {
    group: usize,
    /// The kernel's taps of the input's channels.
    columns: std::ops::Range<usize>,
    blocks: std::ops::Range<usize>,
    part: usize,
}

/// What all tasks share.
struct WeightProduct<'a> {
    isa: InstructionSet,
    s: &'a ConvShape,
    p: Patches,
    taps: usize,
    /// Positions of a block, and the blocks of an image; 0 if blocks go across images.
    block: usize,
    blocks: usize,
}

pub(super) fn plan<T: CoreNumber, S: StoredAs<T>>(call: &WeightPass<'_, T, S>, asked: Asked) -> Result<(), Why> {
    call.is_worth(asked)
}

/// The gradient of the weight, from that of y and x.
///
/// # Safety
/// All have the elements that the shape says; w overlaps nothing else. There is a position and a tap.
pub(super) unsafe fn weight<T: CoreNumber, S: StoredAs<T>>(isa: InstructionSet, s: &ConvShape, g: *const S, x: *const S, w: *mut S) {
    let p = Patches::forward(s);
    let (width, lanes) = widths::<T>(isa);
    let (taps, positions) = (p.taps(), p.positions());
    let (rows, columns) = (s.out_channels, s.in_channels * taps);
    let most = block_depth::<T>(isa, width) / lanes * lanes;
    let (block, blocks) = if positions >= POSITIONS {
        let blocks = positions.div_ceil(most);
        (positions.div_ceil(blocks).next_multiple_of(lanes), blocks)
    } else {
        (most.min((s.batch * positions).next_multiple_of(lanes)), 0)
    };
    let blocks = if blocks == 0 { 0 } else { positions.div_ceil(block) };
    let all = if blocks == 0 { (s.batch * positions).div_ceil(block) } else { s.batch * blocks };
    let work = (s.batch * positions).saturating_mul(s.groups).saturating_mul(rows * columns);
    let wanted = (work / WORTH).clamp(1, TASKS);
    let panels = columns.div_ceil(width);
    let together = (panels * s.groups).div_ceil(wanted).clamp(1, PANELS.min(panels));
    let chunks = panels.div_ceil(together);
    let together = panels.div_ceil(chunks) * width;
    let numel = s.groups * rows * columns;
    let parts = (wanted / (chunks * s.groups)).min(PARTIAL / numel.max(1)).min(all).max(1);
    let each = all.div_ceil(parts);
    let parts = all.div_ceil(each);
    let mut tasks = Vec::new();
    for part in 0..parts {
        for group in 0..s.groups {
            for c in (0..columns).step_by(together) {
                let (columns, blocks) = (c..columns.min(c + together), part * each..all.min((part + 1) * each));
                tasks.push(WeightTask { group, columns, blocks, part });
            }
        }
    }
    let direct = S::SAME && parts == 1;
    let (_own, partial) = reserve::<T>(if direct { 0 } else { parts * numel });
    let product = WeightProduct { isa, s, p, taps, block, blocks };
    let sums = SharedPointer::new(if direct { w.cast::<T>() } else { partial });
    let (g, x, w) = (SharedPointer::new(g), SharedPointer::new(x), SharedPointer::new(w));
    parallel_for(tasks.len(), |t| {
        let task = &tasks[t];
        // SAFETY: each task has sums of its own; the rest is the caller's promise.
        unsafe { product.task::<T, S>(task, g.get(), x.get(), sums.at(task.part * numel)) };
    });
    if !direct {
        const STRETCH: usize = 1 << 14;
        parallel_for(numel.div_ceil(STRETCH), |t| {
            let (first, end) = (t * STRETCH, numel.min((t + 1) * STRETCH));
            // SAFETY: all sums have been written, and each is read by one task.
            unsafe { add_parts::<T, S>(isa, end - first, parts, numel, sums.at(first).cast_const(), w.at(first)) };
        });
    }
}

on_vectors! {
    /// Adds `n` sums of each part, which lie `all` apart.
    fn add_parts<T, S: StoredAs<T>>(n: usize, parts: usize, all: usize, from: *const T, to: *mut S) = add_parts_on
}

/// # Safety
/// They are readable and writable.
#[inline(always)]
unsafe fn add_parts_on<V: PanelVector, S: StoredAs<V::Number>>(n: usize, parts: usize, all: usize, from: *const V::Number, to: *mut S) {
    // SAFETY: the caller's; the same type is the same pointer.
    unsafe {
        for i in (0..n).step_by(V::LANES) {
            let count = (n - i).min(V::LANES);
            let sum = (1..parts).fold(V::load_first(from.add(i), count), |sum, k| sum.plus(V::load_first(from.add(k * all + i), count)));
            if S::SAME {
                sum.store_first(to.add(i).cast(), count);
                continue;
            }
            let mut lanes = [V::Number::ZERO; 16];
            sum.store(lanes.as_mut_ptr());
            lanes[..count].iter().enumerate().for_each(|(j, v)| *to.add(i + j) = S::narrow(*v));
        }
    }
}

impl WeightProduct<'_> {
    unsafe fn task<T: CoreNumber, S: StoredAs<T>>(&self, task: &WeightTask, g: *const S, x: *const S, sums: *mut T) {
        let (s, p, taps) = (self.s, &self.p, self.taps);
        let (width, lanes) = widths::<T>(self.isa);
        let (positions, plane) = (p.positions(), p.plane());
        let (rows, columns) = (s.out_channels, task.columns.len());
        let panels = columns.div_ceil(width);
        let channels = task.columns.start / taps..(task.columns.end - 1) / taps + 1;
        let all = s.in_channels * taps;
        let (_own, packed) = reserve::<T>(panels * self.block * width);
        let x = x.wrapping_add((task.group * s.in_channels + channels.start) * plane);
        let g = g.wrapping_add(task.group * rows * positions);
        let image = s.groups * rows * positions;
        let runs = [ColumnRun { column: 0, len: columns, at: 0 }];
        let out = sums.wrapping_add(task.group * rows * all + task.columns.start);
        let mut starts = vec![std::ptr::null::<T>(); panels * width];
        let mut is_first = true;
        // Gradients that do not lie as they are read.
        let (_copied, copied) = reserve::<T>(if S::SAME && self.blocks > 0 { 0 } else { rows * self.block });
        let mut strip_room = (reserve::<T>(0), 0);
        let mut b = task.blocks.start;
        while b < task.blocks.end {
            // Blocks of one image that share a strip.
            let of_image = b.checked_rem(self.blocks);
            let mut together = of_image.map_or(1, |at| (self.blocks - at).min(task.blocks.end - b));
            let span = |count: usize| match of_image {
                None => (b * self.block, (s.batch * positions).min((b + 1) * self.block)),
                Some(at) => {
                    let (n, at) = (b / self.blocks, at * self.block);
                    (n * positions + at, n * positions + positions.min(at + count * self.block))
                }
            };
            while together > 1 && Strip::sized(p, span(together).0, span(together).1, S::SAME).size * channels.len() > STRIPS {
                together = together.div_ceil(2);
            }
            let (start, stop) = span(together);
            b += together;
            let strip = Strip::new(p, start, stop, S::SAME);
            let plan = LoadPlan::new(&strip, lanes);
            let n = strip.size * channels.len();
            if n > strip_room.1 {
                strip_room = (reserve::<T>(n), n);
            }
            let buffer = strip_room.0.1;
            // SAFETY: there is room; the rest is the caller's promise.
            unsafe {
                clear(n, buffer);
                if strip.size > 0 {
                    for c in 0..channels.len() {
                        fill::<T, S>(self.isa, p, &strip, x.wrapping_add(c * plane), buffer.wrapping_add(c * strip.size));
                    }
                }
                for (i, start) in starts.iter_mut().enumerate().take(columns) {
                    let (c, t) = ((task.columns.start + i) / taps - channels.start, (task.columns.start + i) % taps);
                    let from = if strip.size > 0 {
                        buffer.cast_const().wrapping_add(c * strip.size)
                    } else {
                        x.wrapping_add(c * plane).cast::<T>().wrapping_offset(strip.start)
                    };
                    *start = from.wrapping_offset(strip.taps[t]);
                }
                // The last panel's lanes beyond the columns repeat one; nothing reads their sums.
                let last = starts[columns - 1];
                starts[columns..columns.next_multiple_of(lanes)].fill(last);
            }
            for first in (start..stop).step_by(self.block) {
                let end = stop.min(first + self.block);
                let vectors = (first - start) / lanes..(end - start).div_ceil(lanes);
                // SAFETY: as above.
                unsafe {
                    for q in 0..panels {
                        let to = packed.wrapping_add(q * self.block * width);
                        pack_transposed::<T>(self.isa, &plan, vectors.clone(), &starts[q * width..(q + 1) * width], to);
                    }
                    let (a, a_rs) = if S::SAME && self.blocks > 0 {
                        (g.wrapping_add(first / positions * image + first % positions).cast::<T>(), positions)
                    } else {
                        self.copy_gradient::<T, S>(first, end, g, image, copied);
                        (copied.cast_const(), self.block)
                    };
                    let product = PanelProduct {
                        rows,
                        columns,
                        depth: Depth::Dense(end - first),
                        a,
                        a_rs: a_rs as isize,
                        next: 0,
                        b: packed.cast_const(),
                        panel: self.block * width,
                        vectors: width / lanes,
                        out,
                        out_rs: all as isize,
                        runs: &runs,
                        step: 1,
                        add: !is_first,
                        bias: std::ptr::null(),
                    };
                    let _ = multiply::<T>(self.isa, &product);
                }
                is_first = false;
                interrupt::check();
            }
        }
    }

    /// The gradients at positions `first..end`, in rows of a block.
    ///
    /// # Safety
    /// They are readable, and there is room.
    unsafe fn copy_gradient<T: CoreNumber, S: StoredAs<T>>(&self, first: usize, end: usize, g: *const S, image: usize, to: *mut T) {
        let positions = self.p.positions();
        for r in 0..self.s.out_channels {
            let mut at = first;
            while at < end {
                let (n, i) = (at / positions, at % positions);
                let len = (positions - i).min(end - at);
                // SAFETY: the caller's.
                unsafe {
                    let (from, to) = (g.wrapping_add(n * image + r * positions + i), to.wrapping_add(r * self.block + at - first));
                    widen::<T, S>(self.isa, len, from, to);
                }
                at += len;
            }
        }
    }
}
