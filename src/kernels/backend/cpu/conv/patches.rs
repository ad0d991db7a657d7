//! Copies patches of images into the panels of products. An image's part that some columns need is first laid out as a `Strip`, channel by
//! channel; then each tap of each column is a load.

use super::geometry::{Patches, Strip, StripRow};
use crate::backend::cpu::matmul::on_vectors::on_vectors;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector};
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::error::throw;
use crate::host::memory::alloc::Buffer;
use crate::host::memory::cache_line::{LINE, prefetch_line};

/// Room for `n` numbers, uninitialised.
///
/// # Panics
/// With a memory error, if there is no room.
pub(super) fn reserve<T>(n: usize) -> (Option<Buffer>, *mut T) {
    if n == 0 {
        return (None, std::ptr::null_mut());
    }
    let bytes = n.saturating_mul(size_of::<T>());
    let made = Buffer::new(bytes).unwrap_or_else(|e| throw(e));
    let start = made.as_ptr().cast();
    (Some(made), start)
}

/// Writes zeros.
///
/// # Safety
/// `n` numbers are writable.
pub(super) unsafe fn clear<T: CoreNumber>(n: usize, to: *mut T) {
    if n > 0 {
        // SAFETY: the caller's; zero bytes are the number zero.
        unsafe { std::ptr::write_bytes(to, 0, n) };
    }
}

/// Lanes of a vector that lie next to each other in a strip.
#[derive(Debug, Clone, Copy)]
struct Lanes {
    mask: u32,
    /// Where lane 0 would lie.
    from: isize,
}

/// How the vectors of consecutive columns are loaded from a strip.
#[derive(Debug)]
pub(super) struct LoadPlan {
    lanes: Vec<Lanes>,
    /// Where each vector's begin.
    starts: Vec<u32>,
    full: u32,
}

impl LoadPlan {
    /// Of the columns of a strip, in vectors of `width`.
    pub fn new(strip: &Strip, width: usize) -> LoadPlan {
        let (mut lanes, mut starts) = (Vec::new(), Vec::new());
        for StripRow { column, base, len } in strip.rows.iter().copied() {
            let (mut at, end) = (column, column + len);
            while at < end {
                let (first, n) = (at % width, (width - at % width).min(end - at));
                if first == 0 {
                    starts.push(lanes.len() as u32);
                }
                let mask = (((1u64 << n) - 1) << first) as u32;
                lanes.push(Lanes { mask, from: base + (at - column) as isize - first as isize });
                at += n;
            }
        }
        starts.push(lanes.len() as u32);
        LoadPlan { lanes, starts, full: ((1u64 << width) - 1) as u32 }
    }

    pub fn vectors(&self) -> usize {
        self.starts.len() - 1
    }

    #[inline(always)]
    fn of(&self, v: usize) -> &[Lanes] {
        &self.lanes[self.starts[v] as usize..self.starts[v + 1] as usize]
    }

    /// Vector `v` of what is shifted by `shift`.
    #[inline(always)]
    unsafe fn load<V: PanelVector>(&self, lanes: &[Lanes], from: *const V::Number) -> V {
        // SAFETY: the caller's: each lane that is read lies in the strip.
        unsafe {
            match lanes {
                [one] if one.mask == self.full => V::load(from.wrapping_offset(one.from)),
                _ => {
                    // Loops, not closures: the compiler does not give those the instruction set.
                    let mut x = V::zero();
                    for l in lanes {
                        x = x.merge(from.wrapping_offset(l.from), l.mask);
                    }
                    x
                }
            }
        }
    }

    /// Vector `v` at each of the taps.
    ///
    /// # Safety
    /// The strip is readable, and the machine has the instruction set.
    #[inline(always)]
    pub unsafe fn load_taps<V: PanelVector, const N: usize>(&self, v: usize, from: *const V::Number, taps: &[isize; N], to: &mut [V; N]) {
        // SAFETY: the caller's: each lane that is read lies in the strip.
        unsafe {
            match self.of(v) {
                [one] if one.mask == self.full => {
                    let from = from.wrapping_offset(one.from);
                    for t in 0..N {
                        to[t] = V::load(from.wrapping_offset(taps[t]));
                    }
                }
                [one, two] => {
                    let (a, b) = (from.wrapping_offset(one.from), from.wrapping_offset(two.from));
                    for t in 0..N {
                        let x = V::zero().merge(a.wrapping_offset(taps[t]), one.mask);
                        to[t] = x.merge(b.wrapping_offset(taps[t]), two.mask);
                    }
                }
                lanes => {
                    for t in 0..N {
                        to[t] = self.load(lanes, from.wrapping_offset(taps[t]));
                    }
                }
            }
        }
    }
}

/// Rows of panels to be written: one for each tap, for all columns of a plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedRows<T> {
    pub to: *mut T,
    /// Vectors of a panel.
    pub vectors: usize,
    /// Elements between panels.
    pub panel: usize,
    /// Elements to what will be packed soon, which is brought near.
    pub ahead: isize,
}

