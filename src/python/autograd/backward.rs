//! Calls of the engine: `Tensor.backward`, `autograd.backward`, `autograd.grad`, and their arguments. Also anomaly mode.
//!
//! Graph tasks, input buffers and the ready queue are in the core's `autograd::engine`.

use crate::array::Array;
use crate::autograd::{Edge, Node, OutMeta, Tensor, anomaly, call_site, engine, graph_task, level, missing_gradient};
use crate::error::Error;
use crate::layout::{DType, Dims, Scalar, fmt_shape};
use crate::python::args::{as_tensor, tensor, type_name};
use crate::python::autograd::node::PyNode;
use crate::python::errors::{foreign, runtime, type_error};
use crate::python::host::attach;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::{release_pending, wrap_option};
use pyo3::exceptions::{PyIndexError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyMapping, PyTuple};
use std::sync::atomic::{AtomicBool, Ordering};

/// A root or an input: a tensor, or the edge along which its gradient goes.
enum Target {
    Tensor(Tensor),
    Edge(Edge),
}

impl Target {
    /// The edge; None for a tensor that does not require grad.
    fn edge(&self) -> PyResult<Option<Edge>> {
        Ok(match self {
            Target::Tensor(t) => t.gradient_edge()?,
            Target::Edge(e) => Some(e.clone()),
        })
    }

    /// As `edge`. A view from a no_grad block of what requires grad gets an edge to which nothing leads.
    fn input_edge(&self) -> PyResult<Option<Edge>> {
        Ok(match (self.edge()?, self) {
            (None, Target::Tensor(t)) if t.requires_grad() => {
                let meta = t.with_array(OutMeta::of);
                Some(Edge { node: Node::accumulate(t.clone(), meta, call_site::current()), nr: 0 })
            }
            (edge, _) => edge,
        })
    }
}

/// An edge from a pair of a node and an output number, such as a `GradientEdge`; None for other objects.
fn edge_of(obj: &Bound<'_, PyAny>) -> PyResult<Option<Edge>> {
    let Ok(pair) = obj.cast::<PyTuple>() else { return Ok(None) };
    if !(2..=3).contains(&pair.len()) {
        return Ok(None);
    }
    let first = pair.get_item(0)?;
    let Ok(node) = first.cast::<PyNode>() else { return Ok(None) };
    Ok(Some(Edge { node: node.get().node()?, nr: pair.get_item(1)?.extract()? }))
}

fn target(obj: &Bound<'_, PyAny>, what: impl Fn() -> String) -> PyResult<Target> {
    if let Some(t) = as_tensor(obj) {
        return Ok(Target::Tensor(t.clone()));
    }
    match edge_of(obj)? {
        Some(e) => Ok(Target::Edge(e)),
        None => {
            let (what, got) = (what(), type_name(obj));
            Err(if what.starts_with("inputs") {
                runtime(format!("all inputs have to be Tensors or GradientEdges, but got {got} as {what}"))
            } else {
                type_error(format!("{what} must be a Tensor, but got {got} (a GradientEdge will do too)"))
            })
        }
    }
}

