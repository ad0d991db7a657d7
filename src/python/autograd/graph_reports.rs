//! What the reports of `rgrad.autograd.graph` read of a graph: its nodes with what they hold, and where paths are cut.

use crate::autograd::diagnostics::{graph_memory, missing_gradient};
use crate::autograd::{Edge, NodeOp};
use crate::python::args;
use crate::python::autograd::node::{PyNode, node_object};
use crate::python::autograd::saved::packed_values;
use crate::python::errors::type_error;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// The nodes behind some nodes, those first, and the memory that they hold.
///
/// Returns:
///     For each node (sequence number, name, call site's number, whether a pass has run and freed it, [(kind, index of a storage)], [index of a
///     node], objects that hooks have packed, the context of a custom Function or None); and for each storage (number, device, key or None,
///     allocator's bytes, size, whether something outside of the graph holds it, whether it is a result that is not computed yet).
#[pyfunction]
fn _graph_memory<'py>(py: Python<'py>, nodes: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
    let mut roots = Vec::new();
    for item in nodes.try_iter()? {
        let item = item?;
        let Ok(node) = item.cast::<PyNode>() else {
            return Err(type_error(format!("memory_report: expected nodes of a graph, not {}", args::type_name(&item))));
        };
        roots.push(Edge { node: node.get().node()?, nr: 0 });
    }
    let found = py.detach(|| graph_memory::of(&roots));
    let (made, storages) = (PyList::empty(py), PyList::empty(py));
    for n in &found.nodes {
        let holds: Vec<(&str, usize)> = n.holds.iter().map(|(kind, at)| (kind.name(), *at)).collect();
        let foreign = matches!(n.node.op(), NodeOp::Other(o) if o.as_any().is_some());
        let context = if foreign { Some(node_object(py, &n.node)?) } else { None };
        let site = n.node.site().0;
        made.append((n.node.seq(), n.node.name(), site, n.node.was_run(), holds, &n.next, packed_values(py, &n.node), context))?;
    }
    for s in &found.storages {
        storages.append((s.id, s.device.name(), s.key.map(|k| k.1), s.bytes, s.size, s.outside, s.pending))?;
    }
    Ok((made, storages))
}

/// The number of the call site that recorded a node, and whether a pass has run the node and freed its graph.
#[pyfunction]
fn _node_state(node: &Bound<'_, PyNode>) -> PyResult<(u32, bool)> {
    let node = node.get().node()?;
    Ok((node.site().0, node.was_run()))
}

/// Where the paths from a tensor to another one end.
///
/// Returns:
///     Whether a path is whole; if not, the cut through which the other tensor would be reached, or None; other cuts through which it would be.
///     A cut is (reason, operation, call site's number, text). If the other tensor needs no gradient, the last are what it was made by.
#[pyfunction]
fn _path_cuts<'py>(tensor: &Bound<'py, PyAny>, wrt: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let from = args::tensor(tensor, "explain(): argument 'tensor'")?;
    let to = args::tensor(wrt, "explain(): argument 'wrt'")?;
    let row = |c: missing_gradient::Cut| (c.reason, c.op, c.site.0, c.text);
    let found = missing_gradient::cuts(from, to)?;
    let others: Vec<_> = found.others.into_iter().map(row).collect();
    (found.whole, found.before.map(row), others).into_pyobject(tensor.py())
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_graph_memory, m)?)?;
    m.add_function(wrap_pyfunction!(_node_state, m)?)?;
    m.add_function(wrap_pyfunction!(_path_cuts, m)?)
}
