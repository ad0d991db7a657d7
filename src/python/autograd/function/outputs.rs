//! What `forward` of a custom Function returned, as the outputs that its caller gets: which history each has, and which are refused.

use super::warn;
use crate::autograd::dispatch::call_site::{self, Inherit};
use crate::autograd::dispatch::mode::ModeGuard;
use crate::autograd::{Edge, Tensor, check_inplace, function_output, function_view, function_write};
use crate::python::args::{as_tensor, type_name};
use crate::python::errors::{runtime, type_error};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

pub(crate) fn as_tuple<'py>(value: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyTuple>, bool)> {
    match value.cast::<PyTuple>() {
        Ok(t) => Ok((t.clone(), true)),
        Err(_) => Ok((PyTuple::new(value.py(), [value.clone()])?, false)),
    }
}

/// The Function's result in the form that `forward` gave it.
pub(crate) fn give(py: Python<'_>, output: &Bound<'_, PyAny>, mut results: Vec<Py<PyAny>>, is_tuple: bool) -> PyResult<Py<PyAny>> {
    if !is_tuple {
        return Ok(results.swap_remove(0));
    }
    let changed = output.cast::<PyTuple>()?.iter().zip(&results).any(|(a, b)| !b.is(&a));
    Ok(if changed { PyTuple::new(py, results)?.into_any().unbind() } else { output.clone().unbind() })
}

fn contains(list: Option<&Bound<'_, PyTuple>>, t: &Tensor) -> bool {
    list.is_some_and(|l| l.iter().any(|o| as_tensor(&o).is_some_and(|x| x.same(t))))
}

/// Every tensor that `mark_dirty` was given counts as written, and must be an output.
pub(crate) fn check_dirty(dirty: &Bound<'_, PyTuple>, outputs: &[Option<Tensor>], name: &str) -> PyResult<()> {
    for (i, d) in dirty.iter().enumerate() {
        let Some(t) = as_tensor(&d) else {
            return Err(runtime(format!(
                "mark_dirty can only accept variables, but argument {i} is of type {} (in {name})",
                type_name(&d)
            )));
        };
        t.increment_version("mark_dirty");
    }
    if dirty.iter().any(|d| as_tensor(&d).is_some_and(|d| !outputs.iter().flatten().any(|o| o.same(d)))) {
        return Err(runtime(format!(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified inplace must \
             all be outputs of the Function. (in {name})"
        )));
    }
    Ok(())
}

pub(crate) fn check_non_differentiable(given: &Bound<'_, PyTuple>, name: &str) -> PyResult<()> {
    match given.iter().find(|o| as_tensor(o).is_none()) {
        Some(o) => Err(runtime(format!("mark_non_differentiable only accepts variable arguments, but got {} (in {name})", type_name(&o)))),
        None => Ok(()),
    }
}

/// What each output of `forward` is beside being one.
pub(crate) struct Roles<'a, 'py> {
    pub inputs: &'a [Tensor],
    pub dirty: Option<Bound<'py, PyTuple>>,
    pub non_diff: Option<Bound<'py, PyTuple>>,
    /// What `setup_context` has saved; None for a `forward` that takes the context.
    pub saved: Option<Bound<'py, PyTuple>>,
    /// How many outputs there are, those that are no tensors among them.
    pub count: usize,
}

impl Roles<'_, '_> {
    fn is_input(&self, t: &Tensor) -> bool {
        self.inputs.iter().any(|i| i.same(t))
    }

    /// Of an output of a call that is recorded, whether it gets the Function's node.
    pub(crate) fn is_differentiable(&self, t: &Tensor) -> bool {
        t.dtype().is_differentiable() && !contains(self.non_diff.as_ref(), t)
    }

    /// Whether the output is an input that is a view and was written in place.
    pub(crate) fn is_written_view(&self, t: &Tensor) -> bool {
        contains(self.dirty.as_ref(), t) && self.is_input(t) && t.base().is_some()
    }

