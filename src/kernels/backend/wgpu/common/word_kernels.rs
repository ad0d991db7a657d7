//! The framework of kernels that move elements. They treat every buffer as words (one for each element, two for 64-bit elements, low
//! first), so one shader serves all types of one width, and a buffer that is bound for two purposes has one type.

pub(in crate::backend::wgpu) use super::strided::GROUP;
use super::strided::{self, Params, StridedWalk};
use crate::backend::wgpu::elem::from_words;
use crate::backend::wgpu::pointwise::elementwise::LoadFunction;
use crate::backend::wgpu::pointwise::fused::DeviceProgram;
use crate::backend::wgpu::wgsl::with_library;
use crate::backend::wgpu::{Bindings, Buffer, Context, Dispatch, Key, elem};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar, fmt_shape};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Marks a position that is out of range or not there.
pub(in crate::backend::wgpu) const NONE: &str = "0xffffffffu";

/// Words of one element.
pub(in crate::backend::wgpu) use crate::backend::wgpu::elem::words;

/// The parameters of a kernel; `ParamNames` names them in the same order.
#[derive(Debug, Default)]
pub(in crate::backend::wgpu) struct ParamValues(Params);

impl ParamValues {
    /// Counts must fit (`launch` checks all buffers). The truncation to 32 bits is correct for negative strides.
    pub(in crate::backend::wgpu) fn push(mut self, n: usize) -> Self {
        self.0.push(n as u32);
        self
    }

    pub(in crate::backend::wgpu) fn word(self, n: u32) -> Self {
        self.push(n as usize)
    }

    pub(in crate::backend::wgpu) fn long(self, n: u64) -> Self {
        self.word(n as u32).word((n >> 32) as u32)
    }

    pub(in crate::backend::wgpu) fn walk<const N: usize>(mut self, w: &StridedWalk<N>) -> Self {
        w.push(&mut self.0);
        self
    }
}

/// The names of the parameters in a shader.
#[derive(Debug, Default)]
pub(in crate::backend::wgpu) struct ParamNames(usize);

impl ParamNames {
    pub(in crate::backend::wgpu) fn next(&mut self) -> String {
        self.0 += 1;
        strided::param(self.0 - 1)
    }

    pub(in crate::backend::wgpu) fn many<const N: usize>(&mut self) -> [String; N] {
        std::array::from_fn(|_| self.next())
    }

    /// Statements that add to each of `offsets` where the element `number` of a walk of `rank` dimensions lies.
    pub(in crate::backend::wgpu) fn walk(&mut self, rank: u32, number: &str, offsets: &[&str]) -> String {
        let first = self.0;
        self.0 += rank as usize * (1 + offsets.len());
        strided::wgsl(rank, first, number, offsets)
    }
}

/// Scratch memory of `n` words.
pub(in crate::backend::wgpu) fn scratch(context: &Arc<Context>, n: usize) -> Result<Buffer> {
    Buffer::new(context, n * 4)
}

/// The number that lies at `at` of a buffer of words.
pub(in crate::backend::wgpu) fn load_real(dtype: DType, buffer: u32, at: &str) -> String {
    match words(dtype) {
        2 => from_words(dtype, &format!("b{buffer}[({at}) * 2u]"), &format!("b{buffer}[({at}) * 2u + 1u]")),
        _ => from_words(dtype, &format!("b{buffer}[{at}]"), ""),
    }
}

/// A statement that writes the number `value`.
pub(in crate::backend::wgpu) fn store_real(dtype: DType, buffer: u32, at: &str, value: &str) -> String {
    let bits = elem::bits(dtype, value);
    store(buffer, words(dtype), at, &bits)
}

/// A family of shaders. Its fields, together with the written bindings, are the key of a shader.
pub(in crate::backend::wgpu) trait WordKernel: Hash {
    const KIND: &'static str;
    /// Bit `i`: binding `i` is an array of atomics.
    const ATOMICS: u32 = 0;
    /// Whether it reports positions out of range.
    fn checked(&self) -> bool {
        false
    }
    /// Everything but the declarations of bindings.
    fn body(&self, p: &mut ParamNames) -> String;
}

/// A hasher that collects the words of a key: the fields of a kernel in order, from its derived `Hash`.
struct KeyHasher(SmallVec<[u32; 8]>);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(4) {
            let mut word = [0; 4];
            word[..part.len()].copy_from_slice(part);
            self.0.push(u32::from_le_bytes(word));
        }
    }

    fn finish(&self) -> u64 {
        0
    }
}

/// A dispatch of a kernel.
pub(in crate::backend::wgpu) struct Launch<'a> {
    /// The operation that a user called.
    pub op: &'static str,
    pub bindings: Bindings<'a>,
    pub numbers: ParamValues,
    pub groups: usize,
}

