//! The switch and the counters of deferred programs.
//!
//! Which results are deferred, and when they run, is decided in `array::deferred`.

use crate::array::fusion;
use pyo3::prelude::*;

/// Whether operations may be deferred.
#[pyfunction]
fn _fusion_enabled() -> bool {
    fusion::is_enabled()
}

/// Switches deferred programs on or off in the whole process, and returns the previous setting.
#[pyfunction]
fn _set_fusion(enabled: bool) -> bool {
    fusion::set_enabled(enabled)
}

/// The programs run, the steps in them, and the bytes that were never written, since the process started.
#[pyfunction]
fn _fusion_counts() -> (u64, u64, u64) {
    let c = fusion::counts();
    (c.programs, c.steps, c.bytes_not_written)
}

/// Sets the least number of elements of a deferred operation, and returns the previous setting. For tests.
#[pyfunction]
fn _set_fusion_least(elements: usize) -> usize {
    fusion::set_min_elements(elements)
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_fusion_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_set_fusion, m)?)?;
    m.add_function(wrap_pyfunction!(_fusion_counts, m)?)?;
    m.add_function(wrap_pyfunction!(_set_fusion_least, m)?)
}
