//! The frames of the running Python code, read from the interpreter's memory.
//!
//! CPython's public interface makes an object for each frame, which costs more than the rest of a call site's record. The layout in memory
//! differs between versions: `probe` checks the known layout on real frames first, and other versions are read through the public interface.
//! What becomes of a frame (call sites, their numbers) is in `call_site`.

use pyo3::ffi;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicIsize, Ordering};

unsafe extern "C" {
    fn PyFrame_GetLasti(frame: *mut ffi::PyFrameObject) -> std::ffi::c_int;
}

/// Offsets in bytes in CPython 3.11 with pointers of 8 bytes: from the thread state to its frames, to the running frame, and inside a frame.
const FRAMES: usize = 56;
const RUNNING: usize = 8;
const CODE: usize = 32;
const PREVIOUS: usize = 48;
const INSTRUCTION: usize = 56;

/// The offset of the instructions in a code object; 0 if the frames' memory must not be read directly.
static BEGIN: AtomicIsize = AtomicIsize::new(0);

/// An instruction of a running code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub code: *mut ffi::PyCodeObject,
    /// The offset of the instruction in bytes.
    pub lasti: i32,
}

/// # Safety
/// `base + offset` holds a pointer.
#[inline]
unsafe fn pointer(base: *const u8, offset: usize) -> *const u8 {
    // SAFETY: by the caller's promise.
    unsafe { base.add(offset).cast::<*const u8>().read() }
}

/// The innermost running frame in the interpreter's own layout.
///
/// # Safety
/// The GIL is held, and the offsets are those of this interpreter.
#[inline]
unsafe fn innermost() -> *const u8 {
    // SAFETY: by the caller's promise.
    unsafe { pointer(pointer(ffi::PyThreadState_Get().cast::<u8>(), FRAMES), RUNNING) }
}

/// # Safety
/// `frame` is a live frame in the interpreter's own layout.
#[inline]
unsafe fn place(frame: *const u8, begin: isize) -> Place {
    // SAFETY: by the caller's promise.
    let (code, at) = unsafe { (pointer(frame, CODE), pointer(frame, INSTRUCTION)) };
    Place { code: code.cast_mut().cast(), lasti: (at.addr() as isize - code.addr() as isize - begin) as i32 }
}

/// The first `Some` that `f` returns, called with each frame from the innermost outward.
///
/// # Safety
/// The GIL is held.
#[inline]
pub(crate) unsafe fn find<R>(mut f: impl FnMut(Place) -> Option<R>) -> Option<R> {
    let begin = BEGIN.load(Ordering::Relaxed);
    if begin == 0 {
        // SAFETY: by the caller's promise.
        return unsafe { find_by_interface(f) };
    }
    // SAFETY: `probe` has checked the offsets. The frames of this thread live until this call returns to them.
    unsafe {
        let mut frame = innermost();
        while !frame.is_null() {
            let at = place(frame, begin);
            // Python's interface also leaves out a frame that is still being set up.
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

/// `find` through CPython's public interface.
///
/// # Safety
/// As for `find`.
unsafe fn find_by_interface<R>(mut f: impl FnMut(Place) -> Option<R>) -> Option<R> {
    // SAFETY: the GIL is held. The first frame is borrowed, the others are new references, and a frame keeps its code object alive.
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

/// Checks the known layout on the frames that run now, several of which exist while a module is imported, and enables the direct way if it
/// holds.
pub(crate) fn probe(py: Python<'_>) {
    let v = py.version_info();
    if (v.major, v.minor) != (3, 11) || size_of::<usize>() != 8 {
        return;
    }
    let mut known = Vec::new();
    // SAFETY: the GIL is held, and the frames live until this call returns.
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
