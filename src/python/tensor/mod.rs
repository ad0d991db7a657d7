//! The Python class `Tensor`: construction, operators, and writes of whole tensors.
//!
//! Its object and lifetime are in `identity`, its properties in `attributes`, its data in `sharing`. Not here: methods that are operations
//! (`functions`, with their families), and those about gradients (`autograd`).

mod attributes;
mod compare;
pub(crate) mod complex;
pub(crate) mod fast_operators;
pub(crate) mod identity;
pub(crate) mod memory_format;
mod sharing;

use crate::autograd::{Tensor, primitives};
use crate::ops::pointwise as pw;
use crate::python::args::{operand, scalar, tensor};
use crate::python::errors::{runtime, type_error};
use crate::python::host::wait_for_operations;
use crate::python::types::{PyObj, PyObjResult};
use crate::rows::RowId;
use identity::wrap;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};

/// A multi-dimensional array with a history through which gradients flow back.
#[pyclass(name = "Tensor", module = "rgrad", subclass, dict, weakref, frozen)]
pub struct PyTensor {
    pub(crate) t: std::mem::ManuallyDrop<Tensor>,
    /// The Python object of this tensor, and which of the two owns the other (see `identity`).
    pub(crate) link: identity::Link,
}

impl PyTensor {
    /// The tensor in a `Tensor` object.
    #[inline]
    pub(crate) fn of<'a>(obj: &'a Bound<'_, PyTensor>) -> &'a Tensor {
        &obj.get().t
    }
}

/// Exchanges the tensors of two objects, which keep their classes and attributes. Waits for operations of other threads.
#[pyfunction]
fn _swap_tensor_impl(a: &Bound<'_, PyTensor>, b: &Bound<'_, PyTensor>) -> PyResult<()> {
    wait_for_operations(a.py(), "swap_tensors")?;
    identity::swap(a, b);
    Ok(())
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyTensor>()?;
    m.add_function(wrap_pyfunction!(_swap_tensor_impl, m)?)?;
    identity::register(m)?;
    attributes::register(m)?;
    complex::register(m)
}

fn not_implemented(py: Python<'_>) -> PyObjResult {
    Ok(py.NotImplemented())
}

/// A binary operator; `swap` for the reflected form.
#[inline]
fn operator(py: Python<'_>, row: RowId, slf: &Bound<'_, PyTensor>, other: &PyObj<'_>, swap: bool) -> PyObjResult {
    let Some(other) = operand(other)? else { return not_implemented(py) };
    let this = pw::Arg::Tensor(PyTensor::of(slf));
    let args = if swap { [other, this] } else { [this, other] };
    wrap(py, pw::call(row, &args, &[])?)
}

/// An augmented assignment (`x += y`).
#[inline]
fn augmented(row: RowId, label: &'static str, slf: &Bound<'_, PyTensor>, other: &PyObj<'_>) -> PyResult<()> {
    match operand(other)? {
        Some(other) => Ok(pw::call_inplace(row, label, PyTensor::of(slf), &[other], &[])?),
        None => {
            Err(type_error(format!("{label}: argument 'other' must be Tensor or Number, not {}", crate::python::args::type_name(other))))
        }
    }
}

/// A comparison. Python decides about objects that are neither tensors nor numbers, nor arrays of them.
fn compare(py: Python<'_>, row: RowId, slf: &Bound<'_, PyTensor>, other: &PyObj<'_>) -> PyObjResult {
    if let Some(other) = operand(other)? {
        return wrap(py, pw::call(row, &[pw::Arg::Tensor(PyTensor::of(slf)), other], &[])?);
    }
    Ok(compare::elementwise(row, slf, other)?.unwrap_or_else(|| py.NotImplemented()))
}

#[pymethods]
impl PyTensor {
    /// `Tensor(tensor)` shares the tensor's memory, which is how subclasses construct themselves; `Tensor(sizes...)` is uninitialized float32.
    #[new]
    #[pyo3(signature = (*args, **kwargs))]
    fn new(py: Python<'_>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let _ = kwargs;
        if args.len() == 1
            && let Some(t) = crate::python::args::as_tensor(&args.get_item(0)?)
        {
            return Ok(identity::unlinked(t.detach()));
        }
        let data = py.import("rgrad._tensor.construct")?.getattr("legacy")?.call1(args)?;
        Ok(identity::unlinked(tensor(&data, "data")?.clone()))
    }

    #[classmethod]
    #[pyo3(signature = (**_kwargs))]
    fn __init_subclass__(cls: &Bound<'_, PyType>, _kwargs: Option<&Bound<'_, PyDict>>) {
        identity::preserve_subclass(cls);
    }

