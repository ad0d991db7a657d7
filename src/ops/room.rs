//! Room for what operations make outside of tensors' memory, where the caller controls how much: views, lists, positions.

use crate::error::{Error, Result};
use crate::host::memory::alloc;

/// Requests below this size are not checked.
const SMALL: usize = 1 << 20;
/// What a view takes: the tensor, its place in the graph, and its Python object.
const VIEW: usize = 768;

/// Refuses to make `count` things of `bytes` bytes each, if there is not room for all of them.
pub(crate) fn check(name: &str, count: usize, bytes: usize) -> Result<()> {
    let all = count.saturating_mul(bytes);
    if all < SMALL || (alloc::fits(all) && is_free(all)) {
        return Ok(());
    }
    Err(Error::memory(format!("{name}: cannot allocate {all} bytes for {count} results: there is not so much memory")))
}

/// As `check`, for `count` views.
pub(crate) fn check_views(name: &str, count: usize) -> Result<()> {
    check(name, count, VIEW)
}

/// Whether the system gives so much memory now. It is given back at once, untouched.
fn is_free(bytes: usize) -> bool {
    let mut room: Vec<u8> = Vec::new();
    let free = room.try_reserve_exact(bytes).is_ok();
    std::hint::black_box(&room);
    free
}