/// One target, or a sequence of them.
fn targets(obj: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<Target>> {
    if let Some(t) = as_tensor(obj) {
        return Ok(vec![Target::Tensor(t.clone())]);
    }
    if let Some(e) = edge_of(obj)? {
        return Ok(vec![Target::Edge(e)]);
    }
    let items =
        obj.try_iter().map_err(|_| type_error(format!("{what} must be a Tensor or a sequence of Tensors, but got {}", type_name(obj))))?;
    items.enumerate().map(|(i, o)| target(&o?, || format!("{what}[{i}]"))).collect()
}

/// The targets of `inputs=`, and their names if it is a dict.
fn inputs_of(obj: &Bound<'_, PyAny>, caller: &str) -> PyResult<(Vec<Target>, Vec<String>)> {
    let (found, names) = if let Ok(d) = obj.cast_exact::<PyDict>() {
        let names = d.keys().iter().map(|k| Ok(k.str()?.to_string())).collect::<PyResult<_>>()?;
        (targets(&d.values(), "inputs")?, names)
    } else {
        let plain = as_tensor(obj).is_some() || obj.is_instance_of::<PyTuple>() || obj.is_instance_of::<PyList>();
        if !plain && obj.cast::<PyMapping>().is_ok() {
            return Err(type_error(format!(
                "`inputs` argument to `{caller}()` must be a dict, not {}. Other Mapping types are not supported.",
                type_name(obj)
            )));
        }
        (targets(obj, "inputs")?, Vec::new())
    };
    if found.is_empty() {
        return Err(Error::graph(format!("`inputs` argument to `{caller}()` cannot be empty.")).into());
    }
    Ok((found, names))
}

#[cold]
fn no_graph(i: usize, t: &Tensor) -> PyErr {
    let e = Error::runtime(format!("element {i} of tensors does not require grad and does not have a grad_fn"));
    match missing_gradient::explain_root(t) {
        Some(why) => e.note(why).into(),
        None => e.into(),
    }
}

/// A root and its gradient; ones for a scalar without a given gradient.
fn root(i: usize, t: &Target, grad: Option<&Tensor>) -> PyResult<(Edge, Tensor)> {
    match t {
        Target::Tensor(t) => tensor_root(i, t, grad),
        Target::Edge(edge) => match edge.node.outs().get(edge.nr as usize) {
            Some(meta) => start(i, edge.clone(), meta.shape.clone(), grad),
            None => Err(PyIndexError::new_err(format!(
                "output {i}: {} has {} outputs, none with the number {}",
                edge.node.name(),
                edge.node.outs().len(),
                edge.nr
            ))),
        },
    }
}

fn tensor_root(i: usize, t: &Tensor, grad: Option<&Tensor>) -> PyResult<(Edge, Tensor)> {
    match t.gradient_edge()? {
        Some(edge) => start(i, edge, t.shape(), grad),
        None => {
            if let Some(g) = grad {
                check_shape(i, g, &t.shape())?;
                check_complex(i, g, t.dtype())?;
            }
            Err(no_graph(i, t))
        }
    }
}

fn check_shape(i: usize, grad: &Tensor, shape: &[usize]) -> PyResult<()> {
    if grad.shape()[..] == *shape {
        return Ok(());
    }
    Err(Error::graph(format!(
        "Mismatch in shape: grad_output[{i}] has a shape of rgrad.Size({:?}) and output[{i}] has a shape of rgrad.Size({shape:?}).",
        &grad.shape()[..],
    ))
    .into())
}

/// Refuses a complex gradient of a real output, and a real one of a complex output.
fn check_complex(i: usize, grad: &Tensor, dtype: DType) -> PyResult<()> {
    if grad.dtype().is_complex() == dtype.is_complex() {
        return Ok(());
    }
    Err(Error::graph(format!(
        "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: grad_output[{i}] has a dtype \
         of {} and output[{i}] has a dtype of {}.",
        dtype_name(grad.dtype()),
        dtype_name(dtype)
    ))
    .into())
}

fn dtype_name(dtype: DType) -> String {
    format!("rgrad.{dtype}")
}

fn start(i: usize, edge: Edge, shape: Dims, grad: Option<&Tensor>) -> PyResult<(Edge, Tensor)> {
    let grad = match grad {
        Some(g) => {
            check_shape(i, g, &shape)?;
            check_complex(i, g, edge.node.outs()[edge.nr as usize].dtype)?;
            g.clone()
        }
        None if shape.iter().product::<usize>() != 1 => {
            return Err(Error::graph(format!(
                "grad can be implicitly created only for scalar outputs; output {i} has shape {}: pass the gradient to start from, or reduce \
                 it by sum()",
                fmt_shape(&shape)
            ))
            .into());
        }
        None => {
            let meta = &edge.node.outs()[edge.nr as usize];
            if !meta.dtype.is_float() {
                let text = format!("grad can be implicitly created only for real scalar outputs but got {}", dtype_name(meta.dtype));
                return Err(Error::graph(text).into());
            }
            Tensor::new(Array::full_on(meta.device, &shape, Scalar::Int(1), meta.dtype)?)
        }
    };
    Ok((edge, grad))
}

fn roots(outputs: &[Target], grads: &Bound<'_, PyAny>) -> PyResult<Vec<(Edge, Tensor)>> {
    let one = |i: usize, t: &Target, g: &Bound<'_, PyAny>| {
        let grad = match as_tensor(g) {
            Some(g) => Some(g),
            None if g.is_none() => None,
            None => return Err(type_error(format!("gradients can be either Tensors or None, but got {}", type_name(g)))),
        };
        root(i, t, grad)
    };
    if grads.is_none() {
        return outputs.iter().enumerate().map(|(i, t)| root(i, t, None)).collect();
    }
    let given: Vec<Bound<'_, PyAny>> = if as_tensor(grads).is_some() {
        vec![grads.clone()]
    } else {
        grads
            .try_iter()
            .map_err(|_| type_error(format!("gradients can be either Tensors or None, but got {}", type_name(grads))))?
            // One too many is told as well as an iterator without end.
            .take(outputs.len() + 1)
            .collect::<PyResult<_>>()?
    };
    if given.len() != outputs.len() {
        return Err(Error::graph(format!("got {} tensors and {} gradients", outputs.len(), given.len())).into());
    }
    outputs.iter().zip(&given).enumerate().map(|(i, (t, g))| one(i, t, g)).collect()
}

