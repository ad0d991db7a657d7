//! Weighted sums along one axis: changes of size, which are linear and work one axis after the other.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements};
use crate::layout::DType;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Which elements along an axis each result is the weighted sum of. All positions lie inside the axis.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightTable {
    input: usize,
    /// Result `o` has the entries `starts[o]..starts[o + 1]`.
    starts: Vec<u32>,
    at: Vec<u32>,
    weights: Vec<f64>,
}

impl WeightTable {
    /// From the positions and weights of each result. None: a position is outside the axis, or there are too many.
    pub fn new(input: usize, rows: impl Iterator<Item = impl IntoIterator<Item = (usize, f64)>>) -> Option<WeightTable> {
        let mut table = WeightTable { input, starts: vec![0], at: Vec::new(), weights: Vec::new() };
        u32::try_from(input).ok()?;
        for row in rows {
            for (at, weight) in row {
                if at >= input {
                    return None;
                }
                table.at.push(at as u32);
                table.weights.push(weight);
            }
            table.starts.push(u32::try_from(table.at.len()).ok()?);
        }
        u32::try_from(table.output()).ok()?;
        Some(table)
    }

    pub fn input(&self) -> usize {
        self.input
    }

    pub fn output(&self) -> usize {
        self.starts.len() - 1
    }

    /// All entries: where those of each result start, their positions and weights.
    pub fn entries(&self) -> (&[u32], &[u32], &[f64]) {
        (&self.starts, &self.at, &self.weights)
    }

    /// Positions and weights of result `o`.
    #[inline(always)]
    pub fn row(&self, o: usize) -> (&[u32], &[f64]) {
        let range = self.starts[o] as usize..self.starts[o + 1] as usize;
        (&self.at[range.clone()], &self.weights[range])
    }

    /// The table of the adjoint.
    #[must_use]
    pub fn transposed(&self) -> WeightTable {
        let mut starts = vec![0u32; self.input + 1];
        for at in &self.at {
            starts[*at as usize + 1] += 1;
        }
        for i in 0..self.input {
            starts[i + 1] += starts[i];
        }
        let (mut next, mut at, mut weights) = (starts.clone(), vec![0u32; self.at.len()], vec![0.0; self.at.len()]);
        for o in 0..self.output() {
            let (from, by) = self.row(o);
            for (i, w) in from.iter().zip(by) {
                let place = &mut next[*i as usize];
                at[*place as usize] = o as u32;
                weights[*place as usize] = *w;
                *place += 1;
            }
        }
        WeightTable { input: self.output(), starts, at, weights }
    }
}

impl Hash for WeightTable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.input, &self.starts, &self.at).hash(state);
        self.weights.iter().for_each(|w| w.to_bits().hash(state));
    }
}

/// Of x, seen as (outer, the table's input, inner), row-major: (outer, the table's output, inner). Floats of one dtype.
#[derive(Debug, Clone, Hash)]
pub struct Resample {
    pub op: &'static str,
    pub outer: usize,
    pub inner: usize,
    pub table: Arc<WeightTable>,
}

impl Family for Resample {
    fn name(&self) -> &'static str {
        self.op
    }

    fn elems(&self) -> Elems {
        Elems::FLOATS
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let all = |n: usize| self.outer.checked_mul(n).and_then(|k| k.checked_mul(self.inner));
        let has = |(shape, dtype): (&[usize], DType), n: usize| dtype.is_float() && Some(shape.iter().product::<usize>()) == all(n);
        match (ins, outs) {
            ([Some(x)], [Some(y)]) => x.1 == y.1 && has(*x, self.table.input()) && has(*y, self.table.output()),
            _ => false,
        }
    }

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        elements(ins, outs)
    }

    fn outputs(&self) -> usize {
        1
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        let one = WeightTable::new(1, [[(0, 1.0)]].into_iter()).unwrap_or_else(|| unreachable!("the position is inside"));
        vec![Resample { op: "upsample", outer: 1, inner: 1, table: Arc::new(one) }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_twice_gives_the_same_table() {
        let rows = [vec![(0, 0.5), (1, 0.25)], vec![], vec![(1, 1.0), (2, -1.0), (2, 3.0)]];
        let table = WeightTable::new(3, rows.into_iter()).unwrap();
        let back = table.transposed();
        assert_eq!((back.input(), back.output(), back.row(2)), (3, 3, (&[2, 2][..], &[-1.0, 3.0][..])));
        assert_eq!(back.transposed(), table);
        assert_eq!(WeightTable::new(3, [[(3, 1.0)]].into_iter()), None);
    }
}
