//! Calls that mix tensors of several libraries with `__torch_function__`. Each library's override calls the function again, whose library asks
//! the other override, without end: the second time is an error that names both.

use crate::python::args::type_name;
use crate::python::errors::type_error;
use crate::python::tensor::PyTensor;
use crate::python::types::PyObj;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::cell::RefCell;

thread_local! {
    /// The function and the argument of each call that waits for an override on this thread.
    static WAITING: RefCell<Vec<(usize, usize)>> = const { RefCell::new(Vec::new()) };
}

/// A call that waits for an override, until dropped.
pub(super) struct Waiting;

impl Waiting {
    /// None if the same call waits already.
    pub(super) fn begin(func: &PyObj<'_>, argument: &PyObj<'_>) -> Option<Waiting> {
        let call = (func.as_ptr() as usize, argument.as_ptr() as usize);
        WAITING.with_borrow_mut(|all| {
            if all.contains(&call) {
                return None;
            }
            all.push(call);
            Some(Waiting)
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.with_borrow_mut(|all| all.pop());
    }
}

/// The first of our tensors among the arguments, or in tuples and lists among them.
pub(super) fn first_tensor<'py>(args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> Option<PyObj<'py>> {
    let is_ours = |a: &PyObj<'py>| a.cast::<PyTensor>().is_ok();
    args.iter().chain(kwargs.into_iter().flat_map(|k| k.values())).find_map(|a| {
        if let Ok(items) = a.cast::<PyList>() {
            items.iter().find(is_ours)
        } else if let Ok(items) = a.cast::<PyTuple>() {
            items.iter().find(is_ours)
        } else {
            is_ours(&a).then_some(a)
        }
    })
}

/// The first part of the name of the module where an object is defined.
fn library(obj: &PyObj<'_>) -> Option<String> {
    let module: String = obj.getattr("__module__").ok()?.extract().ok()?;
    Some(module.split('.').next().unwrap_or_default().to_owned())
}

/// The error of a call of `func` with an `argument` that is a tensor of another library.
#[cold]
pub(super) fn mixed(func: &PyObj<'_>, argument: &PyObj<'_>) -> PyErr {
    let name: String = func.getattr("__name__").and_then(|n| n.extract()).unwrap_or_else(|_| "a function".into());
    let of = |obj: &PyObj<'_>| {
        let owner = ["__objclass__", "__self__"].into_iter().find_map(|o| obj.getattr(o).ok().and_then(|o| library(&o)));
        library(obj).or(owner).or_else(|| library(obj.get_type().as_any())).unwrap_or_else(|| "another library".into())
    };
    let (here, there) = (of(func), library(argument.get_type().as_any()).unwrap_or_else(|| "another library".into()));
    let here = if here == "builtins" { "another library".into() } else { here };
    let error = type_error(format!(
        "{name}() of {here} got a {} of {there}: tensors of the two libraries do not mix. Convert one of them, as {here} does from an array: \
         from_numpy(t.detach().numpy()). After `import rgrad as torch`, `from torch import nn` still imports PyTorch's: write \
         `from rgrad import nn`.",
        type_name(argument)
    ));
    let _ = error.value(argument.py()).setattr(MARK, true);
    error
}

/// An attribute of the error, which is no reason to try the other operand's operator.
const MARK: &str = "_mixes_libraries";

pub(super) fn is_mixed(error: &PyErr, py: Python<'_>) -> bool {
    error.value(py).hasattr(MARK).unwrap_or(false)
}
