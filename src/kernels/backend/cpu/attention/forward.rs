//! The forward pass: each task has a block of queries of one head, and goes through the keys.

use super::{AttentionJob, AttentionMask, KEYS, QUERIES, SCORES};
use crate::backend::cpu::common::blocks::lanes::Lanes;
use crate::backend::cpu::common::blocks::tile::{BlockProduct, PanelWidth, pack, pack_transposed};
use crate::backend::cpu::common::blocks::{BlockElement, BlockTask, BlockWork, ROWS_AHEAD, prefetch, scratch};
use crate::error::{Result, throw};
use crate::host::interrupt;
use crate::host::threads::{SharedPointer, parallel_for};

/// A block of queries.
struct ForwardTask<'a, T> {
    job: &'a AttentionJob<T>,
    /// Batch, head, first query, number of queries.
    at: [usize; 4],
    /// Panels of the head's keys (transposed) and values.
    keys: *const T,
    values: *const T,
    widths: [PanelWidth; 2],
    /// Rows are `out_step` apart.
    out: *mut T,
    out_step: usize,
    /// Of the first query; the others are `lse_step` apart.
    lse: *mut T,
    lse_step: usize,
}

/// The whole pass.
pub(super) struct Forward<'a, T> {
    pub job: &'a AttentionJob<T>,
    pub out: *mut T,
    pub lse: *mut T,
}

/// The pointers are as `super::forward` requires.
impl<T: BlockElement> BlockWork<T> for Forward<'_, T> {
    unsafe fn work<V: Lanes<T = T>>(&self) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { run::<V>(self.job, self.out, self.lse) }
    }
}

/// The results of one task are its own.
impl<T: BlockElement> BlockTask<T> for ForwardTask<'_, T> {
    #[inline(always)]
    unsafe fn task<V: Lanes<T = T>>(&self) {
        // SAFETY: the caller's.
        unsafe { queries::<V>(self) }
    }
}

/// # Safety
/// As for `super::forward`; the machine has the instructions.
unsafe fn run<V: Lanes>(job: &AttentionJob<V::T>, out: *mut V::T, lse: *mut V::T) -> Result<()> {
    let s = job.shape;
    let widths = [PanelWidth::of(s.s, V::N), PanelWidth::of(s.ev, V::N)];
    let (key_size, value_size) = (s.e * widths[0].padded, s.s * widths[1].padded);
    let kv = s.batch * s.kv_heads;
    let (keys, values) = (scratch::<V::T>(kv.saturating_mul(key_size))?, scratch::<V::T>(kv.saturating_mul(value_size))?);
    let (keys, values) = (SharedPointer::new(keys.as_ptr().cast::<V::T>()), SharedPointer::new(values.as_ptr().cast::<V::T>()));
    parallel_for(2 * kv, |t| {
        let (i, at) = (t / 2, (t / 2 / s.kv_heads, t / 2 % s.kv_heads));
        // SAFETY: the caller's; each task has panels of its own.
        unsafe {
            if t % 2 == 0 {
                pack_transposed(&job.k, at, (s.s, s.e), widths[0], keys.at(i * key_size));
            } else {
                pack(&job.v, at, (s.s, s.ev), widths[1], values.at(i * value_size));
            }
        }
    });
    let (blocks, group) = (s.l.div_ceil(QUERIES), s.heads / s.kv_heads.max(1));
    let (out, lse) = (SharedPointer::new(out), SharedPointer::new(lse));
    parallel_for(s.batch * s.heads * blocks, |t| {
        // The last queries, which have the most keys if the mask is causal, come first.
        let (head, first) = (t / blocks, (blocks - 1 - t % blocks) * QUERIES);
        let (b, h) = (head / s.heads, head % s.heads);
        let kv = b * s.kv_heads + h / group;
        let [of_batch, of_head, of_row] = job.row_steps;
        let row = b * of_batch + h * of_head + first * of_row;
        let task = ForwardTask {
            job,
            at: [b, h, first, QUERIES.min(s.l - first)],
            keys: keys.at(kv * key_size),
            values: values.at(kv * value_size),
            widths,
            out: out.at(row * s.ev),
            out_step: of_row * s.ev,
            lse: lse.at((b * s.l + first) * s.heads + h),
            lse_step: s.heads,
        };
        // SAFETY: the caller's; each task has results of its own.
        unsafe { V::run(&task) };
    });
    Ok(())
}

