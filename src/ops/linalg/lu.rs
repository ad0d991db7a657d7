//! LU factorisations with partial pivoting: both factors in one matrix and the rows that were swapped, or three matrices.

use super::checks::{self, Failure};
use super::common::{add, adjoint, adjoint_times, compute, eye, lower, over, same_batch, sizes, times, times_adjoint, upper};
use super::triangular::triangular;
use crate::array::{Array, Device};
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Saves, Tangent, Tangents, Tensor, Vjp, VjpCx, apply, apply1};
use crate::call::FactorKind;
use crate::error::{Error, Result};
use crate::layout::DType;
use crate::ops::shape::{expand_to, narrow, unsqueeze};
use crate::ops::{create, gather::gather, join, pointwise as pw};
use smallvec::smallvec;

/// Where the rows of factors come from: of the factors' row `i` the row of the matrix, or the inverse.
#[derive(Debug, Clone, Copy)]
struct PivotOrder {
    rows: usize,
    inverse: bool,
}

impl Vjp for PivotOrder {
    fn node_name(&self) -> Name {
        "PivotOrder".into()
    }
}

impl Op for PivotOrder {
    fn name(&self) -> &'static str {
        "lu_unpack"
    }
    fn forward(&self, pivots: &[&Array]) -> Result<Arrays> {
        let (m, shape) = (self.rows, pivots[0].shape());
        let Some((k, batch)) = shape.split_last() else { return Err(Error::internal("lu_unpack", "pivots without dimensions")) };
        let to = over(batch, &[m]);
        if pivots[0].device() == Device::META {
            return Ok(smallvec![pivots[0].empty_beside(&to, DType::I64)?]);
        }
        let all = pivots[0].to_device(Device::CPU)?.to_vec::<i32>()?;
        let count: usize = batch.iter().product();
        let mut made = Vec::with_capacity(count * m);
        for b in 0..count {
            let mut order: Vec<i64> = (0..m as i64).collect();
            for (i, p) in all[b * k..(b + 1) * k].iter().enumerate() {
                let other = usize::try_from(*p - 1).ok().filter(|p| *p < m);
                let Some(other) = other else {
                    return Err(Error::runtime(format!("pivots given to lu_solve or lu_unpack must be from 1 to {m}, but one is {p}")));
                };
                order.swap(i, other);
            }
            if self.inverse {
                let from = made.len();
                made.resize(from + m, 0);
                order.iter().enumerate().for_each(|(i, row)| made[from + *row as usize] = i as i64);
            } else {
                made.extend(order);
            }
        }
        Ok(smallvec![Array::from_slice(&made, &to)?.to_device_of(pivots[0])?])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Zero
    }
    fn differentiable(&self, _output: usize) -> bool {
        false
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// The rows of `x` in the order of the factors, or back in the order of the matrix.
fn reordered(x: &Tensor, pivots: &Tensor, inverse: bool) -> Result<Tensor> {
    let s = x.shape();
    let (_, m, _) = sizes(&s);
    let order = apply1(&PivotOrder { rows: m, inverse }, &[pivots])?;
    gather(x, -2, &expand_to(&unsqueeze(&order, -1)?, &s)?)
}

/// `L` of (m, k), with ones, and `U` of (k, n).
fn factors(lu: &Tensor) -> Result<(Tensor, Tensor)> {
    let s = lu.shape();
    let (_, m, n) = sizes(&s);
    let k = m.min(n) as i64;
    let left = if (k as usize) < n { narrow(lu, -1, 0, k)? } else { lu.clone() };
    let top = if (k as usize) < m { narrow(lu, -2, 0, k)? } else { lu.clone() };
    Ok((pw::add(&lower(&left, -1)?, &eye(lu, m, k as usize)?)?, upper(&top, 0)?))
}

/// The factors of matrices, the pivots, and the first pivot that is 0.
#[derive(Debug, Clone, Copy)]
struct LuFactor {
    pivot: bool,
    check: bool,
}

impl LuFactor {
    fn in_order(self, x: &Tensor, pivots: &Tensor, inverse: bool) -> Result<Tensor> {
        if self.pivot { reordered(x, pivots, inverse) } else { Ok(x.clone()) }
    }
}

impl Vjp for LuFactor {
    fn node_name(&self) -> Name {
        "LinalgLuFactorExBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![
            ("LU", SavedAttribute::Output(0)),
            ("pivots", SavedAttribute::Output(1)),
            ("pivot", SavedAttribute::Bool(self.pivot)),
            ("check_errors", SavedAttribute::Bool(self.check))
        ]
    }
    /// Of `P^T A = L U` with square factors: `L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H`. What stands behind or below them depends on both.
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let (lu, pivots) = (cx.output(0)?, cx.output(1)?);
        let s = lu.shape();
        let (_, m, n) = sizes(&s);
        let k = m.min(n) as i64;
        let part = |t: &Tensor| -> Result<Tensor> { if m == n { Ok(t.clone()) } else { narrow(&narrow(t, -2, 0, k)?, -1, 0, k) } };
        let (square, gs) = (part(&lu)?, part(g)?);
        let (l, u) = factors(&square)?;
        let (mut to_l, mut to_u) = (adjoint_times(&l, &lower(&gs, -1)?)?, times_adjoint(&upper(&gs, 0)?, &u)?);
        let mut other = None;
        if n > m {
            let (u2, g2) = (narrow(&lu, -1, k, (n - m) as i64)?, narrow(g, -1, k, (n - m) as i64)?);
            to_l = pw::sub(&to_l, &times_adjoint(&g2, &u2)?)?;
            other = Some(triangular(&adjoint(&l)?, &g2, true, true)?);
        } else if m > n {
            let (l2, g2) = (narrow(&lu, -2, k, (m - n) as i64)?, narrow(g, -2, k, (m - n) as i64)?);
            to_u = pw::sub(&to_u, &adjoint_times(&l2, &g2)?)?;
            other = Some(adjoint(&triangular(&u, &adjoint(&g2)?, true, false)?)?);
        }
        let inner = pw::add(&lower(&to_l, -1)?, &upper(&to_u, 0)?)?;
        let inner = adjoint(&triangular(&u, &adjoint(&inner)?, true, false)?)?;
        let mut made = triangular(&adjoint(&l)?, &inner, true, true)?;
        if let Some(other) = other {
            made = join::cat(&[made, other], if n > m { -1 } else { -2 })?;
        }
        Ok(smallvec![Some(self.in_order(&made, &pivots, true)?)])
    }
}