on_vectors! {
    /// Packs one channel: the element of column `c` and tap `t` goes to row `t` of the panels. The channel's strip begins at `from`.
    fn pack<T>(plan: &LoadPlan, from: *const T, taps: &[isize], rows: PackedRows<T>) = pack_on
}

/// # Safety
/// The strip is readable, and the panels have room.
#[inline(always)]
unsafe fn pack_on<V: PanelVector>(plan: &LoadPlan, from: *const V::Number, taps: &[isize], rows: PackedRows<V::Number>) {
    let width = rows.vectors * V::LANES;
    let (mut next, mut left) = (rows.to, rows.vectors);
    for v in 0..plan.vectors() {
        let to = next;
        left -= 1;
        if left == 0 {
            (next, left) = (next.wrapping_add(rows.panel - (rows.vectors - 1) * V::LANES), rows.vectors);
        } else {
            next = next.wrapping_add(V::LANES);
        }
        // SAFETY: the caller's.
        unsafe {
            match plan.of(v) {
                [one] if one.mask == plan.full => {
                    let from = from.wrapping_offset(one.from);
                    prefetch_line(from.wrapping_offset(rows.ahead));
                    for (t, shift) in taps.iter().enumerate() {
                        V::load(from.wrapping_offset(*shift)).store(to.wrapping_add(t * width));
                    }
                }
                [one, two] => {
                    let (a, b) = (from.wrapping_offset(one.from), from.wrapping_offset(two.from));
                    for (t, shift) in taps.iter().enumerate() {
                        let x = V::zero().merge(a.wrapping_offset(*shift), one.mask).merge(b.wrapping_offset(*shift), two.mask);
                        x.store(to.wrapping_add(t * width));
                    }
                }
                [one, two, three] => {
                    let [a, b, c] = [one, two, three].map(|l| from.wrapping_offset(l.from));
                    for (t, shift) in taps.iter().enumerate() {
                        let x = V::zero().merge(a.wrapping_offset(*shift), one.mask).merge(b.wrapping_offset(*shift), two.mask);
                        x.merge(c.wrapping_offset(*shift), three.mask).store(to.wrapping_add(t * width));
                    }
                }
                lanes => {
                    for (t, shift) in taps.iter().enumerate() {
                        plan.load::<V>(lanes, from.wrapping_offset(*shift)).store(to.wrapping_add(t * width));
                    }
                }
            }
        }
    }
}

/// For each column of a panel the start of its strip, shifted by its tap; null columns are zeros.
pub(super) type ColumnStarts<'a, T> = &'a [*const T];

