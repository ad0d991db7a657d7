//! The operation behind attention: forward and first derivative by kernels whose memory grows with the length, everything else composed of
//! operations. Not here: what the function accepts (`attention`).

use super::diagonal::triangle;
use super::extreme::amax;
use super::index::WriteTarget;
use super::matmul::matmul;
use super::pointwise as pw;
use super::reduce::sum;
use super::shape::{expand_to, transpose, unsqueeze};
use super::softmax::softmax;
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Saves, Tangents, Tensor, Vjp, VjpCx, mode, primitives};
use crate::call::{self, AttentionOrder, AttentionPass, AttentionShape, Request};
use crate::error::Result;
use crate::layout::{DType, Dims, Layout, Scalar};
use smallvec::{SmallVec, smallvec};

/// Of q (.., heads, l, e), k (.., kv_heads, s, e), v (.., kv_heads, s, ev) and perhaps a mask, which broadcasts to (.., heads, l, s) and has as
/// many dimensions: the result (.., heads, l, ev), and the logarithms of the sums of exponentials (.., heads, l). Other sizes before the
/// heads are equal. The gradient of a mask has as many elements as there are scores.
#[derive(Debug, Clone)]
pub(super) struct Attend {
    pub causal: bool,
    pub scale: f64,
    /// As it was given, for the saved attributes.
    pub given_scale: Option<f64>,
    pub mask: bool,
    /// The node's name.
    pub node: &'static str,
}

/// The scores' weights, by operations that are recorded. Rows whose keys are all masked have weights of 0.
pub(super) fn weights(q: &Tensor, k: &Tensor, mask: Option<&Tensor>, causal: bool, scale: f64) -> Result<Tensor> {
    let scores = pw::mul(&matmul(q, &transpose(k, -2, -1)?)?, scale)?;
    let shape = scores.shape();
    let mut allowed: Option<Tensor> = mask.filter(|m| m.dtype() == DType::Bool).cloned();
    if causal {
        let square = Dims::from_slice(&shape[shape.len() - 2..]);
        let ones = super::create::full_on(scores.device(), &square, Scalar::Int(1), Some(DType::F32))?;
        let lower = pw::ne(&triangle(WriteTarget::New, &ones, 0, false)?, 0.0)?;
        allowed = Some(match allowed {
            Some(a) => pw::logical_and(&a, &lower)?,
            None => lower,
        });
    }
    let scores = match mask.filter(|m| m.dtype() != DType::Bool) {
        Some(m) => pw::add(&scores, &primitives::cast(m, scores.dtype())?)?,
        None => scores,
    };
    let scores = match &allowed {
        Some(a) => pw::where_(a, &scores, f64::NEG_INFINITY)?,
        None => scores,
    };
    if mask.is_none() || scores.shape().last() == Some(&0) {
        return softmax(&scores, -1, None);
    }
    let none = pw::eq(&amax(&scores.detach(), true, Some(&[-1]), true)?, f64::NEG_INFINITY)?;
    let scores = pw::where_(&none, 0.0, &scores)?;
    pw::where_(&none, 0.0, &softmax(&scores, -1, None)?)
}

/// Heads of keys or values, each as often as query heads share it.
pub(super) fn shared_heads(t: &Tensor, heads: usize) -> Result<Tensor> {
    let shape = t.shape();
    let Some(at) = shape.len().checked_sub(3).filter(|at| shape[*at] != heads) else { return Ok(t.clone()) };
    let mut wide = shape.clone();
    wide.insert(at + 1, heads / shape[at].max(1));
    let mut joined = shape;
    joined[at] = heads;
    primitives::reshape(&expand_to(&unsqueeze(t, at as i64 + 1)?, &wide)?, &joined)
}

/// The sum over the query heads that share a head, of a gradient of what `shared_heads` returns.
fn summed_heads(g: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let at = shape.len().saturating_sub(3);
    let own = g.shape();
    if own[..] == *shape {
        return Ok(g.clone());
    }
    let mut apart = own.clone();
    apart[at] = shape[at];
    apart.insert(at + 1, own[at] / shape[at].max(1));
    sum(&primitives::reshape(g, &apart)?, Some(&[at as i64 + 1]), false, None)
}

