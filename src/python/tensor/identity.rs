//! One tensor, one Python object: `x.grad is x.grad`, and attributes stay with the tensor.
//!
//! An object always owns a handle of its tensor, and the tensor's slot has a borrowed pointer to the object. When Python's last reference goes
//! away while the core still holds the tensor, and the object has attributes or belongs to a subclass, the tensor keeps the object: the slot's
//! pointer becomes a reference. It ends with the next `wrap`, or when the object's handle is the only one left, in the same atomic step as the
//! last other handle: so a weak reference or `gc.get_objects()` may show the object at any time. PyTorch keeps its objects in the same way. The
//! class's methods are in the other files of this folder.

use crate::array::lock_order::{TableLock, assert_no_guard};
use crate::autograd::Tensor;
use crate::autograd::tensor::ownership::{self, Foreign};
use crate::autograd::tensor::slot;
use crate::python::autograd::collector;
use crate::python::tensor::PyTensor;
use crate::python::types::_PyObject_GetDictPtr;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use pyo3::{PyTraverseError, PyVisit};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// The Python object that contains a `PyTensor`.
#[derive(Default)]
pub(crate) struct Link {
    me: AtomicPtr<ffi::PyObject>,
    /// False in an object that Python has allocated, with zeros, but that is not filled yet. The garbage collector may see it in this state.
    ready: AtomicBool,
}

impl Link {
    /// Whether object and tensor are linked. False also for an object that is allocated, with zeros, but not filled yet.
    pub(crate) fn is_made(&self) -> bool {
        !self.me.load(Ordering::Relaxed).is_null()
    }
}

/// The offset of the `PyTensor` in an object; the same for all subclasses.
static OFFSET: AtomicUsize = AtomicUsize::new(0);
/// PyO3's own destructor of `Tensor` objects.
static DEALLOC: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
/// Objects owned by tensors that were dropped on a thread without the GIL.
static PENDING: TableLock<Vec<usize>> = TableLock::new(Vec::new());

/// The contents of an object whose address is not known yet. `__init__` or `wrap` links object and tensor.
pub(crate) fn unlinked(t: Tensor) -> PyTensor {
    PyTensor { t: ManuallyDrop::new(t), link: Link { ready: AtomicBool::new(true), ..Link::default() } }
}

/// Links tensor and object, once. A tensor that already has an object keeps it.
pub(crate) fn link(obj: &Bound<'_, PyTensor>) {
    let cell = obj.get();
    if cell.link.me.load(Ordering::Relaxed).is_null() && cell.t.slot().get().is_none() {
        cell.link.me.store(obj.as_ptr(), Ordering::Relaxed);
        cell.t.slot().set(obj.as_ptr().cast());
    }
}

/// The Python object of a tensor that Python keeps already. None where `wrap` has more to do.
#[inline]
pub(crate) fn existing(py: Python<'_>, t: &Tensor) -> Option<Py<PyAny>> {
    let (p, kept) = t.object()?;
    let obj: *mut ffi::PyObject = p.cast();
    // SAFETY: as in `wrap`.
    unsafe { (!kept && ffi::Py_REFCNT(obj) > 0).then(|| Bound::from_borrowed_ptr(py, obj).unbind()) }
}

/// The Python object of a tensor: the one it has, or a new `Tensor`.
#[inline]
pub(crate) fn wrap(py: Python<'_>, t: Tensor) -> PyResult<Py<PyAny>> {
    if let Some(p) = t.slot().get() {
        let obj: *mut ffi::PyObject = p.cast();
        if t.give_object() {
            // SAFETY: the tensor has kept a live `Tensor` object, and its reference is the caller's now.
            return Ok(unsafe { Bound::from_owned_ptr(py, obj) }.unbind());
        }
        // SAFETY: an object clears the slot in its destructor, under the GIL, which `py` proves. A count of 0 means that the destructor runs now.
        unsafe {
            if ffi::Py_REFCNT(obj) > 0 {
                return Ok(Bound::from_borrowed_ptr(py, obj).unbind());
            }
        }
    }
    make(py, t)
}

