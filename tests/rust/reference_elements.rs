//! Elements of the reference backend: how they are read, written and walked over.

use rgrad_kernels::backend::contract::{DeviceMemory, Memory, View};
use rgrad_kernels::layout::{BF16, Complex32, Complex64, ComplexHalf, DType, Element, F16, Scalar};
use std::any::Any;
use std::cell::UnsafeCell;
use std::cmp::Ordering;

/// Elements as the host lays them out.
#[derive(Debug)]
pub struct Cells(UnsafeCell<Box<[u64]>>, usize);
// SAFETY: tests use a tensor from one thread.
unsafe impl Send for Cells {}
// SAFETY: as above.
unsafe impl Sync for Cells {}

impl Cells {
    pub fn new(bytes: usize) -> Cells {
        Cells(UnsafeCell::new(vec![0; bytes.div_ceil(8)].into()), bytes)
    }

    pub fn start(&self) -> *mut u8 {
        // SAFETY: nobody resizes the box.
        unsafe { (*self.0.get()).as_mut_ptr().cast() }
    }
}

impl DeviceMemory for Cells {
    fn bytes(&self) -> usize {
        self.1
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub fn start(m: Memory<'_>) -> *mut u8 {
    match m {
        Memory::Device(d) => d.as_any().downcast_ref::<Cells>().expect("memory of this backend").start(),
        Memory::Host(_) => panic!("memory of the host came to the reference backend"),
    }
}

/// An element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum V {
    I(i64),
    F(f64),
    Z(Complex64),
}
use V::{F, I, Z};

impl V {
    pub fn f(self) -> f64 {
        match self {
            I(i) => i as f64,
            F(f) => f,
            Z(z) => z.re,
        }
    }
    pub fn i(self) -> i64 {
        match self {
            I(i) => i,
            F(f) => f as i64,
            Z(z) => z.re as i64,
        }
    }
    pub fn z(self) -> Complex64 {
        if let Z(z) = self { z } else { Complex64::new(self.f(), 0.0) }
    }
    pub fn is_true(self) -> bool {
        self.z() != Complex64::new(0.0, 0.0)
    }
    pub fn is_nan(self) -> bool {
        self.f().is_nan()
    }
    pub fn plus(self, o: V) -> V {
        match (self, o) {
            (I(a), I(b)) => I(a.wrapping_add(b)),
            (Z(_), _) | (_, Z(_)) => Z(self.z() + o.z()),
            _ => F(self.f() + o.f()),
        }
    }
    pub fn times(self, o: V) -> V {
        match (self, o) {
            (I(a), I(b)) => I(a.wrapping_mul(b)),
            (Z(_), _) | (_, Z(_)) => Z(self.z() * o.z()),
            _ => F(self.f() * o.f()),
        }
    }
    /// nan is larger than everything.
    pub fn order(self, o: V) -> Ordering {
        match (self, o) {
            (I(a), I(b)) => a.cmp(&b),
            _ => self.f().partial_cmp(&o.f()).unwrap_or_else(|| self.is_nan().cmp(&o.is_nan())),
        }
    }
    /// Whether this is a better extreme than `o`: nan wins, the first of equals stays.
    pub fn beats(self, o: V, max: bool) -> bool {
        !o.is_nan() && (self.is_nan() || if max { self.f() > o.f() } else { self.f() < o.f() } && self.order(o).is_ne())
    }
}

/// # Safety
/// There is an element.
unsafe fn element<T: Element>(p: *const u8) -> Complex64 {
    // SAFETY: the caller's.
    unsafe { p.cast::<T>().read() }.to_scalar().to_complex()
}

/// # Safety
/// There is an element.
pub unsafe fn get(p: *const u8, dtype: DType) -> V {
    // SAFETY: the caller's.
    unsafe {
        match dtype {
            DType::Bool => I(i64::from(*p != 0)),
            DType::F16 => F(f64::from(p.cast::<F16>().read().to_f32())),
            DType::BF16 => F(f64::from(p.cast::<BF16>().read().to_f32())),
            DType::F32 => F(f64::from(*p.cast::<f32>())),
            DType::F64 => F(*p.cast()),
            DType::C32 => Z(element::<ComplexHalf>(p)),
            DType::C64 => Z(element::<Complex32>(p)),
            DType::C128 => Z(element::<Complex64>(p)),
            _ => {
                // The low bytes, with the sign above.
                let (mut bytes, free) = ([0; 8], 64 - 8 * dtype.size());
                std::ptr::copy_nonoverlapping(p, bytes.as_mut_ptr(), dtype.size());
                let whole = i64::from_le_bytes(bytes);
                I(if dtype.is_signed() { whole << free >> free } else { whole })
            }
        }
    }
}

/// # Safety
/// There is room for an element.
pub unsafe fn put(p: *mut u8, dtype: DType, v: V) {
    // SAFETY: the caller's.
    unsafe {
        match dtype {
            DType::Bool => *p = u8::from(v.is_true()),
            DType::F16 => *p.cast() = F16::from_f32(v.f() as f32),
            DType::BF16 => *p.cast() = BF16::from_f32(v.f() as f32),
            DType::F32 => *p.cast() = v.f() as f32,
            DType::F64 => *p.cast() = v.f(),
            DType::C32 => *p.cast() = ComplexHalf::of_scalar(Scalar::Complex(v.z())),
            DType::C64 => *p.cast() = Complex32::of_scalar(Scalar::Complex(v.z())),
            DType::C128 => *p.cast() = v.z(),
            _ => std::ptr::copy_nonoverlapping(v.i().to_le_bytes().as_ptr(), p, dtype.size()),
        }
    }
}

/// An operand with all its elements read, row-major; or an output to be written.
pub struct X<'a> {
    pub v: View<'a>,
}

