//! Calls of Python functions with an array of arguments, without a tuple.

use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::SmallVec;

/// The arguments of one call.
pub(super) struct Arguments<'py> {
    /// The first place is free for the function that is called, as the protocol wishes.
    places: SmallVec<[*mut ffi::PyObject; 6]>,
    py: Python<'py>,
}

impl<'py> Arguments<'py> {
    pub(super) fn new(py: Python<'py>) -> Arguments<'py> {
        let mut places = SmallVec::new();
        places.push(std::ptr::null_mut());
        Arguments { places, py }
    }

    #[inline]
    pub(super) fn push(&mut self, argument: Bound<'py, PyAny>) {
        self.places.push(argument.into_ptr());
    }

    /// Calls `function` with what was pushed.
    pub(super) fn call(mut self, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let count = self.places.len() - 1;
        // SAFETY: the array has `count` live objects after the free place, and outlives the call.
        unsafe {
            let first = self.places.as_mut_ptr().add(1);
            let result = ffi::PyObject_Vectorcall(
                function.as_ptr(),
                first.cast_const(),
                count | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET,
                std::ptr::null_mut(),
            );
            Bound::from_owned_ptr_or_err(self.py, result)
        }
    }
}

impl Drop for Arguments<'_> {
    fn drop(&mut self) {
        for argument in &self.places[1..] {
            // SAFETY: each is a reference of this array.
            unsafe { ffi::Py_DECREF(*argument) };
        }
    }
}
