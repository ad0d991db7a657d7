//! The inner loops of reductions, once for each instruction set: along rows, and down columns.

use super::reduce::Reducer;

/// Rounds of all lanes before pairwise merging takes over.
const ROUNDS: usize = 64;

/// A function `$any` that is `$body` with the best instructions of this machine.
macro_rules! instances {
    ($any:ident = $body:ident, $avx512:ident, $avx2:ident, [$($generics:tt)*], ($($arg:ident: $t:ty),*) $(-> $ret:ty)?) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,fma")]
        #[allow(clippy::too_many_arguments)]
        unsafe fn $avx512<$($generics)*>($($arg: $t),*) $(-> $ret)? {
            // SAFETY: the caller's promise is passed on.
            unsafe { $body($($arg),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        #[allow(clippy::too_many_arguments)]
        unsafe fn $avx2<$($generics)*>($($arg: $t),*) $(-> $ret)? {
            // SAFETY: the caller's promise is passed on.
            unsafe { $body($($arg),*) }
        }
        #[inline]
        #[allow(clippy::too_many_arguments)]
        pub(super) unsafe fn $any<$($generics)*>($($arg: $t),*) $(-> $ret)? {
            // SAFETY: the features were found on this machine; the caller's promise is passed on.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                {
                    use $crate::backend::cpu::num::{Level, level};
                    match level() {
                        Level::Avx512 => return $avx512($($arg),*),
                        Level::Avx2 => return $avx2($($arg),*),
                        Level::Base => {}
                    }
                }
                $body($($arg),*)
            }
        }
    };
}
pub(super) use instances;

instances!(row_any = row, row_avx512, row_avx2, [R: Reducer], (r: R, p: *const R::In, n: usize, stride: isize, shift: R::In) -> R::Acc);
instances!(rows_any = rows, rows_avx512, rows_avx2, [R: Reducer], (
    r: R, p: *const R::In, count: (usize, isize), row: (usize, isize), shift: *const R::In, shift_step: isize, out: *mut R::Out, out_step: isize
));
instances!(down_any = down, down_avx512, down_avx2, [R: Reducer], (
    r: R, p: *const R::In, rows: usize, row_stride: isize, stride: isize, shift: *const R::In, shift_stride: isize, acc: &mut [R::Acc]
));

/// The merge of `n` elements that lie `stride` apart.
///
/// # Safety
/// All of them are readable.
#[inline(always)]
unsafe fn row<R: Reducer>(r: R, p: *const R::In, n: usize, stride: isize, shift: R::In) -> R::Acc {
    // SAFETY: the caller's promise is passed on.
    unsafe {
        if n < 8 {
            let mut a = r.init();
            for i in 0..n {
                a = r.merge(a, r.lift(*p.offset(i as isize * stride), shift));
            }
            a
        } else if stride != 1 {
            row_lanes::<R, 8>(r, p, n, stride, shift)
        } else if n < 16 {
            row_block::<R, 4>(r, p, n, 1, shift)
        } else if n < 128 {
            row_block::<R, 16>(r, p, n, 1, shift)
        } else if size_of::<R::Acc>() == 4 {
            row_lanes::<R, 64>(r, p, n, 1, shift)
        } else {
            row_lanes::<R, 32>(r, p, n, 1, shift)
        }
    }
}

