//! Around each run of the garbage collector: contexts are pinned (`context_owner`), and before a full run a census is taken of what objects hold
//! together (`autograd::tensor::census`), so that cycles of any form are found.
//!
//! Not here: what one object shows the collector by itself (`tensor::identity`, `node`).

use super::context_owner;
use super::node::PyNode;
use crate::array::lock_order::TableLock;
use crate::autograd::census::{Census, SharedValue, Snapshot};
use crate::autograd::ownership::Foreign;
use crate::autograd::{Node, Tensor};
use crate::python::tensor::identity::{self, traverse_foreign};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyType};
use pyo3::{PyTraverseError, PyVisit};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

/// A value that several objects hold, while the collector runs. It counts one reference for each handle of the value, all of which are this file's.
#[pyclass(module = "rgrad._core", name = "_SharedValue", frozen)]
struct Proxy {
    value: SharedValue,
    handles: usize,
}

#[pymethods]
impl Proxy {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match active() {
            Some(now) => collect(&visit, |see| now.snapshot.visit_parts(&self.value, see)),
            None => Ok(()),
        }
    }

    fn __clear__(&self) {
        self.value.clear(self.handles);
    }
}

/// The census of the run that goes on.
pub(crate) struct Active {
    snapshot: Snapshot,
    /// The proxies, and how many references to each are owned here.
    proxies: Vec<(Py<Proxy>, usize)>,
}

/// Written under the GIL, by the thread that collects; null between full runs.
static ACTIVE: AtomicPtr<Active> = AtomicPtr::new(std::ptr::null_mut());

/// The census, while the collector makes a full run.
pub(crate) fn active<'a>() -> Option<&'a Active> {
    // SAFETY: it is freed after the run, by the same thread, and its users are the functions that the collector calls, which return before.
    unsafe { ACTIVE.load(Ordering::Relaxed).as_ref() }
}

/// Shows the collector what a walk finds.
pub(crate) fn collect(visit: &PyVisit<'_>, walk: impl FnOnce(&mut dyn FnMut(Foreign<'_>))) -> Result<(), PyTraverseError> {
    let mut result = Ok(());
    identity::while_traversing(|| {
        walk(&mut |f| {
            if result.is_ok() {
                result = traverse_foreign(f, visit);
            }
        });
    });
    result
}

impl Active {
    /// Shows what an object shows that holds this tensor.
    pub(crate) fn traverse_tensor_of(&self, t: &Tensor, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        collect(visit, |see| self.snapshot.visit_tensor_of(t, see))
    }

    /// Shows what an object shows that holds this node.
    pub(crate) fn traverse_node_of(&self, n: &Arc<Node>, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        collect(visit, |see| self.snapshot.visit_node_of(n, see))
    }
}

/// What an object is, by its type.
#[derive(Clone, Copy)]
enum ObjectKind {
    Tensor,
    Node,
    Other,
}