    /// A tensor of this one's dtype and device, of sizes or of data: `new_empty` and `new_tensor` in one.
    ///
    /// Args:
    ///     *args: Sizes, a tensor of the same dtype (an alias of it), a storage, or a sequence of numbers.
    ///     **kwargs: `size` or `data`, in place of `*args`; `device`, which must be of this tensor's kind.
    ///
    /// Raises:
    ///     TypeError: An argument is none of these, or a tensor of another dtype.
    #[pyo3(name = "new", signature = (*args, **kwargs))]
    fn make_alike(slf: &Bound<'_, Self>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        let new = slf.py().import("rgrad._tensor.construct")?.getattr("new")?;
        let all = std::iter::once(slf.clone().into_any()).chain(args.iter()).collect::<Vec<_>>();
        Ok(new.call(PyTuple::new(slf.py(), all)?, kwargs)?.unbind())
    }

    /// A tensor of class `cls` that shares `data`'s memory, without history. This is how Parameter is constructed.
    #[staticmethod]
    #[pyo3(signature = (cls, data, require_grad=false))]
    fn _make_subclass(cls: &Bound<'_, PyType>, data: &Bound<'_, PyTensor>, require_grad: bool) -> PyObjResult {
        if !cls.is_subclass_of::<PyTensor>()? {
            return Err(type_error(format!("_make_subclass(): cls must be a subclass of Tensor, got {cls}")));
        }
        let t = PyTensor::of(data).detach();
        t.set_requires_grad(require_grad)?;
        identity::make_as(cls, t)
    }

