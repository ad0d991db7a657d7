//! `__torch_function__`: classes that override functions of their objects, and modes that override all functions.
//!
//! Here the overrides of a call are found and called. `covers` wraps every function, method and property, `operators` every operator; they check
//! by a comparison of types that all arguments are plain, and come here only if one is not. Not here: decorators for functions written in
//! Python (`rgrad.overrides`).

mod arguments;
pub(super) mod covers;
mod foreign;
pub(super) mod keywords;
mod old_forms;
pub(super) mod operators;

use super::errors::type_error;
use super::tensor::PyTensor;
use super::tensor::identity;
use super::types::{PyObj, PyObjResult};
use foreign::Waiting;
use pyo3::exceptions::{PyIndexError, PyRecursionError, PyUserWarning};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

unsafe extern "C" {
    /// Exported by CPython, though not part of the limited interface. Looks a name up along the classes, without descriptors; borrowed.
    fn _PyType_Lookup(ty: *mut ffi::PyTypeObject, name: *mut ffi::PyObject) -> *mut ffi::PyObject;
}

/// The class whose objects have no overrides: `Tensor` itself; null while a mode is active in any thread.
static PLAIN: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());
/// The interned name `__torch_function__`, and the function that a class has under this name to disable its override.
static NAME: AtomicPtr<ffi::PyObject> = AtomicPtr::new(std::ptr::null_mut());
static LEAVES_ALONE: AtomicPtr<ffi::PyObject> = AtomicPtr::new(std::ptr::null_mut());
/// The number of active modes in all threads.
static MODES: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Enabled {
    All,
    ModesOnly,
    Nothing,
}

thread_local! {
    static ENABLED: Cell<Enabled> = const { Cell::new(Enabled::All) };
    static SKIP: Cell<bool> = const { Cell::new(false) };
    static MODE_STACK: RefCell<Vec<Py<PyAny>>> = const { RefCell::new(Vec::new()) };
}

// ---- which overrides a call has --------------------------------------------------------------------------------------

/// Whether an object certainly has no override. False while a mode is active.
///
/// # Safety
/// A live object, under the GIL.
#[inline(always)]
unsafe fn is_plain(obj: *mut ffi::PyObject) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { std::ptr::eq(ffi::Py_TYPE(obj), PLAIN.load(Ordering::Relaxed)) || (MODES.load(Ordering::Relaxed) == 0 && !is_asked(obj, 2)) }
}

/// Whether an object is a tensor that certainly has no override.
///
/// # Safety
/// A live object, under the GIL.
#[inline]
pub(super) unsafe fn is_plain_tensor(obj: *mut ffi::PyObject) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { std::ptr::eq(ffi::Py_TYPE(obj), PLAIN.load(Ordering::Relaxed)) || (identity::tensor_in(obj).is_some() && is_plain(obj)) }
}

/// Whether a class has a `__torch_function__` other than `Tensor`'s.
unsafe fn class_is_asked(ty: *mut ffi::PyTypeObject) -> bool {
    // SAFETY: a live class, under the GIL. Static classes of C have no override.
    unsafe {
        if (*ty).tp_flags & ffi::Py_TPFLAGS_HEAPTYPE == 0 || std::ptr::eq(ty, identity::base_type()) {
            return false;
        }
        let found = _PyType_Lookup(ty, NAME.load(Ordering::Relaxed));
        !found.is_null() && !std::ptr::eq(found, LEAVES_ALONE.load(Ordering::Relaxed))
    }
}

/// Whether a class has no override, as `Parameter` and `Tensor`.
///
/// # Safety
/// A live class, under the GIL.
pub(super) unsafe fn class_is_plain(ty: *mut ffi::PyTypeObject) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { !class_is_asked(ty) }
}

/// Whether an object has an override, or one in it if it is a tuple or list, down to `depth` levels.
#[inline(never)]
unsafe fn is_asked(obj: *mut ffi::PyObject, depth: usize) -> bool {
    // SAFETY: a live object, under the GIL. No Python code runs here, so the items live.
    unsafe {
        let ty = ffi::Py_TYPE(obj);
        if (*ty).tp_flags & (ffi::Py_TPFLAGS_TUPLE_SUBCLASS | ffi::Py_TPFLAGS_LIST_SUBCLASS) != 0 && depth > 0 {
            let mut found = false;
            each_item(obj, &mut |item| found = found || is_asked(item, depth - 1));
            return found;
        }
        class_is_asked(ty)
    }
}

