//! Scaled dot-product attention: what it accepts, and which way it goes. Not here: its derivatives (`attention_op`), projections and heads,
//! which are Python's.

use super::attention_op::{Attend, shared_heads, weights};
use super::dropout::dropout;
use super::matmul::matmul;
use super::shape::expand_to;
use crate::autograd::dispatch::autocast;
use crate::autograd::{Tensor, apply, mode, primitives};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, broadcast, broadcast_many};

/// What attention takes besides queries, keys, values and mask.
#[derive(Debug, Clone, Copy)]
pub struct AttentionOptions {
    /// The probability that a weight is set to 0.
    pub dropout: f64,
    /// Query i attends to keys 0 to i alone.
    pub causal: bool,
    /// By default `1 / sqrt(e)`.
    pub scale: Option<f64>,
    /// Heads of keys and values are each shared by several heads of queries.
    pub grouped: bool,
}

fn check(q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>) -> Result<()> {
    let [a, b, c] = [q, k, v].map(|t| t.dtype());
    if a != b || a != c {
        let [a, b, c] = [a, b, c].map(|d| d.row().c_name);
        return Err(Error::runtime(format!(
            "Expected query, key, and value to have the same dtype, but got query.dtype: {a} key.dtype: {b} and value.dtype: {c} instead."
        )));
    }
    let [l, m, n] = [q, k, v].map(Tensor::rank);
    if l < 2 || m < 2 || n < 2 {
        return Err(Error::runtime(format!(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {l} key.dim: {m} and value.dim: {n} instead."
        )));
    }
    if let Some(m) = mask {
        let d = m.dtype();
        if d != DType::Bool && d != a && !(d == DType::F32 && a.is_half()) {
            return Err(Error::runtime(format!(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {} and  query.dtype: {} instead.",
                d.row().c_name,
                a.row().c_name
            )));
        }
        if m.rank() < 2 {
            return Err(Error::index(format!(
                "Dimension out of range (expected to be in range of [-1, 0], but got -2): attn_mask takes queries and keys as its last \
                 dimensions, got a mask with {} of them",
                m.rank()
            )));
        }
    }
    if !a.is_float() {
        return Err(Error::runtime(format!(
            "expected scalar type Float but found {}: scaled_dot_product_attention takes floating point tensors",
            a.type_name()
        )));
    }
    Ok(())
}

/// Sizes in front of the rows, without the heads if `grouped`.
fn lead(t: &Tensor, grouped: bool) -> Dims {
    let shape = t.shape();
    Dims::from_slice(&shape[..shape.len().saturating_sub(if grouped { 3 } else { 2 })])
}

/// The tensor with these sizes in front, and its own heads if `grouped`.
fn with_lead(t: &Tensor, lead: &[usize], grouped: bool) -> Result<Tensor> {
    let shape = t.shape();
    let whole: Dims = lead.iter().chain(&shape[shape.len() - if grouped { 3 } else { 2 }..]).copied().collect();
    if whole == shape { Ok(t.clone()) } else { expand_to(t, &whole) }
}

