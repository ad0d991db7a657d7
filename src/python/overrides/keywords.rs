//! Keywords that PyTorch accepts beyond those of a function's own code: `out=`, and other names of parameters, among them NumPy's `axis` and
//! `keepdims`.
//!
//! Functions that write into `out=` themselves are not listed here; declared functions and pointwise rows take `out=` by their tables.

use super::covers::{Place, guarded};
use crate::autograd::Tensor;
use crate::python::args::as_tensor;
use crate::python::errors::type_error;
use crate::python::functions::pointwise::into_out;
use crate::python::types::RawObj;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use smallvec::SmallVec;

/// Functions of the module whose one result is written to `out=` here, since their own code does not accept it.
const WITH_OUT: &[&str] = &[
    "clamp_max",
    "clamp_min",
    "column_stack",
    "diag",
    "diff",
    "dstack",
    "gather",
    "hstack",
    "index_add",
    "index_copy",
    "index_select",
    "kron",
    "masked_select",
    "nonzero",
    "row_stack",
    "scatter",
    "scatter_add",
    "take",
    "take_along_dim",
    "tril",
    "triu",
    "vstack",
    "where",
];

/// PyTorch's other names of parameters, from its overloads: function or method, name in PyTorch, name here.
const RENAMED: &[(&str, &str, &str)] = &[
    ("dsplit", "indices", "indices_or_sections"),
    ("dsplit", "sections", "indices_or_sections"),
    ("hsplit", "indices", "indices_or_sections"),
    ("hsplit", "sections", "indices_or_sections"),
    ("split", "split_size", "split_size_or_sections"),
    ("split", "tensor", "input"),
    ("tensor_split", "indices", "indices_or_sections"),
    ("tensor_split", "sections", "indices_or_sections"),
    ("tensor_split", "tensor_indices_or_sections", "indices_or_sections"),
    ("vsplit", "indices", "indices_or_sections"),
    ("vsplit", "sections", "indices_or_sections"),
];

/// NumPy's names of parameters, and PyTorch's.
const NUMPY: &[(&str, &str)] = &[("axis", "dim"), ("keepdims", "keepdim")];

/// The name here of a keyword of a function or method.
fn own_name(function: &str, keyword: &str) -> Option<&'static str> {
    let renamed = RENAMED.iter().find(|(f, theirs, _)| *f == function && *theirs == keyword).map(|(.., ours)| *ours);
    renamed.or_else(|| NUMPY.iter().find(|(theirs, _)| *theirs == keyword).map(|(_, ours)| *ours))
}

/// Whether `out=` of a function is handled here.
pub(in crate::python) fn takes_out(name: &str, is_method: bool) -> bool {
    !is_method && WITH_OUT.contains(&name)
}

/// Whether calls with keywords of a function or method go through `call`. `doc` begins with its text signature.
pub(super) fn concerns(name: &str, is_method: bool, doc: &str) -> bool {
    takes_out(name, is_method) || RENAMED.iter().any(|(f, ..)| *f == name) || {
        let signature = doc.split_once("\n--\n\n").map_or("", |(signature, _)| signature);
        signature.split(['(', ')', ',', ' ']).any(|part| part.split('=').next() == Some("dim"))
    }
}

/// Whether one of the names may be a keyword that is handled here.
///
/// # Safety
/// `kwnames` is a tuple of `str`.
pub(super) unsafe fn has_one(kwnames: RawObj) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        (0..ffi::PyTuple_GET_SIZE(kwnames)).any(|i| {
            let name = ffi::PyTuple_GET_ITEM(kwnames, i);
            let candidate: &[&std::ffi::CStr] = match ffi::PyUnicode_GET_LENGTH(name) {
                3 => &[c"out"],
                4 => &[c"axis"],
                6 => &[c"tensor"],
                7 => &[c"indices"],
                8 => &[c"sections", c"keepdims"],
                10 => &[c"split_size"],
                26 => &[c"tensor_indices_or_sections"],
                _ => return false,
            };
            candidate.iter().any(|c| ffi::PyUnicode_CompareWithASCIIString(name, c.as_ptr()) == 0)
        })
    }
}

/// Calls the function of a place with PyTorch's keywords replaced by its own.
///
/// # Safety
/// As for a function that is called by the fast protocol, and `kwnames` is a tuple.
#[cold]
#[inline(never)]
pub(super) unsafe fn call(place: &Place, slf: RawObj, args: *const RawObj, nargs: isize, kwnames: RawObj) -> RawObj {
    // SAFETY: by the caller's promise. The arguments are borrowed from the caller, or owned here until the call returns.
    unsafe {
        let py = Python::assume_attached();
        guarded(py, || {
            let name = place.name();
            let names = Bound::from_borrowed_ptr(py, kwnames).cast_into::<PyTuple>()?;
            let mut values: SmallVec<[RawObj; 8]> = (0..nargs as usize).map(|i| *args.add(i)).collect();
            let mut kept: SmallVec<[Bound<'_, PyAny>; 4]> = SmallVec::new();
            let mut out = None;
            for (i, keyword) in names.iter().enumerate() {
                let value = *args.add(nargs as usize + i);
                let text: String = keyword.extract()?;
                if text == "out" && takes_out(name, place.is_method()) {
                    out = Some(Bound::from_borrowed_ptr(py, value)).filter(|o| !o.is_none());
                    continue;
                }
                values.push(value);
                let own = own_name(name, &text);
                kept.push(own.map_or(Ok(keyword), |ours| Ok::<_, PyErr>(pyo3::types::PyString::intern(py, ours).into_any()))?);
            }
            let kept = if kept.is_empty() { None } else { Some(PyTuple::new(py, kept)?) };
            let kept_names = kept.as_ref().map_or(std::ptr::null_mut(), Bound::as_ptr);
            let result = place.fast()(slf, values.as_ptr(), nargs, kept_names);
            let (Some(out), false) = (out, result.is_null()) else { return Ok(result) };
            let result = Bound::from_owned_ptr(py, result);
            let Some(made) = as_tensor(&result) else {
                return Err(type_error(format!("{name}(): out= needs a single tensor as result, not {}", result.get_type().name()?)));
            };
            let mut given: Vec<Bound<'_, PyAny>> = Vec::new();
            for value in values {
                let value = Bound::from_borrowed_ptr(py, value);
                if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
                    given.extend(value.try_iter()?.collect::<PyResult<Vec<_>>>()?);
                } else {
                    given.push(value);
                }
            }
            let inputs: SmallVec<[&Tensor; 8]> = given.iter().filter_map(as_tensor).collect();
            Ok(into_out(py, name, made, &inputs, &out)?.into_ptr())
        })
    }
}