/// Runs a graph task without the GIL.
fn run(py: Python<'_>, roots: Vec<(Edge, Tensor)>, mut options: engine::Options) -> PyResult<Vec<Option<Tensor>>> {
    if options.create_graph && anomaly::is_on() {
        options.call_site = call_site::current();
    }
    let result = py.detach(|| engine::run(roots, &options));
    release_pending(py);
    Ok(result?)
}

/// Whether warnings that are shown once are shown each time.
static WARN_ALWAYS: AtomicBool = AtomicBool::new(false);

/// Sets whether warnings that are otherwise shown once in a process are shown each time.
#[pyfunction]
#[pyo3(signature = (b, /))]
fn set_warn_always(b: &Bound<'_, PyAny>) -> PyResult<()> {
    match b.cast::<PyBool>() {
        Ok(on) => {
            WARN_ALWAYS.store(on.is_true(), Ordering::Relaxed);
            Ok(())
        }
        Err(_) => Err(runtime(format!("setWarnOnlyOnce expects a bool, but got {}", crate::python::args::type_name(b)))),
    }
}

/// Whether `set_warn_always` is on.
#[pyfunction]
fn is_warn_always_enabled() -> bool {
    WARN_ALWAYS.load(Ordering::Relaxed)
}

/// Shows a UserWarning if `shown` says that it has not been shown yet in this process.
pub(crate) fn warn_once(py: Python<'_>, shown: &AtomicBool, text: &std::ffi::CStr) -> PyResult<()> {
    warn_once_at(py, shown, text, 1)
}

/// As `warn_once`, for a Python frame further out than the innermost, which is 1.
pub(crate) fn warn_once_at(py: Python<'_>, shown: &AtomicBool, text: &std::ffi::CStr, frame: i32) -> PyResult<()> {
    if !WARN_ALWAYS.load(Ordering::Relaxed) && shown.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, frame)
}

/// Warns once that `create_graph` makes reference cycles between parameters and gradients.
fn warn_of_cycle(py: Python<'_>) -> PyResult<()> {
    static SHOWN: AtomicBool = AtomicBool::new(false);
    warn_once(
        py,
        &SHOWN,
        c"Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a memory \
          leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this function, make sure to reset \
          the .grad fields of your parameters to None after use to break the cycle and avoid the leak.",
    )
}

