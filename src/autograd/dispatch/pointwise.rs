//! The operation of all pointwise rows. Its derivatives of every order are expressions over tensors (`expr`).

use crate::array::{Array, fusion};
use crate::autograd::dispatch::expr::Expr;
use crate::autograd::dispatch::flat::with_zero_second;
use crate::autograd::dispatch::mode;
use crate::autograd::dispatch::op::{Arrays, Devices, Op, Saves};
use crate::autograd::engine::hooks::Grads;
use crate::autograd::graph::node::NodeOp;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::graph::vjp::{Name, Vjp, VjpCx};
use crate::autograd::primitives;
use crate::autograd::tensor::{Tensor, Value};
use crate::autograd::transforms::forward_mode::{self, Jvp, Tangents};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use crate::rows::Func;
use crate::rows::{Constant, OUTPUT, RowId};
use smallvec::{SmallVec, smallvec};
use std::sync::OnceLock;

pub use crate::rows::MAX_PARAMS;

/// Which operand is a Python number. PyTorch names some nodes after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    None,
    Later,
    First,
}

/// Whether an operand's gradient is the cotangent itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::autograd) enum Passthrough {
    Identity,
    /// The cotangent with its sign changed.
    Negated,
    None,
}

/// A row with its parameters, the dtype it computes in, and that of the result.
#[derive(Debug, Clone, Copy)]
pub struct PointwiseOp {
    pub row: RowId,
    pub compute: DType,
    pub out: DType,
    pub params: [Scalar; MAX_PARAMS],
    pub number: Number,
}

impl PointwiseOp {
    /// A row that computes in `dtype`. Its kind determines the result's dtype. The caller fills in the parameters.
    #[inline]
    pub fn of(row: RowId, dtype: DType) -> Self {
        let out = Func::forward(row).out_dtype(dtype);
        PointwiseOp { row, compute: dtype, out, params: [Scalar::Int(0); MAX_PARAMS], number: Number::None }
    }

    /// Whether its slopes may be infinite or nan: they depend on the elements.
    #[inline]
    pub(in crate::autograd) fn is_steep(&self) -> bool {
        let info = self.row.info();
        let by_number = self.number == Number::Later && matches!(self.row, RowId::Mul | RowId::Div);
        !info.cuts && !by_number && info.saves(info.differentiable()) != 0
    }

    /// Whether it adds its operands.
    #[inline]
    pub fn is_sum(&self) -> bool {
        self.row == RowId::Add
    }

    #[inline]
    fn params(&self) -> &[Scalar] {
        &self.params[..self.row.info().params.len()]
    }

