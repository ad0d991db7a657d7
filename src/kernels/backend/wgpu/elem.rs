//! Dtypes in shaders: how elements lie in a buffer, what they are in a register, and how one becomes another.
//!
//! Buffers are arrays of `u32`, `vec2<u32>` (int64, low word first) or `f64`; so one buffer has one type whatever lies in it, and
//! bits of nan pass untouched. A complex number lies in two
//! words, its parts, which other bindings may have as floats. A register holds the `Number` that a dtype is computed in; a narrow dtype is a number in its range, which
//! `narrowed` cuts or rounds again. So a dtype that is computed in another one has no row here, except floats that buffers hold packed.

use crate::host::memory::raw_slice::RawSlice;
use crate::layout::{DType, Element, Number, NumberKind, Scalar, by_element};

/// What shaders know of a type of numbers.
struct NumberRow {
    /// The WGSL type of one element in a buffer: `array<{storage}>`.
    storage: &'static str,
    /// The WGSL type in a register. bool is a `u32` of 0 or 1, uint8 one below 256.
    value: &'static str,
    /// An expression for 0.
    zero: &'static str,
    /// How the library's functions begin.
    prefix: &'static str,
    /// Words of 32 bits.
    words: usize,
}

const fn row(dtype: DType) -> NumberRow {
    match dtype.number() {
        Number::Bool => NumberRow { storage: "u32", value: "u32", zero: "0u", prefix: "bool", words: 1 },
        Number::U8 => NumberRow { storage: "u32", value: "u32", zero: "0u", prefix: "u8", words: 1 },
        Number::I32 => NumberRow { storage: "u32", value: "i32", zero: "0", prefix: "i32", words: 1 },
        Number::I64 => NumberRow { storage: "vec2<u32>", value: "vec2<u32>", zero: "vec2<u32>()", prefix: "i64", words: 2 },
        Number::F32 => NumberRow { storage: "u32", value: "f32", zero: "0.0", prefix: "f32", words: 1 },
        Number::F64 => NumberRow { storage: "f64", value: "f64", zero: "0.0lf", prefix: "f64", words: 2 },
        Number::C64 => NumberRow { storage: "u32", value: "vec2<f32>", zero: "vec2<f32>()", prefix: "c64", words: 2 },
        Number::C128 => no_complex128(),
    }
}

/// The real dtypes that shaders know.
pub const REAL_ON_DEVICE: &[DType] = {
    const ALL: &[DType] = &DType::ALL;
    let (known, others) = ALL.split_at(DType::C32 as usize);
    let mut k = 0;
    while k < others.len() {
        assert!(others[k].is_complex() || others[k].is_wide_unsigned(), "what is not on the device are the last rows");
        k += 1;
    }
    known
};

/// The dtypes that shaders know.
pub fn on_device() -> impl Iterator<Item = DType> {
    REAL_ON_DEVICE.iter().copied().chain([DType::C64])
}

/// Complex numbers of other precisions than complex64 have no shaders: the device refuses tensors of them (`Context::supports`).
#[cold]
pub const fn no_complex128() -> ! {
    panic!("a shader was asked for complex128 or complex32, which no device of wgpu takes")
}

/// Families that do not say `takes_complex` are not asked for complex numbers (`Wgpu::run`).
#[cold]
pub const fn no_complex() -> ! {
    panic!("a shader was asked for complex numbers, which its family does not take")
}

/// The WGSL type of one element in a buffer: `array<{storage}>`.
pub const fn storage(dtype: DType) -> &'static str {
    row(dtype).storage
}

/// The WGSL type of one element in a register.
pub const fn value(dtype: DType) -> &'static str {
    row(dtype).value
}

/// An expression for 0.
pub const fn zero(dtype: DType) -> &'static str {
    row(dtype).zero
}

/// How the library's functions of a dtype begin.
pub const fn prefix(dtype: DType) -> &'static str {
    row(dtype).prefix
}

/// Words of an element in a register, and in a buffer that is not packed.
pub const fn words(dtype: DType) -> usize {
    row(dtype).words
}

/// Whether a buffer holds two elements in a word (`wgsl::packed`).
pub const fn is_packed(dtype: DType) -> bool {
    dtype.is_half()
}

/// Bytes of one element of a tensor on the device.
pub const fn element_size(dtype: DType) -> usize {
    if is_packed(dtype) { dtype.size() } else { scratch_size(dtype) }
}

/// Bytes of one element of an intermediate result, in whole words.
pub const fn scratch_size(dtype: DType) -> usize {
    4 * words(dtype)
}

