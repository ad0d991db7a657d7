//! Products of matrices.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen};

/// (..., m, k) and (..., k, n) give (..., m, n). All have the same leading sizes. Where `Backend::adds_bias` holds, a third operand (n), dense,
/// is added to each row of the result.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Matmul;

/// The last two sizes, 0 where there are fewer.
fn last_two(shape: &[usize]) -> [usize; 2] {
    let r = shape.len();
    if r < 2 { [0, 0] } else { [shape[r - 2], shape[r - 1]] }
}

impl Family for Matmul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn elems(&self) -> Elems {
        Elems::numbers("PyTorch has no product of matrices of bool")
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let ([Some((a, da)), Some((b, db)), bias @ ..], [Some((o, d))]) = (ins, outs) else { return false };
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

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        let (first, out) = (ins.first().copied().flatten(), outs.first().copied().flatten());
        let sizes = out.into_iter().flat_map(|(o, _)| o).chain(first.and_then(|(a, _)| a.last()));
        sizes.fold(1, |n, k| n.saturating_mul(*k as u64))
    }

    fn outputs(&self) -> usize {
        1
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        Flags::EPILOGUE
    }

    fn samples() -> Vec<Self> {
        vec![Matmul]
    }
}
