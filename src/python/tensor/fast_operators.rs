//! Fast functions in the type's slots of arithmetic and comparison, for plain tensors and Python numbers.
//!
//! PyO3's slot functions have a guard and a dispatch to the reflected operator, which these operands do not need. Calls with other operands go
//! on to `overrides::operators`. The operators themselves, as methods, are in `tensor`.

use crate::autograd::Tensor;
use crate::error::{Result, within};
use crate::layout::Scalar;
use crate::ops::pointwise::{self as pw, Arg};
use crate::python::errors::guarded;
use crate::python::overrides::{class_is_plain, is_plain_tensor, operators};
use crate::python::raw_methods::given_back;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::{self, wrap};
use crate::rows::RowId;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::ffi::c_int;

const ROWS: [RowId; 4] = [RowId::Add, RowId::Sub, RowId::Mul, RowId::Div];

/// The tensor in an object that has no `__torch_function__` of its own while no mode is active.
///
/// # Safety
/// `obj` is live as long as the result is used, and the GIL is held.
#[inline(always)]
unsafe fn plain<'a>(obj: *mut ffi::PyObject) -> Option<&'a Tensor> {
    // SAFETY: by the caller's promise.
    unsafe { if is_plain_tensor(obj) { identity::tensor_in(obj) } else { None } }
}

/// The value of a `float`, a `bool`, or an `int` that fits into 64 bits; None for other objects, including those of subclasses.
///
/// # Safety
/// A live object, under the GIL.
#[inline]
unsafe fn number(obj: *mut ffi::PyObject) -> Option<Scalar> {
    // SAFETY: by the caller's promise. Reading an `int` sets no exception when overflow is reported separately.
    unsafe {
        if ffi::PyFloat_CheckExact(obj) != 0 {
            return Some(Scalar::Float(ffi::PyFloat_AS_DOUBLE(obj)));
        }
        if ffi::PyLong_CheckExact(obj) == 0 {
            return (ffi::PyBool_Check(obj) != 0).then(|| Scalar::Bool(obj == ffi::Py_True()));
        }
        let mut overflow = 0;
        let value = ffi::PyLong_AsLongLongAndOverflow(obj, &raw mut overflow);
        (overflow == 0).then_some(Scalar::Int(value))
    }
}

/// The result of an operator as a new reference, or null with an exception set.
#[inline(always)]
unsafe fn given(row: RowId, run: impl Fn() -> Result<Tensor>) -> *mut ffi::PyObject {
    // SAFETY: an operator is called with the GIL held.
    unsafe { handed(|py| within(|| row.info().name.into(), || wrap(py, run()?))) }
}

/// An object as a new reference, or null with an exception set.
///
/// # Safety
/// The GIL is held.
#[inline(always)]
unsafe fn handed(run: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) -> *mut ffi::PyObject {
    // SAFETY: by the caller's promise.
    let py = unsafe { Python::assume_attached() };
    given_back(py, guarded(|| run(py)))
}

/// # Safety
/// As for every `nb_` slot: two live objects, with the GIL held.
unsafe extern "C" fn binary<const AT: usize>(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the objects live as long as this call.
    unsafe {
        match (plain(a), plain(b)) {
            (Some(x), Some(y)) => given(ROWS[AT], || pw::call(ROWS[AT], &[Arg::Tensor(x), Arg::Tensor(y)], &[])),
            (Some(x), None) => match number(b) {
                Some(s) => with_number(AT, x, s),
                None => operators::binary::<AT>(a, b),
            },
            (None, Some(y)) => match number(a) {
                Some(s) => from_number(AT, s, y),
                None => operators::binary::<AT>(a, b),
            },
            (None, None) => operators::binary::<AT>(a, b),
        }
    }
}

/// A tensor and a number.
///
/// # Safety
/// The GIL is held.
unsafe fn with_number(at: usize, x: &Tensor, s: Scalar) -> *mut ffi::PyObject {
    // SAFETY: by the caller's promise.
    unsafe { given(ROWS[at], || pw::call(ROWS[at], &[Arg::Tensor(x), Arg::Scalar(s)], &[])) }
}

/// A number and a tensor, as in PyTorch's `__radd__` and the other reflected operators.
///
/// # Safety
/// The GIL is held.
unsafe fn from_number(at: usize, s: Scalar, x: &Tensor) -> *mut ffi::PyObject {
    // SAFETY: by the caller's promise.
    unsafe {
        match ROWS[at] {
            RowId::Sub => given(RowId::Rsub, || pw::call(RowId::Rsub, &[Arg::Tensor(x), Arg::Scalar(s)], &[])),
            RowId::Div => given(RowId::Div, || pw::mul(&pw::reciprocal(x)?, s)),
            _ => with_number(at, x, s),
        }
    }
}

/// An operand that is a plain tensor or a number.
///
/// # Safety
/// `obj` is live as long as the result is used, and the GIL is held.
#[inline(always)]
unsafe fn plain_operand<'a>(obj: *mut ffi::PyObject) -> Option<Arg<'a>> {
    // SAFETY: by the caller's promise.
    unsafe { plain(obj).map(Arg::Tensor).or_else(|| number(obj).map(Arg::Scalar)) }
}

/// The names of the in-place operations, in the order of `ROWS`.
const LABELS: [&str; ROWS.len()] = ["add_", "sub_", "mul_", "div_"];

