//! Reads and writes at positions given by data: `x[i, j]` and `x[i, j] = v`.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements, numel};
use crate::error::Error;
use crate::layout::Dims;
use smallvec::SmallVec;

/// How a write combines with the old value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Write {
    Set,
    Add,
    Multiply,
}

impl Write {
    /// Where the written elements come from.
    pub fn provenance(self) -> Provenance {
        match self {
            Write::Set => Provenance::Moved,
            Write::Add | Write::Multiply => Provenance::Computed,
        }
    }
}

/// Which positions an operation accepts, and its error for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bounds {
    /// `x[i]`: negative positions count from the end.
    Wrap,
    /// `index_select`.
    Select,
    /// `index_add`, `gather`, `scatter`: the error names position, dimension and size.
    Exact,
    /// `index_copy`.
    Copy,
    /// `take`: as `Wrap`, over all elements.
    Take,
}

impl Bounds {
    #[inline]
    pub fn wraps(self) -> bool {
        matches!(self, Bounds::Wrap | Bounds::Take)
    }

    /// The operation that reads or writes under this rule.
    pub fn name(self) -> &'static str {
        match self {
            Bounds::Wrap => "index",
            Bounds::Select => "index_select",
            Bounds::Exact => "index_add",
            Bounds::Copy => "index_copy",
            Bounds::Take => "take",
        }
    }

    #[cold]
    pub fn error(self, index: i64, dim: usize, size: usize) -> Error {
        match self {
            Bounds::Wrap => Error::index(format!("index {index} is out of bounds for dimension {dim} with size {size}")),
            Bounds::Select => Error::index(format!("index out of range in self: got index {index} for dimension {dim} with size {size}")),
            Bounds::Exact => Error::runtime(format!("index {index} is out of bounds for dimension {dim} with size {size}")),
            Bounds::Copy => Error::index(format!("index_copy_(): index {index} is out of bounds for dimension {dim} with size {size}")),
            Bounds::Take => Error::index(format!("out of range: tried to access index {index} on a tensor of {size} elements.")),
        }
    }
}

/// Which dimensions of an array are indexed, and where the index's own dimensions stand in the result. An operand for each of `dims` follows
/// the array: integers, all expanded to one shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IndexPlan {
    /// One dimension for each index array, ascending.
    pub dims: SmallVec<[usize; 4]>,
    /// How many of the other dimensions stand before those of the index.
    pub at: usize,
    pub bounds: Bounds,
}

impl IndexPlan {
    pub fn one(dim: usize, bounds: Bounds) -> IndexPlan {
        IndexPlan { dims: SmallVec::from_elem(dim, 1), at: dim, bounds }
    }

    /// Indexed dimensions side by side keep their place; others go to the front, as in NumPy.
    pub fn of(dims: SmallVec<[usize; 4]>) -> IndexPlan {
        let adjacent = dims.windows(2).all(|w| w[1] == w[0] + 1);
        let at = if adjacent { dims.first().copied().unwrap_or(0) } else { 0 };
        IndexPlan { dims, at, bounds: Bounds::Wrap }
    }

    /// Whether the plan fits an array of this rank and so many index arrays.
    pub fn fits(&self, rank: usize, index: usize) -> bool {
        let ascending = self.dims.windows(2).all(|w| w[0] < w[1]);
        let inside = self.dims.last().is_some_and(|d| *d < rank);
        ascending && inside && self.at <= rank - self.dims.len() && index == self.dims.len()
    }

    /// The dimensions that are not indexed: those before and those behind the index's in the result.
    pub fn rest(&self, rank: usize) -> (SmallVec<[usize; 6]>, SmallVec<[usize; 6]>) {
        let mut before: SmallVec<[usize; 6]> = (0..rank).filter(|d| !self.dims.contains(d)).collect();
        let after = SmallVec::from_slice(&before[self.at..]);
        before.truncate(self.at);
        (before, after)
    }

    /// Whether the positions belong to `of`, an array that is read or written by this plan; then the shape that they all have.
    fn positions<'a>(&self, of: &[usize], index: &[Seen<'a>]) -> Option<&'a [usize]> {
        let mut shapes = index.iter().map(|i| i.filter(|(_, d)| !d.is_float()).map(|(s, _)| s));
        let first = shapes.next()??;
        (self.fits(of.len(), index.len()) && shapes.all(|s| s == Some(first))).then_some(first)
    }

    /// The shape of the result.
    pub fn shape(&self, of: &[usize], index: &[usize]) -> Dims {
        let (before, after) = self.rest(of.len());
        let mut out = Dims::new();
        out.extend(before.iter().map(|d| of[*d]));
        out.extend_from_slice(index);
        out.extend(after.iter().map(|d| of[*d]));
        out
    }
}

/// As `IndexPlan`, for a write. Operands: the values, expanded to the shape that a read gives (or one value), and the positions. Where two
/// positions are the same, the later one writes last.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IndexWrite {
    pub index: IndexPlan,
    pub how: Write,
}

impl Family for IndexPlan {
    fn name(&self) -> &'static str {
        self.bounds.name()
    }

    fn elems(&self) -> Elems {
        Elems::ALL
    }

    fn provenance(&self) -> Provenance {
        Provenance::Moved
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let ([Some((x, d)), index @ ..], [Some((o, to))]) = (ins, outs) else { return false };
        self.positions(x, index).is_some_and(|i| self.shape(x, i)[..] == **o) && d == to
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
        Flags::CHECKS_NOTHING
    }

    fn samples() -> Vec<Self> {
        vec![IndexPlan::one(0, Bounds::Wrap)]
    }
}

impl Family for IndexWrite {
    fn name(&self) -> &'static str {
        self.index.bounds.name()
    }

    fn elems(&self) -> Elems {
        Elems::ALL
    }

    fn provenance(&self) -> Provenance {
        self.how.provenance()
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let ([Some((v, _)), index @ ..], [Some((o, _))]) = (ins, outs) else { return false };
        self.index.positions(o, index).is_some_and(|i| v.is_empty() || self.index.shape(o, i)[..] == **v || numel(v) == 1)
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
        Flags::CHECKS_NOTHING
    }

    fn samples() -> Vec<Self> {
        vec![IndexWrite { index: IndexPlan::one(0, Bounds::Exact), how: Write::Add }]
    }
}