    pub fn node_name(&self) -> &'static str {
        self.row.info().node_names[self.number as usize]
    }

    /// Whether nothing is kept but a number, an attribute of the node that no pass frees.
    #[inline]
    pub(in crate::autograd) fn saves_only_its_number(&self) -> bool {
        matches!(self.number, Number::Later) && self.row.info().attributes_with_number.is_some()
    }

    /// The node's saved attributes, under PyTorch's names.
    pub fn saved_attributes(&self) -> SavedAttributes {
        let info = self.row.info();
        let saves = info.saves(info.differentiable());
        let mut attributes = SavedAttributes::new();
        for (i, operand) in info.operands.iter().enumerate() {
            if saves >> i & 1 == 1 {
                attributes.push((operand.public, SavedAttribute::Input(i)));
            }
        }
        if saves & OUTPUT != 0 {
            attributes.push(("result", SavedAttribute::Output(0)));
        }
        for (name, value) in info.params.iter().zip(self.params()).filter(|(name, _)| !info.hidden.contains(name)) {
            attributes.push((name, SavedAttribute::Number(*value)));
        }
        attributes.extend(info.constants.iter().map(|(name, constant)| {
            let attribute = match constant {
                Constant::Whole(i) => SavedAttribute::Int(*i),
                Constant::Word(s) => SavedAttribute::Text(s),
                Constant::Nothing => SavedAttribute::Nothing,
            };
            (*name, attribute)
        }));
        if let (Number::Later, Some(names)) = (self.number, info.attributes_with_number) {
            attributes.retain(|k| names.contains(&k.0));
        }
        attributes
    }

    /// Whether the gradient of an operand is the cotangent itself, read off the row's formula. Such derivatives have no kernels.
    #[inline]
    pub(in crate::autograd) fn passthrough(&self, operand: usize) -> Passthrough {
        static ALL: OnceLock<Vec<[Passthrough; 3]>> = OnceLock::new();
        let of_row = |row: &RowId| {
            // Formulas are those of real numbers, which are their own conjugates.
            let holomorphic = row.info().holomorphic;
            std::array::from_fn(|i| match row.vjp_formula(i).as_deref() {
                _ if !holomorphic => Passthrough::None,
                Some("g") => Passthrough::Identity,
                Some("-g") => Passthrough::Negated,
                _ => Passthrough::None,
            })
        };
        ALL.get_or_init(|| RowId::ALL.iter().map(of_row).collect())[self.row as usize][operand]
    }

    fn forward_func(&self) -> Func {
        Func::forward(self.row)
    }

    /// The gradient of operand `i`: zeros without a derivative, where the result was written over a tensor with history.
    pub(in crate::autograd) fn grad(&self, i: usize, cx: &VjpCx<'_>, g: &Tensor) -> Result<Option<Tensor>> {
        let info = self.row.info();
        let Some(reads) = info.operands[i].saves else {
            if info.refuses {
                if info.node_names[0] == "NotImplemented" {
                    return Err(Error::runtime(format!("derivative for aten::{} is not implemented", info.name.trim_start_matches('_'))));
                }
                let name = info.name.trim_start_matches("special_");
                return Err(Error::not_implemented(format!("the derivative for '{name}' is not implemented.")));
            }
            return primitives::zeros_like(Some(g));
        };
        let n = info.arity();
        // Positions that the derivative does not read hold `g`.
        let mut xs: SmallVec<[Option<Tensor>; 3]> = SmallVec::new();
        for k in 0..n {
            xs.push(if reads & (1 << k) != 0 { Some(cx.input(k)?) } else { None });
        }
        let y = if reads & OUTPUT != 0 { Some(cx.output(0)?) } else { None };
        let recorded = mode::is_grad_enabled() && (y.is_some() || g.requires_grad() || xs.iter().flatten().any(Tensor::requires_grad));
        let dual = g.has_tangent() || y.iter().chain(xs.iter().flatten()).any(Tensor::has_tangent);
        let func = Func::vjp(self.row, i);
        // Without a fused kernel the derivative is composed of forward operations.
        if reads != 0 && !recorded && !dual && g.with_array(|a| a.has_row(func, self.compute)) {
            let held = std::iter::once(g).chain(xs.iter().map(|x| x.as_ref().unwrap_or(g))).chain(std::iter::once(y.as_ref().unwrap_or(g)));
            let run = |arrays: &[&Array]| Array::pointwise(func, self.compute, self.compute, arrays, self.params());
            let mut handles: SmallVec<[Array; 5]> = SmallVec::new();
            {
                let cores: SmallVec<[_; 5]> = held.map(Tensor::read).collect();
                let arrays: Option<SmallVec<[&Array; 5]>> = cores
                    .iter()
                    .map(|c| match &c.value {
                        Value::Array(a) => Some(a),
                        Value::Lazy(_) | Value::Wrapped(_) => None,
                    })
                    .collect();
                if let Some(arrays) = arrays {
                    if arrays.iter().all(|a| a.numel() < fusion::large() && a.storage().is_plain()) {
                        return Ok(Some(Tensor::new(run(&arrays)?)));
                    }
                    handles.extend(arrays.into_iter().cloned());
                }
            }
            // No tensor is locked here: a program may run, or the device may be waited for.
            if !handles.is_empty() {
                return Ok(Some(Tensor::new(run(&handles.iter().collect::<SmallVec<[&Array; 5]>>())?)));
            }
        }
        self.composed(i, g, xs, y).map(Some)
    }

    /// The gradient of operand `i`, composed of tensor operations so that it has a history.
    fn composed(&self, i: usize, g: &Tensor, xs: SmallVec<[Option<Tensor>; 3]>, y: Option<Tensor>) -> Result<Tensor> {
        let info = self.row.info();
        let read = if info.zero_second { xs.iter().chain([&y]).flatten().next().cloned() } else { None };
        // PyTorch computes the gradient of `relu` as that of `threshold`.
        let first = if self.row == RowId::Relu { RowId::Threshold } else { self.row };
        let flat = |v: Tensor| match read {
            Some(read) => {
                with_zero_second(v, || Ok(read), || format!("{}Backward0", first.info().node_names[0].trim_end_matches('0')).into())
            }
            None => Ok(v),
        };
        let or_g = |t: Option<Tensor>| t.map_or_else(|| Expr::of(g.clone()), Expr::operand);
        // Loops that push: collecting costs more than a small operation.
        let (mut operands, mut p): (SmallVec<[Expr; 3]>, SmallVec<[Expr; 3]>) = (SmallVec::new(), SmallVec::new());
        for x in xs {
            operands.push(or_g(x));
        }
        for param in self.params() {
            p.push(match param {
                Scalar::Complex(_) => Expr::of(Tensor::number(Array::scalar(*param, self.compute)?)),
                real => Expr::number(real.to_f64(), self.compute),
            });
        }
        let v = self.row.vjp(i, &Expr::of(g.clone()), &operands, &or_g(y), &p).finish()?;
        // A derivative may be a 0-d number on the CPU.
        if v.rank() > 0 {
            return flat(v);
        }
        flat(primitives::spread(&v, g)?)
    }
}

