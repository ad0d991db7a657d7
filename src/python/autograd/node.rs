//! Nodes of the graph as Python objects; `type(t.grad_fn).__name__` is the node's name.
//!
//! The attributes of saved values (`_saved_self`) are made in `saved`, the contexts of custom Functions in `function`.

use crate::array::lock_order::TableLock;
use crate::autograd::engine::hooks::{Registration, next_id};
use crate::autograd::{Grads, Node, engine, ownership};
use crate::python::args::as_tensor;
use crate::python::autograd::collector;
use crate::python::autograd::context_owner::ContextRef;
use crate::python::autograd::function::context_ref;
use crate::python::autograd::hooks::{HookHandle, PyHook};
use crate::python::autograd::saved;
use crate::python::dtype::{device_object, dtype_object, size_object};
use crate::python::errors::{runtime, type_error};
use crate::python::tensor::identity::{wrap, wrap_option};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};
use std::cell::RefCell;
use std::sync::{Arc, Weak};

/// How an object refers to its node. The context of a custom Function has a weak reference while the node owns the context.
enum Hold {
    Nothing,
    Strong(Arc<Node>),
    Weak(Weak<Node>),
}

/// A node of the autograd graph.
#[pyclass(name = "Node", module = "rgrad.autograd.graph", subclass, dict, weakref, frozen)]
pub(crate) struct PyNode {
    hold: TableLock<Hold>,
}

thread_local! {
    /// The node for the object that is being made on this thread.
    static NEXT: RefCell<Option<Arc<Node>>> = const { RefCell::new(None) };
}

/// The classes of nodes by name.
static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

fn class_of<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    let classes = CLASSES.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    if let Some(c) = classes.get_item(name)? {
        return Ok(c.cast_into::<PyType>()?);
    }
    let namespace = PyDict::new(py);
    namespace.set_item("__module__", "rgrad.autograd.graph")?;
    namespace.set_item("__slots__", PyTuple::empty(py))?;
    let bases = PyTuple::new(py, [py.get_type::<PyNode>()])?;
    let class = py.import("builtins")?.getattr("type")?.call1((name, bases, namespace))?.cast_into::<PyType>()?;
    classes.set_item(name, &class)?;
    Ok(class)
}

impl PyNode {
    pub(crate) fn unbound() -> PyNode {
        PyNode { hold: TableLock::new(Hold::Nothing) }
    }

    /// Connects a Function's context with the node that owns it.
    pub(crate) fn tie(&self, node: &Arc<Node>) {
        let old = std::mem::replace(&mut *self.hold.lock(), Hold::Weak(Arc::downgrade(node)));
        drop(old);
    }

    /// Makes a Function's context the owner of its node.
    pub(crate) fn own(&self, node: &Arc<Node>) {
        let old = std::mem::replace(&mut *self.hold.lock(), Hold::Strong(node.clone()));
        drop(old);
    }

    /// The node that this object owns, if others hold it, too.
    pub(crate) fn shared_node(&self) -> Option<Arc<Node>> {
        match &*self.hold.lock() {
            Hold::Strong(n) if Arc::strong_count(n) > 1 => Some(n.clone()),
            _ => None,
        }
    }

    /// Whether this object owns a node that others hold, too, and the node has no counted reference to it. True also while that changes.
    pub(crate) fn is_shared(&self) -> bool {
        self.hold.try_lock().is_none_or(|hold| match &*hold {
            Hold::Strong(n) => Arc::strong_count(n) > 1 && !context_ref(n).is_some_and(ContextRef::is_pinned),
            _ => false,
        })
    }

    /// Whether this object owns its node.
    pub(crate) fn owns(&self) -> bool {
        matches!(&*self.hold.lock(), Hold::Strong(_))
    }

    /// The node that this object owns, unless it changes just now.
    pub(crate) fn owned_node(&self) -> Option<Arc<Node>> {
        match &*self.hold.try_lock()? {
            Hold::Strong(n) => Some(n.clone()),
            _ => None,
        }
    }

    /// What the owned node knows of this object is no longer true.
    fn unknown_to(node: &Arc<Node>) {
        match context_ref(node) {
            Some(owner) => owner.forget(),
            None => node.slot().clear(),
        }
    }

