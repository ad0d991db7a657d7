//! Every pointwise row as a function of the module, a method and an in-place method, from the table of rows. Also `out=` for all functions.
//!
//! A new row needs no code here. Functions whose signature is more than operands and parameters are in `by_hand`. Not here: what a row
//! computes (`kernels/rows`).

mod by_hand;

use crate::autograd::transforms::mutation_guard::TrustedWrites;
use crate::autograd::{Tensor, dual_levels, primitives};
use crate::error::Error;
use crate::layout::{DType, Scalar, fmt_shape};
use crate::ops::pointwise::{self as pw, Arg};
use crate::python::args::{as_tensor, operand, operand_of, scalar, type_name};
use crate::python::errors::{guarded, runtime, type_error};
use crate::python::raw_methods::{add_function, add_method, given_back};
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::FastFunction;
use crate::rows::{RowId, RowInfo};
use pyo3::basic::CompareOp;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use std::ffi::CString;

type Slots<'py> = SmallVec<[Option<Bound<'py, PyAny>>; 4]>;

/// The arguments of one call in the order of `param_names`, and `out=`.
struct Parsed<'py> {
    slots: Slots<'py>,
    out: Option<Bound<'py, PyAny>>,
}

/// Matches positional and keyword arguments with parameters. Methods have no `out=`.
fn parse<'py>(
    function: &str,
    row: RowId,
    form: Form,
    mut slots: Slots<'py>,
    keywords: &[(String, Bound<'py, PyAny>)],
) -> PyResult<Parsed<'py>> {
    let info = row.info();
    let all = info.arity() + info.params.len();
    let most = if info.keyword_params { info.arity() } else { all };
    if slots.len() > most {
        return Err(type_error(format!("{function}() takes from 1 to {most} positional arguments but {} were given", slots.len())));
    }
    slots.resize(all, None);
    let mut out = None;
    if keywords.is_empty() {
        return Ok(Parsed { slots, out });
    }
    let names = param_names(row);
    for (k, v) in keywords {
        if k == "out" && form == Form::Function {
            out = if v.is_none() { None } else { Some(v.clone()) };
            continue;
        }
        let Some(i) = names.iter().position(|n| n == k || (*n == "input" && k == "self")) else {
            return Err(type_error(format!("{function}() got an unexpected keyword argument '{k}'")));
        };
        if slots[i].is_some() {
            return Err(type_error(format!("{function}() got multiple values for argument '{k}'")));
        }
        slots[i] = Some(v.clone());
    }
    Ok(Parsed { slots, out })
}

/// A write to `out=` cannot be recorded: an error if it would be.
fn refuse_recorded(function: &str, target: &Tensor, inputs: &[&Tensor]) -> PyResult<()> {
    if crate::autograd::dispatch::mode::is_grad_enabled() && (target.requires_grad() || inputs.iter().any(|t| t.requires_grad())) {
        return Err(runtime(format!(
            "{function}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
        )));
    }
    if dual_levels::is_enabled() && (target.tangent().is_some() || inputs.iter().any(|t| t.tangent().is_some())) {
        return Err(Error::not_implemented(format!(
            "Trying to use forward AD with {function}_out that does not support it because it is an out= function"
        ))
        .into());
    }
    Ok(())
}

/// Whether a function is a pointwise row.
fn is_row(function: &str) -> bool {
    RowId::ALL.iter().any(|r| r.info().name == function || r.info().aliases.contains(&function))
}

/// Writes a result to the `out=` argument, and returns that argument.
pub(crate) fn into_out(py: Python<'_>, function: &str, result: &Tensor, inputs: &[&Tensor], out: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let Some(target) = as_tensor(out) else {
        return Err(type_error(format!("{function}(): argument 'out' must be Tensor, not {}", type_name(out))));
    };
    refuse_recorded(function, target, inputs)?;
    if !result.dtype().can_cast(target.dtype()) {
        return Err(runtime(format!(
            "result type {} can't be cast to the desired output type {}",
            result.dtype().type_name(),
            target.dtype().type_name()
        )));
    }
    if target.shape() != result.shape() {
        if is_row(function) && inputs.iter().any(|t| t.same(target)) {
            return Err(runtime(format!(
                "output with shape {} doesn't match the broadcast shape {}",
                fmt_shape(&target.shape()),
                fmt_shape(&result.shape())
            )));
        }
        if target.numel() != 0 {
            PyErr::warn(
                py,
                &py.get_type::<pyo3::exceptions::PyUserWarning>(),
                &CString::new(format!(
                    "An output with one or more elements was resized since it had shape {:?}, which does not match the required output shape \
                     {:?}. This behavior is deprecated: pass an output of that shape, or one without elements.",
                    &target.shape()[..],
                    &result.shape()[..]
                ))?,
                1,
            )?;
        }
        target.set_data(&primitives::clone(&primitives::cast(result, target.dtype())?)?)?;
        // Whoever has saved the target notices the write.
        target.increment_version("resize_");
        return Ok(out.clone().unbind());
    }
    // The mutation guard need not check this write: `refuse_recorded` has.
    let _trusted = TrustedWrites::new();
    primitives::copy_(target, result)?;
    Ok(out.clone().unbind())
}

