//! Neighbours in several vectors, of which the last may be shorter.

use crate::backend::cpu::matmul::panel_vector::PanelVector;

/// C vectors, of which the last has its first `last` lanes, and zeros behind them.
///
/// # Safety
/// The machine has the instruction set; they are readable.
#[inline(always)]
pub(super) unsafe fn load_vectors<V: PanelVector, const C: usize>(from: *const V::Number, last: usize) -> [V; C] {
    // SAFETY: the caller's.
    unsafe {
        let mut made = [V::zero(); C];
        for (c, v) in made.iter_mut().enumerate() {
            let from = from.wrapping_add(c * V::LANES);
            *v = if c + 1 < C { V::load(from) } else { V::load_first(from, last) };
        }
        made
    }
}

/// Stores what `load_vectors` loads.
///
/// # Safety
/// The machine has the instruction set; they are writable.
#[inline(always)]
pub(super) unsafe fn store_vectors<V: PanelVector, const C: usize>(vectors: [V; C], to: *mut V::Number, last: usize) {
    for (c, v) in vectors.into_iter().enumerate() {
        let to = to.wrapping_add(c * V::LANES);
        // SAFETY: the caller's.
        unsafe { if c + 1 < C { v.store(to) } else { v.store_first(to, last) } };
    }
}
