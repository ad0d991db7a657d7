//! Wrappers around every function of the module and every method and property of `Tensor`: if all arguments are plain, the function itself
//! runs, otherwise the overrides are called.
//!
//! CPython passes no data to a C function of a class. Each wrapped function therefore has a C function of its own with two instructions: it
//! loads the number of its `Place` and jumps to the code that all places of a kind share. Operators are wrapped in `operators`.

use super::{Asked, Call, arguments, is_plain, keywords, modes_apply, old_forms};
use crate::autograd::{Tensor, profiler};
use crate::error::Error;
use crate::python::args::as_tensor;
use crate::python::errors;
use crate::python::macros::numbered;
use crate::python::signatures;
use crate::python::tensor::PyTensor;
use crate::python::types::{FastFunction, RawObj};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use smallvec::SmallVec;
use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};

type Spread = unsafe extern "C" fn(RawObj, RawObj, RawObj) -> RawObj;
type Alone = unsafe extern "C" fn(RawObj, RawObj) -> RawObj;

/// Functions that make tensors from other objects than tensors: only modes override them.
const FOR_MODES: &[&str] = &[
    "arange",
    "as_tensor",
    "asarray",
    "empty",
    "empty_strided",
    "eye",
    "from_numpy",
    "full",
    "linspace",
    "logspace",
    "ones",
    "promote_types",
    "rand",
    "randint",
    "randn",
    "randperm",
    "scalar_tensor",
    "tensor",
    "tril_indices",
    "triu_indices",
    "zeros",
];

/// Functions and methods that cannot be overridden.
const ALWAYS_THEMSELVES: &[&str] = &[
    "as_subclass",
    "broadcast_shapes",
    "can_cast",
    "manual_seed",
    "set_anomaly_enabled",
    "set_default_device",
    "set_default_dtype",
    "set_memory_limit",
    "set_num_threads",
    "set_rng_state",
    "set_warn_always",
];

/// A wrapped function: the original function, the definition of the wrapper, and the wrapper's Python object.
pub(super) struct Place {
    original: AtomicPtr<()>,
    object: AtomicPtr<ffi::PyObject>,
    definition: AtomicPtr<ffi::PyMethodDef>,
    flags: AtomicU8,
}

const FOR_MODES_ALONE: u8 = 1;
const IS_METHOD: u8 = 2;
/// Calls with keywords go through `keywords`.
const REWRITES: u8 = 4;
/// The function has old forms.
const HAS_OLD_FORMS: u8 = 8;

impl Place {
    fn has(&self, flag: u8) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    pub(super) fn is_method(&self) -> bool {
        self.has(IS_METHOD)
    }

    pub(super) fn name(&self) -> &'static str {
        // SAFETY: `cover` filled the place with a definition that is never freed, whose name is UTF-8.
        unsafe { CStr::from_ptr((*self.definition.load(Ordering::Relaxed)).ml_name) }.to_str().unwrap_or("")
    }

    /// The documentation, which begins with the signature.
    pub(super) fn doc(&self) -> &'static str {
        // SAFETY: as in `name`; the documentation may be null.
        let doc = unsafe { (*self.definition.load(Ordering::Relaxed)).ml_doc };
        // SAFETY: a documentation of PyO3 or `cover`, which is never freed.
        if doc.is_null() { "" } else { unsafe { CStr::from_ptr(doc) }.to_str().unwrap_or("") }
    }

    /// The original function of a place that is called by the fast protocol.
    pub(super) fn fast(&self) -> FastFunction {
        let p = self.original.load(Ordering::Relaxed);
        // SAFETY: stored by `cover` from a function of this type.
        unsafe { std::mem::transmute::<*mut (), FastFunction>(p) }
    }
}

/// The number of places for functions, methods, methods without arguments, and functions that take a tuple and a dict, in units of 16.
const ROWS: [usize; 4] = [28, 32, 6, 4];

/// The first place of a kind.
const fn first(kind: usize) -> usize {
    let (mut at, mut k) = (0, 0);
    while k < kind {
        at += ROWS[k] * 16;
        k += 1;
    }
    at
}

