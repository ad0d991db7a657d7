//! What the reports of `rgrad.autograd.graph` read of a graph: its nodes with what they hold, and where paths are cut.

use crate::autograd::diagnostics::graph_nodes::{self, GraphNodes, SavedMemory};
use crate::autograd::diagnostics::{graph_memory, growing_graph, missing_gradient, unused_total};
use crate::autograd::dispatch::call_site::Site;
use crate::autograd::{Edge, NodeOp};
use crate::python::args;
use crate::python::autograd::node::{PyNode, node_object};
use crate::python::autograd::saved::packed_values;
use crate::python::errors::type_error;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use rustc_hash::FxHashMap;

/// Edges to the first output of these nodes.
fn edges_of(nodes: &Bound<'_, PyAny>, function: &str) -> PyResult<Vec<Edge>> {
    let mut edges = Vec::new();
    for item in nodes.try_iter()? {
        let item = item?;
        let Ok(node) = item.cast::<PyNode>() else {
            return Err(type_error(format!("{function}: expected nodes of a graph, not {}", args::type_name(&item))));
        };
        edges.push(Edge { node: node.get().node()?, nr: 0 });
    }
    Ok(edges)
}

/// The operations behind some nodes, each after those that it takes results from. A sequence of nodes, whose objects are made when they are asked for.
#[pyclass(module = "rgrad._core", frozen, name = "_GraphNodes")]
struct PyGraphNodes(GraphNodes);

#[pymethods]
impl PyGraphNodes {
    fn __len__(&self) -> usize {
        self.0.nodes.len()
    }

    fn __getitem__(&self, py: Python<'_>, index: usize) -> PyResult<Py<PyAny>> {
        let node = self.0.nodes.get(index).ok_or_else(|| PyIndexError::new_err("index out of range"))?;
        node_object(py, node)
    }

    /// The nodes' names.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.0.nodes.iter().map(|n| PyString::intern(py, &n.name())))
    }

    /// Where they were recorded, as "file:line in function"; None where that is unknown.
    #[getter]
    fn sites<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut texts: FxHashMap<Site, Option<Bound<'py, PyString>>> = FxHashMap::default();
        let text = |site: Site| site.describe().map(|s| PyString::new(py, &s));
        PyList::new(py, self.0.nodes.iter().map(|n| texts.entry(n.site()).or_insert_with(|| text(n.site())).clone()))
    }

    /// Their numbers in the order of recording.
    #[getter]
    fn numbers(&self) -> Vec<u64> {
        self.0.nodes.iter().map(|n| n.seq()).collect()
    }

    /// For each the operations that it takes.
    #[getter]
    fn inputs(&self) -> &Vec<Vec<usize>> {
        &self.0.inputs
    }

    /// For each the leaves that it takes.
    #[getter]
    fn leaf_inputs(&self) -> &Vec<Vec<usize>> {
        &self.0.leaf_inputs
    }

    /// For each whether an operand has no gradient.
    #[getter]
    fn cut(&self) -> &Vec<bool> {
        &self.0.cut
    }

    /// The nodes of the leaves.
    #[getter]
    fn leaves<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.0.leaves.iter().map(|n| node_object(py, n)).collect::<PyResult<Vec<_>>>()?)
    }

    /// For each root its position, or `~position` of its leaf.
    #[getter]
    fn outputs(&self) -> Vec<isize> {
        self.0.outputs.iter().map(|o| o.map_or_else(|leaf| !leaf.cast_signed(), usize::cast_signed)).collect()
    }

    /// What these nodes have saved, as pairs of a storage's number and bytes; and those of them whose object has to be asked.
    fn saved(&self, start: usize, end: usize) -> (Vec<(usize, usize)>, Vec<usize>) {
        let (mut known, mut elsewhere) = (Vec::new(), Vec::new());
        for (i, node) in self.0.nodes.iter().enumerate().take(end).skip(start) {
            match graph_nodes::saved(node) {
                SavedMemory::Known(pairs) => known.extend(pairs),
                SavedMemory::Elsewhere => elsewhere.push(i),
            }
        }
        (known, elsewhere)
    }
}

/// The operations behind some nodes in the order of recording; None if there are more than ``most``.
#[pyfunction]
fn _graph_nodes(py: Python<'_>, nodes: &Bound<'_, PyAny>, most: usize) -> PyResult<Option<PyGraphNodes>> {
    let roots = edges_of(nodes, "draw")?;
    Ok(py.detach(|| graph_nodes::of(&roots, most)).map(PyGraphNodes))
}

/// The nodes behind some nodes, those first, and the memory that they hold.
///
/// Returns:
///     For each node (sequence number, name, call site's number, whether a pass has run and freed it, [(kind, index of a storage)], [index of a
///     node], objects that hooks have packed, the context of a custom Function or None); and for each storage (number, device, key or None,
///     allocator's bytes, size, whether something outside of the graph holds it, whether it is a result that is not computed yet).
#[pyfunction]
fn _graph_memory<'py>(py: Python<'py>, nodes: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
    let roots = edges_of(nodes, "memory_report")?;
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

/// Reports a node that will not be used any more if it is the last one of a total that no backward pass has used.
#[pyfunction]
fn _unused_total(node: &Bound<'_, PyNode>) -> PyResult<()> {
    let node = node.get().node()?;
    unused_total::look_at(&node);
    Ok(growing_graph::report()?)
}

/// From now on, or no longer, one caller more drops totals that no backward pass has used, on purpose.
#[pyfunction]
fn _expect_unused_totals(on: bool) {
    unused_total::expect(on);
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
    m.add_class::<PyGraphNodes>()?;
    m.add_function(wrap_pyfunction!(_graph_nodes, m)?)?;
    m.add_function(wrap_pyfunction!(_graph_memory, m)?)?;
    m.add_function(wrap_pyfunction!(_node_state, m)?)?;
    m.add_function(wrap_pyfunction!(_unused_total, m)?)?;
    m.add_function(wrap_pyfunction!(_expect_unused_totals, m)?)?;
    m.add_function(wrap_pyfunction!(_path_cuts, m)?)
}
