//! Forms of calls that PyTorch has deprecated and still accepts: a number stands before the tensor that it multiplies.
//!
//! They are tried only when a call has failed, so other calls do not pay for them.

use super::covers::Place;
use crate::python::args::{as_tensor, scalar};
use crate::python::autograd::backward::warn_once_at;
use crate::python::types::{PyObj, RawObj};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use std::ffi::CString;
use std::sync::atomic::AtomicBool;

/// Functions and their old parameters. Those in `NUMBERS` are given by name today, the others by position in the same order.
const OLD_FORMS: &[(&str, &str)] = &[
    ("add", "input alpha other"),
    ("addbmm", "beta input alpha batch1 batch2"),
    ("addbmm", "beta input batch1 batch2"),
    ("addcdiv", "input value tensor1 tensor2"),
    ("addcmul", "input value tensor1 tensor2"),
    ("addmm", "beta input alpha mat1 mat2"),
    ("addmm", "beta input mat1 mat2"),
    ("addmv", "beta input alpha mat vec"),
    ("addmv", "beta input mat vec"),
    ("addr", "beta input alpha vec1 vec2"),
    ("addr", "beta input vec1 vec2"),
    ("baddbmm", "beta input alpha batch1 batch2"),
    ("baddbmm", "beta input batch1 batch2"),
    ("sub", "input alpha other"),
];

const NUMBERS: &[&str] = &["beta", "alpha", "value"];

/// The old forms of a function, or of the method that writes to its tensor.
fn forms(name: &str) -> impl Iterator<Item = &'static str> {
    let name = name.strip_suffix('_').unwrap_or(name);
    OLD_FORMS.iter().filter(move |(f, _)| *f == name).map(|(_, parameters)| *parameters)
}

/// Whether a function has old forms.
pub(super) fn has_one(name: &str) -> bool {
    forms(name).next().is_some()
}