/// Up to `L * ROUNDS` elements: round after round onto `L` lanes, which are then merged as a tree.
#[inline(always)]
unsafe fn row_block<R: Reducer, const L: usize>(r: R, p: *const R::In, n: usize, stride: isize, shift: R::In) -> R::Acc {
    let mut lanes = [r.init(); L];
    let rounds = n / L;
    // SAFETY: every index is below n.
    unsafe {
        if stride == 1
            && let Some(quick) = r.block(p, n)
        {
            return quick;
        }
        if stride == 1 {
            for i in 0..rounds {
                let q = p.add(i * L);
                for (j, lane) in lanes.iter_mut().enumerate() {
                    *lane = r.add(*lane, *q.add(j), shift);
                }
            }
        } else {
            for i in 0..rounds {
                let q = p.offset((i * L) as isize * stride);
                for (j, lane) in lanes.iter_mut().enumerate() {
                    *lane = r.add(*lane, *q.offset(j as isize * stride), shift);
                }
            }
        }
        if !n.is_multiple_of(L) {
            // In an array of its own, so that the lanes above stay in registers.
            let mut rest = [r.init(); L];
            for (j, x) in rest[..n % L].iter_mut().enumerate() {
                *x = r.lift(*p.offset((rounds * L + j) as isize * stride), shift);
            }
            lanes.iter_mut().zip(rest).for_each(|(lane, x)| *lane = r.merge(*lane, x));
        }
    }
    let mut width = L / 2;
    while width > 0 {
        for j in 0..width {
            lanes[j] = r.merge(lanes[j], lanes[j + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// A row of any length (but below 2^16 blocks): blocks merged pairwise, as a binary counter does.
#[inline(always)]
unsafe fn row_lanes<R: Reducer, const L: usize>(r: R, p: *const R::In, n: usize, stride: isize, shift: R::In) -> R::Acc {
    let block = L * ROUNDS;
    let blocks = n.div_ceil(block);
    if blocks <= 1 {
        // SAFETY: the caller's promise is passed on.
        return unsafe { row_block::<R, L>(r, p, n, stride, shift) };
    }
    let mut levels = [r.init(); 16];
    for b in 0..blocks {
        let start = b * block;
        // SAFETY: every index is below n.
        let mut sum = unsafe { row_block::<R, L>(r, p.offset(start as isize * stride), block.min(n - start), stride, shift) };
        let mut level = 0;
        while b >> level & 1 == 1 {
            sum = r.merge(levels[level], sum);
            level += 1;
        }
        levels[level] = sum;
    }
    let mut out: Option<R::Acc> = None;
    for (level, l) in levels.iter().enumerate() {
        if blocks >> level & 1 == 1 {
            out = Some(out.map_or(*l, |o| r.merge(*l, o)));
        }
    }
    out.unwrap_or(r.init())
}

/// Many rows, each of which gives one result.
///
/// # Safety
/// `count` rows, `step` apart, of `n` elements, `stride` apart, are readable; so are `shift`, and writable `out`, at their steps.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn rows<R: Reducer>(
    r: R,
    p: *const R::In,
    (count, step): (usize, isize),
    (n, stride): (usize, isize),
    shift: *const R::In,
    shift_step: isize,
    out: *mut R::Out,
    out_step: isize,
) {
    for i in 0..count as isize {
        // SAFETY: the caller's promise covers row i.
        unsafe {
            let a = row(r, p.offset(i * step), n, stride, *shift.offset(i * shift_step));
            out.offset(i * out_step).write(r.finish(a));
        }
    }
}

/// Column-wise merge of `rows` rows into `acc`, which is overwritten.
///
/// # Safety
/// `acc.len()` columns, `stride` apart, of all rows are readable, as is `shift` at `shift_stride` for each column.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn down<R: Reducer>(
    r: R,
    p: *const R::In,
    rows: usize,
    row_stride: isize,
    stride: isize,
    shift: *const R::In,
    shift_stride: isize,
    acc: &mut [R::Acc],
) {
    // SAFETY: the caller's promise covers every index below.
    unsafe {
        if stride == 1 && shift_stride == 0 {
            let s = *shift;
            down_inner(r, p, rows, row_stride, 1, |_| s, acc);
        } else if stride == 1 && shift_stride == 1 {
            down_inner(r, p, rows, row_stride, 1, |j| *shift.add(j), acc);
        } else {
            down_inner(r, p, rows, row_stride, stride, |j| *shift.offset(j as isize * shift_stride), acc);
        }
    }
}

#[inline(always)]
unsafe fn down_inner<R: Reducer>(
    r: R,
    p: *const R::In,
    rows: usize,
    row_stride: isize,
    stride: isize,
    shift: impl Fn(usize) -> R::In,
    acc: &mut [R::Acc],
) {
    acc.fill(r.init());
    let mut i = 0;
    // SAFETY: the caller's promise covers every row and column.
    unsafe {
        // Not more than eight rows at once: where they lie a multiple of a page apart, they share the eight ways of one set of the cache.
        while i + 8 <= rows {
            for (j, a) in acc.iter_mut().enumerate() {
                let (q, s) = (p.offset(i as isize * row_stride + j as isize * stride), shift(j));
                *a = r.merge_eight(*a, std::array::from_fn(|k| r.lift(*q.offset(k as isize * row_stride), s)));
            }
            i += 8;
        }
        while i < rows {
            let q = p.offset(i as isize * row_stride);
            for (j, a) in acc.iter_mut().enumerate() {
                *a = r.merge(*a, r.lift(*q.offset(j as isize * stride), shift(j)));
            }
            i += 1;
        }
    }
}
