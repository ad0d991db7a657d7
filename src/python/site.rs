//! Call sites from CPython's frames: (code object, instruction offset) of the innermost frame outside rgrad's own package.

use crate::autograd::site::{Site, Source, register as register_source};
use parking_lot::Mutex;
use pyo3::ffi;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

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

/// One place of the direct-mapped table in front of `TABLE`. Written under `TABLE`'s lock only, read by anybody: a key that is the same
/// before and after the number was read belongs to it, for a key always has the same number.
struct Place {
    key: AtomicU64,
    id: AtomicU32,
}

const CACHE: usize = 1024;
static SEEN: [Place; CACHE] = [const { Place { key: AtomicU64::new(0), id: AtomicU32::new(0) } }; CACHE];

/// Code object and offset in one word: objects lie on multiples of 16 below 2^47. None for an offset that does not fit.
#[inline]
fn key_of(code: usize, lasti: i32) -> Option<u64> {
    let code = code as u64;
    if code >> 47 == 0 && code & 15 == 0 && (0..1 << 20).contains(&lasti) { Some(code >> 4 << 20 | lasti as u64) } else { None }
}

#[inline]
fn place(key: u64) -> &'static Place {
    &SEEN[((key ^ key >> 20) as usize).wrapping_mul(0x9E37) >> 3 & (CACHE - 1)]
}

#[inline]
fn seen(key: u64) -> Option<u32> {
    let p = place(key);
    if p.key.load(Ordering::Acquire) != key {
        return None;
    }
    let id = p.id.load(Ordering::Acquire);
    (p.key.load(Ordering::Relaxed) == key).then_some(id)
}

/// The caller holds `TABLE`'s lock.
fn remember(key: u64, id: u32) {
    let p = place(key);
    p.key.store(0, Ordering::Relaxed);
    p.id.store(id, Ordering::Release);
    p.key.store(key, Ordering::Release);
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
        ffi::Py_DECREF(code.cast());
        key_of(code as usize, lasti).and_then(seen).unwrap_or_else(|| intern(code, lasti))
    }
}

/// # Safety
/// `code` is a live code object, under the GIL.
#[cold]
unsafe fn intern(code: *mut ffi::PyCodeObject, lasti: i32) -> u32 {
    let key = (code as usize, lasti);
    let short = key_of(key.0, lasti);
    {
        let mut table = TABLE.lock();
        if let Some(id) = table.get_or_insert_default().ids.get(&key) {
            if let Some(k) = short {
                remember(k, *id);
            }
            return *id;
        }
    }
    // SAFETY: by the caller's promise.
    let inside =
        unsafe { filename(code) }.is_some_and(|f| PACKAGE.get().is_some_and(|p| f.starts_with(p.as_str())) || f.starts_with("<frozen"));
    let mut table = TABLE.lock();
    let table = table.get_or_insert_default();
    // Another thread may have come first: asking for the name can give the GIL away.
    let id = *table.ids.entry(key).or_insert_with(|| {
        // SAFETY: as above; the table keeps the object alive from now on.
        unsafe { ffi::Py_INCREF(code.cast()) };
        if inside {
            return INTERNAL;
        }
        table.entries.push(Entry { code: key.0, lasti });
        table.entries.len() as u32
    });
    if let Some(k) = short {
        remember(k, id);
    }
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
