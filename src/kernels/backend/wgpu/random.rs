//! Random numbers on the device. The words of Philox4x32-10 are the same as on the CPU, and so are all numbers that are computed from them
//! without rounding. Where the CPU computes in double precision (normal, exponential), results differ by some units in the last place.

use super::{Bindings, BufferView};
use crate::backend::contract::View as HostView;
use crate::backend::contract::{Backend, Memory, Operand, Support};
use crate::backend::cpu::backend::CPU;
use crate::backend::wgpu::common::operands::{operand, output};
use crate::backend::wgpu::common::strided::StridedWalk;
use crate::backend::wgpu::common::word_kernels::{
    Launch, ParamNames, ParamValues, WIDE_MUL, WordKernel, countable, each, groups_for, load, store, unsupported, words,
};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::backend::wgpu::{Buffer, Context, copy, elem, element_size};
use crate::call::{Distribution, Random, Request};
use crate::error::Result;
use crate::host::memory::alloc;
use crate::host::memory::raw_slice::RawSlice;
use crate::layout::{DType, Number};
use std::sync::Arc;

/// A distribution with its parameters.
#[derive(Debug, Clone, Copy)]
pub enum Draw<'a> {
    /// `from + u * width` in single precision, `below` where that reaches `to`.
    Uniform {
        from: f32,
        width: f32,
        to: f32,
        below: f32,
    },
    Normal {
        mean: f32,
        std: f32,
    },
    Exponential {
        rate: f32,
    },
    /// 1 where 53 random bits are below the threshold.
    Bernoulli {
        threshold: u64,
    },
    /// 1 with the probability that each element (float32, of the output's shape) says.
    BernoulliOf(BufferView<'a>),
    /// `from` plus a number below `range` (0 for 2^64).
    Integers {
        from: i64,
        range: u64,
    },
}

impl Draw<'_> {
    /// Whether a kernel exists for this output.
    pub fn writes(&self, dtype: DType) -> bool {
        match self {
            Draw::Uniform { .. } | Draw::Normal { .. } | Draw::Exponential { .. } => dtype == DType::F32,
            Draw::Bernoulli { .. } | Draw::BernoulliOf(_) | Draw::Integers { .. } => dtype != DType::F64 && !dtype.is_half(),
        }
    }

    /// Numbers that one block of four words gives.
    fn per_block(&self) -> usize {
        match self {
            Draw::Uniform { .. } | Draw::Normal { .. } => 4,
            _ => 2,
        }
    }

    /// The threshold below which `u * 2^53` lies with probability `p`.
    pub fn threshold(p: f64) -> u64 {
        (p * 2f64.powi(53)).ceil() as u64
    }
}

const PHILOX: &str = "fn philox(seed: vec2<u32>, at: vec2<u32>) -> vec4<u32> {
var c = vec4<u32>(at.x, at.y, 0u, 0u); var k = seed;
for (var i = 0u; i < 10u; i++) {
let a = wide_mul(c.x, 0xd2511f53u); let b = wide_mul(c.z, 0xcd9e8d57u);
c = vec4<u32>(b.y ^ c.y ^ k.x, b.x, a.y ^ c.w ^ k.y, a.x);
k += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
}
return c;
}
";

/// `minus_log(u)`: -ln(1 - u / 2^53) of a number of 53 bits, through the series of the inverse hyperbolic tangent.
const MINUS_LOG: &str = "fn twice_atanh(s: f32) -> f32 {
let z = s * s;
let tail = z * (0.1111111111 + z * (0.0909090909 + z * (0.0769230769 + z * (0.0666666667 + z * 0.0588235294))));
return 2.0 * s + 2.0 * s * (z * (0.3333333333 + z * (0.2 + z * (0.1428571429 + tail))));
}
fn minus_log(u: vec2<u32>) -> f32 {
if (u.y < 0x100000u) {
let x = f32(u.y) * 0x1p-21f + f32(u.x) * 0x1p-53f;
return twice_atanh(x / (2.0 - x));
}
let low = 0u - u.x; let high = 0x200000u - u.y - select(0u, 1u, u.x != 0u);
let bits = bitcast<u32>(f32(high) * 0x1p32f + f32(low));
var power = i32(bits >> 23u) - 127; var m = bitcast<f32>((bits & 0x7fffffu) | 0x3f800000u);
if (m > 1.41421356) { m *= 0.5; power += 1; }
return f32(53 - power) * 0.6931471806 - twice_atanh((m - 1.0) / (m + 1.0));
}
";

