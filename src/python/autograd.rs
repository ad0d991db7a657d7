//! Backward, gradients, modes and hooks on tensors.

use super::args::{as_tensor, tensor};
use super::errors::{runtime, type_error};
use super::hooks::{HookHandle, PyHook};
use super::identity::{release_pending, wrap, wrap_option};
use super::node::node_object;
use super::tensor::PyTensor;
use crate::array::Array;
use crate::autograd::hooks::{Registration, next_id};
use crate::autograd::mode::{self, Mode};
use crate::autograd::{Edge, Tensor, engine};
use crate::error::Error;
use crate::layout::Scalar;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// Runs the engine without the GIL.
fn run(py: Python<'_>, roots: Vec<(Edge, Tensor)>, options: engine::Options) -> PyResult<Vec<Option<Tensor>>> {
    let result = py.detach(|| engine::run(roots, &options));
    release_pending(py);
    Ok(result?)
}

#[cold]
fn no_graph(i: usize) -> PyErr {
    runtime(format!("element {i} of tensors does not require grad and does not have a grad_fn"))
}

/// Ones like an array. Not under the lock of its tensor: what is made on a device may have to wait.
fn ones_beside(a: &Array) -> PyResult<Tensor> {
    Ok(Tensor::new(a.full_beside(a.shape(), Scalar::Int(1), a.dtype())?))
}

/// A root and its gradient; ones for a scalar that has none.
fn root(i: usize, t: &Tensor, grad: Option<&Tensor>) -> PyResult<(Edge, Tensor)> {
    let Some(edge) = t.gradient_edge()? else { return Err(no_graph(i)) };
    let grad = match grad {
        Some(g) => {
            if g.shape() != t.shape() {
                return Err(runtime(format!(
                    "Mismatch in shape: grad_output[{i}] has a shape of rgrad.Size({:?}) and output[{i}] has a shape of rgrad.Size({:?}).",
                    &g.shape()[..],
                    &t.shape()[..]
                )));
            }
            g.clone()
        }
        None if t.numel() == 1 => ones_beside(&t.array())?,
        None => return Err(runtime("grad can be implicitly created only for scalar outputs")),
    };
    Ok((edge, grad))
}

