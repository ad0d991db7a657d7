//! Elements as Rust numbers: for each dtype the type of its elements, how they lie in memory, and how numbers become them. Loops over elements
//! of any dtype are written once for an `Element`, and `by_element` chooses the type.

use super::{BF16, DType, F16, Scalar};
use num_complex::{Complex, Complex32, Complex64};

/// A complex number with parts of 16 bits.
pub type ComplexHalf = Complex<F16>;

/// A type for which every bit pattern is valid. `bool` is not: bytes of a bool tensor are read as `u8` and compared with 0.
///
/// # Safety
/// Every bit pattern of the type is valid.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

/// A Rust type that is the element of some dtype.
///
/// # Safety
/// `Raw` has the size of an element of the dtype, and the alignment of its real part.
pub unsafe trait Element: Copy + Default + PartialEq + Send + Sync + std::fmt::Debug + 'static {
    const DTYPE: DType;
    /// Its type in memory that other threads may write: a type without invalid values.
    type Raw: Plain;

    fn of(raw: Self::Raw) -> Self;
    fn raw(self) -> Self::Raw;

    /// The number as Python has it.
    fn to_scalar(self) -> Scalar;
    /// As a conversion of dtypes does: floats are truncated to 64 bits, then integers keep their low bits.
    fn of_scalar(value: Scalar) -> Self;
    fn of_bool(value: bool) -> Self;
    /// The low bits of an integer, or the nearest float.
    fn of_i64(value: i64) -> Self;
    /// The nearest float, or the low bits of the whole part, which is limited to int64.
    fn of_f64(value: f64) -> Self;
}

macro_rules! elements {
    ($($T:ty => $D:ident, $Raw:ty, |$x:ident| $of:expr, $raw:expr, $scalar:expr, |$y:ident| ($from_scalar:expr, $from_bool:expr, $from_i64:expr, $from_f64:expr);)+) => { $(
        // SAFETY: a number of the machine, or the bits of one, of the size and alignment that the assertion compares.
        unsafe impl Element for $T {
            const DTYPE: DType = DType::$D;
            type Raw = $Raw;

            #[inline(always)]
            fn of($x: $Raw) -> $T {
                $of
            }
            #[inline(always)]
            fn raw(self) -> $Raw {
                let $x = self;
                $raw
            }
            #[inline(always)]
            fn to_scalar(self) -> Scalar {
                let $x = self;
                $scalar
            }
            #[inline(always)]
            fn of_scalar($y: Scalar) -> $T {
                $from_scalar
            }
            #[inline(always)]
            fn of_bool($y: bool) -> $T {
                $from_bool
            }
            #[inline(always)]
            fn of_i64($y: i64) -> $T {
                $from_i64
            }
            #[inline(always)]
            fn of_f64($y: f64) -> $T {
                $from_f64
            }
        }
        const _: () = assert!(size_of::<$Raw>() == DType::$D.size() && align_of::<$Raw>() == align_of::<$Raw>());
    )+ };
}

macro_rules! integers {
    ($($T:ident => $D:ident),+) => {
        elements! { $(
            $T => $D, $T, |x| x, x, Scalar::Int(i64::from(x)), |v| (v.truncated() as $T, $T::from(v), v as $T, v as i64 as $T);
        )+ }
    };
}

macro_rules! halves {
    ($($T:ident => $D:ident),+) => {
        elements! { $(
            $T => $D, $T, |x| x, x, Scalar::Float(f64::from(x.to_f32())),
                |v| ($T::from_f32(v.to_f64() as f32), $T(if v { $T::ONE.0 } else { 0 }), $T::from_f32(v as f32), $T::from_f32(v as f32));
        )+ }
    };
}

trait Parts {
    type Part;
}

impl<T> Parts for Complex<T> {
    type Part = T;
}

macro_rules! complex {
    ($($T:ty => $D:ident, |$re:ident| $of:expr, |$part:ident| $to:expr;)+) => {
        elements! { $(
            $T => $D, $T, |x| x, x, Scalar::Complex({
                    let to = |$part: <$T as Parts>::Part| $to;
                    Complex::new(to(x.re), to(x.im))
                }), |v| (
                    {
                        let (z, of) = (v.to_complex(), |$re: f64| $of);
                        Complex::new(of(z.re), of(z.im))
                    },
                    <$T>::of_f64(f64::from(u8::from(v))),
                    <$T>::of_f64(v as f64),
                    {
                        let of = |$re: f64| $of;
                        Complex::new(of(v), of(0.0))
                    }
                );
        )+ }
    };
}