/// `turn(v)`: cosine and sine of v / 2^32 of a full turn.
const TURN: &str = "fn turn(v: u32) -> vec2<f32> {
let quarter = (v + 0x20000000u) >> 30u;
let x = f32(bitcast<i32>(v - (quarter << 30u))) * 1.4629180793e-9;
let z = x * x;
let s = x + x * z * (-0.1666666667 + z * (0.0083333333 + z * (-1.984126984e-4 + z * 2.755731922e-6)));
let c = 1.0 - 0.5 * z + z * z * (0.0416666667 + z * (-1.388888889e-3 + z * 2.48015873e-5));
switch quarter & 3u {
case 0u: { return vec2<f32>(c, s); }
case 1u: { return vec2<f32>(-s, c); }
case 2u: { return vec2<f32>(-c, -s); }
default: { return vec2<f32>(s, -c); }
}
}
";

/// `below(bits, range)`: the high half of their product. `add(a, b)` of two 64-bit numbers.
const BELOW: &str = "fn add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
let low = a.x + b.x;
return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}
fn below(bits: vec2<u32>, range: vec2<u32>) -> vec2<u32> {
if (range.x == 0u && range.y == 0u) { return bits; }
let low = vec2<u32>(wide_mul(bits.x, range.x).y, 0u);
let a = wide_mul(bits.x, range.y); let b = wide_mul(bits.y, range.x);
let middle = add(add(low, vec2<u32>(a.x, 0u)), vec2<u32>(b.x, 0u));
return add(add(wide_mul(bits.y, range.y), vec2<u32>(a.y, 0u)), add(vec2<u32>(b.y, 0u), vec2<u32>(middle.y, 0u)));
}
";

/// `to_float(v)`: a signed 64-bit number as the bits of the nearest float32, ties to even.
const TO_FLOAT: &str = "fn to_float(number: vec2<u32>) -> u32 {
var v = number; let sign = v.y & 0x80000000u;
if (sign != 0u) { v = vec2<u32>(0u - v.x, ~v.y + select(0u, 1u, v.x == 0u)); }
if (v.x == 0u && v.y == 0u) { return 0u; }
var shift = countLeadingZeros(v.y);
if (v.y == 0u) { shift = 32u + countLeadingZeros(v.x); v = vec2<u32>(0u, v.x << (shift - 32u)); }
else if (shift > 0u) { v = vec2<u32>(v.x << shift, (v.y << shift) | (v.x >> (32u - shift))); }
var top = v.y >> 8u;
let rest = (v.y & 0x7fu) | v.x;
if ((v.y & 0x80u) != 0u && (rest != 0u || (top & 1u) == 1u)) { top += 1u; }
return sign | (((190u - shift) << 23u) + (top - 0x800000u));
}
";

/// `threshold(p)`: the smallest integer that is not below p * 2^53, of the bits of a float32 in 0..=1.
const THRESHOLD: &str = "fn threshold(p: u32) -> vec2<u32> {
let power = (p >> 23u) & 255u;
let m = select(p & 0x7fffffu, (p & 0x7fffffu) | 0x800000u, power != 0u);
let shift = i32(max(power, 1u)) - 97;
if (shift >= 0) {
let s = u32(shift);
if (s == 0u) { return vec2<u32>(m, 0u); }
return vec2<u32>(m << s, m >> (32u - s));
}
let s = u32(-shift);
if (s >= 24u) { return vec2<u32>(select(0u, 1u, m != 0u), 0u); }
return vec2<u32>((m + (1u << s) - 1u) >> s, 0u);
}
";

/// Fills the memory of a dense array, from its first element on, with numbers of the stream `seed` from the counter `start` on.
pub fn fill(op: &'static str, out: BufferView<'_>, draw: Draw<'_>, seed: u64, start: u64) -> Result<()> {
    if !draw.writes(out.dtype) {
        return Err(unsupported(op, out.dtype));
    }
    let n = countable(op, out.shape)?;
    let per = draw.per_block();
    let mut bindings = Bindings::new();
    let to = bindings.write(out.buffer);
    let numbers = ParamValues::default().push(n).push(n.div_ceil(per)).push(out.offset).long(seed).long(start);
    let mut rank = 0;
    let mut from = 0;
    let (kind, numbers) = match draw {
        Draw::Uniform { from, width, to, below } => {
            (DrawKind::Uniform, numbers.word(from.to_bits()).word(width.to_bits()).word(to.to_bits()).word(below.to_bits()).word(0))
        }
        Draw::Normal { mean, std } => (DrawKind::Normal, numbers.word(mean.to_bits()).word(std.to_bits())),
        Draw::Exponential { rate } => (DrawKind::Exponential, numbers.word(rate.to_bits())),
        Draw::Bernoulli { threshold } => (DrawKind::Bernoulli, numbers.long(threshold)),
        Draw::Integers { from, range } => (DrawKind::Integers, numbers.long(from as u64).long(range)),
        Draw::BernoulliOf(p) => {
            let walk = StridedWalk::ordered(p.shape.iter().zip(p.strides).map(|(n, s)| (*n, [*s])));
            rank = walk.rank();
            from = bindings.read(p.buffer);
            (DrawKind::Chances, numbers.push(p.offset).walk(&walk))
        }
    };
    let kernel = FillRandom { kind, per, dtype: out.dtype, rank, to, from };
    Launch { op, bindings, numbers, groups: groups_for(n.div_ceil(per)) }.run(out.buffer.context(), &kernel)
}

