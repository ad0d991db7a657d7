//! Who owns whom: a custom Function's node and its context, which Python sees as the node.
//!
//! Usually the node owns the context, and the context knows the node weakly. As soon as Python keeps the context (`grad_fn`, or a reference that
//! `forward` or `backward` has stored), ownership is reversed: the context owns the node, and the node's pointer to the context is not counted. When
//! Python's last reference goes while a graph still holds the node, the node owns the context again. So either keeps the other alive, and there is no
//! cycle. Python objects of tensors do the same (`tensor::identity`). Everything here happens under the GIL.
//!
//! Only counted references mean something to the garbage collector. So while it runs, contexts that own a node which a graph holds, too, are pinned:
//! the node has a counted reference as well, and a tensor that is the node's only other holder reports it. The context reports the rest.

use super::collector;
use super::function::FunctionCtx;
use super::node::PyNode;
use crate::array::lock_order::TableLock;
use crate::autograd::Node;
use crate::python::types::_PyObject_GetDictPtr;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use pyo3::{PyTraverseError, PyVisit};
use rustc_hash::FxHashSet;
use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// A node's reference to its context.
pub(crate) struct ContextRef {
    /// The context; null after it is gone.
    object: AtomicPtr<ffi::PyObject>,
    /// The counted reference, while the node owns the context.
    owned: TableLock<Option<Py<PyAny>>>,
    /// The garbage collector runs, and the node has a counted reference although the context owns it.
    pinned: AtomicBool,
    /// The node stays the owner: the context keeps outputs, and they the node. The collector follows that from the outputs (`function::kept_outputs`).
    fixed: AtomicBool,
}

impl ContextRef {
    pub(crate) fn owning(ctx: Py<PyAny>) -> ContextRef {
        ContextRef {
            object: AtomicPtr::new(ctx.as_ptr()),
            owned: TableLock::new(Some(ctx)),
            pinned: AtomicBool::new(false),
            fixed: AtomicBool::new(false),
        }
    }

    /// The context; None after it is gone.
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let object = self.object.load(Ordering::Relaxed);
        // SAFETY: a context that is not owned by the node clears this pointer in its destructor, under the GIL, which `py` proves. A count of 0 means
        // that the destructor runs now.
        unsafe { (!object.is_null() && ffi::Py_REFCNT(object) > 0).then(|| Bound::from_borrowed_ptr(py, object)) }
    }

    /// Leaves the node the owner.
    pub(crate) fn fix(&self) {
        self.fixed.store(true, Ordering::Relaxed);
    }

    /// Makes the context the owner if Python keeps it: if it has more than `own` references.
    pub(crate) fn settle(&self, py: Python<'_>, node: &Arc<Node>, own: isize) {
        let object = self.object.load(Ordering::Relaxed);
        // SAFETY: as for `get`. The reference that is taken out of `owned` is the last to go, after the context owns the node.
        unsafe {
            if object.is_null() || ffi::Py_REFCNT(object) <= own || self.fixed.load(Ordering::Relaxed) {
                return;
            }
            let Some(reference) = self.owned.lock().take() else { return };
            if let Ok(ctx) = reference.bind(py).cast::<PyNode>() {
                ctx.get().own(node);
            }
            remember(py, node);
            drop(reference);
        }
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned.load(Ordering::Relaxed)
    }

    /// The context, for Python to keep.
    pub(crate) fn hand_out(&self, py: Python<'_>, node: &Arc<Node>) -> Option<Py<PyAny>> {
        let ctx = self.get(py)?;
        self.settle(py, node, 1);
        Some(ctx.unbind())
    }

    /// The context, which nothing else holds any more, becomes the node's.
    ///
    /// # Safety
    /// The context is in its destructor.
    unsafe fn take_over(&self, ctx: *mut ffi::PyObject) {
        // SAFETY: from 0 to 1. `Py` is a pointer to an object, with one reference.
        let reference = unsafe {
            ffi::Py_INCREF(ctx);
            std::mem::transmute::<*mut ffi::PyObject, Py<PyAny>>(ctx)
        };
        *self.owned.lock() = Some(reference);
    }

    /// The context is gone. Nothing happens if the node owns it.
    pub(crate) fn forget(&self) {
        if self.owned.lock().is_none() {
            self.object.store(std::ptr::null_mut(), Ordering::Relaxed);
        }
    }

    /// Shows the counted reference to the garbage collector.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.owned.try_lock() {
            Some(owned) => owned.iter().try_for_each(|ctx| visit.call(ctx)),
            None => Ok(()),
        }
    }
}

