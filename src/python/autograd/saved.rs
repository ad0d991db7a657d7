//! Saved values as Python sees them: hooks around them, `_saved_self` and its kin, and a callback before writes.

use crate::autograd::dispatch::call_site::{self, Inherit};
use crate::autograd::dispatch::record::{self, NodeRecord};
use crate::autograd::dispatch::write_callback::{self, WriteCallback};
use crate::autograd::graph::saved_attributes::SavedAttribute;
use crate::autograd::graph::saved_hooks::{self, PackedTensor, SavedTensorHooks};
use crate::autograd::{Edges, Grads, Name, Node, NodeOp, Saved, Saves, Tensor, Vjp, VjpCx, WeakTensor, task_plan};
use crate::error::Result;
use crate::python::args::as_tensor;
use crate::python::autograd::collector;
use crate::python::convert::to_python::number;
use crate::python::errors::{foreign, runtime, type_error};
use crate::python::host::{EndsUnlocked, attach};
use crate::python::tensor::identity::wrap;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::{Arc, Weak};

/// A pair of Python callables.
struct PyPacker {
    pack: Py<PyAny>,
    unpack: Py<PyAny>,
    _ends: EndsUnlocked,
}

/// What `pack` returned, with the `unpack` that understands it.
struct PyPacked {
    value: Py<PyAny>,
    unpack: Py<PyAny>,
    _ends: EndsUnlocked,
}

impl SavedTensorHooks for PyPacker {
    fn pack(&self, t: &Tensor) -> Result<Arc<dyn PackedTensor>> {
        let _lines = Inherit::suspend();
        attach(|py| -> PyResult<Arc<dyn PackedTensor>> {
            let value = self.pack.bind(py).call1((wrap(py, t.clone())?,))?;
            Ok(Arc::new(PyPacked { value: value.unbind(), unpack: self.unpack.clone_ref(py), _ends: EndsUnlocked }))
        })
        .map_err(foreign)
    }
}

