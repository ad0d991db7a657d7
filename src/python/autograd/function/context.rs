//! The context that `forward` and `backward` of a custom Function share; also its node, as Python sees it.
//!
//! Not here: who owns the context (`context_owner`), and how what it was given becomes the node's (`record`).

use super::class::FunctionClass;
use super::node::traverse;
use super::warn;
use crate::array::lock_order::TableLock;
use crate::autograd::{Node, WeakTensor, ownership};
use crate::python::args::{as_tensor, type_name};
use crate::python::autograd::node::PyNode;
use crate::python::autograd::saved::SavedTensor;
use crate::python::autograd::{collector, context_owner};
use crate::python::errors::{guarded, runtime, type_error};
use crate::python::raw_methods::{add_method, add_property, given_back};
use crate::python::tensor::identity::{existing, wrap};
use crate::python::types::{PyObjResult, RawObj};
use pyo3::exceptions::PyAttributeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};
use smallvec::SmallVec;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// The context that `forward` and `backward` share; also the node of the Function in the graph.
#[pyclass(name = "_FunctionCtx", module = "rgrad._core", extends = PyNode, subclass, dict, frozen)]
pub(crate) struct FunctionCtx {
    pub(super) materialize: AtomicBool,
    /// Whether `saved_tensors` can be read once only (`clear_saved_tensors_on_access`).
    once: bool,
    /// None for a context that was made by hand.
    pub(super) class: Option<Py<FunctionClass>>,
    pub(super) state: TableLock<ContextState>,
}

#[derive(Default)]
pub(super) struct ContextState {
    /// What `save_for_backward` was given, until the node has it.
    pub to_save: Option<Py<PyTuple>>,
    pub dirty: Option<Py<PyTuple>>,
    pub non_differentiable: Option<Py<PyTuple>>,
    pub needs: Needs,
    /// What `save_for_forward` was given, until `jvp` has run.
    for_forward: Option<Py<PyTuple>>,
    /// `jvp` runs: `saved_tensors` is what it was saved.
    in_jvp: bool,
    /// For each saved value, its place in the node; None for a saved None.
    pub places: SmallVec<[Option<u32>; 4]>,
    pub node: Option<std::sync::Weak<Node>>,
    /// Which outputs have derivatives.
    pub differentiable: SmallVec<[bool; 4]>,
    /// `saved_tensors` was read, of a Function that gives it once.
    accessed: bool,
    /// The outputs, where some of them were found in the context's attributes. Each holds the context, see `kept_outputs::hold`.
    pub outputs: Vec<WeakTensor>,
}

/// `needs_input_grad`.
#[derive(Default)]
pub(super) enum Needs {
    #[default]
    Unknown,
    /// The tuple is made when it is read.
    Flags(SmallVec<[bool; 8]>),
    Tuple(Py<PyTuple>),
}

impl FunctionCtx {
    pub(super) fn of(class: Option<Py<FunctionClass>>, once: bool) -> FunctionCtx {
        FunctionCtx { materialize: AtomicBool::new(true), once, class, state: TableLock::default() }
    }

    /// `saved_tensors` in every case.
    fn saved<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        // Errors and tuples are made after the lock: making an object may run the garbage collector.
        let (node, places) = {
            let state = self.state.lock();
            match &state.node {
                Some(node) if !state.in_jvp => (node.upgrade(), state.places.clone()),
                _ => {
                    let given = if state.in_jvp { &state.for_forward } else { &state.to_save };
                    let given = given.as_ref().map(|t| t.bind(py).clone());
                    drop(state);
                    return Ok(given.unwrap_or_else(|| PyTuple::empty(py)));
                }
            }
        };
        let Some(node) = node else { return Err(runtime("saved_tensors: the graph of this context is gone")) };
        if node.is_freed() {
            return Err(node.freed_error().into());
        }
        if self.once && std::mem::replace(&mut self.state.lock().accessed, true) {
            return Err(runtime(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the autograd.Function. Either access \
                 saved_tensors only once, or set clear_saved_tensors_on_access=False.",
            ));
        }
        let mut out: SmallVec<[Py<PyAny>; 4]> = SmallVec::new();
        for p in places {
            out.push(match p {
                Some(i) => wrap(py, node.unpack(i as usize)?)?,
                None => py.None(),
            });
        }
        if self.once {
            node.save(SmallVec::new());
        }
        PyTuple::new(py, out)
    }

    /// `needs_input_grad`; the tuple is made once.
    fn needs(&self, py: Python<'_>) -> PyObjResult {
        let bits = match &self.state.lock().needs {
            Needs::Unknown => return Err(PyAttributeError::new_err("needs_input_grad is set when the Function is applied")),
            Needs::Tuple(made) => return Ok(made.clone_ref(py).into_any()),
            Needs::Flags(flags) => flags.clone(),
        };
        // Made after the lock, and kept.
        let made = PyTuple::new(py, &bits)?.unbind();
        let old = std::mem::replace(&mut self.state.lock().needs, Needs::Tuple(made.clone_ref(py)));
        drop(old);
        Ok(made.into_any())
    }
}

