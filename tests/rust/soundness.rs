//! What safe functions refuse: layouts that reach out of their memory, operands that do not belong together, writes to memory that was
//! lent for reading. And what they read of memory that others write: positions are checked as they are used, bytes are no `bool`.

use super::common::Along as _;
use rgrad::array::{Array, Bounds, Device, IndexPlan, Numbers, Storage, Write};
use rgrad::autograd::{Tensor, ViewOp, view};
use rgrad::call::{Classes, NllReduction as Reduction, ScanKind, SoftmaxPass, Sort};
use rgrad::error::Result;
use rgrad::layout::{DType, Dims, Layout, Scalar, Strides};
use rgrad::ops::{create, shape};
use rgrad::rows::{Func, RowId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};

fn layout(shape: &[usize], strides: &[isize], offset: usize) -> Layout {
    Layout::from_parts(Dims::from_slice(shape), Strides::from_slice(strides), offset).unwrap()
}

fn zeros(shape: &[usize]) -> Array {
    Array::zeros(shape, DType::F32).unwrap()
}

fn ints(data: &[i64]) -> Array {
    Array::from_slice(data, &[data.len()]).unwrap()
}

/// An array over memory that Rust can write at the same time, through atomics.
fn over<T: Sync + Send + 'static>(memory: &Arc<Vec<T>>, dtype: DType, writable: bool) -> Array {
    let bytes = size_of_val(&memory[..]);
    assert_eq!(bytes, memory.len() * dtype.size());
    // SAFETY: the vector lives in the box; its elements are atomics, which may be written through shared references.
    let storage = unsafe { Storage::external(memory.as_ptr() as *mut u8, bytes, writable, Box::new(memory.clone())) };
    Array::from_parts(storage, Layout::contiguous(&[memory.len()]), dtype).unwrap()
}

const HUGE: usize = 1 << 62;

#[test]
fn layouts_stay_inside_their_storage() {
    let a = zeros(&[4, 5]);
    let fits = [
        layout(&[4, 5], &[5, 1], 0),
        layout(&[5, 4], &[1, 5], 0),
        layout(&[20], &[1], 0),
        layout(&[], &[], 19),
        layout(&[3, 7], &[0, 0], 19),
        layout(&[2], &[19], 0),
        layout(&[1, 1], &[isize::MAX, isize::MIN], 19),
        layout(&[0, 9], &[-5, 1], 30),
        layout(&[HUGE, HUGE, 0], &[1, 1, 1], 0),
    ];
    for l in fits {
        assert!(a.with_layout(l.clone()).is_ok(), "{l:?}");
    }
    let outside = [
        layout(&[21], &[1], 0),
        layout(&[4, 5], &[5, 1], 1),
        layout(&[], &[], 20),
        layout(&[2], &[20], 0),
        layout(&[2], &[-1], 5),
        layout(&[2, 2], &[-1, 1], 10),
        layout(&[HUGE, HUGE], &[0, 0], 0),
        layout(&[1 << 63, 2], &[0, 0], 0),
        layout(&[2], &[isize::MAX], 1),
        layout(&[3, 3], &[isize::MAX / 2, isize::MAX / 2], 0),
        layout(&[2], &[isize::MIN], 0),
        layout(&[1], &[1], usize::MAX),
        layout(&[], &[], usize::MAX / 4 + 1),
        layout(&[0], &[1], usize::MAX),
    ];
    for l in outside {
        let e = a.with_layout(l.clone()).expect_err(&format!("{l:?}"));
        assert!(e.message().contains("reaches out of a storage of 80 bytes"), "{e}");
        assert!(Array::from_parts(a.storage().clone(), l, DType::F32).is_err());
    }
    assert!(Layout::from_parts(Dims::from_slice(&[2, 2]), Strides::from_slice(&[1]), 0).is_err());
    // The same memory has fewer elements of a larger type.
    assert!(Array::from_parts(a.storage().clone(), Layout::contiguous(&[10]), DType::F64).is_ok());
    assert!(Array::from_parts(a.storage().clone(), Layout::contiguous(&[11]), DType::F64).is_err());
}