elements! {
    bool => Bool, u8, |x| x != 0, u8::from(x), Scalar::Bool(x), |v| (v.to_bool(), v, v != 0, v as i64 != 0);
    f32 => F32, f32, |x| x, x, Scalar::Float(f64::from(x)), |v| (v.to_f64() as f32, f32::from(u8::from(v)), v as f32, v as f32);
    f64 => F64, f64, |x| x, x, Scalar::Float(x), |v| (v.to_f64(), f64::from(u8::from(v)), v as f64, v);
}
complex! {
    ComplexHalf => C32, |re| F16::from_f32(re as f32), |part| f64::from(part.to_f32());
    Complex32 => C64, |re| re as f32, |part| f64::from(part);
    Complex64 => C128, |re| re, |part| part;
}
elements! {
    u64 => U64, u64, |x| x, x, i64::try_from(x).map_or(Scalar::Unsigned(x), Scalar::Int),
        |v| (v.truncated_unsigned(), u64::from(v), v as u64, Scalar::Float(v).truncated_unsigned());
}
integers!(u16 => U16, u32 => U32, u8 => U8, i8 => I8, i16 => I16, i32 => I32, i64 => I64);
halves!(F16 => F16, BF16 => BF16);

macro_rules! plain {
    ($($T:ty)*) => { $(
        // SAFETY: a number of the machine, or the bits of one.
        unsafe impl Plain for $T {}
    )* };
}
plain!(u16 u32 u64 u8 i8 i16 i32 i64 F16 BF16 f32 f64 ComplexHalf Complex32 Complex64);

/// Runs `$body` with `$T` as the type of the elements of the dtype.
#[macro_export]
macro_rules! by_element {
    (@ $dtype:expr, $T:ident => $body:expr, $($D:ident $E:ty),+) => {
        match $dtype {
            $($crate::layout::DType::$D => {
                type $T = $E;
                $body
            })+
        }
    };
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::by_element! { @ $dtype, $T => $body,
            Bool bool, U8 u8, I8 i8, I16 i16, I32 i32, I64 i64, F16 $crate::layout::F16, BF16 $crate::layout::BF16, F32 f32, F64 f64, C32 $crate::layout::ComplexHalf,
            C64 $crate::layout::Complex32, C128 $crate::layout::Complex64, U16 u16, U32 u32, U64 u64
        }
    };
}

/// The most bytes of an element.
pub const WIDEST: usize = 16;

/// An element of any dtype, in the first bytes.
pub type ElementBytes = [u8; WIDEST];

impl Scalar {
    /// The number that is left of this one as an element of `dtype`.
    #[inline]
    pub fn stored_in(self, dtype: DType) -> Scalar {
        by_element!(dtype, T => <T as Element>::of_scalar(self).to_scalar())
    }

    /// The element of `dtype` that a conversion of this number gives; the bytes behind it are 0.
    #[inline]
    pub fn to_bytes(self, dtype: DType) -> ElementBytes {
        let mut bytes = [0; WIDEST];
        by_element!(dtype, T => {
            let raw = <T as Element>::of_scalar(self).raw();
            // SAFETY: an element is no longer than the bytes.
            unsafe { bytes.as_mut_ptr().cast::<<T as Element>::Raw>().write_unaligned(raw) }
        });
        bytes
    }

    /// The number whose bytes in memory, as an element of `dtype`, are the first ones of these.
    #[inline]
    pub fn of_bytes(bytes: &ElementBytes, dtype: DType) -> Scalar {
        // SAFETY: an element is no longer than the bytes, and every bit pattern is one.
        by_element!(dtype, T => <T as Element>::of(unsafe { bytes.as_ptr().cast::<<T as Element>::Raw>().read_unaligned() }).to_scalar())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_of_the_dtype_that_chooses_them_and_numbers_come_back() {
        for d in DType::ALL {
            assert_eq!(by_element!(d, T => <T as Element>::DTYPE), d);
            for v in [0, 1] {
                let back = Scalar::of_bytes(&Scalar::Int(v).to_bytes(d), d);
                assert_eq!((back.to_i64(), back.category()), (v, d.category()), "{d}");
                let of_bool = by_element!(d, T => T::of_bool(v != 0).to_scalar());
                let of_i64 = by_element!(d, T => T::of_i64(v).to_scalar());
                let of_f64 = by_element!(d, T => T::of_f64(v as f64).to_scalar());
                assert_eq!([of_bool, of_i64, of_f64], [back; 3], "{d}");
            }
        }
        assert_eq!(Scalar::Float(f64::NAN).to_bytes(DType::I64)[..8], i64::MIN.to_ne_bytes());
        assert_eq!(Scalar::Int(-129).to_bytes(DType::I8)[0], 127);
        assert_eq!((i32::of_f64(f64::NAN), u8::of_f64(-1.5), i16::of_i64(65_537)), (0, 255, 1));
        assert_eq!(f32::of_i64(16_777_217 << 20), (16_777_217i64 << 20) as f32);
    }
}
