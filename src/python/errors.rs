//! The core's errors as Python exceptions, and panics as errors.
//!
//! This is the only conversion. Texts are made where an error occurs; here each kind gets its class.

use super::host::attach;
use crate::error::{self, Error, ErrorKind};
use pyo3::exceptions::{PyBaseException, PyException, PyRuntimeError};
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

/// Kind, class name, the built-in base class that a PyTorch user would catch, and when it is raised.
const CLASSES: [(ErrorKind, &str, &str, &str); 11] = [
    (ErrorKind::Shape, "ShapeError", "RuntimeError", "Sizes do not fit each other or the operation."),
    (ErrorKind::DType, "DTypeError", "RuntimeError", "Dtypes do not fit each other or the operation."),
    (ErrorKind::Graph, "GraphError", "RuntimeError", "A backward pass or a record of operations is not possible."),
    (ErrorKind::LinearAlgebra, "LinAlgError", "RuntimeError", "A matrix has no decomposition of the wanted kind, or no inverse."),
    (ErrorKind::Runtime, "OperationError", "RuntimeError", "An operation cannot be done for another reason, which the message says."),
    (ErrorKind::Index, "OutOfRangeError", "IndexError", "An index or a dimension is out of range."),
    (ErrorKind::Value, "ArgumentValueError", "ValueError", "An argument has a value that the function does not take."),
    (ErrorKind::Type, "ArgumentTypeError", "TypeError", "An argument has a type that the function does not take."),
    (ErrorKind::NotImplemented, "MissingError", "NotImplementedError", "The operation does not exist for this dtype, device or form."),
    (ErrorKind::Memory, "OutOfMemoryError", "MemoryError", "There is not enough memory on the device."),
    (ErrorKind::Internal, "InternalError", "RuntimeError", "A fault of rgrad itself: please report it with the message."),
];

static TYPES: PyOnceLock<Vec<Py<PyType>>> = PyOnceLock::new();

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    let builtins = py.import("builtins")?;
    let make = builtins.getattr("type")?;
    let namespace = |module: &str, doc: &str| -> PyResult<Bound<'_, PyDict>> {
        let d = PyDict::new(py);
        d.set_item("__module__", module)?;
        d.set_item("__doc__", doc)?;
        Ok(d)
    };
    let base = make.call1((
        "RgradError",
        (py.get_type::<PyException>(),),
        namespace("rgrad", "Base of every error that rgrad itself raises; each also derives from the builtin that PyTorch raises.")?,
    ))?;
    m.add("RgradError", &base)?;
    let mut types = Vec::new();
    for (kind, name, builtin, doc) in CLASSES {
        let module = if kind == ErrorKind::LinearAlgebra { "rgrad.linalg" } else { "rgrad" };
        let bases = PyTuple::new(py, [base.clone(), builtins.getattr(builtin)?])?;
        let class = make.call1((name, bases, namespace(module, doc)?))?.cast_into::<PyType>()?;
        m.add(name, &class)?;
        types.push(class.unbind());
    }
    let _ = TYPES.set(py, types);
    error::watch_panics();
    // PyO3 turns a panic into an exception that `except Exception` does not catch, and panics again when that exception returns to Rust. With
    // this constructor, a panic becomes an InternalError no matter through which function of the module it leaves.
    let made = pyo3::wrap_pyfunction!(internal_error, py)?;
    py.get_type::<PanicException>().setattr("__new__", builtins.getattr("staticmethod")?.call1((made,))?)?;
    m.add_function(pyo3::wrap_pyfunction!(_panic, m)?)?;
    Ok(())
}

/// The exception that a panic becomes. It replaces the constructor of PyO3's PanicException.
#[pyfunction]
#[pyo3(signature = (cls, what = None, *_args))]
fn internal_error<'py>(cls: &Bound<'py, PyAny>, what: Option<&Bound<'py, PyAny>>, _args: &Bound<'py, PyTuple>) -> Bound<'py, PyAny> {
    let py = cls.py();
    // Python before 3.12 calls the constructor again when it normalizes type and value of an exception.
    if let Some(made) = what.filter(|w| w.is_instance_of::<PyBaseException>()) {
        return made.clone();
    }
    let what = what.map(ToString::to_string).unwrap_or_default();
    PyErr::from(error::of_panic(&what)).value(py).clone().into_any()
}

/// Panics. For tests.
#[pyfunction]
fn _panic(what: String) -> PyResult<()> {
    panic!("{what}")
}

/// The result of `f`; a panic in it becomes an error. For C functions that PyO3 does not wrap.
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
                // Some exceptions take no notes; the exception itself is still right.
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

/// The error of a function as that of the method: positions in its text do not count `self`.
#[cold]
pub(super) fn of_method(py: Python<'_>, e: PyErr) -> PyErr {
    const MARK: &str = "(position ";
    let of_arguments =
        TYPES.get(py).zip(CLASSES.iter().position(|(k, ..)| *k == ErrorKind::Type)).is_some_and(|(t, i)| e.get_type(py).is(&t[i]));
    if !of_arguments {
        return e;
    }
    let text = e.value(py).to_string();
    let renumbered = text.split_once(MARK).and_then(|(before, rest)| {
        let (number, after) = rest.split_once(')')?;
        let position = number.parse::<usize>().ok().filter(|n| *n > 1)? - 1;
        Some(format!("{before}{MARK}{position}){after}"))
    });
    renumbered.map_or(e, type_error)
}

/// An exception of the user's code that passes through the core and leaves it unchanged.
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