fn heads(t: &[usize]) -> usize {
    if t.len() < 3 { 1 } else { t[t.len() - 3] }
}

/// (batch, heads, rows, columns).
fn four(shape: &[usize]) -> Dims {
    let r = shape.len();
    let batch = shape[..r.max(3) - 3].iter().product();
    Dims::from_slice(&[batch, heads(shape), shape[r - 2], shape[r - 1]])
}

fn reshaped(a: &Array, shape: &[usize]) -> Result<Array> {
    match a.layout().view(shape) {
        Some(layout) => a.with_layout(layout),
        None => a.contiguous_copy()?.with_layout(Layout::contiguous(shape)),
    }
}

impl Attend {
    fn shape(&self, q: &[usize], k: &[usize], v: &[usize]) -> AttentionShape {
        let ([batch, heads, l, e], [_, kv_heads, s, _]) = (sizes(&four(q)), sizes(&four(k)));
        AttentionShape { batch, heads, kv_heads, l, s, e, ev: v[v.len() - 1] }
    }

    fn request(&self, pass: AttentionPass, shape: AttentionShape, order: AttentionOrder) -> call::Attention {
        let scale = Scalar::Float(self.scale);
        call::Attention { pass, shape, scale, causal: self.causal, mask: self.mask, order }
    }

    /// The mask as the request takes it. Repeated elements are not stored, unless only some of the sizes before the heads repeat them.
    fn mask(m: &Array, q: &[usize], shape: &AttentionShape) -> Result<Array> {
        let mut narrow: Dims = m.shape().iter().zip(m.strides()).map(|(n, s)| if *s == 0 { (*n).min(1) } else { *n }).collect();
        let m = m.with_layout(Layout::from_parts(narrow.clone(), SmallVec::from_slice(m.strides()), m.layout().offset())?)?;
        let lead = narrow.len().max(3) - 3;
        let m = if narrow[..lead].iter().all(|n| *n == 1) {
            m
        } else {
            narrow[..lead].copy_from_slice(&q[..lead]);
            m.with_layout(m.layout().expand(&narrow)?)?
        };
        let m = reshaped(&m, &four(&narrow))?;
        m.with_layout(m.layout().expand(&[shape.batch, shape.heads, shape.l, shape.s])?)
    }

    /// Operands as the request takes them: q, k, v and perhaps the mask.
    fn operands(&self, ins: &[&Array]) -> Result<(SmallVec<[Array; 4]>, AttentionShape)> {
        let shape = self.shape(ins[0].shape(), ins[1].shape(), ins[2].shape());
        let mut made: SmallVec<[Array; 4]> = SmallVec::new();
        for a in &ins[..3] {
            made.push(reshaped(a, &four(a.shape()))?);
        }
        if self.mask {
            made.push(Self::mask(ins[3], ins[0].shape(), &shape)?);
        }
        Ok((made, shape))
    }

    /// The gradients of q, k and v by the kernel, from the gradient, the inputs, the result and the logarithms.
    fn gradients(&self, g: &Array, ins: &[&Array], o: &Array, lse: &Array) -> Result<[Array; 3]> {
        let (operands, s) = self.operands(ins)?;
        let dtype = g.dtype();
        if g.numel() == 0 || s.s == 0 {
            let zeros = |k: usize| ins[k].full_beside(ins[k].shape(), Scalar::Int(0), dtype);
            return Ok([zeros(0)?, zeros(1)?, zeros(2)?]);
        }
        let (g, o) = (reshaped(g, &four(g.shape()))?, reshaped(o, &four(o.shape()))?);
        let lse = reshaped(lse, &[s.batch, s.heads, s.l])?;
        let mut all: SmallVec<[&Array; 8]> = smallvec![&g, &operands[0], &operands[1], &operands[2], &o, &lse];
        all.extend(operands.get(3));
        let (q, k, v) = ([s.batch, s.l, s.heads, s.e], [s.batch, s.s, s.kv_heads, s.e], [s.batch, s.s, s.kv_heads, s.ev]);
        let request = self.request(AttentionPass::Backward, s, AttentionOrder::BatchHeadsRows);
        let made = Array::request(Request::Attention(request), &all, &[(&q, dtype), (&k, dtype), (&v, dtype)])?;
        let back = |i: usize| -> Result<Array> {
            let swapped = made[i].with_layout(made[i].layout().transpose(1, 2))?;
            reshaped(&swapped, ins[i].shape())
        };
        Ok([back(0)?, back(1)?, back(2)?])
    }
}