impl Op for LuFactor {
    fn name(&self) -> &'static str {
        "linalg_lu_factor_ex"
    }
    fn forward(&self, a: &[&Array]) -> Result<Arrays> {
        let (batch, m, n) = sizes(a[0].shape());
        let outs = [(over(batch, &[m, n]), a[0].dtype()), (over(batch, &[m.min(n)]), DType::I32), (over(batch, &[]), DType::I32)];
        let made = compute("lu_factor", FactorKind::Lu { pivot: self.pivot }, a, &outs)?;
        if self.check {
            checks::all_succeeded(&made[2], Failure::Lu)?;
        }
        Ok(made)
    }
    fn work(&self, a: &[&Array]) -> usize {
        a[0].numel().saturating_mul(a[0].shape().last().copied().unwrap_or(1)) / 8
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.output(0).output(1)
    }
    fn differentiable(&self, output: usize) -> bool {
        output == 0
    }
    /// With `F = L^-1 P^T dA U^-1`: `dL = L tril(F, -1)` and `dU = triu(F) U`.
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let Some(t) = cx.tangent(0) else { return Ok(smallvec![None, None, None]) };
        let (lu, t) = (cx.output(0), self.in_order(t, cx.output(1), false)?);
        let s = lu.shape();
        let (_, m, n) = sizes(&s);
        let k = m.min(n) as i64;
        let part = |t: &Tensor| -> Result<Tensor> { if m == n { Ok(t.clone()) } else { narrow(&narrow(t, -2, 0, k)?, -1, 0, k) } };
        let (l, u) = factors(&part(lu)?)?;
        let f = triangular(&l, &part(&t)?, false, true)?;
        let f = adjoint(&triangular(&adjoint(&u)?, &adjoint(&f)?, false, false)?)?;
        let (below, above) = (lower(&f, -1)?, upper(&f, 0)?);
        let mut made = pw::add(&lower(&times(&l, &below)?, -1)?, &upper(&times(&above, &u)?, 0)?)?;
        if n > m {
            let (u2, t2) = (narrow(lu, -1, k, (n - m) as i64)?, narrow(&t, -1, k, (n - m) as i64)?);
            let d = pw::sub(&triangular(&l, &t2, false, true)?, &times(&below, &u2)?)?;
            made = join::cat(&[made, d], -1)?;
        } else if m > n {
            let (l2, t2) = (narrow(lu, -2, k, (m - n) as i64)?, narrow(&t, -2, k, (m - n) as i64)?);
            let d = adjoint(&triangular(&adjoint(&u)?, &adjoint(&t2)?, false, false)?)?;
            made = join::cat(&[made, pw::sub(&d, &times(&l2, &above)?)?], -2)?;
        }
        Ok(smallvec![Some(made), None, None])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// Both factors in one matrix, the pivots counted from 1, and the first pivot that is 0, or 0; pivots and that are int32.
