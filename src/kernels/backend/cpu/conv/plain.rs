//! Convolution of numbers of any type: for each row of the result a loop over what adds to it. Tasks are whole rows, and each element is the sum of its products in
//! one order, so the bits are the same for any number of threads.
//!
//! Not here: floats of 16 bits, which `widened` has converted.

use crate::backend::cpu::reduce::reducers::Arithmetic;
use crate::call::ConvShape;
use crate::host::interrupt;
use crate::host::threads::{SharedPointer, parallel_for};

/// Products of one task.
const TASK: usize = 1 << 18;

/// The places of `n` steps from `at`, `step` apart, that lie in `0..size`.
#[inline(always)]
fn inside(at: isize, step: usize, n: usize, size: usize) -> std::ops::Range<usize> {
    let (step, size) = (step as isize, size as isize);
    let first = if at < 0 { (-at + step - 1) / step } else { 0 };
    let end = if at >= size { 0 } else { (size - at + step - 1) / step };
    let end = end.clamp(0, n as isize) as usize;
    (first as usize).min(end)..end
}

/// Where a position of the output and one of the kernel meet the input, along dimension `d`; it may lie outside.
#[inline(always)]
fn place(s: &ConvShape, d: usize, o: usize, k: usize) -> isize {
    (o * s.stride[d] + k * s.dilation[d]) as isize - s.padding[d] as isize
}

/// The output position that meets the input at `i` with position `k` of the kernel.
#[inline(always)]
fn source(s: &ConvShape, d: usize, i: usize, k: usize) -> Option<usize> {
    let far = (i + s.padding[d]).checked_sub(k * s.dilation[d])?;
    (far.is_multiple_of(s.stride[d]) && far / s.stride[d] < s.output[d]).then_some(far / s.stride[d])
}

/// Runs `f` for each of `rows` rows of `n` elements, each of which takes `products` products.
fn rows<T>(out: *mut T, rows: usize, n: usize, products: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    let each = (TASK / n.saturating_mul(products).max(1)).max(1);
    let out = SharedPointer::new(out);
    parallel_for(rows.div_ceil(each), |t| {
        for r in t * each..rows.min((t + 1) * each) {
            // SAFETY: each task has rows of its own, and the callers' output has all of them.
            f(r, unsafe { std::slice::from_raw_parts_mut(out.at(r * n), n) });
        }
    });
}

/// y of x and the weight; the bias is null where there is none.
///
/// # Safety
/// All have the elements that the shape says, the output overlaps nothing else, and the request's `accepts` has passed.
pub unsafe fn forward<T: Arithmetic>(s: &ConvShape, x: *const T, w: *const T, bias: *const T, y: *mut T) {
    let ([id, ih, iw], [od, oh, ow], [kd, kh, kw]) = (s.input, s.output, s.kernel);
    let channels = s.groups * s.out_channels;
    let [x, w, bias] = [x, w, bias].map(SharedPointer::new);
    rows(y, s.batch * channels * od * oh, ow, s.in_channels * kd * kh * kw, |r, row| {
        let (c, d, h) = (r / (od * oh), r / oh % od, r % oh);
        let (b, c) = (c / channels, c % channels);
        let group = c / s.out_channels;
        // SAFETY: indices stay below the sizes: `inside` and the two checks see to those of x.
        unsafe {
            row.fill(if bias.get().is_null() { T::ZERO } else { *bias.get().add(c) });
            for i in 0..s.in_channels {
                interrupt::check();
                let from = x.get().add((b * s.groups * s.in_channels + group * s.in_channels + i) * id * ih * iw);
                let weights = w.get().add((c * s.in_channels + i) * kd * kh * kw);
                for (a, z) in (0..kd).map(|a| (a, place(s, 0, d, a))).filter(|(_, z)| (0..id as isize).contains(z)) {
                    for (e, v) in (0..kh).map(|e| (e, place(s, 1, h, e))).filter(|(_, v)| (0..ih as isize).contains(v)) {
                        let from = from.add((z as usize * ih + v as usize) * iw);
                        for k in 0..kw {
                            let weight = *weights.add((a * kh + e) * kw + k);
                            let at = place(s, 2, 0, k);
                            let o = inside(at, s.stride[2], ow, iw);
                            let from = from.wrapping_offset(at + (o.start * s.stride[2]) as isize);
                            for (j, to) in row[o].iter_mut().enumerate() {
                                *to = to.plus(weight.times(*from.wrapping_add(j * s.stride[2])));
                            }
                        }
                    }
                }
            }
        }
    });
}

