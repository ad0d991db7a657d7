//! Recurrent networks and cells, with the signatures of PyTorch's functions.

use crate::autograd::Tensor;
use crate::ops::recurrent::{self, RecurrentCell, RecurrentNetwork};
use crate::python::args::{int, tensor, tensor_list};
use crate::python::errors::type_error;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// Numbers of sequences, from a tensor of integers.
fn batch_sizes(t: &Tensor) -> PyResult<Vec<usize>> {
    let sizes = t.array()?.to_vec::<i64>()?;
    sizes.into_iter().map(|n| usize::try_from(n).map_err(|_| crate::error::Error::runtime("batch_sizes must be positive").into())).collect()
}

/// The arguments of a network: those of padded sequences, or, with sizes of batches behind the data, those of packed ones.
fn network<'py>(py: Python<'py>, name: &str, kind: RecurrentCell, args: &Bound<'py, PyTuple>) -> PyObjResult {
    let many = args.len();
    let is_list = |k: usize| args.get_item(k).is_ok_and(|o| o.is_instance_of::<PyList>() || o.is_instance_of::<PyTuple>());
    if many != 9 {
        return Err(type_error(format!(
            "{name}() received an invalid combination of arguments: it takes (input, hx, params, has_biases, num_layers, dropout, train, \
             bidirectional, batch_first), or (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional); got \
             {many} arguments"
        )));
    }
    let packed = is_list(3);
    let at = usize::from(packed);
    let given = |k: usize| args.get_item(k);
    let what = |k: usize| format!("{name}(): argument {k}");
    let (x, hx, params) = (given(0)?, given(1 + at)?, given(2 + at)?);
    let x = tensor(&x, &what(1))?;
    let first = if kind.is_lstm() { tensor_list(&hx, name, "hx")? } else { std::iter::once(tensor(&hx, &what(2))?.clone()).collect() };
    let first: Vec<Tensor> = first.into_iter().collect();
    let parameters: Vec<Tensor> = tensor_list(&params, name, "params")?.into_iter().collect();
    let flag = |k: usize| -> PyResult<bool> { given(k)?.extract() };
    let layers = usize::try_from(int(&given(4 + at)?)?).unwrap_or(0);
    let network = RecurrentNetwork {
        cell: kind,
        parameters: &parameters,
        biases: flag(3 + at)?,
        layers,
        dropout: given(5 + at)?.extract()?,
        train: flag(6 + at)?,
        bidirectional: flag(7 + at)?,
        batch_first: if packed { false } else { flag(8)? },
    };
    let batches = if packed { Some(batch_sizes(tensor(&given(1)?, &what(2))?)?) } else { None };
    let (out, lasts) = network.run(x, batches.as_deref(), &first)?;
    let mut all = vec![wrap(py, out)?];
    for t in lasts {
        all.push(wrap(py, t)?);
    }
    Ok(PyTuple::new(py, all)?.into_any().unbind())
}

