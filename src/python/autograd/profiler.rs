//! The profiler's recorder for `rgrad.autograd.profiler`: start and stop, named ranges, and the events as tuples.
//!
//! What is recorded is decided in `crate::autograd::profiler`. Not here: tables, averages and traces, which are Python.

use crate::array::lock_order::TableLock;
use crate::array::profile::{self, OpenEvent};
use crate::autograd::call_site::Site;
use crate::autograd::profiler;
use crate::backend::wgpu::Context;
use crate::python::overrides::profilers_changed;
use crate::python::runtime::call_site::frames_of;
use crate::python::types::PyObjResult;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// Begins to record on this thread. ``options`` is a sum: 1 shapes, 2 memory, 4 stacks, 8 times of devices. Returns the number of events so far, and the time.
#[pyfunction]
#[pyo3(signature = (options))]
fn _profiler_start(options: u8) -> (usize, u64) {
    profilers_changed(1);
    (profiler::start(options), profile::now())
}

/// Ends what one `_profiler_start` of this thread began.
#[pyfunction]
fn _profiler_stop() {
    if profiler::is_on() {
        profilers_changed(-1);
        profiler::stop();
    }
}

/// Whether this thread records.
#[pyfunction]
fn _profiler_is_on() -> bool {
    profiler::is_on()
}

/// The recorder's clock in nanoseconds, and the nanoseconds from 1970 to its zero.
#[pyfunction]
fn _profiler_clock() -> (u64, u64) {
    (profile::now(), profile::origin().1)
}

/// A range that the user has named, until it is closed.
#[pyclass(module = "rgrad", frozen)]
struct ProfilerRange(TableLock<Option<OpenEvent>>);

#[pymethods]
impl ProfilerRange {
    /// Ends the range.
    fn close(&self) {
        let ended = self.0.lock().take();
        drop(ended);
    }
}

/// Begins a named range on this thread; None if it does not record.
#[pyfunction]
#[pyo3(signature = (name))]
fn _profiler_range(name: String) -> Option<ProfilerRange> {
    if !profiler::is_on() {
        return None;
    }
    profiler::range(name).map(|e| ProfilerRange(TableLock::new(Some(e))))
}

/// This thread's events from number ``first`` on, and the time. An event is a tuple: kind, name, start and end in nanoseconds (0 while it is open),
/// thread, the number of the event around it (or None), sequence number (or -1), site, inputs (shapes and dtypes, or None), shapes of the outputs (or None), floating point
/// operations (0 where the shapes tell them), bytes held (CPU and
/// devices, at the start and at the end), steps of a program (names and sites, or None), names of kernels.
#[pyfunction]
#[pyo3(signature = (first))]
fn _profiler_events(py: Python<'_>, first: usize) -> PyResult<(Py<PyList>, u64)> {
    let (events, until) = profile::events(first);
    let list = PyList::empty(py);
    for e in events {
        let inputs = match &e.inputs {
            None => None,
            Some(inputs) => {
                let inputs = inputs.iter().map(|(shape, dtype)| Ok((PyList::new(py, shape.iter())?, dtype.map_or("", |d| d.name()))));
                Some(inputs.collect::<PyResult<Vec<_>>>()?)
            }
        };
        let outputs = e.outputs.as_ref().map(|o| o.iter().map(|shape| PyList::new(py, shape.iter())).collect::<PyResult<Vec<_>>>());
        let outputs = outputs.transpose()?;
        let parent = if e.parent == profile::NO_EVENT { None } else { (e.parent as usize).checked_sub(first) };
        let sequence = i64::try_from(e.sequence).ok().filter(|s| *s > 0).unwrap_or(-1);
        let [[cpu, device], [cpu_after, device_after]] = e.memory;
        let memory = (cpu, device, cpu_after, device_after);
        let times = (e.kind as u8, e.name.as_ref(), e.start, e.end).into_pyobject(py)?;
        let places = (e.thread, parent, sequence, e.site, inputs, outputs, e.flops, memory, e.steps.map(Vec::from)).into_pyobject(py)?;
        list.append(times.add(places)?.add((e.kernels,))?)?;
    }
    Ok((list.unbind(), until))
}

/// Waits for what devices have been asked for, and returns what they ran for this thread's events from number ``first`` on: the event (or None), a name,
/// start and end in nanoseconds, and whether these are times of the host. A second call does not return it again.
#[pyfunction]
#[pyo3(signature = (first))]
fn _profiler_device_runs(first: usize) -> Vec<(Option<usize>, String, u64, u64, bool)> {
    if let Some(context) = Context::installed() {
        // A device that is lost has no times; the next operation on it reports the error.
        let _ = context.report_times();
    }
    let own = |event: u32| if event == profile::NO_EVENT { None } else { (event as usize).checked_sub(first) };
    profile::take_device_runs().into_iter().map(|(event, name, start, end, host)| (own(event), name, start, end, host)).collect()
}

/// The frames that lead to a site, innermost first, each as "file(line): function".
#[pyfunction]
#[pyo3(signature = (site))]
fn _profiler_stack(py: Python<'_>, site: u32) -> PyObjResult {
    Ok(PyTuple::new(py, frames_of(Site(site)))?.into_any().unbind())
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_profiler_start, m)?)?;
    m.add_function(wrap_pyfunction!(_profiler_stop, m)?)?;
    m.add_function(wrap_pyfunction!(_profiler_is_on, m)?)?;
    m.add_function(wrap_pyfunction!(_profiler_clock, m)?)?;
    m.add_function(wrap_pyfunction!(_profiler_range, m)?)?;
    m.add_function(wrap_pyfunction!(_profiler_events, m)?)?;
    m.add_function(wrap_pyfunction!(_profiler_device_runs, m)?)?;
    m.add_function(wrap_pyfunction!(_profiler_stack, m)?)
}
