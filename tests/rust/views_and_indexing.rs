//! Views, indexing, gathering, joining: values and gradients of first and second order.

use super::common::{check, tensor, to_vec};
use rgrad::array::{Array, IndexPlan};
use rgrad::autograd::{Tensor, primitives};
use rgrad::error::ErrorKind;
use rgrad::layout::{Complex64, DType, Scalar};
use rgrad::ops::complex;
use rgrad::ops::diagonal;
use rgrad::ops::gather::{self, Reduce};
use rgrad::ops::index::{self, WriteTarget};
use rgrad::ops::indexing::{self, Index};
use rgrad::ops::join::{self, Repeats};
use rgrad::ops::mask;
use rgrad::ops::parts;
use rgrad::ops::pointwise::{Arg, mul};
use rgrad::ops::random::{self, Dist, Generator};
use rgrad::ops::{create, rearrange, shape};

fn positions(data: &[i64], shape: &[usize]) -> Tensor {
    Tensor::new(Array::from_slice(data, shape).unwrap())
}

fn all() -> Index {
    Index::Slice { start: None, stop: None, step: 1 }
}

#[test]
fn views_have_gradients() {
    check("view", &[&[2, 6]], &|x| shape::view(&mul(&x[0], &x[0])?, &[3, -1]));
    check("reshape", &[&[2, 3]], &|x| shape::reshape(&shape::t(&mul(&x[0], &x[0])?)?, &[6]));
    check("flatten", &[&[2, 3, 2]], &|x| shape::flatten(&mul(&x[0], &x[0])?, 1, 2));
    check("unflatten", &[&[2, 6]], &|x| shape::unflatten(&mul(&x[0], &x[0])?, 1, &[2, -1]));
    check("expand", &[&[2, 1]], &|x| shape::expand(&mul(&x[0], &x[0])?, &[3, -1, 2]));
    check("permute", &[&[2, 3, 2]], &|x| shape::permute(&mul(&x[0], &x[0])?, &[2, 0, 1]));
    check("movedim", &[&[2, 3, 2]], &|x| shape::movedim(&mul(&x[0], &x[0])?, &[0], &[-1]));
    check("squeeze", &[&[2, 1, 3]], &|x| shape::squeeze_dim(&mul(&x[0], &x[0])?, 1));
    check("unsqueeze", &[&[2]], &|x| shape::unsqueeze(&mul(&x[0], &x[0])?, -1));
    check("narrow", &[&[4, 2]], &|x| shape::narrow(&mul(&x[0], &x[0])?, 0, -3, 2));
    check("select", &[&[3, 2]], &|x| shape::select(&mul(&x[0], &x[0])?, 0, -1));
    check("diagonal", &[&[3, 4]], &|x| shape::diagonal(&mul(&x[0], &x[0])?, 1, 0, 1));
    check("unfold", &[&[5]], &|x| shape::unfold(&mul(&x[0], &x[0])?, 0, 3, 1));
    check("as_strided", &[&[6]], &|x| shape::as_strided(&mul(&x[0], &x[0])?, &[2, 3], &[1, 2], Some(0)));
    check("unbind", &[&[3, 2]], &|x| {
        let parts = parts::unbind(&mul(&x[0], &x[0])?, 0)?;
        mul(&parts[0], &parts[2])
    });
    check("split", &[&[5]], &|x| {
        let parts = parts::split(&mul(&x[0], &x[0])?, 2, 0)?;
        mul(&parts[0], &parts[1])
    });
    check("tensor_split", &[&[5]], &|x| Ok(parts::tensor_split_at(&mul(&x[0], &x[0])?, &[1, 3], 0)?[1].clone()));
}

#[test]
fn parts_of_one_tensor_share_a_node() {
    let x = tensor(&[1.0, 2.0, 3.0, 4.0], &[4]);
    x.set_requires_grad(true).unwrap();
    let parts = parts::split_sizes(&x, &[1, 3], 0).unwrap();
    let edges: Vec<_> = parts.iter().map(|p| p.grad_fn().unwrap().unwrap()).collect();
    assert!(std::sync::Arc::ptr_eq(&edges[0].node, &edges[1].node));
    assert_eq!((edges[0].nr, edges[1].nr, edges[0].node.name()), (0, 1, "SplitWithSizesBackward0".to_string()));
}

