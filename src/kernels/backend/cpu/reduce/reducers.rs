//! The accumulators of reductions: one `ReduceOp` for each kind of accumulator and element type.

use crate::layout::{Complex, Complex32, Complex64};
use std::hint::select_unpredictable;
use std::marker::PhantomData;

/// Maps an element to an accumulator and merges accumulators. `merge` must be associative up to rounding.
pub trait ReduceOp: Copy + Default {
    type Element: Copy;
    type Accumulator: Copy;

    fn init(self) -> Self::Accumulator;
    fn lift(self, x: Self::Element) -> Self::Accumulator;
    fn merge(self, a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;

    /// `merge(a, lift(x))`, with the same bits.
    #[inline(always)]
    fn add(self, a: Self::Accumulator, x: Self::Element) -> Self::Accumulator {
        self.merge(a, self.lift(x))
    }

    /// Merges the eight as a tree, and then `acc` with the result.
    #[inline(always)]
    fn merge_eight(self, acc: Self::Accumulator, [a, b, c, d, e, f, g, h]: [Self::Accumulator; 8]) -> Self::Accumulator {
        let left = self.merge(self.merge(a, b), self.merge(c, d));
        self.merge(acc, self.merge(left, self.merge(self.merge(e, f), self.merge(g, h))))
    }

    /// The accumulator of a dense block of `n` elements, if there is a faster way to compute it.
    ///
    /// # Safety
    /// All of them are readable.
    #[inline(always)]
    unsafe fn block(self, _p: *const Self::Element, _n: usize) -> Option<Self::Accumulator> {
        None
    }
}

/// Element types that are added and multiplied. Not a demand: an order.
pub trait Arithmetic: Copy + Send + Sync + Default + 'static {
    const ZERO: Self;
    const ONE: Self;
    /// Sums wrap around for integers.
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

/// Element types with an order, as kernels read them. A bool is one byte, 0 or 1.
pub trait Numeric: Arithmetic + PartialOrd {
    /// Not above any value that is not nan.
    const LOWEST: Self;
    /// Not below any value that is not nan.
    const HIGHEST: Self;
    /// Nan for floats; unused for integers.
    const NAN: Self;
    fn is_nan(self) -> bool;
}

macro_rules! floats {
    ($($t:ty),*) => { $(
        impl Arithmetic for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self * other }
        }
        impl Numeric for $t {
            const LOWEST: Self = <$t>::NEG_INFINITY;
            const HIGHEST: Self = <$t>::INFINITY;
            const NAN: Self = <$t>::NAN;
            #[inline(always)]
            fn is_nan(self) -> bool { self != self }
        }
    )* };
}
floats!(f32, f64);

macro_rules! integers {
    ($($t:ty),*) => { $(
        impl Arithmetic for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
        }
        impl Numeric for $t {
            const LOWEST: Self = <$t>::MIN;
            const HIGHEST: Self = <$t>::MAX;
            const NAN: Self = 0;
            #[inline(always)]
            fn is_nan(self) -> bool { false }
        }
    )* };
}
integers!(u8, i8, i16, i32, i64);

macro_rules! complex {
    ($($t:ty),*) => { $(
        impl Arithmetic for $t {
            const ZERO: Self = Complex { re: 0.0, im: 0.0 };
            const ONE: Self = Complex { re: 1.0, im: 0.0 };
            #[inline(always)]
            fn plus(self, other: Self) -> Self { Complex { re: self.re + other.re, im: self.im + other.im } }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                Complex { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
            }
        }
    )* };
}
complex!(Complex32, Complex64);

/// Element types with a fraction.
pub trait Float: Numeric {
    fn minus(self, other: Self) -> Self;
    fn absolute(self) -> Self;
    fn wide(self) -> f64;
    fn narrow(v: f64) -> Self;
    /// The sum of the squares of `n` elements, if it can be computed without a wider type. None for few elements, and if a square may have
    /// overflowed or underflowed.
    ///
    /// # Safety
    /// All of them are readable.
    unsafe fn squares(p: *const Self, n: usize) -> Option<f64>;
}

/// Elements below which squares are added up in double precision.
const MANY: usize = 256;

/// # Safety
/// As for `Float::squares`. With fused multiplication only.
#[inline(always)]
unsafe fn squares_f32(p: *const f32, n: usize) -> Option<f64> {
    const LANES: usize = 64;
    if n < MANY {
        return None;
    }
    let mut lanes = [0f32; LANES];
    for i in 0..n / LANES {
        for (j, lane) in lanes.iter_mut().enumerate() {
            // SAFETY: below n.
            let x = unsafe { *p.add(i * LANES + j) };
            *lane = x.mul_add(x, *lane);
        }
    }
    let mut sum = lanes.iter().map(|l| f64::from(*l)).sum::<f64>();
    for i in n / LANES * LANES..n {
        // SAFETY: below n.
        let x = f64::from(unsafe { *p.add(i) });
        sum = x.mul_add(x, sum);
    }
    // Squares below 2^-126 lose bits, but not many as small as those count beside 2^-80.
    (8.3e-25..1e38).contains(&sum).then_some(sum)
}

