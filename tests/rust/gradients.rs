//! Derivatives of every family that is not pointwise, by central differences.

use super::common::{check, check_at, gradients, leaf, tensor, to_vec, values};
use rgrad::autograd::{Tensor, ViewOp, view};
use rgrad::error::ErrorKind;
use rgrad::layout::{DType, Scalar};
use rgrad::ops::loss::Reduction;
use rgrad::ops::{addmm, diagonal, einsum, extreme, loss, matmul, norm, order, pointwise as pw, reduce, scan, softmax};
use rgrad::{Array, Error};

/// Dims, keepdim.
const OVER: [(Option<&[i64]>, bool); 5] =
    [(None, false), (Some(&[0]), false), (Some(&[1]), true), (Some(&[0, -1]), false), (Some(&[-1]), false)];

fn transposed(t: &Tensor) -> Tensor {
    view(t, ViewOp::Transpose(0, 1)).unwrap()
}

#[test]
fn sums_means_and_spreads() {
    for (dims, keep) in OVER {
        let name = format!("{dims:?} {keep}");
        check(&format!("sum {name}"), &[&[3, 4]], &|x| reduce::sum(&x[0], dims, keep, None));
        check(&format!("mean {name}"), &[&[3, 4]], &|x| reduce::mean(&transposed(&x[0]), dims, keep, None));
        check(&format!("var {name}"), &[&[3, 4]], &|x| reduce::var(&x[0], dims, 1.0, keep));
        check(&format!("std {name}"), &[&[3, 4]], &|x| reduce::std(&transposed(&x[0]), dims, 0.0, keep));
        check(&format!("amax {name}"), &[&[3, 4]], &|x| extreme::amax(&x[0], true, dims, keep));
        check(&format!("amin {name}"), &[&[3, 4]], &|x| extreme::amax(&x[0], false, dims, keep));
        check(&format!("logsumexp {name}"), &[&[3, 4]], &|x| norm::logsumexp(&x[0], dims.unwrap_or(&[]), keep));
        for p in [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, -1.0, f64::INFINITY, f64::NEG_INFINITY] {
            check(&format!("norm {p} {name}"), &[&[3, 4]], &|x| norm::norm(&x[0], p, dims, keep, None));
        }
    }
    check("nansum", &[&[5]], &|x| reduce::nansum(&x[0], None, false, None));
    check("sum of a number", &[&[]], &|x| reduce::sum(&x[0], Some(&[0]), false, None));
    check("trace", &[&[3, 4]], &|x| diagonal::trace(&x[0]));
}

#[test]
fn products_with_zeros() {
    for zeros in 0..3 {
        let mut v = values(6, 5);
        for (i, z) in [1, 2].into_iter().enumerate() {
            if i < zeros {
                v[z] = 0.0;
            }
        }
        let at = [(v, vec![2, 3])];
        check_at(&format!("prod, {zeros} zeros"), &at, &|x| reduce::prod(&x[0], None, false, None));
        check_at(&format!("prod over 1, {zeros} zeros"), &at, &|x| reduce::prod(&x[0], Some(1), true, None));
        check_at(&format!("prod over 0, {zeros} zeros"), &at, &|x| reduce::prod(&x[0], Some(0), false, None));
        check_at(&format!("cumprod, {zeros} zeros"), &at, &|x| scan::cumprod(&x[0], 1, None));
    }
    check("cumsum", &[&[3, 4]], &|x| scan::cumsum(&x[0], 0, None));
    check("cumsum from behind", &[&[3, 4]], &|x| scan::cumsum(&transposed(&x[0]), -1, None));
    check("cumprod of a number", &[&[]], &|x| scan::cumprod(&x[0], 0, None));
}

#[test]
fn choices_and_orders() {
    for dim in [0, 1] {
        check("max", &[&[3, 4]], &|x| Ok(extreme::max_along(&x[0], true, dim, false)?.0));
        check("min", &[&[3, 4]], &|x| Ok(extreme::max_along(&transposed(&x[0]), false, dim, true)?.0));
        check("sort", &[&[3, 4]], &|x| Ok(order::sort(&x[0], dim, true)?.0));
        check("topk", &[&[3, 4]], &|x| Ok(order::topk(&x[0], 2, dim, dim == 0)?.0));
        check("kthvalue", &[&[3, 4]], &|x| Ok(order::kthvalue(&x[0], 2, dim, false)?.0));
        check("median", &[&[3, 4]], &|x| Ok(order::median(&x[0], dim, true, false)?.0));
    }
    check("max of all", &[&[3, 4]], &|x| extreme::max_of_all(&x[0], true));
    check("median of all", &[&[3, 4]], &|x| extreme::median_of_all(&x[0], false));
}

