//! Conversions between dtypes: loops over rows and columns of strided elements, for each pair. Not here: how an array is divided into such tiles
//! (`copy`).

#[cfg(target_arch = "x86_64")]
mod half;

use crate::backend::cpu::elem::by_narrow_integer;
use crate::layout::{BF16, Complex, Complex32, Complex64, ComplexHalf, DType, Element, F16, Scalar};
#[cfg(target_arch = "x86_64")]
use crate::simd::{InstructionSet, instruction_set};
use std::mem::MaybeUninit;

/// Moves `rows * cols` elements. Strides are in bytes, (between rows, between columns).
pub type ConvertFn = unsafe fn(rows: usize, cols: usize, src: *const u8, ss: (isize, isize), dst: *mut u8, ds: (isize, isize));

/// A conversion between element types as they lie in memory.
trait Convert<D>: Copy {
    /// Whether elements stay as they are.
    const MOVES: bool = false;
    fn convert(self) -> D;
}

/// Elements from which on a move of a row is a call.
const MANY: usize = 64;

/// `bool` in memory: true if the byte is not 0. Memory from outside (NumPy, DLPack) may hold any byte.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct StoredBool(u8);

macro_rules! convert {
    ($($S:ty as $D:ty => |$x:ident| $e:expr;)+) => {
        $(impl Convert<$D> for $S {
            #[inline(always)]
            fn convert(self) -> $D {
                let $x = self;
                $e
            }
        })+
    };
}

macro_rules! moves {
    ($($T:ty)+) => {
        $(impl Convert<$T> for $T {
            const MOVES: bool = true;
            #[inline(always)]
            fn convert(self) -> $T {
                self
            }
        })+
    };
}
moves!(u8 i16 i32 i64 Complex<i64>);

/// What x86's conversion gives: values out of range and nan become the least integer. (`as` alone would saturate.)
macro_rules! truncate {
    ($($name:ident: $F:ty => $I:ty, $limit:literal;)+) => { $(
        #[inline(always)]
        fn $name(x: $F) -> $I {
            let x = if x < $limit { x } else { -$limit };
            let x = if x > -$limit { x } else { -$limit };
            // SAFETY: from -limit, which nan has become too, to below limit.
            unsafe { x.to_int_unchecked() }
        }
    )+ };
}

truncate! {
    f32_to_i32: f32 => i32, 2_147_483_648.0;
    f32_to_i64: f32 => i64, 9_223_372_036_854_775_808.0;
    f64_to_i32: f64 => i32, 2_147_483_648.0;
    to_i64: f64 => i64, 9_223_372_036_854_775_808.0;
}

