//! Wrappers around the operators: functions in the slots of the class that call overrides, or PyO3's functions if all operands are plain.
//!
//! Subclasses inherit these. `Tensor` and classes without override have those of `tensor::fast_operators` where there are any. A TypeError of an
//! override becomes NotImplemented, so that Python tries the other operand; not for in-place operators, where Python would take NotImplemented
//! for the result (in the slot for sequences, which `__iadd__` also fills).

use super::covers::guarded;
use super::foreign::is_mixed;
use super::{Asked, Call, is_plain, modes_apply};
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity;
use crate::python::types::RawObj;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The function that PyO3 put into a slot of the class.
type OriginalSlot = AtomicPtr<()>;

/// The function that PyO3 put into a slot.
unsafe fn original<F: Copy>(slot: &OriginalSlot) -> F {
    let p = slot.load(Ordering::Relaxed);
    // SAFETY: `register` stored it from a slot of type `F`.
    unsafe { std::mem::transmute_copy::<*mut (), F>(&p) }
}

/// Calls the overrides of `Tensor.<name>(*operands)`, or the slot's own function if there are none.
#[cold]
#[inline(never)]
unsafe fn ask(name: &str, operands: &[RawObj], falls_back: bool, itself: &dyn Fn() -> RawObj) -> RawObj {
    // SAFETY: live objects under the GIL, with which Python called a slot.
    unsafe {
        let py = Python::assume_attached();
        guarded(py, || {
            let operands: Vec<Bound<'_, PyAny>> = operands.iter().map(|o| Bound::from_borrowed_ptr(py, *o)).collect();
            let asked = Asked::of(operands.iter().cloned());
            if asked.0.is_empty() && !modes_apply() {
                return Ok(itself());
            }
            let func = py.get_type::<PyTensor>().getattr(name)?;
            let args = PyTuple::new(py, operands)?;
            match (Call { func, args, kwargs: None }.ask(&asked)) {
                Ok(value) => Ok(value.into_ptr()),
                Err(e) if falls_back && e.is_instance_of::<PyTypeError>(py) && !is_mixed(&e, py) => Ok(py.NotImplemented().into_ptr()),
                Err(e) => Err(e),
            }
        })
    }
}

/// The names of the functions that overrides get, for a tensor on the left and on the right.
const BINARY_NAMES: [(&str, &str); 12] = [
    ("add", "add"),
    ("sub", "__rsub__"),
    ("mul", "mul"),
    ("div", "__rtruediv__"),
    ("__floordiv__", "__rfloordiv__"),
    ("remainder", "__rmod__"),
    ("__lshift__", "__rlshift__"),
    ("__rshift__", "__rrshift__"),
    ("__and__", "bitwise_and"),
    ("__or__", "bitwise_or"),
    ("__xor__", "bitwise_xor"),
    ("matmul", "__rmatmul__"),
];
static BINARY: [OriginalSlot; BINARY_NAMES.len()] = [const { OriginalSlot::new(std::ptr::null_mut()) }; BINARY_NAMES.len()];

pub(in crate::python) unsafe extern "C" fn binary<const AT: usize>(a: RawObj, b: RawObj) -> RawObj {
    // SAFETY: called by Python.
    unsafe {
        let itself = || original::<ffi::binaryfunc>(&BINARY[AT])(a, b);
        if is_plain(a) && is_plain(b) {
            return itself();
        }
        if identity::tensor_in(a).is_some() {
            ask(BINARY_NAMES[AT].0, &[a, b], true, &itself)
        } else {
            ask(BINARY_NAMES[AT].1, &[b, a], true, &itself)
        }
    }
}

static POWER: OriginalSlot = OriginalSlot::new(std::ptr::null_mut());

pub(in crate::python) unsafe extern "C" fn power(a: RawObj, b: RawObj, modulo: RawObj) -> RawObj {
    // SAFETY: called by Python.
    unsafe {
        let itself = || original::<ffi::ternaryfunc>(&POWER)(a, b, modulo);
        if is_plain(a) && is_plain(b) {
            return itself();
        }
        if identity::tensor_in(a).is_some() { ask("pow", &[a, b], true, &itself) } else { ask("__rpow__", &[b, a], true, &itself) }
    }
}

const IN_PLACE_NAMES: [&str; 11] =
    ["add_", "sub_", "mul_", "div_", "floor_divide_", "remainder_", "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__"];