#[test]
fn softmaxes() {
    for dim in [0, 1, -1] {
        check("softmax", &[&[3, 4, 2]], &|x| softmax::softmax(&x[0], dim, None));
        check("log_softmax", &[&[3, 4, 2]], &|x| softmax::log_softmax(&transposed(&x[0]), dim, None));
    }
    check("softmax of a number", &[&[]], &|x| softmax::softmax(&x[0], 0, None));
}

#[test]
fn matrix_products() {
    let cases: [(&[usize], &[usize]); 13] = [
        (&[2, 3], &[3, 4]),
        (&[3], &[3]),
        (&[2, 3], &[3]),
        (&[3], &[3, 2]),
        (&[2, 2, 3], &[2, 3, 2]),
        (&[2, 2, 3], &[3]),
        (&[3], &[2, 3, 2]),
        (&[2, 2, 3], &[3, 2]),
        (&[2, 3], &[2, 3, 2]),
        (&[2, 1, 2, 3], &[3, 3, 2]),
        (&[2, 0], &[0, 2]),
        (&[0, 3], &[3, 2]),
        (&[1, 1], &[1, 1]),
    ];
    for (a, b) in cases {
        check(&format!("matmul {a:?} {b:?}"), &[a, b], &|x| matmul::matmul(&x[0], &x[1]));
    }
    check("matmul of transposed", &[&[3, 2], &[4, 3]], &|x| matmul::matmul(&transposed(&x[0]), &transposed(&x[1])));
    check("outer", &[&[3], &[2]], &|x| matmul::outer(&x[0], &x[1]));
    for c in [&[2usize, 4][..], &[4], &[2, 1], &[]] {
        check(&format!("addmm {c:?}"), &[c, &[2, 3], &[3, 4]], &|x| {
            addmm::addmm(&x[0], &x[1], &x[2], Scalar::Float(0.5), Scalar::Float(2.0))
        });
    }
    check("baddbmm", &[&[2, 4], &[3, 2, 3], &[3, 3, 4]], &|x| addmm::baddbmm(&x[0], &x[1], &x[2], Scalar::Int(1), Scalar::Float(-1.0)));
    for x in [&[2usize, 3][..], &[3], &[2, 2, 3]] {
        check(&format!("linear {x:?}"), &[x, &[4, 3], &[4]], &|t| matmul::linear(&t[0], &t[1], Some(&t[2])));
        check(&format!("linear {x:?} without bias"), &[x, &[4, 3]], &|t| matmul::linear(&t[0], &t[1], None));
    }
}

#[test]
fn einsums() {
    let cases: [(&str, &[&[usize]]); 14] = [
        ("ij,jk->ik", &[&[2, 3], &[3, 2]]),
        ("bij,bjk->bik", &[&[2, 2, 3], &[2, 3, 2]]),
        ("...ij,...jk->...ik", &[&[2, 1, 2, 3], &[3, 3, 2]]),
        ("ij,ij->", &[&[2, 3], &[2, 3]]),
        ("ij,kj", &[&[2, 3], &[4, 3]]),
        ("ij->ji", &[&[2, 3]]),
        ("ii", &[&[3, 3]]),
        ("ii->i", &[&[3, 3]]),
        ("iij->ij", &[&[2, 2, 3]]),
        ("i,j->ij", &[&[2], &[3]]),
        ("bi,ij,bj->b", &[&[2, 3], &[3, 2], &[2, 2]]),
        ("b...->...b", &[&[2, 3]]),
        ("ij,jk->ik", &[&[2, 1], &[3, 2]]),
        ("a b, b c -> a c", &[&[2, 3], &[3, 2]]),
    ];
    for (eq, shapes) in cases {
        check(eq, shapes, &|x| einsum::einsum(eq, x));
    }
    let e = einsum::einsum("ij,jk", &[tensor(&[0.0; 6], &[2, 3]), tensor(&[0.0; 8], &[4, 2])]).unwrap_err();
    assert!(e.message().contains("subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3"), "{e}");
}

