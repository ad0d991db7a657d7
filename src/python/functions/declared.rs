//! Every declared function (`ops/declared.rs`) as a function of the module and, most of them, a method of `Tensor`, from its declaration.
//!
//! Functions that read an argument in several ways are bound by hand in the other files of this folder.

use crate::autograd::Tensor;
use crate::error::Error;
use crate::layout::Scalar;
use crate::ops;
use crate::ops::declared::{Declared, Kind, Parameter, Value};
use crate::python::args::{as_tensor, int, ints, scalar, type_name};
use crate::python::dtype::dtype_option;
use crate::python::errors::{guarded, type_error};
use crate::python::functions::pointwise::into_out;
use crate::python::functions::reduce::named_pair;
use crate::python::macros::numbered;
use crate::python::raw_methods::{add_function, add_method, given_back};
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{FastFunction, RawObj};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyString, PyTuple};
use smallvec::SmallVec;

/// The most functions that can be declared.
const MOST: usize = 128;
/// The most parameters of a declared function.
const MOST_PARAMETERS: usize = 8;

/// The name of a parameter's type in errors and stubs.
fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Tensor => "Tensor",
        Kind::Int => "int",
        Kind::Float => "float",
        Kind::Bool => "bool",
        Kind::Number => "Number",
        Kind::Text => "str",
        Kind::DType => "dtype",
        Kind::Dims => "tuple of ints",
    }
}

/// A default in Python's notation. `stringify!` puts a space between a sign and its number.
fn shown(default: &str) -> String {
    match default {
        "true" => "True".into(),
        "false" => "False".into(),
        other => other.replace("- ", "-").replace('"', "'"),
    }
}

fn default_value(default: &str, kind: Kind) -> PyResult<Value<'static>> {
    let wrong = || Error::internal("a declared function", &format!("{default} is no default of kind {kind:?}"));
    if default == "None" {
        return Ok(Value::Nothing);
    }
    let text = default.replace("- ", "-");
    Ok(match kind {
        Kind::Int => Value::Int(text.parse().map_err(|_| wrong())?),
        Kind::Float => Value::Float(text.parse().map_err(|_| wrong())?),
        Kind::Number => Value::Number(match text.parse() {
            Ok(i) => Scalar::Int(i),
            Err(_) => Scalar::Float(text.parse().map_err(|_| wrong())?),
        }),
        Kind::Bool => Value::Bool(text.parse().map_err(|_| wrong())?),
        Kind::Text => Value::Text(text.trim_matches('"').into()),
        Kind::Dims => {
            let dims = text.trim_matches(['(', ')']).split(',').map(str::trim).filter(|d| !d.is_empty());
            Value::Dims(dims.map(|d| d.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?)
        }
        Kind::Tensor | Kind::DType => return Err(wrong().into()),
    })
}

/// An argument, converted to the type of its parameter. `position` is the one that errors tell; that of a method does not count `self`.
fn value<'a>(function: &Declared, position: usize, p: &Parameter, obj: &'a Bound<'_, PyAny>) -> PyResult<Value<'a>> {
    if p.optional && obj.is_none() {
        return Ok(Value::Nothing);
    }
    let wrong = || {
        let position = if p.keyword_only { String::new() } else { format!(" (position {position})") };
        type_error(format!("{}(): argument '{}'{position} must be {}, not {}", function.name, p.name, type_of(p.kind), type_name(obj)))
    };
    let is_bool = || obj.is_instance_of::<PyBool>();
    match p.kind {
        Kind::Tensor => as_tensor(obj).map(Value::Tensor).ok_or_else(wrong),
        Kind::Int if is_bool() => Err(wrong()),
        Kind::Int => int(obj).map(Value::Int).map_err(|_| wrong()),
        Kind::Float if obj.is_exact_instance_of::<PyFloat>() => Ok(Value::Float(obj.extract()?)),
        Kind::Float => scalar(obj)?.map(|s| Value::Float(s.to_f64())).ok_or_else(wrong),
        Kind::Number => scalar(obj)?.map(Value::Number).ok_or_else(wrong),
        Kind::Bool => {
            if is_bool() {
                Ok(Value::Bool(obj.is_truthy()?))
            } else {
                Err(wrong())
            }
        }
        Kind::Text => obj.extract().map(Value::Text).map_err(|_| wrong()),
        Kind::DType => dtype_option(Some(obj), function.name)?.map(Value::DType).ok_or_else(wrong),
        Kind::Dims => ints(obj).map(Value::Dims).map_err(|_| wrong()),
    }
}