#[test]
fn reading_at_positions_has_gradients() {
    let i = positions(&[2, 0, 2], &[3]);
    let j = positions(&[1, 1, 0], &[3]);
    check("x[i]", &[&[3, 2]], &|x| indexing::get(&mul(&x[0], &x[0])?, &[Index::Tensor(i.clone())]));
    check("x[i, j]", &[&[3, 2]], &|x| indexing::get(&mul(&x[0], &x[0])?, &[Index::Tensor(i.clone()), Index::Tensor(j.clone())]));
    check("x[i, :, j]", &[&[3, 2, 2]], &|x| {
        indexing::get(&mul(&x[0], &x[0])?, &[Index::Tensor(i.clone()), all(), Index::Tensor(j.clone())])
    });
    check("x[..., None, 1:]", &[&[2, 3]], &|x| {
        let tail = Index::Slice { start: Some(1), stop: None, step: 1 };
        indexing::get(&mul(&x[0], &x[0])?, &[Index::Ellipsis, Index::None, tail])
    });
    let mask = Tensor::new(Array::from_slice(&[true, false, true, false, true, true], &[2, 3]).unwrap());
    check("x[mask]", &[&[2, 3]], &|x| indexing::get(&mul(&x[0], &x[0])?, &[Index::Tensor(mask.clone())]));
    check("masked_select", &[&[2, 3]], &|x| mask::masked_select(&mul(&x[0], &x[0])?, &mask));
    check("index_select", &[&[2, 3]], &|x| index::index_select(&mul(&x[0], &x[0])?, 1, &i));
    check("take", &[&[2, 3]], &|x| index::take(&mul(&x[0], &x[0])?, &positions(&[5, -1, 0], &[3])));
    let g = positions(&[0, 2, 2, 1, 0, 0, 1, 2], &[2, 4]);
    check("gather", &[&[2, 3]], &|x| gather::gather(&mul(&x[0], &x[0])?, 1, &g));
    check("take_along_dim", &[&[2, 3]], &|x| gather::take_along_dim(&mul(&x[0], &x[0])?, &positions(&[-1, 0], &[1, 2]), Some(1)));
}

#[test]
fn writing_at_positions_has_gradients() {
    let i = positions(&[2, 0], &[2]);
    let plan = || IndexPlan::of([0usize].into_iter().collect());
    let twice = positions(&[1, 1, 2], &[3]);
    check("index_put", &[&[3, 2], &[2, 2]], &|x| {
        index::index_put(WriteTarget::New, &mul(&x[0], &x[0])?, plan(), std::slice::from_ref(&i), &mul(&x[1], &x[1])?, false)
    });
    check("index_put broadcast", &[&[3, 2], &[2]], &|x| {
        index::index_put(WriteTarget::New, &mul(&x[0], &x[0])?, plan(), std::slice::from_ref(&i), &mul(&x[1], &x[1])?, false)
    });
    check("index_put accumulate", &[&[3, 2], &[3, 2]], &|x| {
        index::index_put(WriteTarget::New, &mul(&x[0], &x[0])?, plan(), std::slice::from_ref(&twice), &mul(&x[1], &x[1])?, true)
    });
    check("index_add", &[&[3, 2], &[3, 2]], &|x| {
        index::index_add(WriteTarget::New, &mul(&x[0], &x[0])?, 0, &twice, &mul(&x[1], &x[1])?, Scalar::Float(0.5))
    });
    check("index_copy", &[&[3, 2], &[2, 2]], &|x| index::index_copy(WriteTarget::New, &mul(&x[0], &x[0])?, 0, &i, &mul(&x[1], &x[1])?));
    check("index_fill", &[&[3, 2]], &|x| index::index_fill(WriteTarget::New, &mul(&x[0], &x[0])?, 0, &i, Arg::Scalar(2.0.into())));
    let g = positions(&[0, 2, 1, 0], &[2, 2]);
    for how in [Reduce::Set, Reduce::Add] {
        check("scatter", &[&[2, 3], &[2, 2]], &|x| {
            gather::scatter(WriteTarget::New, &mul(&x[0], &x[0])?, 1, &g, Arg::Tensor(&mul(&x[1], &x[1])?), how)
        });
    }
    let mask = Tensor::new(Array::from_slice(&[true, false, true], &[3]).unwrap());
    check("masked_fill", &[&[2, 3], &[]], &|x| {
        gather::masked_fill(WriteTarget::New, &mul(&x[0], &x[0])?, &mask, Arg::Tensor(&mul(&x[1], &x[1])?))
    });
    check("masked_scatter", &[&[3], &[4]], &|x| mask::masked_scatter(WriteTarget::New, &mul(&x[0], &x[0])?, &mask, &mul(&x[1], &x[1])?));
    check("x[1:] = y", &[&[3, 2], &[2]], &|x| {
        let z = mul(&x[0], &x[0])?;
        indexing::set(&z, &[Index::Slice { start: Some(1), stop: None, step: 1 }], Arg::Tensor(&mul(&x[1], &x[1])?))?;
        mul(&z, &z)
    });
    check("x[i] = y", &[&[3, 2], &[2, 2]], &|x| {
        let z = mul(&x[0], &x[0])?;
        indexing::set(&z, &[Index::Tensor(i.clone())], Arg::Tensor(&mul(&x[1], &x[1])?))?;
        mul(&z, &z)
    });
}

