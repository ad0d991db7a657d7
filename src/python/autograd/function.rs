//! Custom Functions: forward and backward in Python, one node in the graph.

use super::context_owner::{self, ContextRef};
use super::function_args;
use super::function_gc::{self, is_of};
use super::function_outputs::{self, Roles};
use super::hooks;
use super::node::PyNode;
use super::saved::SavedTensor;
use crate::array::Array;
use crate::autograd::dispatch::call_site::{self, Inherit};
use crate::autograd::dispatch::mode::{self, ModeGuard};
use crate::autograd::dispatch::record::{self, History, NodeRecord};
use crate::autograd::graph::saved_hooks;
use crate::autograd::{Edge, Edges, Grads, Name, Node, NodeOp, OutMeta, Saved, Tensor, Vjp, VjpCx, WeakTensor, function_view};
use crate::autograd::{forward_mode, level, ownership};
use crate::backend::lock_order::Table;
use crate::error::Result;
use crate::layout::Scalar;
use crate::python::args::as_tensor;
use crate::python::errors::{foreign, runtime, type_error};
use crate::python::host::{EndsUnlocked, attach};
use crate::python::tensor::identity::{wrap, wrap_option};
use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The context that `forward` and `backward` share; also the node of the Function in the graph.
#[pyclass(name = "_FunctionCtx", module = "rgrad._core", extends = PyNode, subclass, dict, frozen)]
pub(crate) struct FunctionCtx {
    materialize: AtomicBool,
    state: Table<ContextState>,
}

#[derive(Default)]
struct ContextState {
    /// What `save_for_backward` was given, until the node has it.
    to_save: Option<Py<PyTuple>>,
    dirty: Option<Py<PyTuple>>,
    non_differentiable: Option<Py<PyTuple>>,
    needs: Option<Py<PyTuple>>,
    /// What `save_for_forward` was given, until `jvp` has run.
    for_forward: Option<Py<PyTuple>>,
    /// `jvp` runs: `saved_tensors` is what it was saved.
    in_jvp: bool,
    /// For each saved value, its place in the node; None for a saved None.
    places: Vec<Option<usize>>,
    node: Option<std::sync::Weak<Node>>,
    /// Which outputs have derivatives.
    differentiable: SmallVec<[bool; 4]>,
    /// `saved_tensors` was read, of a Function that gives it once.
    accessed: bool,
    /// The outputs, where some of them were found in the context's attributes. Each holds the context, see `function_gc::hold`.
    outputs: Vec<WeakTensor>,
}

/// A flag that a Function's class may set.
fn flag(ctx: &Bound<'_, PyAny>, name: &Bound<'_, pyo3::types::PyString>) -> PyResult<bool> {
    ctx.get_type().getattr(intern!(ctx.py(), "_forward_cls"))?.getattr(name)?.is_truthy()
}

pub(crate) fn warn(py: Python<'_>, category: &str, message: &str) -> PyResult<()> {
    let category = py.import("builtins")?.getattr(category)?;
    py.import("warnings")?.call_method1("warn", (message, category)).map(drop)
}

/// The node's side: keeps the context alive and calls its `backward`.
struct Backward {
    ctx: ContextRef,
    name: String,
    /// For each argument of `forward`, its edge; None for arguments that are no tensors.
    args: Vec<Option<usize>>,
    edges: usize,
    /// Which outputs are tensors; the others have no gradient.
    tensors: SmallVec<[bool; 2]>,
    _ends: EndsUnlocked,
}

pub(crate) fn traverse(f: &dyn Any, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
    match f.downcast_ref::<Backward>() {
        Some(b) => b.ctx.traverse(visit),
        None => hooks::traverse(f, visit),
    }
}

/// A Function's node's reference to its context; None for other nodes.
pub(crate) fn context_ref(node: &Node) -> Option<&ContextRef> {
    node.foreign()?.downcast_ref::<Backward>().map(|b| &b.ctx)
}

impl Vjp for Backward {
    fn node_name(&self) -> Name {
        self.name.clone().into()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn owned_by_object(&self) -> bool {
        self.ctx.is_pinned()
    }

    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        let _lines = Inherit::suspend();
        attach(|py| {
            let made = self.call(py, cx, grads);
            // `backward` may have stored the context.
            self.ctx.settle(py, cx.node, 1);
            made
        })
        .map_err(foreign)
    }
}