/// A new `Tensor` object. In CPython 3.11 `object.__new__`, which PyO3 would call, also makes the object's dict, which costs more than all the
/// rest. Here the dict is made with the first attribute.
#[inline]
fn make(py: Python<'_>, t: Tensor) -> PyResult<Py<PyAny>> {
    // SAFETY: the type is the one that PyO3 made for `PyTensor`. Its objects consist of a `PyTensor` at the measured offset, and of a dict and a
    // list of weak references that are null at first, as the allocator leaves them (a frozen class has no borrow flag, a Send class no thread
    // check). A new object is tracked by the collector, which cannot run before the object is filled; a reused one is not tracked until then.
    unsafe {
        let used = spare::take();
        let obj = if used.is_null() { ffi::PyType_GenericAlloc(base_type(), 0) } else { used };
        if obj.is_null() {
            return Err(PyErr::fetch(py));
        }
        t.slot().set(obj.cast());
        let link = Link { me: AtomicPtr::new(obj), ready: AtomicBool::new(true) };
        contents(obj).cast_mut().write(PyTensor { t: ManuallyDrop::new(t), link });
        if !used.is_null() {
            spare::revive(used);
        }
        Ok(Bound::from_owned_ptr(py, obj).unbind())
    }
}

/// A free list of `Tensor` objects without attributes, as CPython has for its own small objects. Each keeps its reference to the class.
mod spare {
    use super::*;

    const MOST: usize = 64;
    /// Accessed only with the GIL held.
    static OBJECTS: [AtomicPtr<ffi::PyObject>; MOST] = [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST];
    static COUNT: AtomicUsize = AtomicUsize::new(0);

    unsafe extern "C" {
        /// Exported by CPython, though not part of the limited interface. Sets the reference count to one.
        fn _Py_NewReference(obj: *mut ffi::PyObject);
    }

    /// A free object, or null.
    ///
    /// # Safety
    /// The GIL is held.
    #[inline]
    pub(crate) unsafe fn take() -> *mut ffi::PyObject {
        let n = COUNT.load(Ordering::Relaxed);
        if n == 0 {
            return std::ptr::null_mut();
        }
        COUNT.store(n - 1, Ordering::Relaxed);
        OBJECTS[(n - 1) & (MOST - 1)].load(Ordering::Relaxed)
    }

    /// # Safety
    /// `obj` is from `take` and filled, and the GIL is held.
    #[inline]
    pub(crate) unsafe fn revive(obj: *mut ffi::PyObject) {
        // SAFETY: by the caller's promise. The object has not been tracked since its destructor ran.
        unsafe {
            _Py_NewReference(obj);
            ffi::PyObject_GC_Track(obj.cast());
        }
    }

    /// Puts an object into the list; false if the list is full.
    ///
    /// # Safety
    /// An object of `Tensor` itself in its destructor, without dict and weak references, untracked, its contents dropped, under the GIL.
    #[inline]
    pub(crate) unsafe fn keep(obj: *mut ffi::PyObject) -> bool {
        let n = COUNT.load(Ordering::Relaxed);
        if n >= MOST {
            return false;
        }
        OBJECTS[n].store(obj, Ordering::Relaxed);
        COUNT.store(n + 1, Ordering::Relaxed);
        true
    }
}

/// A view of a tensor as an object of a subclass. The constructor of the class is not called.
pub(crate) fn as_subclass(t: &Bound<'_, PyTensor>, cls: &Bound<'_, PyType>) -> PyResult<Py<PyAny>> {
    make_as(cls, crate::ops::shape::alias(PyTensor::of(t))?)
}