/// Calls `f` with each item of a tuple or list.
unsafe fn each_item(obj: *mut ffi::PyObject, f: &mut dyn FnMut(*mut ffi::PyObject)) {
    // SAFETY: the caller has checked that it is one of the two.
    unsafe {
        if ffi::PyTuple_Check(obj) != 0 {
            (0..ffi::PyTuple_GET_SIZE(obj)).for_each(|i| f(ffi::PyTuple_GET_ITEM(obj, i)));
        } else {
            (0..ffi::PyList_GET_SIZE(obj)).for_each(|i| f(ffi::PyList_GET_ITEM(obj, i)));
        }
    }
}

/// The objects whose overrides are called: one of each class, subclasses before their bases, otherwise from left to right.
#[derive(Default)]
struct Asked<'py>(SmallVec<[PyObj<'py>; 2]>);

impl<'py> Asked<'py> {
    fn consider(&mut self, obj: &PyObj<'py>, depth: usize) {
        // SAFETY: live objects under the GIL. The items are owned while they are examined.
        unsafe {
            let ty = obj.get_type();
            if (*ty.as_type_ptr()).tp_flags & (ffi::Py_TPFLAGS_TUPLE_SUBCLASS | ffi::Py_TPFLAGS_LIST_SUBCLASS) != 0 && depth > 0 {
                let py = obj.py();
                let mut items: SmallVec<[PyObj<'py>; 4]> = SmallVec::new();
                each_item(obj.as_ptr(), &mut |item| items.push(Bound::from_borrowed_ptr(py, item)));
                items.iter().for_each(|item| self.consider(item, depth - 1));
                return;
            }
            if !class_is_asked(ty.as_type_ptr()) || self.0.iter().any(|o| o.get_type().is(&ty)) {
                return;
            }
            let is_base = |o: &PyObj<'_>| ffi::PyType_IsSubtype(ty.as_type_ptr(), o.get_type().as_type_ptr()) != 0;
            let at = self.0.iter().position(is_base).unwrap_or(self.0.len());
            self.0.insert(at, obj.clone());
        }
    }

    fn of(objects: impl IntoIterator<Item = PyObj<'py>>) -> Self {
        let mut asked = Asked::default();
        if ENABLED.get() == Enabled::All {
            objects.into_iter().for_each(|o| asked.consider(&o, 2));
        }
        asked
    }
}

fn modes_apply() -> bool {
    ENABLED.get() < Enabled::Nothing && MODE_STACK.with_borrow(|s| !s.is_empty())
}

// ---- calling them ----------------------------------------------------------------------------------------------------

/// A call as overrides see it.
struct Call<'py> {
    func: PyObj<'py>,
    args: Bound<'py, PyTuple>,
    kwargs: Option<Bound<'py, PyDict>>,
}