static ALL: [Place; first(ROWS.len())] = [const {
    Place {
        original: AtomicPtr::new(std::ptr::null_mut()),
        object: AtomicPtr::new(std::ptr::null_mut()),
        definition: AtomicPtr::new(std::ptr::null_mut()),
        flags: AtomicU8::new(0),
    }
}; first(ROWS.len())];
static USED: [AtomicUsize; ROWS.len()] = [const { AtomicUsize::new(0) }; ROWS.len()];

/// The original function of a place, which is filled before its wrapper can be called.
unsafe fn original<F: Copy>(place: usize) -> F {
    let p = ALL[place].original.load(Ordering::Relaxed);
    // SAFETY: the pointer is a function of type `F`, stored by `cover`.
    unsafe { std::mem::transmute_copy::<*mut (), F>(&p) }
}

/// Calls the original function of a place by the fast protocol.
#[inline(always)]
unsafe fn run(at: usize, slf: RawObj, args: *const RawObj, nargs: isize, kwnames: RawObj) -> RawObj {
    // SAFETY: called with the arguments from Python.
    unsafe {
        let place = &ALL[at];
        let mut made = if kwnames.is_null() || !place.has(REWRITES) || !keywords::has_one(kwnames) {
            place.fast()(slf, args, nargs, kwnames)
        } else {
            keywords::call(place, slf, args, nargs, kwnames)
        };
        if made.is_null() && place.has(HAS_OLD_FORMS) {
            made = old_forms::again(place, slf, args, nargs, kwnames);
        }
        if made.is_null() {
            arguments::reword(place);
        }
        made
    }
}

#[inline(always)]
unsafe fn all_plain(args: *const RawObj, count: usize) -> bool {
    // SAFETY: `count` live objects, under the GIL.
    unsafe { (0..count).all(|i| is_plain(*args.add(i))) && (count > 0 || super::MODES.load(Ordering::Relaxed) == 0) }
}

/// Runs `f` with panics and errors turned into exceptions.
pub(super) unsafe fn guarded(py: Python<'_>, f: impl FnOnce() -> PyResult<RawObj>) -> RawObj {
    errors::guarded(f).unwrap_or_else(|e| {
        e.restore(py);
        std::ptr::null_mut()
    })
}

#[inline]
unsafe fn names_in(kwnames: RawObj) -> usize {
    // SAFETY: null or a tuple.
    unsafe { if kwnames.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(kwnames) as usize } }
}

/// Calls the original function of a place with these arguments, as an event of the profiler. While one is on, no object counts as plain.
fn seen(at: usize, given: &[Bound<'_, PyAny>], f: impl FnOnce() -> RawObj) -> RawObj {
    let name = ALL[at].name();
    let _event = if profiler::is_on() && !name.starts_with('_') {
        let tensors: SmallVec<[Option<&Tensor>; 6]> = given.iter().map(as_tensor).collect();
        profiler::function(name, &tensors)
    } else {
        None
    };
    f()
}

/// A call by the fast protocol with an argument that is not plain.
#[cold]
#[inline(never)]
unsafe fn ask_fast(at: usize, module_or_self: RawObj, is_method: bool, args: *const RawObj, nargs: isize, kwnames: RawObj) -> RawObj {
    // SAFETY: called with the arguments from Python.
    unsafe {
        let py = Python::assume_attached();
        guarded(py, || {
            let named = names_in(kwnames);
            let mut all: SmallVec<[Bound<'_, PyAny>; 6]> = SmallVec::new();
            if is_method {
                all.push(Bound::from_borrowed_ptr(py, module_or_self));
            }
            for i in 0..nargs as usize + named {
                all.push(Bound::from_borrowed_ptr(py, *args.add(i)));
            }
            let asked = asked_about(at, &all);
            if asked.0.is_empty() && !modes_apply() {
                return Ok(seen(at, &all, || run(at, module_or_self, args, nargs, kwnames)));
            }
            let values = all.split_off_names(named);
            let kwargs = if named == 0 {
                None
            } else {
                let d = PyDict::new(py);
                let names = Bound::from_borrowed_ptr(py, kwnames).cast_into::<PyTuple>()?;
                for (k, v) in names.iter().zip(values) {
                    d.set_item(k, v)?;
                }
                Some(d)
            };
            ask(py, at, PyTuple::new(py, all)?, kwargs, &asked)
        })
    }
}

trait SplitOff<T> {
    fn split_off_names(&mut self, named: usize) -> Vec<T>;
}

impl<T> SplitOff<T> for SmallVec<[T; 6]> {
    /// Removes the last `named` items and returns them.
    fn split_off_names(&mut self, named: usize) -> Vec<T> {
        self.drain(self.len() - named..).collect()
    }
}

fn asked_about<'py>(place: usize, all: &[Bound<'py, PyAny>]) -> Asked<'py> {
    if ALL[place].has(FOR_MODES_ALONE) { Asked::default() } else { Asked::of(all.iter().cloned()) }
}