    /// The number of holders of the tensor: variables, graphs, other tensors.
    fn _use_count(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).holders()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector may run while the object is being made, since its dict is allocated after it is tracked. All fields are zero then.
        if !self.link.is_made() {
            return Ok(());
        }
        identity::traverse(self, &visit)
    }

    fn __clear__(&self) {
        if self.link.is_made() {
            identity::clear(self);
        }
    }

    // ---- operators ---------------------------------------------------------------------------------------------------

    fn __add__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::Add, slf, other, false)
    }
    fn __radd__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        // PyTorch also adds in this order, which decides the name of the saved operand.
        operator(slf.py(), RowId::Add, slf, other, false)
    }
    fn __sub__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::Sub, slf, other, false)
    }
    fn __rsub__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::Rsub, slf, other, false)
    }
    fn __mul__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::Mul, slf, other, false)
    }
    fn __rmul__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::Mul, slf, other, false)
    }
    fn __truediv__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::Div, slf, other, false)
    }
    fn __rtruediv__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        let py = slf.py();
        let Some(s) = scalar(other)? else { return not_implemented(py) };
        let r = pw::reciprocal(PyTensor::of(slf))?;
        wrap(py, pw::mul(&r, s)?)
    }
    fn __floordiv__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::FloorDivide, slf, other, false)
    }
    fn __rfloordiv__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::FloorDivide, slf, other, true)
    }
    fn __mod__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::Remainder, slf, other, false)
    }
    fn __rmod__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::Remainder, slf, other, true)
    }
    fn __pow__(slf: &Bound<'_, Self>, other: &PyObj<'_>, _modulo: &PyObj<'_>) -> PyObjResult {
        let py = slf.py();
        match operand(other)? {
            Some(pw::Arg::Scalar(s)) => wrap(py, pw::pow_scalar(PyTensor::of(slf), s)?),
            Some(other) => wrap(py, pw::call(RowId::Pow, &[pw::Arg::Tensor(PyTensor::of(slf)), other], &[])?),
            None => not_implemented(py),
        }
    }
    fn __rpow__(slf: &Bound<'_, Self>, other: &PyObj<'_>, _modulo: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::Pow, slf, other, true)
    }
    fn __and__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::BitwiseAnd, slf, other, false)
    }
    fn __rand__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::BitwiseAnd, slf, other, false)
    }
    fn __or__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::BitwiseOr, slf, other, false)
    }
    fn __ror__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::BitwiseOr, slf, other, false)
    }
    fn __xor__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::BitwiseXor, slf, other, false)
    }
    fn __rxor__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::BitwiseXor, slf, other, false)
    }
    fn __lshift__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::LeftShift, slf, other, false)
    }
    fn __rshift__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::RightShift, slf, other, false)
    }
    fn __rlshift__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::LeftShift, slf, other, true)
    }
    fn __rrshift__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        operator(slf.py(), RowId::RightShift, slf, other, true)
    }
    fn __ilshift__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyResult<()> {
        augmented(RowId::LeftShift, "__ilshift__", slf, other)
    }
    fn __irshift__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyResult<()> {
        augmented(RowId::RightShift, "__irshift__", slf, other)
    }
    fn __neg__(slf: &Bound<'_, Self>) -> PyObjResult {
        wrap(slf.py(), pw::neg(PyTensor::of(slf))?)
    }
    fn __pos__(slf: &Bound<'_, Self>) -> Py<Self> {
        slf.clone().unbind()
    }
    fn __abs__(slf: &Bound<'_, Self>) -> PyObjResult {
        wrap(slf.py(), pw::abs(PyTensor::of(slf))?)
    }
    fn __invert__(slf: &Bound<'_, Self>) -> PyObjResult {
        let dtype = PyTensor::of(slf).dtype();
        if dtype.is_differentiable() {
            return Err(type_error(format!("~ (operator.invert) is only implemented on integer and Boolean-type tensors, got {dtype}")));
        }
        wrap(slf.py(), pw::call(RowId::BitwiseNot, &[PyTensor::of(slf).into()], &[])?)
    }
    fn __lt__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        compare(slf.py(), RowId::Lt, slf, other)
    }
    fn __le__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        compare(slf.py(), RowId::Le, slf, other)
    }
    fn __gt__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        compare(slf.py(), RowId::Gt, slf, other)
    }
    fn __ge__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        compare(slf.py(), RowId::Ge, slf, other)
    }
    fn __eq__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        compare(slf.py(), RowId::Eq, slf, other)
    }
    fn __ne__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        compare(slf.py(), RowId::Ne, slf, other)
    }
    /// The hash is the object's address: equal elements do not make tensors equal keys.
    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        (slf.as_ptr() as isize) >> 4
    }
    fn __iadd__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyResult<()> {
        augmented(RowId::Add, "add_", slf, other)
    }
    fn __isub__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyResult<()> {
        augmented(RowId::Sub, "sub_", slf, other)
    }
    fn __imul__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyResult<()> {
        augmented(RowId::Mul, "mul_", slf, other)
    }
    fn __itruediv__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyResult<()> {
        augmented(RowId::Div, "div_", slf, other)
    }
    fn __ifloordiv__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyResult<()> {
        augmented(RowId::FloorDivide, "floor_divide_", slf, other)
    }
    fn __imod__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyResult<()> {
        augmented(RowId::Remainder, "remainder_", slf, other)
    }
    fn __ipow__(slf: &Bound<'_, Self>, other: &PyObj<'_>, _modulo: &PyObj<'_>) -> PyResult<()> {
        crate::python::functions::pointwise::pow_inplace(PyTensor::of(slf), other)
    }
    fn __iand__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyResult<()> {
        augmented(RowId::BitwiseAnd, "bitwise_and_", slf, other)
    }
    fn __ior__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyResult<()> {
        augmented(RowId::BitwiseOr, "bitwise_or_", slf, other)
    }
    fn __ixor__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyResult<()> {
        augmented(RowId::BitwiseXor, "bitwise_xor_", slf, other)
    }

    // ---- copies ------------------------------------------------------------------------------------------------------

    /// Overwrites this tensor with `other`, which is broadcast to this shape and converted to this dtype.
    #[pyo3(signature = (other, non_blocking=false))]
    fn copy_<'py>(slf: &Bound<'py, Self>, other: &PyObj<'py>, non_blocking: bool) -> PyResult<Bound<'py, Self>> {
        let _ = non_blocking;
        let (to, from) = (PyTensor::of(slf), tensor(other, "copy_(): argument 'other' (position 1)")?);
        complex::warn_of_lost_parts(slf.py(), from.dtype(), to.dtype())?;
        primitives::copy_(to, from)?;
        Ok(slf.clone())
    }

    /// Overwrites every element with `value`, a number or a 0-d tensor.
    ///
    /// Raises:
    ///     RuntimeError: `value` is a tensor with dimensions.
    ///     TypeError: `value` is neither a tensor nor a number.
    fn fill_<'py>(slf: &Bound<'py, Self>, value: &PyObj<'py>) -> PyResult<Bound<'py, Self>> {
        match operand(value)? {
            Some(pw::Arg::Scalar(s)) => primitives::fill_(PyTensor::of(slf), s)?,
            Some(pw::Arg::Tensor(t)) if t.rank() == 0 => {
                complex::warn_of_lost_parts(slf.py(), t.dtype(), PyTensor::of(slf).dtype())?;
                primitives::fill_tensor_(PyTensor::of(slf), t)?;
            }
            Some(pw::Arg::Tensor(t)) => {
                return Err(runtime(format!("fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.", t.rank())));
            }
            None => return Err(type_error("fill_(): argument 'value' must be Tensor or Number")),
        }
        Ok(slf.clone())
    }

    /// Overwrites every element with 0.
    fn zero_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        primitives::zero_(PyTensor::of(slf))?;
        Ok(slf.clone())
    }
}