static IN_PLACE: [OriginalSlot; IN_PLACE_NAMES.len()] = [const { OriginalSlot::new(std::ptr::null_mut()) }; IN_PLACE_NAMES.len()];

pub(in crate::python) unsafe extern "C" fn in_place<const AT: usize>(a: RawObj, b: RawObj) -> RawObj {
    // SAFETY: called by Python.
    unsafe {
        let itself = || original::<ffi::binaryfunc>(&IN_PLACE[AT])(a, b);
        if is_plain(a) && is_plain(b) { itself() } else { ask(IN_PLACE_NAMES[AT], &[a, b], false, &itself) }
    }
}

static IN_PLACE_POWER: OriginalSlot = OriginalSlot::new(std::ptr::null_mut());

unsafe extern "C" fn in_place_power(a: RawObj, b: RawObj, modulo: RawObj) -> RawObj {
    // SAFETY: called by Python.
    unsafe {
        let itself = || original::<ffi::ternaryfunc>(&IN_PLACE_POWER)(a, b, modulo);
        if is_plain(a) && is_plain(b) { itself() } else { ask("pow_", &[a, b], false, &itself) }
    }
}

const UNARY_NAMES: [&str; 8] = ["neg", "__pos__", "abs", "__invert__", "__index__", "__int__", "__float__", "__repr__"];
static UNARY: [OriginalSlot; UNARY_NAMES.len()] = [const { OriginalSlot::new(std::ptr::null_mut()) }; UNARY_NAMES.len()];

unsafe extern "C" fn unary<const AT: usize>(a: RawObj) -> RawObj {
    // SAFETY: called by Python.
    unsafe {
        let itself = || original::<ffi::unaryfunc>(&UNARY[AT])(a);
        if is_plain(a) { itself() } else { ask(UNARY_NAMES[AT], &[a], false, &itself) }
    }
}

static COMPARE: OriginalSlot = OriginalSlot::new(std::ptr::null_mut());

pub(in crate::python) unsafe extern "C" fn compare(a: RawObj, b: RawObj, op: c_int) -> RawObj {
    // SAFETY: called by Python.
    unsafe {
        let itself = || original::<ffi::richcmpfunc>(&COMPARE)(a, b, op);
        if is_plain(a) && is_plain(b) {
            return itself();
        }
        // In the order of Py_LT, Py_LE, Py_EQ, Py_NE, Py_GT, Py_GE.
        let name = ["lt", "le", "__eq__", "ne", "gt", "ge"][op as usize];
        ask(name, &[a, b], true, &itself)
    }
}

static ITER: OriginalSlot = OriginalSlot::new(std::ptr::null_mut());

/// Iterates over the result of `unbind`, which can be overridden.
unsafe extern "C" fn iter(a: RawObj) -> RawObj {
    // SAFETY: called by Python.
    unsafe {
        let itself = || original::<ffi::getiterfunc>(&ITER)(a);
        let scalar = identity::tensor_in(a).is_some_and(|t| t.rank() == 0);
        if is_plain(a) || scalar {
            return itself();
        }
        let py = Python::assume_attached();
        guarded(py, || Ok(Bound::from_borrowed_ptr(py, a).call_method1("unbind", (0,))?.try_iter()?.into_ptr()))
    }
}

/// The result of a slot that returns a number.
unsafe fn as_number(answer: RawObj, read: unsafe extern "C" fn(RawObj) -> ffi::Py_ssize_t) -> ffi::Py_ssize_t {
    // SAFETY: `answer` is a new reference, or null with an exception set.
    unsafe {
        if answer.is_null() {
            return -1;
        }
        let n = read(answer);
        ffi::Py_DECREF(answer);
        n
    }
}

unsafe extern "C" fn truth(o: RawObj) -> ffi::Py_ssize_t {
    // SAFETY: a live object.
    unsafe { ffi::PyObject_IsTrue(o) as ffi::Py_ssize_t }
}

unsafe extern "C" fn nothing(_: RawObj) -> ffi::Py_ssize_t {
    0
}

/// The number that a slot returned as an object; null for an error.
unsafe fn number_object(n: ffi::Py_ssize_t) -> RawObj {
    // SAFETY: under the GIL.
    unsafe { if n < 0 { std::ptr::null_mut() } else { ffi::PyLong_FromSsize_t(n) } }
}