impl<'py> Call<'py> {
    fn handler(&self, handler: &PyObj<'py>, types: &Bound<'py, PyTuple>) -> PyResult<Option<PyObj<'py>>> {
        let answer = match &self.kwargs {
            None => handler.call1((&self.func, types, &self.args))?,
            Some(k) => handler.call1((&self.func, types, &self.args, k))?,
        };
        Ok(if answer.is(handler.py().NotImplemented()) { None } else { Some(answer) })
    }

    /// Calls the innermost mode, which is inactive meanwhile, then the overrides of the objects, until one answers.
    fn ask(&self, asked: &Asked<'py>) -> PyObjResult {
        let py = self.func.py();
        let types = PyTuple::new(py, asked.0.iter().map(PyObj::get_type))?;
        let mode = if modes_apply() { MODE_STACK.with_borrow_mut(Vec::pop) } else { None };
        let in_mode = mode.as_ref().map(|m| {
            let handler = m.bind(py).getattr(intern!(py, "__torch_function__"))?;
            self.handler(&handler, &types)
        });
        let refused = mode.as_ref().map(|m| m.clone_ref(py));
        if let Some(m) = mode {
            MODE_STACK.with_borrow_mut(|s| s.push(m));
        }
        if let Some(answer) = in_mode.transpose()?.flatten() {
            return Ok(answer.unbind());
        }
        for object in &asked.0 {
            let handler = object.getattr(intern!(py, "__torch_function__"))?;
            if handler.getattr(intern!(py, "__self__")).is_ok_and(|me| me.is(object)) {
                let text =
                    c"Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please define \
                             it as a classmethod.";
                PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)?;
            }
            // The override of a tensor of ours ends in a function that asks nobody.
            let ours = object.cast::<PyTensor>().is_ok();
            let waiting = if ours { None } else { Waiting::begin(&self.func, object) };
            if !ours && waiting.is_none() {
                return Err(foreign::mixed(&self.func, object));
            }
            if let Some(answer) = self.handler(&handler, &types)? {
                return Ok(answer.unbind());
            }
        }
        Err(self.not_implemented(asked, refused.map(|m| m.into_bound(py))))
    }

    #[cold]
    fn not_implemented(&self, asked: &Asked<'py>, mode: Option<PyObj<'py>>) -> PyErr {
        let name = |o: &PyObj<'_>, what: &str| o.getattr(what).and_then(|n| n.extract::<String>()).unwrap_or_default();
        let of_tensor = if self.func.hasattr("__objclass__").unwrap_or(false) { "Tensor." } else { "" };
        let mut text = format!(
            "Multiple dispatch failed for 'rgrad.{of_tensor}{}'; all __torch_function__ handlers returned NotImplemented:\n",
            name(&self.func, "__name__")
        );
        if let Some(m) = mode {
            text += &format!("\n  - mode object {m}");
        }
        for o in &asked.0 {
            text += &format!("\n  - tensor subclass {}", o.get_type());
        }
        type_error(text)
    }
}

// ---- the functions of the module -------------------------------------------------------------------------------------

/// Restricts which overrides this thread calls, until it is dropped.
struct Restricted(Enabled);

impl Restricted {
    fn to(what: Enabled) -> Self {
        // Inside a stricter restriction this one has no effect.
        let before = ENABLED.get();
        ENABLED.set(if what > before { what } else { before });
        Restricted(before)
    }
}

impl Drop for Restricted {
    fn drop(&mut self) {
        ENABLED.set(self.0);
    }
}