fn ask<'py>(
    py: Python<'py>,
    place: usize,
    args: Bound<'py, PyTuple>,
    kwargs: Option<Bound<'py, PyDict>>,
    asked: &Asked<'py>,
) -> PyResult<RawObj> {
    // SAFETY: `register` never releases the object.
    let func = unsafe { Bound::from_borrowed_ptr(py, ALL[place].object.load(Ordering::Relaxed)) };
    Ok(Call { func, args, kwargs }.ask(asked)?.into_ptr())
}

// The code that all places of a kind share. It is `extern "C"`, so that no panic unwinds through it and the call is a jump. The place is the last
// argument, so that the others stay in their registers.

#[inline(never)]
unsafe extern "C" fn call_function(module: RawObj, args: *const RawObj, nargs: isize, kwnames: RawObj, at: usize) -> RawObj {
    // SAFETY: called by Python, through the C function of a place.
    unsafe {
        if all_plain(args, nargs as usize + names_in(kwnames)) {
            return run(at, module, args, nargs, kwnames);
        }
        ask_fast(at, module, false, args, nargs, kwnames)
    }
}

#[inline(never)]
unsafe extern "C" fn call_method(slf: RawObj, args: *const RawObj, nargs: isize, kwnames: RawObj, at: usize) -> RawObj {
    // SAFETY: called by Python, through the C function of a place.
    unsafe {
        let count = nargs as usize + names_in(kwnames);
        if is_plain(slf) && (count == 0 || all_plain(args, count)) {
            return run(at, slf, args, nargs, kwnames);
        }
        ask_fast(at, slf, true, args, nargs, kwnames)
    }
}

/// A method without arguments.
#[inline(never)]
unsafe extern "C" fn call_alone(slf: RawObj, nothing: RawObj, at: usize) -> RawObj {
    // SAFETY: called by Python, through the C function of a place.
    unsafe { if is_plain(slf) { original::<Alone>(at)(slf, nothing) } else { ask_alone(slf, nothing, at) } }
}

#[cold]
#[inline(never)]
unsafe fn ask_alone(slf: RawObj, nothing: RawObj, at: usize) -> RawObj {
    // SAFETY: called with the arguments from Python.
    unsafe {
        let py = Python::assume_attached();
        guarded(py, || {
            let me = Bound::from_borrowed_ptr(py, slf);
            let asked = Asked::of([me.clone()]);
            if asked.0.is_empty() && !modes_apply() {
                return Ok(seen(at, &[me], || original::<Alone>(at)(slf, nothing)));
            }
            ask(py, at, PyTuple::new(py, [me])?, None, &asked)
        })
    }
}