// The other pairs of types with loops of their own. A copy without conversion moves integers of the same size.
convert! {
    StoredBool as StoredBool => |x| StoredBool((x.0 != 0) as u8);
    StoredBool as i32 => |x| (x.0 != 0) as i32;
    StoredBool as i64 => |x| (x.0 != 0) as i64;
    StoredBool as f32 => |x| (x.0 != 0) as u8 as f32;
    u8 as StoredBool => |x| StoredBool((x != 0) as u8);
    u8 as i32 => |x| x as i32;
    u8 as i64 => |x| x as i64;
    u8 as f32 => |x| x as f32;
    i8 as i32 => |x| x as i32;
    i8 as f32 => |x| x as f32;
    i16 as i32 => |x| x as i32;
    i16 as f32 => |x| x as f32;
    i32 as StoredBool => |x| StoredBool((x != 0) as u8);
    i32 as u8 => |x| x as u8;
    i32 as i16 => |x| x as i16;
    i32 as i64 => |x| x as i64;
    i32 as f32 => |x| x as f32;
    i32 as f64 => |x| x as f64;
    i64 as StoredBool => |x| StoredBool((x != 0) as u8);
    i64 as u8 => |x| x as u8;
    i64 as i32 => |x| x as i32;
    i64 as f32 => |x| x as f32;
    i64 as f64 => |x| x as f64;
    f32 as StoredBool => |x| StoredBool((x != 0.0) as u8);
    // From 2^31 on the last byte of a whole f32 is 0, as it is of the least integer.
    f32 as u8 => |x| f32_to_i32(x) as u8;
    f32 as i16 => |x| f32_to_i32(x) as i16;
    f32 as i32 => |x| f32_to_i32(x);
    f32 as i64 => |x| f32_to_i64(x);
    f32 as f64 => |x| x as f64;
    F16 as f32 => |x| x.to_f32();
    BF16 as f32 => |x| x.to_f32();
    f32 as F16 => |x| F16::from_f32(x);
    f32 as BF16 => |x| BF16::from_f32(x);
    i16 as StoredBool => |x| StoredBool((x != 0) as u8);
    u16 as i32 => |x| x as i32;
    u32 as i64 => |x| x as i64;
    u64 as f32 => |x| x as f32;
    u64 as f64 => |x| x as f64;
    f32 as u64 => |x| Scalar::Float(x as f64).truncated_unsigned();
    f64 as u64 => |x| Scalar::Float(x).truncated_unsigned();
    f64 as StoredBool => |x| StoredBool((x != 0.0) as u8);
    f64 as i32 => |x| f64_to_i32(x);
    f64 as i64 => |x| to_i64(x);
    f64 as f32 => |x| x as f32;
    // A real number has no imaginary part, and what is left of a complex number is its real part.
    f32 as Complex32 => |x| Complex { re: x, im: 0.0 };
    f64 as Complex64 => |x| Complex { re: x, im: 0.0 };
    Complex32 as f32 => |x| x.re;
    Complex64 as f64 => |x| x.re;
    Complex32 as Complex64 => |x| Complex { re: x.re as f64, im: x.im as f64 };
    Complex64 as Complex32 => |x| Complex { re: x.re as f32, im: x.im as f32 };
    ComplexHalf as Complex32 => |x| Complex { re: x.re.to_f32(), im: x.im.to_f32() };
    Complex32 as ComplexHalf => |x| Complex { re: F16::from_f32(x.re), im: F16::from_f32(x.im) };
    Complex32 as StoredBool => |x| StoredBool((x.re != 0.0 || x.im != 0.0) as u8);
    Complex64 as StoredBool => |x| StoredBool((x.re != 0.0 || x.im != 0.0) as u8);
}

/// # Safety
/// Every element named by the sizes and strides is readable at `src`, writable at `dst`, and aligned. No place of `dst` is also a
/// place of `src` except the same one.
#[inline(always)]
unsafe fn convert_strided<S: Convert<D>, D: Copy>(
    rows: usize,
    cols: usize,
    src: *const u8,
    ss: (isize, isize),
    dst: *mut u8,
    ds: (isize, isize),
) {
    let (s1, d1) = (size_of::<S>() as isize, size_of::<D>() as isize);
    if rows > 1 && ss.1.abs() > ss.0.abs() && ss.0 != 0 {
        if rows >= 8 && cols >= 8 {
            // SAFETY: the caller's.
            return unsafe { across::<S, D>(rows, cols, src, ss, dst, ds) };
        }
        for c in 0..cols as isize {
            for r in 0..rows as isize {
                // SAFETY: the caller's.
                unsafe {
                    let v = *(src.offset(r * ss.0 + c * ss.1) as *const S);
                    *(dst.offset(r * ds.0 + c * ds.1) as *mut D) = v.convert();
                }
            }
        }
        return;
    }
    for r in 0..rows as isize {
        // SAFETY: the caller's, for every access below.
        unsafe {
            let (src, dst) = (src.offset(r * ss.0), dst.offset(r * ds.0));
            if S::MOVES && ds.1 == d1 && ss.1 == s1 {
                let bytes = cols * size_of::<S>();
                if cols < MANY { move_few(src, dst, bytes) } else { std::ptr::copy(src, dst, bytes) }
            } else if ds.1 == d1 && ss.1 == s1 {
                let (src, dst) = (src as *const S, dst as *mut D);
                for c in 0..cols {
                    *dst.add(c) = (*src.add(c)).convert();
                }
            } else if S::MOVES && (ss.1, ds.1) == (-s1, d1) {
                reversed::<S, D>(cols, src.cast(), dst.cast());
            } else if S::MOVES && (ss.1, ds.1) == (s1, -d1) {
                // From the other end.
                let last = cols as isize - 1;
                reversed::<S, D>(cols, src.offset(last * s1).cast(), dst.offset(-last * d1).cast());
            } else if ds.1 == d1 && ss.1 == 0 {
                let (v, dst) = ((*(src as *const S)).convert(), dst as *mut D);
                for c in 0..cols {
                    *dst.add(c) = v;
                }
            } else {
                for c in 0..cols as isize {
                    *(dst.offset(c * ds.1) as *mut D) = (*(src.offset(c * ss.1) as *const S)).convert();
                }
            }
        }
    }
}