macro_rules! disabling {
    ($(#[doc = $doc:literal])+ $name:ident, $what:expr) => {
        $(#[doc = $doc])+
        #[pyclass(module = "rgrad", frozen)]
        struct $name {
            before: Blocks,
        }

        #[pymethods]
        impl $name {
            #[new]
            fn new() -> Self {
                $name { before: Blocks::default() }
            }
            fn __enter__(&self) {
                self.before.0.lock().push(Restricted::to($what));
            }
            #[pyo3(signature = (*_exc))]
            fn __exit__(&self, _exc: &Bound<'_, PyTuple>) {
                drop(self.before.0.lock().pop());
            }
        }
    };
}

/// The restrictions of the blocks that one object has entered.
#[derive(Default)]
struct Blocks(crate::array::lock_order::TableLock<Vec<Restricted>>);

disabling! {
    /// A context in which the ``__torch_function__`` of subclasses is not called.
    DisableTorchFunctionSubclass, Enabled::ModesOnly
}
disabling! {
    /// A context in which no ``__torch_function__`` is called, neither of subclasses nor of modes.
    DisableTorchFunction, Enabled::Nothing
}

/// The ``__torch_function__`` of classes that override nothing: calls ``func``.
#[pyfunction]
#[pyo3(signature = (func, types, args=None, kwargs=None))]
fn _disabled_torch_function_impl(
    func: &PyObj<'_>,
    types: &PyObj<'_>,
    args: Option<&PyObj<'_>>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyObjResult {
    let _ = types;
    let _guard = Restricted::to(Enabled::ModesOnly);
    Ok(func.call(positional(func.py(), args)?, kwargs)?.unbind())
}

fn positional<'py>(py: Python<'py>, args: Option<&PyObj<'py>>) -> PyResult<Bound<'py, PyTuple>> {
    match args {
        None => Ok(PyTuple::empty(py)),
        Some(a) => match a.cast::<PyTuple>() {
            Ok(t) => Ok(t.clone()),
            Err(_) => PyTuple::new(py, a.try_iter()?.collect::<PyResult<Vec<_>>>()?),
        },
    }
}

/// How deep tuples and lists may lie in each other where they are searched for tensors. A list may contain itself.
const DEEPEST: usize = 100;

/// A result with all its tensors, also those in tuples and lists, as objects of `cls`.
fn converted<'py>(value: PyObj<'py>, cls: &Bound<'py, PyType>, depth: usize) -> PyResult<PyObj<'py>> {
    if let Ok(t) = value.cast::<PyTensor>() {
        if value.is_instance(cls)? {
            return Ok(value);
        }
        return Ok(identity::as_subclass(t, cls)?.into_bound(value.py()));
    }
    let is_list = value.is_instance_of::<PyList>();
    if !(is_list || value.is_instance_of::<PyTuple>()) {
        return Ok(value);
    }
    if depth == DEEPEST {
        return Err(PyRecursionError::new_err(format!(
            "__torch_function__: the result has more than {DEEPEST} levels of tuples and lists, or contains itself"
        )));
    }
    let items: Vec<PyObj<'py>> = value.try_iter()?.collect::<PyResult<_>>()?;
    let mut changed = false;
    let mut made = Vec::with_capacity(items.len());
    for item in items {
        let new = converted(item.clone(), cls, depth + 1)?;
        changed |= !new.is(&item);
        made.push(new);
    }
    if !changed {
        return Ok(value);
    }
    let ty = value.get_type();
    let made = PyList::new(value.py(), made)?;
    // The constructor of a named tuple takes the fields one by one.
    if ty.hasattr("_make")? { ty.call_method1("_make", (made,)) } else { ty.call1((made,)) }
}

/// Whether `func` returns a tensor that another one holds, which must be the same object each time.
fn gives_what_is_held(func: &PyObj<'_>) -> PyResult<bool> {
    let py = func.py();
    let Ok(of) = func.getattr(intern!(py, "__self__")) else { return Ok(false) };
    let ty = py.get_type::<PyTensor>();
    Ok(of.is(&ty.getattr("grad")?) || of.is(&ty.getattr("_base")?))
}

#[pymethods]
impl PyTensor {
    /// Calls ``func`` and converts the tensors in its result to this class.
    ///
    /// Args:
    ///     func: The function that was called.
    ///     types: The classes of the arguments that have a ``__torch_function__``.
    ///     args: The positional arguments.
    ///     kwargs: The keyword arguments.
    ///
    /// Returns:
    ///     The result; NotImplemented if this class is not a subclass of all ``types``.
    #[classmethod]
    #[pyo3(signature = (func, types, args=None, kwargs=None))]
    fn __torch_function__<'py>(
        cls: &Bound<'py, PyType>,
        func: &PyObj<'py>,
        types: &PyObj<'py>,
        args: Option<&PyObj<'py>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyObjResult {
        let py = func.py();
        for t in types.try_iter()? {
            if !cls.is_subclass(&t?)? {
                return Ok(py.NotImplemented());
            }
        }
        let args = positional(py, args)?;
        let value = {
            let _guard = Restricted::to(Enabled::ModesOnly);
            // A function of this package does not come back to here.
            let first = foreign::first_tensor(&args, kwargs).unwrap_or_else(|| args.clone().into_any());
            let Some(_waiting) = Waiting::begin(func, &first) else { return Err(foreign::mixed(func, &first)) };
            func.call(&args, kwargs)?
        };
        if std::ptr::eq(cls.as_type_ptr(), identity::base_type()) || gives_what_is_held(func)? {
            return Ok(value.unbind());
        }
        Ok(converted(value, cls, 0)?.unbind())
    }

    /// This tensor as an object of class `cls`, with the same memory and history.
    ///
    /// Raises:
    ///     TypeError: `cls` is not a subclass of Tensor.
    fn as_subclass(slf: &Bound<'_, Self>, cls: &Bound<'_, PyAny>) -> PyObjResult {
        match cls.cast::<PyType>() {
            Ok(ty) if ty.is_subclass_of::<PyTensor>()? => identity::as_subclass(slf, ty),
            _ => Err(type_error(format!(
                "as_subclass(): Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your \
                 class inherits from Tensor. Got {cls}."
            ))),
        }
    }
}

/// Makes the next `_has_torch_function` return False.
#[pyfunction]
fn _skip_torch_function_once(on: bool) {
    SKIP.set(on);
}

/// Sets whether overrides of subclasses are called on this thread, and returns the previous setting.
#[pyfunction]
fn _set_torch_function_enabled(on: bool) -> bool {
    ENABLED.replace(if on { Enabled::All } else { Enabled::ModesOnly }) == Enabled::All
}

/// Whether an element of ``relevant_args`` has an override, or a mode is active.
#[pyfunction]
fn _has_torch_function(relevant_args: &PyObj<'_>) -> PyResult<bool> {
    if SKIP.replace(false) {
        return Ok(false);
    }
    if modes_apply() {
        return Ok(true);
    }
    let items = relevant_args.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    Ok(!Asked::of(items).0.is_empty())
}

/// Whether one of the arguments has an override, or a mode is active.
#[pyfunction]
#[pyo3(signature = (*args))]
fn _has_torch_function_variadic(args: &Bound<'_, PyTuple>) -> bool {
    !SKIP.replace(false) && (modes_apply() || !Asked::of(args.iter()).0.is_empty())
}

/// Calls the overrides of modes and of the elements of ``relevant_args``, in PyTorch's order.
#[pyfunction]
fn _ask_torch_function<'py>(
    func: PyObj<'py>,
    relevant_args: &PyObj<'py>,
    args: Bound<'py, PyTuple>,
    kwargs: Option<Bound<'py, PyDict>>,
) -> PyObjResult {
    let items = relevant_args.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    Call { func, args, kwargs }.ask(&Asked::of(items))
}