/// A new object of `Tensor` or a subclass for a tensor that has no object.
pub(crate) fn make_as(cls: &Bound<'_, PyType>, t: Tensor) -> PyResult<Py<PyAny>> {
    // SAFETY: as in `make`. Objects of a subclass begin in the same way, and the rest is zero at first.
    unsafe {
        let obj = ffi::PyType_GenericAlloc(cls.as_type_ptr(), 0);
        if obj.is_null() {
            return Err(PyErr::fetch(cls.py()));
        }
        t.slot().set(obj.cast());
        let cell = contents(obj).cast_mut();
        cell.write(unlinked(t));
        (*cell).link.me.store(obj, Ordering::Relaxed);
        Ok(Bound::from_owned_ptr(cls.py(), obj).unbind())
    }
}

/// As `wrap`; None for a missing tensor.
pub(crate) fn wrap_option(py: Python<'_>, t: Option<Tensor>) -> PyResult<Py<PyAny>> {
    t.map_or_else(|| Ok(py.None()), |t| wrap(py, t))
}

/// The tensor in an object, if it is a `Tensor`.
///
/// # Safety
/// `obj` is live as long as the result is used, and `register` has run.
#[inline]
pub(crate) unsafe fn tensor_in<'a>(obj: *mut ffi::PyObject) -> Option<&'a Tensor> {
    // SAFETY: by the caller's promise.
    unsafe {
        let ty = ffi::Py_TYPE(obj);
        if std::ptr::eq(ty, base_type()) || ffi::PyType_IsSubtype(ty, base_type()) != 0 { Some(&(*contents(obj)).t) } else { None }
    }
}

/// The tensor of an object. None if the object is not filled yet.
///
/// # Safety
/// `obj` is a live `Tensor` object.
pub(crate) unsafe fn held_tensor<'a>(obj: *mut ffi::PyObject) -> Option<&'a Tensor> {
    // SAFETY: by the caller's promise.
    let cell = unsafe { &*contents(obj) };
    let filled = cell.link.is_made() && cell.link.ready.load(Ordering::Relaxed);
    filled.then(|| &*cell.t)
}

/// # Safety
/// `obj` is a `Tensor` object that is live or in its destructor, and `register` has run.
#[inline]
unsafe fn contents(obj: *mut ffi::PyObject) -> *const PyTensor {
    // SAFETY: by the caller's promise. The offset was measured on a real object.
    unsafe { obj.cast::<u8>().add(OFFSET.load(Ordering::Relaxed)).cast() }
}

impl Drop for PyTensor {
    fn drop(&mut self) {
        let me = self.link.me.load(Ordering::Relaxed);
        if !me.is_null() && self.t.slot().get().is_some_and(|p| p == me.cast()) {
            self.t.slot().clear();
        }
        // SAFETY: this is the only place that drops it, once.
        unsafe { ManuallyDrop::drop(&mut self.t) };
    }
}

/// PyO3's own constructor of `Tensor` objects.
static NEW: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// The constructor. It links the object at once, as the `__init__` of a subclass may not call this class's.
unsafe extern "C" fn new(cls: *mut ffi::PyTypeObject, args: *mut ffi::PyObject, kwargs: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: called by Python. The constructor of `Tensor` returns an object of `cls`, which is `Tensor` or a subclass.
    unsafe {
        let original: ffi::newfunc = std::mem::transmute(NEW.load(Ordering::Relaxed));
        let obj = original(cls, args, kwargs);
        if !obj.is_null() {
            let cell = &*contents(obj);
            if !cell.link.is_made() && cell.t.slot().get().is_none() {
                cell.link.me.store(obj, Ordering::Relaxed);
                cell.t.slot().set(obj.cast());
            }
        }
        obj
    }
}

