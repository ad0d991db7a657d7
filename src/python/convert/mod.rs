//! Values that cross between Python and tensors: numbers, nested sequences, NumPy arrays, text.
//!
//! Not here: arguments of functions (`args`), and which object belongs to which tensor (`tensor::identity`).

pub(crate) mod from_python;
pub(crate) mod numpy_memory;
pub(crate) mod to_python;

use pyo3::prelude::*;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    from_python::register(m)?;
    to_python::register(m)
}
