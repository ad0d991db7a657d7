//! Chunks: contiguous elements of one channel. A mean is of several of them.

use super::loops;
use super::{Affine, Applied, Moments, NormElement, Stats, TASK, WHOLE, gradient_line, moments};
use crate::call::NormShape;
use crate::host::threads::{SharedPointer, parallel_for};
use std::ops::Range;
use std::slice::{from_raw_parts, from_raw_parts_mut};

// SAFETY, of every function here: the caller's promise of `super::forward`. Each task has chunks, or pieces of chunks, of its own.

/// How the chunks of a mean are walked: all in one task, or divided into pieces.
struct Walk<'a> {
    s: &'a NormShape,
    /// Chunks of a mean.
    chunks: usize,
    /// Elements of a piece, and how many there are in a chunk.
    piece: usize,
    parts: usize,
}

/// A piece of a chunk.
struct Piece {
    /// The first element.
    at: usize,
    len: usize,
    channel: usize,
    /// The number of the chunk in the order (outer, channel).
    chunk: usize,
}

impl Walk<'_> {
    fn new(s: &NormShape) -> Walk<'_> {
        let piece = if s.count() > WHOLE { TASK.min(s.inner) } else { s.inner };
        Walk { s, chunks: if s.across { s.outer } else { s.channels }, piece, parts: s.inner.div_ceil(piece.max(1)) }
    }

    fn pieces(&self) -> usize {
        self.chunks * self.parts
    }

    /// Piece `p` of mean `i`.
    #[inline(always)]
    fn piece(&self, i: usize, p: usize) -> Piece {
        let (k, part) = if self.parts == 1 { (p, 0) } else { (p / self.parts, p % self.parts) };
        let s = self.s;
        let (chunk, channel) = if s.across { (k * s.groups + i, i) } else { (i * s.channels + k, i % s.groups * s.channels + k) };
        let start = part * self.piece;
        Piece { at: chunk * s.inner + start, len: self.piece.min(s.inner - start), channel, chunk }
    }

    /// Calls `f` with each mean, whose elements stay in one task, or else `pieces` with the means.
    fn each_mean(&self, whole: impl Fn(usize) + Sync, divided: impl FnOnce()) {
        let (means, count) = (self.s.stats(), self.s.count());
        if count > WHOLE {
            divided();
            return;
        }
        let per = (TASK / count.max(1)).max(1);
        parallel_for(means.div_ceil(per), |t| (t * per..means.min((t + 1) * per)).for_each(&whole));
    }

    /// Calls `f(mean, piece)` for every piece of all means in the order of memory, several in one task.
    fn each_piece(&self, f: impl Fn(usize, usize) + Sync) {
        let (s, per) = (self.s, (TASK / self.piece.max(1)).max(1));
        let chunks = s.outer * s.params();
        let parts = self.parts;
        let all = chunks * parts;
        let place = |at: usize| {
            let (chunk, part) = (at / parts, at % parts);
            let (i, k) = if s.across { (chunk % s.groups, chunk / s.groups) } else { (chunk / s.channels, chunk % s.channels) };
            f(i, k * parts + part);
        };
        parallel_for(all.div_ceil(per), |t| (t * per..all.min((t + 1) * per)).for_each(&place));
    }

    /// The sums of two values over the pieces of each mean, computed by all tasks.
    fn summed(&self, f: impl Fn(usize, usize) -> (f64, f64) + Sync) -> Vec<(f64, f64)> {
        let pieces = self.pieces();
        let mut all = vec![(0.0, 0.0); self.s.stats() * pieces];
        let to = SharedPointer::new(all.as_mut_ptr());
        // SAFETY: each has a place of its own.
        self.each_piece(|i, p| unsafe { *to.at(i * pieces + p) = f(i, p) });
        all.chunks_exact(pieces.max(1)).map(|of| total(of.iter().copied())).collect()
    }
}

fn total(sums: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    sums.fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
}