/// A tuple or list of tensors, or one tensor.
fn tensors(obj: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<Tensor>> {
    if let Some(t) = as_tensor(obj) {
        return Ok(vec![t.clone()]);
    }
    obj.try_iter()
        .map_err(|_| type_error(format!("{what} must be a Tensor or a sequence of Tensors, not {}", super::args::type_name(obj))))?
        .map(|o| Ok(tensor(&o?, what)?.clone()))
        .collect()
}

/// Where the gradients of `inputs` arrive; each must require one.
fn edges_of(inputs: &[Tensor]) -> PyResult<Vec<Edge>> {
    inputs.iter().map(|t| t.gradient_edge()?.ok_or_else(|| runtime("One of the differentiated Tensors does not require grad"))).collect()
}

/// Gradients at the edges of `inputs`, added to their `.grad`.
fn accumulate_at(py: Python<'_>, roots: Vec<(Edge, Tensor)>, mut options: engine::Options, inputs: &[Tensor]) -> PyResult<()> {
    if inputs.is_empty() {
        return Err(runtime("`inputs` argument to `backward()` cannot be empty."));
    }
    options.inputs = edges_of(inputs)?;
    let create = options.create_graph;
    let grads = run(py, roots, options)?;
    for (t, g) in inputs.iter().zip(grads) {
        // A tensor that retains its gradient has got it in passing.
        if let Some(g) = g
            && (t.is_leaf() || !t.retains_grad())
        {
            py.detach(|| crate::autograd::into_grad(t, g, create))?;
        }
    }
    Ok(())
}

#[pymethods]
impl PyTensor {
    #[pyo3(signature = (*_args, **_kwargs))]
    fn __init__(slf: &Bound<'_, Self>, _args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, pyo3::types::PyDict>>) {
        super::identity::link(slf);
    }

    /// Adds the gradients of this tensor with respect to the leaves (or to `inputs`) to their `.grad`.
    ///
    /// `gradient` has this tensor's shape; it may be left out for a tensor of one element. Raises RuntimeError when there is no graph,
    /// when the graph was freed, or when the shape of `gradient` differs.
    #[pyo3(signature = (gradient=None, retain_graph=None, create_graph=false, inputs=None))]
    fn backward(
        slf: &Bound<'_, Self>,
        gradient: Option<&Bound<'_, PyAny>>,
        retain_graph: Option<bool>,
        create_graph: bool,
        inputs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let gradient = match gradient {
            Some(g) if !g.is_none() => Some(tensor(g, "backward(): argument 'gradient'")?),
            _ => None,
        };
        let roots = vec![root(0, Self::of(slf), gradient)?];
        let options = engine::Options { retain_graph: retain_graph.unwrap_or(create_graph), create_graph, inputs: Vec::new() };
        match inputs {
            Some(i) if !i.is_none() => accumulate_at(py, roots, options, &tensors(i, "inputs")?),
            _ => run(py, roots, options).map(drop),
        }
    }

    #[getter]
    fn get_grad(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let t = Self::of(slf);
        if let Some(g) = t.grad() {
            return wrap(py, g);
        }
        if !t.is_leaf() && !t.retains_grad() {
            PyErr::warn(
                py,
                &py.get_type::<PyUserWarning>(),
                c"The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during \
                  autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the \
                  non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead.",
                1,
            )?;
        }
        Ok(py.None())
    }

    #[setter]
    fn set_grad(slf: &Bound<'_, Self>, grad: &Bound<'_, PyAny>) -> PyResult<()> {
        let grad = if grad.is_none() {
            None
        } else {
            Some(
                as_tensor(grad)
                    .ok_or_else(|| {
                        type_error(format!(
                            "assigned grad expected to be a Tensor or None but got grad of type {}",
                            super::args::type_name(grad)
                        ))
                    })?
                    .clone(),
            )
        };
        Ok(Self::of(slf).set_grad(grad)?)
    }

    #[deleter]
    fn delete_grad(slf: &Bound<'_, Self>) -> PyResult<()> {
        Ok(Self::of(slf).set_grad(None)?)
    }

    /// The node that made this tensor; None for a leaf.
    #[getter]
    fn grad_fn(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        match Self::of(slf).grad_fn()? {
            Some(e) => node_object(py, &e.node),
            None => Ok(py.None()),
        }
    }

    #[getter]
    fn output_nr(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Ok(Self::of(slf).grad_fn()?.map_or(0, |e| e.nr))
    }

    #[getter]
    fn get_requires_grad(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).requires_grad()
    }

    #[setter]
    fn set_requires_grad(slf: &Bound<'_, Self>, on: bool) -> PyResult<()> {
        Ok(Self::of(slf).set_requires_grad(on)?)
    }

    /// Switches the recording of operations on this tensor on or off; only for leaves of floating point dtype.
    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_<'py>(slf: &Bound<'py, Self>, requires_grad: bool) -> PyResult<Bound<'py, Self>> {
        Self::of(slf).set_requires_grad(requires_grad)?;
        Ok(slf.clone())
    }

    #[getter]
    fn is_leaf(slf: &Bound<'_, Self>) -> PyResult<bool> {
        // A view whose node cannot be made anew says so.
        let t = Self::of(slf);
        Ok(!t.requires_grad() || t.grad_fn()?.is_none())
    }

    /// Makes backward keep this tensor's gradient in `.grad` although it is no leaf.
    fn retain_grad(slf: &Bound<'_, Self>) -> PyResult<()> {
        Ok(Self::of(slf).retain_grad()?)
    }

    #[getter]
    fn retains_grad(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).retains_grad()
    }

    /// The same memory without history; writes are seen on both sides and counted as one.
    fn detach(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        wrap(slf.py(), Self::of(slf).detach())
    }

    /// Forgets this tensor's own history.
    fn detach_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        Self::of(slf).detach_in_place()?;
        Ok(slf.clone())
    }

    /// The same memory without history, with a version counter of its own.
    #[getter]
    fn get_data(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        wrap(slf.py(), Self::of(slf).data())
    }

    #[setter]
    fn set_data(slf: &Bound<'_, Self>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        Ok(Self::of(slf).set_data(tensor(data, "Variable data has to be a tensor, got")?)?)
    }

    #[getter]
    fn _version(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Self::of(slf).version().ok_or_else(|| runtime("Inference tensors do not track version counter."))
    }

    #[getter]
    fn _base(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        wrap_option(slf.py(), Self::of(slf).base())
    }

    fn _is_view(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).base().is_some()
    }

    fn is_inference(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).is_inference()
    }

    /// Registers `hook(grad)`, called with each gradient of this tensor; a returned tensor replaces it.
    fn register_hook(slf: &Bound<'_, Self>, hook: Py<PyAny>) -> PyResult<HookHandle> {
        let t = Self::of(slf);
        if !t.requires_grad() {
            return Err(runtime("cannot register a hook on a tensor that doesn't require gradient"));
        }
        Ok(HookHandle(t.register_hook(Arc::new(PyHook(hook)))?))
    }

    /// Registers `hook(leaf)`, called whenever this leaf's `.grad` is complete.
    fn register_post_accumulate_grad_hook(slf: &Bound<'_, Self>, hook: Py<PyAny>) -> PyResult<HookHandle> {
        let t = Self::of(slf);
        if !t.requires_grad() {
            return Err(runtime("cannot register a hook on a tensor that doesn't require gradient"));
        }
        if !t.is_leaf() {
            return Err(runtime("post accumulate grad hooks cannot be registered on non-leaf tensors"));
        }
        let id = next_id();
        t.with_leaf_hooks(|h| h.post_accumulate.push((id, Arc::new(PyHook(hook)))));
        Ok(HookHandle(Registration::Leaf(t.downgrade(), id)))
    }
}

