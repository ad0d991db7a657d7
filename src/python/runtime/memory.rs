//! The memory that is alive, with the lines that allocated it, and recordings of it, for `rgrad.memory`.

use crate::autograd::call_site::Site;
use crate::autograd::dispatch::{call_site, module_site};
use crate::host::live_memory::{self, BufferKey, LiveBuffer};
use crate::host::memory::alloc;
use crate::python::args;
use crate::python::errors::runtime;
use pyo3::prelude::*;

/// Device, key, bytes, number of the call site (0: unknown), number in the order of allocation.
type LiveRow = (&'static str, usize, usize, u32, u64);
/// Nanoseconds since the start, device, key, bytes, number of the call site, whether it is a free.
type EventRow = (u64, &'static str, usize, usize, u32, bool);

fn live_row((key, b): (BufferKey, LiveBuffer)) -> LiveRow {
    (key.0.name(), key.1, b.bytes, b.site, b.serial)
}

/// Every buffer of at least `_REGISTERED` bytes that is alive, and smaller ones that a recording has seen.
#[pyfunction]
fn _live_memory() -> Vec<LiveRow> {
    live_memory::all().into_iter().map(live_row).collect()
}

/// Begins to record allocations and frees, the latest `most` of them.
///
/// Raises:
///     RuntimeError: A recording runs.
#[pyfunction]
fn _start_memory_recording(most: usize, modules: bool) -> PyResult<()> {
    if !live_memory::start(most) {
        return Err(runtime("memory.record: memory is being recorded already; leave the block that does so first"));
    }
    call_site::record_modules(modules);
    Ok(())
}

/// Ends the recording, if one runs.
#[pyfunction]
fn _stop_memory_recording() {
    call_site::record_modules(false);
    live_memory::stop();
}

/// What was alive when the recording began, its events, and how many of the oldest events are left out; None if none runs.
#[pyfunction]
fn _memory_recording() -> Option<(Vec<LiveRow>, Vec<EventRow>, usize)> {
    let (before, events, left_out) = live_memory::recorded(|r| (r.before.clone(), r.events.clone(), r.left_out))?;
    let events = events.into_iter().map(|e| (e.time, e.key.0.name(), e.key.1, e.bytes, e.site, e.freed)).collect();
    Some((before.into_iter().map(live_row).collect(), events, left_out))
}

/// The bytes of CPU memory that are cached for reuse.
#[pyfunction]
fn _memory_idle() -> usize {
    alloc::memory_idle()
}

/// A number for the name of a module.
#[pyfunction]
fn _module_number(name: &str) -> u32 {
    module_site::number_of(name)
}

/// Makes the module of this number the one whose forward runs on this thread (0: none). Returns the number before.
#[pyfunction]
fn _enter_module(number: u32) -> u32 {
    module_site::enter(number)
}

/// File, line and function of a call site, if they are known.
#[pyfunction]
fn _site_place(site: u32) -> Option<(String, u32, String)> {
    Site(site).place()
}

/// The module whose forward made the call of a site, if that was recorded.
#[pyfunction]
fn _site_module(site: u32) -> Option<String> {
    Site(site).module()
}

/// The memory below a tensor: the storage's number, device, the allocator's key and bytes (None and 0: it counts nothing), and the storage's size.
#[pyfunction]
fn _tensor_memory(tensor: &Bound<'_, PyAny>) -> PyResult<(usize, &'static str, Option<usize>, usize, usize)> {
    let t = args::tensor(tensor, "_tensor_memory(): argument 'tensor'")?;
    Ok(t.with_array(|a| {
        let s = a.storage();
        let held = s.held();
        (s.id(), s.device().name(), held.map(|(key, _)| key.1), held.map_or(0, |(_, bytes)| bytes), s.bytes())
    }))
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("_REGISTERED", live_memory::REGISTERED)?;
    m.add_function(wrap_pyfunction!(_live_memory, m)?)?;
    m.add_function(wrap_pyfunction!(_start_memory_recording, m)?)?;
    m.add_function(wrap_pyfunction!(_stop_memory_recording, m)?)?;
    m.add_function(wrap_pyfunction!(_memory_recording, m)?)?;
    m.add_function(wrap_pyfunction!(_memory_idle, m)?)?;
    m.add_function(wrap_pyfunction!(_module_number, m)?)?;
    m.add_function(wrap_pyfunction!(_enter_module, m)?)?;
    m.add_function(wrap_pyfunction!(_site_place, m)?)?;
    m.add_function(wrap_pyfunction!(_site_module, m)?)?;
    m.add_function(wrap_pyfunction!(_tensor_memory, m)?)
}
