//! The backward pass. A task has some keys of one head of keys and values: it sums up their gradients, and its part of the gradients of all
//! queries that attend to them. These parts are added up in the order of the keys.

use super::forward::add_mask;
use super::{AttentionJob, AttentionMask, GradientSources, KEYS, QUERIES, SCORES};
use crate::backend::cpu::common::blocks::lanes::Lanes;
use crate::backend::cpu::common::blocks::tile::{BlockProduct, PanelWidth, pack, pack_transposed};
use crate::backend::cpu::common::blocks::{BlockElement, BlockTask, BlockWork, ROWS_AHEAD, prefetch, scratch};
use crate::error::Result;
use crate::host::interrupt;
use crate::host::memory::reserve::aligned;
use crate::host::threads::{SharedPointer, parallel_for};

/// Tasks that are wanted, for which keys are divided; and the keys that a task has at least.
const TASKS: usize = 16;
const SHARE: usize = 512;

/// Keys of one head.
struct BackwardTask<'a, T> {
    job: &'a AttentionJob<T>,
    from: &'a GradientSources<T>,
    /// Batch, head of keys, first key, end of keys.
    at: [usize; 4],
    /// Panels of the head's keys (transposed, and as they are) and values (transposed).
    panels: [*const T; 3],
    /// Panels of queries and gradients, those of all heads.
    of_queries: [*const T; 2],
    /// The sums of products of gradient and result, for each head and query.
    along: *const T,
    /// For keys as columns, and for the columns of keys and values.
    widths: [PanelWidth; 3],
    /// The part of the queries' gradients: for each head of the group and query a row, which are so far apart. The task's first keys
    /// overwrite those that they meet.
    dq: *mut T,
    dq_steps: [usize; 2],
    dk: *mut T,
    dv: *mut T,
}

/// What queries of one head need before they meet keys.
struct Preparation<'a, T> {
    job: &'a AttentionJob<T>,
    from: &'a GradientSources<T>,
    /// Batch and head.
    at: (usize, usize),
    /// For the columns of keys and values.
    widths: [PanelWidth; 2],
    /// Panels of queries and gradients.
    panels: [*mut T; 2],
    /// The sums of products of gradient and result.
    along: *mut T,
}

/// The results of one task are its own.
impl<T: BlockElement> BlockTask<T> for Preparation<'_, T> {
    #[inline(always)]
    unsafe fn task<V: Lanes<T = T>>(&self) {
        let (s, from, (b, h)) = (self.job.shape, self.from, self.at);
        // SAFETY: the caller's.
        unsafe {
            pack(&self.job.q, (b, h), (s.l, s.e), self.widths[0], self.panels[0]);
            pack(&from.g, (b, h), (s.l, s.ev), self.widths[1], self.panels[1]);
            for i in 0..s.l {
                let (g, o) = (from.g.row(b, h, i), from.o.row(b, h, i));
                prefetch(from.o.row(b, h, i + ROWS_AHEAD), s.ev);
                let mut sum = V::splat(T::ZERO);
                for j in (0..s.ev).step_by(V::N) {
                    sum = V::load_up_to(g.add(j), s.ev - j).fma(V::load_up_to(o.add(j), s.ev - j), sum);
                }
                *self.along.add(i) = sum.merged(|a, b| a.plus(b));
            }
        }
    }
}

/// The whole pass.
pub(super) struct Backward<'a, T> {
    pub job: &'a AttentionJob<T>,
    pub from: &'a GradientSources<T>,
    pub to: [*mut T; 3],
}

/// The pointers are as `super::backward` requires.
impl<T: BlockElement> BlockWork<T> for Backward<'_, T> {
    unsafe fn work<V: Lanes<T = T>>(&self) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { run::<V>(self.job, self.from, self.to) }
    }
}

/// The results of one task are its own.
impl<T: BlockElement> BlockTask<T> for BackwardTask<'_, T> {
    #[inline(always)]
    unsafe fn task<V: Lanes<T = T>>(&self) {
        // SAFETY: the caller's.
        unsafe { keys::<V>(self) }
    }
}