static LEN: OriginalSlot = OriginalSlot::new(std::ptr::null_mut());
static BOOL: OriginalSlot = OriginalSlot::new(std::ptr::null_mut());
static CONTAINS: OriginalSlot = OriginalSlot::new(std::ptr::null_mut());
static GET_ITEM: OriginalSlot = OriginalSlot::new(std::ptr::null_mut());
static SET_ITEM: OriginalSlot = OriginalSlot::new(std::ptr::null_mut());

unsafe extern "C" fn len(a: RawObj) -> ffi::Py_ssize_t {
    // SAFETY: called by Python.
    unsafe {
        let itself = || original::<ffi::lenfunc>(&LEN)(a);
        if is_plain(a) { itself() } else { as_number(ask("__len__", &[a], false, &|| number_object(itself())), ffi::PyLong_AsSsize_t) }
    }
}

unsafe extern "C" fn as_bool(a: RawObj) -> c_int {
    // SAFETY: called by Python.
    unsafe {
        let itself = || original::<ffi::inquiry>(&BOOL)(a);
        if is_plain(a) {
            return itself();
        }
        as_number(ask("__bool__", &[a], false, &|| number_object(itself() as ffi::Py_ssize_t)), truth) as c_int
    }
}

unsafe extern "C" fn contains(a: RawObj, element: RawObj) -> c_int {
    // SAFETY: called by Python.
    unsafe {
        let itself = || original::<ffi::objobjproc>(&CONTAINS)(a, element);
        if is_plain(a) && is_plain(element) {
            return itself();
        }
        as_number(ask("__contains__", &[a, element], false, &|| number_object(itself() as ffi::Py_ssize_t)), truth) as c_int
    }
}

unsafe extern "C" fn get_item(a: RawObj, key: RawObj) -> RawObj {
    // SAFETY: called by Python.
    unsafe {
        let itself = || original::<ffi::binaryfunc>(&GET_ITEM)(a, key);
        if is_plain(a) && is_plain(key) { itself() } else { ask("__getitem__", &[a, key], false, &itself) }
    }
}

unsafe extern "C" fn set_item(a: RawObj, key: RawObj, value: RawObj) -> c_int {
    // SAFETY: called by Python. A null value is a deletion, which the slot itself refuses.
    unsafe {
        let itself = || original::<ffi::objobjargproc>(&SET_ITEM)(a, key, value);
        if value.is_null() || (is_plain(a) && is_plain(key) && is_plain(value)) {
            return itself();
        }
        as_number(ask("__setitem__", &[a, key, value], false, &|| number_object(itself() as ffi::Py_ssize_t)), nothing) as c_int
    }
}

/// The field in which the descriptor of an operator stores the slot's function, which subclasses inherit.
unsafe fn wrapped(dict: &Bound<'_, PyAny>, name: &str) -> PyResult<*mut *mut c_void> {
    let d = dict.get_item(name)?;
    // SAFETY: the class's dict has a slot wrapper under the name of an operator.
    Ok(unsafe { &raw mut (*d.as_ptr().cast::<ffi::PyWrapperDescrObject>()).d_wrapped })
}