#[test]
fn views_by_place_stay_inside() {
    let x = Tensor::new(zeros(&[6]));
    let strided = |shape: &[usize], strides: &[isize], offset| {
        view(&x, ViewOp::AsStrided { shape: Dims::from_slice(shape), strides: Strides::from_slice(strides), offset })
    };
    assert!(strided(&[2, 3], &[3, 1], 0).is_ok());
    for (s, t, o) in
        [(&[2usize, 3][..], &[3isize, 1][..], 1), (&[7], &[1], 0), (&[2], &[isize::MAX], 0), (&[HUGE, 8], &[0, 0], 0), (&[1], &[1], 6)]
    {
        assert!(strided(s, t, o).is_err(), "{s:?} {t:?} {o}");
    }
    assert!(view(&x, ViewOp::View(Dims::from_slice(&[7]))).is_err());
    assert!(shape::as_strided(&x, &[3], &[3], Some(0)).is_err());
    assert!(create::empty_strided(&[HUGE, 4], &[8, 1], DType::F32).is_err());
}

#[test]
fn kernels_get_as_many_operands_as_they_read_and_room_for_what_they_write() {
    let (a, b) = (zeros(&[8]), zeros(&[8]));
    let add = Func::forward(RowId::Add);
    let params = [Scalar::Int(0); 3];
    for ins in [&[][..], &[&a][..], &[&a, &b, &a][..], &[&a, &b, &a, &b, &a, &b][..]] {
        assert!(Array::pointwise(add, DType::F32, DType::F32, ins, &[]).is_err());
        assert!(Array::pointwise_direct(add, DType::F32, ins, &Numbers::NONE, &params).is_none());
        assert!(a.pointwise_into(add, DType::F32, ins, &[]).is_err());
        assert!(!a.pointwise_direct_into(add, ins, &Numbers::NONE, &params));
    }
    assert!(Array::pointwise(add, DType::F32, DType::F32, &[&a, &b], &[Scalar::Int(0); 4]).is_err());
    // Eight bytes would be written for each of four.
    assert!(Array::pointwise(add, DType::F64, DType::F32, &[&a, &b], &[]).is_err());
    assert!(Array::pointwise(Func::forward(RowId::Lt), DType::F32, DType::F32, &[&a, &b], &[]).is_err());
    assert!(a.pointwise_into(add, DType::F64, &[&a, &b], &[]).is_err());
    let wide = zeros(&[9]);
    assert!(Array::pointwise_direct(add, DType::F32, &[&a, &wide], &Numbers::NONE, &params).is_none());
    assert!(a.pointwise_into(add, DType::F32, &[&a, &wide], &[]).is_err());
    assert!(Array::pointwise(add, DType::F32, DType::F32, &[&a, &b], &[]).is_ok());
    assert!(Array::pointwise_direct(add, DType::F32, &[&a, &b], &Numbers::NONE, &params).is_some());
}

#[test]
fn plans_and_indices_belong_to_what_they_index() {
    let (x, i) = (zeros(&[3, 4]), ints(&[0, 2]));
    let plan = |dims: &[usize], at| IndexPlan { dims: dims.iter().copied().collect(), at, bounds: Bounds::Wrap };
    let bad: [(IndexPlan, &[&Array]); 6] = [
        (plan(&[], 0), &[]),
        (plan(&[0], 0), &[]),
        (plan(&[0], 0), &[&i, &i]),
        (plan(&[0, 0], 0), &[&i, &i]),
        (plan(&[2], 0), &[&i]),
        (plan(&[0], 2), &[&i]),
    ];
    for (plan, index) in bad {
        assert!(x.take_rows(&plan, index).is_err(), "{plan:?}");
        assert!(x.put_rows(&plan, index, &zeros(&[]), Write::Set).is_err(), "{plan:?}");
    }
    assert!(x.take_rows(&plan(&[0], 0), &[&i]).is_ok());
    for bad in [i64::MAX, i64::MIN, 3, -4, 1 << 62] {
        assert!(x.take_rows(&plan(&[0], 0), &[&ints(&[bad])]).is_err());
        assert!(x.put_rows(&plan(&[0], 0), &[&ints(&[bad])], &zeros(&[]), Write::Add).is_err());
        assert!(x.gather(0, &Array::from_slice(&[bad], &[1, 1]).unwrap()).is_err());
    }
    let wide = Array::from_slice(&[0i64; 10], &[1, 10]).unwrap();
    assert!(x.gather(0, &wide).is_err());
    assert!(x.gather(0, &i).is_err());
    assert!(x.gather(2, &wide).is_err());
    assert!(x.scatter_into(0, &wide, &zeros(&[]), Write::Set).is_err());
    let fits = Array::from_slice(&[0i64; 8], &[2, 4]).unwrap();
    assert!(x.scatter_into(0, &fits, &zeros(&[2, 3]), Write::Set).is_err());
    assert!(x.scatter_into(0, &fits, &zeros(&[2]), Write::Set).is_err());
    assert!(x.scatter_into(0, &fits, &zeros(&[2, 4]), Write::Set).is_ok());
    assert!(x.triangle_from(&zeros(&[2, 4]), 0, true).is_err());
    assert!(x.triangle_from(&Array::zeros(&[3, 4], DType::F64).unwrap(), 0, true).is_err());
    assert!(zeros(&[3]).triangle_from(&zeros(&[3]), 0, true).is_err());
}