/// A call of a row with Python arguments. Positions in errors of a method do not count `self`.
fn general(py: Python<'_>, row: RowId, name: &'static str, parsed: &Parsed<'_>, form: Form) -> PyResult<Py<PyAny>> {
    let info = row.info();
    let n = info.arity();
    let missing = |what: &str| type_error(format!("{name}() missing 1 required positional arguments: \"{what}\""));
    let mut args: SmallVec<[Arg<'_>; 3]> = SmallVec::new();
    let mut tensors: SmallVec<[&Tensor; 3]> = SmallVec::new();
    for i in 0..n {
        let what = if i == 0 { "input" } else { info.operands[i].public };
        let Some(obj) = &parsed.slots[i] else { return Err(missing(what)) };
        let arg = operand_of(obj, name, i + usize::from(form == Form::Function), what)?;
        match arg {
            Arg::Tensor(t) => tensors.push(t),
            Arg::Scalar(_) if i == 0 && n == 1 => {
                return Err(type_error(format!("{name}(): argument 'input' (position 1) must be Tensor, not {}", type_name(obj))));
            }
            Arg::Scalar(_) => {}
        }
        args.push(arg);
    }
    if tensors.is_empty() {
        return Err(type_error(format!("{name}(): at least one argument must be a Tensor")));
    }
    let mut params: SmallVec<[Scalar; 3]> = SmallVec::new();
    for (k, p) in info.params.iter().enumerate() {
        params.push(match &parsed.slots[n + k] {
            Some(obj) if !obj.is_none() => {
                scalar(obj)?.ok_or_else(|| type_error(format!("{name}(): argument '{p}' must be Number, not {}", type_name(obj))))?
            }
            _ => match info.defaults[k] {
                Some(d) => Scalar::Float(d),
                None => return Err(missing(p)),
            },
        });
    }
    let common = pw::promote(&args);
    if row == RowId::Softshrink && params[0].to_f64() < 0.0 {
        return Err(runtime(format!(
            "lambda must be in range [0, {}] for input dtype {}, but found {}",
            if common == DType::F32 { "3.40282e+38" } else { "1.79769e+308" },
            common.type_name(),
            params[0]
        )));
    }
    if common == DType::F32 {
        for (k, p) in params.iter_mut().enumerate() {
            if let Scalar::Float(f) = *p
                && parsed.slots[n + k].as_ref().is_none_or(|o| o.is_none())
            {
                // The largest number stands for that of the dtype.
                *p = Scalar::Float(f.clamp(f64::from(f32::MIN), f64::from(f32::MAX)));
            }
        }
    }
    if !common.is_float() {
        // Where the row computes in integers, whole numbers are passed as integers.
        for p in &mut params {
            if let Scalar::Float(f) = *p
                && f == f.trunc()
                && f.abs() < 9.0e15
            {
                *p = Scalar::Int(f as i64);
            }
        }
    }
    if form == Form::InPlace {
        let Arg::Tensor(target) = args[0] else {
            return Err(type_error(format!("{name}(): argument 'input' (position 1) must be Tensor")));
        };
        pw::call_inplace(row, name, target, &args[1..], &params)?;
        return match &parsed.slots[0] {
            Some(obj) => Ok(obj.clone().unbind()),
            None => Err(missing("input")),
        };
    }
    if let Some(out) = &parsed.out
        && let Some(target) = as_tensor(out)
    {
        refuse_recorded(name, target, &tensors)?;
        if pw::call_into(row, &args, &params, target)? {
            return Ok(out.clone().unbind());
        }
    }
    let result = pw::call(row, &args, &params)?;
    match &parsed.out {
        Some(out) => into_out(py, name, &result, &tensors, out),
        None => wrap(py, result),
    }
}

/// The names of one row: `name` of the function and method, `name_` of the in-place method.
struct Names {
    name: &'static str,
    in_place: &'static str,
}

fn names(row: RowId) -> &'static Names {
    static ALL: std::sync::OnceLock<Vec<Names>> = std::sync::OnceLock::new();
    &ALL.get_or_init(|| {
        RowId::ALL
            .iter()
            .map(|r| {
                let name = r.info().name;
                Names { name, in_place: Box::leak(format!("{name}_").into_boxed_str()) }
            })
            .collect()
    })[row as usize]
}

