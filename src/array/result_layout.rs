//! The order of dimensions in memory of a pointwise result.

use super::value::Array;
use crate::layout::{Layout, Strides};
use smallvec::SmallVec;

/// The layout of a pointwise result; None if it is row-major.
#[inline]
pub(super) fn of_result(shape: &[usize], ins: &[&Array]) -> Option<Layout> {
    if ins.iter().all(|a| a.is_contiguous()) || ins.first().is_some_and(|a| a.is_contiguous() && a.shape() == shape) {
        return None;
    }
    Some(ordered(shape, ins))
}

/// Dense, with the dimensions in the order of the operands' strides. As in PyTorch the first operand that tells two dimensions apart decides about
/// them: one that is broadcast along either does not.
fn ordered(shape: &[usize], ins: &[&Array]) -> Layout {
    let rank = shape.len();
    let stride = |a: &Array, d: usize| match (d + a.rank()).checked_sub(rank) {
        Some(at) if a.shape()[at] != 1 || shape[d] == 1 => a.strides()[at],
        _ => 0,
    };
    let is_faster = |p: usize, q: usize| {
        ins.iter().find_map(|a| {
            let (fast, slow) = (stride(a, p), stride(a, q));
            let undecided = fast == 0 || slow == 0 || (fast == slow && shape[p] <= shape[q]);
            (!undecided).then_some(fast < slow)
        })
    };
    // From the fastest dimension on. Where nothing decides, the search continues past the other dimension.
    let mut order: SmallVec<[usize; 8]> = (0..rank).rev().collect();
    for i in 1..rank {
        let mut at = i;
        for j in (0..i).rev() {
            match is_faster(order[j], order[at]) {
                None => {}
                Some(true) => break,
                Some(false) => {
                    order.swap(j, at);
                    at = j;
                }
            }
        }
    }
    // The places in the order are strides enough for `dense_like`, which sorts them.
    let mut places = Strides::from_elem(0, rank);
    order.iter().enumerate().for_each(|(place, d)| places[*d] = place as isize + 1);
    Layout::dense_like(shape, &places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::DType;

    #[test]
    fn the_first_operand_that_is_not_broadcast_decides() {
        let base = Array::empty(&[3, 2], DType::F32).unwrap();
        let turned = base.with_layout(base.layout().permute(&[1, 0])).unwrap();
        let row = Array::empty(&[1, 3], DType::F32).unwrap();
        let plain = Array::empty(&[2, 3], DType::F32).unwrap();
        assert_eq!(of_result(&[2, 3], &[&row, &turned]).unwrap().strides(), &[1, 2]);
        assert_eq!(of_result(&[2, 3], &[&turned, &plain]).unwrap().strides(), &[1, 2]);
        assert!(of_result(&[2, 3], &[&plain, &turned]).is_none());
        assert!(of_result(&[2, 3], &[&row, &plain]).is_none());
    }
}