/// The nodes that contexts own; also some that they owned.
static OWNED_NODES: TableLock<Vec<Weak<Node>>> = TableLock::new(Vec::new());
/// The nodes whose contexts are pinned.
static PINNED: TableLock<Vec<Weak<Node>>> = TableLock::new(Vec::new());

fn remember(py: Python<'_>, node: &Arc<Node>) {
    // Without it such contexts are never collected as long as a graph holds their nodes.
    collector::watch(py);
    let mut list = OWNED_NODES.lock();
    // The collector may be off.
    if list.len() >= 64 && list.len().is_power_of_two() {
        list.retain(|node| node.strong_count() > 0);
    }
    list.push(Arc::downgrade(node));
}

fn alive(list: &TableLock<Vec<Weak<Node>>>) -> Vec<Arc<Node>> {
    std::mem::take(&mut *list.lock()).iter().filter_map(Weak::upgrade).collect()
}

/// Before a run of the garbage collector.
pub(super) fn pin_all(py: Python<'_>) {
    let mut seen = FxHashSet::default();
    let nodes: Vec<Arc<Node>> = alive(&OWNED_NODES).into_iter().filter(|n| seen.insert(Arc::as_ptr(n))).collect();
    for node in nodes {
        let Some(owner) = super::function::context_ref(&node) else { continue };
        let Some(ctx) = owner.get(py) else { continue };
        if !ctx.cast::<PyNode>().is_ok_and(|ctx| ctx.get().owns()) {
            continue;
        }
        OWNED_NODES.lock().push(Arc::downgrade(&node));
        // The context, this function, and others.
        if Arc::strong_count(&node) > 2 {
            *owner.owned.lock() = Some(ctx.unbind());
            owner.pinned.store(true, Ordering::Relaxed);
            PINNED.lock().push(Arc::downgrade(&node));
        }
    }
}

/// After a run of the garbage collector.
pub(super) fn unpin_all(py: Python<'_>) {
    for node in alive(&PINNED) {
        let Some(owner) = super::function::context_ref(&node) else { continue };
        owner.pinned.store(false, Ordering::Relaxed);
        let unpinned = match owner.get(py) {
            Some(ctx) if ctx.cast::<PyNode>().is_ok_and(|ctx| ctx.get().owns()) => owner.owned.lock().take(),
            _ => None,
        };
        drop(unpinned);
    }
}

/// The offsets of the `PyNode` and of the `FunctionCtx` in a context.
static OFFSET: AtomicUsize = AtomicUsize::new(0);
static OWN_OFFSET: AtomicUsize = AtomicUsize::new(0);
/// PyO3's own destructor of contexts.
static DEALLOC: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// PyO3's own functions for the garbage collector.
static TRAVERSE: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
static CLEAR: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// The node's object in a context.
///
/// # Safety
/// `ctx` is a context that is live or in its destructor.
unsafe fn node_of<'a>(ctx: *mut ffi::PyObject) -> &'a PyNode {
    // SAFETY: by the caller's promise. The offset was measured on a real one.
    unsafe { &*ctx.cast::<u8>().add(OFFSET.load(Ordering::Relaxed)).cast::<PyNode>() }
}

/// Shows nothing of a context whose node a graph holds, too, and which is not pinned; not even its class. The graph needs all of it, but has no
/// counted reference that the collector could know.
unsafe extern "C" fn traverse(ctx: *mut ffi::PyObject, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    // SAFETY: Python calls this with a live context.
    unsafe {
        if node_of(ctx).is_shared() {
            return 0;
        }
        let original: ffi::traverseproc = std::mem::transmute(TRAVERSE.load(Ordering::Relaxed));
        original(ctx, visit, arg)
    }
}

/// Leaves a context alone whose node a graph holds, too, and which is not pinned: when nothing else refers to it, it becomes the node's.
unsafe extern "C" fn clear(ctx: *mut ffi::PyObject) -> c_int {
    // SAFETY: Python calls this with a live context, under the GIL.
    unsafe {
        if node_of(ctx).is_shared() {
            return 0;
        }
        let original: ffi::inquiry = std::mem::transmute(CLEAR.load(Ordering::Relaxed));
        original(ctx)
    }
}