/// The order of the result: that of the queries, where they have four dimensions and it has their shape.
fn order_of(q: &Array, s: &AttentionShape) -> AttentionOrder {
    let dense = Layout::dense_like(q.shape(), q.strides());
    let is_order = |order: &AttentionOrder| {
        let [x, y, z] = order.dims();
        dense.permute(&[x, y, z, 3]).is_contiguous()
    };
    let found = if q.rank() == 4 && s.e == s.ev { AttentionOrder::ALL.into_iter().find(is_order) } else { None };
    found.unwrap_or(AttentionOrder::BatchHeadsRows)
}

fn sizes(shape: &[usize]) -> [usize; 4] {
    [shape[0], shape[1], shape[2], shape[3]]
}

impl Vjp for Attend {
    fn node_name(&self) -> Name {
        self.node.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mask = if self.mask { SavedAttribute::Input(3) } else { SavedAttribute::Nothing };
        let scale = self.given_scale.map_or(SavedAttribute::Nothing, |s| SavedAttribute::Number(Scalar::Float(s)));
        smallvec![
            ("query", SavedAttribute::Input(0)),
            ("key", SavedAttribute::Input(1)),
            ("value", SavedAttribute::Input(2)),
            ("attn_mask", mask),
            ("output", SavedAttribute::Output(0)),
            ("logsumexp", SavedAttribute::Output(1)),
            ("dropout_p", SavedAttribute::Number(Scalar::Float(0.0))),
            ("is_causal", SavedAttribute::Bool(self.causal)),
            ("scale", scale),
        ]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let (q, k, v) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
        let mask = if self.mask { Some(cx.input(3)?) } else { None };
        let mut grads = Grads::from_elem(None, cx.node.edges().len());
        let bare = [Some(g), Some(&q), Some(&k), Some(&v), mask.as_ref()].into_iter().flatten().all(Tensor::is_bare);
        let of_mask = self.mask && cx.needs(3);
        if !mode::is_grad_enabled() && bare && !of_mask {
            let (o, lse) = (cx.output(0)?, cx.output(1)?);
            let arrays: SmallVec<[Array; 4]> = [&q, &k, &v].into_iter().chain(mask.as_ref()).map(Tensor::array).collect::<Result<_>>()?;
            let refs: SmallVec<[&Array; 4]> = arrays.iter().collect();
            let made = self.gradients(&g.array()?, &refs, &o.array()?, &lse.array()?)?;
            for (i, made) in made.into_iter().enumerate().filter(|(i, _)| cx.needs(*i)) {
                grads[i] = Some(Tensor::new(made));
            }
            return Ok(grads);
        }
        let count = heads(&q.shape());
        let (all_k, all_v) = (shared_heads(&k, count)?, shared_heads(&v, count)?);
        let w = weights(&q, &all_k, mask.as_ref(), self.causal, self.scale)?;
        if cx.needs(2) {
            grads[2] = Some(summed_heads(&matmul(&transpose(&w, -2, -1)?, g)?, &v.shape())?);
        }
        if cx.needs(0) || cx.needs(1) || of_mask {
            let dw = matmul(g, &transpose(&all_v, -2, -1)?)?;
            let along = sum(&pw::mul(&dw, &w)?, Some(&[-1]), true, None)?;
            let slopes = pw::mul(&w, &pw::sub(&dw, &along)?)?;
            if let Some(m) = mask.filter(|_| of_mask) {
                grads[3] = Some(primitives::sum_to(&primitives::cast(&slopes, m.dtype())?, &m.shape())?);
            }
            let slopes = pw::mul(&slopes, self.scale)?;
            if cx.needs(0) {
                grads[0] = Some(matmul(&slopes, &all_k)?);
            }
            if cx.needs(1) {
                grads[1] = Some(summed_heads(&matmul(&transpose(&slopes, -2, -1)?, &q)?, &k.shape())?);
            }
        }
        Ok(grads)
    }
}