/// A method, or a function (whose `slf` is the module, which is plain), that takes a tuple and a dict.
#[inline(never)]
unsafe extern "C" fn call_spread(slf: RawObj, args: RawObj, kwargs: RawObj, at: usize) -> RawObj {
    // SAFETY: called by Python, through the C function of a place.
    unsafe {
        let plain_names = kwargs.is_null() || {
            let (mut next, mut value, mut plain) = (0, std::ptr::null_mut(), true);
            while ffi::PyDict_Next(kwargs, &raw mut next, std::ptr::null_mut(), &raw mut value) != 0 {
                plain = plain && is_plain(value);
            }
            plain
        };
        if is_plain(slf) && is_plain(args) && plain_names {
            let made = original::<Spread>(at)(slf, args, kwargs);
            if made.is_null() {
                arguments::reword(&ALL[at]);
            }
            return made;
        }
        ask_spread(slf, args, kwargs, at)
    }
}

#[cold]
#[inline(never)]
unsafe fn ask_spread(slf: RawObj, args: RawObj, kwargs: RawObj, at: usize) -> RawObj {
    // SAFETY: called with the arguments from Python.
    unsafe {
        let py = Python::assume_attached();
        guarded(py, || {
            let me = Bound::from_borrowed_ptr(py, slf);
            let args = Bound::from_borrowed_ptr(py, args).cast_into::<PyTuple>()?;
            let named = Bound::from_borrowed_ptr_or_opt(py, kwargs).map(Bound::cast_into::<PyDict>).transpose()?;
            let mut all: Vec<Bound<'_, PyAny>> = if me.is_instance_of::<PyTensor>() { vec![me] } else { vec![] };
            all.extend(args.iter());
            let positional = PyTuple::new(py, &all)?;
            all.extend(named.iter().flat_map(|d| d.values()));
            let asked = asked_about(at, &all);
            if asked.0.is_empty() && !modes_apply() {
                let made = seen(at, &all, || original::<Spread>(at)(slf, args.as_ptr(), kwargs));
                if made.is_null() {
                    arguments::reword(&ALL[at]);
                }
                return Ok(made);
            }
            ask(py, at, positional, named.filter(|d| !d.is_empty()), &asked)
        })
    }
}

// The C functions of the places.

unsafe extern "C" fn function<const AT: usize>(module: RawObj, args: *const RawObj, nargs: isize, kwnames: RawObj) -> RawObj {
    // SAFETY: called by Python.
    unsafe { call_function(module, args, nargs, kwnames, AT) }
}

unsafe extern "C" fn method<const AT: usize>(slf: RawObj, args: *const RawObj, nargs: isize, kwnames: RawObj) -> RawObj {
    // SAFETY: called by Python.
    unsafe { call_method(slf, args, nargs, kwnames, AT) }
}

unsafe extern "C" fn alone<const AT: usize>(slf: RawObj, nothing: RawObj) -> RawObj {
    // SAFETY: called by Python.
    unsafe { call_alone(slf, nothing, AT) }
}

unsafe extern "C" fn spread<const AT: usize>(slf: RawObj, args: RawObj, kwargs: RawObj) -> RawObj {
    // SAFETY: called by Python.
    unsafe { call_spread(slf, args, kwargs, AT) }
}

static FUNCTIONS: [[FastFunction; 16]; ROWS[0]] =
    numbered!(function from first(0), 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27);