///
/// # Errors
/// A pivot is 0, if `check`.
pub fn lu_factor(a: &Tensor, pivot: bool, check: bool) -> Result<[Tensor; 3]> {
    let a = checks::matrices("linalg.lu_factor", a, "A", false)?;
    let made = apply(&LuFactor { pivot, check }, &[&a])?;
    Ok([made[0].clone(), made[1].clone(), made[2].clone()])
}

/// `P`, `L` and `U` of factors in one matrix; those that are not asked for are empty.
///
/// # Errors
/// The pivots are of another dtype, or do not exist.
pub fn lu_unpack(lu: &Tensor, pivots: &Tensor, data: bool, with_pivots: bool) -> Result<[Tensor; 3]> {
    let s = lu.shape();
    if s.len() < 2 {
        let shown = crate::layout::fmt_shape(&s);
        return Err(Error::runtime(format!("torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {shown}")));
    }
    if with_pivots && pivots.dtype() != DType::I32 {
        return Err(Error::runtime(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this function is intended to be used with \
             the output produced by torch.linalg.lu_factor",
        ));
    }
    let (batch, m, _) = sizes(&s);
    let empty = || -> Result<Tensor> { create::empty_on(lu.device(), &[0], lu.dtype()) };
    let (l, u) = if data { factors(lu)? } else { (empty()?, empty()?) };
    let p = if with_pivots {
        let order = apply1(&PivotOrder { rows: m, inverse: true }, &[pivots])?;
        let square = over(batch, &[m, m]);
        gather(&expand_to(&eye(lu, m, m)?, &square)?, -2, &expand_to(&unsqueeze(&order, -1)?, &square)?)?
    } else {
        empty()?
    };
    Ok([p, l, u])
}

/// `P`, `L` and `U` of matrices; `P` is empty without `pivot`.
pub fn lu(a: &Tensor, pivot: bool) -> Result<[Tensor; 3]> {
    let a = checks::matrices("linalg.lu", a, "A", false)?;
    let made = apply(&LuFactor { pivot, check: false }, &[&a])?;
    lu_unpack(&made[0], &made[1], true, pivot)
}

/// `X` of `A X = B`, or of `A^H X = B`, from the factors and pivots of `A`.
#[derive(Debug, Clone, Copy)]
struct LuSolve {
    adjoint: bool,
}

impl LuSolve {
    fn run(self, lu: &Tensor, pivots: &Tensor, b: &Tensor) -> Result<Tensor> {
        apply1(&self, &[lu, pivots, b])
    }
}

