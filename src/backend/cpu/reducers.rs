//! What can be reduced to what: one `Reducer` for each reduction.

use super::reduce::Reducer;
use std::hint::select_unpredictable;
use std::marker::PhantomData;

/// Element types, as kernels read them. A bool is one byte, 0 or 1.
pub trait Number: Copy + Send + Sync + PartialOrd + 'static {
    const ZERO: Self;
    const ONE: Self;
    /// Not above any value that is not nan.
    const LOWEST: Self;
    /// Not below any value that is not nan.
    const HIGHEST: Self;
    /// What nothing integer is: any value will do there.
    const NAN: Self;
    /// Sums wrap around for integers.
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn is_nan(self) -> bool;
}

macro_rules! floats {
    ($($t:ty),*) => { $(impl Number for $t {
        const ZERO: Self = 0.0;
        const ONE: Self = 1.0;
        const LOWEST: Self = <$t>::NEG_INFINITY;
        const HIGHEST: Self = <$t>::INFINITY;
        const NAN: Self = <$t>::NAN;
        #[inline(always)]
        fn plus(self, other: Self) -> Self { self + other }
        #[inline(always)]
        fn times(self, other: Self) -> Self { self * other }
        #[inline(always)]
        fn is_nan(self) -> bool { self != self }
    })* };
}
floats!(f32, f64);

macro_rules! integers {
    ($($t:ty),*) => { $(impl Number for $t {
        const ZERO: Self = 0;
        const ONE: Self = 1;
        const LOWEST: Self = <$t>::MIN;
        const HIGHEST: Self = <$t>::MAX;
        const NAN: Self = 0;
        #[inline(always)]
        fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
        #[inline(always)]
        fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
        #[inline(always)]
        fn is_nan(self) -> bool { false }
    })* };
}
integers!(u8, i32, i64);

/// Element types with a fraction.
pub trait Float: Number {
    fn minus(self, other: Self) -> Self;
    fn wide(self) -> f64;
    fn narrow(v: f64) -> Self;
    /// The sum of the squares of `n` elements, where it can be had without a wider type: None for a few, and where a square may have
    /// overflowed or vanished.
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
/// None is needed: nothing is wider.
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
        fn wide(self) -> f64 { self as f64 }
        #[inline(always)]
        fn narrow(v: f64) -> Self { v as $t }
    })* };
}
fractions!(f32: squares_f32, f64: squares_f64);

/// Conversion of an element to the type that a reduction computes in.
pub trait To<A>: Copy {
    fn to(self) -> A;
}
macro_rules! conversions {
    ($($a:ty => $b:ty),*) => { $(impl To<$b> for $a {
        #[inline(always)]
        fn to(self) -> $b { self as $b }
    })* };
}
conversions!(u8 => i64, i32 => i64, i64 => i64, f32 => f32, f32 => f64, f64 => f64);

macro_rules! reducer {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<T, A>(PhantomData<fn(T) -> A>);
        impl<T, A> $name<T, A> {
            pub const NEW: Self = $name(PhantomData);
        }
        impl<T, A> Clone for $name<T, A> {
            fn clone(&self) -> Self { *self }
        }
        impl<T, A> Copy for $name<T, A> {}
    };
}

reducer!(
    /// The sum; 0 of nothing.
    Sum
);

impl<T: Number + To<A>, A: Number> Reducer for Sum<T, A> {
    type In = T;
    type Acc = A;
    type Out = A;
    #[inline(always)]
    fn init(self) -> A {
        A::ZERO
    }
    #[inline(always)]
    fn lift(self, x: T, _: T) -> A {
        x.to()
    }
    #[inline(always)]
    fn merge(self, a: A, b: A) -> A {
        a.plus(b)
    }
    #[inline(always)]
    fn finish(self, a: A) -> A {
        a
    }
}

reducer!(
    /// The product; 1 of nothing.
    Prod
);

impl<T: Number + To<A>, A: Number> Reducer for Prod<T, A> {
    type In = T;
    type Acc = A;
    type Out = A;
    #[inline(always)]
    fn init(self) -> A {
        A::ONE
    }
    #[inline(always)]
    fn lift(self, x: T, _: T) -> A {
        x.to()
    }
    #[inline(always)]
    fn merge(self, a: A, b: A) -> A {
        a.times(b)
    }
    #[inline(always)]
    fn finish(self, a: A) -> A {
        a
    }
}

