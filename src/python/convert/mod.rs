//! Values that cross between Python and tensors: numbers, nested sequences, NumPy arrays, text, bytes of files.
//!
//! Not here: arguments of functions (`args`), and which object belongs to which tensor (`tensor::identity`).

mod checksum;
mod dlpack;
pub(crate) mod from_python;
pub(crate) mod numpy_memory;
pub(crate) mod to_python;

use pyo3::prelude::*;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    checksum::register(m)?;
    dlpack::register(m)?;
    from_python::register(m)?;
    to_python::register(m)
}
