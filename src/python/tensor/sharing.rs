//! Methods about a tensor's memory: `detach`, `data`, `set_`, and frozen memory.
//!
//! Views with a history are in `functions::shape`.

use crate::array::Array;
use crate::autograd::{ViewOp, check_inplace, level, mode, view};
use crate::error::Error;
use crate::layout::MemoryFormat;
use crate::ops;
use crate::ops::memory_format;
use crate::python::args::{as_tensor, tensor, type_name};
use crate::python::errors::{runtime, type_error};
use crate::python::functions::shape::sizes;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::tensor::memory_format::format_of;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

#[pymethods]
impl PyTensor {
    /// A tensor without history that shares this tensor's memory and version counter.
    fn detach(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        wrap(slf.py(), Self::of(slf).detach())
    }

    /// Removes this tensor's history.
    ///
    /// Raises:
    ///     RuntimeError: The tensor is a view.
    fn detach_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        Self::of(slf).detach_in_place()?;
        Ok(slf.clone())
    }

    /// A tensor without history that shares this tensor's memory but has a version counter of its own.
    #[getter]
    fn get_data(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let t = Self::of(slf);
        if t.wrapped().is_some_and(|l| l.level.batch().is_some()) {
            return Err(runtime("accessing `data` under vmap transform is not allowed; use detach()"));
        }
        wrap(slf.py(), t.data())
    }

    #[deleter]
    fn delete_data(slf: &Bound<'_, Self>) -> PyResult<()> {
        let _ = slf;
        Err(runtime("Deleting tensor data is not allowed. Delete tensor instead!"))
    }

    #[setter]
    fn set_data(slf: &Bound<'_, Self>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        if level::depth() > 0 {
            let kind = if Self::of(slf).is_batched() { "under vmap transform" } else { "inside function transform" };
            return Err(runtime(format!(
                "mutating directly with `.data` {kind} is not allowed; use an in-place operation such as copy_()"
            )));
        }
        let Some(new) = as_tensor(data) else {
            return Err(type_error(format!("Variable data has to be a tensor, but got {}", type_name(data))));
        };
        Ok(Self::of(slf).set_data(new)?)
    }

    /// Makes this tensor use the memory of `source`, with its shape and strides. Without `source` the tensor becomes empty.
    ///
    /// Raises:
    ///     RuntimeError: The dtypes or devices differ, one of the tensors has a history while grad mode is on, or this tensor is frozen.
    #[pyo3(signature = (source=None))]
    fn set_<'py>(slf: &Bound<'py, Self>, source: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, Self>> {
        let t = Self::of(slf);
        let source = match source {
            Some(s) => tensor(s, "set_(): argument 'source'")?.clone(),
            None => crate::autograd::Tensor::new(Array::full_on(t.device(), &[0], crate::layout::Scalar::Int(0), t.dtype())?),
        };
        // As in PyTorch, a tensor reads its new memory as it has read the old one.
        let bits = source.math_bits().toggled(t.math_bits());
        let source = if bits.any() { view(&source.detach(), ViewOp::Bits(bits))?.detach() } else { source };
        if source.dtype() != t.dtype() {
            let text = format!("Could not set tensor of type {} to a tensor of type {}", source.dtype(), t.dtype());
            return Err(Error::runtime(text).into());
        }
        if source.device() != t.device() {
            let text = format!(
                "Attempted to set the storage of a tensor on device \"{}\" to a storage on different device \"{}\"",
                t.device(),
                source.device()
            );
            return Err(Error::runtime(text).into());
        }
        let records = mode::is_grad_enabled() && t.requires_grad();
        check_inplace(t, records, "set_")?;
        if records || mode::is_grad_enabled() && source.requires_grad() {
            return Err(runtime("set_: a tensor with history cannot look at other memory while grad mode is on; use detach() or no_grad"));
        }
        t.set_data(&source)?;
        t.increment_version("set_");
        Ok(slf.clone())
    }

    /// Gives this tensor other sizes in place, in row-major order or that of a memory format. Elements that were not there before are not initialised.
    ///
    /// The memory grows if it is too small.
    ///
    /// Args:
    ///     *size: The sizes, one by one or as a sequence.
    ///     **kwargs: `size`, in place of `*size`; `memory_format`, whose strides the tensor gets.
    ///
    /// Raises:
    ///     RuntimeError: The tensor requires grad, its memory would have to grow and other tensors use it, too, or the format is for
    ///         tensors of another rank.
    #[pyo3(signature = (*size, **kwargs))]
    fn resize_<'py>(slf: &Bound<'py, Self>, size: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, Self>> {
        let kwargs = kwargs.map(PyDictMethods::copy).transpose()?;
        let mut format = None;
        if let Some(kw) = &kwargs
            && let Some(given) = kw.get_item("memory_format")?
        {
            format = format_of(Some(&given), "resize_")?;
            kw.del_item("memory_format")?;
        }
        let sizes = sizes("resize_", size, kwargs.as_ref(), "size")?;
        if let Some(format) = format {
            memory_format::check_resize(format, sizes.len())?;
        }
        Self::of(slf).resize(&sizes)?;
        format.map_or(Ok(()), |format| memory_format::restride(Self::of(slf), format))?;
        Ok(slf.clone())
    }

    /// As `resize_`, with the sizes of `the_template`.
    ///
    /// Raises:
    ///     RuntimeError: As for `resize_`.
    #[pyo3(signature = (the_template, *, memory_format=None))]
    fn resize_as_<'py>(
        slf: &Bound<'py, Self>,
        the_template: &Bound<'py, PyAny>,
        memory_format: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let like = tensor(the_template, "resize_as_(): argument 'the_template' (position 1)")?;
        let format = match format_of(memory_format, "resize_as_")? {
            Some(MemoryFormat::Preserve) => Some(ops::memory_format::suggested(like)),
            other => other,
        };
        if let Some(format) = format {
            ops::memory_format::check_resize(format, like.rank())?;
        }
        Self::of(slf).resize(&like.shape().iter().map(|n| *n as i64).collect::<Vec<_>>())?;
        format.map_or(Ok(()), |format| ops::memory_format::restride(Self::of(slf), format))?;
        Ok(slf.clone())
    }

    /// Makes every later in-place write to this tensor's memory a RuntimeError at the line that writes.
    ///
    /// This includes writes through views, detached tensors, `out=`, optimizers and all other tensors that share the memory. NumPy arrays made
    /// later are read-only.
    fn freeze_<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        Self::of(slf).freeze();
        slf.clone()
    }

    /// Allows writes to this tensor's memory again.
    fn unfreeze_<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        Self::of(slf).unfreeze();
        slf.clone()
    }

    /// Whether this tensor's memory is frozen.
    fn is_frozen(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).frozen().is_some()
    }
}
