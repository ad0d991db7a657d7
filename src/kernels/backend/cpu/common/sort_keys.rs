//! Elements as unsigned numbers of the same order, each packed with its position: so there is one instance of sorting for each width, positions
//! decide between equal elements, and a comparison is one of integers.

/// A key above a position of 32 bits.
pub(in crate::backend::cpu) trait SortKey: Copy + Ord {
    fn position(self) -> usize;
    /// Whether the elements are equal.
    fn is_like(self, other: Self) -> bool;
}

impl SortKey for u64 {
    #[inline(always)]
    fn position(self) -> usize {
        self as u32 as usize
    }
    #[inline(always)]
    fn is_like(self, other: u64) -> bool {
        self >> 32 == other >> 32
    }
}

impl SortKey for u128 {
    #[inline(always)]
    fn position(self) -> usize {
        self as u32 as usize
    }
    #[inline(always)]
    fn is_like(self, other: u128) -> bool {
        self >> 32 == other >> 32
    }
}

/// An element that can be sorted: nan is larger than everything, and both zeros are equal.
pub(in crate::backend::cpu) trait SortElement: Copy {
    type Keyed: SortKey;
    /// The element at this position; `descending` turns the order of elements, not that of positions.
    fn packed(self, descending: bool, position: usize) -> Self::Keyed;
    fn is_nan(self) -> bool;
}

macro_rules! sort_elements {
    ($($T:ty as $Key:ty => $SortKey:ty, |$x:ident| $key:expr, $nan:expr;)+) => {
        $(impl SortElement for $T {
            type Keyed = $SortKey;
            #[inline(always)]
            fn packed(self, descending: bool, position: usize) -> $SortKey {
                let $x = self;
                let key: $Key = $key;
                <$SortKey>::from(if descending { !key } else { key }) << 32 | <$SortKey>::from(position as u32)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                ($nan)(self)
            }
        })+
    };
}

sort_elements! {
    u8 as u32 => u64, |x| x.into(), |_| false;
    i8 as u32 => u64, |x| i32::from(x) as u32 ^ 1 << 31, |_| false;
    i16 as u32 => u64, |x| i32::from(x) as u32 ^ 1 << 31, |_| false;
    i32 as u32 => u64, |x| x as u32 ^ 1 << 31, |_| false;
    i64 as u64 => u128, |x| x as u64 ^ 1 << 63, |_| false;
    // The bits of a negative number all turn, of others the sign.
    f32 as u32 => u64, |x| {
        let bits = (x + 0.0).to_bits();
        if x.is_nan() { u32::MAX } else { bits ^ ((bits as i32 >> 31) as u32 | 1 << 31) }
    }, f32::is_nan;
    f64 as u64 => u128, |x| {
        let bits = (x + 0.0).to_bits();
        if x.is_nan() { u64::MAX } else { bits ^ ((bits as i64 >> 63) as u64 | 1 << 63) }
    }, f64::is_nan;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_order_of_elements() {
        let x = [f64::NEG_INFINITY, f64::MIN, -1.5, -f64::MIN_POSITIVE, -5e-324, 0.0, 5e-324, 1.0, f64::MAX, f64::INFINITY, f64::NAN];
        assert!(x.windows(2).all(|w| w[0].packed(false, 1) < w[1].packed(false, 0)));
        assert!(x.windows(2).all(|w| w[0].packed(true, 0) > w[1].packed(true, 1)));
        let y = [f32::NEG_INFINITY, -1.5, -1e-45, 0.0, 1e-45, 1.0, f32::INFINITY, -f32::NAN];
        assert!(y.windows(2).all(|w| w[0].packed(false, 1) < w[1].packed(false, 0)));
        assert!((-0.0f32).packed(true, 0).is_like(0.0f32.packed(true, 9)) && (-0.0f64).packed(false, 0).is_like(0.0f64.packed(false, 9)));
        let (i, j, k) = ([i64::MIN, -1, 0, 1, i64::MAX], [i8::MIN, -1, 0, 1, i8::MAX], [0u8, 1, 255]);
        assert!(i.windows(2).all(|w| w[0].packed(false, 1) < w[1].packed(false, 0)));
        assert!(j.windows(2).all(|w| w[0].packed(false, 1) < w[1].packed(false, 0)));
        assert!(k.windows(2).all(|w| w[0].packed(true, 0) > w[1].packed(true, 1)));
        assert_eq!((7.0f32.packed(true, 4_000_000_000).position(), 7i64.packed(false, 3).position()), (4_000_000_000, 3));
    }
}
