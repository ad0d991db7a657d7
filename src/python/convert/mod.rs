//! Values that cross between Python and tensors: numbers, nested sequences, NumPy arrays, text.
//!
//! Arguments of functions are read in `args`; which objects are which tensors' is in `tensor::identity`.

pub(crate) mod from_python;
pub(crate) mod numpy_memory;
pub(crate) mod to_python;

use pyo3::prelude::*;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    from_python::register(m)?;
    to_python::register(m)
}
