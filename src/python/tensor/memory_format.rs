//! Memory formats in Python: the class, arguments, and the methods that take one.

use crate::layout::MemoryFormat;
use crate::ops::memory_format;
use crate::python::args::type_name;
use crate::python::errors::type_error;
use crate::python::functions::shape::give;
use crate::python::tensor::PyTensor;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::prelude::*;

/// The order of an image's dimensions in memory: `contiguous_format` (row-major), `channels_last`, `channels_last_3d`, or `preserve_format`.
#[pyclass(name = "memory_format", module = "rgrad", frozen)]
pub(crate) struct PyMemoryFormat(MemoryFormat);

#[pymethods]
impl PyMemoryFormat {
    fn __repr__(&self) -> String {
        format!("rgrad.{}", self.0.name())
    }

    fn __reduce__(&self) -> &'static str {
        self.0.name()
    }
}

/// The argument `memory_format` of a function; None where it is not given.
pub(crate) fn format_of(obj: Option<&PyObj<'_>>, function: &str) -> PyResult<Option<MemoryFormat>> {
    let Some(obj) = obj.filter(|o| !o.is_none()) else { return Ok(None) };
    match obj.cast::<PyMemoryFormat>() {
        Ok(f) => Ok(Some(f.get().0)),
        Err(_) => Err(type_error(format!("{function}(): argument 'memory_format' must be rgrad.memory_format, not {}", type_name(obj)))),
    }
}

#[pymethods]
impl PyTensor {
    /// Whether the elements lie in the order of `memory_format` (row-major by default) without gaps.
    #[pyo3(signature = (memory_format=None))]
    fn is_contiguous(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyResult<bool> {
        let format = format_of(memory_format, "is_contiguous")?.unwrap_or(MemoryFormat::Contiguous);
        Ok(memory_format::is_contiguous(Self::of(slf), format))
    }

    /// This tensor if its elements lie in the order of `memory_format` (row-major by default), else a copy whose elements do.
    ///
    /// Raises:
    ///     RuntimeError: The format is for tensors of another rank.
    #[pyo3(signature = (*, memory_format=None))]
    fn contiguous(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        let format = format_of(memory_format, "contiguous")?.unwrap_or(MemoryFormat::Contiguous);
        give(slf, memory_format::contiguous(Self::of(slf), format)?)
    }
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyMemoryFormat>()?;
    for format in MemoryFormat::ALL {
        m.add(format.name(), Py::new(m.py(), PyMemoryFormat(format))?)?;
    }
    Ok(())
}
