//! Dtypes in the CPU's kernels: which of them have loops over elements as they lie in memory, how the others are widened, and what elements are
//! that are only moved. A dtype that is computed in another one is named here and in the pairs of `common/cast`, and nowhere else below `cpu`.

use crate::layout::{DType, Number};

/// The types of elements over which sorting, pooling, products and their like have loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::backend::cpu) enum Loops {
    U8,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    C64,
    C128,
}

const LOOPS: [Option<Loops>; DType::COUNT] = {
    let mut all = [None; DType::COUNT];
    let mut i = 0;
    while i < DType::COUNT {
        let number = match DType::ALL[i].number() {
            Number::Bool | Number::U8 => Loops::U8,
            Number::I32 => Loops::I32,
            Number::I64 => Loops::I64,
            Number::F32 => Loops::F32,
            Number::F64 => Loops::F64,
            Number::C64 => Loops::C64,
            Number::C128 => Loops::C128,
        };
        all[i] = if DType::ALL[i].is_narrow() { None } else { Some(number) };
        i += 1;
    }
    all[DType::I8 as usize] = Some(Loops::I8);
    all[DType::I16 as usize] = Some(Loops::I16);
    all
};

/// Whose loops run over elements of the dtype as they lie in memory. None: requests convert them before and after (`common/widened`).
#[inline]
pub(in crate::backend::cpu) const fn loops(dtype: DType) -> Option<Loops> {
    LOOPS[dtype as usize]
}

/// Whether elements are converted to the dtype that they are computed in where a family has no loops that load them.
pub(in crate::backend::cpu) const fn is_widened(dtype: DType) -> bool {
    loops(dtype).is_none()
}

/// Runs `$body` with `$S` as the type in memory of integers that are computed in int32; `$other` for other dtypes.
macro_rules! by_narrow_integer {
    ($dtype:expr, $S:ident => $body:expr, _ => $other:expr) => {
        match $dtype {
            $crate::layout::DType::I8 => {
                type $S = i8;
                $body
            }
            $crate::layout::DType::I16 => {
                type $S = i16;
                $body
            }
            $crate::layout::DType::U16 => {
                type $S = u16;
                $body
            }
            _ => $other,
        }
    };
}

/// As `by_narrow_integer`, of floats that are computed in float32.
macro_rules! by_narrow_float {
    ($dtype:expr, $S:ident => $body:expr, _ => $other:expr) => {
        match $dtype {
            $crate::layout::DType::F16 => {
                type $S = $crate::layout::F16;
                $body
            }
            $crate::layout::DType::BF16 => {
                type $S = $crate::layout::BF16;
                $body
            }
            _ => $other,
        }
    };
}

/// Runs `$body` with `$T` as a type as wide as elements of `$dtype`, which are only moved.
macro_rules! by_width {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.size() {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = i16;
                $body
            }
            4 => {
                type $T = i32;
                $body
            }
            8 => {
                type $T = i64;
                $body
            }
            _ => {
                type $T = $crate::layout::Complex<i64>;
                $body
            }
        }
    };
}

/// Runs `$body` with `$T` as the type of the dtype's `loops`.
macro_rules! typed {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use $crate::backend::cpu::elem::Loops;
        match $crate::backend::cpu::elem::loops($dtype) {
            Some(Loops::U8) => {
                type $T = u8;
                $body
            }
            Some(Loops::I8) => {
                type $T = i8;
                $body
            }
            Some(Loops::I16) => {
                type $T = i16;
                $body
            }
            Some(Loops::I32) => {
                type $T = i32;
                $body
            }
            Some(Loops::I64) => {
                type $T = i64;
                $body
            }
            Some(Loops::F32) => {
                type $T = f32;
                $body
            }
            Some(Loops::F64) => {
                type $T = f64;
                $body
            }
            // `widened` has converted them, and complex numbers have loops of their own where they have any.
            Some(Loops::C64 | Loops::C128) | None => {
                return Err($crate::backend::cpu::common::operands::malformed("a request in a dtype that has no loops"));
            }
        }
    }};
}

/// As `typed`, for floats alone: others are refused.
macro_rules! float {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use $crate::backend::cpu::elem::Loops;
        match $crate::backend::cpu::elem::loops($dtype) {
            Some(Loops::F32) => {
                type $T = f32;
                $body
            }
            Some(Loops::F64) => {
                type $T = f64;
                $body
            }
            _ => return Err($crate::backend::cpu::common::operands::not_floating($dtype)),
        }
    }};
}

/// As `float`, for complex numbers, too.
macro_rules! float_or_complex {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use $crate::backend::cpu::elem::Loops;
        match $crate::backend::cpu::elem::loops($dtype) {
            Some(Loops::F32) => {
                type $T = f32;
                $body
            }
            Some(Loops::F64) => {
                type $T = f64;
                $body
            }
            Some(Loops::C64) => {
                type $T = $crate::layout::Complex32;
                $body
            }
            Some(Loops::C128) => {
                type $T = $crate::layout::Complex64;
                $body
            }
            _ => return Err($crate::backend::cpu::common::operands::not_floating($dtype)),
        }
    }};
}

pub(in crate::backend::cpu) use {by_narrow_float, by_narrow_integer, by_width, float, float_or_complex, typed};
