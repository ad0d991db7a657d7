//! Cache lines: how long they are, and how to ask for one before it is needed.

/// Bytes.
pub(crate) const LINE: usize = 64;

/// Asks for the cache line of `p`, which may lie anywhere.
#[inline(always)]
pub(crate) fn prefetch_line<T>(p: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: nothing is accessed.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(p.cast())
    };
    let _ = p;
}