/// The commonest `saved_tensors`.
#[inline]
fn tuple_of_one(py: Python<'_>, item: Py<PyAny>) -> PyResult<Bound<'_, PyTuple>> {
    // SAFETY: a new tuple is filled before other code sees it, and takes the reference.
    unsafe {
        let tuple = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(1))?;
        ffi::PyTuple_SET_ITEM(tuple.as_ptr(), 0, item.into_ptr());
        Ok(tuple.cast_into_unchecked())
    }
}

/// `save_for_backward(*tensors)`, as a C function: with what PyO3 does around one it would cost twice as much.
unsafe extern "C" fn save_for_backward(slf: RawObj, args: *const RawObj, count: ffi::Py_ssize_t, keywords: RawObj) -> RawObj {
    // SAFETY: Python calls this with the GIL, a `FunctionCtx` (its descriptor checks that) and `count` live arguments.
    let (py, slf, args) = unsafe {
        let py = Python::assume_attached();
        let args = if count == 0 { &[] } else { std::slice::from_raw_parts(args, count as usize) };
        (py, Borrowed::from_ptr(py, slf), args)
    };
    let saved = guarded(|| {
        if !keywords.is_null() {
            return Err(type_error("save_for_backward() takes no keyword arguments"));
        }
        for (i, t) in args.iter().enumerate() {
            // SAFETY: as above.
            let t = unsafe { Borrowed::from_ptr(py, *t) };
            if !t.is_none() && as_tensor(&t).is_none() {
                return Err(type_error(format!(
                    "save_for_backward can only save variables, but argument {i} is of type {}",
                    type_name(&t)
                )));
            }
        }
        // SAFETY: a new tuple is filled before other code sees it.
        let tuple = unsafe {
            let tuple = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(count))?;
            for (i, t) in args.iter().enumerate() {
                ffi::Py_INCREF(*t);
                ffi::PyTuple_SET_ITEM(tuple.as_ptr(), i as ffi::Py_ssize_t, *t);
            }
            tuple.cast_into_unchecked::<PyTuple>()
        };
        // SAFETY: as above.
        let ctx = unsafe { slf.cast_unchecked::<FunctionCtx>() };
        let old = ctx.get().state.lock().to_save.replace(tuple.unbind());
        drop(old.map(|old| old.into_bound(py)));
        Ok(())
    });
    given_back(py, saved.map(|()| py.None()))
}

/// `saved_tensors` where that is one input that nothing has written since and whose object Python has: the commonest case.
#[inline]
fn one_unchanged<'py>(py: Python<'py>, ctx: &FunctionCtx) -> Option<PyResult<Bound<'py, PyTuple>>> {
    let (node, place) = {
        let state = ctx.state.lock();
        let ([Some(place)], false) = (&state.places[..], ctx.once || state.in_jvp) else { return None };
        (state.node.as_ref()?.upgrade()?, *place as usize)
    };
    let found = node.unchanged_input(place, |t| existing(py, t))?;
    Some(tuple_of_one(py, found))
}

/// `saved_tensors`.
unsafe extern "C" fn saved_tensors(slf: RawObj, _: *mut c_void) -> RawObj {
    // SAFETY: Python calls this with the GIL and a `FunctionCtx` (its descriptor checks that).
    let (py, slf) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, slf).cast_unchecked::<FunctionCtx>())
    };
    let saved = guarded(|| one_unchanged(py, slf.get()).unwrap_or_else(|| slf.get().saved(py)));
    given_back(py, saved.map(|t| t.into_any().unbind()))
}