/// The method that computes gradients: `backward`, or `vjp`, its other name.
fn backward_of<'py>(class: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static INHERITED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = class.py();
    let inherited = INHERITED.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
        Ok(py.import("rgrad.autograd.function")?.getattr("Function")?.getattr("backward")?.unbind())
    })?;
    let backward = class.getattr(intern!(py, "backward"))?;
    let vjp = class.getattr(intern!(py, "vjp"))?;
    if vjp.is(inherited) {
        return Ok(backward);
    }
    if backward.is(inherited) {
        return Ok(vjp);
    }
    Err(runtime("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."))
}

impl Backward {
    fn call(&self, py: Python<'_>, cx: &VjpCx<'_>, grads: &Grads) -> PyResult<Grads> {
        let ctx = &self.ctx.get(py).ok_or_else(|| runtime(format!("{}: the context of this Function is gone", self.name)))?;
        let materialize = ctx.cast::<FunctionCtx>()?.get().materialize.load(Ordering::Relaxed);
        let mut args: SmallVec<[Py<PyAny>; 4]> = SmallVec::new();
        for ((g, meta), tensor) in grads.iter().zip(cx.node.outs()).zip(&self.tensors) {
            let g = match g {
                None if materialize && *tensor => Some(Tensor::new(Array::full_on(meta.device, &meta.shape, Scalar::Int(0), meta.dtype)?)),
                g => g.clone(),
            };
            args.push(wrap_option(py, g)?);
        }
        let class = ctx.get_type().getattr(intern!(py, "_forward_cls"))?;
        let backward = backward_of(&class)?;
        if class.getattr(intern!(py, "boxed_grads_call"))?.is_truthy()? {
            let list = PyList::new(py, args.drain(..))?;
            args.push(list.into_any().unbind());
        }
        args.insert(0, ctx.clone().unbind());
        let result = backward.call1(PyTuple::new(py, args)?)?;
        let results: SmallVec<[Bound<'_, PyAny>; 4]> = match result.cast::<PyTuple>() {
            Ok(t) => t.iter().collect(),
            Err(_) => SmallVec::from_elem(result, 1),
        };
        let n = self.args.len();
        if results.len() < n || results[n..].iter().any(|r| !r.is_none()) {
            return Err(runtime(format!(
                "function {} returned an incorrect number of gradients (expected {n}, got {})",
                self.name,
                results.len()
            )));
        }
        let mut out = Grads::from_elem(None, self.edges);
        for (i, r) in results[..n].iter().enumerate() {
            match (self.args[i], as_tensor(r)) {
                (_, None) if r.is_none() => {}
                (Some(e), Some(t)) => out[e] = Some(t.clone()),
                (None, _) => {
                    return Err(runtime(format!(
                        "function {} returned a gradient different than None at position {}, but the corresponding forward input was not a \
                         Variable",
                        self.name,
                        i + 1
                    )));
                }
                (Some(_), None) => {
                    return Err(runtime(format!(
                        "expected Variable or None (got {}) as gradient {} of {}",
                        crate::python::args::type_name(r),
                        i + 1,
                        self.name
                    )));
                }
            }
        }
        Ok(out)
    }
}

#[pymethods]
impl FunctionCtx {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyClassInitializer<Self> {
        PyClassInitializer::from(PyNode::unbound())
            .add_subclass(FunctionCtx { materialize: AtomicBool::new(true), state: Table::default() })
    }

    /// Runs for every subclass: those are the classes of the Functions' contexts.
    #[classmethod]
    #[pyo3(signature = (**_kwargs))]
    fn __init_subclass__(cls: &Bound<'_, PyType>, _kwargs: Option<&Bound<'_, PyDict>>) {
        context_owner::preserve(cls);
    }

    /// Saves tensors (or None) for `backward`, which finds them in `saved_tensors`. They are checked for writes in between.
    #[pyo3(signature = (*tensors))]
    fn save_for_backward(&self, tensors: Bound<'_, PyTuple>) -> PyResult<()> {
        for (i, t) in tensors.iter().enumerate() {
            if !t.is_none() && as_tensor(&t).is_none() {
                return Err(type_error(format!(
                    "save_for_backward can only save variables, but argument {i} is of type {}",
                    crate::python::args::type_name(&t)
                )));
            }
        }
        let old = self.state.lock().to_save.replace(tensors.unbind());
        drop(old);
        Ok(())
    }

