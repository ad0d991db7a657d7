//! Call sites from CPython's frames: the code object and instruction of the innermost frame outside rgrad's own package.
//!
//! A call site is interned to a number when an operation is recorded, and its file, line and function are noted the first time; the source text
//! is looked up only when an error needs it.
//! How frames are read is in `frames`.

use crate::array::lock_order::TableLock as Lock;
use crate::autograd::diagnostics::growing_graph;
use crate::autograd::dispatch::call_site::{CallSiteSource, Site, register as register_source};
use crate::python::errors::foreign;
use crate::python::host::attach;
use crate::python::runtime::frames::{self, Place};
use pyo3::exceptions::PyUserWarning;
use pyo3::ffi;
use pyo3::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The call site behind an interned number. Functions with the same text have the same sites, so that a program that makes them without end
/// does not.
#[derive(Clone, PartialEq, Eq, Hash)]
struct CallEntry {
    file: Arc<str>,
    name: Arc<str>,
    line: u32,
    /// The offset of the instruction in bytes.
    lasti: i32,
    /// Where the whole stack is known, the number of the calling frame, or `OUTERMOST`; else 0.
    outer: u32,
}

#[derive(Default)]
struct Table {
    /// By the address of a code object.
    ids: FxHashMap<(usize, i32, u32), u32>,
    /// The code objects of `ids`. The table keeps them alive, so no other objects get their addresses.
    codes: FxHashSet<usize>,
    /// How many of them there may be until those that nobody else holds are released; 0 before the first.
    most: usize,
    texts: FxHashSet<Arc<str>>,
    numbers: FxHashMap<CallEntry, u32>,
    entries: Vec<CallEntry>,
}

impl Table {
    fn text(&mut self, text: String) -> Arc<str> {
        if let Some(known) = self.texts.get(text.as_str()) {
            return known.clone();
        }
        let made: Arc<str> = text.into();
        self.texts.insert(made.clone());
        made
    }

    fn number(&mut self, entry: CallEntry) -> u32 {
        *self.numbers.entry(entry).or_insert_with_key(|e| {
            self.entries.push(e.clone());
            self.entries.len() as u32
        })
    }
}

static TABLE: Lock<Option<Table>> = Lock::new(None);
/// At least so many code objects are kept.
const KEPT: usize = 4096;
/// Counts the times that code objects have been released. An address from before may belong to another object.
static RELEASES: AtomicU32 = AtomicU32::new(0);
/// The directory of rgrad's Python files.
static PACKAGE: OnceLock<String> = OnceLock::new();

/// The number of all frames inside the package.
const INTERNAL: u32 = u32::MAX;
/// The caller of the outermost frame.
const OUTERMOST: u32 = u32::MAX;

/// An entry of the direct-mapped cache in front of `TABLE`. It is written only under `TABLE`'s lock and read without it: a number belongs to
/// its key if the key is the same before and after the number is read, because a key always has the same number.
struct Known {
    key: AtomicU64,
    id: AtomicU32,
}

const CACHE: usize = 1024;
static SEEN: [Known; CACHE] = [const { Known { key: AtomicU64::new(0), id: AtomicU32::new(0) } }; CACHE];

/// Code object and offset in one word: objects have addresses that are multiples of 16 and below 2^47. None if the offset does not fit.
#[inline]
fn key_of(code: usize, lasti: i32) -> Option<u64> {
    let code = code as u64;
    if code >> 47 == 0 && code & 15 == 0 && (0..1 << 20).contains(&lasti) { Some(code >> 4 << 20 | lasti as u64) } else { None }
}

#[inline]
fn place(key: u64) -> &'static Known {
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

/// Writes a number into the cache. The caller holds `TABLE`'s lock.
fn remember(key: u64, id: u32) {
    let p = place(key);
    p.key.store(0, Ordering::Relaxed);
    p.id.store(id, Ordering::Release);
    p.key.store(key, Ordering::Release);
}