/// The destructor, which runs when the last reference is gone. It hands the object over to its tensor, or frees it.
unsafe extern "C" fn dealloc(obj: *mut ffi::PyObject) {
    // SAFETY: Python calls this with a `Tensor` object whose reference count is 0, under the GIL.
    unsafe {
        let cell = contents(obj);
        let shared = (*cell).t.holders() > 1;
        let stays = shared && !(*cell).t.is_simple() && ownership::may_hold_itself(&(*cell).t);
        if std::ptr::eq(ffi::Py_TYPE(obj), base_type()) && is_bare(obj) && !stays && (*cell).t.drops_only_memory() {
            // This is what PyO3's destructor does for an object without attributes and weak references, except that PyO3's also notes that
            // the GIL is held, so that other Python objects are released at once. There are none here.
            ffi::PyObject_GC_UnTrack(obj.cast());
            std::ptr::drop_in_place(cell.cast_mut());
            if !spare::keep(obj) {
                ffi::PyObject_GC_Del(obj.cast());
                ffi::Py_DECREF(base_type().cast());
            }
            return;
        }
        let me = (*cell).link.me.load(Ordering::Relaxed);
        if me == obj && shared && (stays || has_state(obj)) {
            collector::watch(Python::assume_attached());
            (*cell).t.slot().set(obj.cast());
            if (*cell).t.keep_object() {
                // From 0 to 1: the tensor's reference. If another thread has dropped the last other handle meanwhile, the reference waits in
                // `PENDING`, because this thread has the GIL.
                ffi::Py_INCREF(obj);
                release_pending(Python::assume_attached());
                return;
            }
        }
        if !std::ptr::eq(ffi::Py_TYPE(obj), base_type()) && ffi::PyObject_CallFinalizerFromDealloc(obj) < 0 {
            return;
        }
        if !std::ptr::eq(ffi::Py_TYPE(obj), base_type()) {
            // A destructor must not end an exception that is on its way.
            let pending = PyErr::take(Python::assume_attached());
            clear_slots(obj);
            if let Some(e) = pending {
                e.restore(Python::assume_attached());
            }
        }
        let original = DEALLOC.load(Ordering::Relaxed);
        let original: unsafe extern "C" fn(*mut ffi::PyObject) = std::mem::transmute(original);
        original(obj);
    }
}

/// Releases what the `__slots__` of an object's classes hold, which the destructor of the base class does not know.
///
/// # Safety
/// `obj` is a `Tensor` object in its destructor, under the GIL.
unsafe fn clear_slots(obj: *mut ffi::PyObject) {
    // SAFETY: by the caller's promise. A type has as many member descriptors as its variable size says, in its dict, and setting one to null
    // releases the value without a reference to the object. The dict's entries are not changed meanwhile by Python code of this loop: a value's
    // destructor may run any, so each descriptor is held while it is used.
    unsafe {
        let mut ty = ffi::Py_TYPE(obj);
        while !ty.is_null() && !std::ptr::eq(ty, base_type()) {
            if ffi::Py_SIZE(ty.cast()) > 0 {
                let values = ffi::PyMapping_Values((*ty).tp_dict);
                let n = if values.is_null() { 0 } else { ffi::PyList_Size(values) };
                for i in 0..n {
                    let descriptor = ffi::PyList_GetItem(values, i);
                    if std::ptr::eq(ffi::Py_TYPE(descriptor), &raw mut ffi::PyMemberDescr_Type)
                        && let Some(set) = (*ffi::Py_TYPE(descriptor)).tp_descr_set
                    {
                        // An empty slot is an AttributeError.
                        let _ = set(descriptor, obj, std::ptr::null_mut());
                        ffi::PyErr_Clear();
                    }
                }
                ffi::Py_XDECREF(values);
            }
            ty = (*ty).tp_base;
        }
    }
}

/// The offsets of the dict and of the list of weak references in a `Tensor` object; 0 if CPython keeps them elsewhere.
static DICT: AtomicUsize = AtomicUsize::new(0);
static WEAK: AtomicUsize = AtomicUsize::new(0);

/// Whether an object has neither a dict nor weak references. False if this is not known.
///
/// # Safety
/// `obj` is a `Tensor` object of no subclass, under the GIL.
#[inline]
unsafe fn is_bare(obj: *mut ffi::PyObject) -> bool {
    let (dict, weak) = (DICT.load(Ordering::Relaxed), WEAK.load(Ordering::Relaxed));
    // SAFETY: by the caller's promise. The offsets are from the type itself.
    let is_null = |at: usize| unsafe { obj.cast::<u8>().add(at).cast::<*mut ffi::PyObject>().read().is_null() };
    dict != 0 && weak != 0 && is_null(dict) && is_null(weak)
}

