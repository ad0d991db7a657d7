//! Sorting, and the most frequent element.

/// The first `keep` elements of each sorted row (nan is larger than everything), stably, and where each came from. Two row-major outputs
/// with `keep` elements along `dim`: values of the operand's dtype, and int64.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Sort {
    pub dim: usize,
    pub descending: bool,
    pub keep: usize,
}

/// The most frequent element along a dimension that is not empty, and where it stands last. Outputs as for `ArgReduce`.
#[derive(Debug, Clone, Hash)]
pub struct Mode {
    pub dim: usize,
}
