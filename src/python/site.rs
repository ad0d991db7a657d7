//! Call sites from CPython's frames: (code object, instruction offset) of the innermost frame outside rgrad's own package.

use crate::autograd::site::{Site, Source, register as register_source};
use parking_lot::Mutex;
use pyo3::ffi;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::OnceLock;

/// What an interned number stands for.
#[derive(Clone, Copy)]
struct Entry {
    /// A code object; the table keeps it alive, so its address is never used by another.
    code: usize,
    /// The instruction's offset in bytes.
    lasti: i32,
}

#[derive(Default)]
struct Table {
    ids: FxHashMap<(usize, i32), u32>,
    entries: Vec<Entry>,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);
/// The directory of rgrad's Python files.
static PACKAGE: OnceLock<String> = OnceLock::new();

/// The mark of a frame inside the package.
const INTERNAL: u32 = u32::MAX;
const CACHE: usize = 512;

thread_local! {
    /// Direct-mapped, in front of the table; empty until the first miss. On the heap, for a loader gives a library
    /// that comes late only some 1.6 KB of thread-local memory (glibc: "cannot allocate memory in static TLS block").
    static SEEN: RefCell<Vec<(usize, i32, u32)>> = const { RefCell::new(Vec::new()) };
}

#[inline]
fn place(code: usize, lasti: i32) -> usize {
    ((code >> 4) ^ (lasti as usize).wrapping_mul(0x9E37)) % CACHE
}

/// The site of the innermost frame that is the user's.
fn current() -> Site {
    // SAFETY: without a thread state there is no frame; with one, the GIL is held (the core calls this from operations, which run under
    // it or detached, and a detached thread has no current thread state). `PyEval_GetFrame` is borrowed, the others are new references.
    unsafe {
        if ffi::PyGILState_Check() == 0 {
            return Site::UNKNOWN;
        }
        let first = ffi::PyEval_GetFrame();
        if first.is_null() {
            return Site::UNKNOWN;
        }
        let id = id_of(first);
        if id != INTERNAL {
            return Site(id);
        }
        let mut frame = ffi::PyFrame_GetBack(first);
        while !frame.is_null() {
            let id = id_of(frame);
            if id != INTERNAL {
                ffi::Py_DECREF(frame.cast());
                return Site(id);
            }
            let back = ffi::PyFrame_GetBack(frame);
            ffi::Py_DECREF(frame.cast());
            frame = back;
        }
        Site::UNKNOWN
    }
}

unsafe extern "C" {
    fn PyFrame_GetLasti(frame: *mut ffi::PyFrameObject) -> std::ffi::c_int;
    fn PyCode_Addr2Line(code: *mut ffi::PyCodeObject, offset: std::ffi::c_int) -> std::ffi::c_int;
}

/// # Safety
/// `frame` is a live frame, under the GIL.
#[inline]
unsafe fn id_of(frame: *mut ffi::PyFrameObject) -> u32 {
    // SAFETY: by the caller's promise; the code object lives as long as its frame.
    unsafe {
        let code = ffi::PyFrame_GetCode(frame);
        let lasti = PyFrame_GetLasti(frame);
        let key = code as usize;
        ffi::Py_DECREF(code.cast());
        let at = place(key, lasti);
        let hit = SEEN.try_with(|s| s.try_borrow().ok().and_then(|s| s.get(at).copied())).ok().flatten().unwrap_or_default();
        if hit.0 == key && hit.1 == lasti {
            return hit.2;
        }
        let id = intern(code, lasti);
        let _ = SEEN.try_with(|s| {
            if let Ok(mut s) = s.try_borrow_mut() {
                if s.is_empty() {
                    s.resize(CACHE, (0, 0, 0));
                }
                s[at] = (key, lasti, id);
            }
        });
        id
    }
}

/// # Safety
/// `code` is a live code object, under the GIL.
#[cold]
unsafe fn intern(code: *mut ffi::PyCodeObject, lasti: i32) -> u32 {
    let key = (code as usize, lasti);
    if let Some(id) = TABLE.lock().get_or_insert_default().ids.get(&key) {
        return *id;
    }
    // SAFETY: by the caller's promise.
    let inside =
        unsafe { filename(code) }.is_some_and(|f| PACKAGE.get().is_some_and(|p| f.starts_with(p.as_str())) || f.starts_with("<frozen"));
    // SAFETY: as above; the table keeps the object alive from now on.
    unsafe { ffi::Py_INCREF(code.cast()) };
    let mut table = TABLE.lock();
    let table = table.get_or_insert_default();
    let id = if inside {
        INTERNAL
    } else {
        table.entries.push(Entry { code: key.0, lasti });
        table.entries.len() as u32
    };
    table.ids.insert(key, id);
    id
}

/// # Safety
/// `code` is a live code object, under the GIL.
unsafe fn filename(code: *mut ffi::PyCodeObject) -> Option<String> {
    Python::attach(|py| {
        // SAFETY: by the caller's promise.
        let code = unsafe { Bound::from_borrowed_ptr(py, code.cast()) };
        code.getattr("co_filename").ok()?.extract().ok()
    })
}

fn describe(site: Site) -> Option<String> {
    let entry = *TABLE.lock().as_ref()?.entries.get(site.0.checked_sub(1)? as usize)?;
    Python::attach(|py| {
        // SAFETY: the table keeps the code object alive.
        let (code, line) = unsafe {
            let code = Bound::from_borrowed_ptr(py, entry.code as *mut ffi::PyObject);
            (code, PyCode_Addr2Line(entry.code as *mut ffi::PyCodeObject, entry.lasti))
        };
        let file: String = code.getattr("co_filename").ok()?.extract().ok()?;
        let name: String = code.getattr("co_name").ok()?.extract().ok()?;
        Some(format!("{file}:{line} in {name}"))
    })
}

/// Seconds per record of the current call site: the mean of `n` records from this very frame.
#[pyfunction]
fn _site_bench(n: u32) -> f64 {
    let start = std::time::Instant::now();
    for _ in 0..n {
        std::hint::black_box(current());
    }
    start.elapsed().as_secs_f64() / f64::from(n.max(1))
}

/// The call site of the caller, as errors name it.
#[pyfunction]
fn _call_site() -> Option<String> {
    current().describe()
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let file: String = m.py().import("rgrad")?.getattr("__path__")?.get_item(0)?.extract()?;
    let _ = PACKAGE.set(format!("{}/", file.trim_end_matches('/')));
    register_source(Source { current, describe });
    m.add_function(wrap_pyfunction!(_site_bench, m)?)?;
    m.add_function(wrap_pyfunction!(_call_site, m)?)
}