/// The engine behind `autograd.backward` and `autograd.grad`; see there.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
#[pyo3(signature = (tensors_, grad_tensors, retain_graph, create_graph, inputs=None, allow_unreachable=false, accumulate_grad=false))]
fn _run_backward<'py>(
    py: Python<'py>,
    tensors_: &Bound<'py, PyAny>,
    grad_tensors: &Bound<'py, PyAny>,
    retain_graph: bool,
    create_graph: bool,
    inputs: Option<&Bound<'py, PyAny>>,
    allow_unreachable: bool,
    accumulate_grad: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    let outputs = tensors(tensors_, "outputs")?;
    let mut given: Vec<Option<Tensor>> = Vec::new();
    if grad_tensors.is_none() {
        given.resize(outputs.len(), None);
    } else {
        for g in grad_tensors.try_iter()? {
            let g = g?;
            given.push(if g.is_none() { None } else { Some(tensor(&g, "gradients can be either Tensors or None; a gradient")?.clone()) });
        }
    }
    if given.len() != outputs.len() {
        return Err(runtime(format!("got {} tensors and {} gradients", outputs.len(), given.len())));
    }
    let mut roots = Vec::new();
    for (i, (t, g)) in outputs.iter().zip(&given).enumerate() {
        roots.push(root(i, t, g.as_ref())?);
    }
    let mut options = engine::Options { retain_graph, create_graph, inputs: Vec::new() };
    let wanted = match inputs {
        Some(i) if !i.is_none() => tensors(i, "inputs")?,
        _ => Vec::new(),
    };
    if wanted.is_empty() {
        run(py, roots, options)?;
        return Ok(PyTuple::empty(py));
    }
    if accumulate_grad {
        accumulate_at(py, roots, options, &wanted)?;
        return Ok(PyTuple::empty(py));
    }
    options.inputs = edges_of(&wanted)?;
    let mut out = Vec::new();
    for g in run(py, roots, options)? {
        if g.is_none() && !allow_unreachable {
            return Err(runtime(
                "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the desired \
                 behavior.",
            ));
        }
        out.push(wrap_option(py, g)?);
    }
    PyTuple::new(py, out)
}

/// Whether operations are recorded on this thread.
#[pyfunction]
fn is_grad_enabled() -> bool {
    mode::is_grad_enabled()
}

#[pyfunction]
fn _set_grad_enabled(on: bool) {
    mode::set_grad_enabled(on);
}

