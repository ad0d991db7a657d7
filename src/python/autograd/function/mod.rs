//! Custom Functions: forward and backward in Python, one node in the graph.
//!
//! `class` reads the methods of a Function once, `apply` calls it, `short` and `record` make its node, `node` runs its backward, and `context` is
//! what forward and backward share. Under transforms Python's `_function_transforms` comes before `apply`.
//! Not here: what a node of the graph is (`autograd::graph`), and the engine that runs it.

mod apply;
pub(super) mod args;
mod class;
mod context;
mod kept_outputs;
mod node;
mod outputs;
mod record;
mod short;
mod vectorcall;

pub(crate) use context::FunctionCtx;
pub(crate) use node::{context_ref, traverse};

use super::context_owner;
use pyo3::prelude::*;

fn warn(py: Python<'_>, category: &str, message: &str) -> PyResult<()> {
    let category = py.import("builtins")?.getattr(category)?;
    py.import("warnings")?.call_method1("warn", (message, category)).map(drop)
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    context::register(m)?;
    m.add_class::<class::FunctionClass>()?;
    context_owner::register(m)?;
    apply::register(m)
}
