//! Einstein summation: an equation names the dimensions of every operand; pairs are contracted from left to right by batched products.

use super::matmul::matmul;
use super::pointwise as pw;
use super::reduce::sum;
use crate::autograd::{Tensor, ViewOp, primitives, view};
use crate::error::{Error, Result};
use crate::layout::{Dims, wrap_dims};
use smallvec::{SmallVec, smallvec};

/// A named dimension: 0 to 51 for the letters, from `DOTS` on for dimensions under an ellipsis, counted from the last.
type Label = u16;
const DOTS: Label = 52;

type Labels = SmallVec<[Label; 8]>;

fn letter(c: char) -> Option<Label> {
    match c {
        'A'..='Z' => Some(c as Label - 'A' as Label),
        'a'..='z' => Some(c as Label - 'a' as Label + 26),
        _ => None,
    }
}

fn name(l: Label) -> char {
    match l {
        0..26 => (b'A' + l as u8) as char,
        26..52 => (b'a' + (l - 26) as u8) as char,
        _ => '.',
    }
}

/// The letters of one side of an equation, and the position of the ellipsis.
struct Term {
    labels: Labels,
    dots: Option<usize>,
}

fn fail<T>(message: impl std::fmt::Display) -> Result<T> {
    Err(Error::runtime(format!("einsum(): {message}")))
}

/// Reads a term. `at` is its position in the equation and `owner` describes it in messages.
fn term(text: &[char], at: usize, owner: &str) -> Result<Term> {
    let mut out = Term { labels: Labels::new(), dots: None };
    let mut i = 0;
    while i < text.len() {
        match text[i] {
            ' ' => {}
            '.' => {
                if out.dots.is_some() {
                    return fail(format!("found '.' for {owner} for which an ellipsis was already found"));
                }
                if text.get(i + 1) != Some(&'.') || text.get(i + 2) != Some(&'.') {
                    return fail(format!("found '.' for {owner} that is not part of any ellipsis"));
                }
                i += 2;
                out.dots = Some(out.labels.len());
            }
            c => match letter(c) {
                Some(l) => out.labels.push(l),
                None => {
                    return fail(format!(
                        "invalid subscript given at index {} in the equation string, subscripts must be in [a-zA-Z]",
                        at + i
                    ));
                }
            },
        }
        i += 1;
    }
    Ok(out)
}

struct Equation {
    inputs: Vec<Term>,
    output: Option<Term>,
}

fn parse(equation: &str) -> Result<Equation> {
    let text: Vec<char> = equation.chars().collect();
    let arrow = text.windows(2).position(|w| w == ['-', '>']);
    let left = &text[..arrow.unwrap_or(text.len())];
    let mut inputs = Vec::new();
    let mut start = 0;
    for (n, part) in left.split(|c| *c == ',').enumerate() {
        inputs.push(term(part, start, &format!("operand {n}"))?);
        start += part.len() + 1;
    }
    let output = arrow.map(|a| term(&text[a + 2..], a + 2, "the output")).transpose()?;
    Ok(Equation { inputs, output })
}

/// A tensor whose dimensions have names, each at most once.
struct Named {
    t: Tensor,
    labels: Labels,
}

impl Named {
    /// Names the dimensions of an operand; a repeated name takes the diagonal.
    fn new(t: &Tensor, labels: Labels, operand: usize) -> Result<Named> {
        let mut out = Named { t: t.clone(), labels };
        loop {
            let again = (0..out.labels.len()).find_map(|i| {
                let j = (i + 1..out.labels.len()).find(|&j| out.labels[j] == out.labels[i])?;
                Some((i, j))
            });
            let Some((i, j)) = again else { return Ok(out) };
            let shape = out.t.shape();
            if shape[i] != shape[j] {
                return fail(format!(
                    "subscript {} is repeated for operand {operand} but the sizes don't match, {} != {}",
                    name(out.labels[i]),
                    shape[j],
                    shape[i]
                ));
            }
            out.t = view(&out.t, ViewOp::Diagonal { offset: 0, dim1: i, dim2: j })?;
            let l = out.labels[i];
            out.labels.remove(j);
            out.labels.remove(i);
            out.labels.push(l);
        }
    }

    fn at(&self, l: Label) -> Option<usize> {
        self.labels.iter().position(|x| *x == l)
    }

    fn size(&self, l: Label) -> Option<usize> {
        self.at(l).map(|i| self.t.shape()[i])
    }

    /// Sums over the dimensions for which `keep` is false.
    fn summed(self, keep: impl Fn(Label) -> bool) -> Result<Named> {
        let dims: SmallVec<[i64; 8]> = (0..self.labels.len()).filter(|&i| !keep(self.labels[i])).map(|i| i as i64).collect();
        if dims.is_empty() {
            return Ok(self);
        }
        let labels = self.labels.iter().copied().filter(|l| keep(*l)).collect();
        Ok(Named { t: sum(&self.t, Some(&dims), false, Some(self.t.dtype()))?, labels })
    }

