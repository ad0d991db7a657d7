//! The one conversion between the core's errors and Python's exceptions, panics among them.

use super::host::attach;
use crate::error::{self, Error, ErrorKind};
use pyo3::exceptions::{PyBaseException, PyException, PyRuntimeError};
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

/// (kind, class name, builtin base): what a PyTorch user would catch.
const CLASSES: [(ErrorKind, &str, &str); 10] = [
    (ErrorKind::Shape, "ShapeError", "RuntimeError"),
    (ErrorKind::DType, "DTypeError", "RuntimeError"),
    (ErrorKind::Graph, "GraphError", "RuntimeError"),
    (ErrorKind::Runtime, "OperationError", "RuntimeError"),
    (ErrorKind::Index, "OutOfRangeError", "IndexError"),
    (ErrorKind::Value, "ArgumentValueError", "ValueError"),
    (ErrorKind::Type, "ArgumentTypeError", "TypeError"),
    (ErrorKind::NotImplemented, "MissingError", "NotImplementedError"),
    (ErrorKind::Memory, "OutOfMemoryError", "MemoryError"),
    (ErrorKind::Internal, "InternalError", "RuntimeError"),
];

static TYPES: PyOnceLock<Vec<Py<PyType>>> = PyOnceLock::new();

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    let builtins = py.import("builtins")?;
    let make = builtins.getattr("type")?;
    let namespace = |doc: &str| -> PyResult<Bound<'_, PyDict>> {
        let d = PyDict::new(py);
        d.set_item("__module__", "rgrad")?;
        d.set_item("__doc__", doc)?;
        Ok(d)
    };
    let base = make.call1((
        "RgradError",
        (py.get_type::<PyException>(),),
        namespace("Base of every error that rgrad itself raises; each also derives from the builtin that PyTorch raises.")?,
    ))?;
    m.add("RgradError", &base)?;
    let mut types = Vec::new();
    for (kind, name, builtin) in CLASSES {
        let doc = format!("An rgrad error of kind {kind:?}; a {builtin}.");
        let bases = PyTuple::new(py, [base.clone(), builtins.getattr(builtin)?])?;
        let class = make.call1((name, bases, namespace(&doc)?))?.cast_into::<PyType>()?;
        m.add(name, &class)?;
        types.push(class.unbind());
    }
    let _ = TYPES.set(py, types);
    error::watch_panics();
    // PyO3 turns a panic into an exception that no `except Exception` sees, and goes on panicking where such an exception comes back to Rust.
    // What is asked for here is made of the class of all other internal errors: whatever entry of the module a panic leaves through.
    let made = pyo3::wrap_pyfunction!(internal_error, py)?;
    py.get_type::<PanicException>().setattr("__new__", builtins.getattr("staticmethod")?.call1((made,))?)?;
    m.add_function(pyo3::wrap_pyfunction!(_panic, m)?)?;
    Ok(())
}

/// The exception that a panic becomes. Stands in the place of the constructor of PyO3's exception.
#[pyfunction]
#[pyo3(signature = (cls, what = None, *_args))]
fn internal_error<'py>(cls: &Bound<'py, PyAny>, what: Option<&Bound<'py, PyAny>>, _args: &Bound<'py, PyTuple>) -> Bound<'py, PyAny> {
    let py = cls.py();
    // Python before 3.12 asks once more when it brings type and value of an exception together.
    if let Some(made) = what.filter(|w| w.is_instance_of::<PyBaseException>()) {
        return made.clone();
    }
    let what = what.map(ToString::to_string).unwrap_or_default();
    PyErr::from(error::of_panic(&what)).value(py).clone().into_any()
}

/// Panics. For tests of what becomes of it.
#[pyfunction]
fn _panic(what: String) -> PyResult<()> {
    panic!("{what}")
}

/// What a piece of work gives; a panic in it becomes an error. For entries that PyO3 does not make.
pub(super) fn guarded<R>(f: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    caught.unwrap_or_else(|payload| Err(error::of_panic(error::panic_message(&*payload)).into()))
}

impl From<Error> for PyErr {
    #[cold]
    fn from(mut e: Error) -> PyErr {
        attach(|py| {
            let err = match e.take_foreign().map(|f| f.downcast::<PyErr>()) {
                Some(Ok(original)) => *original,
                _ => {
                    let at = CLASSES.iter().position(|(k, ..)| *k == e.kind());
                    match (at, TYPES.get(py)) {
                        (Some(i), Some(types)) => PyErr::from_type(types[i].bind(py).clone(), e.message().to_string()),
                        _ => PyRuntimeError::new_err(e.message().to_string()),
                    }
                }
            };
            for note in e.notes() {
                // An exception that takes no notes is still the right exception.
                let _ = err.value(py).call_method1("add_note", (note,));
            }
            err
        })
    }
}

/// rgrad's own RuntimeError.
#[cold]
pub(super) fn runtime(message: impl Into<String>) -> PyErr {
    Error::runtime(message).into()
}

/// rgrad's own TypeError.
#[cold]
pub(super) fn type_error(message: impl Into<String>) -> PyErr {
    Error::type_(message).into()
}

/// An exception of the user's code on its way through the core; it comes out as itself.
#[cold]
pub(super) fn foreign(e: PyErr) -> Error {
    let text = e.to_string();
    Error::foreign(Box::new(e), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_class() {
        for k in ErrorKind::ALL {
            assert_eq!(CLASSES.iter().filter(|(c, ..)| *c == k).count(), usize::from(k != ErrorKind::Foreign), "{k:?}");
        }
    }
}
