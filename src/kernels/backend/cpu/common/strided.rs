//! Iteration over several strided operands of one shape (what TensorIterator is in PyTorch): dimensions are sorted and merged, and the two
//! innermost are cut into tiles that fit a small buffer.

// Several arrays are indexed by one operand's number.
#![allow(clippy::needless_range_loop)]

use smallvec::SmallVec;

/// One dimension of `N` operands; strides in bytes.
#[derive(Debug, Clone, Copy)]
pub struct StridedDim<const N: usize> {
    pub size: usize,
    pub strides: [isize; N],
}

/// Outermost first.
pub type StridedDims<const N: usize> = SmallVec<[StridedDim<N>; 4]>;

/// Drops dimensions of size 1, sorts the others by the strides of operand 0 (the output), and merges neighbours that are contiguous with
/// each other in every operand. An operand without strides is a single value.
pub fn collapse<const N: usize>(shape: &[usize], strides: [&[isize]; N], sizes: [usize; N]) -> StridedDims<N> {
    let mut dims: StridedDims<N> = SmallVec::new();
    for (i, &size) in shape.iter().enumerate() {
        if size == 1 {
            continue;
        }
        let mut s = [0isize; N];
        for k in 0..N {
            s[k] = strides[k].get(i).map_or(0, |s| s * sizes[k] as isize);
        }
        dims.push(StridedDim { size, strides: s });
    }
    // Insertion sort: stable, and the order is nearly always right already.
    for i in 1..dims.len() {
        let mut j = i;
        while j > 0 && dims[j - 1].strides[0].abs() < dims[j].strides[0].abs() {
            dims.swap(j - 1, j);
            j -= 1;
        }
    }
    let mut kept = 0;
    for i in 1..dims.len() {
        let inner = dims[i];
        let outer = dims[kept];
        if (0..N).all(|k| outer.strides[k] == inner.strides[k] * inner.size as isize) {
            dims[kept] = StridedDim { size: outer.size * inner.size, strides: inner.strides };
        } else {
            kept += 1;
            dims[kept] = inner;
        }
    }
    dims.truncate(kept + 1);
    dims
}

/// A cut of the two innermost dimensions into tiles.
#[derive(Debug)]
pub struct Tiles<const N: usize> {
    outer: StridedDims<N>,
    rows: StridedDim<N>,
    cols: StridedDim<N>,
    tile_rows: usize,
    tile_cols: usize,
    down: usize,
    across: usize,
}

/// A tile: where each operand starts, and how large it is.
#[derive(Debug, Clone, Copy)]
pub struct StridedTile<const N: usize> {
    pub offsets: [isize; N],
    pub rows: usize,
    pub cols: usize,
}

impl<const N: usize> Tiles<N> {
    /// Tiles of at most `room` elements. If an operand has another memory order than the output, tiles are about square, so that each of
    /// its cache lines is used completely within one tile.
    pub fn new(mut dims: StridedDims<N>, room: usize, elem: [usize; N]) -> Self {
        let one = StridedDim { size: 1, strides: [0; N] };
        let cols = dims.pop().unwrap_or(one);
        let mut square = false;
        for k in 1..N {
            // The dimension along which operand k is dense although the output is not.
            if cols.strides[k] != 0
                && cols.strides[k].unsigned_abs() > elem[k]
                && let Some(d) = dims.iter().rposition(|d| d.strides[k].unsigned_abs() == elem[k])
            {
                let d = dims.remove(d);
                dims.push(d);
                square = true;
                break;
            }
        }
        let rows = dims.pop().unwrap_or(one);
        let (tile_rows, tile_cols) = if square {
            // 16 elements of 4 bytes are a cache line.
            let r = rows.size.min((room / 64).clamp(16, 64));
            (r, cols.size.min(room / r))
        } else if cols.size * 2 > room {
            (1, cols.size.min(room))
        } else {
            (rows.size.min(room / cols.size.max(1)).max(1), cols.size)
        };
        let (tile_rows, tile_cols) = (tile_rows.max(1), tile_cols.max(1));
        Tiles { outer: dims, down: rows.size.div_ceil(tile_rows), across: cols.size.div_ceil(tile_cols), rows, cols, tile_rows, tile_cols }
    }

    pub fn count(&self) -> usize {
        self.outer.iter().map(|d| d.size).product::<usize>() * self.down * self.across
    }

    /// How many tiles make up some `grain` elements of work.
    pub fn per_grain(&self, grain: usize) -> usize {
        (grain / (self.tile_rows * self.tile_cols)).max(1)
    }

    /// Strides of operand `k` between the rows and columns of a tile.
    pub fn strides(&self, k: usize) -> (isize, isize) {
        (self.rows.strides[k], self.cols.strides[k])
    }

    /// Calls `f` with the tiles `start..end` in order.
    pub fn for_each(&self, start: usize, end: usize, mut f: impl FnMut(StridedTile<N>)) {
        let mut rest = start;
        let mut a = rest % self.across;
        rest /= self.across;
        let mut d = rest % self.down;
        rest /= self.down;
        let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, self.outer.len());
        let mut base = [0isize; N];
        for (i, dim) in self.outer.iter().enumerate().rev() {
            at[i] = rest % dim.size;
            rest /= dim.size;
            for k in 0..N {
                base[k] += at[i] as isize * dim.strides[k];
            }
        }
        for _ in start..end {
            let (r0, c0) = (d * self.tile_rows, a * self.tile_cols);
            let mut offsets = base;
            for k in 0..N {
                offsets[k] += r0 as isize * self.rows.strides[k] + c0 as isize * self.cols.strides[k];
            }
            f(StridedTile { offsets, rows: self.tile_rows.min(self.rows.size - r0), cols: self.tile_cols.min(self.cols.size - c0) });
            a += 1;
            if a < self.across {
                continue;
            }
            a = 0;
            d += 1;
            if d < self.down {
                continue;
            }
            d = 0;
            for (i, dim) in self.outer.iter().enumerate().rev() {
                at[i] += 1;
                for k in 0..N {
                    base[k] += dim.strides[k];
                }
                if at[i] < dim.size {
                    break;
                }
                at[i] = 0;
                for k in 0..N {
                    base[k] -= dim.size as isize * dim.strides[k];
                }
            }
        }
    }
}