/// Puts a wrapper into a slot and into the descriptors of its names. A descriptor that calls another function is left unchanged.
macro_rules! put {
    ($dict:ident, $place:expr, $saved:expr, $cover:expr, $($name:literal)+) => {
        if let Some(f) = $place {
            let f = f as *mut ();
            $saved.store(f, Ordering::Relaxed);
            $place = Some($cover);
            for name in [$($name),+] {
                let at = wrapped(&$dict, name)?;
                if std::ptr::eq((*at).cast(), f) {
                    *at = $place.map_or(std::ptr::null_mut(), |f| f as *mut c_void);
                }
            }
        }
    };
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let ty = m.py().get_type::<PyTensor>();
    let dict = ty.getattr("__dict__")?;
    // SAFETY: the type is new and no other code has seen it. The functions have the types of their slots.
    unsafe {
        let t = ty.as_type_ptr();
        let n = &mut *(*t).tp_as_number;
        put!(dict, n.nb_add, BINARY[0], binary::<0>, "__add__" "__radd__");
        put!(dict, n.nb_subtract, BINARY[1], binary::<1>, "__sub__" "__rsub__");
        put!(dict, n.nb_multiply, BINARY[2], binary::<2>, "__mul__" "__rmul__");
        put!(dict, n.nb_true_divide, BINARY[3], binary::<3>, "__truediv__" "__rtruediv__");
        put!(dict, n.nb_floor_divide, BINARY[4], binary::<4>, "__floordiv__" "__rfloordiv__");
        put!(dict, n.nb_remainder, BINARY[5], binary::<5>, "__mod__" "__rmod__");
        put!(dict, n.nb_lshift, BINARY[6], binary::<6>, "__lshift__" "__rlshift__");
        put!(dict, n.nb_rshift, BINARY[7], binary::<7>, "__rshift__" "__rrshift__");
        put!(dict, n.nb_and, BINARY[8], binary::<8>, "__and__" "__rand__");
        put!(dict, n.nb_or, BINARY[9], binary::<9>, "__or__" "__ror__");
        put!(dict, n.nb_xor, BINARY[10], binary::<10>, "__xor__" "__rxor__");
        put!(dict, n.nb_matrix_multiply, BINARY[11], binary::<11>, "__matmul__" "__rmatmul__");
        put!(dict, n.nb_power, POWER, power, "__pow__" "__rpow__");
        put!(dict, n.nb_inplace_add, IN_PLACE[0], in_place::<0>, "__iadd__");
        put!(dict, n.nb_inplace_subtract, IN_PLACE[1], in_place::<1>, "__isub__");
        put!(dict, n.nb_inplace_multiply, IN_PLACE[2], in_place::<2>, "__imul__");
        put!(dict, n.nb_inplace_true_divide, IN_PLACE[3], in_place::<3>, "__itruediv__");
        put!(dict, n.nb_inplace_floor_divide, IN_PLACE[4], in_place::<4>, "__ifloordiv__");
        put!(dict, n.nb_inplace_remainder, IN_PLACE[5], in_place::<5>, "__imod__");
        put!(dict, n.nb_inplace_and, IN_PLACE[6], in_place::<6>, "__iand__");
        put!(dict, n.nb_inplace_or, IN_PLACE[7], in_place::<7>, "__ior__");
        put!(dict, n.nb_inplace_xor, IN_PLACE[8], in_place::<8>, "__ixor__");
        put!(dict, n.nb_inplace_lshift, IN_PLACE[9], in_place::<9>, "__ilshift__");
        put!(dict, n.nb_inplace_rshift, IN_PLACE[10], in_place::<10>, "__irshift__");
        put!(dict, n.nb_inplace_power, IN_PLACE_POWER, in_place_power, "__ipow__");
        put!(dict, n.nb_negative, UNARY[0], unary::<0>, "__neg__");
        put!(dict, n.nb_positive, UNARY[1], unary::<1>, "__pos__");
        put!(dict, n.nb_absolute, UNARY[2], unary::<2>, "__abs__");
        put!(dict, n.nb_invert, UNARY[3], unary::<3>, "__invert__");
        put!(dict, n.nb_index, UNARY[4], unary::<4>, "__index__");
        put!(dict, n.nb_int, UNARY[5], unary::<5>, "__int__");
        put!(dict, n.nb_float, UNARY[6], unary::<6>, "__float__");
        put!(dict, n.nb_bool, BOOL, as_bool, "__bool__");
        put!(dict, (*t).tp_repr, UNARY[7], unary::<7>, "__repr__");
        put!(dict, (*t).tp_richcompare, COMPARE, compare, "__lt__" "__le__" "__eq__" "__ne__" "__gt__" "__ge__");
        put!(dict, (*t).tp_iter, ITER, iter, "__iter__");
        let mapping = &mut *(*t).tp_as_mapping;
        put!(dict, mapping.mp_length, LEN, len, "__len__");
        put!(dict, mapping.mp_subscript, GET_ITEM, get_item, "__getitem__");
        put!(dict, mapping.mp_ass_subscript, SET_ITEM, set_item, "__setitem__" "__delitem__");
        let sequence = &mut *(*t).tp_as_sequence;
        if sequence.sq_length.is_some() {
            sequence.sq_length = mapping.mp_length;
        }
        put!(dict, sequence.sq_contains, CONTAINS, contains, "__contains__");
        ffi::PyType_Modified(t);
    }
    Ok(())
}
