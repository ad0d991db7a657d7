//! Which elements in memory are computed as which numbers: floats of 16 bits as float32, the others as themselves.
//!
//! Not here: loops that convert many (`conv/patches.rs`).

use super::panel_vector::CoreNumber;

/// An element in memory, and the number that it is computed as.
pub trait StoredAs<T: CoreNumber>: Copy + Send + Sync + 'static {
    /// Whether both are the same type.
    const SAME: bool;
    fn wide(self) -> T;
    fn narrow(v: T) -> Self;
}

macro_rules! stored {
    ($($t:ty),*) => { $(
        impl StoredAs<$t> for $t {
            const SAME: bool = true;
            #[inline(always)]
            fn wide(self) -> $t {
                self
            }
            #[inline(always)]
            fn narrow(v: $t) -> $t {
                v
            }
        }
    )* };
}
stored!(f32, f64);

macro_rules! halves {
    ($($t:ty),*) => { $(
        impl StoredAs<f32> for $t {
            const SAME: bool = false;
            #[inline(always)]
            fn wide(self) -> f32 {
                self.to_f32()
            }
            #[inline(always)]
            fn narrow(v: f32) -> $t {
                <$t>::from_f32(v)
            }
        }
    )* };
}
halves!(crate::layout::F16, crate::layout::BF16);