/// # Safety
/// There is no requirement: it always returns None.
#[inline(always)]
unsafe fn squares_f64(_: *const f64, _: usize) -> Option<f64> {
    None
}

macro_rules! fractions {
    ($($t:ty: $squares:expr),*) => { $(impl Float for $t {
        #[inline(always)]
        unsafe fn squares(p: *const Self, n: usize) -> Option<f64> {
            // SAFETY: the caller's promise is passed on.
            unsafe { $squares(p, n) }
        }
        #[inline(always)]
        fn minus(self, other: Self) -> Self { self - other }
        #[inline(always)]
        fn absolute(self) -> Self { self.abs() }
        #[inline(always)]
        fn wide(self) -> f64 { self as f64 }
        #[inline(always)]
        fn narrow(v: f64) -> Self { v as $t }
    })* };
}
fractions!(f32: squares_f32, f64: squares_f64);

/// Conversion of an element to the type that a reduction computes in.
pub trait Widen<A>: Copy {
    fn to(self) -> A;
}
macro_rules! conversions {
    ($($a:ty => $b:ty),*) => { $(impl Widen<$b> for $a {
        #[inline(always)]
        fn to(self) -> $b { self as $b }
    })* };
}
conversions!(u8 => i64, i32 => i64, i64 => i64, f32 => f32, f32 => f64, f64 => f64);
macro_rules! same {
    ($($t:ty)*) => { $(impl Widen<$t> for $t {
        #[inline(always)]
        fn to(self) -> $t { self }
    })* };
}
same!(Complex32 Complex64);

macro_rules! reducer {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<T, A>(PhantomData<fn(T) -> A>);
        impl<T, A> Default for $name<T, A> {
            fn default() -> Self { $name(PhantomData) }
        }
        impl<T, A> Clone for $name<T, A> {
            fn clone(&self) -> Self { *self }
        }
        impl<T, A> Copy for $name<T, A> {}
    };
}

reducer!(
    /// The sum; 0 of nothing.
    SumOp
);

impl<T: Arithmetic + Widen<A>, A: Arithmetic> ReduceOp for SumOp<T, A> {
    type Element = T;
    type Accumulator = A;
    #[inline(always)]
    fn init(self) -> A {
        A::ZERO
    }
    #[inline(always)]
    fn lift(self, x: T) -> A {
        x.to()
    }
    #[inline(always)]
    fn merge(self, a: A, b: A) -> A {
        a.plus(b)
    }
}

reducer!(
    /// The product; 1 of nothing.
    ProdOp
);

impl<T: Arithmetic + Widen<A>, A: Arithmetic> ReduceOp for ProdOp<T, A> {
    type Element = T;
    type Accumulator = A;
    #[inline(always)]
    fn init(self) -> A {
        A::ONE
    }
    #[inline(always)]
    fn lift(self, x: T) -> A {
        x.to()
    }
    #[inline(always)]
    fn merge(self, a: A, b: A) -> A {
        a.times(b)
    }
}

/// The largest element (or smallest, with `MAX` false); nan if there is one.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExtremeOp<T, const MAX: bool>(PhantomData<T>);

impl<T: Numeric, const MAX: bool> ExtremeOp<T, MAX> {
    #[inline(always)]
    fn better(a: T, b: T) -> bool {
        if MAX { a > b } else { a < b }
    }
    /// Of two that are not nan.
    #[inline(always)]
    fn best(a: T, b: T) -> T {
        select_unpredictable(Self::better(a, b), a, b)
    }
}