/// `gc.get_objects`. Not imported in a collection: the frame it interrupts may have no `__import__`, as a named tuple's `__new__` has none.
static GET_OBJECTS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Returns how many tensors and nodes were counted.
fn take_census(py: Python<'_>) -> PyResult<usize> {
    let Some(get_objects) = GET_OBJECTS.get(py) else { return Ok(0) };
    let objects = get_objects.bind(py).call0()?.cast_into::<PyList>()?;
    let nodes = py.get_type::<PyNode>();
    let mut kinds: FxHashMap<usize, ObjectKind> = FxHashMap::default();
    let mut census = Census::default();
    for object in objects.iter() {
        let class = object.get_type_ptr();
        let kind = *kinds.entry(class.addr()).or_insert_with(|| {
            // SAFETY: the type of a live object.
            let is = |base: *mut ffi::PyTypeObject| unsafe { ffi::PyType_IsSubtype(class, base) != 0 };
            match (is(identity::base_type()), is(nodes.as_type_ptr())) {
                (true, _) => ObjectKind::Tensor,
                (_, true) => ObjectKind::Node,
                _ => ObjectKind::Other,
            }
        });
        match kind {
            ObjectKind::Tensor => {
                // SAFETY: an object of this type, which the list keeps alive.
                if let Some(t) = unsafe { identity::held_tensor(object.as_ptr()) } {
                    census.tensor_of(t, t.keeps_object());
                }
            }
            ObjectKind::Node => {
                // SAFETY: an object of this type. Contexts are classes of Python, derived from that of nodes.
                if let Some(node) = unsafe { object.cast_unchecked::<PyNode>() }.get().owned_node() {
                    census.node_of(&node);
                }
            }
            ObjectKind::Other => {}
        }
    }
    drop(objects);
    let counted = census.len();
    let mut proxies = Vec::new();
    let snapshot = census.finish(|value, handles| -> PyResult<*mut ()> {
        let proxy = Bound::new(py, Proxy { value, handles })?;
        let address = proxy.as_ptr().cast();
        for _ in 1..handles {
            // SAFETY: a live object, whose references are given back after the run.
            unsafe { ffi::Py_INCREF(proxy.as_ptr()) };
        }
        proxies.push((proxy.unbind(), handles));
        Ok(address)
    });
    match snapshot {
        Ok(Some(snapshot)) => {
            let new = Box::into_raw(Box::new(Active { snapshot, proxies }));
            end(ACTIVE.swap(new, Ordering::Relaxed));
            Ok(counted)
        }
        other => {
            release(proxies);
            other.map(|_| counted)
        }
    }
}

fn release(proxies: Vec<(Py<Proxy>, usize)>) {
    for (proxy, handles) in proxies {
        for _ in 1..handles {
            // SAFETY: one of the references that `take_census` has added. The last one ends below.
            unsafe { ffi::Py_DECREF(proxy.as_ptr()) };
        }
        drop(proxy);
    }
}

fn end(old: *mut Active) {
    if !old.is_null() {
        // SAFETY: from `Box::into_raw`, and taken out of the only place that has it.
        let old = unsafe { Box::from_raw(old) };
        release(old.proxies);
    }
}

/// When the last large census ended, and how long it took.
static LAST_LARGE: TableLock<Option<(Instant, Duration)>> = TableLock::new(None);
/// A census of fewer tensors and nodes costs less than the run itself. After a larger one the next waits until `REST` times as long has passed, so
/// that programs with many tensors spend at most a small part of their time on them.
const LARGE: usize = 20_000;
const REST: u32 = 20;

fn is_due() -> bool {
    LAST_LARGE.lock().is_none_or(|(ended, took)| ended.elapsed() >= took * REST)
}

/// Runs before and after each run of the collector.
#[pyfunction]
fn around_collections(py: Python<'_>, phase: &str, info: &Bound<'_, PyDict>) -> PyResult<()> {
    if phase == "start" {
        context_owner::pin_all(py);
        let generation: Option<u32> = info.get_item(intern!(py, "generation"))?.map(|g| g.extract()).transpose()?;
        if generation != Some(2) || !is_due() {
            return Ok(());
        }
        let begun = Instant::now();
        let counted = take_census(py)?;
        *LAST_LARGE.lock() = (counted >= LARGE).then(|| (Instant::now(), begun.elapsed()));
        Ok(())
    } else {
        end(ACTIVE.swap(std::ptr::null_mut(), Ordering::Relaxed));
        context_owner::unpin_all(py);
        Ok(())
    }
}

/// From now on the collector is watched: Python objects are kept by the graph. Without that, cycles through shared values would stay for ever.
pub(crate) fn watch(py: Python<'_>) {
    static CALLBACK: PyOnceLock<()> = PyOnceLock::new();
    let _ = CALLBACK.get_or_try_init(py, || -> PyResult<()> {
        let callback = wrap_pyfunction!(around_collections, py)?;
        let gc = py.import("gc")?;
        let _ = GET_OBJECTS.set(py, gc.getattr("get_objects")?.unbind());
        gc.getattr("callbacks")?.call_method1("append", (callback,)).map(drop)
    });
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    // Made before it is needed: inside of the collector is no good place to make a type.
    let _: Bound<'_, PyType> = m.py().get_type::<Proxy>();
    Ok(())
}