    /// Without dimension `l`, which has size 1.
    fn dropped(self, l: Label) -> Result<Named> {
        let Some(i) = self.at(l) else { return Ok(self) };
        let mut labels = self.labels;
        labels.remove(i);
        Ok(Named { t: view(&self.t, ViewOp::Squeeze(smallvec![i]))?, labels })
    }

    /// With the dimensions in this order, which names each of them.
    fn ordered(&self, order: &[Label]) -> Result<Tensor> {
        if self.labels[..] == *order {
            return Ok(self.t.clone());
        }
        let dims: Dims = order.iter().filter_map(|l| self.at(*l)).collect();
        view(&self.t, ViewOp::Permute(dims))
    }
}

/// The sum of products of two operands over the dimensions that neither the output nor another operand has.
fn contract(mut a: Named, mut b: Named, in_output: impl Fn(Label) -> bool) -> Result<Named> {
    // A size of 1 broadcasts against a larger one: there is nothing to multiply along it.
    for l in a.labels.clone() {
        match (a.size(l), b.size(l)) {
            (Some(1), Some(n)) if n != 1 => a = a.dropped(l)?,
            (Some(n), Some(1)) if n != 1 => b = b.dropped(l)?,
            _ => {}
        }
    }
    let in_b = b.labels.clone();
    a = a.summed(|l| in_output(l) || in_b.contains(&l))?;
    let in_a = a.labels.clone();
    b = b.summed(|l| in_output(l) || in_a.contains(&l))?;

    let shared = |l: &Label| a.labels.contains(l) && b.labels.contains(l);
    let batch: Labels = a.labels.iter().copied().filter(|l| shared(l) && in_output(*l)).collect();
    let inner: Labels = a.labels.iter().copied().filter(|l| shared(l) && !in_output(*l)).collect();
    let left: Labels = a.labels.iter().copied().filter(|l| !b.labels.contains(l)).collect();
    let right: Labels = b.labels.iter().copied().filter(|l| !a.labels.contains(l)).collect();
    let join = |parts: &[&Labels]| -> Labels { parts.iter().flat_map(|p| p.iter().copied()).collect() };
    let labels = join(&[&batch, &left, &right]);
    let sizes = |n: &Named, ls: &Labels| -> Dims { ls.iter().map(|l| n.size(*l).unwrap_or(1)).collect() };
    let (sa, sb) = (sizes(&a, &batch), (sizes(&a, &left), sizes(&b, &right)));
    if inner.is_empty() {
        let x = a.ordered(&join(&[&batch, &left]))?;
        let y = b.ordered(&join(&[&batch, &right]))?;
        let wide: Dims = sa.iter().chain(&sb.0).copied().chain(right.iter().map(|_| 1)).collect();
        let tall: Dims = sa.iter().copied().chain(left.iter().map(|_| 1)).chain(sb.1.iter().copied()).collect();
        let t = pw::mul(&primitives::reshape(&x, &wide)?, &primitives::reshape(&y, &tall)?)?;
        return Ok(Named { t, labels });
    }
    let product = |d: &Dims| d.iter().product::<usize>();
    let (m, k, n) = (product(&sb.0), product(&sizes(&a, &inner)), product(&sb.1));
    let mut x = a.ordered(&join(&[&batch, &left, &inner]))?;
    let mut y = b.ordered(&join(&[&batch, &inner, &right]))?;
    let lead: Dims = if batch.is_empty() { Dims::new() } else { smallvec![product(&sa)] };
    let shaped = |t: &Tensor, rows: usize, cols: usize| {
        let shape: Dims = lead.iter().copied().chain([rows, cols]).collect();
        if t.shape() == shape { Ok(t.clone()) } else { primitives::reshape(t, &shape) }
    };
    x = shaped(&x, m, k)?;
    y = shaped(&y, k, n)?;
    let t = matmul(&x, &y)?;
    let shape: Dims = sa.iter().chain(&sb.0).chain(&sb.1).copied().collect();
    Ok(Named { t: if t.shape() == shape { t } else { primitives::reshape(&t, &shape)? }, labels })
}