/// The element `index` of the array `buffer`, as a value.
pub fn load(dtype: DType, buffer: &str, index: &str) -> String {
    let NumberRow { storage, value, .. } = row(dtype);
    if dtype.is_complex() {
        return format!("vec2<f32>(bitcast<f32>({buffer}[2u * ({index})]), bitcast<f32>({buffer}[2u * ({index}) + 1u]))");
    }
    if storage == value { format!("{buffer}[{index}]") } else { format!("bitcast<{value}>({buffer}[{index}])") }
}

/// The statement that writes the name or simple expression `v` to the element `index` of the array `buffer`.
pub fn store(dtype: DType, buffer: &str, index: &str, v: &str) -> String {
    let NumberRow { storage, value, .. } = row(dtype);
    if dtype.is_complex() {
        let part = |k: usize, p: &str| format!("{buffer}[2u * ({index}) + {k}u] = bitcast<u32>(({v}).{p});");
        return part(0, "x") + " " + &part(1, "y");
    }
    if storage == value { format!("{buffer}[{index}] = {v};") } else { format!("{buffer}[{index}] = bitcast<{storage}>({v});") }
}

/// The functions of `wgsl/f32_base.wgsl` that round to a narrow float.
const ROUND: [(DType, &str); 2] = [(DType::F16, "f16_round"), (DType::BF16, "bf16_round")];

/// `v`, a value that `to` is computed in, as `to` holds it: of an integer the low bits, with their sign above; of a float the nearest. Other
/// dtypes leave it as it is.
pub fn narrowed(to: DType, v: &str) -> String {
    let bits = 8 * to.size();
    match to.kind() {
        _ if !to.is_narrow() => v.to_owned(),
        NumberKind::Signed => format!("extractBits({v}, 0u, {bits}u)"),
        NumberKind::Bool | NumberKind::Unsigned => format!("({v} & {})", (1u64 << bits) - 1),
        NumberKind::Float => {
            let round = ROUND.iter().find(|(dtype, _)| *dtype == to).unwrap_or_else(|| panic!("no function of WGSL rounds to {to}"));
            format!("{}({v})", round.1)
        }
        NumberKind::Complex => no_complex128(),
    }
}

/// `v`, a value of `from`, as a value of `to`. Floats are truncated on the way to integers; what is out of range, and nan, become
/// the least int64 or int32, as on the CPU.
pub fn convert(from: DType, to: DType, v: &str) -> String {
    use Number::{Bool, C64, C128, F32, F64, I32, I64, U8};
    if from == to {
        return v.to_owned();
    }
    if to.is_narrow() {
        let wide = convert(from, to.computed(), v);
        let holds_all = !to.is_float() && from.promote(to) == to;
        return if holds_all { wide } else { narrowed(to, &wide) };
    }
    match (to.number(), from.number()) {
        (Bool, Bool) => v.to_owned(),
        (Bool, U8) => format!("select(0u, 1u, {v} != 0u)"),
        (Bool, I32) => format!("select(0u, 1u, {v} != 0)"),
        (Bool, I64) => format!("select(0u, 1u, any({v} != vec2<u32>()))"),
        (Bool, F32) => format!("select(0u, 1u, (bitcast<u32>({v}) & 0x7fffffffu) != 0u)"),
        (Bool, F64) => format!("select(1u, 0u, f64_is_zero({v}))"),
        (U8, Bool | U8) => v.to_owned(),
        (U8, I32) => format!("(bitcast<u32>({v}) & 255u)"),
        (U8, I64) => format!("(({v}).x & 255u)"),
        (U8, F32) => format!("(f32_to_i64({v}).x & 255u)"),
        (U8, F64) => format!("(f64_to_i64({v}).x & 255u)"),
        (I32, Bool | U8) => format!("i32({v})"),
        (I32, I32) => v.to_owned(),
        (I32, I64) => format!("bitcast<i32>(({v}).x)"),
        (I32, F32) => format!("f32_to_i32({v})"),
        (I32, F64) => format!("f64_to_i32({v})"),
        (I64, Bool | U8) => format!("vec2<u32>({v}, 0u)"),
        (I64, I32) => format!("i64_from_i32({v})"),
        (I64, I64) => v.to_owned(),
        (I64, F32) => format!("f32_to_i64({v})"),
        (I64, F64) => format!("f64_to_i64({v})"),
        (F32, Bool | U8 | I32 | F64) => format!("f32({v})"),
        (F32, I64) => format!("i64_to_f32({v})"),
        (F32, F32) => v.to_owned(),
        (F64, Bool | U8 | I32 | F32) => format!("f64({v})"),
        (F64, I64) => format!("i64_to_f64({v})"),
        (F64, F64) => v.to_owned(),
        (C64, C64) => v.to_owned(),
        (C64, Bool | U8 | I32 | I64 | F32 | F64) => format!("vec2<f32>({}, f32_lit(0u))", convert(from, DType::F32, v)),
        (Bool, C64) => format!("select(1u, 0u, c64_is_zero({v}))"),
        (U8 | I32 | I64 | F32 | F64, C64) => convert(DType::F32, to, &format!("({v}).x")),
        (C128, _) | (_, C128) => no_complex128(),
    }
}

