//! The kernel's gradient with few channels of y in each group: for each tap, the products of the output's gradient with a strip.

use super::super::algorithms::{FEW, WeightPass};
use super::super::geometry::{Patches, Strip, StripRow};
use super::super::patches::{clear, fill, reserve, widen};
use super::{STRIP, TASK};
use crate::backend::cpu::algorithms::{Asked, Why};
use crate::backend::cpu::matmul::on_vectors::on_vectors;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector};
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::backend::cpu::reduce::reducers::Arithmetic;
use crate::call::ConvShape;
use crate::host::interrupt;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::InstructionSet;

/// Parts of a sum over all images.
const PARTS: usize = 16;

on_vectors! {
    /// Adds the products of a channel's gradients with the strip, for each tap; the gradients of the strip's columns lie one after another.
    fn add_products<T>(strip: &Strip, from: *const T, g: *const T, sums: *mut T) = add_products_on
}

/// # Safety
/// The strip and the gradients are readable; there is a sum for each tap.
#[inline(always)]
unsafe fn add_products_on<V: PanelVector>(strip: &Strip, from: *const V::Number, g: *const V::Number, sums: *mut V::Number) {
    let mut t = 0;
    while t < strip.taps.len() {
        macro_rules! taps {
            ($N:literal) => {{
                // SAFETY: the caller's.
                unsafe {
                    let mut totals = [V::zero(); $N];
                    for StripRow { column, base, len } in strip.rows.iter().copied() {
                        let from: [*const V::Number; $N] = std::array::from_fn(|i| from.wrapping_offset(base + strip.taps[t + i]));
                        let g = g.wrapping_add(column);
                        let mut j = 0;
                        while j + V::LANES <= len {
                            let v = V::load(g.wrapping_add(j));
                            for i in 0..$N {
                                totals[i] = v.fma(V::load(from[i].wrapping_add(j)), totals[i]);
                            }
                            j += V::LANES;
                        }
                        if j < len {
                            let v = V::load_first(g.wrapping_add(j), len - j);
                            for i in 0..$N {
                                totals[i] = v.fma(V::load_first(from[i].wrapping_add(j), len - j), totals[i]);
                            }
                        }
                    }
                    for i in 0..$N {
                        let to = sums.add(t + i);
                        *to = (*to).plus(totals[i].total());
                    }
                }
                t += $N;
            }};
        }
        match strip.taps.len() - t {
            9.. => taps!(9),
            3.. => taps!(3),
            _ => taps!(1),
        }
    }
}

pub(in super::super) fn plan<T: CoreNumber, S: StoredAs<T>>(call: &WeightPass<'_, T, S>, asked: Asked) -> Result<(), Why> {
    call.is_worth(asked)?;
    asked.gains(call.shape.out_channels <= FEW / 2, "there are many channels of the result")
}

/// As `weight::weight`, with few channels of y in each group.
///
/// # Safety
/// As for `weight::weight`.
pub(in super::super) unsafe fn weight<T: CoreNumber, S: StoredAs<T>>(
    isa: InstructionSet,
    s: &ConvShape,
    g: *const S,
    x: *const S,
    w: *mut S,
) {
    let p = Patches::forward(s);
    let (taps, positions, plane, row) = (p.taps(), p.positions(), p.plane(), p.axes[2].out);
    let (rows, channels) = (s.out_channels, s.in_channels);
    let parts = if s.groups * channels >= PARTS { 1 } else { PARTS.min(s.batch) };
    let images = s.batch.div_ceil(parts);
    let parts = s.batch.div_ceil(images);
    let mut each = positions.min((TASK / row).max(1) * row);
    while each > row && Strip::sized(&p, 0, each, false).size > STRIP {
        each = (each / row).div_ceil(2) * row;
    }
    let numel = s.groups * rows * channels * taps;
    let (_own, sums) = reserve::<T>(parts * numel);
    // SAFETY: there is room.
    unsafe { clear(parts * numel, sums) };
    let sums = SharedPointer::new(sums);
    let (g, x) = (SharedPointer::new(g), SharedPointer::new(x));
    // Of the first image; those of the others lie as far behind as the images do.
    let strips: Vec<(usize, Strip)> =
        (0..positions).step_by(each).map(|first| (first, Strip::new(&p, first, positions.min(first + each), S::SAME))).collect();
    let most = strips.iter().map(|(_, strip)| strip.size).max().unwrap_or(0);
    parallel_for(parts * s.groups * channels, |t| {
        let (part, group, c) = (t / (s.groups * channels), t / channels % s.groups, t % channels);
        let sums = sums.at(part * numel + (group * rows * channels + c) * taps);
        let x = x.get().wrapping_add((group * channels + c) * plane);
        let (_strip, buffer) = reserve::<T>(most);
        let (_copied, copied) = reserve::<T>(if S::SAME { 0 } else { each });
        for n in part * images..s.batch.min((part + 1) * images) {
            let x = x.wrapping_add(n * p.image);
            for (first, strip) in &strips {
                let (first, end) = (*first, positions.min(first + each));
                // SAFETY: each task has sums of its own; the rest is the caller's promise.
                unsafe {
                    // The padding of a strip stays as it is.
                    if n == part * images || strips.len() > 1 {
                        clear(strip.size, buffer);
                    }
                    let from = if strip.size == 0 {
                        x.cast::<T>().wrapping_offset(strip.start)
                    } else {
                        fill::<T, S>(isa, &p, strip, x, buffer);
                        buffer.cast_const()
                    };
                    for r in 0..rows {
                        let g = g.get().wrapping_add(((n * s.groups + group) * rows + r) * positions + first);
                        let g = if S::SAME {
                            g.cast::<T>()
                        } else {
                            widen::<T, S>(isa, end - first, g, copied);
                            copied.cast_const()
                        };
                        add_products::<T>(isa, strip, from, g, sums.wrapping_add(r * channels * taps));
                    }
                }
                interrupt::check();
            }
        }
    });
    for i in 0..numel {
        // SAFETY: all sums have been written.
        unsafe { *w.add(i) = S::narrow((1..parts).fold(*sums.at(i), |sum, k| sum.plus(*sums.at(k * numel + i)))) };
    }
}
