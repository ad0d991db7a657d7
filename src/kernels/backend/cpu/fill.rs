//! One value everywhere.

use crate::backend::contract::View;
use crate::backend::cpu::copy;
use crate::layout::Scalar;

// SAFETY, of every function here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

pub(super) unsafe fn compute(value: Scalar, out: View<'_>) {
    // SAFETY: see above.
    unsafe { copy::fill(out.dtype, out.shape, out.ptr(), out.strides, value) }
}