/// The gradient of x, of that of y and the weight; the bias is null where there is none.
///
/// # Safety
/// As for `forward`.
pub unsafe fn input<T: Arithmetic>(s: &ConvShape, g: *const T, w: *const T, bias: *const T, x: *mut T) {
    let ([id, ih, iw], [od, oh, ow], [kd, kh, kw]) = (s.input, s.output, s.kernel);
    let channels = s.groups * s.in_channels;
    let [g, w, bias] = [g, w, bias].map(SharedPointer::new);
    rows(x, s.batch * channels * id * ih, iw, s.out_channels * kd * kh * kw, |r, row| {
        let (c, d, h) = (r / (id * ih), r / ih % id, r % ih);
        let (b, c) = (c / channels, c % channels);
        let (group, i) = (c / s.in_channels, c % s.in_channels);
        // SAFETY: indices stay below the sizes: `source` and `inside` see to those of y.
        unsafe {
            row.fill(if bias.get().is_null() { T::ZERO } else { *bias.get().add(c) });
            for o in 0..s.out_channels {
                interrupt::check();
                let c = group * s.out_channels + o;
                let from = g.get().add((b * s.groups * s.out_channels + c) * od * oh * ow);
                let weights = w.get().add((c * s.in_channels + i) * kd * kh * kw);
                for (a, z) in (0..kd).filter_map(|a| Some((a, source(s, 0, d, a)?))) {
                    for (e, v) in (0..kh).filter_map(|e| Some((e, source(s, 1, h, e)?))) {
                        let from = from.add((z * oh + v) * ow);
                        for k in 0..kw {
                            let weight = *weights.add((a * kh + e) * kw + k);
                            let at = place(s, 2, 0, k);
                            for p in inside(at, s.stride[2], ow, iw) {
                                let to = &mut row[(at + (p * s.stride[2]) as isize) as usize];
                                *to = to.plus(weight.times(*from.add(p)));
                            }
                        }
                    }
                }
            }
        }
    });
}

/// The gradient of the weight, of that of y and x.
///
/// # Safety
/// As for `forward`.
pub unsafe fn weight<T: Arithmetic>(s: &ConvShape, g: *const T, x: *const T, w: *mut T) {
    let ([id, ih, iw], [od, oh, ow], [kd, kh, kw]) = (s.input, s.output, s.kernel);
    let [g, x] = [g, x].map(SharedPointer::new);
    rows(w, s.groups * s.out_channels * s.in_channels * kd * kh, kw, s.batch * od * oh * ow, |r, row| {
        let (c, a, e) = (r / (kd * kh), r / kh % kd, r % kh);
        let (c, i) = (c / s.in_channels, c % s.in_channels);
        let channel = c / s.out_channels * s.in_channels + i;
        row.fill(T::ZERO);
        for b in 0..s.batch {
            // SAFETY: indices stay below the sizes: `inside` and the two checks see to those of x.
            unsafe {
                let from = x.get().add((b * s.groups * s.in_channels + channel) * id * ih * iw);
                let other = g.get().add((b * s.groups * s.out_channels + c) * od * oh * ow);
                for (o, z) in (0..od).map(|o| (o, place(s, 0, o, a))).filter(|(_, z)| (0..id as isize).contains(z)) {
                    interrupt::check();
                    for (p, v) in (0..oh).map(|p| (p, place(s, 1, p, e))).filter(|(_, v)| (0..ih as isize).contains(v)) {
                        let (from, other) = (from.add((z as usize * ih + v as usize) * iw), other.add((o * oh + p) * ow));
                        for (k, to) in row.iter_mut().enumerate() {
                            let at = place(s, 2, 0, k);
                            let mut sum = T::ZERO;
                            for q in inside(at, s.stride[2], ow, iw) {
                                let x = *from.wrapping_offset(at + (q * s.stride[2]) as isize);
                                sum = sum.plus(x.times(*other.add(q)));
                            }
                            *to = to.plus(sum);
                        }
                    }
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_inside() {
        assert_eq!(inside(-3, 2, 4, 4), 2..4);
        assert_eq!(inside(0, 1, 4, 4), 0..4);
        assert_eq!(inside(5, 1, 4, 4), 0..0);
        assert_eq!(inside(-9, 2, 4, 4), 4..4);
        assert_eq!(inside(1, 3, 2, 5), 0..2);
    }
}