/// Whether this thread is in inference mode.
#[pyfunction]
fn is_inference_mode_enabled() -> bool {
    mode::current().inference
}

#[pyfunction]
fn _set_inference_mode(on: bool) {
    mode::set(Mode { inference: on, ..mode::current() });
}

/// Bytes that CPU tensors hold.
#[pyfunction]
fn memory_allocated() -> usize {
    crate::backend::cpu::alloc::memory_allocated()
}

/// The most bytes that CPU tensors have held since the last reset.
#[pyfunction]
fn max_memory_allocated() -> usize {
    crate::backend::cpu::alloc::max_memory_allocated()
}

/// Starts `max_memory_allocated` anew.
#[pyfunction]
fn reset_peak_memory_stats() {
    crate::backend::cpu::alloc::reset_peak_memory_stats();
}

/// Gives memory that lies idle for reuse back to the system.
#[pyfunction]
fn empty_cache() {
    crate::backend::cpu::alloc::empty_cache();
}

/// Limits the bytes that tensors may hold together; 0 means what the machine has.
#[pyfunction]
fn set_memory_limit(bytes: usize) {
    crate::backend::cpu::alloc::set_memory_limit(bytes);
}

/// Makes the n-th allocation from now fail (0: the next); negative switches this off. For tests.
#[pyfunction]
fn _fail_allocation_in(n: i64) {
    crate::backend::cpu::alloc::fail_in(n);
}

/// How many threads kernels use.
#[pyfunction]
fn get_num_threads() -> usize {
    crate::backend::cpu::threads::num_threads()
}

/// Sets how many threads kernels use, at least 1.
#[pyfunction]
fn set_num_threads(n: &Bound<'_, PyAny>) -> PyResult<()> {
    let n =
        n.extract::<i64>().map_err(|_| Error::runtime(format!("set_num_threads expects an int, but got {}", super::args::type_name(n))))?;
    let n = usize::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| Error::runtime("set_num_threads expects a positive integer"))?;
    crate::backend::cpu::threads::set_num_threads(n);
    Ok(())
}

#[pyfunction]
fn _before_fork() {
    crate::array::fusion::before_fork();
    crate::backend::cpu::alloc::before_fork();
}

#[pyfunction]
fn _after_fork(child: bool) {
    crate::backend::cpu::alloc::after_fork();
    crate::array::fusion::after_fork();
    if child {
        crate::backend::cpu::threads::after_fork();
    }
}

/// Adds one to the version counters of one or several tensors, as a write would.
#[pyfunction]
fn _increment_version(tensor_or_list: &Bound<'_, PyAny>) -> PyResult<()> {
    for t in tensors(tensor_or_list, "tensor")? {
        t.increment_version("increment_version");
    }
    Ok(())
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_run_backward, m)?)?;
    m.add_function(wrap_pyfunction!(is_grad_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_set_grad_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(is_inference_mode_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_set_inference_mode, m)?)?;
    m.add_function(wrap_pyfunction!(memory_allocated, m)?)?;
    m.add_function(wrap_pyfunction!(max_memory_allocated, m)?)?;
    m.add_function(wrap_pyfunction!(reset_peak_memory_stats, m)?)?;
    m.add_function(wrap_pyfunction!(empty_cache, m)?)?;
    m.add_function(wrap_pyfunction!(set_memory_limit, m)?)?;
    m.add_function(wrap_pyfunction!(_fail_allocation_in, m)?)?;
    m.add_function(wrap_pyfunction!(get_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(set_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(_before_fork, m)?)?;
    m.add_function(wrap_pyfunction!(_after_fork, m)?)?;
    m.add_function(wrap_pyfunction!(_increment_version, m)?)?;
    let os = m.py().import("os")?;
    let kwargs = pyo3::types::PyDict::new(m.py());
    kwargs.set_item("before", m.getattr("_before_fork")?)?;
    let partial = m.py().import("functools")?.getattr("partial")?;
    kwargs.set_item("after_in_parent", partial.call1((m.getattr("_after_fork")?, false))?)?;
    kwargs.set_item("after_in_child", partial.call1((m.getattr("_after_fork")?, true))?)?;
    os.call_method("register_at_fork", (), Some(&kwargs))?;
    Ok(())
}