/// Adds the mask to scores of one query, or sets those of masked keys to -inf.
///
/// # Safety
/// There are `n` scores, of keys from `j` on.
#[inline(always)]
pub(super) unsafe fn add_mask<T: BlockElement>(mask: &AttentionMask<T>, (b, h, i, j): (usize, usize, usize, usize), s: *mut T, n: usize) {
    // SAFETY: the caller's.
    unsafe {
        let s = std::slice::from_raw_parts_mut(s, n);
        match mask {
            AttentionMask::Nothing => {}
            AttentionMask::Bool(m) => {
                let row = m.row(b, h, i).wrapping_offset(j as isize * m.strides[3]);
                for (c, s) in s.iter_mut().enumerate() {
                    if *row.wrapping_offset(c as isize * m.strides[3]) == 0 {
                        *s = T::LOWEST;
                    }
                }
            }
            AttentionMask::Number(m) => {
                let row = m.row(b, h, i).wrapping_offset(j as isize * m.strides[3]);
                if m.strides[3] == 1 {
                    for (s, m) in s.iter_mut().zip(std::slice::from_raw_parts(row, n)) {
                        *s = s.plus(*m);
                    }
                } else {
                    for (c, s) in s.iter_mut().enumerate() {
                        *s = s.plus(*row.wrapping_offset(c as isize * m.strides[3]));
                    }
                }
            }
        }
    }
}

/// The largest of `n` numbers, a multiple of the vector's size, in each lane.
#[inline(always)]
unsafe fn largest<V: Lanes>(x: *const V::T, n: usize) -> V {
    // SAFETY: the caller's.
    unsafe {
        let mut top = [V::splat(V::T::LOWEST); 2];
        let mut j = 0;
        while j + 2 * V::N <= n {
            top[0] = V::load(x.add(j)).larger(top[0]);
            top[1] = V::load(x.add(j + V::N)).larger(top[1]);
            j += 2 * V::N;
        }
        if j < n {
            top[0] = V::load(x.add(j)).larger(top[0]);
        }
        top[0].larger(top[1])
    }
}

/// Replaces `n` numbers, a multiple of the vector's size, by `exp(x - shift)`. Returns the sum of each lane.
#[inline(always)]
unsafe fn exponentials<V: Lanes>(x: *mut V::T, n: usize, shift: V::T) -> V {
    // SAFETY: the caller's.
    unsafe {
        let shift = V::splat(shift);
        let mut sum = [V::splat(V::T::ZERO); 2];
        let mut j = 0;
        while j + 2 * V::N <= n {
            let (from, next) = (x.add(j), x.add(j + V::N));
            let (a, b) = (V::load(from).minus(shift).exp_of_negative(), V::load(next).minus(shift).exp_of_negative());
            a.store(from);
            b.store(next);
            sum = [sum[0].plus(a), sum[1].plus(b)];
            j += 2 * V::N;
        }
        if j < n {
            let weight = V::load(x.add(j)).minus(shift).exp_of_negative();
            weight.store(x.add(j));
            sum[0] = sum[0].plus(weight);
        }
        sum[0].plus(sum[1])
    }
}

/// Writes `n` neighbours times a factor.
///
/// # Safety
/// They are readable and writable.
#[inline(always)]
unsafe fn scaled<V: Lanes>(from: *const V::T, n: usize, factor: V::T, to: *mut V::T) {
    // SAFETY: the caller's.
    unsafe {
        for j in (0..n).step_by(V::N) {
            let left = n - j;
            V::load_up_to(from.add(j), left).times(V::splat(factor)).store_up_to(to.add(j), left);
        }
    }
}