    /// Saves tensors (or None) for `jvp`, which finds them in `saved_tensors`.
    #[pyo3(signature = (*tensors))]
    fn save_for_forward(&self, tensors: Bound<'_, PyTuple>) -> PyResult<()> {
        for (i, t) in tensors.iter().enumerate() {
            if !t.is_none() && as_tensor(&t).is_none() {
                return Err(type_error(format!(
                    "save_for_forward can only save tensors, but argument {i} is of type {}",
                    crate::python::args::type_name(&t)
                )));
            }
        }
        let old = self.state.lock().for_forward.replace(tensors.unbind());
        drop(old);
        Ok(())
    }

    /// For each output of `forward`, whether it may have a tangent.
    fn _differentiable(&self) -> Vec<bool> {
        self.state.lock().differentiable.to_vec()
    }

    /// From here to `_end_jvp` `saved_tensors` is what `save_for_forward` was given.
    fn _begin_jvp(&self) {
        self.state.lock().in_jvp = true;
    }

    fn _end_jvp(&self) {
        let old = {
            let mut state = self.state.lock();
            state.in_jvp = false;
            state.for_forward.take()
        };
        drop(old);
    }

    /// Says which inputs `forward` has written in place; each must be returned.
    #[pyo3(signature = (*tensors))]
    fn mark_dirty(&self, tensors: Bound<'_, PyTuple>) {
        let old = self.state.lock().dirty.replace(tensors.unbind());
        drop(old);
    }

    /// Says which outputs have no gradient.
    #[pyo3(signature = (*tensors))]
    fn mark_non_differentiable(&self, tensors: Bound<'_, PyTuple>) {
        let old = self.state.lock().non_differentiable.replace(tensors.unbind());
        drop(old);
    }

    /// Whether missing gradients come to `backward` as zeros (the default) or as None.
    fn set_materialize_grads(&self, value: bool) {
        self.materialize.store(value, Ordering::Relaxed);
    }

    #[getter]
    fn get_materialize_grads(&self) -> bool {
        self.materialize.load(Ordering::Relaxed)
    }

    /// What was saved. Raises RuntimeError after the graph was freed, or if a saved tensor was written since.
    #[getter]
    fn saved_tensors<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        // Errors and empty tuples are made after the lock: making an object may run the garbage collector.
        let (node, places, given) = {
            let state = slf.get().state.lock();
            let given = if state.in_jvp { &state.for_forward } else { &state.to_save };
            let node = if state.in_jvp { None } else { state.node.as_ref().map(std::sync::Weak::upgrade) };
            (node, state.places.clone(), given.as_ref().map(|t| t.bind(py).clone()))
        };
        let node = match node {
            Some(Some(node)) => node,
            Some(None) => return Err(runtime("saved_tensors: the graph of this context is gone")),
            None => return Ok(given.unwrap_or_else(|| PyTuple::empty(py))),
        };
        if node.is_freed() {
            return Err(node.freed_error().into());
        }
        let once = flag(slf.as_any(), intern!(py, "clear_saved_tensors_on_access"))?;
        if once && std::mem::replace(&mut slf.get().state.lock().accessed, true) {
            return Err(runtime(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the autograd.Function. Either access \
                 saved_tensors only once, or set clear_saved_tensors_on_access=False.",
            ));
        }
        let mut out = Vec::with_capacity(places.len());
        for p in places {
            out.push(match p {
                Some(i) => wrap(py, node.unpack(i)?)?,
                None => py.None(),
            });
        }
        if once {
            node.save(SmallVec::new());
        }
        PyTuple::new(py, out)
    }

    /// The same values under an older name.
    #[getter]
    fn saved_variables<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        warn(slf.py(), "DeprecationWarning", "'saved_variables' is deprecated; use 'saved_tensors'")?;
        Self::saved_tensors(slf)
    }

    /// What was saved, as `SavedTensor` objects that take hooks.
    #[getter]
    fn _raw_saved_tensors<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let places = slf.get().state.lock().places.clone();
        let node = slf.as_super().get().node()?;
        if node.is_freed() {
            return Err(node.freed_error().into());
        }
        let all = places.into_iter().map(|p| SavedTensor::object(py, node.clone(), p)).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, all)
    }

    #[getter]
    fn to_save(&self, py: Python<'_>) -> Py<PyAny> {
        self.state.lock().to_save.as_ref().map_or_else(|| py.None(), |t| t.clone_ref(py).into_any())
    }

    /// For each argument of `forward`, whether its gradient is wanted.
    #[getter]
    fn get_needs_input_grad(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let needs = self.state.lock().needs.as_ref().map(|n| n.clone_ref(py));
        needs.ok_or_else(|| PyAttributeError::new_err("needs_input_grad is set when the Function is applied"))
    }

    #[setter]
    fn set_needs_input_grad(&self, needs: Py<PyTuple>) {
        let old = self.state.lock().needs.replace(needs);
        drop(old);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        let Some(state) = self.state.try_lock() else { return Ok(()) };
        // The node's count of this context, which no tensor shows where several have the node.
        if !state.outputs.is_empty()
            && let Some(node) = state.node.as_ref().and_then(std::sync::Weak::upgrade)
            && ownership::sole_places(&node, &state.outputs).is_some_and(|n| n > 1)
            && let Some(f) = node.foreign()
        {
            traverse(f, &visit)?;
        }
        for t in [&state.to_save, &state.dirty, &state.non_differentiable, &state.needs, &state.for_forward].into_iter().flatten() {
            visit.call(t)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let old = std::mem::take(&mut *self.state.lock());
        drop(old);
    }
}

