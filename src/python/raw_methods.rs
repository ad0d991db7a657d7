//! Functions, methods and properties as C functions that CPython calls without what PyO3 does around each.

use super::types::{FastFunction, RawObj};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::ffi::{CString, c_char};

/// Text that is never freed.
fn leaked(s: &str) -> PyResult<*const c_char> {
    Ok(CString::new(s)?.into_raw().cast_const())
}

/// A method definition that is never freed, as CPython requires.
fn definition(name: &str, f: FastFunction, doc: &str) -> PyResult<*mut ffi::PyMethodDef> {
    Ok(Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: leaked(name)?,
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: f },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: leaked(doc)?,
    })))
}

pub(super) fn add_function(m: &Bound<'_, PyModule>, name: &str, f: FastFunction, doc: &str) -> PyResult<()> {
    let def = definition(name, f, doc)?;
    // SAFETY: the definition is never freed. The result is a new reference, or null with an exception set.
    let obj = unsafe { Bound::from_owned_ptr_or_err(m.py(), ffi::PyCFunction_NewEx(def, std::ptr::null_mut(), m.name()?.as_ptr())) }?;
    m.add(name, obj)
}

pub(super) fn add_method(ty: &Bound<'_, PyType>, name: &str, f: FastFunction, doc: &str) -> PyResult<()> {
    let def = definition(name, f, doc)?;
    // SAFETY: as above.
    let obj = unsafe { Bound::from_owned_ptr_or_err(ty.py(), ffi::PyDescr_NewMethod(ty.as_type_ptr(), def)) }?;
    ty.setattr(name, obj)
}

/// The functions of a property. They are called with an object of the class, and the second with null where the property is deleted.
pub(super) type Getter = unsafe extern "C" fn(RawObj, *mut std::ffi::c_void) -> RawObj;
pub(super) type Setter = unsafe extern "C" fn(RawObj, RawObj, *mut std::ffi::c_void) -> std::ffi::c_int;

pub(super) fn add_property(ty: &Bound<'_, PyType>, name: &str, get: Getter, set: Option<Setter>, doc: &str) -> PyResult<()> {
    let def = Box::leak(Box::new(ffi::PyGetSetDef {
        name: leaked(name)?,
        get: Some(get),
        set,
        doc: leaked(doc)?,
        closure: std::ptr::null_mut(),
    }));
    // SAFETY: as above.
    let obj = unsafe { Bound::from_owned_ptr_or_err(ty.py(), ffi::PyDescr_NewGetSet(ty.as_type_ptr(), def)) }?;
    ty.setattr(name, obj)
}

/// What a C function gives back: a new reference, or null with the exception set.
#[inline]
pub(super) fn given_back(py: Python<'_>, result: PyResult<Py<PyAny>>) -> RawObj {
    match result {
        Ok(obj) => obj.into_ptr(),
        Err(e) => {
            e.restore(py);
            std::ptr::null_mut()
        }
    }
}