pub(super) unsafe fn forward<T: NormElement>(s: &NormShape, eps: f64, x: *const T, affine: Affine<T>, y: *mut T, to: Stats<T>) {
    let walk = Walk::new(s);
    let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
    // SAFETY: see above.
    let of = |p: &Piece| unsafe { from_raw_parts(x.get().add(p.at), p.len) };
    let sums = |i: usize, p: usize, shift: T| loops::sums(of(&walk.piece(i, p)), shift);
    let first = |i: usize| loops::shifted_sums(of(&walk.piece(i, 0)));
    let put = |i: usize, pieces: Range<usize>, applied: &Applied<T>| {
        for p in pieces {
            let p = walk.piece(i, p);
            // SAFETY: see above.
            unsafe {
                let (scale, shift) = applied.line({ affine }.at(p.channel));
                loops::scaled(of(&p), from_raw_parts_mut(y.at(p.at), p.len), applied.mean, scale, shift);
            }
        }
    };
    let of_chunks = |i: usize| {
        let all = |shift: T, begun: (f64, f64), from: usize| {
            let rest = total((from..walk.pieces()).map(|p| sums(i, p, shift)));
            Moments::new(shift, (begun.0 + rest.0, begun.1 + rest.1), s.count())
        };
        let (shift, begun) = first(i);
        let found = all(shift, begun, 1);
        if found.is_poor { all(T::narrow(found.mean), (0.0, 0.0), 0) } else { found }
    };
    let whole = |i: usize| {
        // The chunks of a mean follow each other, unless it goes across images.
        // SAFETY: see above.
        let found = if s.across { of_chunks(i) } else { moments(unsafe { from_raw_parts(x.get().add(i * s.count()), s.count()) }) };
        // SAFETY: see above.
        put(i, 0..walk.pieces(), &unsafe { found.put(&{ to }, i, eps) });
    };
    walk.each_mean(whole, || {
        let all = |shifts: &[T]| -> Vec<Moments> {
            let made = walk.summed(|i, p| sums(i, p, shifts[i]));
            made.into_iter().zip(shifts).map(|(sums, shift)| Moments::new(*shift, sums, s.count())).collect()
        };
        let mut found = all(&(0..s.stats()).map(|i| loops::shift(of(&walk.piece(i, 0)))).collect::<Vec<T>>());
        if found.iter().any(|m| m.is_poor) {
            found = all(&found.iter().map(|m| T::narrow(m.mean)).collect::<Vec<T>>());
        }
        // SAFETY: see above.
        let applied: Vec<Applied<T>> = found.iter().enumerate().map(|(i, m)| unsafe { m.put(&to, i, eps) }).collect();
        walk.each_piece(|i, p| put(i, p..p + 1, &applied[i]));
    });
}

pub(super) unsafe fn apply<T: NormElement>(s: &NormShape, eps: f64, [x, mean, var]: [*const T; 3], affine: Affine<T>, y: *mut T) {
    let walk = Walk::new(s);
    let ([x, mean, var], y) = ([x, mean, var].map(SharedPointer::new), SharedPointer::new(y));
    // SAFETY: see above.
    let given: Vec<Applied<T>> = (0..s.stats()).map(|i| unsafe { Applied::given(*mean.get().add(i), *var.get().add(i), eps) }).collect();
    walk.each_piece(|i, p| {
        let (p, applied) = (walk.piece(i, p), given[i]);
        // SAFETY: see above.
        unsafe {
            let (scale, shift) = applied.line({ affine }.at(p.channel));
            let (from, to) = (from_raw_parts(x.get().add(p.at), p.len), from_raw_parts_mut(y.at(p.at), p.len));
            loops::scaled(from, to, applied.mean, scale, shift);
        }
    });
}