/// Copies a short row: what is left behind whole vectors is copied again together with some of what was before.
///
/// # Safety
/// As for `convert_strided`.
#[inline(always)]
unsafe fn move_few(src: *const u8, dst: *mut u8, bytes: usize) {
    // Both ends are read before either is written.
    macro_rules! ends {
        ($n:literal) => {{
            let last = bytes - $n;
            // SAFETY: the caller's.
            unsafe {
                let ends = [src, src.add(last)].map(|p| p.cast::<[u8; $n]>().read_unaligned());
                dst.cast::<[u8; $n]>().write_unaligned(ends[0]);
                dst.add(last).cast::<[u8; $n]>().write_unaligned(ends[1]);
            }
        }};
    }
    match bytes {
        64.. => {
            let last = bytes - 32;
            // SAFETY: the caller's.
            unsafe {
                let end = src.add(last).cast::<[u8; 32]>().read_unaligned();
                for at in (0..last).step_by(32) {
                    dst.add(at).cast::<[u8; 32]>().write_unaligned(src.add(at).cast::<[u8; 32]>().read_unaligned());
                }
                dst.add(last).cast::<[u8; 32]>().write_unaligned(end);
            }
        }
        32.. => ends!(32),
        16.. => ends!(16),
        8.. => ends!(8),
        4.. => ends!(4),
        2.. => ends!(2),
        // SAFETY: the caller's.
        1 => unsafe { *dst = *src },
        0 => {}
    }
}

/// Copies `n` elements that lie in reverse order. Several are read before any is written: that is a vector without a look at whether the memories
/// overlap.
///
/// # Safety
/// As for `convert_strided`.
#[inline(always)]
unsafe fn reversed<S: Convert<D>, D: Copy>(n: usize, src: *const S, dst: *mut D) {
    const TOGETHER: usize = 16;
    let whole = n - n % TOGETHER;
    // SAFETY: the caller's.
    unsafe {
        for i in (0..whole).step_by(TOGETHER) {
            let some: [D; TOGETHER] = std::array::from_fn(|j| (*src.sub(i + j)).convert());
            dst.add(i).cast::<[D; TOGETHER]>().write(some);
        }
        for i in whole..n {
            *dst.add(i) = (*src.sub(i)).convert();
        }
    }
}