static BASE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());

#[inline]
pub(crate) fn base_type() -> *mut ffi::PyTypeObject {
    BASE.load(Ordering::Relaxed)
}

/// Whether an object has state that must be preserved: attributes, or a class other than `Tensor`.
///
/// # Safety
/// `obj` is a `Tensor` object, under the GIL.
unsafe fn has_state(obj: *mut ffi::PyObject) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        if !std::ptr::eq(ffi::Py_TYPE(obj), base_type()) {
            return true;
        }
        let dict = _PyObject_GetDictPtr(obj);
        !dict.is_null() && !(*dict).is_null() && ffi::PyDict_Size(*dict) > 0
    }
}

/// Exchanges the tensors of two objects. The objects keep their classes and attributes.
pub(crate) fn swap(a: &Bound<'_, PyTensor>, b: &Bound<'_, PyTensor>) {
    let (a, b) = (a.as_ptr(), b.as_ptr());
    if std::ptr::eq(a, b) {
        return;
    }
    // SAFETY: two live `Tensor` objects, under the GIL, so no other thread makes a reference into them; this function holds none either. Each
    // owns a handle, so exchanging the handles keeps both counts right. The caller's references keep the objects alive when their tensors
    // release theirs.
    unsafe {
        let (one, other) = (contents(a).cast_mut(), contents(b).cast_mut());
        for (obj, cell) in [(a, one), (b, other)] {
            if (*cell).t.give_object() {
                ffi::Py_DECREF(obj);
            }
        }
        std::ptr::swap(&raw mut (*one).t, &raw mut (*other).t);
        for (obj, cell) in [(a, one), (b, other)] {
            (*cell).link.me.store(obj, Ordering::Relaxed);
            (*cell).t.slot().set(obj.cast());
        }
    }
}

/// Gives a subclass the destructor that preserves objects, and the fast operators.
pub(crate) fn preserve_subclass(cls: &Bound<'_, PyType>) {
    let ty = cls.as_type_ptr();
    // SAFETY: the class is new, as this runs in `__init_subclass__`, under the GIL. `dealloc` ends in the destructor of the base class, which
    // frees objects of any subclass and releases their class.
    unsafe {
        (*ty).tp_dealloc = Some(dealloc);
        crate::python::tensor::fast_operators::shorten(ty);
    }
}

/// Whether the garbage collector looks at a tensor. Written with the GIL held.
static TRAVERSING: AtomicBool = AtomicBool::new(false);

/// Called when nothing but its object holds a tensor that has kept it.
fn release(p: *mut ()) {
    assert_no_guard("dropping a Python object");
    // SAFETY: the tensor had one reference to a live object. No object may end while the collector counts references. `PyGILState_Check` says yes
    // after the end of the interpreter, too, when thread-local tensors may still be dropped; there is no thread state any more.
    unsafe {
        let attached = ffi::PyGILState_Check() != 0 && !ffi::PyGILState_GetThisThreadState().is_null();
        if attached && !TRAVERSING.load(Ordering::Relaxed) {
            ffi::Py_DECREF(p.cast());
        } else {
            PENDING.lock().push(p as usize);
        }
    }
}

/// Releases the objects that tensors have let go without the GIL.
pub(crate) fn release_pending(_py: Python<'_>) {
    if let Some(mut pending) = PENDING.try_lock() {
        if pending.is_empty() {
            return;
        }
        let objects = std::mem::take(&mut *pending);
        drop(pending);
        for p in objects {
            // SAFETY: each entry is one reference to a live object, and the GIL is held.
            unsafe { ffi::Py_DECREF(p as *mut ffi::PyObject) };
        }
    }
}

