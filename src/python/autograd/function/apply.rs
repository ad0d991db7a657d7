//! `Function.apply`: runs `forward` without recording it and makes one node of it.

use super::args::through_ended;
use super::class::{self, FunctionClass};
use super::context::{FunctionCtx, Needs};
use super::node::ArgumentEdges;
use super::vectorcall::Arguments;
use super::{record, short};
use crate::autograd::dispatch::call_site::{self, Site};
use crate::autograd::dispatch::mode::{self, ModeGuard};
use crate::autograd::dispatch::record::History;
use crate::autograd::{Edges, Tensor, dual_levels, level, profiler};
use crate::error::Result;
use crate::python::args::as_tensor;
use crate::python::autograd::context_owner;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use smallvec::SmallVec;
use std::sync::Arc;

/// The tensors among `forward`'s arguments, and whether each needs a gradient.
pub(super) struct Inputs {
    pub tensors: SmallVec<[Tensor; 4]>,
    /// The edge of each argument.
    pub args: ArgumentEdges,
    pub history: History,
    /// The edges of the tensors before `forward` writes to any; none where nothing is recorded.
    pub edges: Edges,
}

fn inputs_of(args: &Bound<'_, PyTuple>) -> Result<Inputs> {
    let (mut tensors, mut places): (SmallVec<[Tensor; 4]>, ArgumentEdges) = (SmallVec::new(), SmallVec::new());
    for a in args.iter_borrowed() {
        places.push(as_tensor(&a).map(|t| {
            tensors.push(t.clone());
            tensors.len() as u32 - 1
        }));
    }
    let history = History::of(mode::current(), &tensors);
    let edges = if history.is_recorded() { history.edges(&tensors)? } else { Edges::new() };
    Ok(Inputs { args: places, history, edges, tensors })
}

impl Inputs {
    /// For each argument, whether it requires a gradient, whether or not this call is recorded.
    fn needs(&self) -> SmallVec<[bool; 8]> {
        let any = self.history.is_recorded();
        let mut needs = SmallVec::new();
        for place in &self.args {
            needs.push(place.is_some_and(|i| {
                let i = i as usize;
                self.history.needs[i] || !any && self.tensors[i].requires_grad()
            }));
        }
        needs
    }
}

/// One call, after `forward` has run.
pub(super) struct Call<'a, 'py> {
    pub class: &'a Bound<'py, PyType>,
    pub ctx: &'a Bound<'py, FunctionCtx>,
    pub site: Site,
    pub inputs: Inputs,
    /// Whether `setup_context` has filled the context.
    pub separate: bool,
    /// The node's name.
    pub name: Arc<str>,
}

/// What a call needs of its class, as it is when the call begins.
struct ClassNow<'py> {
    context: Bound<'py, PyType>,
    name: Arc<str>,
    separate: bool,
    once: bool,
    arguments: Option<usize>,
    forward: Bound<'py, PyAny>,
}

impl<'py> ClassNow<'py> {
    fn of(entry: &Bound<'py, FunctionClass>) -> PyResult<ClassNow<'py>> {
        let py = entry.py();
        entry.get().read(py, |m| ClassNow {
            context: m.context.bind(py).clone(),
            name: m.name.clone(),
            separate: m.separate,
            once: m.clears_saved,
            arguments: m.arguments,
            forward: m.forward.bind(py).clone(),
        })
    }
}

/// `cls.apply(*args)`: at the level of plain tensors, unless tangents have to come along.
#[pyfunction]
#[pyo3(signature = (cls, *args, **kwargs))]
fn _function_apply(cls: &Bound<'_, PyType>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
    let py = cls.py();
    let entry = FunctionClass::of(cls)?;
    let class = ClassNow::of(&entry)?;
    // Keyword arguments, and the defaults that setup_context sees, are bound to forward's parameters by the Python layer: each has its place
    // among the gradients.
    let bound = match kwargs {
        Some(k) if !k.is_empty() => Some(class::bound(cls, args, kwargs)?),
        _ if class.separate && class.arguments != Some(args.len()) => Some(class::bound(cls, args, None)?),
        _ => None,
    };
    let args = bound.as_ref().unwrap_or(args);
    let transformed = level::depth() > 0 || dual_levels::depth() > 0;
    let below =
        if transformed || args.iter_borrowed().any(|a| as_tensor(&a).is_some_and(|t| t.level() > 0)) { through_ended(args)? } else { None };
    let args = below.as_ref().unwrap_or(args);
    if transformed {
        return Ok(py.import("rgrad.autograd._function_transforms")?.getattr("apply")?.call1((cls, args))?.unbind());
    }
    Ok(apply_here(cls, &entry, class, args)?.0)
}

/// One call at the level of its arguments, with `forward` in the place of the class's own if it is given: the outputs, and the context.
#[pyfunction]
#[pyo3(signature = (cls, args, forward=None))]
fn _function_apply_here(
    cls: &Bound<'_, PyType>,
    args: &Bound<'_, PyTuple>,
    forward: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let entry = FunctionClass::of(cls)?;
    let mut class = ClassNow::of(&entry)?;
    if let Some(forward) = forward {
        class.forward = forward.clone();
    }
    let (result, ctx) = apply_here(cls, &entry, class, args)?;
    Ok((result, ctx.into_any().unbind()))
}

fn apply_here<'py>(
    cls: &Bound<'py, PyType>,
    entry: &Bound<'py, FunctionClass>,
    class: ClassNow<'py>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<(Py<PyAny>, Bound<'py, FunctionCtx>)> {
    let py = cls.py();
    let site = call_site::current();
    let ctx = context_owner::new_context(&class.context, FunctionCtx::of(Some(entry.clone().unbind()), class.once))?;
    let inputs = inputs_of(args)?;
    let _event = if profiler::is_on() { profiler::custom(cls.name()?.to_string(), &inputs.tensors) } else { None };
    ctx.get().state.lock().needs = Needs::Flags(inputs.needs());

    let output = {
        let _no_grad = ModeGuard::node(false);
        if class.separate {
            let output = class.forward.call1(args)?;
            let setup = entry.get().read(py, |m| m.setup_context.clone_ref(py))?;
            let mut given = Arguments::new(py);
            given.push(ctx.clone().into_any());
            given.push(args.clone().into_any());
            given.push(output.clone());
            given.call(setup.bind(py))?;
            output
        } else {
            let mut given = Arguments::new(py);
            given.push(ctx.clone().into_any());
            for a in args.iter() {
                given.push(a);
            }
            given.call(&class.forward)?
        }
    };
    let call = Call { class: cls, ctx: &ctx, site, inputs, separate: class.separate, name: class.name };
    let result = match short::finish(call, &output)? {
        Ok(result) => result,
        Err(call) => record::finish(call, &output)?,
    };
    Ok((result, ctx))
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_function_apply_here, m)?)?;
    m.add_function(wrap_pyfunction!(_function_apply, m)?)
}