/// `convert_strided` where the source is denser along the other dimension: small squares go through a buffer, so that each cache line is read
/// once and written once.
///
/// # Safety
/// As for `convert_strided`.
#[inline(always)]
unsafe fn across<S: Convert<D>, D: Copy>(rows: usize, cols: usize, src: *const u8, ss: (isize, isize), dst: *mut u8, ds: (isize, isize)) {
    const SIDE: usize = 16;
    let mut square = [const { MaybeUninit::<D>::uninit() }; SIDE * SIDE];
    for r0 in (0..rows).step_by(SIDE) {
        let height = SIDE.min(rows - r0);
        for c0 in (0..cols).step_by(SIDE) {
            let width = SIDE.min(cols - c0);
            // SAFETY: the caller's; of the buffer only what was written is read.
            unsafe {
                let src = src.offset(r0 as isize * ss.0 + c0 as isize * ss.1);
                let dst = dst.offset(r0 as isize * ds.0 + c0 as isize * ds.1);
                if height == SIDE && width == SIDE && ss.0 == size_of::<S>() as isize && ds.1 == size_of::<D>() as isize {
                    // Whole cache lines, so that several are in flight at the same time.
                    let lines: [[S; SIDE]; SIDE] = std::array::from_fn(|c| (src.offset(c as isize * ss.1) as *const [S; SIDE]).read());
                    let element = |r: usize, c: usize| lines[c][r].convert();
                    for r in 0..SIDE {
                        let row: [D; SIDE] = std::array::from_fn(|c| element(r, c));
                        (dst.offset(r as isize * ds.0) as *mut [D; SIDE]).write(row);
                    }
                    continue;
                }
                for c in 0..width {
                    let column = src.offset(c as isize * ss.1);
                    for r in 0..height {
                        square[r * SIDE + c].write((*(column.offset(r as isize * ss.0) as *const S)).convert());
                    }
                }
                for r in 0..height {
                    let row = dst.offset(r as isize * ds.0);
                    for c in 0..width {
                        *(row.offset(c as isize * ds.1) as *mut D) = square[r * SIDE + c].assume_init();
                    }
                }
            }
        }
    }
}

/// `convert_strided` for any machine.
///
/// # Safety
/// As for `convert_strided`.
unsafe fn base<S: Convert<D>, D: Copy>(rows: usize, cols: usize, src: *const u8, ss: (isize, isize), dst: *mut u8, ds: (isize, isize)) {
    // SAFETY: the caller's.
    unsafe { convert_strided::<S, D>(rows, cols, src, ss, dst, ds) }
}

/// `convert_strided` with the instructions of AVX2.
///
/// # Safety
/// As for `convert_strided`; the machine has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt")]
unsafe fn avx2<S: Convert<D>, D: Copy>(rows: usize, cols: usize, src: *const u8, ss: (isize, isize), dst: *mut u8, ds: (isize, isize)) {
    // SAFETY: the caller's.
    unsafe { convert_strided::<S, D>(rows, cols, src, ss, dst, ds) }
}

/// `convert_strided` in two steps, tile by tile: `first` converts to numbers of `wide` bytes, and `second` converts those. So rarely used pairs of
/// types need no loops of their own.
///
/// # Safety
/// As for `convert_strided`; `first` and `second` meet in one type.
#[allow(clippy::too_many_arguments)]
unsafe fn two_steps(
    first: ConvertFn,
    second: ConvertFn,
    wide: usize,
    (rows, cols): (usize, usize),
    src: *const u8,
    ss: (isize, isize),
    dst: *mut u8,
    ds: (isize, isize),
) {
    const TILE: usize = 1024;
    const HIGH: usize = 16;
    let mut tile = [const { MaybeUninit::<Complex64>::uninit() }; TILE];
    let tile = tile.as_mut_ptr().cast::<u8>();
    let most = TILE / rows.clamp(1, HIGH);
    for r in (0..rows).step_by(HIGH) {
        let height = HIGH.min(rows - r);
        for c in (0..cols).step_by(most) {
            let width = most.min(cols - c);
            let between = ((width * wide) as isize, wide as isize);
            let at = |s: (isize, isize)| r as isize * s.0 + c as isize * s.1;
            // SAFETY: the caller's; the tile holds as many numbers, which are written before they are read.
            unsafe {
                first(height, width, src.offset(at(ss)), ss, tile, between);
                second(height, width, tile, between, dst.offset(at(ds)), ds);
            }
        }
    }
}

/// Conversions whose dense rows have a loop of their own.
#[cfg(target_arch = "x86_64")]
macro_rules! dense {
    ($($name:ident: $S:ty => $D:ty;)+) => { $(
        /// # Safety
        /// As for `convert_strided`; the machine has AVX2.
        unsafe fn $name(rows: usize, cols: usize, src: *const u8, ss: (isize, isize), dst: *mut u8, ds: (isize, isize)) {
            // SAFETY: the caller's.
            unsafe {
                if (ss.1, ds.1) != (size_of::<$S>() as isize, size_of::<$D>() as isize) {
                    return avx2::<$S, $D>(rows, cols, src, ss, dst, ds);
                }
                for r in 0..rows as isize {
                    half::$name(cols, src.offset(r * ss.0).cast(), dst.offset(r * ds.0).cast());
                }
            }
        }
    )+ };
}
#[cfg(target_arch = "x86_64")]
dense! {
    to_f16: f32 => F16;
    of_f16: F16 => f32;
    to_bf16: f32 => BF16;
}