#[test]
fn joining_and_rearranging_have_gradients() {
    check("cat", &[&[2, 3], &[2, 1]], &|x| join::cat(&[mul(&x[0], &x[0])?, mul(&x[1], &x[1])?], 1));
    check("stack", &[&[2], &[2]], &|x| join::stack(&[mul(&x[0], &x[0])?, mul(&x[1], &x[1])?], 1));
    check("flip", &[&[2, 3]], &|x| rearrange::flip(&mul(&x[0], &x[0])?, &[0, -1]));
    check("roll", &[&[2, 3]], &|x| rearrange::roll(&mul(&x[0], &x[0])?, &[1, -2], &[0, 1]));
    check("repeat", &[&[2, 3]], &|x| join::repeat(&mul(&x[0], &x[0])?, &[2, 2, 1]));
    check("repeat_interleave", &[&[3]], &|x| {
        join::repeat_interleave(&mul(&x[0], &x[0])?, Repeats::Tensor(&positions(&[1, 0, 2], &[3])), Some(0), None)
    });
    check("tril", &[&[2, 3, 3]], &|x| diagonal::triangle(WriteTarget::New, &mul(&x[0], &x[0])?, 0, false));
    check("triu", &[&[3, 2]], &|x| diagonal::triangle(WriteTarget::New, &mul(&x[0], &x[0])?, 1, true));
    check("diag_embed", &[&[2, 2]], &|x| diagonal::diag_embed(&mul(&x[0], &x[0])?, 1, 0, -1));
    check("diag", &[&[3, 3]], &|x| diagonal::diag(&mul(&x[0], &x[0])?, -1));
    check("trace", &[&[3, 2]], &|x| diagonal::trace(&mul(&x[0], &x[0])?));
    check("meshgrid", &[&[2], &[3]], &|x| {
        let g = join::meshgrid(&[mul(&x[0], &x[0])?, mul(&x[1], &x[1])?], true)?;
        mul(&g[0], &g[1])
    });
    check("rot90", &[&[2, 3]], &|x| rearrange::rot90(&mul(&x[0], &x[0])?, -1, &[0, 1]));
}