static METHODS: [[FastFunction; 16]; ROWS[1]] =
    numbered!(method from first(1), 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
static ALONE: [[Alone; 16]; ROWS[2]] = numbered!(alone from first(2), 0 1 2 3 4 5);
static SPREAD: [[Spread; 16]; ROWS[3]] = numbered!(spread from first(3), 0 1 2 3);

/// A new place of a kind.
fn take(kind: usize, name: &str) -> PyResult<(usize, usize, usize)> {
    let at = USED[kind].fetch_add(1, Ordering::Relaxed);
    if at >= ROWS[kind] * 16 {
        return Err(Error::internal(name, "no place is left for its cover").into());
    }
    Ok((first(kind) + at, at / 16, at % 16))
}

/// The definition of the wrapper of a function or method; None if it cannot be overridden.
unsafe fn cover(def: *const ffi::PyMethodDef, is_method: bool) -> PyResult<Option<(usize, *mut ffi::PyMethodDef)>> {
    // SAFETY: a definition of PyO3 or of `functions`, which is never freed.
    unsafe {
        let name = CStr::from_ptr((*def).ml_name).to_str().unwrap_or("");
        let hidden = name.starts_with('_') && !is_method;
        if hidden || ALWAYS_THEMSELVES.contains(&name) {
            return Ok(None);
        }
        let flags = (*def).ml_flags;
        let no_arguments = flags & ffi::METH_NOARGS != 0;
        if no_arguments && !is_method {
            return Ok(None);
        }
        let p = (*def).ml_meth;
        let (at, was, now) = if flags == ffi::METH_FASTCALL | ffi::METH_KEYWORDS {
            let (at, row, column) = take(usize::from(is_method), name)?;
            let f = if is_method { METHODS[row][column] } else { FUNCTIONS[row][column] };
            (at, p.PyCFunctionFastWithKeywords as *mut (), ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: f })
        } else if no_arguments {
            let (at, row, column) = take(2, name)?;
            (at, p.PyCFunction as *mut (), ffi::PyMethodDefPointer { PyCFunction: ALONE[row][column] })
        } else if flags == ffi::METH_VARARGS | ffi::METH_KEYWORDS {
            let (at, row, column) = take(3, name)?;
            (at, p.PyCFunctionWithKeywords as *mut (), ffi::PyMethodDefPointer { PyCFunctionWithKeywords: SPREAD[row][column] })
        } else {
            return Err(Error::internal(name, &format!("it is called in an unknown way, flags {flags}")).into());
        };
        ALL[at].original.store(was, Ordering::Relaxed);
        let given = if (*def).ml_doc.is_null() { "" } else { CStr::from_ptr((*def).ml_doc).to_str().unwrap_or("") };
        let documented = signatures::documented(name, is_method, given);
        let shown = documented.as_deref().unwrap_or(given);
        let ml_doc = match &documented {
            None => (*def).ml_doc,
            Some(doc) => CString::new(doc.as_str())?.into_raw().cast_const(),
        };
        let new = ffi::PyMethodDef { ml_name: (*def).ml_name, ml_meth: now, ml_flags: flags, ml_doc };
        let new: *mut ffi::PyMethodDef = Box::leak(Box::new(new));
        let place = &ALL[at];
        let mut kinds = 0;
        for (flag, on) in [
            (FOR_MODES_ALONE, !is_method && FOR_MODES.contains(&name)),
            (IS_METHOD, is_method),
            (REWRITES, keywords::concerns(name, is_method, shown)),
            (HAS_OLD_FORMS, old_forms::has_one(name)),
        ] {
            kinds |= if on { flag } else { 0 };
        }
        place.flags.store(kinds, Ordering::Relaxed);
        place.definition.store(new, Ordering::Relaxed);
        Ok(Some((at, new)))
    }
}

/// A wrapped property.
struct Property {
    get: Option<ffi::getter>,
    set: Option<ffi::setter>,
    closure: *mut c_void,
    object: AtomicPtr<ffi::PyObject>,
}

/// Calls the overrides of a property; `how` is `__get__` or `__set__`.
#[cold]
unsafe fn ask_property(of: &Property, slf: RawObj, value: RawObj, how: &str, itself: &dyn Fn() -> RawObj) -> RawObj {
    // SAFETY: called with the arguments from Python.
    unsafe {
        let py = Python::assume_attached();
        guarded(py, || {
            let me = Bound::from_borrowed_ptr(py, slf);
            let asked = Asked::of([me.clone()]);
            if asked.0.is_empty() && !modes_apply() {
                return Ok(itself());
            }
            let func = Bound::from_borrowed_ptr(py, of.object.load(Ordering::Relaxed)).getattr(how)?;
            let args = match Bound::from_borrowed_ptr_or_opt(py, value) {
                None => PyTuple::new(py, [me])?,
                Some(v) => PyTuple::new(py, [me, v])?,
            };
            Ok(Call { func, args, kwargs: None }.ask(&asked)?.into_ptr())
        })
    }
}

