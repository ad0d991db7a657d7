//! What a call needs of a Function's class: its methods and flags, looked up once and again when the class or a base of it has changed.

use crate::array::lock_order::TableLock;
use crate::python::errors::{runtime, type_error};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;

/// The class's methods and flags.
pub(super) struct Methods {
    /// CPython's number of the class's state; 0 if these must not be used again.
    version: u32,
    /// The class of the contexts.
    pub context: Py<PyType>,
    /// The name of the nodes.
    pub name: Arc<str>,
    /// Whether there is a `setup_context`, and `forward` takes no context.
    pub separate: bool,
    pub forward: Py<PyAny>,
    pub setup_context: Py<PyAny>,
    /// `backward`, or `vjp`, its other name; None if both are there.
    pub backward: Option<Py<PyAny>>,
    pub boxed_grads: bool,
    pub clears_saved: bool,
    /// How many arguments `forward` of a Function with `setup_context` takes; None where its signature has to be asked.
    pub arguments: Option<usize>,
}

/// The number that CPython gives to the state of a class and its bases; 0 if there is none.
fn version(class: &Bound<'_, PyType>) -> u32 {
    // SAFETY: a live type. Any change of the class or a base sets the number to 0; numbers are not used again.
    unsafe { (*class.as_type_ptr()).tp_version_tag }
}

fn flag(class: &Bound<'_, PyType>, name: &Bound<'_, pyo3::types::PyString>) -> PyResult<bool> {
    class.getattr(name)?.is_truthy()
}

/// Whether reading the attribute gives the same object each time: a static method, or a function.
fn is_constant(class: &Bound<'_, PyType>, name: &Bound<'_, pyo3::types::PyString>) -> PyResult<bool> {
    static KINDS: PyOnceLock<Py<PyTuple>> = PyOnceLock::new();
    let py = class.py();
    let kinds = KINDS.get_or_try_init(py, || -> PyResult<Py<PyTuple>> {
        let types = py.import("types")?;
        let found = [
            py.import("builtins")?.getattr("staticmethod")?,
            types.getattr("FunctionType")?,
            types.getattr("BuiltinFunctionType")?,
            py.get_type::<pyo3::types::PyBool>().into_any(),
        ];
        Ok(PyTuple::new(py, found)?.unbind())
    })?;
    for base in class.mro() {
        if let Some(raw) = base.getattr(intern!(py, "__dict__"))?.call_method1(intern!(py, "get"), (name,)).ok().filter(|o| !o.is_none()) {
            return raw.is_instance(kinds.bind(py));
        }
    }
    Ok(false)
}

impl Methods {
    fn of(class: &Bound<'_, PyType>) -> PyResult<Methods> {
        let py = class.py();
        let forward = class.getattr(intern!(py, "forward"))?;
        let before = version(class);
        let separate = flag(class, intern!(py, "_has_setup_context"))?;
        let context = class.getattr(intern!(py, "_backward_cls"))?.cast_into::<PyType>()?;
        let mut made = Methods {
            version: 0,
            name: context.name()?.to_string().into(),
            context: context.unbind(),
            separate,
            setup_context: class.getattr(intern!(py, "setup_context"))?.unbind(),
            backward: backward_of(class)?.map(Bound::unbind),
            boxed_grads: flag(class, intern!(py, "boxed_grads_call"))?,
            clears_saved: flag(class, intern!(py, "clear_saved_tensors_on_access"))?,
            arguments: if separate { arguments_of(&forward)? } else { None },
            forward: forward.unbind(),
        };
        let names = [
            intern!(py, "forward"),
            intern!(py, "setup_context"),
            intern!(py, "backward"),
            intern!(py, "vjp"),
            intern!(py, "boxed_grads_call"),
            intern!(py, "clear_saved_tensors_on_access"),
            intern!(py, "_has_setup_context"),
        ];
        let mut constant = true;
        for name in names {
            constant &= is_constant(class, name)?;
        }
        if constant && version(class) == before {
            made.version = before;
        }
        Ok(made)
    }
}