/// # Safety
/// As for `super::backward`; the machine has the instructions.
unsafe fn run<V: Lanes>(job: &AttentionJob<V::T>, from: &GradientSources<V::T>, [dq, dk, dv]: [*mut V::T; 3]) -> Result<()> {
    let s = job.shape;
    let widths = [PanelWidth::of(s.s, V::N), PanelWidth::of(s.e, V::N), PanelWidth::of(s.ev, V::N)];
    let [columns, e, ev] = widths.map(|w| w.padded);
    let (kv, all) = (s.batch * s.kv_heads, s.batch * s.heads);
    let group = s.heads / s.kv_heads.max(1);
    let parts = if kv >= TASKS { 1 } else { TASKS.div_ceil(kv.max(1)).min(s.s.div_ceil(SHARE)).max(1) };
    let share = s.s.div_ceil(parts).next_multiple_of(KEYS);
    let parts = s.s.div_ceil(share).max(1);
    // What the scratch memory of a head of keys, and of a head of queries, has.
    let of_kv = [s.e * columns, s.s * e, s.ev * columns];
    let of_q = [s.l * e, s.l * ev];
    let room = |n: usize, each: usize| scratch::<V::T>(n.saturating_mul(each));
    let kv_memory = [room(kv, of_kv[0])?, room(kv, of_kv[1])?, room(kv, of_kv[2])?];
    let q_memory = [room(all, of_q[0])?, room(all, of_q[1])?];
    // One part of whole panels is written where it belongs.
    let is_one = parts == 1 && e == s.e && s.s > 0;
    let (along, sums) = (room(all, s.l)?, room(if is_one { 0 } else { all * parts }, of_q[0])?);
    let panels = kv_memory.each_ref().map(|m| SharedPointer::new(m.as_ptr().cast::<V::T>()));
    let of_queries = q_memory.each_ref().map(|m| SharedPointer::new(m.as_ptr().cast::<V::T>()));
    let (along, sums) = (SharedPointer::new(along.as_ptr().cast::<V::T>()), SharedPointer::new(sums.as_ptr().cast::<V::T>()));
    parallel_for(kv, |t| {
        let at = (t / s.kv_heads, t % s.kv_heads);
        // SAFETY: the caller's; each task has panels of its own.
        unsafe {
            pack_transposed(&job.k, at, (s.s, s.e), widths[0], panels[0].at(t * of_kv[0]));
            pack(&job.k, at, (s.s, s.e), widths[1], panels[1].at(t * of_kv[1]));
            pack_transposed(&job.v, at, (s.s, s.ev), widths[0], panels[2].at(t * of_kv[2]));
        }
    });
    parallel_for(all, |t| {
        let (b, h) = (t / s.heads, t % s.heads);
        let task = Preparation {
            job,
            from,
            at: (b, h),
            widths: [widths[1], widths[2]],
            panels: [of_queries[0].at(t * of_q[0]), of_queries[1].at(t * of_q[1])],
            along: along.at(t * s.l),
        };
        // SAFETY: as above.
        unsafe {
            V::run(&task);
            // Queries that none of a part's keys meet.
            if !is_one && (job.causal || s.s == 0) {
                std::slice::from_raw_parts_mut(sums.at(t * parts * of_q[0]), parts * of_q[0]).fill(V::T::ZERO);
            }
        }
    });
    let dq = SharedPointer::new(dq);
    let to = [dk, dv].map(SharedPointer::new);
    parallel_for(kv * parts, |t| {
        let (i, part) = (t / parts, t % parts);
        let (b, h) = (i / s.kv_heads, i % s.kv_heads);
        let task = BackwardTask {
            job,
            from,
            at: [b, h, part * share, s.s.min((part + 1) * share)],
            panels: [panels[0].at(i * of_kv[0]), panels[1].at(i * of_kv[1]), panels[2].at(i * of_kv[2])],
            of_queries: [of_queries[0].at(i * group * of_q[0]), of_queries[1].at(i * group * of_q[1])],
            along: along.at(i * group * s.l),
            widths,
            dq: if is_one { dq.at((b * s.l * s.heads + h * group) * e) } else { sums.at((i * parts + part) * group * of_q[0]) },
            dq_steps: if is_one { [e, s.heads * e] } else { [of_q[0], e] },
            dk: to[0].at((b * s.s * s.kv_heads + h) * s.e),
            dv: to[1].at((b * s.s * s.kv_heads + h) * s.ev),
        };
        // SAFETY: the caller's; each task has keys and sums of its own.
        unsafe { V::run(&task) };
    });
    if is_one {
        return Ok(());
    }
    parallel_for(all, |t| {
        let (b, h) = (t / s.heads, t % s.heads);
        let (i, member) = (b * s.kv_heads + h / group, h % group);
        for row in 0..s.l {
            // SAFETY: as above.
            unsafe {
                let to = std::slice::from_raw_parts_mut(dq.at(((b * s.l + row) * s.heads + h) * s.e), s.e);
                for part in 0..parts {
                    let from = sums.at((((i * parts + part) * group + member) * s.l + row) * e);
                    let from = std::slice::from_raw_parts(from, s.e);
                    for (to, x) in to.iter_mut().zip(from) {
                        *to = if part == 0 { *x } else { to.plus(*x) };
                    }
                }
            }
        }
    });
    Ok(())
}

/// Makes weights of scores times a scale, and gradients of the scores, times a factor, of those of the weights.
///
/// # Safety
/// There are `padded` of both, a multiple of the vector's size.
#[inline(always)]
unsafe fn weights<V: Lanes>(x: *mut V::T, dx: *mut V::T, padded: usize, [scale, factor]: [V::T; 2], [lse, along]: [V::T; 2]) {
    // SAFETY: the caller's.
    unsafe {
        let (scale, factor, less, along) = (V::splat(scale), V::splat(factor), V::splat(V::T::ZERO).minus(V::splat(lse)), V::splat(along));
        for c in (0..padded).step_by(V::N) {
            let (x, dx) = (x.add(c), dx.add(c));
            let weight = V::load(x).fma(scale, less).exp_of_negative();
            weight.store(x);
            V::load(dx).minus(along).times(weight.times(factor)).store(dx);
        }
    }
}