/// Arguments by position, and those by name.
type Arguments<'py> = (SmallVec<[PyObj<'py>; 4]>, SmallVec<[(String, PyObj<'py>); 4]>);

/// Distributes the arguments of a call among the parameters of an old form; None if they do not fit.
fn fitted<'py>(parameters: &str, given: &Arguments<'py>) -> PyResult<Option<Arguments<'py>>> {
    let names: SmallVec<[&str; 5]> = parameters.split(' ').collect();
    let (positional, named) = given;
    if positional.len() > names.len() {
        return Ok(None);
    }
    let mut slots: SmallVec<[Option<&PyObj<'py>>; 5]> = positional.iter().map(Some).collect();
    slots.resize(names.len(), None);
    let (mut tensors, mut by_name): Arguments<'py> = Default::default();
    for (name, value) in named {
        let name = if name == "self" { "input" } else { name };
        match names.iter().position(|n| *n == name) {
            Some(at) if slots[at].is_none() => slots[at] = Some(value),
            None if name == "out" => by_name.push(("out".into(), value.clone())),
            _ => return Ok(None),
        }
    }
    for (name, slot) in names.iter().zip(slots) {
        let Some(value) = slot else { return Ok(None) };
        if !NUMBERS.contains(name) {
            if as_tensor(value).is_none() {
                return Ok(None);
            }
            tensors.push(value.clone());
        } else if scalar(value)?.is_some() {
            by_name.push(((*name).into(), value.clone()));
        } else {
            return Ok(None);
        }
    }
    Ok(Some((tensors, by_name)))
}

/// A signature in the words of PyTorch's messages.
fn shown(name: &str, parameters: &[&str], is_method: bool, today: bool) -> String {
    let is_number = |p: &&&str| NUMBERS.contains(*p);
    let listed = parameters.iter().filter(|p| !(is_method && **p == "input"));
    let mut parts: Vec<String> = listed
        .clone()
        .filter(|p| !(today && is_number(p)))
        .map(|p| if is_number(&p) { format!("Number {p}") } else { format!("Tensor {p}") })
        .collect();
    let takes_out = !is_method && !name.ends_with('_');
    if today || takes_out {
        parts.push("*".into());
    }
    if today {
        let by_name = if parameters.contains(&"beta") { &["beta", "alpha"][..] } else { parameters };
        parts.extend(by_name.iter().filter(is_number).map(|p| format!("Number {p} = 1")));
    }
    if takes_out {
        parts.push("Tensor out = None".into());
    }
    format!("{name}({})", parts.join(", "))
}

/// Shows the warning of an old form, the first time that any is used.
fn warn(py: Python<'_>, name: &str, parameters: &str, is_method: bool, frame: i32) -> PyResult<()> {
    static SHOWN: AtomicBool = AtomicBool::new(false);
    let names: SmallVec<[&str; 5]> = parameters.split(' ').collect();
    let (old, today) = (shown(name, &names, is_method, false), shown(name, &names, is_method, true));
    let text =
        format!("This overload of {name} is deprecated:\n\t{old}\nConsider using one of the following signatures instead:\n\t{today}");
    warn_once_at(py, &SHOWN, &CString::new(text)?, frame)
}

/// The arguments of a call in an old form as the function takes them today, after the warning; None if they are not in one.
/// `frame` is the Python frame that the warning is about, the innermost being 1.
fn converted<'py>(py: Python<'py>, name: &str, is_method: bool, given: &Arguments<'py>, frame: i32) -> PyResult<Option<Arguments<'py>>> {
    // The tensor of a method comes first, wherever the form has it.
    for parameters in forms(name) {
        let own_first = parameters.strip_prefix("beta input").filter(|_| is_method).map(|rest| format!("input beta{rest}"));
        if let Some(found) = fitted(own_first.as_deref().unwrap_or(parameters), given)? {
            warn(py, name, parameters, is_method, frame)?;
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Calls a function again that has just failed, if the call is in an old form of it. Null with an exception set otherwise.
///
/// # Safety
/// The function of this place has just returned null to the calling thread, which holds the GIL, for these arguments of the fast protocol.
#[cold]
#[inline(never)]
pub(super) unsafe fn again(place: &Place, slf: RawObj, args: *const RawObj, nargs: isize, kwnames: RawObj) -> RawObj {
    // SAFETY: by the caller's promise. The arguments are borrowed from the caller, or owned here until the call returns.
    unsafe {
        let py = Python::assume_attached();
        let Some(e) = PyErr::take(py) else { return std::ptr::null_mut() };
        let run = || -> PyResult<Option<RawObj>> {
            let all = |from: usize, to: usize| (from..to).map(|i| Bound::from_borrowed_ptr(py, *args.add(i)));
            let own = place.is_method().then(|| Bound::from_borrowed_ptr(py, slf));
            let mut given: Arguments<'_> = (own.into_iter().chain(all(0, nargs as usize)).collect(), SmallVec::new());
            if let Some(names) = Bound::from_borrowed_ptr_or_opt(py, kwnames) {
                let names = names.cast_into::<PyTuple>()?;
                for (k, v) in names.iter().zip(all(nargs as usize, nargs as usize + names.len())) {
                    given.1.push((k.extract()?, v));
                }
            }
            let Some((tensors, named)) = converted(py, place.name(), place.is_method(), &given, 1)? else { return Ok(None) };
            let skipped = usize::from(place.is_method());
            let names = PyTuple::new(py, named.iter().map(|(k, _)| k))?;
            let values: SmallVec<[RawObj; 8]> = tensors[skipped..].iter().chain(named.iter().map(|(_, v)| v)).map(|v| v.as_ptr()).collect();
            Ok(Some(place.fast()(slf, values.as_ptr(), (tensors.len() - skipped) as isize, names.as_ptr())))
        };
        let is_type_error = e.is_instance_of::<PyTypeError>(py);
        super::covers::guarded(py, || match if is_type_error { run()? } else { None } {
            Some(made) => Ok(made),
            None => Err(e),
        })
    }
}

/// The arguments of a call in an old form as the function takes them today, after PyTorch's warning about the caller's caller's line.
///
/// Args:
///     name: The name of a function or method.
///     is_method: Whether the first argument is the tensor of a method.
///     args: The arguments by position.
///     kwargs: The arguments by name.
///
/// Returns:
///     The arguments by position and by name; None if the call is in no old form.
#[pyfunction]
fn _from_old_form<'py>(
    name: &str,
    is_method: bool,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Option<(Bound<'py, PyTuple>, Bound<'py, PyDict>)>> {
    let py = args.py();
    let named = kwargs.iter().map(|(k, v)| Ok((k.extract()?, v))).collect::<PyResult<_>>()?;
    let given = (args.iter().collect(), named);
    let Some((tensors, named)) = converted(py, name, is_method, &given, 3)? else { return Ok(None) };
    let by_name = PyDict::new(py);
    for (k, v) in named {
        by_name.set_item(k, v)?;
    }
    Ok(Some((PyTuple::new(py, tensors)?, by_name)))
}

/// Whether a function has forms that are deprecated.
#[pyfunction]
fn _has_old_form(name: &str) -> bool {
    has_one(name)
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_from_old_form, m)?)?;
    m.add_function(wrap_pyfunction!(_has_old_form, m)?)
}