impl Vjp for PointwiseOp {
    fn node_name(&self) -> Name {
        PointwiseOp::node_name(self).into()
    }

    #[inline]
    fn into_node(self) -> NodeOp {
        NodeOp::Pointwise(self)
    }

    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let n = self.row.info().arity();
        let mut out = Grads::new();
        for i in 0..n {
            out.push(if cx.needs(i) { self.grad(i, cx, g)? } else { None });
        }
        Ok(out)
    }
}

impl Op for PointwiseOp {
    fn name(&self) -> &'static str {
        self.row.info().name
    }

    fn devices(&self) -> Devices {
        Devices::Numbers
    }

    fn accepts_pending(&self) -> bool {
        true
    }

    #[inline]
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![Array::pointwise(self.forward_func(), self.compute, self.out, x, self.params())?])
    }

    fn work(&self, x: &[&Array]) -> usize {
        let rank = x.iter().map(|a| a.rank()).max().unwrap_or(0);
        // The forward reports operands that do not broadcast.
        let size = |a: &Array, d: usize| a.rank().checked_sub(d + 1).map_or(1, |i| a.shape()[i]);
        (0..rank).map(|d| x.iter().map(|a| size(a, d)).max().unwrap_or(1)).product()
    }

    fn forward_into(&self, out: &Array, x: &[&Array]) -> Result<()> {
        for a in &x[1..] {
            if a.shape() != out.shape() {
                let all = crate::layout::broadcast(out.shape(), a.shape())?;
                if all[..] != *out.shape() {
                    return Err(crate::autograd::dispatch::apply::inplace_shape(out.shape(), &all));
                }
            }
        }
        if x[1..].iter().any(|a| a.overlaps_partly(out)) {
            return Err(Error::runtime(format!(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please \
                 clone() the tensor before performing the operation ({}_).",
                self.name()
            )));
        }
        if self.out == out.dtype() {
            return out.pointwise_into(self.forward_func(), self.compute, x, self.params());
        }
        let made = Array::pointwise(self.forward_func(), self.compute, self.out, x, self.params())?;
        out.copy_from(&made)
    }

    fn saves(&self, needs: &[bool]) -> Saves {
        let mut needed = 0u8;
        for (i, n) in needs.iter().enumerate() {
            needed |= u8::from(*n) << i;
        }
        let mask = self.row.info().saves(needed);
        Saves::of_row(mask & !OUTPUT, mask & OUTPUT != 0)
    }

    fn differentiable(&self, _output: usize) -> bool {
        let info = self.row.info();
        info.differentiable() != 0 || info.refuses
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        forward_mode::pointwise(self, cx)
    }
}
