//! The arithmetic operators' own entries in the type: PyO3's come behind a guard and a dispatch to the reflected form that two tensors do
//! not need. Anything but two plain tensors goes on to the entries of `overrides`.

use super::errors::guarded;
use super::identity::{self, wrap};
use super::overrides::{class_is_plain, is_plain_tensor, operators};
use super::tensor::PyTensor;
use crate::error::within;
use crate::ops::pointwise::{self as pw, Arg};
use crate::pointwise::RowId;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

const ROWS: [RowId; 4] = [RowId::Add, RowId::Sub, RowId::Mul, RowId::Div];

/// # Safety
/// As every `nb_` slot: two live objects, with the GIL held.
unsafe extern "C" fn binary<const AT: usize>(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the objects live as long as this call, and those of `Tensor` are made of what PyO3 put there.
    unsafe {
        if !(is_plain_tensor(a) && is_plain_tensor(b)) {
            return operators::binary::<AT>(a, b);
        }
        let (Some(x), Some(y)) = (identity::tensor_in(a), identity::tensor_in(b)) else { return operators::binary::<AT>(a, b) };
        let py = Python::assume_attached();
        let run = || wrap(py, pw::call(ROWS[AT], &[Arg::Tensor(x), Arg::Tensor(y)], &[])?);
        match guarded(|| within(|| ROWS[AT].info().name.into(), run)) {
            Ok(obj) => obj.into_ptr(),
            Err(e) => {
                e.restore(py);
                std::ptr::null_mut()
            }
        }
    }
}

type Entry = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;
const ENTRIES: [Entry; ROWS.len()] = [binary::<0>, binary::<1>, binary::<2>, binary::<3>];

/// The type's entries, in the order of `ROWS`.
///
/// # Safety
/// `ty` is a live heap type.
unsafe fn entries(ty: *mut ffi::PyTypeObject) -> Option<[*mut Option<ffi::binaryfunc>; ROWS.len()]> {
    // SAFETY: by the caller's promise; a type without numbers has no table.
    unsafe {
        let n = (*ty).tp_as_number;
        if n.is_null() {
            return None;
        }
        Some([&raw mut (*n).nb_add, &raw mut (*n).nb_subtract, &raw mut (*n).nb_multiply, &raw mut (*n).nb_true_divide])
    }
}

const INHERITED: [Entry; ROWS.len()] = [operators::binary::<0>, operators::binary::<1>, operators::binary::<2>, operators::binary::<3>];

/// Gives `Tensor`, or a subclass that leaves the operations alone, the short entries where it has the long ones.
///
/// # Safety
/// `ty` is `Tensor` or a new subclass, under the GIL.
pub(super) unsafe fn shorten(ty: *mut ffi::PyTypeObject) {
    // SAFETY: by the caller's promise.
    unsafe {
        let Some(places) = entries(ty) else { return };
        for (at, place) in places.into_iter().enumerate() {
            if (*place).is_some_and(|f| std::ptr::fn_addr_eq(f as Entry, INHERITED[at])) && class_is_plain(ty) {
                *place = Some(ENTRIES[at]);
            }
        }
    }
}

pub(super) fn register(m: &Bound<'_, PyModule>) {
    let ty: Bound<'_, PyType> = m.py().get_type::<PyTensor>();
    // SAFETY: the type was made just now.
    unsafe { shorten(ty.as_type_ptr()) };
}