    pub(crate) fn node(&self) -> PyResult<Arc<Node>> {
        let node = match &*self.hold.lock() {
            Hold::Strong(n) => Some(n.clone()),
            Hold::Weak(w) => w.upgrade(),
            Hold::Nothing => None,
        };
        node.ok_or_else(|| {
            runtime(
                "Attribute is invalid for this instance of a Function: its node is not part of a graph (the forward has not returned, no \
                 input requires grad, or the graph is gone)",
            )
        })
    }
}

/// The object of a node: a custom Function's context, or an instance of the class of that name.
pub(crate) fn node_object(py: Python<'_>, node: &Arc<Node>) -> PyResult<Py<PyAny>> {
    if let Some(owner) = context_ref(node) {
        return owner.hand_out(py, node).ok_or_else(|| runtime(format!("{}: the context of this Function is gone", node.name())));
    }
    if let Some(p) = node.slot().get() {
        let obj: *mut ffi::PyObject = p.cast();
        // SAFETY: an object clears the slot in its destructor, under the GIL. A count of 0 means that the destructor runs now.
        unsafe {
            if ffi::Py_REFCNT(obj) > 0 {
                return Ok(Bound::from_borrowed_ptr(py, obj).unbind());
            }
        }
    }
    let class = class_of(py, &node.name())?;
    NEXT.with(|n| *n.borrow_mut() = Some(node.clone()));
    let obj = class.call0()?;
    node.slot().set(obj.as_ptr().cast());
    Ok(obj.unbind())
}

impl Drop for PyNode {
    fn drop(&mut self) {
        if let Hold::Strong(n) = self.hold.get_mut() {
            PyNode::unknown_to(n);
        }
    }
}

#[pymethods]
impl PyNode {
    #[new]
    fn new() -> PyResult<Self> {
        match NEXT.with(|n| n.borrow_mut().take()) {
            Some(node) => Ok(PyNode { hold: TableLock::new(Hold::Strong(node)) }),
            None => Err(type_error("nodes are made by operations on tensors, not by hand")),
        }
    }

    /// The node's name, e.g. "MulBackward0".
    fn name(slf: &Bound<'_, Self>) -> PyResult<String> {
        match slf.get().node() {
            Ok(n) => Ok(n.name()),
            Err(_) => Ok(slf.get_type().name()?.to_string()),
        }
    }