/// # Safety
/// The task's operands and results are valid, and nothing else writes them.
#[inline(always)]
unsafe fn keys<V: Lanes>(task: &BackwardTask<'_, V::T>) {
    let zero = V::T::ZERO;
    let (job, from) = (task.job, task.from);
    let (s, [b, kv_head, start, end], [keys, of_k, of_v]) = (job.shape, task.at, task.widths);
    let group = s.heads / s.kv_heads;
    let (e, ev) = (of_k.padded, of_v.padded);
    let mut scores = aligned(zero, QUERIES * SCORES);
    let mut slopes = aligned(zero, QUERIES * SCORES);
    let (mut dk, mut dv) = (aligned(zero, KEYS * e), aligned(zero, KEYS * ev));
    let is_masked = !matches!(job.mask, AttentionMask::Nothing);
    let mut j = start;
    while j < end {
        let n = KEYS.min(end - j);
        let padded = n.next_multiple_of(keys.columns);
        dk.fill(zero);
        dv.fill(zero);
        for member in 0..group {
            let h = kv_head * group + member;
            // Of the queries before key j none attends to it, if the mask is causal.
            let mut first = if job.causal { j / QUERIES * QUERIES } else { 0 };
            while first < s.l {
                interrupt::check();
                let rows = QUERIES.min(s.l - first);
                let [q, g] = task.of_queries;
                let (q, g) = (q.wrapping_add(member * s.l * e), g.wrapping_add(member * s.l * ev));
                let shared = BlockProduct {
                    m: rows,
                    k: s.e,
                    a: job.q.row(b, h, first),
                    a_step: job.q.strides[2] as usize,
                    transposed: false,
                    b: task.panels[0].wrapping_add(j * s.e),
                    b_step: s.e * keys.columns,
                    panels: padded / keys.columns,
                    wide: keys.wide,
                    c: scores.as_mut_ptr(),
                    c_step: SCORES,
                    add: false,
                };
                // SAFETY: the caller's; blocks stay inside their matrices, and a block of keys begins with a panel.
                unsafe {
                    V::product(&shared);
                    V::product(&BlockProduct {
                        k: s.ev,
                        a: from.g.row(b, h, first),
                        a_step: from.g.strides[2] as usize,
                        b: task.panels[2].wrapping_add(j * s.ev),
                        b_step: s.ev * keys.columns,
                        c: slopes.as_mut_ptr(),
                        ..shared
                    });
                    for i in 0..rows {
                        let (row, slope) = (scores.as_mut_ptr().add(i * SCORES), slopes.as_mut_ptr().add(i * SCORES));
                        let limit = job.limit(first + i, j, n);
                        let mut scale = job.scale;
                        if is_masked {
                            let all = V::splat(scale);
                            for c in (0..padded).step_by(V::N) {
                                V::load(row.add(c)).times(all).store(row.add(c));
                            }
                            add_mask(&job.mask, (b, h, first + i, j), row, limit);
                            scale = V::T::ONE;
                        }
                        let known = [*from.lse.row(b, h, first + i), *task.along.add(member * s.l + first + i)];
                        weights::<V>(row, slope, padded, [scale, job.scale], known);
                        for x in [row, slope] {
                            std::slice::from_raw_parts_mut(x.add(limit), padded - limit).fill(zero);
                        }
                    }
                    let of_keys = BlockProduct {
                        m: n,
                        k: rows,
                        a: scores.as_ptr(),
                        a_step: SCORES,
                        transposed: true,
                        b: g.add(first * of_v.columns),
                        b_step: s.l * of_v.columns,
                        panels: of_v.panels(),
                        wide: of_v.wide,
                        c: dv.as_mut_ptr(),
                        c_step: ev,
                        add: true,
                    };
                    V::product(&of_keys);
                    let of_e = BlockProduct { panels: of_k.panels(), wide: of_k.wide, c_step: e, a: slopes.as_ptr(), ..of_keys };
                    V::product(&BlockProduct { b: q.add(first * of_k.columns), b_step: s.l * of_k.columns, c: dk.as_mut_ptr(), ..of_e });
                    V::product(&BlockProduct {
                        m: rows,
                        k: n,
                        transposed: false,
                        b: task.panels[1].add(j * of_k.columns),
                        b_step: s.s * of_k.columns,
                        c: task.dq.add(member * task.dq_steps[0] + first * task.dq_steps[1]),
                        c_step: task.dq_steps[1],
                        add: j > start,
                        ..of_e
                    });
                }
                first += rows;
            }
        }
        for c in 0..n {
            // SAFETY: the caller's.
            unsafe {
                let to = std::slice::from_raw_parts_mut(task.dk.add((j + c) * s.kv_heads * s.e), s.e);
                to.copy_from_slice(&dk[c * e..][..s.e]);
                let to = std::slice::from_raw_parts_mut(task.dv.add((j + c) * s.kv_heads * s.ev), s.ev);
                to.copy_from_slice(&dv[c * ev..][..s.ev]);
            }
        }
        j += n;
    }
}