/// The dtype through which elements of `from` become those of `to` where the pair has no loops of its own: one that holds every value of the
/// first, or every one that the result depends on.
const fn between(from: DType, to: DType) -> DType {
    if from.is_complex() && !to.is_complex() {
        if from.is_narrow() { DType::C64 } else { from.row().real }
    } else if to.is_complex() && !from.is_complex() {
        // By way of a real part that holds all digits, where there is one.
        if to.is_narrow() { DType::C64 } else { to.row().real }
    } else if to.is_narrow() && to.is_complex() {
        DType::C64
    } else if to.is_narrow() && to.is_float() {
        DType::F32
    } else if from.is_narrow() {
        from.computed()
    } else if to.is_narrow() {
        to.computed()
    } else {
        DType::I64
    }
}

type ConvertTable = [[ConvertFn; DType::COUNT]; DType::COUNT];

/// `convert_strided` by way of `between`, whose two pairs are in the same table.
///
/// # Safety
/// As for `convert_strided`; with `WIDE` the machine has AVX2.
unsafe fn through<const WIDE: bool, const FROM: usize, const TO: usize>(
    rows: usize,
    cols: usize,
    src: *const u8,
    ss: (isize, isize),
    dst: *mut u8,
    ds: (isize, isize),
) {
    let by = const {
        let by = between(DType::ALL[FROM], DType::ALL[TO]);
        assert!(by as usize != FROM && by as usize != TO, "a pair without loops needs a dtype between");
        by
    };
    let table = if WIDE { &AVX2 } else { &BASE };
    // SAFETY: the caller's.
    unsafe { two_steps(table[FROM][by as usize], table[by as usize][TO], by.size(), (rows, cols), src, ss, dst, ds) }
}

/// A table of `through` for all pairs of the listed dtypes.
macro_rules! indirect {
    ($wide:literal; $all:tt) => {
        indirect!(@ $wide; $all; $all)
    };
    (@ $wide:literal; ($($From:ident)+); $all:tt) => {
        [$(indirect!(@ $wide $From; $all)),+]
    };
    (@ $wide:literal $From:ident; ($($To:ident)+)) => {
        [$(through::<$wide, { DType::$From as usize }, { DType::$To as usize }> as ConvertFn),+]
    };
}

/// Puts `$f` into a table, for pairs of the types that elements of dtypes have in its loops: `type: dtype => type: dtype ..., ...;`.
macro_rules! direct {
    ($table:ident, $f:ident; $($S:ty: $From:ident => $($D:ty: $($To:ident)+),+;)+) => {
        $($($($table[DType::$From as usize][DType::$To as usize] = $f::<$S, $D>;)+)+)+
    };
}

