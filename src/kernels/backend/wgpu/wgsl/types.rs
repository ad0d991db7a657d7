//! Element types in shaders: how they lie in a buffer, what they are in a register, and how one becomes another.
//!
//! Buffers are arrays of `u32`, `vec2<u32>` (int64, low word first) or `f64`; so one buffer has one type whatever lies in it, and
//! bits of nan pass untouched.

use crate::layout::{BF16, DType, F16, Scalar};

/// The WGSL type of one element in a buffer: `array<{storage}>`.
pub const fn storage(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::F16 | DType::BF16 | DType::F32 => "u32",
        DType::I64 => "vec2<u32>",
        DType::F64 => "f64",
    }
}

/// The WGSL type of one element in a register. bool is a `u32` of 0 or 1, uint8 one below 256; int8 and int16 are an `i32` in their range.
pub const fn value(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::U8 => "u32",
        DType::I8 | DType::I16 | DType::I32 => "i32",
        DType::I64 => "vec2<u32>",
        DType::F16 | DType::BF16 | DType::F32 => "f32",
        DType::F64 => "f64",
    }
}

/// An expression for 0.
pub const fn zero(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::U8 => "0u",
        DType::I8 | DType::I16 | DType::I32 => "0",
        DType::I64 => "vec2<u32>()",
        DType::F16 | DType::BF16 | DType::F32 => "0.0",
        DType::F64 => "0.0lf",
    }
}

/// The element `index` of the array `buffer`, as a value.
pub fn load(dtype: DType, buffer: &str, index: &str) -> String {
    match dtype {
        DType::I8 | DType::I16 | DType::I32 => format!("bitcast<i32>({buffer}[{index}])"),
        DType::F16 | DType::BF16 | DType::F32 => format!("bitcast<f32>({buffer}[{index}])"),
        DType::Bool | DType::U8 | DType::I64 | DType::F64 => format!("{buffer}[{index}]"),
    }
}

/// The statement that writes `value` to the element `index` of the array `buffer`.
pub fn store(dtype: DType, buffer: &str, index: &str, value: &str) -> String {
    match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::F16 | DType::BF16 | DType::F32 => {
            format!("{buffer}[{index}] = bitcast<u32>({value});")
        }
        DType::Bool | DType::U8 | DType::I64 | DType::F64 => format!("{buffer}[{index}] = {value};"),
    }
}

/// `v`, an `i32`, as int8 or int16 holds it: the low bits, with their sign above; or an `f32` as a float of 16 bits holds it. Other dtypes
/// leave it as it is.
pub fn narrowed(to: DType, v: &str) -> String {
    match to {
        DType::I8 => format!("extractBits({v}, 0u, 8u)"),
        DType::I16 => format!("extractBits({v}, 0u, 16u)"),
        DType::F16 => format!("f16_round({v})"),
        DType::BF16 => format!("bf16_round({v})"),
        DType::Bool | DType::U8 | DType::I32 | DType::I64 | DType::F32 | DType::F64 => v.to_owned(),
    }
}

/// `v`, a value of `from`, as a value of `to`. Floats are truncated on the way to integers; what is out of range, and nan, become
/// the least int64 or int32, as on the CPU.
pub fn convert(from: DType, to: DType, v: &str) -> String {
    use DType::*;
    match to {
        Bool => match from {
            Bool => v.to_owned(),
            U8 => format!("select(0u, 1u, {v} != 0u)"),
            I8 | I16 | I32 => format!("select(0u, 1u, {v} != 0)"),
            I64 => format!("select(0u, 1u, any({v} != vec2<u32>()))"),
            F16 | BF16 | F32 => format!("select(0u, 1u, (bitcast<u32>({v}) & 0x7fffffffu) != 0u)"),
            F64 => format!("select(1u, 0u, f64_is_zero({v}))"),
        },
        U8 => match from {
            Bool | U8 => v.to_owned(),
            I8 | I16 | I32 => format!("(bitcast<u32>({v}) & 255u)"),
            I64 => format!("(({v}).x & 255u)"),
            F16 | BF16 | F32 => format!("(f32_to_i64({v}).x & 255u)"),
            F64 => format!("(f64_to_i64({v}).x & 255u)"),
        },
        I8 => match from {
            I8 => v.to_owned(),
            Bool | U8 | I16 | I32 | I64 | F16 | BF16 | F32 | F64 => narrowed(to, &convert(from, I32, v)),
        },
        I16 => match from {
            Bool | U8 | I8 => convert(from, I32, v),
            I16 => v.to_owned(),
            I32 | I64 | F16 | BF16 | F32 | F64 => narrowed(to, &convert(from, I32, v)),
        },
        I32 => match from {
            Bool | U8 => format!("i32({v})"),
            I8 | I16 | I32 => v.to_owned(),
            I64 => format!("bitcast<i32>(({v}).x)"),
            F16 | BF16 | F32 => format!("f32_to_i32({v})"),
            F64 => format!("f64_to_i32({v})"),
        },
        I64 => match from {
            Bool | U8 => format!("vec2<u32>({v}, 0u)"),
            I8 | I16 | I32 => format!("i64_from_i32({v})"),
            I64 => v.to_owned(),
            F16 | BF16 | F32 => format!("f32_to_i64({v})"),
            F64 => format!("f64_to_i64({v})"),
        },
        F16 | BF16 if from == to => v.to_owned(),
        F16 | BF16 => narrowed(to, &convert(from, F32, v)),
        F32 => match from {
            Bool | U8 | I8 | I16 | I32 | F64 => format!("f32({v})"),
            I64 => format!("i64_to_f32({v})"),
            F16 | BF16 | F32 => v.to_owned(),
        },
        F64 => match from {
            Bool | U8 | I8 | I16 | I32 | F16 | BF16 | F32 => format!("f64({v})"),
            I64 => format!("i64_to_f64({v})"),
            F64 => v.to_owned(),
        },
    }
}

