//! The inner loops of products with panels: a block of `rows x depth` numbers times `depth x columns`. The depth is channels times taps, and
//! both operands say where a channel and a tap lie: the left one may be a weight in any order, the right one packed panels, or an image with
//! its padding, in which a tap is a shift.
//!
//! Not here: what packs panels, which is the patches of images in `conv/patches.rs`.
//!
//! Sums go along the depth in order, one chain for each result, so that the bits depend on the sizes of blocks alone.

use super::on_vectors::on_vectors;
use super::panel_vector::{CoreNumber, PanelVector};
use crate::backend::cpu::reduce::reducers::Arithmetic;
use crate::host::memory::cache_line::prefetch_line;
use crate::simd::InstructionSet;

/// Neighbouring columns of a block that are neighbours in the output, too.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cpu) struct ColumnRun {
    pub column: usize,
    pub len: usize,
    /// Where the first one lies in the output, from its start.
    pub at: isize,
}

/// Where a step of the depth lies in both operands, from where the first one does.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct DepthPlace {
    pub a: i32,
    pub b: i32,
}

/// The steps of the depth.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cpu) enum Depth<'a> {
    /// So many, which are neighbours in rows of `a`, and rows of packed panels.
    Dense(usize),
    /// Those, of which so many lie near each other in `a`.
    Places { places: &'a [DepthPlace], near: usize },
}

/// One product of a block.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cpu) struct PanelProduct<'a, T> {
    pub rows: usize,
    pub columns: usize,
    pub depth: Depth<'a>,
    pub a: *const T,
    /// Elements between rows of `a`.
    pub a_rs: isize,
    /// Elements to where `a` begins in the next product, which are brought near.
    pub next: isize,
    /// Whole vectors are read, also where the last panel has fewer columns.
    pub b: *const T,
    /// Elements between panels of `b`.
    pub panel: usize,
    /// Vectors of a panel: VECTORS, or WIDE.
    pub vectors: usize,
    pub out: *mut T,
    pub out_rs: isize,
    /// All columns in order.
    pub runs: &'a [ColumnRun],
    /// Elements between neighbouring columns in the output.
    pub step: isize,
    /// Whether the product is added to the output, or else overwrites it.
    pub add: bool,
    /// What is added to each row where the output is overwritten; may be null.
    pub bias: *const T,
}