impl X<'_> {
    pub fn at(&self, index: &[usize]) -> *mut u8 {
        let off: isize = index.iter().zip(self.v.strides).map(|(i, s)| *i as isize * s).sum();
        start(self.v.memory).wrapping_add((self.v.offset as isize + off) as usize * self.v.dtype.size())
    }
    pub fn get(&self, index: &[usize]) -> V {
        // SAFETY: the promise of `Backend::run`.
        unsafe { get(self.at(index), self.v.dtype) }
    }
    pub fn put(&self, index: &[usize], v: V) {
        // SAFETY: the promise of `Backend::run`.
        unsafe { put(self.at(index), self.v.dtype, v) }
    }
    pub fn rank(&self) -> usize {
        self.v.shape.len()
    }
    pub fn size(&self, d: usize) -> usize {
        self.v.shape.get(d).copied().unwrap_or(1)
    }
    pub fn row(&self, at: &[usize], dim: usize) -> Vec<V> {
        (0..self.size(dim)).map(|i| self.get(&with(at, dim, i))).collect()
    }
    pub fn all(&self) -> Vec<V> {
        indices(self.v.shape).map(|i| self.get(&i)).collect()
    }
}

/// All indices of a shape, in row-major order.
pub fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let shape = shape.to_vec();
    (0..shape.iter().product()).map(move |mut n: usize| {
        let mut at = vec![0; shape.len()];
        for d in (0..shape.len()).rev() {
            at[d] = n % shape[d];
            n /= shape[d];
        }
        at
    })
}

/// The rows along `dim`: for each the index with 0 there. A 0-d array is one row of one element.
pub fn rows(shape: &[usize], dim: usize) -> impl Iterator<Item = Vec<usize>> + use<> {
    let mut outer = shape.to_vec();
    if let Some(n) = outer.get_mut(dim) {
        *n = 1;
    }
    indices(&outer)
}

pub fn with(at: &[usize], dim: usize, i: usize) -> Vec<usize> {
    let mut at = at.to_vec();
    if let Some(n) = at.get_mut(dim) {
        *n = i;
    }
    at
}

/// Writes the `n`-th value and position of row-major outputs.
pub fn nth(outs: &[Option<View<'_>>], n: usize, v: V, place: usize) {
    for (o, v) in outs.iter().zip([v, I(place as i64)]) {
        if let Some(o) = o {
            // SAFETY: outputs have an element for each row.
            unsafe { put(start(o.memory).add((o.offset + n) * o.dtype.size()), o.dtype, v) };
        }
    }
}
