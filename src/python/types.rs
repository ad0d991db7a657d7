//! Short names of PyO3's and CPython's types that nearly every file of the bindings uses.
//!
//! A type that only one file uses stands in that file.

use pyo3::ffi;
use pyo3::prelude::*;

/// A Python object of any class, borrowed while the GIL is held.
pub(super) type PyObj<'py> = Bound<'py, PyAny>;

/// What most functions return: an object that is independent of the GIL, or an exception.
pub(super) type PyObjResult = PyResult<Py<PyAny>>;

/// An object as CPython's C interface passes it.
pub(super) type RawObj = *mut ffi::PyObject;

unsafe extern "C" {
    /// Where an object has its dict; null if it can have none, and the place of null before its first attribute. Exported by CPython, though not part
    /// of the limited interface.
    pub(super) fn _PyObject_GetDictPtr(obj: RawObj) -> *mut RawObj;
}

/// A C function that takes an array of arguments and a tuple of keywords (`METH_FASTCALL | METH_KEYWORDS`).
pub(super) type FastFunction = ffi::PyCFunctionFastWithKeywords;