impl Op for Attend {
    fn name(&self) -> &'static str {
        "scaled_dot_product_attention"
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        let (q, dtype) = (ins[0], ins[0].dtype());
        let (operands, s) = self.operands(ins)?;
        let rows = Dims::from_slice(&q.shape()[..q.rank() - 1]);
        let mut whole = rows.clone();
        whole.push(s.ev);
        if s.s == 0 || whole.contains(&0) {
            let zeros = |shape: &[usize], d: DType| q.full_beside(shape, Scalar::Int(0), d);
            return Ok(smallvec![zeros(&whole, dtype)?, zeros(&rows, dtype.computed())?]);
        }
        let refs: SmallVec<[&Array; 4]> = operands.iter().collect();
        let order = order_of(q, &s);
        let request = self.request(AttentionPass::Forward, s, order);
        let outs: [(&[usize], DType); 2] = [(&request.result_shape(), dtype), (&[s.batch, s.l, s.heads], dtype.computed())];
        let made = Array::request(Request::Attention(request), &refs, &outs)?;
        let places = [0, 1, 2].map(|d| order.dims().iter().position(|have| *have == d).unwrap_or(d));
        let out = reshaped(&made[0].with_layout(made[0].layout().permute(&[places[0], places[1], places[2], 3]))?, &whole)?;
        let lse = made[1].with_layout(made[1].layout().transpose(1, 2))?;
        Ok(smallvec![out, reshaped(&lse, &rows)?])
    }
    fn work(&self, ins: &[&Array]) -> usize {
        let s = self.shape(ins[0].shape(), ins[1].shape(), ins[2].shape());
        let scores = s.batch.saturating_mul(s.heads).saturating_mul(s.l).saturating_mul(s.s);
        scores.saturating_mul(s.e + s.ev + 8) / 8
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        let saves = Saves::NOTHING.input(0).input(1).input(2).output(0).output(1);
        if self.mask { saves.input(3) } else { saves }
    }
    fn differentiable(&self, output: usize) -> bool {
        output == 0
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let (q, k, v) = (cx.primal(0), cx.primal(1), cx.primal(2));
        let count = heads(&q.shape());
        let (k, v) = (shared_heads(k, count)?, shared_heads(v, count)?);
        let shared = |i: usize| cx.tangent(i).map(|t| shared_heads(t, count)).transpose();
        let mask = if self.mask { Some(cx.primal(3)) } else { None };
        let w = weights(q, &k, mask, self.causal, self.scale)?;
        let both = |a: Option<Tensor>, b: Option<Tensor>| match (a, b) {
            (Some(a), Some(b)) => pw::add(&a, &b).map(Some),
            (a, b) => Ok(a.or(b)),
        };
        let of_q = cx.tangent(0).map(|t| matmul(t, &transpose(&k, -2, -1)?)).transpose()?;
        let of_k = shared(1)?.map(|t| matmul(q, &transpose(&t, -2, -1)?)).transpose()?;
        let scaled = both(of_q, of_k)?.map(|t| pw::mul(&t, self.scale)).transpose()?;
        let of_mask = if self.mask { cx.tangent(3).map(|t| primitives::cast(t, w.dtype())).transpose()? } else { None };
        let of_scores = both(scaled, of_mask)?.map(|t| -> Result<Tensor> {
            let t = pw::mul(&w, &t)?;
            let slope = pw::sub(&t, &pw::mul(&w, &sum(&t, Some(&[-1]), true, None)?)?)?;
            matmul(&slope, &v)
        });
        let of_v = shared(2)?.map(|t| matmul(&w, &t)).transpose()?;
        Ok(smallvec![both(of_scores.transpose()?, of_v)?, None])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(self.clone())
    }
}