/// `softmax(q k^T * scale + mask) v`: q is (.., l, e), k (.., s, e), v (.., s, ev), the mask broadcasts to (.., l, s). A bool mask allows
/// attention where it is true. The weights of a query without any key are 0.
pub fn attention(q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>, options: AttentionOptions) -> Result<Tensor> {
    let AttentionOptions { dropout: p, causal, scale: given_scale, grouped } = options;
    let (cast, of_mask) = (autocast::lower([q, k, v])?, mask.map(|m| autocast::lower([m])).transpose()?);
    let [q, k, v] = cast.of([q, k, v]);
    let mask = mask.map(|m| of_mask.as_ref().map_or(m, |cast| cast.of([m])[0]));
    check(q, k, v, mask)?;
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::runtime(format!("dropout probability has to be between 0 and 1, but got {p}")));
    }
    let ranks = [q, k, v].map(Tensor::rank);
    let grouped = grouped && ranks.iter().all(|r| *r >= 3);
    let (mut k, mut v) = (k.clone(), v.clone());
    if grouped {
        let [heads, of_k, of_v] = [q, &k, &v].map(|t| t.shape()[t.rank() - 3]);
        if of_k == 0 || of_v == 0 || heads % of_k != 0 || heads % of_v != 0 {
            return Err(Error::runtime(format!(
                "Number of heads in key and value must divide the number of heads in query: got {of_k} and {of_v} for {heads}"
            )));
        }
        if of_k != of_v {
            (k, v) = (shared_heads(&k, heads)?, shared_heads(&v, heads)?);
        }
    }
    let [qs, ks, vs] = [q, &k, &v].map(|t| t.shape());
    let last = |s: &[usize], back: usize| s[s.len() - back];
    let e = last(&qs, 1);
    let scale = given_scale.unwrap_or(if e == 0 { 1.0 } else { 1.0 / (e as f64).sqrt() });
    let fits = e == last(&ks, 1) && last(&ks, 2) == last(&vs, 2);
    if p > 0.0 || !fits {
        return composed(q, &k, &v, mask, scale, options);
    }
    let lead_of = |t: &Tensor| lead(t, grouped);
    let common = broadcast_many([&lead_of(q)[..], &lead_of(&k), &lead_of(&v)])?;
    let dense = |t: &Tensor| t.with_array(|a| a.strides().last() == Some(&1));
    let plain = ranks == [4, 4, 4] && [q, &k, &v].iter().all(|t| lead_of(t) == common && dense(t)) && last(&vs, 1) == e;
    let (q, k, v) = (with_lead(q, &common, grouped)?, with_lead(&k, &common, grouped)?, with_lead(&v, &common, grouped)?);
    let mut scores = q.shape();
    let rank = scores.len();
    scores[rank - 1] = last(&ks, 2);
    // PyTorch's kernel takes masks of two and of four dimensions.
    let plain = plain && mask.is_none_or(|m| m.rank() != 3 && !(m.requires_grad() && mode::is_grad_enabled()));
    let mask = match mask {
        None => None,
        Some(m) => {
            let shape = m.shape();
            let whole = broadcast(&scores, &shape)?;
            if whole != scores {
                return Err(Error::runtime(format!(
                    "output with shape {scores:?} doesn't match the broadcast shape {whole:?}: attn_mask has more elements than there are \
                     scores"
                )));
            }
            let padded: Dims = std::iter::repeat_n(1, rank - shape.len()).chain(shape.iter().copied()).collect();
            Some(if padded == shape { m.clone() } else { primitives::reshape(m, &padded)? })
        }
    };
    let node = if rank == 2 && !q.dtype().is_half() {
        "MmBackward0"
    } else if scores.contains(&0) || v.numel() == 0 {
        "AddBackward0"
    } else if plain {
        "ScaledDotProductFlashAttentionForCpuBackward0"
    } else if q.dtype().is_half() {
        "ToCopyBackward0"
    } else {
        "UnsafeViewBackward0"
    };
    let op = Attend { causal, scale, given_scale, mask: mask.is_some(), node };
    let made = match &mask {
        None => apply(&op, &[&q, &k, &v])?,
        Some(m) => apply(&op, &[&q, &k, &v, m])?,
    };
    made.into_iter().next().ok_or_else(|| Error::internal("scaled_dot_product_attention", "no result"))
}

/// By operations that keep all weights: with dropout, and for the errors of sizes that do not fit.
fn composed(q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>, scale: f64, options: AttentionOptions) -> Result<Tensor> {
    let heads = if q.rank() < 3 { 1 } else { q.shape()[q.rank() - 3] };
    let both;
    let (k, v) = if options.grouped && q.rank() >= 3 && k.rank() >= 3 && v.rank() >= 3 {
        both = (shared_heads(k, heads)?, shared_heads(v, heads)?);
        (&both.0, &both.1)
    } else {
        (k, v)
    };
    let w = weights(q, k, mask, options.causal, scale)?;
    matmul(&dropout(&w, options.dropout, true, None)?, v)
}