/// The arguments of a call in the order of the parameters, and `out=`.
type Sorted<'a, 'py> = ([Option<&'a Bound<'py, PyAny>>; MOST_PARAMETERS], Option<&'a Bound<'py, PyAny>>);

fn sorted<'a, 'py>(
    f: &Declared,
    slf: &'a [Bound<'py, PyAny>],
    given: &'a [Bound<'py, PyAny>],
    named: &'a [Bound<'py, PyAny>],
    names: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Sorted<'a, 'py>> {
    let most = f.parameters.iter().filter(|p| !p.keyword_only).count() - slf.len();
    if given.len() > most {
        let plural = if most == 1 { "" } else { "s" };
        let was = if given.len() == 1 { "was" } else { "were" };
        return Err(type_error(format!("{}() takes {most} positional argument{plural} but {} {was} given", f.name, given.len())));
    }
    let (mut slots, mut out): Sorted<'a, 'py> = ([None; MOST_PARAMETERS], None);
    for (slot, obj) in slots.iter_mut().zip(slf.iter().chain(given)) {
        *slot = Some(obj);
    }
    let Some(names) = names else { return Ok((slots, out)) };
    for (name, value) in names.iter().zip(named) {
        let name = name.cast_into::<PyString>()?;
        let name = name.to_str()?;
        if f.takes_out && slf.is_empty() && name == "out" {
            out = Some(value).filter(|o| !o.is_none());
            continue;
        }
        let wanted = match name {
            "axis" => "dim",
            "keepdims" => "keepdim",
            "self" => "input",
            other => other,
        };
        let Some(at) = f.parameters.iter().position(|p| p.name == wanted) else {
            return Err(type_error(format!("{}() got an unexpected keyword argument '{name}'", f.name)));
        };
        if slots[at].replace(value).is_some() {
            return Err(type_error(format!("{}() got multiple values for argument '{name}'", f.name)));
        }
    }
    Ok((slots, out))
}