macro_rules! networks {
    ($($(#[$doc:meta])+ $name:ident, $kind:expr;)+) => { $(
        $(#[$doc])+
        #[pyfunction]
        #[pyo3(signature = (*args))]
        fn $name(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyObjResult {
            network(py, stringify!($name), $kind, args)
        }
    )+ };
}

networks! {
    /// A network of long short-term memory (Hochreiter and Schmidhuber 1997): all steps, layers and directions.
    ///
    /// Args:
    ///     args: Either input (L, N, features), hx (two tensors (layers * directions, N, size)), params, has_biases, num_layers, dropout,
    ///         train, bidirectional, batch_first; or data (n, features), batch_sizes, hx, params, has_biases, num_layers, dropout, train,
    ///         bidirectional.
    ///
    /// Returns:
    ///     The result of each step, and the last states and cells.
    ///
    /// Raises:
    ///     RuntimeError: Shapes or dtypes do not fit.
    lstm, RecurrentCell::Lstm { projected: false };
    /// A network of gated recurrent units (Cho et al. 2014): all steps, layers and directions.
    ///
    /// Args:
    ///     args: As for `lstm`, but that hx is one tensor.
    ///
    /// Returns:
    ///     The result of each step, and the last states.
    ///
    /// Raises:
    ///     RuntimeError: Shapes or dtypes do not fit.
    gru, RecurrentCell::Gru;
    /// A network with `tanh(W x + b + U h + c)` as its step (Elman 1990): all steps, layers and directions.
    ///
    /// Args:
    ///     args: As for `gru`.
    ///
    /// Returns:
    ///     The result of each step, and the last states.
    ///
    /// Raises:
    ///     RuntimeError: Shapes or dtypes do not fit.
    rnn_tanh, RecurrentCell::Tanh;
    /// As `rnn_tanh`, with `max(x, 0)` in the place of the hyperbolic tangent.
    ///
    /// Args:
    ///     args: As for `gru`.
    ///
    /// Returns:
    ///     The result of each step, and the last states.
    ///
    /// Raises:
    ///     RuntimeError: Shapes or dtypes do not fit.
    rnn_relu, RecurrentCell::Relu;
}

fn optional<'a>(obj: Option<&'a PyObj<'_>>, what: &str) -> PyResult<Option<&'a Tensor>> {
    obj.filter(|o| !o.is_none()).map(|o| tensor(o, what)).transpose()
}

/// Sizes of a cell's arguments that do not fit, in PyTorch's words.
fn check(x: &Tensor, hidden: &[Tensor], weights: [&Tensor; 2], gates: usize) -> PyResult<()> {
    let (x_shape, w) = (x.shape(), weights[0].shape());
    let bad = |text: String| -> PyResult<()> { Err(crate::error::Error::runtime(text).into()) };
    let (size, features) = (x_shape.last().copied().unwrap_or(0), w.last().copied().unwrap_or(0));
    if size != features {
        return bad(format!("input has inconsistent input_size: got {size} expected {features}"));
    }
    let wanted = weights[1].shape().first().map_or(0, |n| n / gates);
    for (k, h) in hidden.iter().enumerate() {
        let shape = h.shape();
        if shape.len() == 2 && x_shape.len() == 2 && shape[0] != x_shape[0] {
            return bad(format!("Input batch size {} doesn't match hidden{k} batch size {}", x_shape[0], shape[0]));
        }
        let size = shape.last().copied().unwrap_or(0);
        if size != wanted {
            return bad(format!("hidden{k} has inconsistent hidden_size: got {size}, expected {wanted}"));
        }
    }
    Ok(())
}

/// One step of long short-term memory.
///
/// Args:
///     input: The input, of shape (N, features) or (features).
///     hx: State and cell, of shape (N, size) or (size).
///     w_ih: Weights of the input, of shape (4 * size, features).
///     w_hh: Weights of the state, of shape (4 * size, size).
///     b_ih: Biases of shape (4 * size), or None.
///     b_hh: The same.
///
/// Returns:
///     The new state and cell.
///
/// Raises:
///     RuntimeError: Shapes do not fit.
#[pyfunction]
#[pyo3(signature = (input, hx, w_ih, w_hh, b_ih=None, b_hh=None))]
fn lstm_cell(
    input: &Bound<'_, PyTensor>,
    hx: &PyObj<'_>,
    w_ih: &Bound<'_, PyTensor>,
    w_hh: &Bound<'_, PyTensor>,
    b_ih: Option<&PyObj<'_>>,
    b_hh: Option<&PyObj<'_>>,
) -> PyObjResult {
    if hx.cast::<PyTensor>().is_ok() {
        return Err(type_error("lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor"));
    }
    let hidden: Vec<Tensor> = tensor_list(hx, "lstm_cell", "hx")?.into_iter().collect();
    if hidden.len() != 2 {
        return Err(crate::error::Error::runtime("lstm_cell expects two hidden states").into());
    }
    let biases =
        [optional(b_ih, "lstm_cell(): argument 'b_ih' (position 5)")?, optional(b_hh, "lstm_cell(): argument 'b_hh' (position 6)")?];
    let weights = [PyTensor::of(w_ih), PyTensor::of(w_hh)];
    let kind = RecurrentCell::Lstm { projected: false };
    check(PyTensor::of(input), &hidden, weights, kind.gates())?;
    let py = input.py();
    let made = recurrent::cell(kind, PyTensor::of(input), &hidden, weights, biases)?;
    let made = made.into_iter().map(|t| wrap(py, t)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, made)?.into_any().unbind())
}

macro_rules! cells {
    ($($(#[$doc:meta])+ $name:ident, $kind:expr;)+) => { $(
        $(#[$doc])+
        #[pyfunction]
        #[pyo3(signature = (input, hx, w_ih, w_hh, b_ih=None, b_hh=None))]
        fn $name(
            input: &Bound<'_, PyTensor>,
            hx: &Bound<'_, PyTensor>,
            w_ih: &Bound<'_, PyTensor>,
            w_hh: &Bound<'_, PyTensor>,
            b_ih: Option<&PyObj<'_>>,
            b_hh: Option<&PyObj<'_>>,
        ) -> PyObjResult {
            let name = stringify!($name);
            let biases = [
                optional(b_ih, &format!("{name}(): argument 'b_ih' (position 5)"))?,
                optional(b_hh, &format!("{name}(): argument 'b_hh' (position 6)"))?,
            ];
            let hidden = [PyTensor::of(hx).clone()];
            let weights = [PyTensor::of(w_ih), PyTensor::of(w_hh)];
            check(PyTensor::of(input), &hidden, weights, $kind.gates())?;
            let mut made = recurrent::cell($kind, PyTensor::of(input), &hidden, weights, biases)?;
            wrap(input.py(), made.swap_remove(0))
        }
    )+ };
}

cells! {
    /// One step of a gated recurrent unit.
    ///
    /// Args:
    ///     input: The input, of shape (N, features) or (features).
    ///     hx: The state, of shape (N, size) or (size).
    ///     w_ih: Weights of the input, of shape (3 * size, features).
    ///     w_hh: Weights of the state, of shape (3 * size, size).
    ///     b_ih: Biases of shape (3 * size), or None.
    ///     b_hh: The same.
    ///
    /// Returns:
    ///     The new state.
    ///
    /// Raises:
    ///     RuntimeError: Shapes do not fit.
    gru_cell, RecurrentCell::Gru;
    /// One step `tanh(W x + b + U h + c)`.
    ///
    /// Args:
    ///     input: The input, of shape (N, features) or (features).
    ///     hx: The state, of shape (N, size) or (size).
    ///     w_ih: Weights of the input, of shape (size, features).
    ///     w_hh: Weights of the state, of shape (size, size).
    ///     b_ih: Biases of shape (size), or None.
    ///     b_hh: The same.
    ///
    /// Returns:
    ///     The new state.
    ///
    /// Raises:
    ///     RuntimeError: Shapes do not fit.
    rnn_tanh_cell, RecurrentCell::Tanh;
    /// As `rnn_tanh_cell`, with `max(x, 0)` in the place of the hyperbolic tangent.
    ///
    /// Args:
    ///     input: The input, of shape (N, features) or (features).
    ///     hx: The state, of shape (N, size) or (size).
    ///     w_ih: Weights of the input, of shape (size, features).
    ///     w_hh: Weights of the state, of shape (size, size).
    ///     b_ih: Biases of shape (size), or None.
    ///     b_hh: The same.
    ///
    /// Returns:
    ///     The new state.
    ///
    /// Raises:
    ///     RuntimeError: Shapes do not fit.
    rnn_relu_cell, RecurrentCell::Relu;
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(lstm, m)?)?;
    m.add_function(wrap_pyfunction!(gru, m)?)?;
    m.add_function(wrap_pyfunction!(rnn_tanh, m)?)?;
    m.add_function(wrap_pyfunction!(rnn_relu, m)?)?;
    m.add_function(wrap_pyfunction!(lstm_cell, m)?)?;
    m.add_function(wrap_pyfunction!(gru_cell, m)?)?;
    m.add_function(wrap_pyfunction!(rnn_tanh_cell, m)?)?;
    m.add_function(wrap_pyfunction!(rnn_relu_cell, m)?)
}