/// Runs a graph task that accumulates gradients into `.grad` of all leaves, or of `inputs`.
fn accumulate(py: Python<'_>, roots: Vec<(Edge, Tensor)>, mut options: engine::Options, inputs: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    if level::depth() > 0 {
        return Err(runtime(
            "backward() called inside a function transform. This is not supported, please use rgrad.func.grad or rgrad.func.vjp instead or call \
             backward() outside of function transforms.",
        ));
    }
    if options.create_graph {
        warn_of_cycle(py)?;
    }
    if let Some(inputs) = inputs.filter(|i| !i.is_none()) {
        let (wanted, names) = inputs_of(inputs, "backward")?;
        for w in &wanted {
            if let Target::Tensor(t) = w {
                t.retain_grad()?;
            }
            options.inputs.extend(w.input_edge()?);
        }
        options.names = names;
        options.accumulate = true;
    }
    run(py, roots, options)?;
    Ok(())
}

#[pymethods]
impl PyTensor {
    /// Adds the gradients of this tensor with respect to the leaves, or to `inputs`, to their `.grad`.
    ///
    /// Args:
    ///     gradient: The gradient of this tensor, of its shape. It may be missing for a tensor of one element.
    ///     retain_graph: Whether the graph is kept for another backward; by default the value of `create_graph`.
    ///     create_graph: Whether the operations of backward are recorded, for derivatives of higher order.
    ///     inputs: The tensors whose `.grad` is written; all leaves by default. A dict, such as `dict(model.named_parameters())`, also names
    ///         them in errors.
    ///     strict: Whether a missing gradient is an error, raised before anything is computed: of one of `inputs`, or without them of a leaf
    ///         from which a recorded cut separates this tensor. The error names the lines of the cut.
    ///
    /// Raises:
    ///     RuntimeError: There is no graph, the graph was freed, `gradient` has another shape, or `strict` finds a missing gradient.
    #[pyo3(signature = (gradient=None, retain_graph=None, create_graph=false, inputs=None, *, strict=false))]
    fn backward(
        slf: &Bound<'_, Self>,
        gradient: Option<&Bound<'_, PyAny>>,
        retain_graph: Option<bool>,
        create_graph: bool,
        inputs: Option<&Bound<'_, PyAny>>,
        strict: bool,
    ) -> PyResult<()> {
        let gradient = match gradient {
            Some(g) if !g.is_none() => Some(tensor(g, "backward(): argument 'gradient'")?),
            _ => None,
        };
        let roots = vec![tensor_root(0, Self::of(slf), gradient)?];
        let level = Self::of(slf).level();
        let options =
            engine::Options { retain_graph: retain_graph.unwrap_or(create_graph), create_graph, strict, level, ..Default::default() };
        accumulate(slf.py(), roots, options, inputs)
    }
}

/// The engine behind `autograd.backward` and `autograd.grad`; see there.
#[pyfunction]
#[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)]
#[pyo3(signature = (tensors, grad_tensors, retain_graph, create_graph, inputs=None, allow_unreachable=false, accumulate_grad=false,
                    materialize=false, strict=false))]
fn _run_backward<'py>(
    py: Python<'py>,
    tensors: &Bound<'py, PyAny>,
    grad_tensors: &Bound<'py, PyAny>,
    retain_graph: bool,
    create_graph: bool,
    inputs: Option<&Bound<'py, PyAny>>,
    allow_unreachable: bool,
    accumulate_grad: bool,
    materialize: bool,
    strict: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    let outputs = targets(tensors, if accumulate_grad { "tensors" } else { "outputs" })?;
    let level = outputs.iter().map(|t| if let Target::Tensor(t) = t { t.level() } else { 0 }).max().unwrap_or(0);
    let mut options = engine::Options { retain_graph, create_graph, strict, level, ..Default::default() };
    if accumulate_grad || inputs.is_none_or(|i| i.is_none()) {
        accumulate(py, roots(&outputs, grad_tensors)?, options, inputs)?;
        return Ok(PyTuple::empty(py));
    }
    let (wanted, names) = match inputs {
        Some(i) => inputs_of(i, "grad")?,
        None => Default::default(),
    };
    options.names = names;
    let roots = roots(&outputs, grad_tensors)?;
    for w in &wanted {
        options.inputs.push(w.input_edge()?.ok_or_else(|| runtime("One of the differentiated Tensors does not require grad"))?);
    }
    let mut out = Vec::with_capacity(wanted.len());
    for (i, g) in run(py, roots, options)?.into_iter().enumerate() {
        let g = match (g, &wanted[i]) {
            (None, _) if !allow_unreachable => return Err(unused(i, &outputs, &wanted[i])),
            (None, Target::Tensor(t)) if materialize => {
                let zeros = Tensor::new(t.memory().full_beside(&t.shape(), Scalar::Int(0), t.dtype())?);
                zeros.set_requires_grad(create_graph)?;
                Some(zeros)
            }
            (None, Target::Edge(_)) if materialize => {
                return Err(runtime("materialize_grads cannot be used when the given input is a GradientEdge"));
            }
            (g, _) => g,
        };
        out.push(wrap_option(py, g)?);
    }
    PyTuple::new(py, out)
}

