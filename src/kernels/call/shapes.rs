//! Which operands and outputs a request accepts. Kernels rely on this check, which `array` makes before a request is run.

use super::{Along, Classes, IndexPlan, Nll, NllReduction, Request, ScatterAlong, summed};
use crate::layout::DType;

/// Shape and dtype of an operand or output. None: an operand that is not read.
pub type Seen<'a> = Option<(&'a [usize], DType)>;

fn numel(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// Whether there is such a dimension; 0-d counts as 1-d.
fn has_dim(shape: &[usize], dim: usize) -> bool {
    dim < shape.len().max(1)
}

/// The size along a dimension; 0-d counts as 1-d with one element.
fn size(shape: &[usize], dim: usize) -> usize {
    shape.get(dim).copied().unwrap_or(1)
}

/// Whether `out` is `shape` with another size along `dim`, or without this dimension where `n` is 1.
fn is_with_size(out: &[usize], shape: &[usize], dim: usize, n: usize) -> bool {
    let kept = out.len() == shape.len() && out.iter().zip(shape).enumerate().all(|(d, (o, s))| if d == dim { *o == n } else { o == s });
    let gone = || n == 1 && out.iter().eq(shape.iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, s)| s));
    kept || gone()
}

/// Whether an index is no larger than what it reads or writes, `dim` apart.
fn covers(shape: &[usize], index: &[usize], dim: Option<usize>) -> bool {
    let ranks = shape.len() == index.len() || shape.is_empty() && index.len() == 1;
    ranks && (0..index.len()).all(|d| Some(d) == dim || index[d] <= size(shape, d)) && dim.is_none_or(|d| has_dim(index, d))
}

/// Whether the positions belong to `of`, an array that is read or written by this plan; then the shape that they all have.
fn positions<'a>(plan: &IndexPlan, of: &[usize], index: &[Seen<'a>]) -> Option<&'a [usize]> {
    let mut shapes = index.iter().map(|i| i.filter(|(_, d)| !d.is_float()).map(|(s, _)| s));
    let first = shapes.next()??;
    (plan.fits(of.len(), index.len()) && shapes.all(|s| s == Some(first))).then_some(first)
}

