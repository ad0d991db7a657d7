//! Conversion of elements before the loops of a reduction: if a dtype, or a function such as `x != 0`, has no loops of its own, elements
//! are converted block by block, in the cache, to a type that has. So a new dtype needs loaders, not reducers.

use super::loops::instances;
use super::reducers::{Arithmetic, Float};
use crate::layout::{BF16, Complex32, Complex64, F16};
use crate::simd::{InstructionSet, instruction_set};
use std::marker::PhantomData;

/// Loads `rows` rows of `cols` elements. Strides are in elements: of the source (between rows, between columns), and between the columns
/// of the target, whose rows follow each other.
type LoadFn = unsafe fn(shape: (usize, usize), src: *const u8, ss: (isize, isize), dst: *mut u8, ds: isize, number: f64);

#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Bytes of an element in memory.
    pub size: usize,
    /// Whether rows are loaded as a whole: how elements are grouped decides the last bits of a sum of floats.
    pub whole: bool,
    loaders: [LoadFn; InstructionSet::COUNT],
}

impl Load {
    const fn of<E: LoadOp>() -> Self {
        Load { size: size_of::<E::Stored>(), whole: false, loaders: table::<E>() }
    }

    /// For sums of floats.
    pub const fn whole(self) -> Self {
        Load { whole: true, ..self }
    }

    /// 1 for what is not 0, nan too; 0 for 0.
    pub const fn nonzero<T: MaybeZero, A: Arithmetic>() -> Self {
        Self::of::<NonzeroLoad<T, A>>()
    }

    /// The same values in a wider type.
    pub const fn widened<T: Copy, A: Arithmetic + From<T>>() -> Self {
        Self::of::<WidenLoad<T, A>>()
    }

    pub const fn absolute<T: Copy, A: Float + From<T>>() -> Self {
        Self::of::<AbsoluteLoad<T, A>>()
    }

    /// Absolute values to the power of the reduction's number.
    pub const fn power<T: Copy, A: Float + From<T>>() -> Self {
        Self::of::<PowerLoad<T, A>>()
    }

    /// # Safety
    /// Elements of the loader's type are readable, and the target has room for the results and does not overlap them.
    #[inline(always)]
    pub(crate) unsafe fn run(
        &self,
        (rows, cols): (usize, usize),
        src: *const u8,
        ss: (isize, isize),
        dst: *mut u8,
        ds: isize,
        number: f64,
    ) {
        let shape = if rows > 1 && ss.0 == ss.1 * cols as isize { (1, rows * cols) } else { (rows, cols) };
        // SAFETY: the caller's; the features were found on this machine.
        unsafe { self.loaders[instruction_set() as usize](shape, src, ss, dst, ds, number) }
    }
}

/// The function that a loader applies to each element.
trait LoadOp {
    type Stored: Copy;
    type Loaded: Copy;
    fn of(x: Self::Stored, number: f64) -> Self::Loaded;
}

struct NonzeroLoad<T, A>(PhantomData<(T, A)>);
struct WidenLoad<T, A>(PhantomData<(T, A)>);
struct AbsoluteLoad<T, A>(PhantomData<(T, A)>);
struct PowerLoad<T, A>(PhantomData<(T, A)>);

/// Elements that can be told from 0 as they lie in memory.
pub trait MaybeZero: Copy {
    fn is_zero(self) -> bool;
}

macro_rules! maybe_zero {
    ($($t:ty: |$x:ident| $e:expr;)*) => { $(impl MaybeZero for $t {
        #[inline(always)]
        fn is_zero(self) -> bool {
            let $x = self;
            $e
        }
    })* };
}
maybe_zero! {
    u8: |x| x == 0;
    i16: |x| x == 0;
    i32: |x| x == 0;
    i64: |x| x == 0;
    F16: |x| x.0 & 0x7fff == 0;
    BF16: |x| x.0 & 0x7fff == 0;
    f32: |x| x == 0.0;
    f64: |x| x == 0.0;
    Complex32: |x| x.re == 0.0 && x.im == 0.0;
    Complex64: |x| x.re == 0.0 && x.im == 0.0;
}

impl<T: MaybeZero, A: Arithmetic> LoadOp for NonzeroLoad<T, A> {
    type Stored = T;
    type Loaded = A;
    #[inline(always)]
    fn of(x: T, _: f64) -> A {
        if x.is_zero() { A::ZERO } else { A::ONE }
    }
}

impl<T: Copy, A: Arithmetic + From<T>> LoadOp for WidenLoad<T, A> {
    type Stored = T;
    type Loaded = A;
    #[inline(always)]
    fn of(x: T, _: f64) -> A {
        x.into()
    }
}

impl<T: Copy, A: Float + From<T>> LoadOp for AbsoluteLoad<T, A> {
    type Stored = T;
    type Loaded = A;
    #[inline(always)]
    fn of(x: T, _: f64) -> A {
        A::from(x).absolute()
    }
}

impl<T: Copy, A: Float + From<T>> LoadOp for PowerLoad<T, A> {
    type Stored = T;
    type Loaded = f64;
    #[inline(always)]
    fn of(x: T, p: f64) -> f64 {
        A::from(x).wide().abs().powf(p)
    }
}

instances!(table = load, load_base load_avx2 load_avx512, [E: LoadOp], [E], (
    shape: (usize, usize), src: *const u8, ss: (isize, isize), dst: *mut u8, ds: isize, number: f64,
));

/// # Safety
/// As `Load::run` says.
#[inline(always)]
unsafe fn load<E: LoadOp>((rows, cols): (usize, usize), src: *const u8, ss: (isize, isize), dst: *mut u8, ds: isize, number: f64) {
    for r in 0..rows {
        let from = src.cast::<E::Stored>().wrapping_offset(r as isize * ss.0);
        let to = dst.cast::<E::Loaded>().wrapping_offset((r * cols) as isize * ds);
        // SAFETY: the caller's.
        unsafe {
            if ss.1 == 1 && ds == 1 {
                dense::<E>(std::slice::from_raw_parts(from, cols), std::slice::from_raw_parts_mut(to, cols), number);
            } else if ds == 1 {
                // Several at once, because the loads are independent.
                const TOGETHER: usize = 8;
                let whole = cols / TOGETHER * TOGETHER;
                for c in (0..whole).step_by(TOGETHER) {
                    let q = from.offset(c as isize * ss.1);
                    let x: [E::Stored; TOGETHER] = std::array::from_fn(|j| *q.offset(j as isize * ss.1));
                    to.add(c).cast::<[E::Loaded; TOGETHER]>().write(x.map(|x| E::of(x, number)));
                }
                (whole..cols).for_each(|c| to.add(c).write(E::of(*from.offset(c as isize * ss.1), number)));
            } else {
                (0..cols as isize).for_each(|c| to.offset(c * ds).write(E::of(*from.offset(c * ss.1), number)));
            }
        }
    }
}

#[inline(always)]
fn dense<E: LoadOp>(from: &[E::Stored], to: &mut [E::Loaded], number: f64) {
    from.iter().zip(to).for_each(|(x, to)| *to = E::of(*x, number));
}