/// `needs_input_grad`.
unsafe extern "C" fn needs_input_grad(slf: RawObj, _: *mut c_void) -> RawObj {
    // SAFETY: as above.
    let (py, slf) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, slf).cast_unchecked::<FunctionCtx>())
    };
    given_back(py, guarded(|| slf.get().needs(py)))
}

/// Sets `needs_input_grad`, to a tuple.
unsafe extern "C" fn set_needs_input_grad(slf: RawObj, value: RawObj, _: *mut c_void) -> c_int {
    // SAFETY: as above; the value is an object, or null where the attribute is deleted.
    let (py, slf, value) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, slf).cast_unchecked::<FunctionCtx>(), Bound::from_borrowed_ptr_or_opt(py, value))
    };
    let set = guarded(|| {
        let Some(value) = value else { return Err(PyAttributeError::new_err("needs_input_grad cannot be deleted")) };
        let tuple = value.cast_into::<PyTuple>().map_err(|e| {
            type_error(format!(
                "needs_input_grad: expected a tuple with a bool for each input of forward, got {}",
                type_name(&e.into_inner())
            ))
        })?;
        let old = std::mem::replace(&mut slf.get().state.lock().needs, Needs::Tuple(tuple.unbind()));
        drop(old);
        Ok(())
    });
    match set {
        Ok(()) => 0,
        Err(e) => {
            e.restore(py);
            -1
        }
    }
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<FunctionCtx>()?;
    let doc = "save_for_backward($self, /, *tensors)\n--\n\nSaves tensors (or None) for `backward`, which finds them in `saved_tensors`. They are \
               checked for writes in between.";
    let class = m.py().get_type::<FunctionCtx>();
    add_method(&class, "save_for_backward", save_for_backward, doc)?;
    let doc = "What was saved. Raises RuntimeError after the graph was freed, or if a saved tensor was written since.";
    add_property(&class, "saved_tensors", saved_tensors, None, doc)?;
    let doc = "For each argument of `forward`, whether its gradient is wanted.";
    add_property(&class, "needs_input_grad", needs_input_grad, Some(set_needs_input_grad), doc)
}

#[pymethods]
impl FunctionCtx {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyClassInitializer<Self> {
        PyClassInitializer::from(PyNode::unbound()).add_subclass(FunctionCtx::of(None, false))
    }

    /// Runs for every subclass: those are the classes of the Functions' contexts.
    #[classmethod]
    #[pyo3(signature = (**_kwargs))]
    fn __init_subclass__(cls: &Bound<'_, PyType>, _kwargs: Option<&Bound<'_, PyDict>>) {
        context_owner::preserve(cls);
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

    /// The same values under an older name.
    #[getter]
    fn saved_variables<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        warn(slf.py(), "DeprecationWarning", "'saved_variables' is deprecated; use 'saved_tensors'")?;
        slf.get().saved(slf.py())
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
        let all = places.into_iter().map(|p| SavedTensor::object(py, node.clone(), p.map(|p| p as usize))).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, all)
    }

    #[getter]
    fn to_save(&self, py: Python<'_>) -> Py<PyAny> {
        self.state.lock().to_save.as_ref().map_or_else(|| py.None(), |t| t.clone_ref(py).into_any())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        let Some(state) = self.state.try_lock() else { return Ok(()) };
        // The node's count of this context, which no tensor shows where several have the node.
        if !state.outputs.is_empty()
            && collector::active().is_none()
            && let Some(node) = state.node.as_ref().and_then(std::sync::Weak::upgrade)
            && ownership::sole_places(&node, &state.outputs).is_some_and(|n| n > 1)
            && let Some(f) = node.foreign()
        {
            traverse(f, &visit)?;
        }
        if let Some(class) = &self.class {
            visit.call(class)?;
        }
        if let Needs::Tuple(needs) = &state.needs {
            visit.call(needs)?;
        }
        [&state.to_save, &state.dirty, &state.non_differentiable, &state.for_forward].into_iter().flatten().try_for_each(|t| visit.call(t))
    }

    fn __clear__(&self) {
        let old = std::mem::take(&mut *self.state.lock());
        drop(old);
    }
}