/// # Safety
/// As for `binary`.
unsafe extern "C" fn in_place<const AT: usize>(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the objects live as long as this call.
    unsafe {
        match (plain(a), plain_operand(b)) {
            (Some(target), Some(other)) => handed(|py| {
                pw::call_inplace(ROWS[AT], LABELS[AT], target, &[other], &[])?;
                Ok(Bound::from_borrowed_ptr(py, a).unbind())
            }),
            _ => operators::in_place::<AT>(a, b),
        }
    }
}

/// In the order of `Py_LT`, `Py_LE`, `Py_EQ`, `Py_NE`, `Py_GT`, `Py_GE`.
const COMPARISONS: [RowId; 6] = [RowId::Lt, RowId::Le, RowId::Eq, RowId::Ne, RowId::Gt, RowId::Ge];

/// # Safety
/// As for `tp_richcompare`: two live objects, with the GIL held.
unsafe extern "C" fn compare(a: *mut ffi::PyObject, b: *mut ffi::PyObject, op: c_int) -> *mut ffi::PyObject {
    // SAFETY: the objects live as long as this call.
    unsafe {
        match (plain(a), plain_operand(b), COMPARISONS.get(op as usize)) {
            (Some(x), Some(y), Some(row)) => handed(|py| wrap(py, pw::call(*row, &[Arg::Tensor(x), y], &[])?)),
            _ => operators::compare(a, b, op),
        }
    }
}

/// # Safety
/// As for `binary`.
unsafe extern "C" fn power(a: *mut ffi::PyObject, b: *mut ffi::PyObject, modulo: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the objects live as long as this call.
    unsafe {
        if let (Some(x), Some(s)) = (plain(a), number(b)) {
            return given(RowId::Pow, || pw::pow_scalar(x, s));
        }
        if let (Some(s), Some(x)) = (number(a), plain(b)) {
            return given(RowId::Pow, || pw::call(RowId::Pow, &[Arg::Scalar(s), Arg::Tensor(x)], &[]));
        }
        operators::power(a, b, modulo)
    }
}

type BinaryEntry = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;
type CompareEntry = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject, c_int) -> *mut ffi::PyObject;
type PowerEntry = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;
const ENTRIES: [BinaryEntry; ROWS.len()] = [binary::<0>, binary::<1>, binary::<2>, binary::<3>];

/// The slots of a type, in the order of `ROWS`.
///
/// # Safety
/// `n` is the table of a live heap type.
unsafe fn entries(n: *mut ffi::PyNumberMethods) -> [*mut Option<ffi::binaryfunc>; ROWS.len()] {
    // SAFETY: by the caller's promise.
    unsafe { [&raw mut (*n).nb_add, &raw mut (*n).nb_subtract, &raw mut (*n).nb_multiply, &raw mut (*n).nb_true_divide] }
}

/// As `entries`, for the in-place operators.
///
/// # Safety
/// `n` is the table of a live heap type.
unsafe fn in_place_entries(n: *mut ffi::PyNumberMethods) -> [*mut Option<ffi::binaryfunc>; ROWS.len()] {
    // SAFETY: by the caller's promise.
    unsafe {
        [
            &raw mut (*n).nb_inplace_add,
            &raw mut (*n).nb_inplace_subtract,
            &raw mut (*n).nb_inplace_multiply,
            &raw mut (*n).nb_inplace_true_divide,
        ]
    }
}

const IN_PLACE: [BinaryEntry; ROWS.len()] = [in_place::<0>, in_place::<1>, in_place::<2>, in_place::<3>];
const INHERITED_IN_PLACE: [BinaryEntry; ROWS.len()] =
    [operators::in_place::<0>, operators::in_place::<1>, operators::in_place::<2>, operators::in_place::<3>];
const INHERITED: [BinaryEntry; ROWS.len()] =
    [operators::binary::<0>, operators::binary::<1>, operators::binary::<2>, operators::binary::<3>];

/// Puts the fast functions into the slots of `Tensor`, or of a subclass without `__torch_function__`, that still have the functions of
/// `overrides`.
///
/// # Safety
/// `ty` is `Tensor` or a new subclass, under the GIL.
pub(crate) unsafe fn shorten(ty: *mut ffi::PyTypeObject) {
    // SAFETY: by the caller's promise.
    unsafe {
        let n = (*ty).tp_as_number;
        if n.is_null() || !class_is_plain(ty) {
            return;
        }
        for (at, place) in entries(n).into_iter().enumerate() {
            if (*place).is_some_and(|f| std::ptr::fn_addr_eq(f as BinaryEntry, INHERITED[at])) {
                *place = Some(ENTRIES[at]);
            }
        }
        for (at, place) in in_place_entries(n).into_iter().enumerate() {
            if (*place).is_some_and(|f| std::ptr::fn_addr_eq(f as BinaryEntry, INHERITED_IN_PLACE[at])) {
                *place = Some(IN_PLACE[at]);
            }
        }
        if (*ty).tp_richcompare.is_some_and(|f| std::ptr::fn_addr_eq(f as CompareEntry, operators::compare as CompareEntry)) {
            (*ty).tp_richcompare = Some(compare);
        }
        if (*n).nb_power.is_some_and(|f| std::ptr::fn_addr_eq(f as PowerEntry, operators::power as PowerEntry)) {
            (*n).nb_power = Some(power);
        }
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) {
    let ty: Bound<'_, PyType> = m.py().get_type::<PyTensor>();
    // SAFETY: the type is new.
    unsafe { shorten(ty.as_type_ptr()) };
}