/// The elements of a program, which a kernel reads with `load(i)`. The kernel itself uses none of the buffers of the program.
pub(in crate::backend::wgpu) struct ProgramReads<'a> {
    pub program: &'a DeviceProgram<'a>,
    pub loader: LoadFunction,
}

impl Launch<'_> {
    pub(in crate::backend::wgpu) fn run<K: WordKernel>(self, context: &Context, kernel: &K) -> Result<()> {
        self.reading(context, kernel, None)
    }

    /// As `run`, for a kernel that reads the elements of a program.
    pub(in crate::backend::wgpu) fn reading<K: WordKernel>(
        self,
        context: &Context,
        kernel: &K,
        made: Option<&ProgramReads<'_>>,
    ) -> Result<()> {
        let Launch { op, bindings, mut numbers, groups } = self;
        if groups == 0 {
            return Ok(());
        }
        if let Some((b, _)) = bindings.slots.iter().find(|(b, _)| b.bytes() / b.unit() > i32::MAX as usize) {
            return Err(Error::not_implemented(format!(
                "{op}: tensors of {} bytes are not supported on wgpu yet (at most {}); split the tensor or use .cpu()",
                b.bytes(),
                i32::MAX as usize * b.unit()
            )));
        }
        let (writes, count) = (bindings.writes(), bindings.len());
        let mut fields = KeyHasher(SmallVec::from_slice(&[writes, count as u32]));
        kernel.hash(&mut fields);
        let mut key = Key::new(K::KIND, fields.0);
        let head = numbers.0.len();
        if let Some(r) = made {
            key.words.extend(r.loader.words.iter().copied());
            numbers.0.extend(r.loader.params.iter().copied());
        }
        let length = numbers.0.len();
        // A copy, because the lifetime in `Bindings` cannot be shortened.
        let bindings = Bindings { slots: bindings.slots.iter().copied().collect() };
        let source = || source(kernel, writes, count, length, made.map(|r| (r, head)));
        context.dispatch(Dispatch { op, key, source: &source, bindings, params: &numbers.0, groups, checked: kernel.checked() })
    }
}

/// The source of a shader. The parameters of a program start at the number beside it.
fn source<K: WordKernel>(kernel: &K, writes: u32, buffers: usize, numbers: usize, made: Option<(&ProgramReads<'_>, usize)>) -> String {
    let mut types: SmallVec<[(u32, &str); 8]> =
        (0..buffers as u32).map(|i| (i, if K::ATOMICS >> i & 1 == 1 { "atomic<u32>" } else { "u32" })).collect();
    for (slot, t) in made.iter().flat_map(|(r, _)| r.loader.declared()) {
        types[slot as usize].1 = t;
    }
    let mut s = header(&types, writes, numbers, kernel.checked());
    if let Some((r, head)) = made {
        s.push_str(&r.program.function(&r.loader, head));
    }
    with_library(&(s + &kernel.body(&mut ParamNames::default())))
}

/// Lets naga check the shader of a kernel that writes these bindings.
#[cfg(test)]
pub(in crate::backend::wgpu) fn validate<K: WordKernel + std::fmt::Debug>(kernel: &K, writes: u32) {
    crate::backend::wgpu::wgsl::validate::check(&format!("{} {kernel:?}", K::KIND), &source(kernel, writes, 8, 128, None));
}

/// Declarations of the buffers `b0`, `b1`, ... (of words, but for a program's), of the numbers, and of what a checked shader needs.
fn header(types: &[(u32, &str)], writes: u32, numbers: usize, checked: bool) -> String {
    let mut s = strided::header(types, writes, numbers);
    if checked {
        s.push_str(&strided::status(types));
    }
    s
}

/// The entry point of a kernel: `group` is the workgroup's number, `lane` the invocation's in it.
pub(in crate::backend::wgpu) fn groups(size: usize, body: &str) -> String {
    format!(
        "@compute @workgroup_size({size})
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) wgs: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{
let group = wg.x + wg.y * wgs.x;
{body}}}
"
    )
}

/// The entry point of a kernel with one invocation `e` for each of `count` elements.
pub(in crate::backend::wgpu) fn each(count: &str, body: &str) -> String {
    groups(GROUP, &format!("let e = group * {GROUP}u + lane;\nif (e >= {count}) {{ return; }}\n{body}"))
}

/// How many workgroups `each` needs.
pub(in crate::backend::wgpu) fn groups_for(count: usize) -> usize {
    count.div_ceil(GROUP)
}

