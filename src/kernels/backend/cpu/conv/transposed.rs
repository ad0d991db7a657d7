//! Weights in the order of another pass: for each row of its results the channels, and for each of them the taps of a phase. Where many columns
//! meet the weights, a copy in this order pays.

use super::gather::WeightPlaces;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, widths};
use crate::backend::cpu::matmul::transposed::transpose;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::InstructionSet;

/// Channels and rows of a block whose weights stay in the cache while both sides are walked in stretches.
const TOGETHER: usize = 16;

/// Copies the weights of a phase: groups x rows x channels x taps.
///
/// # Safety
/// The machine has the instruction set; the weights are readable, and there is room.
pub(super) unsafe fn transpose_weight<T: CoreNumber>(
    isa: InstructionSet,
    from: *const T,
    places: &WeightPlaces,
    [groups, rows, channels]: [usize; 3],
    to: *mut T,
) {
    let taps = places.taps.len();
    let (from, to) = (SharedPointer::new(from), SharedPointer::new(to));
    let chunks = rows.div_ceil(TOGETHER);
    let (_, lanes) = widths::<T>(isa);
    parallel_for(groups * chunks, |t| {
        let (group, first) = (t / chunks, t % chunks * TOGETHER);
        let end = rows.min(first + TOGETHER);
        let at = |r: usize, c: usize| to.at(((group * rows + r) * channels + c) * taps);
        for channel in (0..channels).step_by(TOGETHER) {
            let last = channels.min(channel + TOGETHER);
            let from = |r: usize, c: usize| from.get().wrapping_add(places.at(group, r, c));
            if places.row == 1 && taps == 1 && end - first == TOGETHER && last - channel == TOGETHER && TOGETHER.is_multiple_of(lanes) {
                // SAFETY: the block has all rows and channels.
                unsafe {
                    let (from, to) = (from(first, channel), at(first, channel));
                    transpose::<T>(isa, TOGETHER, TOGETHER, from, places.channel as isize, to, channels);
                }
                continue;
            }
            for r in first..end {
                // SAFETY: the caller's, here and below; each task has rows of its own.
                let copy = |c: usize, places: &[usize]| unsafe {
                    let (from, to) = (from(r, c), at(r, c));
                    for (k, place) in places.iter().enumerate() {
                        *to.add(k) = *from.add(*place);
                    }
                };
                // Copies of fixed size have no loop.
                macro_rules! fixed {
                    ($N:literal) => {{
                        let places: [usize; $N] = std::array::from_fn(|k| places.taps[k]);
                        (channel..last).for_each(|c| copy(c, &places));
                    }};
                }
                match taps {
                    1 => fixed!(1),
                    2 => fixed!(2),
                    4 => fixed!(4),
                    9 if places.taps.iter().enumerate().all(|(k, place)| k == *place) => {
                        // SAFETY: as above.
                        (channel..last).for_each(|c| unsafe { *at(r, c).cast::<[T; 9]>() = *from(r, c).cast::<[T; 9]>() });
                    }
                    _ => (channel..last).for_each(|c| copy(c, &places.taps)),
                }
            }
        }
    });
}