/// The tensors among `forward`'s arguments, and whether each needs a gradient.
struct Inputs {
    tensors: Vec<Tensor>,
    /// The edge of each argument.
    args: Vec<Option<usize>>,
    history: History,
    /// The edges of the tensors before `forward` writes to any; none where nothing is recorded.
    edges: Edges,
}

fn inputs_of(args: &Bound<'_, PyTuple>) -> Result<Inputs> {
    let mut tensors: Vec<Tensor> = Vec::new();
    let place = |a: Bound<'_, PyAny>| {
        as_tensor(&a).map(|t| {
            tensors.push(t.clone());
            tensors.len() - 1
        })
    };
    let args = args.iter().map(place).collect();
    let history = History::of(mode::current(), &tensors);
    let edges = if history.is_recorded() { history.edges(&tensors)? } else { Edges::new() };
    Ok(Inputs { args, history, edges, tensors })
}

/// `cls.apply(*args)`: at the level of plain tensors, unless tangents have to come along.
#[pyfunction]
#[pyo3(signature = (cls, *args, **kwargs))]
fn _function_apply(cls: &Bound<'_, PyType>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
    let py = cls.py();
    // Keyword arguments, and the defaults that setup_context sees, are bound to forward's parameters by the Python layer: each has its place
    // among the gradients.
    let args = match kwargs {
        Some(k) if !k.is_empty() => {
            let bind = py.import("rgrad.autograd.function")?.getattr("_bind_kwargs")?;
            &bind.call1((cls, args, k))?.cast_into::<PyTuple>()?
        }
        _ if function_args::lacks_defaults(cls, args.len())? => {
            let bind = py.import("rgrad.autograd.function")?.getattr("_bind_kwargs")?;
            &bind.call1((cls, args, PyDict::new(py)))?.cast_into::<PyTuple>()?
        }
        _ => args,
    };
    let seen = function_args::through_ended(args)?;
    let args = seen.as_ref().unwrap_or(args);
    if level::depth() > 0 || forward_mode::depth() > 0 {
        return Ok(py.import("rgrad.autograd._function_transforms")?.getattr("apply")?.call1((cls, args))?.unbind());
    }
    Ok(apply_here(cls, args, None)?.0)
}

/// One call at the level of its arguments, with `forward` in the place of the class's own if it is given: the outputs, and the context.
#[pyfunction]
#[pyo3(signature = (cls, args, forward=None))]
fn _function_apply_here(
    cls: &Bound<'_, PyType>,
    args: &Bound<'_, PyTuple>,
    forward: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    apply_here(cls, args, forward)
}