/// Parameter words (one, or two with the low one first) of `value` as an element of `dtype`; `from_words` reads them.
pub fn to_words(value: Scalar, dtype: DType) -> [u32; 2] {
    let two = |bits: u64| [bits as u32, (bits >> 32) as u32];
    let value = value.stored_in(dtype);
    match dtype.number() {
        Number::Bool | Number::U8 | Number::I32 => [value.to_i64() as u32, 0],
        Number::I64 => two(value.to_i64() as u64),
        Number::F32 => [(value.to_f64() as f32).to_bits(), 0],
        Number::F64 => two(value.to_f64().to_bits()),
        Number::C64 => {
            let z = value.to_complex();
            [(z.re as f32).to_bits(), (z.im as f32).to_bits()]
        }
        Number::C128 => no_complex128(),
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
    match dtype.number() {
        Number::Bool | Number::U8 => low.to_owned(),
        Number::I32 => format!("bitcast<i32>({low})"),
        Number::F32 => format!("bitcast<f32>({low})"),
        Number::I64 => format!("vec2<u32>({low}, {high})"),
        Number::F64 => format!("f64_from_bits({low}, {high})"),
        Number::C64 => format!("vec2<f32>(bitcast<f32>({low}), bitcast<f32>({high}))"),
        Number::C128 => no_complex128(),
    }
}

/// The value `v` as what a buffer of words holds: a `u32`, or a `vec2<u32>`.
pub fn bits(dtype: DType, v: &str) -> String {
    match dtype.number() {
        Number::F64 => format!("f64_words({v})"),
        Number::I32 | Number::F32 => format!("bitcast<u32>({v})"),
        Number::Bool | Number::U8 | Number::I64 => v.to_owned(),
        Number::C64 => format!("bitcast<vec2<u32>>({v})"),
        Number::C128 => no_complex128(),
    }
}

/// Elements of the host as a buffer holds them, if they lie there otherwise: one in each word.
pub fn widened(from: RawSlice<'_, u8>, dtype: DType) -> Option<Vec<u8>> {
    if dtype.size() == element_size(dtype) {
        return None;
    }
    by_element!(dtype, T => {
        // SAFETY: the host's elements, aligned.
        let elements = unsafe { RawSlice::<<T as Element>::Raw>::new(from.as_ptr().cast(), from.len() / size_of::<T>()) };
        let word = |x: T| match <T as Element>::DTYPE.number() {
            Number::F32 => (x.to_scalar().to_f64() as f32).to_bits(),
            _ => x.to_scalar().to_i64() as u32,
        };
        Some(elements.iter().flat_map(|raw| word(<T as Element>::of(raw)).to_le_bytes()).collect())
    })
}

/// Writes the elements whose words `widened` would make. False, and nothing is written, if elements lie in a buffer as on the host.
///
/// # Safety
/// There is room for as many elements of the dtype as there are words, aligned.
pub unsafe fn narrow_into(words: &[u8], dtype: DType, to: *mut u8) -> bool {
    if dtype.size() == element_size(dtype) {
        return false;
    }
    by_element!(dtype, T => {
        for (i, word) in words.chunks_exact(4).enumerate() {
            let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            let x = match <T as Element>::DTYPE.number() {
                Number::F32 => <T as Element>::of_f64(f64::from(f32::from_bits(word))),
                _ => <T as Element>::of_i64(i64::from(word as i32)),
            };
            // SAFETY: the caller's.
            unsafe { to.cast::<<T as Element>::Raw>().add(i).write(x.raw()) };
        }
    });
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Complex64;

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
            (Scalar::Float(-0.0), DType::C64, [0x8000_0000, 0]),
            (Scalar::Complex(Complex64::new(1.0, -2.0)), DType::C64, [0x3f80_0000, 0xc000_0000]),
        ] {
            assert_eq!(to_words(value, dtype), words, "{value} as {dtype}");
        }
    }
}