macro_rules! table {
    ($wide:literal, $f:ident) => {{
        let mut table = indirect!($wide; (Bool U8 I8 I16 I32 I64 F16 BF16 F32 F64 C32 C64 C128 U16 U32 U64));
        // Elements that stay as they are move by their width.
        direct! { table, $f;
            StoredBool: Bool => StoredBool: Bool U8 I8, i32: I32, i64: I64, f32: F32;
            u8: U8 => StoredBool: Bool, u8: U8 I8, i32: I32, i64: I64, f32: F32;
            u8: I8 => StoredBool: Bool, u8: U8 I8;
            i8: I8 => i32: I32, f32: F32;
            i16: I16 => i16: I16, i32: I32, f32: F32;
            u16: U16 => i32: I32;
            i16: U16 => StoredBool: Bool, i16: U16;
            u32: U32 => i64: I64;
            i32: U32 => StoredBool: Bool, i32: U32;
            u64: U64 => f32: F32, f64: F64;
            i64: U64 => StoredBool: Bool, i64: I64 U64;
            f32: F32 => u64: U64;
            f64: F64 => u64: U64;
            i32: I32 => StoredBool: Bool, u8: U8 I8, i16: I16 U16, i32: I32, i64: I64, f32: F32, f64: F64;
            i64: I64 => StoredBool: Bool, u8: U8 I8, i32: I32 U32, i64: I64 U64, f32: F32, f64: F64;
            F16: F16 => f32: F32;
            i16: F16 => i16: F16;
            BF16: BF16 => f32: F32;
            i16: BF16 => i16: BF16;
            f32: F32 => StoredBool: Bool, u8: U8 I8, i16: I16, i32: I32, i64: I64, F16: F16, BF16: BF16, f64: F64;
            i32: F32 => i32: F32;
            f64: F64 => StoredBool: Bool, i32: I32, i64: I64, f32: F32;
            i64: F64 => i64: F64;
            f32: F32 => Complex32: C64;
            f64: F64 => Complex64: C128;
            i32: C32 => i32: C32;
            ComplexHalf: C32 => Complex32: C64;
            i64: C64 => i64: C64;
            Complex32: C64 => ComplexHalf: C32, f32: F32, StoredBool: Bool, Complex64: C128;
            Complex<i64>: C128 => Complex<i64>: C128;
            Complex64: C128 => f64: F64, StoredBool: Bool, Complex32: C64;
        }
        table
    }};
}

static BASE: ConvertTable = table!(false, base);
#[cfg(target_arch = "x86_64")]
static AVX2: ConvertTable = table!(true, avx2);
#[cfg(not(target_arch = "x86_64"))]
static AVX2: ConvertTable = BASE;

/// The function that moves elements of `from` to places of `to`.
#[inline]
pub fn convert_fn(from: DType, to: DType) -> ConvertFn {
    #[cfg(target_arch = "x86_64")]
    if instruction_set() != InstructionSet::Base {
        return match (from, to) {
            (DType::F32, DType::F16) => to_f16,
            (DType::F16, DType::F32) => of_f16,
            (DType::F32, DType::BF16) => to_bf16,
            _ => AVX2[from as usize][to as usize],
        };
    }
    BASE[from as usize][to as usize]
}

/// A conversion by way of a third type, with the results of storing the elements as that type in between.
#[derive(Debug, Clone, Copy)]
pub struct CastRoute {
    first: ConvertFn,
    /// From the type between, and the size of its elements.
    second: Option<(ConvertFn, usize)>,
}

impl CastRoute {
    /// A float32 beside floats of 16 bits is a number that stays as it is: tensors of another dtype were converted before.
    pub fn new(from: DType, stored: DType, to: DType) -> CastRoute {
        if from == stored || stored == to || stored.is_half() && from == DType::F32 {
            return CastRoute { first: convert_fn(from, to), second: None };
        }
        CastRoute { first: convert_fn(from, stored), second: Some((convert_fn(stored, to), stored.size())) }
    }

    /// # Safety
    /// As for `convert_strided`.
    #[inline]
    pub unsafe fn run(&self, rows: usize, cols: usize, src: *const u8, ss: (isize, isize), dst: *mut u8, ds: (isize, isize)) {
        // SAFETY: the caller's.
        unsafe {
            match self.second {
                None => (self.first)(rows, cols, src, ss, dst, ds),
                Some((second, size)) => two_steps(self.first, second, size, (rows, cols), src, ss, dst, ds),
            }
        }
    }
}

/// The number as a narrow integer dtype (one that is computed in a wider dtype) would store it. Other dtypes leave it unchanged: parameters
/// of 16-bit floats are seen in float32, as PyTorch's kernels see them.
#[inline]
pub fn stored(value: Scalar, dtype: DType) -> Scalar {
    by_narrow_integer!(dtype, S => <S as Element>::of_scalar(value).to_scalar(), _ => value)
}
