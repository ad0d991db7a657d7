//! Balancing before eigenvalues are computed: rows and columns are permuted so that eigenvalues which stand alone are found at once, and scaled by
//! powers of two so that their sizes are alike (Parlett and Reinsch 1969, "Balancing a matrix for calculation of eigenvalues and eigenvectors").

use super::number::LinearNumber;

/// What was done to a matrix. Rows and columns outside of `low..=high` are triangular already.
pub(super) struct Balance {
    pub low: usize,
    pub high: usize,
    /// The rows (and columns) that were exchanged, in this order.
    swaps: Vec<(usize, usize)>,
    /// By what column i was multiplied and row i divided.
    scales: Vec<f64>,
}

/// A scale stays within these powers of two, so that no product with one overflows.
const MOST: f64 = 1e120;
/// By how much the sizes must fall for another pass to be worth it.
const ENOUGH: f64 = 0.95;

fn exchange<T: LinearNumber>(n: usize, a: &mut [T], (i, j): (usize, usize)) {
    (0..n).for_each(|c| a.swap(i * n + c, j * n + c));
    (0..n).for_each(|r| a.swap(r * n + i, r * n + j));
}

impl Balance {
    /// Balances `a` (n, n), n not 0.
    pub fn of<T: LinearNumber<Real = f64>>(n: usize, a: &mut [T]) -> Balance {
        let mut made = Balance { low: 0, high: n - 1, swaps: Vec::new(), scales: vec![1.0; n] };
        // Rows that have nothing beside the diagonal come last, such columns first.
        while made.high > 0 {
            let is_alone = |j: &usize| (0..=made.high).all(|c| c == *j || a[j * n + c] == T::ZERO);
            let Some(j) = (0..=made.high).rev().find(is_alone) else { break };
            made.exchange(n, a, (j, made.high));
            made.high -= 1;
        }
        while made.low < made.high {
            let is_alone = |j: &usize| (made.low..=made.high).all(|r| r == *j || a[r * n + j] == T::ZERO);
            let Some(j) = (made.low..=made.high).find(is_alone) else { break };
            made.exchange(n, a, (j, made.low));
            made.low += 1;
        }
        while made.scale(n, a) {}
        made
    }

    fn exchange<T: LinearNumber>(&mut self, n: usize, a: &mut [T], pair: (usize, usize)) {
        if pair.0 != pair.1 {
            exchange(n, a, pair);
            self.swaps.push(pair);
        }
    }

    /// One pass over the rows and columns. Whether it changed something.
    fn scale<T: LinearNumber<Real = f64>>(&mut self, n: usize, a: &mut [T]) -> bool {
        let mut changed = false;
        for i in self.low..=self.high {
            let others = || (self.low..=self.high).filter(|k| *k != i);
            let mut column: f64 = others().map(|k| a[k * n + i].size()).sum();
            let mut row: f64 = others().map(|k| a[i * n + k].size()).sum();
            if column == 0.0 || row == 0.0 {
                continue;
            }
            let (before, mut by) = (column + row, 1.0);
            while column < row / 2.0 && by < MOST {
                (by, column, row) = (by * 2.0, column * 2.0, row / 2.0);
            }
            while column / 2.0 >= row && by > 1.0 / MOST {
                (by, column, row) = (by / 2.0, column / 2.0, row * 2.0);
            }
            let whole = self.scales[i] * by;
            if column + row >= ENOUGH * before || !(1.0 / MOST..=MOST).contains(&whole) {
                continue;
            }
            (self.scales[i], changed) = (whole, true);
            for k in 0..n {
                a[i * n + k] = a[i * n + k].scaled(1.0 / by);
                a[k * n + i] = a[k * n + i].scaled(by);
            }
        }
        changed
    }

    /// Makes eigenvectors of the balanced matrix, the rows of `vectors` (n, n), those of the matrix.
    pub fn undo<T: LinearNumber<Real = f64>>(&self, n: usize, vectors: &mut [T]) {
        for row in vectors.chunks_exact_mut(n) {
            row.iter_mut().zip(&self.scales).for_each(|(v, by)| *v = v.scaled(*by));
            self.swaps.iter().rev().for_each(|(i, j)| row.swap(*i, *j));
        }
    }
}