    /// The edges along which the gradients of this node go: `((node, output number), ...)`, with `(None, 0)` for inputs without gradient.
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let node = self.node()?;
        let items = node
            .edges()
            .iter()
            .map(|e| match e {
                Some(e) => Ok((node_object(py, &e.node)?, e.nr)),
                None => Ok((py.None(), 0)),
            })
            .collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, items)
    }

    /// The leaf of an `AccumulateGrad` node.
    #[getter]
    fn variable(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        match slf.get().node()?.variable() {
            Some(t) => wrap(slf.py(), t.clone()),
            None => Err(pyo3::exceptions::PyAttributeError::new_err(format!(
                "'{}' object has no attribute 'variable': only AccumulateGrad nodes have one",
                slf.get_type().name()?
            ))),
        }
    }

    /// The file, line and function that recorded this node, or None.
    #[getter]
    fn call_site(&self) -> PyResult<Option<String>> {
        Ok(self.node()?.site().describe())
    }

    /// A dict for data of the user, which lives as long as the node.
    #[getter]
    fn metadata(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        collector::watch(py);
        let made = self.node()?.metadata(|| Arc::new(PyDict::new(py).unbind()));
        match made.downcast_ref::<Py<PyDict>>() {
            Some(d) => Ok(d.clone_ref(py)),
            None => Err(runtime("the node's metadata is not a dict")),
        }
    }

    /// The number of the node in the order of recording.
    fn _sequence_nr(&self) -> PyResult<u64> {
        Ok(self.node()?.seq())
    }

    /// Registers `fn(grad_inputs, grad_outputs)`, which is called after the node has run. A tuple that it returns replaces the gradients.
    fn register_hook(&self, py: Python<'_>, r#fn: Py<PyAny>) -> PyResult<HookHandle> {
        let node = self.node()?;
        let id = next_id();
        collector::watch(py);
        node.with_hooks(|h| h.post.push((id, Arc::new(PyHook(r#fn)))));
        Ok(HookHandle(Registration::Node(Arc::downgrade(&node), id)))
    }

    /// Registers `fn(grad_outputs)`, which is called before the node runs. A tuple that it returns replaces the gradients.
    fn register_prehook(&self, py: Python<'_>, r#fn: Py<PyAny>) -> PyResult<HookHandle> {
        let node = self.node()?;
        let id = next_id();
        collector::watch(py);
        node.with_hooks(|h| h.pre.push((id, Arc::new(PyHook(r#fn)))));
        Ok(HookHandle(Registration::Node(Arc::downgrade(&node), id)))
    }

    /// Runs the node on gradients of its outputs and frees nothing. Returns one gradient, or a tuple of several.
    #[pyo3(signature = (*grads))]
    fn __call__(&self, py: Python<'_>, grads: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let node = self.node()?;
        if grads.len() != node.outs().len() {
            return Err(type_error(format!("expected {} arguments, got {} instead", node.outs().len(), grads.len())));
        }
        let mut given = Grads::new();
        for (i, g) in grads.iter().enumerate() {
            given.push(match as_tensor(&g) {
                Some(t) => Some(t.clone()),
                None if g.is_none() => None,
                None => {
                    return Err(type_error(format!("argument {i} is not a Variable: {} takes Tensors or None", node.name())));
                }
            });
        }
        let out = py.detach(|| engine::call_node(&node, given))?;
        let mut items = out.into_iter().map(|g| wrap_option(py, g)).collect::<PyResult<Vec<_>>>()?;
        Ok(match items.len() {
            0 => py.None(),
            1 => items.swap_remove(0),
            _ => PyTuple::new(py, items)?.into_any().unbind(),
        })
    }

    /// `_saved_NAME` and `_raw_saved_NAME`: the values that the node has saved for backward, under PyTorch's names.
    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        let found = if name.starts_with("_saved_") || name.starts_with("_raw_saved_") {
            saved::attribute(slf.py(), &slf.get().node()?, name)?
        } else {
            None
        };
        found.ok_or_else(|| saved::no_attribute(slf.as_any(), name))
    }

    fn __dir__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyList>> {
        let names = slf.get().node().map_or_else(|_| Vec::new(), |n| saved::attributes(&n));
        saved::dir(slf.as_any(), names)
    }

    /// Shape, dtype and device of each output of the node, which the gradients share.
    #[getter]
    fn _input_metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let class = py.import("rgrad.autograd.graph")?.getattr("_InputMetadata")?;
        let node = self.node()?;
        let all =
            node.outs().iter().map(|m| class.call1((size_object(py, &m.shape)?, dtype_object(py, m.dtype)?, device_object(m.device))));
        PyTuple::new(py, all.collect::<PyResult<Vec<_>>>()?)
    }

    /// Whether gradients go through this node: always True.
    #[getter]
    fn requires_grad(&self) -> PyResult<bool> {
        self.node().map(|_| true)
    }

    /// Shows what the node alone keeps alive, if only this object holds it, or one that reports this object.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Some(hold) = self.hold.try_lock() else { return Ok(()) };
        let Hold::Strong(node) = &*hold else { return Ok(()) };
        if let Some(now) = collector::active() {
            return now.traverse_node_of(node, &visit);
        }
        // One other holder of the node reports a pinned context, and nothing else.
        let pinned = context_ref(node).is_some_and(ContextRef::is_pinned);
        if Arc::strong_count(node) != 1 + usize::from(pinned) {
            return Ok(());
        }
        let node = node.clone();
        drop(hold);
        collector::collect(&visit, |see| ownership::visit_node(node, !pinned, see))
    }

    fn __clear__(&self) {
        let old = std::mem::replace(&mut *self.hold.lock(), Hold::Nothing);
        if let Hold::Strong(node) = &old {
            PyNode::unknown_to(node);
            if Arc::strong_count(node) == 1 {
                node.release_for_good();
            }
        }
        drop(old);
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!("<{} object at {:#x}>", Self::name(slf)?, slf.as_ptr() as usize))
    }
}

/// The edge along which a gradient of the tensor goes: `(node, output number)`.
#[pyfunction]
fn _gradient_edge(py: Python<'_>, tensor: &Bound<'_, PyAny>) -> PyResult<(Py<PyAny>, u32)> {
    match crate::python::args::tensor(tensor, "get_gradient_edge(): argument 'tensor'")?.gradient_edge()? {
        Some(e) => Ok((node_object(py, &e.node)?, e.nr)),
        None => Err(runtime("It is not possible to get the gradient edge for a Tensor that does not require gradients")),
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_gradient_edge, m)?)?;
    m.add_class::<PyNode>()
}