/// `einsum(equation, operands)`: letters name dimensions, `...` stands for those that broadcast. Without `->` the output has the letters
/// that occur once, in alphabetical order, after the dimensions of an ellipsis.
pub fn einsum(equation: &str, operands: &[Tensor]) -> Result<Tensor> {
    if operands.is_empty() {
        return fail("must provide at least one operand");
    }
    let eq = parse(equation)?;
    if eq.inputs.len() > operands.len() {
        return fail(format!(
            "fewer operands were provided than specified in the equation: got {}, expected {}",
            operands.len(),
            eq.inputs.len()
        ));
    }
    if eq.inputs.len() < operands.len() {
        return fail(format!(
            "more operands were provided than specified in the equation: got {}, expected {}",
            operands.len(),
            eq.inputs.len()
        ));
    }

    // Names for every operand, with sizes checked against each other.
    let mut named: Vec<Named> = Vec::new();
    let mut sizes: SmallVec<[(Label, usize); 8]> = SmallVec::new();
    let mut dots = 0;
    for (n, (term, t)) in eq.inputs.iter().zip(operands).enumerate() {
        let (have, rank) = (term.labels.len(), t.rank());
        let under = match term.dots {
            Some(_) if have <= rank => rank - have,
            None if have == rank => 0,
            _ => {
                let why = if term.dots.is_some() { "even with an ellipsis" } else { "and no ellipsis was given" };
                return fail(format!(
                    "the number of subscripts in the equation ({have}) does not match the number of dimensions ({rank}) for operand {n} {why}"
                ));
            }
        };
        dots = dots.max(under);
        let mut labels = term.labels.clone();
        if let Some(at) = term.dots {
            labels.insert_many(at, (0..under).rev().map(|i| DOTS + i as Label));
        }
        let operand = Named::new(t, labels, n)?;
        for l in &operand.labels {
            let size = operand.size(*l).unwrap_or(1);
            match sizes.iter_mut().find(|(k, _)| k == l) {
                Some((_, s)) if *s == 1 => *s = size,
                Some((_, s)) if size != 1 && *s != size => {
                    return fail(format!(
                        "subscript {} has size {size} for operand {n} which does not broadcast with previously seen size {s}",
                        name(*l)
                    ));
                }
                Some(_) => {}
                None => sizes.push((*l, size)),
            }
        }
        named.push(operand);
    }

    let under_dots = (0..dots).rev().map(|i| DOTS + i as Label);
    let output: Labels = match &eq.output {
        Some(out) => {
            for (i, l) in out.labels.iter().enumerate() {
                if out.labels[..i].contains(l) {
                    return fail(format!("output subscript {} appears more than once in the output", name(*l)));
                }
                if !sizes.iter().any(|(k, _)| k == l) {
                    return fail(format!("output subscript {} does not appear in the equation for any input operand", name(*l)));
                }
            }
            let mut labels = out.labels.clone();
            if let Some(at) = out.dots {
                labels.insert_many(at, under_dots);
            }
            labels
        }
        None => {
            let mut once: Labels = sizes
                .iter()
                .map(|(l, _)| *l)
                .filter(|l| *l < DOTS && eq.inputs.iter().flat_map(|t| &t.labels).filter(|x| *x == l).count() == 1)
                .collect();
            once.sort_unstable();
            under_dots.chain(once).collect()
        }
    };

    let mut rest = named.into_iter();
    let Some(mut acc) = rest.next() else { return fail("must provide at least one operand") };
    while let Some(next) = rest.next() {
        let later = rest.as_slice();
        acc = contract(acc, next, |l| output.contains(&l) || later.iter().any(|n| n.labels.contains(&l)))?;
    }
    acc = acc.summed(|l| output.contains(&l))?;
    // A dimension of size 1 that broadcast away everywhere it stood is still owed to the output.
    let t = acc.ordered(&output)?;
    let shape: Dims = output.iter().map(|l| sizes.iter().find(|(k, _)| k == l).map_or(1, |(_, s)| *s)).collect();
    if t.shape() == shape { Ok(t) } else { primitives::reshape(&t, &shape) }
}

/// The sum of products over dimensions `dims_a` of one tensor paired with `dims_b` of the other; the rest of both remain, in order.
pub fn tensordot(a: &Tensor, b: &Tensor, dims_a: &[i64], dims_b: &[i64]) -> Result<Tensor> {
    if a.dtype() != b.dtype() {
        return Err(Error::runtime("both inputs should have same dtype"));
    }
    if dims_a.len() != dims_b.len() {
        return Err(Error::runtime(format!(
            "both dimension lists should have same length: tensordot got {} and {}",
            dims_a.len(),
            dims_b.len()
        )));
    }
    let (da, db) = (wrap_dims(dims_a, a.rank())?, wrap_dims(dims_b, b.rank())?);
    let (sa, sb) = (a.shape(), b.shape());
    for (i, j) in da.iter().zip(&db) {
        if sa[*i] != sb[*j] && sa[*i] != 1 && sb[*j] != 1 {
            return Err(Error::shape(format!(
                "contracted dimensions need to match, but first has size {} in dim {i} and second has size {} in dim {j}",
                sa[*i], sb[*j]
            )));
        }
    }
    let la: Labels = (0..a.rank() as Label).collect();
    let mut lb: Labels = (0..b.rank() as Label).map(|i| a.rank() as Label + i).collect();
    for (i, j) in da.iter().zip(&db) {
        lb[*j] = *i as Label;
    }
    let output: Labels = la.iter().chain(&lb).copied().filter(|l| !da.contains(&(*l as usize)) || *l >= a.rank() as Label).collect();
    let out = contract(Named { t: a.clone(), labels: la }, Named { t: b.clone(), labels: lb }, |l| output.contains(&l))?;
    out.ordered(&output)
}