#[test]
fn refused_writes_change_nothing() {
    let x = tensor(&[1.0, 2.0, 3.0], &[3]);
    let bad = positions(&[0, 3], &[2]);
    let e = indexing::set(&x, &[Index::Tensor(bad.clone())], Arg::Scalar(9.0.into())).unwrap_err();
    assert_eq!((e.kind(), e.message()), (ErrorKind::Index, "index 3 is out of bounds for dimension 0 with size 3"));
    assert!(gather::scatter(WriteTarget::Same, &x, 0, &bad, Arg::Scalar(9.0.into()), Reduce::Set).is_err());
    assert_eq!(to_vec(&x), [1.0, 2.0, 3.0]);
    assert_eq!(x.version(), Some(0));
}

#[test]
fn sequences_end_where_they_should() {
    let v = |t: Tensor| to_vec(&t);
    let arange = |a: f64, b: f64, c: f64| create::arange(a.into(), b.into(), c.into(), None).map(v);
    assert_eq!(arange(0.0, 1.0, 0.25).unwrap(), [0.0, 0.25, 0.5, 0.75]);
    assert_eq!(v(create::arange(5i64.into(), 0i64.into(), (-2i64).into(), None).unwrap()), [5.0, 3.0, 1.0]);
    assert!(arange(0.0, 1.0, 0.0).is_err() && arange(0.0, f64::INFINITY, 1.0).is_err() && arange(1.0, 0.0, 1.0).is_err());
    assert_eq!(v(create::linspace(0.0, 1.0, 3, Some(DType::F64)).unwrap()), [0.0, 0.5, 1.0]);
    assert_eq!(v(create::linspace(2.0, 9.0, 1, None).unwrap()), [2.0]);
    assert_eq!(v(create::eye(2, Some(3), DType::I64).unwrap()), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn random_numbers_depend_on_the_seed_alone() {
    let draw = |threads: usize| {
        rgrad_kernels::host::threads::set_num_threads(threads);
        let g = Generator::new(5);
        let a = random::sample(&[100_003], DType::F32, Dist::Normal { mean: 0.0, std: 1.0 }, Some(&g)).unwrap();
        let p = random::randperm(1000, DType::I64, Some(&g)).unwrap();
        (a.array().unwrap().to_vec::<f32>().unwrap(), p.array().unwrap().to_vec::<i64>().unwrap())
    };
    let (one, order) = draw(1);
    assert!(draw(2) == (one.clone(), order.clone()) && draw(7) == (one, order.clone()));
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert!(sorted.iter().enumerate().all(|(i, v)| i as i64 == *v) && sorted != order);
    let g = Generator::new(1);
    let state = g.state();
    let first = random::sample(&[4], DType::F64, Dist::Uniform { from: 0.0, to: 1.0 }, Some(&g)).unwrap();
    g.set_state(&state).unwrap();
    let again = random::sample(&[4], DType::F64, Dist::Uniform { from: 0.0, to: 1.0 }, Some(&g)).unwrap();
    assert_eq!(to_vec(&first), to_vec(&again));
    assert!(random::sample(&[2], DType::I64, Dist::Normal { mean: 0.0, std: 1.0 }, None).is_err());
}

#[test]
fn a_lazy_conjugate_shares_memory_and_is_computed_when_it_is_read() {
    let c = |re: f64, im: f64| Complex64::new(re, im);
    let x = Tensor::new(Array::from_slice(&[c(1.0, 2.0), c(3.0, -4.0)], &[2]).unwrap());
    let y = complex::conj(&x).unwrap();
    let values = |t: &Tensor| t.array().unwrap().to_vec::<Complex64>().unwrap();
    assert!(y.is_conj() && y.memory().ptr() == x.memory().ptr() && y.base().is_some_and(|b| b.same(&x)));
    assert_eq!(values(&y), [c(1.0, -2.0), c(3.0, 4.0)]);
    primitives::copy_(&y, &x).unwrap();
    assert_eq!(values(&x), [c(1.0, -2.0), c(3.0, 4.0)]);
    let im = complex::imag(&y).unwrap();
    assert!(im.is_neg() && im.array().unwrap().to_vec::<f64>().unwrap() == [2.0, -4.0]);
    assert!(complex::view_as_real(&y).is_err() && !complex::resolve_conj(&y).unwrap().is_conj());
}