/// Parameter words (one, or two with the low one first) of `value` as an element of `dtype`; `from_words` reads them.
pub fn to_words(value: Scalar, dtype: DType) -> [u32; 2] {
    let whole = match value {
        Scalar::Float(v) if v.is_nan() || v >= 9_223_372_036_854_775_808.0 => i64::MIN,
        v => v.to_i64(),
    };
    let two = |bits: u64| [bits as u32, (bits >> 32) as u32];
    match dtype {
        DType::Bool => [u32::from(value.to_bool()), 0],
        DType::U8 => [u32::from(whole as u8), 0],
        DType::I8 => [whole as i8 as u32, 0],
        DType::I16 => [whole as i16 as u32, 0],
        DType::I32 => [whole as u32, 0],
        DType::I64 => two(whole as u64),
        DType::F16 => [F16::from_f32(value.to_f64() as f32).to_f32().to_bits(), 0],
        DType::BF16 => [BF16::from_f32(value.to_f64() as f32).to_f32().to_bits(), 0],
        DType::F32 => [(value.to_f64() as f32).to_bits(), 0],
        DType::F64 => two(value.to_f64().to_bits()),
    }
}

/// The dtype in which the parameters of a row are given: those of 16-bit floats are seen in float32.
pub const fn number(dtype: DType) -> DType {
    if dtype.is_half() { DType::F32 } else { dtype }
}

/// The dtype in which a number of `from` is given to a step that sees it as `to`: a float32 beside floats of 16 bits stays as it is.
pub fn beside(from: DType, to: DType) -> DType {
    if to.is_half() && from == DType::F32 { from } else { to }
}

/// The value whose parameter words are the expressions `low` and `high`.
pub fn from_words(dtype: DType, low: &str, high: &str) -> String {
    match dtype {
        DType::Bool | DType::U8 => low.to_owned(),
        DType::I8 | DType::I16 | DType::I32 => format!("bitcast<i32>({low})"),
        DType::F16 | DType::BF16 | DType::F32 => format!("bitcast<f32>({low})"),
        DType::I64 => format!("vec2<u32>({low}, {high})"),
        DType::F64 => format!("f64_from_bits({low}, {high})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_what_the_cpu_would_store() {
        for (value, dtype, words) in [
            (Scalar::Float(f64::NAN), DType::I64, [0, 0x8000_0000]),
            (Scalar::Float(f64::INFINITY), DType::I32, [0, 0]),
            (Scalar::Float(-1.9), DType::I32, [u32::MAX, 0]),
            (Scalar::Int(-1), DType::I64, [u32::MAX, u32::MAX]),
            (Scalar::Int(257), DType::U8, [1, 0]),
            (Scalar::Int(255), DType::I8, [u32::MAX, 0]),
            (Scalar::Int(-32769), DType::I16, [32767, 0]),
            (Scalar::Int(3), DType::Bool, [1, 0]),
            (Scalar::Float(-0.0), DType::F32, [0x8000_0000, 0]),
        ] {
            assert_eq!(to_words(value, dtype), words, "{value} as {dtype}");
        }
    }
}