unsafe extern "C" fn get(slf: RawObj, closure: *mut c_void) -> RawObj {
    // SAFETY: the closure is a `Property` that is never freed. Python calls this only if there is a getter.
    unsafe {
        let of = &*closure.cast::<Property>();
        let itself = || of.get.map_or(std::ptr::null_mut(), |f| f(slf, of.closure));
        if is_plain(slf) { itself() } else { ask_property(of, slf, std::ptr::null_mut(), "__get__", &itself) }
    }
}

unsafe extern "C" fn set(slf: RawObj, value: RawObj, closure: *mut c_void) -> c_int {
    // SAFETY: as above. A null value is a deletion, which the property itself accepts or refuses.
    unsafe {
        let of = &*closure.cast::<Property>();
        let failed = std::cell::Cell::new(0);
        let itself = || {
            failed.set(of.set.map_or(-1, |f| f(slf, value, of.closure)));
            if failed.get() < 0 { std::ptr::null_mut() } else { ffi::Py_NewRef(ffi::Py_None()) }
        };
        let done = if is_plain(slf) || value.is_null() { itself() } else { ask_property(of, slf, value, "__set__", &itself) };
        if done.is_null() {
            return -1;
        }
        ffi::Py_DECREF(done);
        0
    }
}

/// A reference that is never released: a bound method may outlive the attribute of the class.
fn for_ever(object: &Bound<'_, PyAny>) -> RawObj {
    object.clone().into_ptr()
}

/// Wraps all functions of the module, and all methods and properties of the class.
pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    let ty = py.get_type::<PyTensor>();
    let own = ty.getattr("__dict__")?;
    let entries: Vec<(String, Bound<'_, PyAny>)> = own.call_method0("items")?.try_iter()?.map(|e| e?.extract()).collect::<PyResult<_>>()?;
    for (name, object) in entries {
        let kind = object.get_type().name()?.to_string();
        // SAFETY: the kind determines the layout of the descriptor. New definitions are never freed, nor are the class's attributes.
        unsafe {
            let new = match kind.as_str() {
                "method_descriptor" => {
                    let Some((at, def)) = cover((*object.as_ptr().cast::<ffi::PyMethodDescrObject>()).d_method, true)? else { continue };
                    let new = Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(ty.as_type_ptr(), def))?;
                    ALL[at].object.store(for_ever(&new), Ordering::Relaxed);
                    new
                }
                "getset_descriptor" if name != "__dict__" => {
                    let def = &*(*object.as_ptr().cast::<ffi::PyGetSetDescrObject>()).d_getset;
                    let property: &Property = Box::leak(Box::new(Property {
                        get: def.get,
                        set: def.set,
                        closure: def.closure,
                        object: AtomicPtr::new(std::ptr::null_mut()),
                    }));
                    let def = Box::leak(Box::new(ffi::PyGetSetDef {
                        name: def.name,
                        get: def.get.map(|_| get as ffi::getter),
                        set: def.set.map(|_| set as ffi::setter),
                        doc: def.doc,
                        closure: std::ptr::from_ref(property).cast_mut().cast(),
                    }));
                    let new = Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewGetSet(ty.as_type_ptr(), def))?;
                    property.object.store(for_ever(&new), Ordering::Relaxed);
                    new
                }
                _ => continue,
            };
            ty.setattr(name, new)?;
        }
    }
    for (name, object) in m.dict().iter() {
        if !object.is_instance_of::<PyCFunction>() {
            continue;
        }
        // SAFETY: this is the layout of a built-in function, whose definition is never freed.
        unsafe {
            let f = object.as_ptr().cast::<ffi::PyCFunctionObject>();
            let Some((at, def)) = cover((*f).m_ml, false)? else { continue };
            let new = Bound::from_owned_ptr_or_err(py, ffi::PyCFunction_NewEx(def, (*f).m_self, (*f).m_module))?;
            ALL[at].object.store(for_ever(&new), Ordering::Relaxed);
            m.setattr(name.extract::<String>()?.as_str(), new)?;
        }
    }
    Ok(())
}