fn param_names(row: RowId) -> SmallVec<[&'static str; 6]> {
    let info = row.info();
    let mut names: SmallVec<[&'static str; 6]> = SmallVec::new();
    names.push("input");
    names.extend(info.operands[1..].iter().map(|o| o.public));
    names.extend_from_slice(info.params);
    names
}

/// The three forms in which a row is bound.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A function of the module, whose arguments are all operands.
    Function,
    /// A method, whose first operand is `self`.
    Method,
    /// A method that overwrites `self`.
    InPlace,
}

impl Form {
    const ALL: [Form; 3] = [Form::Function, Form::Method, Form::InPlace];
}

/// The text signature of a row in one of its forms, as `inspect.signature` and the stubs read it.
fn signature(row: RowId, form: Form) -> String {
    let (info, names) = (row.info(), param_names(row));
    let mut parts: Vec<String> = names.iter().map(|n| (*n).to_string()).collect();
    let params = parts.split_off(info.arity());
    if form != Form::Function {
        parts[0] = "$self".into();
    }
    if info.keyword_params {
        parts.push("*".into());
    }
    parts.extend(params.into_iter().enumerate().map(|(i, p)| shown_default(info, i).map_or(p.clone(), |d| format!("{p}={d}"))));
    if form == Form::Function {
        if !info.keyword_params {
            parts.push("*".into());
        }
        parts.push("out=None".into());
    }
    parts.join(", ")
}

/// The default of a row's parameter as PyTorch's signature shows it; None if there is none.
fn shown_default(info: &RowInfo, param: usize) -> Option<String> {
    let number = || info.defaults[param].map(|d| format!("{d:?}"));
    info.shown_defaults[param].map(String::from).or_else(number)
}

/// The row, the form, and the number of operands of a call that `common` handles (0 if there is no such call), in one number.
const fn packed(row: RowId, form: Form) -> usize {
    let info = row.info();
    let operands = if info.params.is_empty() && info.arity() <= 2 { info.arity() } else { 0 };
    ((row as usize) << 4) | ((form as usize) << 2) | operands
}