pub(super) unsafe fn backward<T: NormElement>(
    s: &NormShape,
    fixed: bool,
    [g, x, mean, rstd]: [*const T; 4],
    weight: *const T,
    dx: *mut T,
    params: Option<(*mut T, *mut T)>,
) {
    let walk = Walk::new(s);
    let [g, x, mean, rstd] = [g, x, mean, rstd].map(SharedPointer::new);
    let dx = SharedPointer::new(dx);
    let affine = Affine { weight, bias: std::ptr::null() };
    // SAFETY: see above.
    let of = |from: &SharedPointer<*const T>, p: &Piece| unsafe { from_raw_parts(from.get().add(p.at), p.len) };
    // SAFETY: see above.
    let stats = |i: usize| unsafe { (*mean.get().add(i), (*rstd.get().add(i)).wide()) };
    // SAFETY: see above.
    let weight = |channel: usize| unsafe { { affine }.at(channel).0 };
    let sums = |i: usize, p: &Piece| loops::gradient_sums(of(&g, p), of(&x, p), stats(i).0);
    let over = std::ptr::eq(g.get(), dx.get());
    let put = |i: usize, p: &Piece, (a, b, c): (f64, T, T)| {
        let a = T::narrow(a * weight(p.channel));
        // SAFETY: see above. Over the gradient, no other slice of it is alive.
        let dx = unsafe { from_raw_parts_mut(dx.at(p.at), p.len) };
        match (fixed, over) {
            (true, false) => loops::scaled(of(&g, p), dx, T::ZERO, a, T::ZERO),
            (true, true) => loops::scaled_over(dx, T::ZERO, a, T::ZERO),
            (false, false) => loops::gradient(of(&g, p), of(&x, p), dx, stats(i).0, (a, b, c)),
            (false, true) => loops::gradient_over(dx, of(&x, p), stats(i).0, (a, b, c)),
        }
    };
    if fixed && params.is_none() {
        walk.each_piece(|i, p| put(i, &walk.piece(i, p), (stats(i).1, T::ZERO, T::ZERO)));
        return;
    }
    // The sums of each chunk: the parts of the gradients of weight and bias.
    let mut parts = vec![(0.0, 0.0); s.outer * s.params()];
    let shared = SharedPointer::new(parts.as_mut_ptr());
    // The sums of a mean, from those of its pieces, which are the parts of channels too.
    let joined = |i: usize, of: &dyn Fn(usize) -> (f64, f64)| {
        let mut all = (0.0, 0.0);
        for p in 0..walk.pieces() {
            let (piece, (a, b)) = (walk.piece(i, p), of(p));
            let w = weight(piece.channel);
            all = (all.0 + w * a, all.1 + w * b);
            // SAFETY: a chunk belongs to one mean.
            unsafe {
                let part = &mut *shared.at(piece.chunk);
                *part = (part.0 + a, part.1 + b * stats(i).1);
            }
        }
        all
    };
    let whole = |i: usize| {
        let all = joined(i, &|p| sums(i, &walk.piece(i, p)));
        let line = gradient_line(stats(i).1, all, s.count());
        (0..walk.pieces()).for_each(|p| put(i, &walk.piece(i, p), line));
    };
    walk.each_mean(whole, || {
        let pieces = walk.pieces();
        let mut made = vec![(0.0, 0.0); s.stats() * pieces];
        let to = SharedPointer::new(made.as_mut_ptr());
        // SAFETY: each has a place of its own.
        walk.each_piece(|i, p| unsafe { *to.at(i * pieces + p) = sums(i, &walk.piece(i, p)) });
        let lines: Vec<(f64, T, T)> =
            (0..s.stats()).map(|i| gradient_line(stats(i).1, joined(i, &|p| made[i * pieces + p]), s.count())).collect();
        walk.each_piece(|i, p| put(i, &walk.piece(i, p), lines[i]));
    });
    let Some((dw, db)) = params else { return };
    let n = s.params();
    for channel in 0..n {
        let (b, w) = total((0..s.outer).map(|o| parts[o * n + channel]));
        // SAFETY: see above.
        unsafe {
            *dw.add(channel) = T::narrow(w);
            *db.add(channel) = T::narrow(b);
        }
    }
}