on_vectors! {
    /// The product of a block. False if a sum of a column, or of what is between the columns, is not finite.
    fn multiply<T>(p: &PanelProduct<'_, T>) -> bool = multiply_on
}

/// Room for the sums of a tile, row after row.
type TileCopy<T> = [T; MOST_SUMS];
/// Neighbours in a row of `a` that are brought near together.
const AHEAD: usize = 16;
/// Sums of the largest tile of any instruction set.
const MOST_SUMS: usize = 8 * 48;

/// # Safety
/// Operands are readable and the output is writable as described; nothing else writes there.
#[inline(always)]
unsafe fn multiply_on<V: PanelVector>(p: &PanelProduct<'_, V::Number>) -> bool {
    let mut copy: TileCopy<V::Number> = [V::Number::ZERO; MOST_SUMS];
    // SAFETY: the caller's.
    let mut check = unsafe { [V::zero(); 4] };
    let mut runs = p.runs;
    let panel = p.vectors * V::LANES;
    for (q, first) in (0..p.columns).step_by(panel).enumerate() {
        let width = panel.min(p.columns - first);
        while let [run, rest @ ..] = runs
            && run.column + run.len <= first
        {
            runs = rest;
        }
        let [run, ..] = runs else { break };
        // Columns of several runs, or apart, go through a copy of the tile.
        let whole = p.step == 1 && run.column <= first && first + width <= run.column + run.len;
        let b = p.b.wrapping_add(q * p.panel);
        let mut i = 0;
        while i < p.rows {
            let left = p.rows - i;
            let out = p.out.wrapping_offset(i as isize * p.out_rs);
            let target = whole.then(|| out.wrapping_offset(run.at + (first - run.column) as isize));
            macro_rules! rows {
                ($R:literal) => {{
                    // SAFETY: the caller's.
                    unsafe {
                        match width.div_ceil(V::LANES) {
                            1 => tile::<V, $R, 1>(p, b, i, width, target, &mut copy, &mut check),
                            3 if V::VECTORS == 3 => tile::<V, $R, 3>(p, b, i, width, target, &mut copy, &mut check),
                            _ => tile::<V, $R, 2>(p, b, i, width, target, &mut copy, &mut check),
                        }
                    }
                    $R
                }};
            }
            macro_rules! wide {
                ($R:literal) => {{
                    // SAFETY: the caller's.
                    unsafe { tile::<V, $R, 4>(p, b, i, width, target, &mut copy, &mut check) };
                    $R
                }};
            }
            let rows = if V::WIDE > V::VECTORS && width > V::WIDTH {
                match left {
                    6.. => wide!(6),
                    4.. => wide!(4),
                    2.. => wide!(2),
                    _ => wide!(1),
                }
            } else if V::ROWS == 8 && left >= 8 {
                rows!(8)
            } else if V::ROWS == 6 && left >= 6 && left != 8 {
                // Of 8 rows, 4 and 4 take less time than 6 and 2, whose sums wait for each other.
                rows!(6)
            } else if left >= 4 {
                rows!(4)
            } else if left >= 2 {
                rows!(2)
            } else {
                rows!(1)
            };
            if !whole {
                for r in 0..rows {
                    // SAFETY: the caller's.
                    unsafe {
                        let bias = if p.bias.is_null() { V::Number::ZERO } else { *p.bias.add(i + r) };
                        let out = out.wrapping_offset(r as isize * p.out_rs);
                        scatter_row::<V>(p, copy.as_ptr().add(r * panel), runs, out, bias, first, width);
                    }
                }
            }
            i += rows;
        }
    }
    // SAFETY: the caller's.
    check.iter().all(|v| unsafe { v.total() }.is_finite())
}

/// Rows `i..i + R` of one panel: to the target, or into the copy if there is none.
///
/// # Safety
/// As for `multiply`.
#[allow(clippy::needless_range_loop, reason = "indices that the compiler knows keep the sums in registers")]
#[inline(always)]
unsafe fn tile<V: PanelVector, const R: usize, const C: usize>(
    p: &PanelProduct<'_, V::Number>,
    b: *const V::Number,
    i: usize,
    width: usize,
    target: Option<*mut V::Number>,
    copy: &mut TileCopy<V::Number>,
    check: &mut [V; 4],
) {
    // SAFETY: the caller's.
    unsafe {
        let mut sums = [[V::zero(); C]; R];
        let a: [*const V::Number; R] = std::array::from_fn(|r| p.a.wrapping_offset((i + r) as isize * p.a_rs));
        macro_rules! add {
            ($b:expr, $at:expr) => {{
                let (b, at) = ($b, $at);
                let row: [V; C] = std::array::from_fn(|c| V::load(b.wrapping_add(c * V::LANES)));
                for r in 0..R {
                    let x = V::splat(*a[r].wrapping_offset(at));
                    for c in 0..C {
                        sums[r][c] = x.fma(row[c], sums[r][c]);
                    }
                }
            }};
        }
        // The rows that come next: a large matrix is not in the cache, and lies in too many stretches for the machine to foresee.
        let ahead = if i + R < p.rows { R as isize * p.a_rs } else { p.next - i as isize * p.a_rs };
        match p.depth {
            Depth::Dense(depth) => {
                let panel = p.vectors * V::LANES;
                for first in (0..depth).step_by(AHEAD) {
                    for a in a {
                        prefetch_line(a.wrapping_offset(first as isize + ahead));
                    }
                    let end = depth.min(first + AHEAD);
                    let (of_a, of_b) = (a[0].wrapping_add(first), b.wrapping_add(first * panel));
                    // With fewer columns than the panel has, steps of `b` are further apart than C vectors.
                    if C < V::VECTORS || !V::add_dense(&mut sums, of_a, (p.a_rs, 1), of_b, end - first) {
                        for k in first..end {
                            add!(b.wrapping_add(k * panel), k as isize);
                        }
                    }
                }
            }
            Depth::Places { places, near } => {
                for places in places.chunks(near) {
                    let ahead = places[0].a as isize + ahead;
                    if p.a_rs < 8 {
                        prefetch_line(a[0].wrapping_offset(ahead));
                        prefetch_line(a[R - 1].wrapping_offset(ahead));
                    } else {
                        for a in a {
                            prefetch_line(a.wrapping_offset(ahead));
                        }
                    }
                    if V::add_places(&mut sums, a[0], p.a_rs, b, places) {
                        continue;
                    }
                    for place in places {
                        add!(b.wrapping_offset(place.b as isize), place.a as isize);
                    }
                }
            }
        }
        for sums in &sums {
            for c in 0..C {
                // Infinity times zero is nan.
                check[c] = sums[c].fma(V::zero(), check[c]);
            }
        }
        let Some(to) = target else {
            let panel = p.vectors * V::LANES;
            for r in 0..R {
                for c in 0..C {
                    sums[r][c].store(copy.as_mut_ptr().add(r * panel + c * V::LANES));
                }
            }
            return;
        };
        // The last vector of a row may be shorter.
        let last = width - (C - 1) * V::LANES;
        if p.add {
            for r in 0..R {
                let to = to.wrapping_offset(r as isize * p.out_rs);
                for c in 0..C - 1 {
                    let to = to.wrapping_add(c * V::LANES);
                    sums[r][c].plus(V::load(to)).store(to);
                }
                let to = to.wrapping_add((C - 1) * V::LANES);
                sums[r][C - 1].plus(V::load_first(to, last)).store_first(to, last);
            }
        } else {
            for r in 0..R {
                let to = to.wrapping_offset(r as isize * p.out_rs);
                let bias = if p.bias.is_null() { V::zero() } else { V::splat(*p.bias.add(i + r)) };
                for c in 0..C - 1 {
                    sums[r][c].plus(bias).store(to.wrapping_add(c * V::LANES));
                }
                sums[r][C - 1].plus(bias).store_first(to.wrapping_add((C - 1) * V::LANES), last);
            }
        }
    }
}

/// Writes, or adds, one row of a tile to columns of several runs.
///
/// # Safety
/// As for `multiply`; `out` is the row's start.
#[inline(always)]
unsafe fn scatter_row<V: PanelVector>(
    p: &PanelProduct<'_, V::Number>,
    row: *const V::Number,
    runs: &[ColumnRun],
    out: *mut V::Number,
    bias: V::Number,
    first: usize,
    width: usize,
) {
    for run in runs.iter().take_while(|run| run.column < first + width) {
        let (from, to) = (run.column.max(first), (run.column + run.len).min(first + width));
        let out = out.wrapping_offset(run.at + (from - run.column) as isize * p.step);
        let (row, n) = (row.wrapping_add(from - first), to - from);
        // SAFETY: the caller's.
        unsafe {
            if p.step == 2 && !p.add {
                let bias = V::splat(bias);
                for j in (0..n).step_by(V::LANES) {
                    let n = (n - j).min(V::LANES);
                    V::load_first(row.add(j), n).plus(bias).store_spread(out.wrapping_add(2 * j), n);
                }
                continue;
            }
            if p.step == 2 {
                for j in (0..n).step_by(V::LANES) {
                    let (to, n) = (out.wrapping_add(2 * j), (n - j).min(V::LANES));
                    let (first, rest) = ((2 * n - 1).min(V::LANES), (2 * n - 1).saturating_sub(V::LANES));
                    let second = if rest > 0 { V::load_first(to.wrapping_add(V::LANES), rest) } else { V::zero() };
                    let old = V::load_first(to, first).parted(second).0;
                    V::load_first(row.add(j), n).plus(old).store_spread(to, n);
                }
                continue;
            }
            if p.step != 1 {
                for j in 0..n {
                    let to = out.wrapping_offset(j as isize * p.step);
                    *to = (*row.add(j)).plus(if p.add { *to } else { bias });
                }
                continue;
            }
            let bias = V::splat(bias);
            for j in (0..n).step_by(V::LANES) {
                let (row, to, n) = (row.add(j), out.wrapping_add(j), (n - j).min(V::LANES));
                V::load_first(row, n).plus(if p.add { V::load_first(to, n) } else { bias }).store_first(to, n);
            }
        }
    }
}

on_vectors! {
    /// Writes columns to places that are `step` apart.
    fn spread<T>(runs: &[ColumnRun], from: *const T, to: *mut T, step: usize) = spread_on
}

/// # Safety
/// They are readable and writable.
#[inline(always)]
unsafe fn spread_on<V: PanelVector>(runs: &[ColumnRun], from: *const V::Number, to: *mut V::Number, step: usize) {
    for run in runs {
        let (from, to, n) = (from.wrapping_add(run.column), to.wrapping_offset(run.at), run.len);
        // SAFETY: the caller's.
        unsafe {
            if step == 2 {
                for j in (0..n).step_by(V::LANES) {
                    let n = (n - j).min(V::LANES);
                    V::load_first(from.add(j), n).store_spread(to.wrapping_add(2 * j), n);
                }
                continue;
            }
            for j in 0..n {
                *to.wrapping_add(j * step) = *from.add(j);
            }
        }
    }
}

on_vectors! {
    /// Whether one of `n` numbers is not finite.
    fn any_infinite<T>(n: usize, from: *const T) -> bool = any_infinite_on
}

/// # Safety
/// They are readable.
#[inline(always)]
unsafe fn any_infinite_on<V: PanelVector>(n: usize, from: *const V::Number) -> bool {
    // SAFETY: the caller's.
    unsafe {
        // Infinity times zero is nan.
        let (mut sum, zero) = (V::zero(), V::zero());
        for j in (0..n).step_by(V::LANES) {
            sum = V::load_first(from.add(j), (n - j).min(V::LANES)).fma(zero, sum);
        }
        !sum.total().is_finite()
    }
}

/// Bytes of a block of `b` that stay in the first cache while it meets all rows. Machines with AVX-512 have 48 KB, most others 32.
pub(in crate::backend::cpu) const fn block_bytes(isa: InstructionSet) -> usize {
    match isa {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 => 40 << 10,
        _ => 24 << 10,
    }
}

/// Whether steps that follow each other take less time than steps at places: where both are loops in assembly.
pub(in crate::backend::cpu) const fn has_dense_loops(isa: InstructionSet) -> bool {
    match isa {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2 => true,
        _ => false,
    }
}

/// The depth of a block of packed panels.
pub(in crate::backend::cpu) const fn block_depth<T: CoreNumber>(isa: InstructionSet, width: usize) -> usize {
    block_bytes(isa) / (width * size_of::<T>())
}