impl Nll {
    fn accepts(&self, (x, dtype): (&[usize], DType), rest: &[Seen<'_>], (out, to): (&[usize], DType)) -> bool {
        let Classes { outer, classes, inner, reduction, .. } = self.classes;
        let (Some(some), Some(all)) = (outer.checked_mul(inner), outer.checked_mul(classes).and_then(|n| n.checked_mul(inner))) else {
            return false;
        };
        let losses = if reduction == NllReduction::None { some } else { 1 };
        let (scores, wanted) = if self.adjoint { (out, x) } else { (x, out) };
        let targets = rest.first().copied().flatten().is_some_and(|(t, d)| numel(t) == some && matches!(d, DType::I64 | DType::U8));
        let weights = match rest.get(1) {
            None => true,
            Some(w) => w.is_some_and(|(w, d)| numel(w) == classes && d == dtype),
        };
        dtype.is_float() && to == dtype && numel(scores) == all && numel(wanted) == losses && targets && weights && rest.len() <= 2
    }
}

impl Request {
    /// Whether these operands and outputs are what the request's family describes.
    pub fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        match (self, ins, outs) {
            (Request::Fill(_), [], [Some(_)]) => true,
            (Request::Copy, [Some((x, _))], [Some((o, _))]) => x == o,
            (Request::Pointwise(_), _, [Some((o, _))]) => ins.iter().flatten().all(|(x, _)| x == o || x.is_empty()),
            (Request::Triangle(_), [Some(x)], [Some(o)]) => x == o && o.0.len() >= 2,
            (Request::Reduce(r), [Some((x, d))], [Some((o, to))]) => {
                let left: usize = x.iter().zip(&r.reduced).filter(|(_, r)| !**r).map(|(s, _)| *s).product();
                let floats = d.is_float() || !r.reducer.is_float_only();
                r.reduced.len() == x.len() && numel(o) == left && floats && {
                    let own = r.reducer.out_dtype(*d);
                    // Of 16-bit floats the result may stay as it was computed.
                    *to == own || own.is_half() && *to == own.computed()
                }
            }
            (Request::ArgReduce(_) | Request::Mode(_), [Some((x, d))], [Some((v, dv)), Some((p, DType::I64))]) => {
                let dim = match self {
                    Request::ArgReduce(r) => r.dim,
                    Request::Mode(m) => m.dim,
                    _ => return false,
                };
                let something = size(x, dim) > 0 || numel(v) == 0;
                has_dim(x, dim) && something && dv == d && v == p && (is_with_size(v, x, dim, 1) || x.is_empty() && numel(v) == 1)
            }
            (Request::Scan(s), [Some((x, d))], [Some((o, to))]) => {
                has_dim(x, s.dim) && x == o && *to == summed(*d) && (d.is_float() || !s.kind.is_float_only())
            }
            (Request::CumulativeExtreme(c), [Some((x, d))], [Some((v, dv)), Some((p, DType::I64))]) => {
                has_dim(x, c.dim) && d == dv && x == v && x == p
            }
            (Request::Sort(s), [Some((x, d))], [Some((v, dv)), Some((p, DType::I64))]) => {
                let fits = v.len() == x.len() && (x.is_empty() || is_with_size(v, x, s.dim, s.keep));
                has_dim(x, s.dim) && s.keep <= size(x, s.dim) && d == dv && v == p && fits
            }
            (Request::Softmax(s), _, [Some((o, d))]) => {
                let alike = ins.iter().all(|x| *x == Some((*o, *d)));
                d.is_float() && has_dim(o, s.dim) && ins.len() == 1 + usize::from(s.pass.backward) && alike
            }
            (Request::Nll(n), [Some(x), rest @ ..], [Some(o)]) => n.accepts(*x, rest, *o),
            (Request::Norm(n), ..) => n.accepts(ins, outs),
            (Request::Conv(c), ..) => c.accepts(ins, outs),
            (Request::Attention(a), ..) => a.accepts(ins, outs),
            (Request::Pool(p), ..) => p.accepts(ins, outs),
            (Request::Resample(r), ..) => r.accepts(ins, outs),
            (Request::GridSample(g), ..) => g.accepts(ins, outs),
            (Request::Recurrent(r), ..) => r.accepts(ins, outs),
            (Request::Gemm, [Some((a, da)), Some((b, db)), bias @ ..], [Some((o, d))]) => {
                let ([m, k], [k2, n], [om, on]) = (last_two(a), last_two(b), last_two(o));
                let ranks = a.len() >= 2 && a.len() == b.len() && a.len() == o.len();
                let batches = || a[..a.len() - 2] == o[..a.len() - 2] && b[..a.len() - 2] == o[..a.len() - 2];
                let takes = match bias {
                    [] => true,
                    [Some((c, dc))] => a.len() == 2 && c[..] == [n] && dc == d,
                    _ => false,
                };
                ranks && batches() && k == k2 && (m, n) == (om, on) && da == d && db == d && takes
            }
            (Request::IndexRead(plan), [Some((x, d)), index @ ..], [Some((o, to))]) => {
                positions(plan, x, index).is_some_and(|i| plan.shape(x, i)[..] == **o) && d == to
            }
            (Request::IndexWrite(w), [Some((v, _)), index @ ..], [Some((o, _))]) => {
                positions(&w.index, o, index).is_some_and(|i| v.is_empty() || w.index.shape(o, i)[..] == **v || numel(v) == 1)
            }
            (Request::Gather(Along { dim }), [Some((x, d)), Some((i, DType::I64))], [Some((o, to))]) => {
                covers(x, i, Some(*dim)) && i == o && d == to
            }
            (Request::Scatter(ScatterAlong { dim, .. }), [Some((v, _)), Some((i, DType::I64))], [Some((o, _))]) => {
                covers(o, i, Some(*dim)) && (v.is_empty() || covers(v, i, None))
            }
            (Request::Random(_), [], [Some(_)]) => true,
            (Request::Random(_), [Some((p, _))], [Some((o, _))]) => p == o,
            (Request::Custom(_), ..) => true,
            _ => false,
        }
    }
}

/// The last two sizes, 0 where there are fewer.
fn last_two(shape: &[usize]) -> [usize; 2] {
    let r = shape.len();
    if r < 2 { [0, 0] } else { [shape[r - 2], shape[r - 1]] }
}
