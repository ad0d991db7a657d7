//! Floats of 16 bits in buffers, two bytes each. Shaders are written for buffers of whole words, in which such an element is the float32
//! of the same value; `lower` turns their accesses to a packed binding into calls of two functions that widen on loading and round to the
//! nearest on storing. Not here: rounding between the steps of a program (`elem::narrowed`), and which buffer is packed (`Buffer::of`).
//!
//! float16 is `array<f16>` where the device has the feature. Everything else is two elements in a `u32`; neighbours that own the halves of
//! one word may store at the same time, so a written binding is an array of atomics there. WGSL's `f16` cannot hold the bits of a bfloat16,
//! since naga has no bitcast between the two. A shader whose invocations own whole words of binding K calls `bK_bits` and `bK_word`, which
//! `lower` adds; then it is an array of words in any case.

use super::with_library;
use crate::layout::DType;
use std::fmt::Write;

/// The packed bindings of a shader: bit `i` is binding `i`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Packing {
    pub float16: u128,
    pub bfloat16: u128,
}

impl Packing {
    pub fn is_none(self) -> bool {
        self == Packing::default()
    }

    /// Adds the binding of a buffer with elements of this dtype.
    pub fn add(&mut self, slot: usize, dtype: DType) {
        match dtype {
            DType::F16 => self.float16 |= 1 << slot,
            DType::BF16 => self.bfloat16 |= 1 << slot,
            _ => {}
        }
    }

    fn of(self, slot: usize) -> Option<DType> {
        let bit = 1u128.checked_shl(slot as u32)?;
        match (self.float16 & bit != 0, self.bfloat16 & bit != 0) {
            (true, _) => Some(DType::F16),
            (_, true) => Some(DType::BF16),
            _ => None,
        }
    }
}

/// The shader `source` with the accesses to packed bindings spelled out. `native`: the device has the type `f16`.
pub fn lower(source: &str, packing: Packing, native: bool) -> String {
    let mut out = String::with_capacity(source.len() + 1024);
    let mut functions = String::new();
    let mut head = "";
    let mut body = source;
    // Declarations stand alone in their lines.
    while let Some(at) = body.find("@group(0) @binding(") {
        let end = body[at..].find('\n').map_or(body.len(), |n| at + n);
        out.push_str(&accesses(&body[..at], packing));
        match Declaration::of(&body[at..end], packing) {
            Some(d) => {
                let by_word = source.contains(&format!("b{}_word(", d.slot));
                let native = native && d.dtype == DType::F16 && !by_word;
                if native {
                    head = "enable f16;\n";
                }
                out.push_str(&d.declared(native));
                functions.push_str(&d.functions(native));
                if by_word {
                    functions.push_str(&d.word_functions());
                }
            }
            None => out.push_str(&body[at..end]),
        }
        body = &body[end..];
    }
    out.push_str(&accesses(body, packing));
    format!("{head}{out}{}", with_library(&functions))
}

/// A declaration of a packed binding.
struct Declaration<'a> {
    slot: usize,
    dtype: DType,
    written: bool,
    /// Everything before the type.
    text: &'a str,
    /// The type of an element as the shader sees it: `f32`, or `u32` with the bits of one.
    seen: &'a str,
}

impl<'a> Declaration<'a> {
    fn of(line: &'a str, packing: Packing) -> Option<Declaration<'a>> {
        let (text, seen) = line.strip_suffix(">;")?.rsplit_once(": array<")?;
        let slot = text.rsplit_once(" b")?.1.parse().ok()?;
        Some(Declaration { slot, dtype: packing.of(slot)?, written: text.contains("read_write"), text, seen })
    }

    fn declared(&self, native: bool) -> String {
        let element = match (native, self.written) {
            (true, _) => "f16",
            (false, true) => "atomic<u32>",
            (false, false) => "u32",
        };
        format!("{}: array<{element}>;", self.text)
    }

    /// The function that gives the bits of a float32 as an element.
    fn rounds(&self) -> &'static str {
        if self.dtype == DType::F16 { "half_from_single" } else { "brain_from_single" }
    }

    /// The functions `bK_bits(value)` and `bK_word(index, word, have)`, which writes the halves of a word that `have` has bits for. The other
    /// half belongs to no invocation.
    fn word_functions(&self) -> String {
        let (b, to) = (format!("b{}", self.slot), self.rounds());
        format!(
            "fn {b}_bits(v: f32) -> u32 {{ return {to}(bitcast<u32>(v)); }}
fn {b}_word(i: u32, word: u32, have: u32) {{
if have == 3u {{ atomicStore(&{b}[i], word); return; }}
if have == 0u {{ return; }}
atomicAnd(&{b}[i], select(0x0000ffffu, 0xffff0000u, have == 1u)); atomicOr(&{b}[i], word);
}}
"
        )
    }

