//! Softmax and log-softmax along one dimension of a dense array seen as (outer, n, inner), forward and backward. `lanes` has rows of `f32` with
//! AVX-512, `narrow` short rows. Not here: log-sum-exp alone (`reduce/logsumexp.rs`).

pub(super) mod compute;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod narrow;
#[cfg(test)]
mod tests;

use super::reduce::BlockProducer;
use crate::call::SoftmaxPass;
use crate::host::interrupt;
use crate::host::threads::parallel_for;
use crate::rows::{Num, Real};
use crate::simd::{Base, F32, F64, KernelNumber, dispatch};

/// Below this sum of exponentials one element has nearly all of the weight, and the others have lost digits beside it.
pub(super) const SURE_SUM: f64 = 1.0625;
/// Above this log-probability an element has nearly all of the weight: what it lacks has lost digits beside it.
pub(super) const SURE: f64 = -0.0625;

/// Elements that one task handles.
const TASK: usize = 1 << 15;
/// Columns that are processed together if rows are not contiguous.
const COLUMNS: usize = 256;

/// The sizes: rows of `n` elements that are `inner` apart.
#[derive(Debug, Clone, Copy)]
pub struct SoftmaxShape {
    pub outer: usize,
    pub n: usize,
    pub inner: usize,
}

#[derive(Clone, Copy)]
struct SoftmaxPointers<T> {
    /// The input, or the output of the forward pass.
    x: *const T,
    /// The incoming gradient; unused by the forward pass.
    g: *const T,
    out: *mut T,
}
// SAFETY: tasks write to disjoint parts of `out`, and the rest is only read.
unsafe impl<T> Sync for SoftmaxPointers<T> {}
// SAFETY: as above.
unsafe impl<T> Send for SoftmaxPointers<T> {}

impl<T> SoftmaxPointers<T> {
    #[inline(always)]
    fn moved(&self, by: usize) -> Self {
        SoftmaxPointers { x: self.x.wrapping_add(by), g: self.g.wrapping_add(by), out: self.out.wrapping_add(by) }
    }
}

/// Element types with a softmax.
pub trait SoftmaxElement: Copy {
    /// `x` is the input, backward the forward pass's output; `g` is read backward only. Elements of `made` take the place of the input,
    /// backward of the gradient, which is null then.
    ///
    /// # Safety
    /// All of them have `outer * n * inner` elements of this type; `out` is written and overlaps none of the others.
    unsafe fn softmax(
        pass: SoftmaxPass,
        shape: SoftmaxShape,
        x: *const Self,
        g: *const Self,
        made: Option<&dyn BlockProducer>,
        out: *mut Self,
    );

    /// `log_of_rest` in the instructions of this machine.
    /// # Safety
    /// As there.
    unsafe fn log_of_rest(n: usize, x: *const Self, top: Self) -> Self;

    /// `sure_of_row` in the instructions of this machine.
    /// # Safety
    /// As there.
    unsafe fn sure_of_row(n: usize, of: [*const Self; 2], s: Self) -> (usize, Self);
}

/// The operands from element `start` on; `len` elements of one of them are computed now, in their places in the output or where they are
/// stored anyway. None after a request to stop.
///
/// # Safety
/// The range lies inside the operands and the output.
unsafe fn in_memory<T>(
    pass: SoftmaxPass,
    made: Option<&dyn BlockProducer>,
    at: SoftmaxPointers<T>,
    start: usize,
    len: usize,
) -> Option<SoftmaxPointers<T>> {
    let Some(made) = made else { return Some(at) };
    if !made.should_continue() {
        return None;
    }
    // SAFETY: the caller's.
    let from = unsafe { made.produce(start, len, at.out.cast()) }.cast();
    Some(if pass.backward { SoftmaxPointers { g: from, ..at } } else { SoftmaxPointers { x: from, g: from, ..at } })
}