/// The site of the innermost frame of the user's code.
fn current() -> Site {
    // SAFETY: a thread without a current thread state has no frame. With one, the GIL is held: the core calls this from operations, which run
    // under the GIL or detached, and a detached thread has no current thread state. A frame keeps its code object alive.
    unsafe {
        if ffi::PyGILState_Check() == 0 {
            return Site::UNKNOWN;
        }
        let users = |p: Place| {
            let id = id_at(p.code, p.lasti);
            (id != INTERNAL).then_some(Site(id))
        };
        frames::find(users).unwrap_or(Site::UNKNOWN)
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
    // SAFETY: by the caller's promise. The code object lives as long as its frame.
    unsafe {
        let code = ffi::PyFrame_GetCode(frame);
        ffi::Py_DECREF(code.cast());
        id_at(code, PyFrame_GetLasti(frame))
    }
}

/// # Safety
/// `code` is a live code object, under the GIL.
#[inline]
unsafe fn id_at(code: *mut ffi::PyCodeObject, lasti: i32) -> u32 {
    // SAFETY: by the caller's promise.
    key_of(code as usize, lasti).and_then(seen).unwrap_or_else(|| unsafe { intern(code, lasti) })
}

/// # Safety
/// `code` is a live code object, under the GIL.
#[cold]
unsafe fn intern(code: *mut ffi::PyCodeObject, lasti: i32) -> u32 {
    // SAFETY: by the caller's promise.
    unsafe { intern_called(code, lasti, 0) }
}

/// # Safety
/// `code` is a live code object, under the GIL.
unsafe fn intern_called(code: *mut ffi::PyCodeObject, lasti: i32, outer: u32) -> u32 {
    let key = (code as usize, lasti, outer);
    let short = if outer == 0 { key_of(key.0, lasti) } else { None };
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
    let (file, name, line) = unsafe {
        let text = |field: &CStr| text_of(code, field).unwrap_or_default();
        (text(c"co_filename"), text(c"co_name"), u32::try_from(PyCode_Addr2Line(code, lasti)).unwrap_or(0))
    };
    let inside = PACKAGE.get().is_some_and(|p| file.starts_with(p.as_str())) || file.starts_with("<frozen");
    let mut table = TABLE.lock();
    let table = table.get_or_insert_default();
    // Another thread may have interned the key meanwhile: reading a text can release the GIL.
    let known = table.ids.get(&key).copied();
    let id = known.unwrap_or_else(|| {
        let id = if inside {
            INTERNAL
        } else {
            let (file, name) = (table.text(file), table.text(name));
            table.number(CallEntry { file, name, line, lasti, outer })
        };
        table.ids.insert(key, id);
        if table.codes.insert(key.0) {
            // SAFETY: as above.
            unsafe { ffi::Py_INCREF(code.cast()) };
            table.most = table.most.max(KEPT);
            // Again and again: the interpreter's list of calls may be full.
            if table.codes.len() >= table.most && table.codes.len().is_multiple_of(256) {
                // Not here: what ends with a code object may run Python, and locks may be held.
                // SAFETY: any thread may ask, and `release` needs no argument.
                unsafe { ffi::Py_AddPendingCall(Some(release), std::ptr::null_mut()) };
            }
        }
        id
    });
    if let Some(k) = short {
        remember(k, id);
    }
    id
}

/// Lets go of the code objects that nobody else holds. The main thread calls it between two instructions.
extern "C" fn release(_: *mut std::ffi::c_void) -> std::ffi::c_int {
    let mut ended = Vec::new();
    attach(|_| {
        let mut table = TABLE.lock();
        let Some(table) = table.as_mut() else { return };
        table.codes.retain(|code| {
            // SAFETY: the table has kept the objects alive, under the GIL.
            let others = unsafe { ffi::Py_REFCNT(*code as *mut ffi::PyObject) } > 1;
            if !others {
                ended.push(*code);
            }
            others
        });
        // Twice as many as are in use, so that looking at all of them stays cheap.
        table.most = KEPT.max(table.codes.len() * 2);
        let Table { ids, codes, .. } = table;
        ids.retain(|key, _| codes.contains(&key.0));
        RELEASES.fetch_add(1, Ordering::Relaxed);
        for p in &SEEN {
            p.key.store(0, Ordering::Release);
        }
    });
    attach(|_| {
        for code in ended {
            // SAFETY: the table's reference, which nobody else releases.
            unsafe { ffi::Py_DECREF(code as *mut ffi::PyObject) };
        }
    });
    0
}

/// One frame of the stack of the last call.
#[derive(Clone, Copy)]
struct Seen {
    code: usize,
    lasti: i32,
    id: u32,
}

thread_local! {
    /// The user's frames of this thread's last stack, outermost first, and `RELEASES` of that time. The next stack mostly differs only at its
    /// inner end.
    static LAST: RefCell<(u32, Vec<Seen>)> = const { RefCell::new((0, Vec::new())) };
}

/// The site of the innermost frame of the user's code, with all frames of the user's code that lead to it.
fn current_with_stack() -> Site {
    let mut frames: SmallVec<[(*mut ffi::PyCodeObject, i32); 64]> = SmallVec::new();
    // SAFETY: as in `current`. A code object lives as long as its frame, and the frames of this thread outlive this call.
    unsafe {
        if ffi::PyGILState_Check() == 0 {
            return Site::UNKNOWN;
        }
        let mut frame = ffi::PyEval_GetFrame();
        if frame.is_null() {
            return Site::UNKNOWN;
        }
        ffi::Py_INCREF(frame.cast());
        while !frame.is_null() {
            if id_of(frame) != INTERNAL {
                let code = ffi::PyFrame_GetCode(frame);
                frames.push((code, PyFrame_GetLasti(frame)));
                ffi::Py_DECREF(code.cast());
            }
            let back = ffi::PyFrame_GetBack(frame);
            ffi::Py_DECREF(frame.cast());
            frame = back;
        }
    }
    if frames.is_empty() {
        return Site::UNKNOWN;
    }
    let (then, mut last) = LAST.take();
    let now = RELEASES.load(Ordering::Relaxed);
    if then != now {
        last.clear();
    }
    let same = last.iter().zip(frames.iter().rev()).take_while(|(l, (code, lasti))| l.code == *code as usize && l.lasti == *lasti).count();
    last.truncate(same);
    let mut id = last.last().map_or(OUTERMOST, |l| l.id);
    for (code, lasti) in frames.iter().rev().skip(same) {
        // SAFETY: as above.
        id = unsafe { intern_called(*code, *lasti, id) };
        last.push(Seen { code: *code as usize, lasti: *lasti, id });
    }
    LAST.replace((now, last));
    Site(id)
}

/// A field of a code object that is text.
///
/// # Safety
/// `code` is a live code object, under the GIL.
unsafe fn text_of(code: *mut ffi::PyCodeObject, field: &CStr) -> Option<String> {
    // Without `attach`: the allocator asks for sites under guards. A field of a code object is read by C code alone, which neither releases the
    // GIL nor runs Python.
    // SAFETY: by the caller's promise. The new reference is released, and the text copied before.
    unsafe {
        let name = ffi::PyObject_GetAttrString(code.cast(), field.as_ptr());
        if name.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        let mut length = 0;
        let text = ffi::PyUnicode_AsUTF8AndSize(name, &raw mut length);
        let made = if text.is_null() {
            ffi::PyErr_Clear();
            None
        } else {
            Some(String::from_utf8_lossy(std::slice::from_raw_parts(text.cast::<u8>(), length as usize)).into_owned())
        };
        ffi::Py_DECREF(name);
        made
    }
}

fn describe(site: Site) -> Option<String> {
    let (file, line, name) = place_of(site)?;
    Some(format!("{file}:{line} in {name}"))
}

fn place_of(site: Site) -> Option<(String, u32, String)> {
    let entry = entry(site.0)?;
    Some((entry.file.to_string(), entry.line, entry.name.to_string()))
}

/// The call site with a number.
fn entry(id: u32) -> Option<CallEntry> {
    TABLE.lock().as_ref()?.entries.get(id.checked_sub(1)? as usize).cloned()
}

/// The frames that lead to a site, innermost first; one if only the innermost line is known.
fn frames_to(site: Site) -> Vec<CallEntry> {
    let mut frames: Vec<CallEntry> = entry(site.0).into_iter().collect();
    while let Some(e) = frames.last().filter(|e| e.outer != 0).and_then(|e| entry(e.outer)) {
        frames.push(e);
    }
    frames
}

/// The stack that ends at a site, in the form of Python's tracebacks; None if only the innermost line is known.
fn stack(site: Site) -> Option<String> {
    let frames = frames_to(site);
    frames.first().filter(|e| e.outer != 0)?;
    attach(|py| {
        let getline = py.import("linecache").ok()?.getattr("getline").ok()?;
        let mut text = String::new();
        for CallEntry { file, name, line, .. } in frames.iter().rev() {
            let source: String = getline.call1((&**file, line)).and_then(|s| s.extract()).unwrap_or_default();
            text += &format!("  File \"{file}\", line {line}, in {name}\n");
            if !source.trim().is_empty() {
                text += &format!("    {}\n", source.trim());
            }
        }
        Some(text)
    })
}

/// The frames that lead to a site, innermost first, each as "file(line): function"; one frame if only the innermost line is known.
pub(crate) fn frames_of(site: Site) -> Vec<String> {
    frames_to(site).iter().map(|e| format!("{}({}): {}", e.file, e.line, e.name)).collect()
}

/// Shows a UserWarning. If the user's filters turn it into an exception, it is printed to `sys.stderr`: another error is being raised.
fn warn(text: &str) {
    attach(|py| {
        let Ok(message) = CString::new(text) else { return };
        if let Err(e) = PyErr::warn(py, &py.get_type::<PyUserWarning>(), &message, 1) {
            e.print(py);
        }
    });
}

/// Shows a UserWarning as if the line of `site` had raised it.
fn warn_at(site: Site, text: &str) -> crate::error::Result<()> {
    let (file, line, _) = site.place().unwrap_or_default();
    attach(|py| -> PyResult<()> {
        let kind = py.get_type::<PyUserWarning>();
        py.import("warnings")?.call_method1("warn_explicit", (text, kind, file, line))?;
        Ok(())
    })
    .map_err(foreign)
}

/// Has what diagnostics have found shown by the main thread, between two of its instructions.
fn soon() {
    extern "C" fn show(_: *mut std::ffi::c_void) -> std::ffi::c_int {
        attach(|py| {
            // An exception here would come out of a line that has nothing to do with it.
            if let Err(e) = growing_graph::report().map_err(PyErr::from) {
                e.write_unraisable(py, None);
            }
        });
        0
    }
    // SAFETY: any thread may ask, and `show` needs no argument. If the interpreter's list is full, the next pass reports.
    unsafe { ffi::Py_AddPendingCall(Some(show), std::ptr::null_mut()) };
}

/// The mean seconds per record of the current call site, over `n` records from this frame.
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

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let file: String = m.py().import("rgrad")?.getattr("__path__")?.get_item(0)?.extract()?;
    frames::probe(m.py());
    let _ = PACKAGE.set(format!("{}/", file.trim_end_matches('/')));
    register_source(CallSiteSource { current: [current, current_with_stack], describe, place: place_of, stack, warn, warn_at, soon });
    m.add_function(wrap_pyfunction!(_site_bench, m)?)?;
    m.add_function(wrap_pyfunction!(_call_site, m)?)
}