impl Vjp for LuSolve {
    fn node_name(&self) -> Name {
        "LinalgLuSolveBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![
            ("LU", SavedAttribute::Input(0)),
            ("pivots", SavedAttribute::Input(1)),
            ("result", SavedAttribute::Output(0)),
            ("adjoint", SavedAttribute::Bool(self.adjoint))
        ]
    }
    /// Of `A X = B`: `gA = -gB X^H`, then `gL = P^T gA U^H` and `gU = L^H P^T gA`; of the adjoint the same with both exchanged.
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let (lu, pivots) = (cx.input(0)?, cx.input(1)?);
        let to_b = LuSolve { adjoint: !self.adjoint }.run(&lu, &pivots, g)?;
        let mut to_lu = None;
        if cx.needs(0) {
            let x = cx.output(0)?;
            let (y, z) = if self.adjoint { (&x, &to_b) } else { (&to_b, &x) };
            let (l, u) = factors(&lu)?;
            let y = reordered(y, &pivots, false)?;
            let (to_l, to_u) = (times_adjoint(&y, &times(&u, z)?)?, times_adjoint(&adjoint_times(&l, &y)?, z)?);
            to_lu = Some(pw::neg(&pw::add(&lower(&to_l, -1)?, &upper(&to_u, 0)?)?)?);
        }
        Ok(smallvec![to_lu, None, Some(to_b)])
    }
}

impl Op for LuSolve {
    fn name(&self) -> &'static str {
        "linalg_lu_solve"
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        let out = (over(&[], ins[2].shape()), ins[2].dtype());
        compute("lu_solve", FactorKind::LuSolve { adjoint: self.adjoint }, ins, &[out])
    }
    fn work(&self, ins: &[&Array]) -> usize {
        ins[0].numel().saturating_mul(ins[2].shape().last().copied().unwrap_or(1)) / 4
    }
    fn saves(&self, needs: &[bool]) -> Saves {
        let s = Saves::NOTHING.input(0).input(1);
        if needs[0] { s.output(0) } else { s }
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let (lu, pivots, x) = (cx.primal(0), cx.primal(1), cx.output(0));
        let mut change = cx.tangent(2).cloned();
        if let Some(t) = cx.tangent(0) {
            let (l, u) = factors(lu)?;
            let (dl, du) = (lower(t, -1)?, upper(t, 0)?);
            let by = if self.adjoint {
                let px = reordered(x, pivots, false)?;
                pw::add(&adjoint_times(&u, &adjoint_times(&dl, &px)?)?, &adjoint_times(&du, &adjoint_times(&l, &px)?)?)?
            } else {
                let sum = pw::add(&times(&dl, &times(&u, x)?)?, &times(&l, &times(&du, x)?)?)?;
                reordered(&sum, pivots, true)?
            };
            change = add(change, Some(pw::neg(&by)?))?;
        }
        Ok(smallvec![change.map(|c| self.run(lu, pivots, &c)).transpose()?])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// As `lu_solve`, of tensors with the same leading dimensions.
pub(super) fn solved(lu: &Tensor, pivots: &Tensor, b: &Tensor, adjoint: bool) -> Result<Tensor> {
    LuSolve { adjoint }.run(lu, pivots, b)
}

/// `X` of `A X = B` from the factors and pivots of `A`; of `X A = B` without `left`, and with the adjoint of `A` if `adjoint`.
///
/// # Errors
/// Sizes or dtypes do not fit.
pub fn lu_solve(lu: &Tensor, pivots: &Tensor, b: &Tensor, left: bool, adjoint_of: bool) -> Result<Tensor> {
    const NAME: &str = "linalg.lu_solve";
    let (lu, b) = (checks::matrices(NAME, lu, "LU", true)?, checks::widened(b)?);
    if pivots.dtype() != DType::I32 {
        return Err(Error::runtime(format!("{NAME}: pivots should be a Tensor of scalar type torch.int32. Got {}", pivots.dtype())));
    }
    let s = lu.shape();
    if pivots.shape()[..] != s[..s.len() - 1] {
        return Err(Error::runtime(format!("{NAME}: Number of pivots per batch should be same as the dimension of the matrix")));
    }
    checks::system(NAME, &lu, &b, left)?;
    let b = if left { b } else { adjoint(&b)? };
    let (lu, b) = same_batch(&lu, &b)?;
    let s = lu.shape();
    let pivots = expand_to(pivots, &s[..s.len() - 1])?;
    let made = solved(&lu, &pivots, &b, adjoint_of == left)?;
    if left { Ok(made) } else { adjoint(&made) }
}