    /// One output as the caller gets it; `edge` is its history, None if it has none.
    pub(crate) fn settle(&self, o: &Bound<'_, PyAny>, t: &Tensor, edge: Option<Edge>) -> PyResult<Py<PyAny>> {
        let (is_input, is_dirty) = (self.is_input(t), contains(self.dirty.as_ref(), t));
        let result = match edge {
            Some(edge) if is_dirty => {
                self.write(o.py(), t, edge, is_input)?;
                o.clone()
            }
            Some(edge) if is_input => {
                let out = self.as_view(o)?;
                function_output(tensor(&out)?, edge);
                out
            }
            // A leaf from elsewhere keeps its own gradient; the Function's output is another tensor.
            Some(edge) if is_own_leaf(t) => {
                let out = detached(o, t)?;
                function_output(tensor(&out)?, edge);
                out
            }
            Some(edge) => {
                function_output(t, edge);
                o.clone()
            }
            None if !t.requires_grad() => {
                if is_input && !is_dirty {
                    self.as_view(o)?
                } else {
                    o.clone()
                }
            }
            None if is_input || is_own_leaf(t) => detached(o, t)?,
            None => {
                if t.base().is_none() {
                    t.detach_in_place()?;
                }
                o.clone()
            }
        };
        if !(is_input && is_dirty) {
            function_view(tensor(&result)?, false);
        }
        Ok(result.unbind())
    }

    /// Gives what `forward` has written in place its history.
    fn write(&self, py: Python<'_>, t: &Tensor, edge: Edge, is_input: bool) -> PyResult<()> {
        const NOT_AN_INPUT: &str = "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be \
                                    passed to ctx.mark_dirty().";
        let is_view = t.base().is_some();
        if t.requires_grad() && t.is_leaf_now() {
            return Err(runtime("a leaf Variable that requires grad has been used in an in-place operation."));
        }
        if !is_input {
            if is_view {
                return Err(runtime(NOT_AN_INPUT));
            }
            warn(py, "UserWarning", NOT_AN_INPUT)?;
        } else {
            if is_view && self.count > 1 {
                return Err(runtime(
                    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one \
                     Tensor. This is not supported by the current autograd engine. You should either make sure the input is not a view (using \
                     .clone() for example) or make your Function only return one Tensor (potentially splitting it into two Functions: one \
                     doing the inplace that returns a single Tensor and a second one that does the other operations). You can ask on the forum \
                     https://discuss.pytorch.org/ if you need help to do this change.",
                ));
            }
            check_inplace(t, true, "mark_dirty")?;
        }
        Ok(function_write(t, edge, self.inputs.iter().position(|i| i.same(t)))?)
    }

    /// An input that comes back as it is: a view of itself, made in Python, so that subclasses and overrides see it.
    fn as_view<'py>(&self, o: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if contains(self.saved.as_ref(), tensor(o)?) {
            return Err(runtime(
                "An input that has been returned as-is as output is being saved for backward. This is not supported if you override \
                 setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup ctx inside the forward \
                 function itself.",
            ));
        }
        let _no_grad = ModeGuard::grad(false);
        let _site = Inherit::new(call_site::Site::UNKNOWN);
        let out = o.call_method1(intern!(o.py(), "view_as"), (o,))?;
        tensor(&out)?;
        Ok(out)
    }
}

fn tensor<'a>(o: &'a Bound<'_, PyAny>) -> PyResult<&'a Tensor> {
    as_tensor(o).ok_or_else(|| type_error(format!("view_as of an input that a Function returns gave {}, expected a Tensor", type_name(o))))
}

/// Whether a tensor is a leaf that collects a gradient of its own.
fn is_own_leaf(t: &Tensor) -> bool {
    t.base().is_none() && t.requires_grad() && t.is_leaf_now()
}

fn detached<'py>(o: &Bound<'py, PyAny>, t: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    Ok(crate::python::tensor::identity::wrap(o.py(), t.detach_here())?.into_bound(o.py()))
}