/// Whether overrides of subclasses are called on this thread.
#[pyfunction]
fn _is_torch_function_enabled() -> bool {
    ENABLED.get() == Enabled::All
}

/// A profiler begins (1) or ends (-1): while one is on, every call takes the way of modes, on which it is an event.
pub(super) fn profilers_changed(by: isize) {
    modes_changed(by);
}

fn modes_changed(by: isize) {
    let now = MODES.load(Ordering::Relaxed).saturating_add_signed(by);
    MODES.store(now, Ordering::Relaxed);
    PLAIN.store(if now == 0 { identity::base_type() } else { std::ptr::null_mut() }, Ordering::Relaxed);
}

/// Makes ``mode`` the innermost one of this thread.
#[pyfunction]
fn _push_torch_function_mode(mode: Py<PyAny>) {
    modes_changed(1);
    MODE_STACK.with_borrow_mut(|s| s.push(mode));
}

/// Removes the innermost mode of this thread and returns it.
#[pyfunction]
fn _pop_torch_function_mode() -> PyObjResult {
    let mode = MODE_STACK.with_borrow_mut(Vec::pop).ok_or_else(|| PyIndexError::new_err("no TorchFunctionMode is on in this thread"))?;
    modes_changed(-1);
    Ok(mode)
}

/// The active modes of this thread, outermost first.
#[pyfunction]
fn _torch_function_modes(py: Python<'_>) -> Vec<Py<PyAny>> {
    MODE_STACK.with_borrow(|s| s.iter().map(|m| m.clone_ref(py)).collect())
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    static HELD: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();
    let py = m.py();
    m.add_class::<DisableTorchFunctionSubclass>()?;
    m.add_class::<DisableTorchFunction>()?;
    m.add_function(wrap_pyfunction!(_disabled_torch_function_impl, m)?)?;
    m.add_function(wrap_pyfunction!(_has_torch_function, m)?)?;
    m.add_function(wrap_pyfunction!(_has_torch_function_variadic, m)?)?;
    m.add_function(wrap_pyfunction!(_ask_torch_function, m)?)?;
    m.add_function(wrap_pyfunction!(_is_torch_function_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_skip_torch_function_once, m)?)?;
    m.add_function(wrap_pyfunction!(_set_torch_function_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_push_torch_function_mode, m)?)?;
    m.add_function(wrap_pyfunction!(_pop_torch_function_mode, m)?)?;
    m.add_function(wrap_pyfunction!(_torch_function_modes, m)?)?;
    let name = intern!(py, "__torch_function__").clone().into_any();
    let held = HELD.get_or_try_init(py, || PyResult::Ok((name.unbind(), m.getattr("_disabled_torch_function_impl")?.unbind())))?;
    NAME.store(held.0.as_ptr(), Ordering::Relaxed);
    LEAVES_ALONE.store(held.1.as_ptr(), Ordering::Relaxed);
    PLAIN.store(identity::base_type(), Ordering::Relaxed);
    old_forms::register(m)?;
    covers::register(m)?;
    operators::register(m)
}