on_vectors! {
    /// Packs a panel the other way round: its rows are columns of the plan (those of some vectors), its column `i`
    /// is the tap that the start `i` stands for.
    fn pack_transposed<T>(plan: &LoadPlan, vectors: std::ops::Range<usize>, starts: ColumnStarts<'_, T>, to: *mut T) = pack_transposed_on
}

/// # Safety
/// As for `pack`; there are as many starts as columns in a panel.
#[inline(always)]
unsafe fn pack_transposed_on<V: PanelVector>(
    plan: &LoadPlan,
    vectors: std::ops::Range<usize>,
    starts: ColumnStarts<'_, V::Number>,
    to: *mut V::Number,
) {
    for (c, starts) in starts.chunks_exact(V::LANES).enumerate() {
        if starts[0].is_null() {
            continue;
        }
        for v in vectors.clone() {
            let lanes = plan.of(v);
            let to = to.wrapping_add((v - vectors.start) * V::LANES * V::WIDTH + c * V::LANES);
            // SAFETY: the caller's.
            unsafe {
                match lanes {
                    [one] if one.mask == plan.full => V::put_transposed(|i| V::load(starts[i].wrapping_offset(one.from)), to, V::WIDTH),
                    _ => V::put_transposed(|i| plan.load::<V>(lanes, starts[i]), to, V::WIDTH),
                }
            }
        }
    }
}

on_vectors! {
    /// Copies the elements that a strip has of the channel that begins at `from` in the first image. What is padding stays as it is.
    fn fill<T, S: StoredAs<T>>(p: &Patches, strip: &Strip, from: *const S, to: *mut T) = fill_on
}

/// # Safety
/// The channel is readable, and the strip has its size.
#[inline(always)]
unsafe fn fill_on<V: PanelVector, S: StoredAs<V::Number>>(p: &Patches, strip: &Strip, from: *const S, to: *mut V::Number) {
    let (stride, part) = strip.parts(p);
    let (len, left) = (strip.row_len, strip.left);
    let (plane, line) = (p.plane(), LINE / size_of::<S>());
    for row in &strip.image_rows {
        let (from, to) = (from.wrapping_add(row.from), to.wrapping_add(row.to));
        // The next channel's row: what is in between is too short a stretch for the machine to foresee.
        for i in (0..len).step_by(line) {
            prefetch_line(from.wrapping_add(plane + i));
        }
        // SAFETY: the caller's.
        unsafe {
            if stride == 1 {
                widen_row::<V, S>(len, from, to.wrapping_add(left));
                continue;
            }
            if stride == 2 && S::SAME {
                part_row::<V>(len, left, part, from.cast(), to);
                continue;
            }
            if stride == 4 && S::SAME {
                quarter_row::<V>(len, left, part, from.cast(), to);
                continue;
            }
            for r in 0..stride.min(left + len) {
                // The first place of this remainder that is not padding.
                let u = left + (r + stride - left % stride) % stride;
                let to = to.wrapping_add(r * part + u / stride);
                for (q, k) in (u..left + len).step_by(stride).enumerate() {
                    *to.add(q) = (*from.add(k - left)).wide();
                }
            }
        }
    }
}

/// A row of which every other element goes to the first part, and the others to the second.
///
/// # Safety
/// As for `fill`.
#[inline(always)]
unsafe fn part_row<V: PanelVector>(len: usize, left: usize, part: usize, from: *const V::Number, to: *mut V::Number) {
    // Element `left` of the row is the first one, of the part that its number says; the next one is the other part's.
    let (one, two) = (to.wrapping_add(left % 2 * part + left / 2), to.wrapping_add((left + 1) % 2 * part + left.div_ceil(2)));
    let mut i = 0;
    // SAFETY: the caller's.
    unsafe {
        while i + 2 * V::LANES <= len {
            let (even, odd) = V::load(from.add(i)).parted(V::load(from.add(i + V::LANES)));
            even.store(one.add(i / 2));
            odd.store(two.add(i / 2));
            i += 2 * V::LANES;
        }
        if i < len {
            let n = len - i;
            let (first, rest) = (n.min(V::LANES), n.saturating_sub(V::LANES));
            let second = if rest > 0 { V::load_first(from.add(i + V::LANES), rest) } else { V::zero() };
            let (even, odd) = V::load_first(from.add(i), first).parted(second);
            even.store_first(one.add(i / 2), n.div_ceil(2));
            if n > 1 {
                odd.store_first(two.add(i / 2), n / 2);
            }
        }
    }
}

/// A row of which every fourth element goes to the first part, and those behind them to the others.
///
/// # Safety
/// As for `fill`.
#[inline(always)]
unsafe fn quarter_row<V: PanelVector>(len: usize, left: usize, part: usize, from: *const V::Number, to: *mut V::Number) {
    // Element `left` of the row is the first one.
    let to: [*mut V::Number; 4] = std::array::from_fn(|r| to.wrapping_add((left + r) % 4 * part + (left + r) / 4));
    let mut i = 0;
    while i < len {
        let n = (len - i).min(4 * V::LANES);
        // SAFETY: the caller's.
        unsafe {
            let mut x = [V::zero(); 4];
            for (k, x) in x.iter_mut().enumerate() {
                let here = n.saturating_sub(k * V::LANES).min(V::LANES);
                if here == V::LANES {
                    *x = V::load(from.add(i + k * V::LANES));
                } else if here > 0 {
                    *x = V::load_first(from.add(i + k * V::LANES), here);
                }
            }
            let ((even, odd), (more_even, more_odd)) = (x[0].parted(x[1]), x[2].parted(x[3]));
            let ((a, c), (b, d)) = (even.parted(more_even), odd.parted(more_odd));
            for (r, x) in [a, b, c, d].into_iter().enumerate() {
                let count = (n + 3 - r) / 4;
                if count == V::LANES {
                    x.store(to[r].wrapping_add(i / 4));
                } else if count > 0 {
                    x.store_first(to[r].wrapping_add(i / 4), count);
                }
            }
        }
        i += n;
    }
}

/// # Safety
/// `len` elements are readable and writable.
#[inline(always)]
unsafe fn widen_row<V: PanelVector, S: StoredAs<V::Number>>(len: usize, from: *const S, to: *mut V::Number) {
    // SAFETY: the caller's; the same type is the same pointer.
    unsafe {
        if !S::SAME {
            for i in 0..len {
                *to.add(i) = (*from.add(i)).wide();
            }
            return;
        }
        let from = from.cast::<V::Number>();
        let mut i = 0;
        while i + V::LANES <= len {
            V::load(from.add(i)).store(to.add(i));
            i += V::LANES;
        }
        if i < len && len >= V::LANES {
            // One that overlaps the one before it, rather than a shorter one.
            V::load(from.add(len - V::LANES)).store(to.add(len - V::LANES));
        } else if i < len {
            V::load_first(from.add(i), len - i).store_first(to.add(i), len - i);
        }
    }
}

on_vectors! {
    /// `len` elements as numbers.
    fn widen<T, S: StoredAs<T>>(len: usize, from: *const S, to: *mut T) = widen_row
}

/// The numbers of `n` elements: themselves, or a copy.
///
/// # Safety
/// They are readable.
pub(super) unsafe fn widened<T: CoreNumber, S: StoredAs<T>>(
    isa: crate::simd::InstructionSet,
    n: usize,
    from: *const S,
) -> (Option<Buffer>, *const T) {
    if S::SAME || from.is_null() {
        return (None, from.cast());
    }
    let (made, to) = reserve::<T>(n);
    // SAFETY: the caller's.
    unsafe { widen::<T, S>(isa, n, from, to) };
    (made, to)
}