macro_rules! soft {
    ($t:ty, $rows:ident, $cell:ident) => {
        impl SoftmaxElement for $t {
            #[cold]
            unsafe fn log_of_rest(n: usize, x: *const $t, top: $t) -> $t {
                // SAFETY: the caller's.
                unsafe { dispatch!(log_of_rest, $cell, (n, x, top)) }
            }

            #[cold]
            unsafe fn sure_of_row(n: usize, of: [*const $t; 2], s: $t) -> (usize, $t) {
                // SAFETY: the caller's.
                unsafe { dispatch!(sure_of_row, $cell, (n, of, s)) }
            }

            unsafe fn softmax(
                pass: SoftmaxPass,
                s: SoftmaxShape,
                x: *const $t,
                g: *const $t,
                made: Option<&dyn BlockProducer>,
                out: *mut $t,
            ) {
                let x = if x.is_null() { out.cast_const() } else { x };
                let all = SoftmaxPointers { x, g: if g.is_null() { x } else { g }, out };
                if s.inner == 1 {
                    let rows = (TASK / s.n.max(1)).max(1);
                    parallel_for(s.outer.div_ceil(rows), |t| {
                        let (first, count) = (t * rows * s.n, rows.min(s.outer - t * rows));
                        // SAFETY: these rows are in the output, too.
                        let Some(at) = (unsafe { in_memory(pass, made, all.moved(first), first, count * s.n) }) else { return };
                        // SAFETY: task t alone handles these rows.
                        unsafe { $rows(pass, count, s.n, at) };
                    });
                } else {
                    let blocks = s.inner.div_ceil(COLUMNS);
                    let together = (TASK / (s.n * COLUMNS).max(1)).max(1);
                    let jobs = s.outer * blocks;
                    parallel_for(jobs.div_ceil(together), |t| {
                        for job in t * together..jobs.min((t + 1) * together) {
                            let (o, b) = (job / blocks, job % blocks);
                            let width = COLUMNS.min(s.inner - b * COLUMNS);
                            let first = o * s.n * s.inner + b * COLUMNS;
                            let at = all.moved(first);
                            // Neighbouring columns are computed together.
                            let (rows, len) = if blocks == 1 { (1, s.n * s.inner) } else { (s.n, width) };
                            // SAFETY: as above.
                            let of_row = |i: usize| unsafe { in_memory(pass, made, at.moved(i * s.inner), first + i * s.inner, len) };
                            let Some(at) = (if s.n == 0 { Some(at) } else { of_row(0) }) else { return };
                            if made.is_some() && !(1..rows).all(|i| of_row(i).is_some()) {
                                return;
                            }
                            // SAFETY: this job alone handles these columns.
                            unsafe { dispatch!(columns, $cell, (pass, s.n, s.inner, width, at)) };
                        }
                    });
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
macro_rules! instance {
    ($isa:ident, $features:literal) => {
        mod $isa {
            use super::*;

            #[target_feature(enable = $features)]
            pub(super) unsafe fn rows_of<C: KernelNumber<Stored: SoftmaxElement> + Real>(
                pass: SoftmaxPass,
                rows: usize,
                n: usize,
                p: SoftmaxPointers<C::Stored>,
            ) {
                // SAFETY: the caller's promise is passed on.
                unsafe { super::rows_of::<C>(pass, rows, n, p) }
            }

            #[target_feature(enable = $features)]
            pub(super) unsafe fn log_of_rest<C: KernelNumber + Real>(n: usize, x: *const C::Stored, top: C::Stored) -> C::Stored {
                // SAFETY: the caller's promise is passed on.
                unsafe { super::log_of_rest::<C>(n, x, top) }
            }

            #[target_feature(enable = $features)]
            pub(super) unsafe fn sure_of_row<C: KernelNumber + Real>(
                n: usize,
                of: [*const C::Stored; 2],
                s: C::Stored,
            ) -> (usize, C::Stored) {
                // SAFETY: the caller's promise is passed on.
                unsafe { super::sure_of_row::<C>(n, of, s) }
            }

            #[target_feature(enable = $features)]
            pub(super) unsafe fn columns<C: KernelNumber + Real>(
                pass: SoftmaxPass,
                n: usize,
                step: usize,
                width: usize,
                p: SoftmaxPointers<C::Stored>,
            ) {
                // SAFETY: the caller's promise is passed on.
                unsafe { super::columns::<C>(pass, n, step, width, p) }
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
instance!(avx512, "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi1,bmi2,lzcnt");
#[cfg(target_arch = "x86_64")]
instance!(avx2, "avx2,fma,bmi1,bmi2,lzcnt");

soft!(f32, rows_of_f32, F32);
soft!(f64, rows_of_f64, F64);

/// # Safety
/// As for `rows_of`.
unsafe fn rows_of_f32(pass: SoftmaxPass, rows: usize, n: usize, p: SoftmaxPointers<f32>) {
    // SAFETY: the caller's; the features were found on this machine.
    unsafe {
        if let Some(isa) = narrow::fits(pass, rows, n) {
            narrow::rows(isa, pass, (rows, n), p, |width, p| dispatch!(columns, F32, (pass, n, narrow::WIDTH, width, p)));
            return;
        }
        #[cfg(target_arch = "x86_64")]
        match crate::simd::instruction_set() {
            crate::simd::InstructionSet::Avx512 => lanes::rows(pass, rows, n, p.x, p.g, p.out),
            crate::simd::InstructionSet::Avx2 => avx2::rows_of::<F32<crate::simd::Avx2>>(pass, rows, n, p),
            crate::simd::InstructionSet::Base => rows_of::<F32<Base>>(pass, rows, n, p),
        }
        #[cfg(not(target_arch = "x86_64"))]
        rows_of::<F32<Base>>(pass, rows, n, p);
    }
}

/// # Safety
/// As for `rows_of`.
unsafe fn rows_of_f64(pass: SoftmaxPass, rows: usize, n: usize, p: SoftmaxPointers<f64>) {
    // SAFETY: the caller's; the features were found on this machine.
    unsafe {
        if let Some(isa) = narrow::fits(pass, rows, n) {
            narrow::rows(isa, pass, (rows, n), p, |width, p| dispatch!(columns, F64, (pass, n, narrow::WIDTH, width, p)));
            return;
        }
        dispatch!(rows_of, F64, (pass, rows, n, p))
    }
}

/// Elements of a row between two checks for interrupts: a multiple of all numbers of lanes.
const STRETCH: usize = 1 << 16;

/// Folds `f` of n elements in lanes, more of them for more elements, and then as a tree.
#[inline(always)]
pub(super) fn fold<C: KernelNumber>(n: usize, start: C, f: impl Fn(usize) -> C, merge: impl Fn(C, C) -> C) -> C {
    match n {
        0..8 => (0..n).fold(start, |a, i| merge(a, f(i))),
        8..128 => fold_lanes::<C, 8>(n, start, f, merge),
        _ => fold_lanes::<C, 32>(n, start, f, merge),
    }
}

/// Calls `f` for every position of a row.
#[inline(always)]
fn each(n: usize, f: impl Fn(usize)) {
    let mut i = 0;
    while i < n {
        let end = n.min(i + STRETCH);
        while i < end {
            f(i);
            i += 1;
        }
        if i < n {
            interrupt::check();
        }
    }
}

/// Whether `f` holds at no position below `end`. A loop of its own: iterators may be calls that have not the caller's instructions.
#[inline(always)]
fn none(end: usize, f: &impl Fn(usize) -> bool) -> bool {
    let (mut i, mut any) = (0, 0u32);
    while i < end {
        any |= u32::from(f(i));
        i += 1;
    }
    any == 0
}

/// The logarithm of a sum of exponentials, of which the largest is that of `top`, 1: from the sum of the others.
/// # Safety
/// `x` has `n` elements.
#[inline(always)]
unsafe fn log_of_rest<C: KernelNumber + Real>(n: usize, x: *const C::Stored, top: C::Stored) -> C::Stored {
    // SAFETY: indices stay below n.
    let (x, top, zero) = (|i: usize| C::new(unsafe { *x.add(i) }), C::new(top), C::from_bool(0));
    fold(n, zero, |i| C::select(x(i).lt(&top), (x(i) - top).exp(), zero), |a, b| a + b).log1p().raw()
}

/// Where the log-probability is that is larger than `SURE`, and what its input gets. `s` is the sum of the gradients `g`.
/// # Safety
/// Both have `n` elements.
#[inline(always)]
unsafe fn sure_of_row<C: KernelNumber + Real>(n: usize, [y, g]: [*const C::Stored; 2], s: C::Stored) -> (usize, C::Stored) {
    // SAFETY: indices stay below n.
    let (y, g) = unsafe { (|i: usize| C::new(*y.add(i)), |i: usize| C::new(*g.add(i))) };
    let mut i = 0;
    while i + 1 < n && !y(i).gt(&y(i).lit(SURE)) {
        i += 1;
    }
    (i, sure_gradient(g(i), y(i), C::new(s)).raw())
}

/// What the gradient `g` of a log-probability `y` gives its input, where `s` is the sum of all gradients: `g - exp(y) * s`.
#[inline(always)]
fn sure_gradient<C: KernelNumber + Real>(g: C, y: C, s: C) -> C {
    let p = y.exp();
    C::select(y.gt(&y.lit(SURE)), -(g * y.expm1()) - p * (s - g), g - p * s)
}

#[inline(always)]
fn fold_lanes<C: KernelNumber, const L: usize>(n: usize, start: C, f: impl Fn(usize) -> C, merge: impl Fn(C, C) -> C) -> C {
    let mut lanes = [start; L];
    let whole = n / L * L;
    let mut i = 0;
    while i < whole {
        let end = whole.min(i + STRETCH);
        while i < end {
            for (j, l) in lanes.iter_mut().enumerate() {
                *l = merge(*l, f(i + j));
            }
            i += L;
        }
        if i < whole {
            interrupt::check();
        }
    }
    if whole < n {
        // In an array of its own, so that the lanes above stay in registers.
        let mut rest = [start; L];
        rest[..n - whole].iter_mut().enumerate().for_each(|(j, r)| *r = f(whole + j));
        lanes.iter_mut().zip(rest).for_each(|(l, r)| *l = merge(*l, r));
    }
    let mut width = L / 2;
    while width > 0 {
        for j in 0..width {
            lanes[j] = merge(lanes[j], lanes[j + width]);
        }
        width /= 2;
    }
    lanes[0]
}

#[inline(always)]
pub(super) fn larger<C: KernelNumber + Num>(a: C, b: C) -> C {
    C::select(b.gt(&a), b, a)
}

/// An operand in the memory of the results.
const NONE: u8 = 0;
const X: u8 = 1;
const G: u8 = 2;

impl<T> SoftmaxPointers<T> {
    fn shared(&self) -> u8 {
        let same = |p: *const T| std::ptr::eq(p, self.out);
        if same(self.x) {
            X
        } else if same(self.g) {
            G
        } else {
            NONE
        }
    }

    /// The same value with equal pointers made visibly equal, so that loops vectorise.
    #[inline(always)]
    fn sharing<const S: u8>(self) -> Self {
        let out = self.out.cast_const();
        SoftmaxPointers { x: if S == X { out } else { self.x }, g: if S == G { out } else { self.g }, out: self.out }
    }
}

/// # Safety
/// `rows` rows of `n` dense elements behind each pointer; `g` only for a backward pass. An operand may be in the memory of the results.
#[inline(always)]
unsafe fn rows_of<C: KernelNumber<Stored: SoftmaxElement> + Real>(
    pass: SoftmaxPass,
    rows: usize,
    n: usize,
    all: SoftmaxPointers<C::Stored>,
) {
    // SAFETY: the caller's promise is passed on.
    unsafe {
        match if C::SCALAR { NONE } else { all.shared() } {
            X => rows_sharing::<C, X>(pass, rows, n, all),
            G => rows_sharing::<C, G>(pass, rows, n, all),
            _ => rows_sharing::<C, NONE>(pass, rows, n, all),
        }
    }
}

/// # Safety
/// As for `rows_of`, where `S` is true.
#[inline(always)]
unsafe fn rows_sharing<C: KernelNumber<Stored: SoftmaxElement> + Real, const S: u8>(
    pass: SoftmaxPass,
    rows: usize,
    n: usize,
    all: SoftmaxPointers<C::Stored>,
) {
    for row in 0..rows {
        let p = all.moved(row * n).sharing::<S>();
        // SAFETY: indices stay below n.
        let (x, g) = unsafe { (|i: usize| C::new(*p.x.add(i)), |i: usize| C::new(*p.g.add(i))) };
        // SAFETY: as above.
        let put = |i: usize, v: C| unsafe { *p.out.add(i) = v.raw() };
        let zero = C::from_bool(0);
        if n == 0 {
            continue;
        }
        match pass {
            SoftmaxPass { log: false, backward: false } => {
                let m = fold(n, x(0), x, larger);
                each(n, |i| {
                    put(i, (x(i) - m).exp());
                });
                // SAFETY: written just now.
                let e = |i: usize| unsafe { C::new(*p.out.add(i)) };
                let s = fold(n, zero, e, |a, b| a + b);
                each(n, |i| {
                    put(i, e(i).div(s));
                });
            }
            SoftmaxPass { log: true, backward: false } => {
                let m = fold(n, x(0), x, larger);
                let s = fold(n, zero, |i| (x(i) - m).exp(), |a, b| a + b);
                // SAFETY: as above.
                let s = if s.lt(&s.lit(SURE_SUM)) { C::new(unsafe { C::Stored::log_of_rest(n, p.x, m.raw()) }) } else { s.log() };
                each(n, |i| {
                    put(i, x(i) - m - s);
                });
            }
            SoftmaxPass { log: false, backward: true } => {
                let s = fold(n, zero, |i| g(i) * x(i), |a, b| a + b);
                each(n, |i| {
                    put(i, x(i) * (g(i) - s));
                });
            }
            SoftmaxPass { log: true, backward: true } => {
                let s = fold(n, zero, g, |a, b| a + b);
                // At most one element has nearly all of the weight. Its gradient is made before any is written, which may be over its operands.
                let top = fold(n, x(0), x, larger);
                // SAFETY: as above.
                let sure = if top.gt(&top.lit(SURE)) { Some(unsafe { C::Stored::sure_of_row(n, [p.x, p.g], s.raw()) }) } else { None };
                each(n, |i| {
                    put(i, g(i) - x(i).exp() * s);
                });
                if let Some((i, v)) = sure {
                    put(i, C::new(v));
                }
            }
        }
    }
}

/// # Safety
/// `n` rows, `step` apart, of `width` (at most `COLUMNS`) elements behind each pointer; `g` only for a backward pass. An operand may be in
/// the memory of the results.
#[inline(always)]
unsafe fn columns<C: KernelNumber + Real>(pass: SoftmaxPass, n: usize, step: usize, width: usize, p: SoftmaxPointers<C::Stored>) {
    // SAFETY: the caller's promise is passed on.
    unsafe {
        match if C::SCALAR { NONE } else { p.shared() } {
            X => columns_sharing::<C, X>(pass, n, step, width, p),
            G => columns_sharing::<C, G>(pass, n, step, width, p),
            _ => columns_sharing::<C, NONE>(pass, n, step, width, p),
        }
    }
}

/// Checks for interrupts at some of the rows.
#[inline(always)]
fn check_at(row: usize) {
    if row > 0 && row.is_multiple_of(STRETCH / 8) {
        interrupt::check();
    }
}

/// # Safety
/// As for `columns`, where `S` is true.
#[inline(always)]
unsafe fn columns_sharing<C: KernelNumber + Real, const S: u8>(
    pass: SoftmaxPass,
    n: usize,
    step: usize,
    width: usize,
    p: SoftmaxPointers<C::Stored>,
) {
    let p = p.sharing::<S>();
    let zero = C::from_bool(0);
    // SAFETY: the caller's promise covers i < n and j < width.
    let x = |i: usize, j: usize| unsafe { C::new(*p.x.add(i * step + j)) };
    // SAFETY: as above.
    let g = |i: usize, j: usize| unsafe { C::new(*p.g.add(i * step + j)) };
    // SAFETY: as above.
    let out = |i: usize, j: usize| unsafe { C::new(*p.out.add(i * step + j)) };
    // SAFETY: as above.
    let put = |i: usize, j: usize, v: C| unsafe { *p.out.add(i * step + j) = v.raw() };
    if n == 0 {
        return;
    }
    let mut top = [zero; COLUMNS];
    let mut sum = [zero; COLUMNS];
    // Slices of exactly this width, so that no index is checked.
    let (top, sum) = (&mut top[..width], &mut sum[..width]);
    if !pass.backward {
        top.iter_mut().enumerate().for_each(|(j, t)| *t = x(0, j));
        for i in 1..n {
            check_at(i);
            top.iter_mut().enumerate().for_each(|(j, t)| *t = larger(*t, x(i, j)));
        }
    }
    // The pass is selected outside of the loops, so that they vectorise.
    match pass {
        SoftmaxPass { log: false, backward: false } => {
            for i in 0..n {
                check_at(i);
                for (j, (t, s)) in top.iter().zip(sum.iter_mut()).enumerate() {
                    let e = (x(i, j) - *t).exp();
                    put(i, j, e);
                    *s = *s + e;
                }
            }
            for i in 0..n {
                check_at(i);
                sum.iter().enumerate().for_each(|(j, s)| put(i, j, out(i, j).div(*s)));
            }
        }
        SoftmaxPass { log: true, backward: false } => {
            for i in 0..n {
                check_at(i);
                for (j, (t, s)) in top.iter().zip(sum.iter_mut()).enumerate() {
                    *s = *s + (x(i, j) - *t).exp();
                }
            }
            let sure = |s: &C| s.lt(&s.lit(SURE_SUM));
            if !none(width, &|j| sure(&sum[j])) {
                let mut rest = [zero; COLUMNS];
                let rest = &mut rest[..width];
                for i in 0..n {
                    check_at(i);
                    for (j, (t, r)) in top.iter().zip(rest.iter_mut()).enumerate() {
                        *r = *r + C::select(x(i, j).lt(t), (x(i, j) - *t).exp(), zero);
                    }
                }
                for (s, r) in sum.iter_mut().zip(rest.iter()) {
                    *s = C::select(sure(s), r.log1p(), s.log());
                }
            } else {
                for s in sum.iter_mut() {
                    *s = s.log();
                }
            }
            for i in 0..n {
                check_at(i);
                top.iter().zip(sum.iter()).enumerate().for_each(|(j, (t, s))| put(i, j, x(i, j) - *t - *s));
            }
        }
        SoftmaxPass { log: false, backward: true } => {
            for i in 0..n {
                check_at(i);
                sum.iter_mut().enumerate().for_each(|(j, s)| *s = *s + g(i, j) * x(i, j));
            }
            for i in 0..n {
                check_at(i);
                sum.iter().enumerate().for_each(|(j, s)| put(i, j, x(i, j) * (g(i, j) - *s)));
            }
        }
        SoftmaxPass { log: true, backward: true } => {
            for i in 0..n {
                check_at(i);
                sum.iter_mut().enumerate().for_each(|(j, s)| *s = *s + g(i, j));
            }
            for i in 0..n {
                check_at(i);
                if none(width, &|j| x(i, j).gt(&zero.lit(SURE))) {
                    sum.iter().enumerate().for_each(|(j, s)| put(i, j, g(i, j) - x(i, j).exp() * *s));
                } else {
                    sum.iter().enumerate().for_each(|(j, s)| put(i, j, sure_gradient(g(i, j), x(i, j), *s)));
                }
            }
        }
    }
}
