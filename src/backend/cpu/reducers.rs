//! What can be reduced to what: one `Reducer` for each reduction.

use super::reduce::Reducer;
use std::marker::PhantomData;

/// Element types, as kernels read them. A bool is one byte, 0 or 1.
pub trait Number: Copy + Send + Sync + PartialOrd + 'static {
    const ZERO: Self;
    const ONE: Self;
    /// Sums wrap around for integers.
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn is_nan(self) -> bool;
}

macro_rules! floats {
    ($($t:ty),*) => { $(impl Number for $t {
        const ZERO: Self = 0.0;
        const ONE: Self = 1.0;
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
        #[inline(always)]
        fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
        #[inline(always)]
        fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
        #[inline(always)]
        fn is_nan(self) -> bool { false }
    })* };
}
integers!(u8, i32, i64);

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
conversions!(u8 => i64, i32 => i64, i64 => i64, f32 => f32, f64 => f64);

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