    /// The functions `bK_at(index)` and, of a written binding, `bK_put(index, value)`.
    fn functions(&self, native: bool) -> String {
        let Declaration { slot, seen, .. } = self;
        let b = format!("b{slot}");
        let as_seen = |bits: &str| if *seen == "f32" { format!("bitcast<f32>({bits})") } else { bits.to_owned() };
        let bits = if *seen == "f32" { "bitcast<u32>(v)" } else { "v" };
        let word = if self.written { format!("atomicLoad(&{b}[i >> 1u])") } else { format!("{b}[i >> 1u]") };
        let half = format!("(({word} >> ((i & 1u) << 4u)) & 0xffffu)");
        let loaded = match self.dtype {
            _ if native && *seen == "f32" => format!("f32({b}[i])"),
            _ if native => format!("bitcast<u32>(f32({b}[i]))"),
            DType::F16 => as_seen(&format!("half_to_single({half})")),
            _ => as_seen(&format!("({half} << 16u)")),
        };
        let mut s = format!("fn {b}_at(i: u32) -> {seen} {{ return {loaded}; }}\n");
        if self.written {
            let stored = if native {
                format!("{b}[i] = f16(half_nearest({bits}));")
            } else {
                let to = self.rounds();
                format!(
                    "let by = (i & 1u) << 4u; let h = {to}({bits}) << by; \
                     atomicAnd(&{b}[i >> 1u], 0xffff0000u >> by); atomicOr(&{b}[i >> 1u], h);"
                )
            };
            let _ = writeln!(s, "fn {b}_put(i: u32, v: {seen}) {{ {stored} }}");
        }
        s
    }
}

/// An access `bK[index]`.
struct Access {
    start: usize,
    slot: usize,
    index: std::ops::Range<usize>,
}

/// The first access to a packed binding.
fn first(text: &str, packing: Packing) -> Option<Access> {
    let bytes = text.as_bytes();
    let is_name = |c: u8| c.is_ascii_alphanumeric() || c == b'_';
    let mut at = 0;
    loop {
        let start = at + text[at..].find('b')?;
        at = start + 1;
        if start > 0 && is_name(bytes[start - 1]) {
            continue;
        }
        let digits = bytes[at..].iter().take_while(|c| c.is_ascii_digit()).count();
        let open = at + digits;
        if bytes.get(open) != Some(&b'[') {
            continue;
        }
        let Some(slot) = text[at..open].parse::<usize>().ok().filter(|slot| packing.of(*slot).is_some()) else { continue };
        let mut depth = 0usize;
        for (k, c) in bytes[open..].iter().enumerate() {
            match c {
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(Access { start, slot, index: open + 1..open + k });
            }
        }
        return None;
    }
}

/// `text` with its accesses to packed bindings as calls.
fn accesses(text: &str, packing: Packing) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(Access { start, slot, index }) = first(rest, packing) {
        out.push_str(&rest[..start]);
        let place = accesses(&rest[index.clone()], packing);
        rest = &rest[index.end + 1..];
        match assigned(rest) {
            Some((operator, value, after)) => {
                let value = accesses(value, packing);
                let value = operator.map_or(value.clone(), |o| format!("b{slot}_at(u32({place})) {o} ({value})"));
                let _ = write!(out, "b{slot}_put(u32({place}), {value})");
                rest = after;
            }
            None => {
                let _ = write!(out, "b{slot}_at(u32({place}))");
            }
        }
    }
    out + rest
}

/// Of the text after a place that is assigned to: the operator of a compound assignment, the value, and the text from the semicolon on.
fn assigned(text: &str) -> Option<(Option<char>, &str, &str)> {
    let text = text.trim_start();
    let operator = text.chars().next().filter(|c| "+-*/%&|^".contains(*c));
    let text = text[operator.map_or(0, char::len_utf8)..].strip_prefix('=')?;
    let end = text.find(';')?;
    (!text.starts_with('=')).then(|| (operator, text[..end].trim(), &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "@group(0) @binding(0) var<storage, read_write> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<u32>;
@group(0) @binding(12) var<storage, read_write> b12: array<u32>;
@group(0) @binding(13) var<uniform> params: array<vec4<u32>, 1>;
fn main() {
let b1x = b1[b12[i] + tab0[3]]; if (b12[2u] == 0u) { b0[i] = b0[b1[j]] + 1.0; }
b0[k] += 2.0; b12[i] = b1[i];
}
";

    #[test]
    fn accesses_become_calls() {
        let mut packing = Packing::default();
        packing.add(0, DType::F16);
        packing.add(1, DType::F32);
        packing.add(12, DType::BF16);
        let lowered = lower(SOURCE, packing, true);
        for part in [
            "enable f16;\n@group(0) @binding(0) var<storage, read_write> b0: array<f16>;\n",
            "b1: array<u32>;\n",
            "b12: array<atomic<u32>>;\n",
            "let b1x = b1[b12_at(u32(i)) + tab0[3]]; if (b12_at(u32(2u)) == 0u) { b0_put(u32(i), b0_at(u32(b1[j])) + 1.0); }\n",
            "b0_put(u32(k), b0_at(u32(k)) + (2.0)); b12_put(u32(i), b1[i]);\n",
            "fn b0_at(i: u32) -> f32 {",
            "fn b12_put(i: u32, v: u32) {",
            "fn brain_from_single(",
        ] {
            assert!(lowered.contains(part), "{part}\n{lowered}");
        }
        assert!(lower(SOURCE, packing, false).starts_with("@group(0) @binding(0) var<storage, read_write> b0: array<atomic<u32>>;\n"));
    }
}