#[test]
fn reductions_have_something_to_reduce() {
    let (x, none) = (zeros(&[3, 4]), zeros(&[3, 0]));
    for reduced in [&[][..], &[true], &[true, false, true]] {
        assert!(x.sum(reduced, false).is_err());
        assert!(x.extreme(true, reduced, true).is_err());
        assert!(x.norm(2.0, reduced, true).is_err());
    }
    assert!(none.extreme(true, &[false, true], false).is_err());
    assert!(none.extreme(true, &[true, false], false).is_ok());
    assert!(none.max_along(true, 1, false).is_err());
    assert!(none.mode_along(1, false).is_err());
    for dim in [2, 3, usize::MAX] {
        assert!(x.max_along(true, dim, false).is_err());
        assert!(x.mode_along(dim, false).is_err());
        assert!(x.cummax(true, dim).is_err());
        assert!(x.scan(ScanKind::Sum, dim).is_err());
        assert!(x.sort_along(Sort { dim, descending: false, keep: 1 }).is_err());
        assert!(x.softmax(SoftmaxPass { log: false, backward: false }, dim, None).is_err());
    }
    assert!(x.sort_along(Sort { dim: 1, descending: false, keep: 5 }).is_err());
    assert!(x.softmax(SoftmaxPass { log: false, backward: true }, 1, Some(&zeros(&[3, 3]))).is_err());
    assert!(x.softmax(SoftmaxPass { log: false, backward: true }, 1, None).is_err());
    assert!(x.matmul(&zeros(&[4]), (false, false)).is_err());
    assert!(none.first().is_err());
}

#[test]
fn sizes_of_losses_belong_together() {
    let classes = |outer, classes, inner| Classes { outer, classes, inner, ignore: -100, reduction: Reduction::None };
    let (x, t, w) = (zeros(&[2, 3]), ints(&[0, 2]), zeros(&[3]));
    let nll = |c, shape: &[usize], t: &Array, w: &Array| x.nll(c, false, shape, t, Some(w));
    assert!(nll(classes(2, 3, 1), &[2], &t, &w).is_ok());
    assert!(nll(classes(2, 4, 1), &[2], &t, &w).is_err());
    assert!(nll(classes(2, 3, 2), &[2], &t, &w).is_err());
    assert!(nll(classes(2, 3, 1), &[1], &t, &w).is_err());
    assert!(nll(classes(2, 3, 1), &[2], &ints(&[0]), &w).is_err());
    assert!(nll(classes(2, 3, 1), &[2], &t, &zeros(&[2])).is_err());
    assert!(nll(classes(HUGE, HUGE, 1), &[2], &t, &w).is_err());
    for bad in [3, -1, i64::MAX, i64::MIN] {
        assert!(nll(classes(2, 3, 1), &[2], &ints(&[0, bad]), &w).is_err());
    }
}

#[test]
fn memory_that_is_lent_for_reading_is_not_written() {
    let memory: Arc<Vec<AtomicI64>> = Arc::new((0..4).map(AtomicI64::new).collect());
    let a = over(&memory, DType::I64, false);
    let b = Array::zeros(&[4], DType::I64).unwrap();
    let refused: [Result<()>; 6] = [
        a.fill(Scalar::Int(1)),
        a.copy_from(&b),
        a.pointwise_into(Func::forward(RowId::Add), DType::I64, &[&a, &b], &[]),
        a.put_rows(&IndexPlan::one(0, Bounds::Wrap), &[&ints(&[0])], &b.with_layout(Layout::contiguous(&[1])).unwrap(), Write::Set),
        a.scatter_into(0, &ints(&[0]), &b, Write::Set),
        a.with_layout(Layout::contiguous(&[2, 2])).unwrap().triangle_from(&b.with_layout(Layout::contiguous(&[2, 2])).unwrap(), 0, true),
    ];
    for r in refused {
        assert!(r.unwrap_err().message().contains("lent for reading only"));
    }
    assert_eq!(a.to_vec::<i64>().unwrap(), [0, 1, 2, 3]);
    assert_eq!(b.device(), Device::CPU);
}

