//! The switch and the counters of pending results.

use crate::array::fusion;
use pyo3::prelude::*;

/// Whether results may stay pending.
#[pyfunction]
fn _fusion_enabled() -> bool {
    fusion::is_enabled()
}

/// Switches pending results on or off in the whole process and gives what was set before.
#[pyfunction]
fn _set_fusion(enabled: bool) -> bool {
    fusion::set_enabled(enabled)
}

/// (programs run, steps in them, bytes never written) since the process started.
#[pyfunction]
fn _fusion_counts() -> (u64, u64, u64) {
    let c = fusion::counts();
    (c.programs, c.steps, c.bytes_not_written)
}

/// Sets from how many elements on results stay pending, and gives what was set before. For tests.
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