/// Runs `forward` without recording and makes one node of it.
fn apply_here(cls: &Bound<'_, PyType>, args: &Bound<'_, PyTuple>, forward: Option<&Bound<'_, PyAny>>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let py = cls.py();
    let site = call_site::current();
    let ctx = cls.getattr(intern!(py, "_backward_cls"))?.call0()?;
    let cell = ctx.cast::<FunctionCtx>()?;
    let separate = cls.getattr(intern!(py, "_has_setup_context"))?.is_truthy()?;
    let inputs = inputs_of(args)?;
    let any = inputs.history.is_recorded();
    // What the inputs require, whether or not this call is recorded.
    let needs = PyTuple::new(
        py,
        inputs.args.iter().map(|a| a.is_some_and(|i| inputs.history.needs[i] || !any && inputs.tensors[i].requires_grad())),
    )?;
    let old = cell.get().state.lock().needs.replace(needs.unbind());
    drop(old);

    let output = {
        let _no_grad = ModeGuard::node(false);
        let forward = match forward {
            Some(f) => f.clone(),
            None => cls.getattr(intern!(py, "forward"))?,
        };
        if separate {
            let output = forward.call1(args)?;
            cls.getattr(intern!(py, "setup_context"))?.call1((&ctx, args, &output))?;
            output
        } else {
            let mut all: SmallVec<[Bound<'_, PyAny>; 5]> = SmallVec::new();
            all.push(ctx.clone());
            all.extend(args.iter());
            forward.call1(PyTuple::new(py, all)?)?
        }
    };
    let result = finish(py, cls, &ctx, cell, site, inputs, any, &output)?;
    Ok((result, ctx.unbind()))
}

#[allow(clippy::too_many_arguments)]
fn finish(
    py: Python<'_>,
    cls: &Bound<'_, PyType>,
    ctx: &Bound<'_, PyAny>,
    cell: &Bound<'_, FunctionCtx>,
    site: call_site::Site,
    inputs: Inputs,
    any: bool,
    output: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let (outputs, is_tuple) = function_outputs::as_tuple(output)?;
    let (to_save, dirty, non_diff) = {
        let state = cell.get().state.lock();
        let bind = |t: &Option<Py<PyTuple>>| t.as_ref().map(|t| t.bind(py).clone());
        (bind(&state.to_save), bind(&state.dirty), bind(&state.non_differentiable))
    };
    let raw: Vec<Option<Tensor>> = outputs.iter().map(|o| as_tensor(&o).cloned()).collect();
    if let Some(d) = &dirty {
        function_outputs::check_dirty(d, &raw, &cls.name()?.to_string())?;
    }
    if let Some(n) = &non_diff {
        function_outputs::check_non_differentiable(n, &cls.name()?.to_string())?;
    }
    let separate = cls.getattr(intern!(py, "_has_setup_context"))?.is_truthy()?;
    let roles = Roles { inputs: &inputs.tensors, dirty, non_diff, saved: to_save.clone().filter(|_| separate), count: raw.len() };
    let differentiable = raw.iter().map(|t| t.as_ref().is_some_and(|t| roles.is_differentiable(t))).collect();
    cell.get().state.lock().differentiable = differentiable;
    if !any {
        let mut out = Vec::with_capacity(raw.len());
        for (o, t) in outputs.iter().zip(&raw) {
            out.push(match t {
                Some(t) => roles.settle(&o, t, None)?,
                None => o.unbind(),
            });
        }
        return function_outputs::give(py, output, out, is_tuple);
    }

    let metas: SmallVec<[OutMeta; 1]> = raw
        .iter()
        .map(|t| match t {
            Some(t) => t.with_array(OutMeta::of),
            None => OutMeta { shape: SmallVec::new(), dtype: crate::layout::DType::F32, device: crate::array::Device::CPU },
        })
        .collect();
    let edges = inputs.edges;
    let backward = Backward {
        ctx: ContextRef::owning(ctx.clone().unbind()),
        name: ctx.get_type().name()?.to_string(),
        args: inputs.args.clone(),
        edges: edges.len(),
        tensors: raw.iter().map(Option::is_some).collect(),
        _ends: EndsUnlocked,
    };
    let node = record::begin(NodeRecord::new(NodeOp::Other(Arc::new(backward)), edges, metas), site);
    ctx.cast::<PyNode>()?.get().tie(&node);

    let kept = kept_inputs(to_save.as_ref(), &raw)?;
    let mut results: Vec<Py<PyAny>> = Vec::with_capacity(raw.len());
    let mut made: Vec<Option<Tensor>> = Vec::with_capacity(raw.len());
    let mut rebased: SmallVec<[usize; 1]> = SmallVec::new();
    let mut several = 0;
    for (j, (o, t)) in outputs.iter().zip(&raw).enumerate() {
        let Some(t) = t else {
            results.push(o.unbind());
            made.push(None);
            continue;
        };
        let differentiable = roles.is_differentiable(t);
        several += usize::from(differentiable);
        if differentiable && roles.is_written_view(t) {
            rebased.push(j);
        }
        let result = roles.settle(&o, t, differentiable.then(|| Edge { node: node.clone(), nr: j as u32 }))?;
        made.push(as_tensor(result.bind(py)).cloned());
        results.push(result);
    }
    if several > 1 {
        made.iter().flatten().for_each(|t| function_view(t, true));
    }
    save(cell, &node, to_save.as_ref(), kept, &raw, &made, &rebased)?;
    let keeps_outputs = function_gc::noticed(cls, ctx, &node, &made)?;
    if keeps_outputs && made.len() > 1 {
        cell.get().state.lock().outputs = function_gc::hold(ctx, &node, &made)?;
    }
    match context_ref(&node) {
        Some(owner) if keeps_outputs => owner.fix(),
        // `forward` may have stored the context. The caller and the node have references of their own.
        Some(owner) => owner.settle(py, &node, 2),
        None => {}
    }
    function_outputs::give(py, output, results, is_tuple)
}

/// What `save_for_backward` was given beside outputs, with the histories from before the node becomes the outputs'. Nothing for outputs.
fn kept_inputs(to_save: Option<&Bound<'_, PyTuple>>, raw: &[Option<Tensor>]) -> PyResult<SmallVec<[Saved; 2]>> {
    let input = |o: Bound<'_, PyAny>| match as_tensor(&o) {
        Some(t) if !raw.iter().flatten().any(|r| r.same(t)) => Saved::input_beside(t, raw),
        _ => Ok(Saved::Nothing),
    };
    Ok(to_save.into_iter().flatten().map(input).collect::<Result<_>>()?)
}