/// The destructor of contexts. It gives the context to its node if a graph still holds that.
unsafe extern "C" fn dealloc(ctx: *mut ffi::PyObject) {
    // SAFETY: Python calls this with a context whose reference count is 0, under the GIL.
    unsafe {
        let cell = node_of(ctx);
        if let Some(node) = cell.shared_node()
            && let Some(owner) = super::function::context_ref(&node)
        {
            owner.take_over(ctx);
            cell.tie(&node);
            // If this is the last handle, the node drops the context, and this destructor runs again.
            drop(node);
            return;
        }
        if ffi::PyObject_CallFinalizerFromDealloc(ctx) < 0 {
            return;
        }
        let original: unsafe extern "C" fn(*mut ffi::PyObject) = std::mem::transmute(DEALLOC.load(Ordering::Relaxed));
        original(ctx);
    }
}

/// Whether a context has attributes. Does not make its dict.
pub(crate) fn has_attributes(ctx: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object, under the GIL; the place of its dict holds null or a dict.
    unsafe {
        let dict = _PyObject_GetDictPtr(ctx.as_ptr());
        !dict.is_null() && !(*dict).is_null() && ffi::PyDict_Size(*dict) > 0
    }
}

/// A new context of this class, without what `object.__new__` costs: its dict is made with the first attribute.
pub(crate) fn new_context<'py>(class: &Bound<'py, PyType>, own: FunctionCtx) -> PyResult<Bound<'py, FunctionCtx>> {
    // SAFETY: the class is derived from the one that PyO3 made for `FunctionCtx`. Its objects consist of a `PyNode` and a `FunctionCtx` at the
    // measured offsets, and of a dict and a list of weak references that are null at first, as the allocator leaves them (frozen classes have no
    // borrow flag, Send classes no thread check). The collector cannot run between allocation and the writes.
    unsafe {
        debug_assert!(class.is_subclass_of::<FunctionCtx>()?);
        let obj = Bound::from_owned_ptr_or_err(class.py(), ffi::PyType_GenericAlloc(class.as_type_ptr(), 0))?;
        obj.as_ptr().cast::<u8>().add(OFFSET.load(Ordering::Relaxed)).cast::<PyNode>().write(PyNode::unbound());
        obj.as_ptr().cast::<u8>().add(OWN_OFFSET.load(Ordering::Relaxed)).cast::<FunctionCtx>().write(own);
        Ok(obj.cast_into_unchecked())
    }
}

/// Gives a class of contexts these functions.
pub(crate) fn preserve(class: &Bound<'_, PyType>) {
    // SAFETY: the class is new, as this runs in `__init_subclass__`, under the GIL. The functions end in those of the base class, which serve objects
    // of any subclass without slots of its own; `dealloc` also releases the class.
    unsafe {
        let class = class.as_type_ptr();
        (*class).tp_dealloc = Some(dealloc);
        (*class).tp_traverse = Some(traverse);
        (*class).tp_clear = Some(clear);
        // Contexts have no attributes of saved values, which `PyNode` looks for. With Python's own function the interpreter calls methods without
        // making an object of each.
        (*class).tp_getattro = Some(ffi::PyObject_GenericGetAttr);
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = m.py().get_type::<FunctionCtx>();
    let probe = class.call0()?;
    let at = std::ptr::from_ref(probe.cast::<PyNode>()?.get()) as usize - probe.as_ptr() as usize;
    OFFSET.store(at, Ordering::Relaxed);
    let own = std::ptr::from_ref(probe.cast::<FunctionCtx>()?.get()) as usize - probe.as_ptr() as usize;
    OWN_OFFSET.store(own, Ordering::Relaxed);
    // SAFETY: the type is new and no other code has seen it. PyO3's types have all three.
    unsafe {
        let class = class.as_type_ptr();
        DEALLOC.store((*class).tp_dealloc.map_or(std::ptr::null_mut(), |f| f as *mut ()), Ordering::Relaxed);
        TRAVERSE.store((*class).tp_traverse.map_or(std::ptr::null_mut(), |f| f as *mut ()), Ordering::Relaxed);
        CLEAR.store((*class).tp_clear.map_or(std::ptr::null_mut(), |f| f as *mut ()), Ordering::Relaxed);
    }
    Ok(())
}