#[test]
fn losses() {
    let classes = |n: &[i64]| Tensor::new(Array::from_slice(n, &[n.len()]).unwrap());
    let weight = tensor(&[0.5, 2.0, 1.5, 0.7], &[4]);
    for how in [Reduction::None, Reduction::Mean, Reduction::Sum] {
        check("mse", &[&[2, 3], &[2, 3]], &|x| loss::mse_loss(&x[0], &x[1], how));
        check("l1", &[&[2, 3], &[3]], &|x| loss::l1_loss(&x[0], &pw::add(&x[1], 4.0)?, how));
        check("smooth l1", &[&[2, 3], &[2, 3]], &|x| loss::smooth_l1_loss(&x[0], &x[1], how, 0.7));
        check("huber", &[&[2, 3], &[2, 3]], &|x| loss::huber_loss(&x[0], &x[1], how, 0.7));
        for w in [None, Some(&weight)] {
            check("bce with logits", &[&[2, 4], &[2, 4]], &|x| {
                loss::binary_cross_entropy_with_logits(&x[0], &pw::sigmoid(&x[1])?, w, w, how)
            });
            check("bce", &[&[2, 4], &[2, 4]], &|x| loss::binary_cross_entropy(&pw::sigmoid(&x[0])?, &pw::sigmoid(&x[1])?, w, how));
            let t = classes(&[1, 3, 0]);
            check("nll", &[&[3, 4]], &|x| loss::nll_loss(&x[0], &t, w, how, 3));
            for smoothing in [0.0, 0.2] {
                check("cross entropy", &[&[3, 4]], &|x| loss::cross_entropy(&x[0], &t, w, how, 3, smoothing));
                check("cross entropy of probabilities", &[&[3, 4], &[3, 4]], &|x| {
                    loss::cross_entropy(&x[0], &softmax::softmax(&x[1], 1, None)?, w, how, -100, smoothing)
                });
            }
        }
    }
    let t = Tensor::new(Array::from_slice(&[1i64, 0, 2, 2], &[2, 2]).unwrap());
    check("nll in two dims", &[&[2, 4, 2]], &|x| loss::cross_entropy(&x[0], &t, None, Reduction::Mean, -100, 0.0));
    let one = Tensor::new(Array::scalar(Scalar::Int(2), DType::I64).unwrap());
    check("nll of one", &[&[4]], &|x| loss::cross_entropy(&x[0], &one, None, Reduction::Mean, -100, 0.0));
}

#[test]
fn special_points_follow_pytorch() {
    let grad = |x: &Tensor, y: Result<Tensor, Error>| to_vec(&gradients(&y.unwrap(), std::slice::from_ref(x), false).unwrap()[0]);
    let x = leaf(&[2.0, 1.0, 2.0, 2.0], &[4]);
    assert_eq!(grad(&x, extreme::amax(&x, true, None, false)), [1.0 / 3.0, 0.0, 1.0 / 3.0, 1.0 / 3.0]);
    assert_eq!(grad(&x, Ok(extreme::max_along(&x, true, 0, false).unwrap().0)), [1.0, 0.0, 0.0, 0.0]);
    let zero = leaf(&[0.0, 0.0], &[2]);
    for p in [0.5, 1.0, 1.5, 2.0, 3.0] {
        assert_eq!(grad(&zero, norm::norm(&zero, p, None, false, None)), [0.0, 0.0], "norm of order {p} at 0");
    }
    let same = leaf(&[3.0, 3.0], &[2]);
    assert_eq!(grad(&same, reduce::std(&same, None, 1.0, false)), [0.0, 0.0]);
    let nan = to_vec(&reduce::var(&leaf(&[1.0], &[1]), None, 1.0, false).unwrap());
    assert!(nan[0].is_nan());
    let inf = leaf(&[f64::INFINITY, 1.0], &[2]);
    assert_eq!(to_vec(&norm::logsumexp(&inf, &[0], false).unwrap()), [f64::INFINITY]);
    let low = leaf(&[f64::NEG_INFINITY, f64::NEG_INFINITY], &[2]);
    assert_eq!(to_vec(&norm::logsumexp(&low, &[0], false).unwrap()), [f64::NEG_INFINITY]);
}

#[test]
fn reductions_of_nothing() {
    let e = tensor(&[], &[0]);
    assert_eq!(to_vec(&reduce::sum(&e, None, false, None).unwrap()), [0.0]);
    assert_eq!(to_vec(&reduce::prod(&e, None, false, None).unwrap()), [1.0]);
    assert!(to_vec(&reduce::mean(&e, None, false, None).unwrap())[0].is_nan());
    assert_eq!(to_vec(&norm::logsumexp(&e, &[0], false).unwrap()), [f64::NEG_INFINITY]);
    let message = |r: Result<Tensor, Error>| r.unwrap_err();
    assert!(message(extreme::amax(&e, true, None, false)).message().contains("Expected reduction dim to be specified"));
    assert_eq!(message(extreme::argmax(&e, true, Some(0), false)).kind(), ErrorKind::Index);
    let wide = tensor(&[], &[2, 0]);
    assert!(message(extreme::amax(&wide, true, Some(&[1]), false)).message().contains("Expected reduction dim 1 to have non-zero size"));
    assert_eq!(extreme::amax(&wide, true, Some(&[0]), false).unwrap().shape()[..], [0]);
    assert!(message(norm::norm(&e, f64::INFINITY, None, false, None)).message().contains("does not have an identity"));
}