/// The fast path of a call with operands only. None if the first is not a tensor, or the second neither a tensor nor a number.
#[inline(always)]
fn common(py: Python<'_>, row: RowId, form: Form, x: &Bound<'_, PyAny>, y: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Py<PyAny>>> {
    let Some(t) = as_tensor(x) else { return Ok(None) };
    let made = match y {
        None if form == Form::InPlace => pw::call_inplace(row, names(row).in_place, t, &[], &[]).map(|()| None)?,
        None => Some(pw::call(row, &[Arg::Tensor(t)], &[])?),
        Some(y) => {
            let Some(y) = operand(y)? else {
                let of_complex =
                    matches!(row, RowId::Eq | RowId::Ne) && form != Form::InPlace && y.is_instance_of::<pyo3::types::PyComplex>();
                return if of_complex {
                    x.rich_compare(y, if row == RowId::Eq { CompareOp::Eq } else { CompareOp::Ne }).map(|r| Some(r.unbind()))
                } else {
                    Ok(None)
                };
            };
            if form == Form::InPlace {
                pw::call_inplace(row, names(row).in_place, t, &[y], &[]).map(|()| None)?
            } else {
                Some(pw::call(row, &[Arg::Tensor(t), y], &[])?)
            }
        }
    };
    match made {
        Some(made) => wrap(py, made).map(Some),
        None => Ok(Some(x.clone().unbind())),
    }
}

/// All other calls.
#[inline(never)]
fn sorted<'py>(
    py: Python<'py>,
    row: RowId,
    form: Form,
    slots: Slots<'py>,
    kwnames: *mut ffi::PyObject,
    named: &[Bound<'py, PyAny>],
) -> PyResult<Py<PyAny>> {
    let names = names(row);
    let name = if form == Form::InPlace { names.in_place } else { names.name };
    let mut keywords: SmallVec<[(String, Bound<'_, PyAny>); 2]> = SmallVec::new();
    if !named.is_empty() {
        // SAFETY: `kwnames` is a tuple if there are keyword arguments.
        let names = unsafe { Bound::from_borrowed_ptr(py, kwnames) }.cast_into::<PyTuple>()?;
        for (name, value) in names.iter().zip(named) {
            keywords.push((name.extract()?, value.clone()));
        }
    }
    let parsed = parse(name, row, form, slots, &keywords)?;
    general(py, row, name, &parsed, form)
}

/// The call of all rows; `what` is from `packed`. It is `extern "C"`, so that no panic unwinds through it and the call is a jump.
#[inline(never)]
unsafe extern "C" fn call(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
    what: usize,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls with the GIL held.
    let py = unsafe { Python::assume_attached() };
    let run = || -> PyResult<Py<PyAny>> {
        let (row, form) = (RowId::ALL[what >> 4], Form::ALL[(what >> 2) & 3]);
        // SAFETY: `args` has `nargs` objects and one for each name in `kwnames`, and `slf` is the object of a method call. All are borrowed for
        // this call. A `Bound` is a pointer to an object, and a shared reference to it changes no count.
        let (slf, given, named) = unsafe {
            let names = if kwnames.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(kwnames) as usize };
            let count = nargs as usize + names;
            let all: &[Bound<'_, PyAny>] = if count == 0 { &[] } else { std::slice::from_raw_parts(args.cast(), count) };
            let (given, named) = all.split_at(nargs as usize);
            let slf: Option<&Bound<'_, PyAny>> = if form == Form::Function { None } else { Some(&*(&raw const slf).cast()) };
            (slf, given, named)
        };
        if named.is_empty() {
            let done = match (what & 3, slf, given) {
                (1, None, [x]) | (1, Some(x), []) => common(py, row, form, x, None)?,
                (2, None, [x, y]) | (2, Some(x), [y]) => common(py, row, form, x, Some(y))?,
                _ => None,
            };
            if let Some(done) = done {
                return Ok(done);
            }
        }
        sorted(py, row, form, slf.into_iter().chain(given).cloned().map(Some).collect(), kwnames, named)
    };
    given_back(py, guarded(run))
}

/// The C function of a row and form. It loads a number and jumps, since CPython passes no data to a C function of a class.
unsafe extern "C" fn entry<const WHAT: usize>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: called by Python.
    unsafe { call(slf, args, nargs, kwnames, WHAT) }
}

macro_rules! table {
    ($([$kind:ident $Row:ident])+) => {
        /// The C functions of each row, in the order of `Form::ALL`.
        const TABLE: &[(RowId, [FastFunction; Form::ALL.len()])] = &[$((
            RowId::$Row,
            [
                entry::<{ packed(RowId::$Row, Form::Function) }>,
                entry::<{ packed(RowId::$Row, Form::Method) }>,
                entry::<{ packed(RowId::$Row, Form::InPlace) }>,
            ],
        )),+];
    };
}
rgrad_kernels::every_row!(table);

pub(crate) fn pow_inplace(t: &Tensor, e: &Bound<'_, PyAny>) -> PyResult<()> {
    match operand_of(e, "pow_", 2, "exponent")? {
        Arg::Scalar(s) => {
            if let Scalar::Int(i) = s
                && i < 0
                && !t.dtype().is_float()
            {
                return Err(runtime("Integers to negative integer powers are not allowed."));
            }
            let common = pw::promote(&[Arg::Tensor(t), Arg::Scalar(s)]);
            if !common.can_cast(t.dtype()) {
                return Err(runtime(format!(
                    "result type {} can't be cast to the desired output type {}",
                    common.type_name(),
                    t.dtype().type_name()
                )));
            }
            if common == DType::Bool || matches!(s, Scalar::Complex(_)) {
                return Ok(primitives::copy_(t, &pw::pow_scalar(t, s)?)?);
            }
            Ok(pw::call_inplace(RowId::PowScalar, "pow_", t, &[], &[s])?)
        }
        e => Ok(pw::call_inplace(RowId::Pow, "pow_", t, &[e], &[])?),
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let ty = m.py().get_type::<PyTensor>();
    let (mut bound, mut functions): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for (row, [function, method, in_place]) in TABLE {
        let info = row.info();
        if !info.bound {
            continue;
        }
        for name in std::iter::once(&info.name).chain(info.aliases) {
            let doc = |name: &str, form: Form, text: &str| format!("{name}({})\n--\n\n{text}", signature(*row, form));
            add_function(m, name, *function, &doc(name, Form::Function, info.doc.trim()))?;
            if info.function_only {
                functions.push(name);
                continue;
            }
            add_method(&ty, name, *method, &doc(name, Form::Method, info.doc.trim()))?;
            bound.push(name);
            if info.in_place {
                let label = format!("{name}_");
                add_method(&ty, &label, *in_place, &doc(&label, Form::InPlace, &format!("In-place form of `{name}`.")))?;
            }
        }
    }
    m.add("pointwise_names", PyTuple::new(m.py(), bound)?)?;
    m.add("pointwise_functions", PyTuple::new(m.py(), functions)?)?;
    by_hand::register(m)?;
    // The aliases of rows that `by_hand` binds.
    for info in RowId::ALL.iter().map(|r| r.info()).filter(|i| !i.bound) {
        for alias in info.aliases {
            m.add(alias, m.getattr(info.name)?)?;
            if !ty.hasattr(alias)? {
                ty.setattr(alias, ty.getattr(info.name)?)?;
            }
            if info.in_place {
                ty.setattr(format!("{alias}_"), ty.getattr(format!("{}_", info.name))?)?;
            }
        }
    }
    Ok(())
}
