//! Fourier transforms on the CPU and on the reference backend.

use super::common::values;
use super::contract::both;
use rgrad::array::Array;
use rgrad::call::{Fft, FftKind, Request};
use rgrad::layout::Layout;
use rgrad::{DType, Result};
use rgrad_kernels::host::threads::set_num_threads;

fn array(shape: &[usize], dtype: DType, seed: usize) -> Array {
    Array::from_slice(&values(shape.iter().product(), seed), shape).unwrap().cast(dtype).unwrap()
}

/// Pairs of real numbers as complex ones.
fn complex(pairs: &Array) -> Result<Array> {
    pairs.with_parts(pairs.layout().from_pairs()?, pairs.dtype().to_complex(pairs.dtype()))
}

/// Complex numbers as pairs of real ones.
fn pairs(x: Array) -> Result<Array> {
    if x.dtype().is_complex() { x.with_parts(x.layout().as_pairs()?, x.dtype().row().real) } else { Ok(x) }
}

/// The request on an operand whose sizes along the last of the dimensions is `sizes[0]`, and `sizes[1]` of the result.
fn run(kind: FftKind, inverse: bool, dims: &[usize], to: usize, x: &Array) -> Result<Vec<Array>> {
    let mut shape = x.shape().to_vec();
    shape[dims[dims.len() - 1]] = to;
    let dtype = match kind {
        FftKind::Complex => x.dtype(),
        FftKind::FromReal => x.dtype().to_complex(x.dtype()),
        FftKind::ToReal => x.dtype().row().real,
    };
    let request = Request::Fft(Fft { kind, inverse, dims: dims.into(), scale: 0.25, inner: 1.5 });
    Ok(vec![pairs(Array::request1(request, &[x], &shape, dtype)?)?])
}

/// The same elements, transposed in memory.
fn turned(x: &Array) -> Array {
    let last = x.rank() - 1;
    let turned = x.with_layout(x.layout().transpose(0, last)).unwrap().contiguous_copy().unwrap();
    turned.with_layout(turned.layout().transpose(0, last)).unwrap()
}

fn every_transform(shape: &[usize], dims: &[usize], dtype: DType) {
    let last = dims[dims.len() - 1];
    let n = shape[last];
    let of = |size: usize| {
        let mut shape = shape.to_vec();
        shape[last] = size;
        shape
    };
    let x = array(shape, dtype, 3);
    let z = array(&[shape, &[2]].concat(), dtype, 5);
    for inverse in [false, true] {
        for to in [n, n / 2 + 1] {
            both("from real", &[&x], |i| run(FftKind::FromReal, inverse, dims, to, i[0]));
            both("from real", &[&turned(&x)], |i| run(FftKind::FromReal, inverse, dims, to, i[0]));
        }
        for from in [n, n / 2 + 1] {
            let z = array(&[&of(from)[..], &[2]].concat(), dtype, 4);
            both("to real", &[&z], |i| run(FftKind::ToReal, inverse, dims, n, &complex(i[0])?));
            both("to real", &[&z], |i| run(FftKind::ToReal, inverse, dims, n, &turned(&complex(i[0])?)));
        }
        both("complex", &[&z], |i| run(FftKind::Complex, inverse, dims, n, &complex(i[0])?));
        both("complex", &[&z], |i| run(FftKind::Complex, inverse, dims, n, &turned(&complex(i[0])?)));
    }
}

#[test]
pub fn fourier_transforms() {
    for dtype in [DType::F32, DType::F64] {
        // Along each dimension alone, in any order of several, of even and odd, prime and short lengths.
        for (shape, dims) in [
            (&[1, 1][..], &[0, 1][..]),
            (&[2, 3], &[0]),
            (&[4, 2], &[1]),
            (&[7, 12], &[0, 1]),
            (&[7, 12], &[1, 0]),
            (&[3, 30, 5], &[1]),
            (&[3, 4, 5], &[2, 0, 1]),
            (&[2, 67], &[1]),
            (&[70, 3], &[0]),
            (&[128, 3], &[0]),
        ] {
            every_transform(shape, dims, dtype);
        }
    }
}

#[test]
fn the_bits_are_the_same_for_any_number_of_threads() {
    // Several tasks, along the last dimension and along the first.
    let z = complex(&array(&[300, 257, 2], DType::F32, 6)).unwrap();
    for dims in [&[0][..], &[1], &[0, 1]] {
        let of = |threads| {
            set_num_threads(threads);
            run(FftKind::Complex, false, dims, z.shape()[dims[dims.len() - 1]], &z).unwrap()[0].to_vec::<f32>().unwrap()
        };
        let (one, many) = (of(1), of(5));
        assert!(one.iter().zip(&many).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}

#[test]
fn what_is_no_transform_is_refused() {
    let x = array(&[4, 6], DType::F64, 7);
    let ask = |dims: &[usize], to: usize, dtype: DType| {
        let request = Request::Fft(Fft { kind: FftKind::FromReal, inverse: false, dims: dims.into(), scale: 1.0, inner: 1.0 });
        Array::request1(request, &[&x], &[4, to], dtype)
    };
    assert!(ask(&[1], 4, DType::C128).is_ok());
    // Another length, another precision, no dimension, one twice, one too many, a real result.
    for (dims, to, dtype) in [
        (&[1][..], 5, DType::C128),
        (&[1], 4, DType::C64),
        (&[], 6, DType::C128),
        (&[1, 1], 4, DType::C128),
        (&[2], 6, DType::C128),
        (&[1], 4, DType::F64),
    ] {
        assert!(ask(dims, to, dtype).is_err(), "{dims:?} {to} {dtype}");
    }
    let empty = x.with_layout(Layout::contiguous(&[0, 6])).unwrap();
    let request = Request::Fft(Fft { kind: FftKind::FromReal, inverse: false, dims: [0].as_slice().into(), scale: 1.0, inner: 1.0 });
    assert!(Array::request1(request, &[&empty], &[0, 6], DType::C128).is_err());
}