/// The distribution without its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum DrawKind {
    Uniform,
    Normal,
    Exponential,
    Bernoulli,
    Integers,
    Chances,
}

#[derive(Debug, Hash)]
struct FillRandom {
    kind: DrawKind,
    per: usize,
    dtype: DType,
    /// Dimensions of the probabilities.
    rank: u32,
    to: u32,
    from: u32,
}

impl WordKernel for FillRandom {
    const KIND: &'static str = "random";

    fn body(&self, p: &mut ParamNames) -> String {
        let (dtype, width, per) = (self.dtype, words(self.dtype), self.per);
        let [n, blocks, first, seed_low, seed_high, start_low, start_high] = p.many();
        let float = |s: &str| format!("bitcast<f32>({s})");
        // How a truth value is written.
        let truth = |test: &str| match dtype.number() {
            Number::F32 => format!("select(0u, 0x3f800000u, {test})"),
            Number::I64 => format!("vec2<u32>(select(0u, 1u, {test}), 0u)"),
            Number::F64 => format!("vec2<u32>(0u, select(0u, 0x3ff00000u, {test}))"),
            Number::Bool | Number::U8 | Number::I32 => format!("select(0u, 1u, {test})"),
            Number::C64 | Number::C128 => elem::no_complex(),
        };
        // 53 bits, and a comparison of two such numbers.
        let unit = "let u = vec2<u32>((w[2u * i] << 21u) | (w[2u * i + 1u] >> 11u), w[2u * i] >> 11u);";
        let less = "(u.y < t.y || (u.y == t.y && u.x < t.x))";
        let mut parts = WIDE_MUL.to_string() + PHILOX;
        let value = match self.kind {
            DrawKind::Uniform => {
                let [from, width, to, below, zero] = p.many();
                // The mask keeps the compiler from fusing product and sum, which would round differently.
                format!(
                    "let u = f32(w[i] >> 8u) * 0x1p-24f;
let x = {} + bitcast<f32>(bitcast<u32>(u * {}) ^ {zero});
let v = bitcast<u32>(select(x, {}, x >= {}));",
                    float(&from),
                    float(&width),
                    float(&below),
                    float(&to)
                )
            }
            DrawKind::Normal => {
                parts += MINUS_LOG;
                parts += TURN;
                let [mean, std] = p.many();
                format!(
                    "let a = w[i & 2u]; let r = sqrt(2.0 * minus_log(vec2<u32>(a << 21u, a >> 11u)));
let z = r * turn(w[(i & 2u) + 1u])[i & 1u];
let v = bitcast<u32>({} + z * {});",
                    float(&mean),
                    float(&std)
                )
            }
            DrawKind::Exponential => {
                parts += MINUS_LOG;
                format!("{unit}\nlet v = bitcast<u32>(minus_log(u) / {});", float(&p.next()))
            }
            DrawKind::Bernoulli => {
                let [low, high] = p.many();
                format!("{unit}\nlet t = vec2<u32>({low}, {high}); let v = {};", truth(less))
            }
            DrawKind::Integers => {
                parts += BELOW;
                let [low, high, range_low, range_high] = p.many();
                let made = match dtype.number() {
                    Number::Bool => "select(0u, 1u, (d.x | d.y) != 0u)".to_owned(),
                    Number::U8 => "d.x & 255u".to_owned(),
                    Number::I32 if dtype.is_narrow() => format!("bitcast<u32>({})", elem::narrowed(dtype, "bitcast<i32>(d.x)")),
                    Number::I32 => "d.x".to_owned(),
                    Number::F32 => {
                        parts += TO_FLOAT;
                        "to_float(d)".to_owned()
                    }
                    Number::I64 | Number::F64 => "d".to_owned(),
                    Number::C64 | Number::C128 => elem::no_complex(),
                };
                format!(
                    "let d = add(vec2<u32>({low}, {high}), below(vec2<u32>(w[2u * i + 1u], w[2u * i]), vec2<u32>({range_low}, {range_high})));
let v = {made};"
                )
            }
            DrawKind::Chances => {
                parts += THRESHOLD;
                let at = p.next();
                let walk = p.walk(self.rank, "number", &["s"]);
                format!("{unit}\nvar s = {at};\n{walk}let t = threshold({}); let v = {};", load(self.from, 1, "s"), truth(less))
            }
        };
        let put = store(self.to, width, &format!("{first} + number"), "v");
        parts
            + &each(
                &blocks,
                &format!(
                    "let low = {start_low} + e;
let w = philox(vec2<u32>({seed_low}, {seed_high}), vec2<u32>(low, {start_high} + select(0u, 1u, low < e)));
for (var i = 0u; i < {per}u; i++) {{
let number = e * {per}u + i;
if (number >= {n}) {{ return; }}
{value}
{put}}}
"
                ),
            )
    }
}

