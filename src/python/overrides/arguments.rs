//! Errors of arguments in PyTorch's words.
//!
//! PyO3 says `'str' object cannot be interpreted as an integer` and adds the parameter's name as a note. PyTorch says `chunk(): argument
//! 'chunks' (position 1) must be int, not str`. Every covered function comes here when it has failed.

use super::covers::Place;
use crate::python::errors::type_error;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Rewords the exception that is set, if it is PyO3's about an argument.
///
/// # Safety
/// A function of this place has just returned null to the calling thread, which holds the GIL.
#[cold]
#[inline(never)]
pub(super) unsafe fn reword(place: &Place) {
    // SAFETY: by the caller's promise.
    let py = unsafe { Python::assume_attached() };
    let Some(e) = PyErr::take(py) else { return };
    reworded(py, place, &e).unwrap_or(e).restore(py);
}

fn reworded(py: Python<'_>, place: &Place, e: &PyErr) -> Option<PyErr> {
    if !e.get_type(py).is(py.get_type::<PyTypeError>()) {
        return None;
    }
    let value = e.value(py);
    let note: String = value.getattr("__notes__").ok()?.get_item(-1).ok()?.extract().ok()?;
    let argument = note.strip_prefix("while processing '")?.strip_suffix('\'')?;
    let text = value.to_string();
    let (wanted, given) = types_in(&text)?;
    let position = position(place.doc(), argument)?;
    let place_of = position.map_or_else(String::new, |n| format!(" (position {n})"));
    Some(type_error(format!("{}(): argument '{argument}'{place_of} must be {wanted}, not {given}", place.name())))
}

/// The type that PyO3 wanted, and the one that it got.
fn types_in(text: &str) -> Option<(&str, &str)> {
    if let Some(given) = text.strip_prefix("must be real number, not ") {
        return Some(("float", given));
    }
    if text.starts_with("only integer tensors of a single element can be converted to an index") {
        return Some(("int", "Tensor"));
    }
    if let Some(wanted) = text.strip_prefix("'None' is not an instance of '") {
        return Some((wanted.strip_suffix('\'')?, "NoneType"));
    }
    let (given, rest) = text.strip_prefix('\'')?.split_once("' object ")?;
    if rest == "cannot be interpreted as an integer" {
        return Some(("int", given));
    }
    Some((rest.strip_prefix("is not an instance of '")?.strip_suffix('\'')?, given))
}

/// The position of a parameter in the signature that a documentation begins with, from 1 and without `self`; `Some(None)` for one that is
/// given by name only.
fn position(doc: &str, parameter: &str) -> Option<Option<usize>> {
    let (signature, _) = doc.split_once(")\n--\n\n")?;
    let (_, parameters) = signature.split_once('(')?;
    let (mut at, mut by_name, mut depth) = (0, false, 0i32);
    for part in parameters.split(',') {
        let outside = depth == 0;
        depth += part.matches(['(', '[']).count() as i32 - part.matches([')', ']']).count() as i32;
        let name = part.trim().split('=').next().unwrap_or("");
        match name {
            _ if !outside => {}
            "$self" | "/" | "$module" => {}
            n if n.starts_with('*') && n.trim_start_matches('*') != parameter => by_name = true,
            n => {
                at += 1;
                if n.trim_start_matches('*') == parameter {
                    return Some((!by_name).then_some(at));
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_the_signature() {
        let doc = "rot90($self, k=1, dims=(0, 1), *, out=None)\n--\n\nText.";
        assert_eq!(position(doc, "k"), Some(Some(1)));
        assert_eq!(position(doc, "dims"), Some(Some(2)));
        assert_eq!(position(doc, "out"), Some(None));
        assert_eq!(position(doc, "text"), None);
    }

    #[test]
    fn types_are_read_from_the_words_of_pyo3() {
        assert_eq!(types_in("'str' object is not an instance of 'Tensor'"), Some(("Tensor", "str")));
        assert_eq!(types_in("'list' object cannot be interpreted as an integer"), Some(("int", "list")));
        assert_eq!(types_in("must be real number, not str"), Some(("float", "str")));
        assert_eq!(types_in("'None' is not an instance of 'Tensor'"), Some(("Tensor", "NoneType")));
        assert_eq!(types_in("something else"), None);
    }
}
