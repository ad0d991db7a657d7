//! Scaled dot-product attention, with the signature of PyTorch's function.

use crate::ops::attention::{self, AttentionOptions};
use crate::python::args::tensor;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::prelude::*;

/// Weigh values by the softmax of the products of queries and keys: `softmax(query @ key.mT * scale + attn_mask) @ value` (Vaswani et al.
/// 2017).
///
/// The matrix of weights is never in memory, forward or backward (Dao et al. 2022), unless there is dropout, a gradient of the mask,
/// a graph of the gradient or a tangent.
///
/// Args:
///     query: Queries, of shape (..., L, E) and a float dtype.
///     key: Keys, of shape (..., S, E).
///     value: Values, of shape (..., S, V).
///     attn_mask: A mask that broadcasts to (..., L, S): bool, where True allows attention, or numbers that are added to the scores.
///     dropout_p: The probability that a weight is set to 0; the others are multiplied by `1 / (1 - p)`.
///     is_causal: Whether query i attends to keys 0 to i alone.
///     scale: The factor of the products; by default `1 / sqrt(E)`.
///     enable_gqa: Whether key and value may have fewer heads (dimension -3), which divide the heads of the queries.
///
/// Returns:
///     A tensor of shape (..., L, V). A query whose keys are all masked gives zeros.
///
/// Raises:
///     RuntimeError: Shapes or dtypes do not fit.
///
/// Example:
///     >>> q = k = v = rgrad.ones(1, 2, 3, 4)
///     >>> F.scaled_dot_product_attention(q, k, v, is_causal=True).shape
///     rgrad.Size([1, 2, 3, 4])
#[pyfunction]
#[pyo3(signature = (query, key, value, attn_mask=None, dropout_p=0.0, is_causal=false, *, scale=None, enable_gqa=false))]
#[allow(clippy::too_many_arguments, reason = "PyTorch's signature")]
fn scaled_dot_product_attention(
    query: &Bound<'_, PyTensor>,
    key: &Bound<'_, PyTensor>,
    value: &Bound<'_, PyTensor>,
    attn_mask: Option<&PyObj<'_>>,
    dropout_p: f64,
    is_causal: bool,
    scale: Option<f64>,
    enable_gqa: bool,
) -> PyObjResult {
    let mask = match attn_mask.filter(|m| !m.is_none()) {
        None => None,
        Some(m) => Some(tensor(m, "scaled_dot_product_attention(): argument 'attn_mask' (position 4)")?),
    };
    let options = AttentionOptions { dropout: dropout_p, causal: is_causal, scale, grouped: enable_gqa };
    let made = attention::attention(PyTensor::of(query), PyTensor::of(key), PyTensor::of(value), mask, options)?;
    wrap(query.py(), made)
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(scaled_dot_product_attention, m)?)
}
