//! Statistics of CPU memory, the number of threads, and the handlers around a fork.
//!
//! Memory of the wgpu device is counted in `wgpu`.

use crate::error::Error;
use crate::python::args::type_name;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::Cell;

/// The bytes that CPU tensors hold now.
#[pyfunction]
fn memory_allocated() -> usize {
    crate::host::memory::alloc::memory_allocated()
}

/// The largest number of bytes that CPU tensors have held since the last `reset_peak_memory_stats`.
#[pyfunction]
fn max_memory_allocated() -> usize {
    crate::host::memory::alloc::max_memory_allocated()
}

/// Resets `max_memory_allocated` to the bytes held now.
#[pyfunction]
fn reset_peak_memory_stats() {
    crate::host::memory::alloc::reset_peak_memory_stats();
}

/// Returns cached CPU memory that no tensor uses to the system.
#[pyfunction]
fn empty_cache() {
    crate::host::memory::alloc::empty_cache();
}

/// Limits the bytes that all CPU tensors together may hold. 0 sets the limit to the machine's memory.
#[pyfunction]
fn set_memory_limit(bytes: usize) {
    crate::host::memory::alloc::set_memory_limit(bytes);
}

/// Makes the n-th allocation from now on fail (0 is the next one), or panic. A negative number switches this off. For tests.
#[pyfunction]
#[pyo3(signature = (n, panic = false))]
fn _fail_allocation_in(n: i64, panic: bool) {
    if panic {
        crate::host::memory::alloc::panic_in(n);
    } else {
        crate::host::memory::alloc::fail_in(n);
    }
}

/// The number of threads that kernels use.
#[pyfunction]
fn get_num_threads() -> usize {
    crate::host::threads::num_threads()
}

/// PyTorch's name of the instruction set that kernels use.
#[pyfunction]
fn _get_cpu_capability() -> &'static str {
    use crate::simd::{InstructionSet, instruction_set};
    match instruction_set() {
        InstructionSet::Avx512 => "AVX512",
        InstructionSet::Avx2 => "AVX2",
        InstructionSet::Base if cfg!(target_arch = "x86_64") => "NO AVX",
        InstructionSet::Base => "DEFAULT",
    }
}

/// Sets the number of threads that kernels use.
///
/// Raises:
///     RuntimeError: `num` is not a positive integer.
#[pyfunction]
fn set_num_threads(num: &Bound<'_, PyAny>) -> PyResult<()> {
    let wrong = |_| Error::runtime(format!("set_num_threads expects an int, but got {}", type_name(num)));
    let n = num.extract::<i64>().map_err(wrong)?;
    let n = usize::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| Error::runtime("set_num_threads expects a positive integer"))?;
    crate::host::threads::set_num_threads(n);
    Ok(())
}

thread_local! {
    /// Whether this thread is between `_before_fork` and `_after_fork`.
    static FORKING: Cell<bool> = const { Cell::new(false) };
}

#[pyfunction]
fn _before_fork() {
    if FORKING.replace(true) {
        return;
    }
    crate::autograd::engine::fork::before_fork();
    // Before the locks below: threads that end may give memory back.
    crate::host::threads::before_fork();
    crate::array::fusion::before_fork();
}

/// What must not be in use when the process is copied. Not in `_before_fork`: until the fork handlers of others run, and the garbage collector,
/// which drop tensors and allocate memory.
#[cfg(unix)]
mod system {
    use crate::array::fusion;
    use crate::host::memory::alloc;
    use crate::host::raw_lock;

    pub extern "C" fn before_fork() {
        fusion::hold_in_fork();
        alloc::before_fork();
    }

    pub extern "C" fn after_fork() {
        // SAFETY: the system has called `before_fork` on this thread.
        unsafe {
            alloc::after_fork();
            fusion::release_in_fork();
        }
    }

    pub extern "C" fn after_fork_in_child() {
        raw_lock::after_fork_in_child();
        after_fork();
    }
}

#[pyfunction]
fn _after_fork(child: bool) {
    if !FORKING.replace(false) {
        return;
    }
    // SAFETY: the flag shows that this thread has called `_before_fork`.
    unsafe { crate::array::fusion::after_fork() };
    crate::autograd::engine::fork::after_fork(child);
    if child {
        crate::host::threads::after_fork();
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(memory_allocated, m)?)?;
    m.add_function(wrap_pyfunction!(max_memory_allocated, m)?)?;
    m.add_function(wrap_pyfunction!(reset_peak_memory_stats, m)?)?;
    m.add_function(wrap_pyfunction!(empty_cache, m)?)?;
    m.add_function(wrap_pyfunction!(set_memory_limit, m)?)?;
    m.add_function(wrap_pyfunction!(_fail_allocation_in, m)?)?;
    m.add_function(wrap_pyfunction!(get_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(_get_cpu_capability, m)?)?;
    m.add_function(wrap_pyfunction!(set_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(_before_fork, m)?)?;
    m.add_function(wrap_pyfunction!(_after_fork, m)?)?;
    #[cfg(unix)]
    crate::host::raw_lock::at_fork(system::before_fork, system::after_fork, system::after_fork_in_child).map_err(Error::from)?;
    let os = m.py().import("os")?;
    let kwargs = PyDict::new(m.py());
    kwargs.set_item("before", m.getattr("_before_fork")?)?;
    let partial = m.py().import("functools")?.getattr("partial")?;
    kwargs.set_item("after_in_parent", partial.call1((m.getattr("_after_fork")?, false))?)?;
    kwargs.set_item("after_in_child", partial.call1((m.getattr("_after_fork")?, true))?)?;
    os.call_method("register_at_fork", (), Some(&kwargs))?;
    Ok(())
}
