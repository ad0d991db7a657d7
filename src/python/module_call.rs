//! `nn.Module.__call__` where nothing watches the call: `forward` is called with the module and its arguments, without a frame in between.
//!
//! Not here: hooks. A call that has any, or a `forward` that is not simply a function of the class, goes to `Module._call_impl`.

use super::errors::guarded;
use super::raw_methods::given_back;
use super::types::{_PyObject_GetDictPtr, RawObj};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::os::raw::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

unsafe extern "C" {
    /// Gives a borrowed reference, or null without an error. Exported by CPython, though not part of the limited interface.
    fn _PyType_Lookup(class: *mut ffi::PyTypeObject, name: RawObj) -> RawObj;
}

/// A call with fewer arguments needs no array on the heap.
const MOST_ARGUMENTS: usize = 8;
/// Hooks on all modules were registered.
static WATCHED: AtomicBool = AtomicBool::new(false);
/// `__getattribute__` of `Module`; null until it is defined. A class with another one may find another `forward`.
static READS: AtomicPtr<ffi::PyObject> = AtomicPtr::new(std::ptr::null_mut());

/// `forward` of the class, if a call of it is a call of the module.
///
/// # Safety
/// `module` is a live object, under the GIL.
unsafe fn plain_forward<'py>(py: Python<'py>, module: RawObj) -> Option<Bound<'py, PyAny>> {
    // SAFETY: by the caller's promise. The place of an object's dict holds null or a dict; what is looked up is borrowed from the class and gets a
    // reference before other code runs.
    unsafe {
        let class = ffi::Py_TYPE(module);
        if _PyType_Lookup(class, intern!(py, "__getattribute__").as_ptr()) != READS.load(Ordering::Relaxed) {
            return None;
        }
        let dict = _PyObject_GetDictPtr(module);
        if dict.is_null() || (*dict).is_null() {
            return None;
        }
        let hooked = ffi::PyDict_GetItemWithError(*dict, intern!(py, "_hooked").as_ptr());
        let name = intern!(py, "forward").as_ptr();
        if hooked != ffi::Py_False() || ffi::PyDict_Contains(*dict, name) != 0 {
            return None;
        }
        let forward = _PyType_Lookup(class, name);
        let method = !forward.is_null() && ffi::PyType_HasFeature(ffi::Py_TYPE(forward), ffi::Py_TPFLAGS_METHOD_DESCRIPTOR) != 0;
        method.then(|| Bound::from_borrowed_ptr(py, forward))
    }
}

unsafe extern "C" fn call(module: RawObj, args: RawObj, keywords: RawObj) -> RawObj {
    // SAFETY: Python calls this with the GIL, a live object, a tuple, and null or a dict.
    unsafe {
        let py = Python::assume_attached();
        if keywords.is_null()
            && !WATCHED.load(Ordering::Relaxed)
            && let Some(forward) = plain_forward(py, module)
        {
            let count = ffi::PyTuple_GET_SIZE(args) as usize;
            let mut few = [std::ptr::null_mut(); MOST_ARGUMENTS];
            let mut many = Vec::new();
            let given = if count < MOST_ARGUMENTS {
                &mut few[..=count]
            } else {
                many.resize(count + 1, std::ptr::null_mut());
                &mut many[..]
            };
            given[0] = module;
            for (i, place) in given[1..].iter_mut().enumerate() {
                *place = ffi::PyTuple_GET_ITEM(args, i as ffi::Py_ssize_t);
            }
            return ffi::PyObject_Vectorcall(forward.as_ptr(), given.as_ptr(), count + 1, std::ptr::null_mut());
        }
        // What was asked of a dict may have failed, as nothing else does here.
        ffi::PyErr_Clear();
        let called = guarded(|| {
            let whole = Borrowed::from_ptr(py, module).getattr(intern!(py, "_call_impl"))?;
            Bound::from_owned_ptr_or_err(py, ffi::PyObject_Call(whole.as_ptr(), args, keywords))
        });
        given_back(py, called.map(Bound::unbind))
    }
}

/// Whether calls of all modules are watched by hooks.
#[pyfunction]
fn _watch_modules(on: bool) {
    WATCHED.store(on, Ordering::Relaxed);
}

/// Tells the class `Module`, once it is defined.
#[pyfunction]
fn _define_module(module: &Bound<'_, PyType>) {
    // SAFETY: a live type. What is found belongs to `object`, which lives for ever.
    let reads = unsafe { _PyType_Lookup(module.as_type_ptr(), intern!(module.py(), "__getattribute__").as_ptr()) };
    READS.store(reads, Ordering::Relaxed);
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let doc = c"The base class of modules: their calls.";
    let mut slots = [
        ffi::PyType_Slot { slot: ffi::Py_tp_call, pfunc: call as *mut c_void },
        ffi::PyType_Slot { slot: ffi::Py_tp_doc, pfunc: doc.as_ptr() as *mut c_void },
        ffi::PyType_Slot { slot: 0, pfunc: std::ptr::null_mut() },
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"rgrad._core._ModuleCall".as_ptr(),
        basicsize: 0,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE) as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: names and documentation live for ever; the list of slots ends with 0, and CPython copies it. Objects are those of `object`.
    let class = unsafe { Bound::from_owned_ptr_or_err(m.py(), ffi::PyType_FromSpec(&raw mut spec))? };
    m.add("_ModuleCall", class)?;
    m.add_function(wrap_pyfunction!(_watch_modules, m)?)?;
    m.add_function(wrap_pyfunction!(_define_module, m)?)
}