/// # Safety
/// The task's operands and results are valid, and nothing else writes them.
#[inline(always)]
unsafe fn queries<V: Lanes>(task: &ForwardTask<'_, V::T>) {
    let (zero, one, low) = (V::T::ZERO, V::T::ONE, V::T::LOWEST);
    let job = task.job;
    let (s, [b, h, first, rows], [keys, values]) = (job.shape, task.at, task.widths);
    let wide = values.padded;
    let room = scratch::<V::T>(rows * (s.e + SCORES + wide + V::N)).unwrap_or_else(|e| throw(e));
    let q = room.as_ptr().cast::<V::T>();
    let scores = q.wrapping_add(rows * s.e);
    let sums = scores.wrapping_add(rows * SCORES);
    // The sum of a row's weights is kept by lane: lanes are added up once, at the end.
    let totals = sums.wrapping_add(rows * wide);
    let mut tops = [low; QUERIES];
    // SAFETY: the caller's; there is room.
    unsafe {
        for i in 0..rows {
            prefetch(job.q.row(b, h, first + i + ROWS_AHEAD), s.e);
            scaled::<V>(job.q.row(b, h, first + i), s.e, job.scale, q.add(i * s.e));
        }
        std::slice::from_raw_parts_mut(sums, rows * (wide + V::N)).fill(zero);
    }
    let all = job.keys(first + rows);
    let mut j = 0;
    while j < all {
        interrupt::check();
        let n = KEYS.min(all - j);
        let padded = n.next_multiple_of(keys.columns);
        // SAFETY: the caller's; a block of keys begins with a panel.
        unsafe {
            V::product(&BlockProduct {
                m: rows,
                k: s.e,
                a: q,
                a_step: s.e,
                transposed: false,
                b: task.keys.add(j * s.e),
                b_step: s.e * keys.columns,
                panels: padded / keys.columns,
                wide: keys.wide,
                c: scores,
                c_step: SCORES,
                add: false,
            });
            for (i, top) in tops.iter_mut().enumerate().take(rows) {
                let row = scores.add(i * SCORES);
                let limit = job.limit(first + i, j, n);
                add_mask(&job.mask, (b, h, first + i, j), row, limit);
                std::slice::from_raw_parts_mut(row.add(limit), padded - limit).fill(low);
                let total = totals.add(i * V::N);
                let largest = largest::<V>(row, padded);
                if largest.is_above(V::splat(*top)) {
                    let before = std::mem::replace(top, largest.merged(|a, b| if a > b { a } else { b }));
                    // Before there were any, all sums are zeros.
                    if before != low {
                        let less = V::splat(before).minus(V::splat(*top)).exp();
                        V::load(total).times(less).store(total);
                        let to = sums.add(i * wide);
                        for c in (0..wide).step_by(V::N) {
                            V::load(to.add(c)).times(less).store(to.add(c));
                        }
                    }
                }
                let shift = if *top == low { zero } else { *top };
                V::load(total).plus(exponentials::<V>(row, padded, shift)).store(total);
            }
            V::product(&BlockProduct {
                m: rows,
                k: n,
                a: scores,
                a_step: SCORES,
                transposed: false,
                b: task.values.add(j * values.columns),
                b_step: s.s * values.columns,
                panels: values.panels(),
                wide: values.wide,
                c: sums,
                c_step: wide,
                add: true,
            });
        }
        j += n;
    }
    for (i, top) in tops.iter().enumerate().take(rows) {
        // SAFETY: there is a vector for each row.
        let total = unsafe { V::load(totals.add(i * V::N)).merged(|a, b| a.plus(b)) };
        let none = total == zero;
        let total = if none { one } else { total };
        // SAFETY: the caller's.
        unsafe {
            *task.lse.add(i * task.lse_step) = if none { zero } else { top.plus(total.ln()) };
            let to = std::slice::from_raw_parts_mut(task.out.add(i * task.out_step), s.ev);
            for (to, sum) in to.iter_mut().zip(std::slice::from_raw_parts(sums.add(i * wide), s.ev)) {
                *to = if none { zero } else { sum.over(total) };
            }
        }
    }
}