impl<T: Numeric, const MAX: bool> ReduceOp for ExtremeOp<T, MAX> {
    type Element = T;
    type Accumulator = T;
    #[inline(always)]
    fn init(self) -> T {
        if MAX { T::LOWEST } else { T::HIGHEST }
    }
    #[inline(always)]
    fn lift(self, x: T) -> T {
        x
    }
    #[inline(always)]
    fn merge(self, a: T, b: T) -> T {
        // Without a branch: otherwise keeping `a` becomes a masked store, which takes twenty cycles on AMD processors.
        select_unpredictable(Self::better(a, b) | a.is_nan(), a, b)
    }
    #[inline(always)]
    fn merge_eight(self, acc: T, x: [T; 8]) -> T {
        // As one select: a choice between the loaded value and another one would become a masked store.
        let nan = x.iter().fold(acc.is_nan(), |nan, x| nan | x.is_nan());
        let two = |i: usize| Self::best(x[i], x[i + 1]);
        let best = Self::best(Self::best(two(0), two(2)), Self::best(two(4), two(6)));
        select_unpredictable(nan, T::NAN, Self::best(acc, best))
    }
    #[inline(always)]
    unsafe fn block(self, p: *const T, n: usize) -> Option<T> {
        const LANES: usize = 32;
        if n < 2 * LANES || size_of::<T>() != 4 {
            return None;
        }
        // Elements are checked for nan in pairs; the extreme of the others is one instruction each.
        let (mut lanes, mut nan) = ([self.init(); LANES], [0u32; LANES]);
        let mut pairs = |q: *const T| {
            for j in 0..LANES {
                // SAFETY: there are so many pairs behind `q`.
                let (a, b) = unsafe { (*q.add(j), *q.add(j + LANES)) };
                nan[j] |= if a.is_nan() | b.is_nan() { u32::MAX } else { 0 };
                lanes[j] = Self::best(Self::best(a, b), lanes[j]);
            }
        };
        for i in 0..n / (2 * LANES) {
            pairs(p.wrapping_add(2 * i * LANES));
        }
        if !n.is_multiple_of(2 * LANES) {
            // The last ones, some of which were there already.
            pairs(p.wrapping_add(n - 2 * LANES));
        }
        if nan.iter().fold(0, |any, n| any | n) != 0 {
            return Some(T::NAN);
        }
        let mut width = LANES / 2;
        while width > 0 {
            for j in 0..width {
                lanes[j] = Self::best(lanes[j], lanes[j + width]);
            }
            width /= 2;
        }
        Some(lanes[0])
    }
}

/// Whether all elements (or any, with `ALL` false) are true, that is not 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogicalOp<const ALL: bool>;

impl<const ALL: bool> ReduceOp for LogicalOp<ALL> {
    type Element = u8;
    type Accumulator = u8;
    #[inline(always)]
    fn init(self) -> u8 {
        u8::from(ALL)
    }
    #[inline(always)]
    fn lift(self, x: u8) -> u8 {
        u8::from(x != 0)
    }
    #[inline(always)]
    fn merge(self, a: u8, b: u8) -> u8 {
        if ALL { a & b } else { a | b }
    }
}

/// The sum of squared distances from a mean.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deviation<T>(pub T);

impl<T: Float> ReduceOp for Deviation<T> {
    type Element = T;
    type Accumulator = T;
    #[inline(always)]
    fn init(self) -> T {
        T::ZERO
    }
    #[inline(always)]
    fn lift(self, x: T) -> T {
        let d = x.minus(self.0);
        d.times(d)
    }
    #[inline(always)]
    fn merge(self, a: T, b: T) -> T {
        a.plus(b)
    }
}

/// The sum of absolute values, in double precision.
#[derive(Debug, Clone, Copy, Default)]
pub struct Absolutes<T>(PhantomData<T>);

impl<T: Float> ReduceOp for Absolutes<T> {
    type Element = T;
    type Accumulator = f64;
    #[inline(always)]
    fn init(self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn lift(self, x: T) -> f64 {
        x.wide().abs()
    }
    #[inline(always)]
    fn merge(self, a: f64, b: f64) -> f64 {
        a + b
    }
}

/// The largest absolute value; nan if there is one.
#[derive(Debug, Clone, Copy, Default)]
pub struct LargestAbsolute<T>(PhantomData<T>);

impl<T: Float> ReduceOp for LargestAbsolute<T> {
    type Element = T;
    type Accumulator = T;
    #[inline(always)]
    fn init(self) -> T {
        T::ZERO
    }
    #[inline(always)]
    fn lift(self, x: T) -> T {
        x.absolute()
    }
    #[inline(always)]
    fn merge(self, a: T, b: T) -> T {
        ExtremeOp::<T, true>(PhantomData).merge(a, b)
    }
}

/// The sum of squares, in double precision, since they could overflow or vanish in single. `FUSED`, for machines that multiply and add at
/// once, adds up long blocks in single precision.
#[derive(Debug, Clone, Copy, Default)]
pub struct SquareSum<T, const FUSED: bool>(PhantomData<T>);

impl<T: Float, const FUSED: bool> ReduceOp for SquareSum<T, FUSED> {
    type Element = T;
    type Accumulator = f64;
    #[inline(always)]
    fn init(self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn lift(self, x: T) -> f64 {
        let x = x.wide();
        x * x
    }
    #[inline(always)]
    unsafe fn block(self, p: *const T, n: usize) -> Option<f64> {
        // SAFETY: the caller's promise is passed on.
        if FUSED { unsafe { T::squares(p, n) } } else { None }
    }
    #[inline(always)]
    fn add(self, a: f64, x: T) -> f64 {
        if FUSED {
            let x = x.wide();
            x.mul_add(x, a)
        } else {
            self.merge(a, self.lift(x))
        }
    }
    #[inline(always)]
    fn merge(self, a: f64, b: f64) -> f64 {
        a + b
    }
}
