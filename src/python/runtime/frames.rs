//! The running frames, without the objects that Python's interface makes for each of them when asked: that costs more than all else of a
//! call site's record. Where the interpreter keeps its frames differs between versions, so what is known of one is tried out on real
//! frames first, and other versions are asked through their interface.

use pyo3::ffi;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicIsize, Ordering};

unsafe extern "C" {
    fn PyFrame_GetLasti(frame: *mut ffi::PyFrameObject) -> std::ffi::c_int;
}

/// Offsets in bytes, of CPython 3.11 with pointers of 8 bytes: thread state to frames, frames to the running one, and in a frame.
const FRAMES: usize = 56;
const RUNNING: usize = 8;
const CODE: usize = 32;
const PREVIOUS: usize = 48;
const INSTRUCTION: usize = 56;

/// How far behind the start of a code object its instructions begin; 0 where this way is not to be gone.
static BEGIN: AtomicIsize = AtomicIsize::new(0);

/// A place in a code object that is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub code: *mut ffi::PyCodeObject,
    /// The instruction's offset in bytes.
    pub lasti: i32,
}

/// # Safety
/// `base + offset` holds a pointer.
#[inline]
unsafe fn pointer(base: *const u8, offset: usize) -> *const u8 {
    // SAFETY: the caller's.
    unsafe { base.add(offset).cast::<*const u8>().read() }
}

/// The innermost running frame as the interpreter keeps it.
///
/// # Safety
/// The GIL is held, and the offsets are this interpreter's.
#[inline]
unsafe fn innermost() -> *const u8 {
    // SAFETY: the caller's.
    unsafe { pointer(pointer(ffi::PyThreadState_Get().cast::<u8>(), FRAMES), RUNNING) }
}

/// # Safety
/// A live frame as the interpreter keeps it.
#[inline]
unsafe fn place(frame: *const u8, begin: isize) -> Place {
    // SAFETY: the caller's.
    let (code, at) = unsafe { (pointer(frame, CODE), pointer(frame, INSTRUCTION)) };
    Place { code: code.cast_mut().cast(), lasti: (at.addr() as isize - code.addr() as isize - begin) as i32 }
}

/// The first frame, from the innermost outward, of which `f` gives something.
///
/// # Safety
/// The GIL is held.
#[inline]
pub(crate) unsafe fn find<R>(mut f: impl FnMut(Place) -> Option<R>) -> Option<R> {
    let begin = BEGIN.load(Ordering::Relaxed);
    if begin == 0 {
        // SAFETY: the caller's.
        return unsafe { find_by_interface(f) };
    }
    // SAFETY: `probe` has found the offsets right; the frames of this thread stay until this call returns to them.
    unsafe {
        let mut frame = innermost();
        while !frame.is_null() {
            let at = place(frame, begin);
            // A frame that is still being set up is none yet for Python's interface either.
            if at.lasti >= 0
                && let Some(found) = f(at)
            {
                return Some(found);
            }
            frame = pointer(frame, PREVIOUS);
        }
    }
    None
}

/// `find` by what Python promises.
///
/// # Safety
/// As for `find`.
unsafe fn find_by_interface<R>(mut f: impl FnMut(Place) -> Option<R>) -> Option<R> {
    // SAFETY: the GIL is held; the first frame is borrowed, the others are new references, and a frame keeps its code object.
    unsafe {
        let mut frame = ffi::PyEval_GetFrame();
        if frame.is_null() {
            return None;
        }
        ffi::Py_INCREF(frame.cast());
        while !frame.is_null() {
            let code = ffi::PyFrame_GetCode(frame);
            let found = f(Place { code, lasti: PyFrame_GetLasti(frame) });
            ffi::Py_DECREF(code.cast());
            let back = if found.is_some() { std::ptr::null_mut() } else { ffi::PyFrame_GetBack(frame) };
            ffi::Py_DECREF(frame.cast());
            if found.is_some() {
                return found;
            }
            frame = back;
        }
    }
    None
}

/// Finds out whether the frames that run now, of which there are several while a module is imported, lie as expected.
pub(crate) fn probe(py: Python<'_>) {
    let v = py.version_info();
    if (v.major, v.minor) != (3, 11) || size_of::<usize>() != 8 {
        return;
    }
    let mut known = Vec::new();
    // SAFETY: the GIL is held, and the frames stay meanwhile.
    unsafe {
        find_by_interface(|p| {
            known.push(p);
            None::<()>
        });
        let Some(first) = known.first() else { return };
        let mut frame = innermost();
        if frame.is_null() || !std::ptr::eq(pointer(frame, CODE), first.code.cast()) {
            return;
        }
        let begin = pointer(frame, INSTRUCTION).addr() as isize - first.code.addr() as isize - first.lasti as isize;
        for p in &known {
            if frame.is_null() || place(frame, begin) != *p {
                return;
            }
            frame = pointer(frame, PREVIOUS);
        }
        if frame.is_null() && known.len() > 2 {
            BEGIN.store(begin, Ordering::Relaxed);
        }
    }
}