/// The largest element (or smallest, with `MAX` false); nan if there is one.
#[derive(Debug, Clone, Copy)]
pub struct Extreme<T, const MAX: bool>(PhantomData<fn() -> T>);

impl<T, const MAX: bool> Extreme<T, MAX> {
    pub const NEW: Self = Extreme(PhantomData);
}

impl<T: Number, const MAX: bool> Extreme<T, MAX> {
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

impl<T: Number, const MAX: bool> Reducer for Extreme<T, MAX> {
    type In = T;
    type Acc = T;
    type Out = T;
    #[inline(always)]
    fn init(self) -> T {
        if MAX { T::LOWEST } else { T::HIGHEST }
    }
    #[inline(always)]
    fn lift(self, x: T, _: T) -> T {
        x
    }
    #[inline(always)]
    fn merge(self, a: T, b: T) -> T {
        // Without a branch: with one, keeping `a` becomes a store under a mask, which takes AMD's processors twenty cycles.
        select_unpredictable(Self::better(a, b) | a.is_nan(), a, b)
    }
    #[inline(always)]
    fn merge_eight(self, acc: T, x: [T; 8]) -> T {
        // As one choice: if it were between what was loaded and something else, storing it would become a store under a mask.
        let nan = x.iter().fold(acc.is_nan(), |nan, x| nan | x.is_nan());
        let two = |i: usize| Self::best(x[i], x[i + 1]);
        let best = Self::best(Self::best(two(0), two(2)), Self::best(two(4), two(6)));
        select_unpredictable(nan, T::NAN, Self::best(acc, best))
    }
    #[inline(always)]
    unsafe fn block(self, p: *const T, n: usize) -> Option<T> {
        const LANES: usize = 32;
        if n < 8 * LANES || size_of::<T>() != 4 {
            return None;
        }
        // Two at a time, in the order of memory, are asked whether one is nan; what is best of the others is one instruction each.
        let (mut lanes, mut nan) = ([self.init(); LANES], [0u32; LANES]);
        let rounds = n / (2 * LANES);
        for i in 0..rounds {
            for j in 0..LANES {
                // SAFETY: below n.
                let (a, b) = unsafe { (*p.add(2 * i * LANES + j), *p.add((2 * i + 1) * LANES + j)) };
                nan[j] |= if a.is_nan() | b.is_nan() { u32::MAX } else { 0 };
                lanes[j] = Self::best(Self::best(a, b), lanes[j]);
            }
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
        // SAFETY: below n.
        Some((2 * rounds * LANES..n).fold(lanes[0], |a, i| self.merge(a, unsafe { *p.add(i) })))
    }
    #[inline(always)]
    fn finish(self, a: T) -> T {
        a
    }
}

/// Whether all elements (or any, with `ALL` false) are true, that is not 0; nan is.
#[derive(Debug, Clone, Copy)]
pub struct Truth<T, const ALL: bool>(PhantomData<fn() -> T>);

impl<T, const ALL: bool> Truth<T, ALL> {
    pub const NEW: Self = Truth(PhantomData);
}

impl<T: Number, const ALL: bool> Reducer for Truth<T, ALL> {
    type In = T;
    type Acc = u8;
    type Out = u8;
    #[inline(always)]
    fn init(self) -> u8 {
        u8::from(ALL)
    }
    #[inline(always)]
    fn lift(self, x: T, _: T) -> u8 {
        u8::from(x != T::ZERO)
    }
    #[inline(always)]
    fn merge(self, a: u8, b: u8) -> u8 {
        if ALL { a & b } else { a | b }
    }
    #[inline(always)]
    fn finish(self, a: u8) -> u8 {
        a
    }
}

reducer!(
    /// How many elements are not 0.
    CountNonzero
);

impl<T: Number, A: Number> Reducer for CountNonzero<T, A> {
    type In = T;
    type Acc = A;
    type Out = A;
    #[inline(always)]
    fn init(self) -> A {
        A::ZERO
    }
    #[inline(always)]
    fn lift(self, x: T, _: T) -> A {
        if x != T::ZERO { A::ONE } else { A::ZERO }
    }
    #[inline(always)]
    fn merge(self, a: A, b: A) -> A {
        a.plus(b)
    }
    #[inline(always)]
    fn finish(self, a: A) -> A {
        a
    }
}

/// The sum of squared distances from `shift`.
#[derive(Debug, Clone, Copy)]
pub struct Deviation<T>(PhantomData<fn() -> T>);

impl<T> Deviation<T> {
    pub const NEW: Self = Deviation(PhantomData);
}

impl<T: Float> Reducer for Deviation<T> {
    type In = T;
    type Acc = T;
    type Out = T;
    #[inline(always)]
    fn init(self) -> T {
        T::ZERO
    }
    #[inline(always)]
    fn lift(self, x: T, shift: T) -> T {
        let d = x.minus(shift);
        d.times(d)
    }
    #[inline(always)]
    fn merge(self, a: T, b: T) -> T {
        a.plus(b)
    }
    #[inline(always)]
    fn finish(self, a: T) -> T {
        a
    }
}

/// The norms that need no powers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormKind {
    /// The sum of absolute values.
    One,
    /// The root of the sum of squares, added up in double precision where squares could overflow or vanish in single.
    Two,
    /// The largest absolute value.
    Inf,
    /// The smallest absolute value.
    NegInf,
    /// `Two` of `f32` for machines that multiply and add at once; long blocks are added up in single precision.
    TwoFused,
}

/// A vector norm. Adds up in double precision.
#[derive(Debug, Clone, Copy)]
pub struct Norm<T, const KIND: u8>(PhantomData<fn() -> T>);

impl<T, const KIND: u8> Norm<T, KIND> {
    pub const NEW: Self = Norm(PhantomData);
}

impl<T: Float, const KIND: u8> Reducer for Norm<T, KIND> {
    type In = T;
    type Acc = f64;
    type Out = T;
    #[inline(always)]
    fn init(self) -> f64 {
        if KIND == NormKind::NegInf as u8 { f64::INFINITY } else { 0.0 }
    }
    #[inline(always)]
    fn lift(self, x: T, _: T) -> f64 {
        let x = x.wide();
        if KIND == NormKind::Two as u8 || KIND == NormKind::TwoFused as u8 { x * x } else { x.abs() }
    }
    #[inline(always)]
    unsafe fn block(self, p: *const T, n: usize) -> Option<f64> {
        if KIND == NormKind::TwoFused as u8 {
            // SAFETY: the caller's promise is passed on.
            unsafe { T::squares(p, n) }
        } else {
            None
        }
    }
    #[inline(always)]
    fn add(self, a: f64, x: T, shift: T) -> f64 {
        if KIND == NormKind::TwoFused as u8 {
            let x = x.wide();
            x.mul_add(x, a)
        } else {
            self.merge(a, self.lift(x, shift))
        }
    }
    #[inline(always)]
    fn merge(self, a: f64, b: f64) -> f64 {
        if KIND == NormKind::Inf as u8 {
            Extreme::<f64, true>::NEW.merge(a, b)
        } else if KIND == NormKind::NegInf as u8 {
            Extreme::<f64, false>::NEW.merge(a, b)
        } else {
            a + b
        }
    }
    #[inline(always)]
    fn finish(self, a: f64) -> T {
        T::narrow(if KIND == NormKind::Two as u8 || KIND == NormKind::TwoFused as u8 { a.sqrt() } else { a })
    }
}

/// The p-norm for any other p: `(sum |x|^p)^(1/p)`.
#[derive(Debug, Clone, Copy)]
pub struct PowerNorm<T> {
    p: f64,
    marker: PhantomData<fn() -> T>,
}

impl<T> PowerNorm<T> {
    pub fn new(p: f64) -> Self {
        PowerNorm { p, marker: PhantomData }
    }
}

impl<T: Float> Reducer for PowerNorm<T> {
    type In = T;
    type Acc = f64;
    type Out = T;
    #[inline(always)]
    fn init(self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn lift(self, x: T, _: T) -> f64 {
        x.wide().abs().powf(self.p)
    }
    #[inline(always)]
    fn merge(self, a: f64, b: f64) -> f64 {
        a + b
    }
    #[inline(always)]
    fn finish(self, a: f64) -> T {
        T::narrow(a.powf(1.0 / self.p))
    }
}