/// Moves what `save_for_backward` was given to the node: outputs without their own history, everything else as it was.
fn save(
    cell: &Bound<'_, FunctionCtx>,
    node: &Arc<Node>,
    to_save: Option<&Bound<'_, PyTuple>>,
    inputs: SmallVec<[Saved; 2]>,
    raw: &[Option<Tensor>],
    made: &[Option<Tensor>],
    rebased: &[usize],
) -> PyResult<()> {
    let hooks = saved_hooks::current();
    let mut saved: SmallVec<[Saved; 2]> = SmallVec::new();
    let mut places = Vec::new();
    for (o, input) in to_save.into_iter().flatten().zip(inputs) {
        let Some(t) = as_tensor(&o) else {
            places.push(None);
            continue;
        };
        places.push(Some(saved.len()));
        let output = raw.iter().position(|r| r.as_ref().is_some_and(|r| r.same(t)));
        let own = output.and_then(|j| made[j].as_ref().map(|m| (j, m)));
        let (kept, tensor) = match own {
            Some((j, m)) if is_of(m, node)? => (Saved::output(m, j as u32), m),
            Some((j, m)) if rebased.contains(&j) => (Saved::output_as_view(m, j as u32), m),
            Some(_) => (Saved::input(t)?, t),
            None => (input, t),
        };
        saved.push(match &hooks {
            Some(hooks) => saved_hooks::packed(&**hooks, kept, tensor)?,
            None => kept,
        });
    }
    node.save(saved);
    let mut state = cell.get().state.lock();
    state.places = places;
    state.node = Some(Arc::downgrade(node));
    let old = (state.to_save.take(), state.dirty.take(), state.non_differentiable.take());
    drop(state);
    drop(old);
    Ok(())
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<FunctionCtx>()?;
    context_owner::register(m)?;
    m.add_function(wrap_pyfunction!(_function_apply_here, m)?)?;
    m.add_function(wrap_pyfunction!(_function_apply, m)?)
}
