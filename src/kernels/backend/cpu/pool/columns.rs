//! Windows as columns: for each position in a window, the elements of all windows there (im2col), and the adjoint.

use super::each_plane;
use super::loops::Pooled;
use crate::call::{Pool, WindowAxis};
use crate::host::interrupt::Ticks;
use crate::host::threads::SharedPointer;
use std::ops::Range;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Which windows have position `k` inside the input.
fn windows_with(a: &WindowAxis, k: usize) -> Range<usize> {
    let at = k * a.dilation;
    let low = a.pad.saturating_sub(at).div_ceil(a.stride).min(a.output);
    let high = if a.input + a.pad > at { (a.input + a.pad - at - 1) / a.stride + 1 } else { 0 };
    low..high.clamp(low, a.output)
}

/// Calls `f` for each position in a window and each row of windows that has it inside: the row's windows that have it, where these stand in
/// a plane's columns (the place of window 0), and where the first of their elements lies in the plane.
#[inline(always)]
fn each_row(p: &Pool, mut f: impl FnMut(Range<usize>, usize, usize)) {
    let [d, h, w] = p.axes;
    let ticks = Ticks::default();
    let mut column = 0;
    for kd in 0..d.kernel {
        for kh in 0..h.kernel {
            for kw in 0..w.kernel {
                let windows = windows_with(&w, kw);
                if !windows.is_empty() {
                    let start = windows.start * w.stride + kw * w.dilation - w.pad;
                    for od in windows_with(&d, kd) {
                        let depth = od * d.stride + kd * d.dilation - d.pad;
                        for oh in windows_with(&h, kh) {
                            ticks.tick();
                            let height = oh * h.stride + kh * h.dilation - h.pad;
                            let place = ((column * d.output + od) * h.output + oh) * w.output;
                            f(windows.clone(), place, (depth * h.input + height) * w.input + start);
                        }
                    }
                }
                column += 1;
            }
        }
    }
}

/// The elements of windows, as columns; `zero` in the padding.
///
/// # Safety
/// Both have as many elements as `p` says; they do not overlap.
pub unsafe fn unfold<T: Copy + Send + Sync>(p: &Pool, x: *const T, y: *mut T, zero: T) {
    let (plane, columns, stride) = (p.plane(), p.windows() * p.kernel(), p.axes[2].stride);
    let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
    let whole = p.axes.iter().all(|a| (0..a.kernel).all(|k| windows_with(a, k) == (0..a.output)));
    each_plane(
        p,
        || (),
        |(), at| {
            // SAFETY: the caller's; each plane's columns are written by one task.
            let (x, y) = unsafe { (from_raw_parts(x.get().add(at * plane), plane), from_raw_parts_mut(y.at(at * columns), columns)) };
            if !whole {
                y.fill(zero);
            }
            each_row(p, |windows, place, from| {
                let to = &mut y[place + windows.start..place + windows.end];
                if stride == 1 {
                    to.copy_from_slice(&x[from..from + to.len()]);
                } else {
                    to.iter_mut().zip(x[from..].iter().step_by(stride)).for_each(|(y, x)| *y = *x);
                }
            });
        },
    );
}

/// The adjoint of `unfold`: each element is the sum of its places in columns, in their order.
///
/// # Safety
/// As for `unfold`.
pub unsafe fn fold<T: Pooled>(p: &Pool, y: *const T, x: *mut T) {
    let (plane, columns, stride) = (p.plane(), p.windows() * p.kernel(), p.axes[2].stride);
    let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
    each_plane(
        p,
        || (),
        |(), at| {
            // SAFETY: the caller's; each plane is written by one task.
            let (x, y) = unsafe { (from_raw_parts_mut(x.at(at * plane), plane), from_raw_parts(y.get().add(at * columns), columns)) };
            x.fill(T::ZERO);
            each_row(p, |windows, place, to| {
                let from = &y[place + windows.start..place + windows.end];
                x[to..].iter_mut().step_by(stride).zip(from).for_each(|(x, y)| *x = x.plus(*y));
            });
        },
    );
}
