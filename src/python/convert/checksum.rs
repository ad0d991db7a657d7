//! The checksum of files, of bytes that lie in memory already.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

/// The CRC-32 of zip archives of some bytes, like `zlib.crc32`, by vector instructions where there are some.
#[pyfunction]
#[pyo3(signature = (data, value = 0, /))]
fn _crc32(data: PyBuffer<u8>, value: u32) -> PyResult<u32> {
    let Some(place) = data.as_slice_ptr() else {
        return Err(PyBufferError::new_err("_crc32: expected contiguous bytes"));
    };
    // SAFETY: The bytes stay where they are as long as `data` lives. No Python code, which might write to them, runs before the end.
    let bytes = unsafe { place.as_ref() };
    let mut hasher = crc32fast::Hasher::new_with_initial(value);
    hasher.update(bytes);
    Ok(hasher.finalize())
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_crc32, m)?)
}