/// The number of parameters of a function without `*args`, which is no wrapper.
fn arguments_of(forward: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    const VARARGS: usize = 4;
    let py = forward.py();
    let Some(code) = forward.getattr_opt(intern!(py, "__code__"))? else { return Ok(None) };
    let flags: usize = code.getattr(intern!(py, "co_flags"))?.extract()?;
    if flags & VARARGS != 0 || forward.hasattr(intern!(py, "__wrapped__"))? {
        return Ok(None);
    }
    Ok(Some(code.getattr(intern!(py, "co_argcount"))?.extract()?))
}

/// The method that computes gradients: `backward`, or `vjp`, its other name. None if the class has both.
fn backward_of<'py>(class: &Bound<'py, PyType>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = class.py();
    let inherited = class.getattr(intern!(py, "_inherited_backward"))?;
    let backward = class.getattr(intern!(py, "backward"))?;
    let vjp = class.getattr(intern!(py, "vjp"))?;
    if vjp.is(&inherited) {
        return Ok(Some(backward));
    }
    Ok(backward.is(&inherited).then_some(vjp))
}

/// A Function's class, as calls see it.
#[pyclass(name = "_FunctionClass", module = "rgrad._core", frozen)]
pub(crate) struct FunctionClass {
    class: Py<PyType>,
    methods: TableLock<Option<Methods>>,
}

impl FunctionClass {
    /// The entry of a class.
    pub(super) fn of<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, FunctionClass>> {
        let py = class.py();
        match class.getattr(intern!(py, "_function_class"))?.cast_into::<FunctionClass>() {
            Ok(entry) => Ok(entry),
            Err(_) => Err(type_error("apply: expected a class that is derived from autograd.Function")),
        }
    }

    /// Reads the methods as they are now. `f` runs under a lock and must only copy.
    #[inline]
    pub(super) fn read<R>(&self, py: Python<'_>, f: impl FnOnce(&Methods) -> R) -> PyResult<R> {
        let version = version(self.class.bind(py));
        if version != 0
            && let Some(methods) = &*self.methods.lock()
            && methods.version == version
        {
            return Ok(f(methods));
        }
        self.look_up(py, f)
    }

    #[cold]
    fn look_up<R>(&self, py: Python<'_>, f: impl FnOnce(&Methods) -> R) -> PyResult<R> {
        let methods = Methods::of(self.class.bind(py))?;
        let result = f(&methods);
        let old = self.methods.lock().replace(methods);
        drop(old);
        Ok(result)
    }

    /// The method that computes gradients, and whether it takes them as one list.
    pub(super) fn backward<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, bool)> {
        let (backward, boxed) = self.read(py, |m| (m.backward.as_ref().map(|b| b.clone_ref(py)), m.boxed_grads))?;
        match backward {
            Some(backward) => Ok((backward.into_bound(py), boxed)),
            None => Err(runtime(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them.",
            )),
        }
    }
}

#[pymethods]
impl FunctionClass {
    #[new]
    fn new(class: Py<PyType>) -> FunctionClass {
        FunctionClass { class, methods: TableLock::default() }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.class)?;
        let Some(methods) = self.methods.try_lock() else { return Ok(()) };
        let Some(m) = &*methods else { return Ok(()) };
        visit.call(&m.context)?;
        [Some(&m.forward), Some(&m.setup_context), m.backward.as_ref()].into_iter().flatten().try_for_each(|f| visit.call(f))
    }

    fn __clear__(&self) {
        let old = self.methods.lock().take();
        drop(old);
    }
}

/// Binds arguments to the parameters of `forward`: keyword arguments, and the defaults that `setup_context` sees.
pub(super) fn bound<'py>(
    class: &Bound<'py, PyType>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = class.py();
    let bind = py.import("rgrad.autograd.function")?.getattr("_bind_kwargs")?;
    let none = PyDict::new(py);
    Ok(bind.call1((class, args, kwargs.unwrap_or(&none)))?.cast_into::<PyTuple>()?)
}