#[test]
fn bytes_that_are_no_truth_value_are_true() {
    let memory: Arc<Vec<AtomicU8>> = Arc::new([0u8, 1, 2, 255].map(AtomicU8::new).into_iter().collect());
    let a = over(&memory, DType::Bool, true);
    let want = [false, true, true, true];
    assert_eq!(a.to_vec::<bool>().unwrap(), want);
    assert_eq!(a.to_vec::<i64>().unwrap(), want.map(i64::from));
    assert_eq!(a.elements::<bool>().unwrap().iter().map(|b| b != 0).collect::<Vec<_>>(), want);
    assert_eq!(a.nonzero().unwrap()[0].to_vec::<i64>().unwrap(), [1, 2, 3]);
    let not = Array::pointwise(Func::forward(RowId::LogicalNot), DType::Bool, DType::Bool, &[&a], &[]).unwrap();
    assert_eq!(not.to_vec::<bool>().unwrap(), want.map(|b| !b));
}

#[test]
fn elements_are_of_the_dtype_that_is_asked_for() {
    let a = zeros(&[4, 5]);
    assert_eq!(a.elements::<f32>().unwrap().len(), 20);
    assert!(a.elements::<f64>().is_err());
    assert!(a.with_layout(a.layout().transpose(0, 1)).unwrap().elements::<f32>().is_err());
    assert_eq!(a.with_layout(layout(&[0], &[1], 1000)).unwrap().elements::<f32>().unwrap().to_vec(), [0f32; 0]);
}

/// Runs `f` again and again while another thread writes valid and wild numbers to `memory`.
fn raced(memory: &Arc<Vec<AtomicI64>>, f: impl Fn()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            let wild = [1i64 << 62, -(1 << 62), 64, -1, i64::MIN, i64::MAX, 0];
            for k in 0usize.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                for (i, m) in memory.iter().enumerate().skip(k % 7).step_by(1 + k % 13) {
                    m.store(wild[(i + k) % wild.len()], Ordering::Relaxed);
                }
                for (i, m) in memory.iter().enumerate() {
                    m.store((i * k % 64) as i64, Ordering::Relaxed);
                }
            }
        });
        for _ in 0..40 {
            f();
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn positions_that_another_thread_writes_reach_nothing_else() {
    const N: usize = 1 << 14;
    let memory: Arc<Vec<AtomicI64>> = Arc::new((0..N).map(|i| AtomicI64::new(i as i64 % 64)).collect());
    let index = over(&memory, DType::I64, true);
    let x = Array::full(&[64], Scalar::Int(7), DType::F32).unwrap();
    let plan = IndexPlan::one(0, Bounds::Wrap);
    let right = |made: Result<Array>| {
        if let Ok(a) = made {
            assert!(a.to_vec::<f32>().unwrap().iter().all(|v| *v == 7.0 || *v == 0.0));
        }
    };
    raced(&memory, || right(x.take_rows(&plan, &[&index])));
    raced(&memory, || right(x.gather(0, &index)));
    let src = Array::full(&[N], Scalar::Int(7), DType::F32).unwrap();
    raced(&memory, || _ = x.scatter_into(0, &index, &src, Write::Set));
    raced(&memory, || _ = x.put_rows(&plan, &[&index], &src, Write::Set));
    right(Ok(x));
    let scores = Array::full(&[N, 64], Scalar::Int(-1), DType::F32).unwrap();
    for reduction in [Reduction::None, Reduction::Mean] {
        let classes = Classes { outer: N, classes: 64, inner: 1, ignore: -100, reduction };
        let shape: &[usize] = if reduction == Reduction::None { &[N] } else { &[] };
        let w = Array::full(&[64], Scalar::Int(1), DType::F32).unwrap();
        raced(&memory, || _ = scores.nll(classes, false, shape, &index, Some(&w)));
        let g = zeros(shape);
        raced(&memory, || _ = g.nll(classes, true, &[N, 64], &index, None));
    }
    raced(&memory, || {
        let bytes = Array::from_parts(index.storage().clone(), Layout::contiguous(&[8 * N]), DType::Bool).unwrap();
        let found = bytes.nonzero().unwrap();
        assert!(found[0].to_vec::<i64>().unwrap().iter().all(|i| (0..8 * N as i64).contains(i)));
    });
    raced(&memory, || {
        let found = index.max_along(true, 0, false).unwrap();
        assert!((0..N as i64).contains(&found[1].to_vec::<i64>().unwrap()[0]));
        let found = index.sort_along(Sort { dim: 0, descending: false, keep: N }).unwrap();
        assert!(found[1].to_vec::<i64>().unwrap().iter().all(|i| (0..N as i64).contains(i)));
    });
}