/// The type of an element of so many words.
pub(in crate::backend::wgpu) const fn wgsl_type(words: usize) -> &'static str {
    if words == 2 { "vec2<u32>" } else { "u32" }
}

/// The element at `at` of a buffer.
pub(in crate::backend::wgpu) fn load(buffer: u32, words: usize, at: &str) -> String {
    if words == 2 { format!("vec2<u32>(b{buffer}[({at}) * 2u], b{buffer}[({at}) * 2u + 1u])") } else { format!("b{buffer}[{at}]") }
}

/// A statement that writes the name or literal `value`.
pub(in crate::backend::wgpu) fn store(buffer: u32, words: usize, at: &str, value: &str) -> String {
    if words == 2 {
        format!("b{buffer}[({at}) * 2u] = ({value}).x; b{buffer}[({at}) * 2u + 1u] = ({value}).y;\n")
    } else {
        format!("b{buffer}[{at}] = {value};\n")
    }
}

/// Words of a number as an element of a dtype.
pub(in crate::backend::wgpu) fn number_words(value: Scalar, dtype: DType) -> u64 {
    let [low, high] = elem::to_words(value, dtype);
    u64::from(high) << 32 | u64::from(low)
}

/// The product of two words in two words, low first.
pub(in crate::backend::wgpu) const WIDE_MUL: &str = "fn wide_mul(a: u32, b: u32) -> vec2<u32> {
let ll = (a & 0xffffu) * (b & 0xffffu); let lh = (a & 0xffffu) * (b >> 16u);
let hl = (a >> 16u) * (b & 0xffffu); let hh = (a >> 16u) * (b >> 16u);
let mid = (ll >> 16u) + (lh & 0xffffu) + (hl & 0xffffu);
return vec2<u32>((ll & 0xffffu) | (mid << 16u), hh + (lh >> 16u) + (hl >> 16u) + (mid >> 16u));
}
";

/// The error of a type that a kernel has no code for.
#[cold]
pub(in crate::backend::wgpu) fn unsupported(op: &str, dtype: DType) -> Error {
    Error::not_implemented(format!("{op}: not implemented for {dtype} on wgpu yet; move the tensor with .cpu()"))
}

/// The number of elements; an error if it does not fit 31 bits.
pub(in crate::backend::wgpu) fn countable(op: &str, shape: &[usize]) -> Result<usize> {
    let n = shape.iter().try_fold(1usize, |a, b| a.checked_mul(*b)).filter(|n| *n <= i32::MAX as usize);
    n.ok_or_else(|| {
        Error::not_implemented(format!(
            "{op}: shape {} has more elements than wgpu kernels count (2^31 - 1); split the tensor",
            fmt_shape(shape)
        ))
    })
}

/// Fills the first `n` words of scratch memory.
pub(in crate::backend::wgpu) fn fill(context: &Context, op: &'static str, buffer: &Buffer, n: usize, value: u32) -> Result<()> {
    let mut bindings = Bindings::new();
    bindings.write(buffer);
    let numbers = ParamValues::default().push(n).word(value);
    Launch { op, bindings, numbers, groups: groups_for(n) }.run(context, &FillWords)
}

#[derive(Debug, Hash)]
struct FillWords;

impl WordKernel for FillWords {
    const KIND: &'static str = "words_fill";

    fn body(&self, p: &mut ParamNames) -> String {
        let [n, value] = p.many();
        each(&n, &format!("b0[e] = {value};\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_numbers() {
        let w = StridedWalk::ordered([(6, [4, -1]), (4, [1, 0])].into_iter());
        let n = ParamValues::default().push(5).walk(&w).long(1 << 32 | 7);
        assert_eq!(n.0[..], [5, 6, 4, u32::MAX, 4, 1, 0, 7, 1]);
        let mut p = ParamNames::default();
        assert!(p.next().starts_with("params[0") && !p.walk(w.rank(), "e", &["a", "b"]).is_empty());
        assert_eq!(p.many(), [strided::param(7), strided::param(8)]);
    }

    #[test]
    fn keys_hold_every_field() {
        #[derive(Hash)]
        struct K(u32, bool, Option<u32>, [u32; 2]);
        let words = |k: K| {
            let mut f = KeyHasher(SmallVec::new());
            k.hash(&mut f);
            f.0
        };
        let first = words(K(1, false, None, [2, 3]));
        for other in [K(0, false, None, [2, 3]), K(1, true, None, [2, 3]), K(1, false, Some(0), [2, 3]), K(1, false, None, [3, 2])] {
            assert_ne!(words(other), first);
        }
        assert_eq!(words(K(1, false, None, [2, 3])), first);
    }

    #[test]
    fn shaders_are_valid() {
        validate(&FillWords, 1);
    }
}