/// Visits the objects that only this tensor keeps alive, for the garbage collector.
pub(crate) fn traverse(cell: &PyTensor, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    if !cell.link.ready.load(Ordering::Relaxed) {
        return Ok(());
    }
    while_traversing(|| traverse_tensor(&cell.t, visit))
}

/// Runs a part of the collector's walk. No object may end meanwhile.
pub(crate) fn while_traversing<R>(walk: impl FnOnce() -> R) -> R {
    let around = TRAVERSING.swap(true, Ordering::Relaxed);
    let result = walk();
    TRAVERSING.store(around, Ordering::Relaxed);
    result
}

fn traverse_tensor(t: &Tensor, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    // A tensor that keeps its object is held from elsewhere, or by itself: then it shows the object what it keeps alive, the object included.
    let kept = t.keeps_object();
    if let Some(now) = collector::active() {
        // The tensor's proxy shows what a tensor holds that keeps its object.
        return if kept { Ok(()) } else { now.traverse_tensor_of(t, visit) };
    }
    if kept && !ownership::is_owned_by_itself(t) {
        return Ok(());
    }
    let mut result = Ok(());
    let mut see = |f: Foreign<'_>| {
        if result.is_err() {
            return;
        }
        result = traverse_foreign(f, visit);
    };
    if kept {
        if let Some((p, true)) = t.object() {
            see(Foreign::Slot(p));
        }
        ownership::visit_own_cycle(t, &mut see);
    } else {
        ownership::visit_foreign(t, &mut see);
    }
    result
}

/// Shows an object that the core keeps alive to the garbage collector.
pub(crate) fn traverse_foreign(f: Foreign<'_>, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    match f {
        Foreign::Slot(p) => {
            let ptr: *mut ffi::PyObject = p.cast();
            // SAFETY: the slot owns a live object, and `Py` is a pointer to one. This handle borrows the object for the call and never changes its
            // count.
            let obj = ManuallyDrop::new(unsafe { std::mem::transmute::<*mut ffi::PyObject, Py<PyAny>>(ptr) });
            visit.call(&*obj)
        }
        Foreign::Hook(h) => crate::python::autograd::hooks::traverse(h, visit),
        Foreign::Function(f) => crate::python::autograd::function::traverse(f, visit),
    }
}

/// Breaks cycles through the tensor.
pub(crate) fn clear(cell: &PyTensor) {
    let t = &cell.t;
    if t.keeps_object() {
        ownership::clear_own_cycle(t);
    } else {
        ownership::clear(t);
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    slot::register_release(release);
    let ty = py.get_type::<PyTensor>();
    let array = crate::array::Array::empty(&[], crate::layout::DType::F32)?;
    let probe = Bound::new(py, unlinked(Tensor::new(array)))?;
    let at = std::ptr::from_ref(probe.get()) as usize - probe.as_ptr() as usize;
    OFFSET.store(at, Ordering::Relaxed);
    drop(probe);
    BASE.store(ty.as_type_ptr(), Ordering::Relaxed);
    // SAFETY: the type is new and no other code has seen it. The original destructor is stored and called.
    unsafe {
        DICT.store(usize::try_from((*ty.as_type_ptr()).tp_dictoffset).unwrap_or(0), Ordering::Relaxed);
        WEAK.store(usize::try_from((*ty.as_type_ptr()).tp_weaklistoffset).unwrap_or(0), Ordering::Relaxed);
        let original = (*ty.as_type_ptr()).tp_dealloc.map_or(std::ptr::null_mut(), |f| f as *mut ());
        DEALLOC.store(original, Ordering::Relaxed);
        NEW.store((*ty.as_type_ptr()).tp_new.map_or(std::ptr::null_mut(), |f| f as *mut ()), Ordering::Relaxed);
        (*ty.as_type_ptr()).tp_new = Some(new);
        (*ty.as_type_ptr()).tp_dealloc = Some(dealloc);
    }
    Ok(())
}