/// The call of all declared functions. It is `extern "C"`, so that no panic unwinds through it.
#[inline(never)]
unsafe extern "C" fn call(slf: RawObj, args: *const RawObj, nargs: ffi::Py_ssize_t, kwnames: RawObj, at: usize, is_method: bool) -> RawObj {
    // SAFETY: Python calls with the GIL held.
    let py = unsafe { Python::assume_attached() };
    let run = || -> PyResult<Py<PyAny>> {
        let bound = entry(at)?;
        let f = bound.declared;
        // SAFETY: `args` has `nargs` objects and one for each name in `kwnames`, a tuple or null, and `slf` is the object of a method call. All are
        // borrowed for this call. A `Bound` is a pointer to an object, and a shared reference to it changes no count.
        let (slf, given, named, names) = unsafe {
            let names = Bound::from_borrowed_ptr_or_opt(py, kwnames).map(|n| n.cast_into_unchecked::<PyTuple>());
            let count = nargs as usize + names.as_ref().map_or(0, |n| n.len());
            let all: &[Bound<'_, PyAny>] = if count == 0 { &[] } else { std::slice::from_raw_parts(args.cast(), count) };
            let (given, named) = all.split_at(nargs as usize);
            let slf: &[Bound<'_, PyAny>] = if is_method { std::slice::from_raw_parts((&raw const slf).cast(), 1) } else { &[] };
            (slf, given, named, names)
        };
        let (slots, out) = sorted(f, slf, given, named, names.as_ref())?;
        let mut values: SmallVec<[Value<'_>; MOST_PARAMETERS]> = SmallVec::new();
        for (k, (p, slot)) in f.parameters.iter().zip(&slots).enumerate() {
            values.push(match (slot, &bound.defaults[k]) {
                (Some(obj), _) => value(f, k + usize::from(!is_method), p, obj)?,
                (None, Some(default)) => default.clone(),
                (None, None) => return Err(missing(f, p)),
            });
        }
        let inputs =
            || -> SmallVec<[&Tensor; 4]> { values.iter().filter_map(|v| if let Value::Tensor(t) = v { Some(*t) } else { None }).collect() };
        match ((f.call)(&values)?, out) {
            ((a, None), None) => wrap(py, a),
            ((a, None), Some(out)) => into_out(py, f.name, &a, &inputs(), out),
            // PyTorch names the results of functions that are methods.
            ((a, Some(b)), _) if !f.is_method => Ok(PyTuple::new(py, [wrap(py, a)?, wrap(py, b)?])?.into_any().unbind()),
            ((a, Some(b)), out) => named_pair(py, f.name, (a, b), &inputs(), out),
        }
    };
    given_back(py, guarded(run))
}

#[cold]
fn missing(f: &Declared, p: &Parameter) -> PyErr {
    type_error(format!("{}() missing 1 required positional arguments: \"{}\"", f.name, p.name))
}

/// A declared function with the values of its defaults.
struct BoundFunction {
    declared: &'static Declared,
    defaults: Vec<Option<Value<'static>>>,
}

/// All declared functions; `register` fills it.
static BOUND: std::sync::OnceLock<Vec<BoundFunction>> = std::sync::OnceLock::new();

fn bound(declared: &'static Declared) -> PyResult<BoundFunction> {
    let default = |p: &Parameter| p.default.map(|d| default_value(d, p.kind)).transpose();
    Ok(BoundFunction { declared, defaults: declared.parameters.iter().map(default).collect::<PyResult<_>>()? })
}

#[inline]
fn entry(at: usize) -> PyResult<&'static BoundFunction> {
    BOUND.get().and_then(|all| all.get(at)).ok_or_else(|| Error::internal("a declared function", "it is not registered").into())
}

unsafe extern "C" fn function<const AT: usize>(slf: RawObj, args: *const RawObj, nargs: ffi::Py_ssize_t, kwnames: RawObj) -> RawObj {
    // SAFETY: called by Python.
    unsafe { call(slf, args, nargs, kwnames, AT, false) }
}

unsafe extern "C" fn method<const AT: usize>(slf: RawObj, args: *const RawObj, nargs: ffi::Py_ssize_t, kwnames: RawObj) -> RawObj {
    // SAFETY: called by Python.
    unsafe { call(slf, args, nargs, kwnames, AT, true) }
}

static FUNCTIONS: [[FastFunction; 16]; MOST / 16] = numbered!(function from 0, 0 1 2 3 4 5 6 7);
static METHODS: [[FastFunction; 16]; MOST / 16] = numbered!(method from 0, 0 1 2 3 4 5 6 7);

/// The text signature, as `inspect.signature` reads it.
fn signature(f: &Declared, is_method: bool) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut starred = false;
    for (k, p) in f.parameters.iter().enumerate() {
        if p.keyword_only && !starred {
            parts.push("*".into());
            starred = true;
        }
        let name = if k == 0 && is_method { "$self" } else { p.name };
        parts.push(p.default.map_or_else(|| name.into(), |d| format!("{name}={}", shown(d))));
    }
    if f.takes_out && !is_method {
        if !starred {
            parts.push("*".into());
        }
        parts.push("out=None".into());
    }
    parts.join(", ")
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let ty = m.py().get_type::<PyTensor>();
    let types = PyDict::new(m.py());
    let all: Vec<BoundFunction> = ops::DECLARED.iter().copied().flatten().map(bound).collect::<PyResult<_>>()?;
    let all = BOUND.get_or_init(|| all);
    if all.len() > MOST || all.iter().any(|f| f.declared.parameters.len() > MOST_PARAMETERS) {
        return Err(Error::internal("a declared function", "there are more functions or parameters than `declared.rs` has room for").into());
    }
    for (BoundFunction { declared: f, .. }, (function, method)) in all.iter().zip(FUNCTIONS.iter().flatten().zip(METHODS.iter().flatten()))
    {
        let doc = |is_method: bool| format!("{}({})\n--\n\n{}", f.name, signature(f, is_method), f.doc.trim());
        add_function(m, f.name, *function, &doc(false))?;
        if f.is_method {
            add_method(&ty, f.name, *method, &doc(true))?;
        }
        let parameters: Vec<(&str, &str, bool)> = f.parameters.iter().map(|p| (p.name, type_of(p.kind), p.optional)).collect();
        types.set_item(f.name, (parameters, f.pair, f.is_method))?;
    }
    // For the stub of the module: the types of the parameters, whether there are two results, and whether it is a method.
    m.add("_declared_functions", types)
}
