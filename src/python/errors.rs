//! The one conversion between the core's errors and Python's exceptions.

use super::host::attach;
use crate::error::{Error, Kind};
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

/// (kind, class name, builtin base): what a PyTorch user would catch.
const CLASSES: [(Kind, &str, &str); 9] = [
    (Kind::Shape, "ShapeError", "RuntimeError"),
    (Kind::DType, "DTypeError", "RuntimeError"),
    (Kind::Graph, "GraphError", "RuntimeError"),
    (Kind::Runtime, "OperationError", "RuntimeError"),
    (Kind::Index, "OutOfRangeError", "IndexError"),
    (Kind::Value, "ArgumentValueError", "ValueError"),
    (Kind::Type, "ArgumentTypeError", "TypeError"),
    (Kind::NotImplemented, "MissingError", "NotImplementedError"),
    (Kind::Memory, "OutOfMemoryError", "MemoryError"),
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
    Ok(())
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
        for k in Kind::ALL {
            assert_eq!(CLASSES.iter().filter(|(c, ..)| *c == k).count(), usize::from(k != Kind::Foreign), "{k:?}");
        }
    }
}