fn draw<'a>(d: Distribution, ins: &[Operand<'a>]) -> Result<Draw<'a>> {
    Ok(match d {
        Distribution::Uniform { from, to } => {
            let a = from as f32;
            // Rounding may reach `to` itself, which is outside.
            let below = (to as f32).next_down().max(a);
            Draw::Uniform { from: a, width: (to - from) as f32, to: to as f32, below }
        }
        Distribution::Normal { mean, std } => Draw::Normal { mean: mean as f32, std: std as f32 },
        Distribution::Exponential { rate } => Draw::Exponential { rate: rate as f32 },
        Distribution::Bernoulli { p } => Draw::Bernoulli { threshold: Draw::threshold(p) },
        Distribution::BernoulliOf => Draw::BernoulliOf(operand(ins, 0)?),
        Distribution::Integers { from, range } => Draw::Integers { from, range },
    })
}

/// Whether a shader draws these numbers.
pub(super) fn is_drawn_here(d: Distribution, dtype: DType) -> bool {
    draw(if d == Distribution::BernoulliOf { Distribution::Bernoulli { p: 0.5 } } else { d }, &[]).is_ok_and(|d| d.writes(dtype))
}

impl WgpuFamily for Random {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::Taken
    }

    fn support(&self, dtype: DType) -> Support {
        if is_drawn_here(self.distribution, dtype) { Support::Yes } else { Support::Converted("drawn by the host") }
    }

    fn compute(r: &Random, context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<HostView<'_>>]) -> Result<()> {
        let out = output(outs, 0)?;
        let draw = draw(r.distribution, ins)?;
        if draw.writes(out.dtype) {
            return fill(r.op, out, draw, r.seed, r.start);
        }
        let n: usize = out.shape.iter().product();
        let here = alloc::Buffer::new(n * out.dtype.size())?;
        let made = HostView { memory: Memory::Host(here.as_ptr()), offset: 0, shape: &[n], strides: &[1], dtype: out.dtype };
        // SAFETY: the buffer has room for all numbers; what draws from probabilities is written by the device itself.
        unsafe { CPU.run(&Request::Random(*r), &[], &[Some(made)])? };
        let there = Buffer::of(context, n * element_size(out.dtype), out.dtype)?;
        // SAFETY: all of it was written just now.
        super::backend::upload(context, unsafe { RawSlice::new(here.as_ptr(), n * out.dtype.size()) }, out.dtype, &there)?;
        let flat = BufferView { shape: &[n], strides: &[1], ..out };
        copy::copy(flat, BufferView { buffer: &there, offset: 0, ..flat })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for dtype in crate::backend::wgpu::elem::REAL_ON_DEVICE.iter().copied() {
            for (kind, draw) in [
                (DrawKind::Uniform, Draw::Uniform { from: 0.0, width: 1.0, to: 1.0, below: 0.5 }),
                (DrawKind::Normal, Draw::Normal { mean: 0.0, std: 1.0 }),
                (DrawKind::Exponential, Draw::Exponential { rate: 1.0 }),
                (DrawKind::Bernoulli, Draw::Bernoulli { threshold: 1 }),
                (DrawKind::Chances, Draw::Bernoulli { threshold: 1 }),
                (DrawKind::Integers, Draw::Integers { from: 0, range: 0 }),
            ] {
                if draw.writes(dtype) {
                    validate(&FillRandom { kind, per: draw.per_block(), dtype, rank: 2, to: 0, from: 1 }, 1);
                }
            }
        }
    }

    #[test]
    fn thresholds_are_exact() {
        assert_eq!((Draw::threshold(0.0), Draw::threshold(1.0)), (0, 1 << 53));
        for p in [0.3, 0.5, 1.0 / 3.0, 1e-9] {
            let unit = |bits: u64| bits as f64 / 2f64.powi(53);
            assert!(unit(Draw::threshold(p) - 1) < p && unit(Draw::threshold(p)) >= p, "{p}");
        }
        assert_eq!(Draw::threshold(f64::MIN_POSITIVE), 1);
    }
}