impl PackedTensor for PyPacked {
    fn unpack(&self) -> Result<Tensor> {
        let _lines = Inherit::suspend();
        attach(|py| {
            let made = self.unpack.bind(py).call1((&self.value,))?;
            as_tensor(&made).cloned().ok_or_else(|| {
                type_error(format!(
                    "Output of saved tensor unpack_hook expected to be a Tensor but got result of type {}",
                    crate::python::args::type_name(&made)
                ))
            })
        })
        .map_err(foreign)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// What hooks have made of the values that a node has saved.
pub(crate) fn packed_values(py: Python<'_>, node: &Arc<Node>) -> Vec<Py<PyAny>> {
    let all: Vec<Saved> = (0..node.saved_len()).filter_map(|k| node.saved_at(k).ok()).collect();
    let value = |s: &Saved| match s {
        Saved::Packed(p) => p.packed().as_any().downcast_ref::<PyPacked>().map(|p| p.value.clone_ref(py)),
        _ => None,
    };
    all.iter().filter_map(value).collect()
}

/// Shows what hooks made of a saved tensor to the garbage collector.
pub(crate) fn traverse(packed: &dyn Any, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
    match packed.downcast_ref::<PyPacked>() {
        Some(p) => {
            visit.call(&p.value)?;
            visit.call(&p.unpack)
        }
        None => Ok(()),
    }
}

fn packer(pack: &Bound<'_, PyAny>, unpack: &Bound<'_, PyAny>, caller: &str) -> PyResult<PyPacker> {
    collector::watch(pack.py());
    for (name, f) in [("pack_hook", pack), ("unpack_hook", unpack)] {
        if !f.is_callable() {
            return Err(type_error(format!("{caller}: expected {name} to be callable, got {}", crate::python::args::type_name(f))));
        }
    }
    Ok(PyPacker { pack: pack.clone().unbind(), unpack: unpack.clone().unbind(), _ends: EndsUnlocked })
}

/// Adds a pair of hooks for what this thread saves from now on.
#[pyfunction]
fn _push_saved_tensors_hooks(pack: &Bound<'_, PyAny>, unpack: &Bound<'_, PyAny>) -> PyResult<()> {
    Ok(saved_hooks::push(Arc::new(packer(pack, unpack, "saved_tensors_hooks")?))?)
}

/// Takes the innermost pair of hooks away.
#[pyfunction]
fn _pop_saved_tensors_hooks() {
    saved_hooks::pop();
}

/// Refuses further hooks with this message, or with None allows them; gives the message that was in force before.
#[pyfunction]
fn _refuse_saved_tensors_hooks(message: Option<String>) -> PyResult<Option<String>> {
    Ok(saved_hooks::refuse(message)?)
}

struct PyWatcher {
    callback: Py<PyAny>,
    _ends: EndsUnlocked,
}

impl WriteCallback for PyWatcher {
    fn before(&self, t: &Tensor) -> Result<()> {
        let _lines = Inherit::suspend();
        attach(|py| self.callback.bind(py).call1((wrap(py, t.clone())?,)).map(drop)).map_err(foreign)
    }
}

/// Sets the function that sees every tensor before this thread writes it in place; None takes it away.
#[pyfunction]
fn _set_before_write(f: Option<Py<PyAny>>) {
    write_callback::set(f.map(|f| Arc::new(PyWatcher { callback: f, _ends: EndsUnlocked }) as Arc<dyn WriteCallback>));
}

/// Where a gradient arrives, held weakly: hooks there may hold this.
enum Target {
    Node(Weak<Node>),
    Leaf(WeakTensor),
}

/// While one of these lives, backward passes can tell what they are going to run: for instance how many of these tensors' gradients.
#[pyclass(module = "rgrad._core", frozen, name = "_PassesWanted")]
struct PassesWanted {
    _request: task_plan::PlanRequest,
    targets: Vec<Target>,
}

#[pymethods]
impl PassesWanted {
    #[new]
    #[pyo3(signature = (*tensors))]
    fn new(tensors: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let mut targets = Vec::new();
        for t in tensors {
            let t = crate::python::args::tensor(&t, "a multi-grad hook's tensor")?;
            targets.push(match t.grad_fn()? {
                Some(e) => Target::Node(Arc::downgrade(&e.node)),
                None => Target::Leaf(t.downgrade()),
            });
        }
        Ok(PassesWanted { _request: task_plan::PlanRequest::default(), targets })
    }

    /// How many of the tensors' gradients the pass computes that this thread is inside of.
    fn count(&self) -> PyResult<usize> {
        let mut n = 0;
        for t in &self.targets {
            let node = match t {
                Target::Node(node) => node.upgrade(),
                Target::Leaf(leaf) => match leaf.upgrade() {
                    Some(leaf) => leaf.gradient_edge()?.map(|e| e.node),
                    None => None,
                },
            };
            n += usize::from(node.is_some_and(|node| task_plan::runs(&node)));
        }
        Ok(n)
    }
}

/// The id of the graph task that this thread runs, if the task lists the nodes that it is going to run; else -1.
#[pyfunction]
fn _tracked_graph_task_id() -> i64 {
    task_plan::current_task().and_then(|id| i64::try_from(id).ok()).unwrap_or(-1)
}

/// Whether no pass that this thread is inside of is after certain inputs only.
#[pyfunction]
fn _is_checkpoint_valid() -> bool {
    task_plan::covers_all_leaves()
}

/// The file, line and function of the operation that is being called now, or None.
#[pyfunction]
fn _describe_call_site() -> Option<String> {
    call_site::current().describe()
}

/// A value that a node saves for backward.
#[pyclass(module = "rgrad.autograd", frozen, name = "SavedTensor")]
pub(crate) struct SavedTensor {
    node: Arc<Node>,
    /// Where it lies; None where nothing was saved.
    place: Option<usize>,
}

impl SavedTensor {
    pub(crate) fn object(py: Python<'_>, node: Arc<Node>, place: Option<usize>) -> PyResult<Py<PyAny>> {
        Ok(Bound::new(py, SavedTensor { node, place })?.into_any().unbind())
    }

    fn saved(&self) -> PyResult<Saved> {
        Ok(match self.place {
            Some(place) => self.node.saved_at(place)?,
            None => Saved::Nothing,
        })
    }
}

#[pymethods]
impl SavedTensor {
    #[new]
    fn new() -> PyResult<Self> {
        Err(runtime("Trying to create a SavedTensor object from Python is forbidden."))
    }

    /// The saved tensor, or None. Raises RuntimeError after the graph was freed, or if it was written in place since.
    fn unpack(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match (self.saved()?, self.place) {
            (Saved::Nothing, _) | (_, None) => Ok(py.None()),
            (_, Some(place)) => wrap(py, self.node.unpack(place)?),
        }
    }

    /// What is kept: what the pack hook returned, or the tensor.
    #[getter]
    fn data(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.saved()? {
            Saved::Packed(p) => match p.packed().as_any().downcast_ref::<PyPacked>() {
                Some(p) => Ok(p.value.clone_ref(py)),
                None => Ok(py.None()),
            },
            Saved::Input { tensor, .. } => wrap(py, tensor),
            Saved::Alias(a) => wrap(py, a.tensor()),
            Saved::Nothing => Ok(py.None()),
            other => wrap(py, other.unpack(&self.node)?.detach()),
        }
    }

    /// The hook that `data` will be given to, or None.
    #[getter]
    fn unpack_hook(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.saved()? {
            Saved::Packed(p) => Ok(p.packed().as_any().downcast_ref::<PyPacked>().map_or_else(|| py.None(), |p| p.unpack.clone_ref(py))),
            _ => Ok(py.None()),
        }
    }

    /// Packs this value by `pack_hook(tensor)` now; `unpack_hook` makes a tensor of the result when backward asks.
    ///
    /// Raises RuntimeError if nothing is saved here, if it has hooks already, or after the graph was freed.
    fn register_hooks(&self, pack_hook: &Bound<'_, PyAny>, unpack_hook: &Bound<'_, PyAny>) -> PyResult<()> {
        let packer = packer(pack_hook, unpack_hook, "register_hooks")?;
        match self.place {
            Some(place) => Ok(saved_hooks::pack_one(&self.node, place, &packer)?),
            None => Err(saved_hooks::nothing_there().into()),
        }
    }
}

/// A node that belongs to no graph and keeps one value.
struct Holder;

impl Vjp for Holder {
    fn node_name(&self) -> Name {
        "SavedTensor".into()
    }

    fn vjp(&self, _cx: &VjpCx<'_>, _grads: &Grads) -> Result<Grads> {
        Ok(Grads::new())
    }
}

/// A tensor saved as an operation would save it: packed by the hooks in force, checked for writes in between.
#[pyfunction]
fn _make_saved_tensor(py: Python<'_>, tensor: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let t = crate::python::args::tensor(tensor, "_make_saved_tensor(): argument 'tensor'")?;
    let mut saved = Saved::input(t)?;
    if let Some(hooks) = saved_hooks::current() {
        saved = saved_hooks::packed(&*hooks, saved, t)?;
    }
    let mut entry = NodeRecord::new(NodeOp::Other(Arc::new(Holder)), Edges::new(), SmallVec::new());
    entry.saved.push(saved);
    let node = record::begin(entry, call_site::current());
    SavedTensor::object(py, node, Some(0))
}

/// The attribute `_saved_NAME` or `_raw_saved_NAME` of a node; None if it is no such name.
pub(crate) fn attribute(py: Python<'_>, node: &Arc<Node>, name: &str) -> PyResult<Option<Py<PyAny>>> {
    let (raw, short) = match (name.strip_prefix("_saved_"), name.strip_prefix("_raw_saved_")) {
        (Some(short), _) => (false, short),
        (_, Some(short)) => (true, short),
        _ => return Ok(None),
    };
    let attributes = node.saved_attributes();
    let Some((_, kept)) = attributes.iter().find(|(n, _)| *n == short) else { return Ok(None) };
    let tensor = |bit: usize| -> PyResult<Py<PyAny>> {
        let place = node.position_of(bit);
        match place {
            _ if raw => SavedTensor::object(py, node.clone(), place),
            None => Ok(py.None()),
            Some(place) => match node.saved_at(place)? {
                Saved::Nothing => Ok(py.None()),
                saved => {
                    let tensor = saved.unpack(node)?;
                    match (node.op(), bit.checked_sub(Saves::FIRST_OUTPUT)) {
                        (NodeOp::Other(op), Some(j)) => wrap(py, op.shown_output(j, tensor)?),
                        _ => wrap(py, tensor),
                    }
                }
            },
        }
    };
    Ok(Some(match kept {
        SavedAttribute::Input(i) => tensor(*i)?,
        SavedAttribute::Output(j) => tensor(Saves::FIRST_OUTPUT + j)?,
        SavedAttribute::Inputs(from, to) => PyTuple::new(py, (*from..*to).map(tensor).collect::<PyResult<Vec<_>>>()?)?.into_any().unbind(),
        _ if raw => return Ok(None),
        SavedAttribute::Int(i) => i.into_pyobject(py)?.into_any().unbind(),
        SavedAttribute::Ints(all) => PyTuple::new(py, all.iter().copied())?.into_any().unbind(),
        SavedAttribute::Bool(b) => b.into_pyobject(py)?.to_owned().into_any().unbind(),
        SavedAttribute::Number(n) => number(py, *n)?,
        SavedAttribute::Text(s) => s.into_pyobject(py)?.into_any().unbind(),
        SavedAttribute::Nothing => py.None(),
    }))
}

/// The names that `attribute` knows for a node.
pub(crate) fn attributes(node: &Node) -> Vec<String> {
    let mut names = Vec::new();
    for (name, kept) in node.saved_attributes() {
        names.push(format!("_saved_{name}"));
        if matches!(kept, SavedAttribute::Input(_) | SavedAttribute::Inputs(..) | SavedAttribute::Output(_)) {
            names.push(format!("_raw_saved_{name}"));
        }
    }
    names
}

#[cold]
pub(crate) fn no_attribute(obj: &Bound<'_, PyAny>, name: &str) -> PyErr {
    PyAttributeError::new_err(format!("'{}' object has no attribute '{name}'", crate::python::args::type_name(obj)))
}

/// `object.__dir__` and these names.
pub(crate) fn dir<'py>(obj: &Bound<'py, PyAny>, more: Vec<String>) -> PyResult<Bound<'py, PyList>> {
    let py = obj.py();
    let names = py.get_type::<PyAny>().call_method1("__dir__", (obj,))?.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    let list = PyList::new(py, names)?;
    for name in more {
        list.append(name)?;
    }
    list.sort()?;
    Ok(list)
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<SavedTensor>()?;
    m.add_class::<PassesWanted>()?;
    m.add_function(wrap_pyfunction!(_push_saved_tensors_hooks, m)?)?;
    m.add_function(wrap_pyfunction!(_pop_saved_tensors_hooks, m)?)?;
    m.add_function(wrap_pyfunction!(_refuse_saved_tensors_hooks, m)?)?;
    m.add_function(wrap_pyfunction!(_set_before_write, m)?)?;
    m.add_function(wrap_pyfunction!(_make_saved_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(_tracked_graph_task_id, m)?)?;
    m.add_function(wrap_pyfunction!(_is_checkpoint_valid, m)?)?;
    m.add_function(wrap_pyfunction!(_describe_call_site, m)?)
}