#[cold]
fn unused(i: usize, outputs: &[Target], input: &Target) -> PyErr {
    let e = Error::runtime(format!(
        "The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if this is the desired \
         behavior."
    ));
    let roots: Vec<Edge> = outputs.iter().filter_map(|o| o.edge().ok().flatten()).collect();
    match input.edge().ok().flatten().and_then(|input| missing_gradient::explain(&roots, &input)) {
        Some(why) => e.note(why).into(),
        None => e.into(),
    }
}

/// Registers `callback()`, which is called when the graph task that this thread runs has ended.
#[pyfunction]
fn _queue_callback(callback: Py<PyAny>) -> PyResult<()> {
    graph_task::queue(Box::new(move || attach(|py| callback.call0(py).map(drop)).map_err(foreign)))?;
    Ok(())
}

/// The id of the graph task that this thread runs, or -1.
#[pyfunction]
fn _current_graph_task_id() -> i64 {
    graph_task::current_pass().map_or(-1, |id| id as i64)
}

/// Switches anomaly mode on or off, for all threads.
///
/// Args:
///     enabled: Whether anomaly mode is on.
///     check_nan: Whether a NaN in a gradient is an error.
#[pyfunction]
#[pyo3(signature = (enabled, check_nan=None), text_signature = "(enabled, check_nan=True)")]
fn set_anomaly_enabled(enabled: &Bound<'_, PyAny>, check_nan: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let flag = |value: &Bound<'_, PyAny>, name: &str, position: u32| match value.cast::<PyBool>() {
        Ok(on) => Ok(on.is_true()),
        Err(_) => Err(type_error(format!(
            "set_anomaly_enabled(): argument '{name}' (position {position}) must be bool, not {}",
            crate::python::args::type_name(value)
        ))),
    };
    let on = flag(enabled, "enabled", 1)?;
    let check = check_nan.map_or(Ok(true), |value| flag(value, "check_nan", 2))?;
    anomaly::set(on, check);
    Ok(())
}

/// Whether anomaly mode is on.
#[pyfunction]
fn is_anomaly_enabled() -> bool {
    anomaly::is_on()
}

/// Whether a NaN in a gradient is an error in anomaly mode.
#[pyfunction]
fn is_anomaly_check_nan_enabled() -> bool {
    anomaly::checks_nan()
}

/// Whether graph tasks of this thread may use other threads.
#[pyfunction]
fn _is_multithreading_enabled() -> bool {
    graph_task::fresh_threads()
}

/// Sets whether graph tasks of this thread may use other threads.
#[pyfunction]
fn _set_multithreading_enabled(on: bool) {
    graph_task::set_fresh_threads(on);
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_run_backward, m)?)?;
    m.add_function(wrap_pyfunction!(_queue_callback, m)?)?;
    m.add_function(wrap_pyfunction!(_current_graph_task_id, m)?)?;
    m.add_function(wrap_pyfunction!(set_anomaly_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(set_warn_always, m)?)?;
    m.add_function(wrap_pyfunction!(is_warn_always_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(is_anomaly_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(is_anomaly_check_nan_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_is_multithreading_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_set_multithreading_enabled, m)?)
}
