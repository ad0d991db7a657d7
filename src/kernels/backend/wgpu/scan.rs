//! Cumulative sums and products along one dimension.
//!
//! A dimension is cut into blocks. If there is more than one, a first dispatch computes the total of each block, the totals are scanned in
//! the same way, and a second dispatch starts each block with the total of all blocks before it. No workgroup waits for another one.

use super::pointwise::elementwise::LoadFunction;
use super::pointwise::fused::DeviceProgram;
use super::reduce::reducers::DeviceReducer;
use super::strided::{GROUP, Params, StridedWalk, check, element, entry, header, param, slots, unknown, wgsl};
use super::wgsl::with_library;
use super::{Bindings, Buffer, BufferView, Dispatch, Key, element_size};
use crate::backend::requests::ScanKind;
use crate::error::Result;
use crate::layout::DType;
use smallvec::SmallVec;
use std::fmt::Write;

/// Elements of an invocation if a workgroup shares a block. They are read twice instead of kept in registers.
const EACH: usize = 16;
/// The longest block of one invocation; longer sums in single precision would lose accuracy.
const BLOCK: usize = 1024;
/// Invocations that should be busy.
const BUSY: usize = 1 << 14;
/// Words of the parameters before the walk.
const FIXED: usize = 10;
/// A word of them that is 0.
const ZERO: usize = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanPass {
    /// The only block.
    Whole,
    /// Computes the totals of blocks.
    Totals,
    /// Starts with the totals of the blocks before.
    Carried,
}

#[derive(Debug, Clone, Copy)]
struct ScanShader {
    kind: ScanKind,
    from: DType,
    to: DType,
    pass: ScanPass,
    /// A workgroup shares a block (else each invocation has one of its own).
    shared: bool,
    /// Reads elements that a program computes.
    made: bool,
    rank: u32,
    /// Binding numbers: input, output, totals.
    slots: [u32; 3],
    writes: u32,
}

impl ScanShader {
    fn key(&self, bindings: &Bindings<'_>, loader: Option<&LoadFunction>) -> Key {
        let flags = self.kind as u32 | u32::from(self.shared) << 2 | (self.pass as u32) << 3 | u32::from(self.made) << 5 | self.rank << 6;
        let [at, writes] = slots(&self.slots, bindings);
        let mut words: SmallVec<[u32; 8]> = SmallVec::from_slice(&[flags, self.from as u32 | (self.to as u32) << 8, at, writes]);
        words.extend(loader.iter().flat_map(|l| l.words.iter().copied()));
        Key { kind: "scan", words }
    }

    fn source(&self, made: Option<(&DeviceProgram<'_>, &LoadFunction)>) -> String {
        let text = match self.kind {
            ScanKind::Sum => DeviceReducer::Sum.code(self.from, self.to).text,
            ScanKind::Prod => DeviceReducer::Prod.code(self.from, self.to).text,
            ScanKind::LogSumExp => log_add_exp(element(self.from)),
        };
        let e = element(self.from);
        let [x, out, totals] = self.slots;
        let mut types: SmallVec<[(u32, &str); 5]> = SmallVec::new();
        match made {
            Some((_, loader)) => types.extend(loader.declared()),
            None => types.push((x, e)),
        }
        match self.pass {
            ScanPass::Whole => types.push((out, element(self.to))),
            ScanPass::Totals => types.push((totals, element(self.to))),
            ScanPass::Carried => types.extend([(out, element(self.to)), (totals, element(self.to))]),
        }
        let total = FIXED + self.rank as usize * 2;
        let mut s = header(&types, self.writes, total + made.map_or(0, |(_, l)| l.params.len()));
        if let Some((program, loader)) = made {
            s.push_str(&program.function(loader, total));
        }
        s.push_str(&text);
        let (count, n, inner, blocks, block) = (param(0), param(1), param(2), param(3), param(4));
        let carry = match self.pass {
            ScanPass::Carried => format!("if (block > 0u) {{ acc = b{totals}[{} + k * {blocks} + block - 1u]; }}\n", param(8)),
            _ => String::new(),
        };
        let _ = write!(
            s,
            "fn at(i: u32, p: u32) -> Acc {{ let j = p + i * {}; return lift({}, {e}(), {e}(), 0u); }}\n{}",
            param(6),
            if self.made { "load(j)".into() } else { format!("b{x}[j]") },
            if self.shared { format!("var<workgroup> parts: array<Acc, {GROUP}>;\n") } else { String::new() }
        );
        s.push_str(&entry());
        if self.made || self.kind == ScanKind::LogSumExp {
            let _ = writeln!(s, "{}", unknown(ZERO));
        }
        let place = format!(
            "var o0 = {};\n{}let to = {} + (k / {inner}) * {n} * {inner} + k % {inner};\n",
            param(5),
            wgsl(self.rank, FIXED, "k", &["o0"]),
            param(7)
        );
        if self.shared {
            let _ = write!(
                s,
                "if (group >= {count} * {blocks}) {{ return; }}\n\
                 let k = group / {blocks}; let block = group % {blocks};\n{place}\
                 let first = block * {block} + lid * {EACH}u;\n\
                 let end = min(first + {EACH}u, {n});\n\
                 var acc = init();\n\
                 for (var i = first; i < end; i += 1u) {{ acc = merge(acc, at(i, o0)); }}\n\
                 parts[lid] = acc;\n\
                 for (var w = 1u; w < {GROUP}u; w <<= 1u) {{\n\
                 workgroupBarrier();\n\
                 if (lid >= w) {{ acc = merge(parts[lid - w], acc); }}\n\
                 workgroupBarrier();\n\
                 parts[lid] = acc;\n}}\n\
                 workgroupBarrier();\n"
            );
            if self.pass == ScanPass::Totals {
                let _ = write!(s, "if (lid == 0u) {{ b{totals}[{} + k * {blocks} + block] = parts[{}]; }}\n}}\n", param(8), GROUP - 1);
            } else {
                let _ = write!(
                    s,
                    "acc = init();\n{carry}if (lid > 0u) {{ acc = merge(acc, parts[lid - 1u]); }}\n\
                     for (var i = first; i < end; i += 1u) {{ acc = merge(acc, at(i, o0)); b{out}[to + i * {inner}] = acc; }}\n}}\n"
                );
            }
        } else {
            let _ = write!(
                s,
                "let e = group * {GROUP}u + lid;\n\
                 if (e >= {count} * {blocks}) {{ return; }}\n\
                 let k = e % {count}; let block = e / {count};\n{place}\
                 var acc = init();\n{carry}\
                 let end = min((block + 1u) * {block}, {n});\n\
                 for (var i = block * {block}; i < end; i += 1u) {{\n\
                 acc = merge(acc, at(i, o0));\n{}}}\n{}}}\n",
                if self.pass == ScanPass::Totals { String::new() } else { format!("b{out}[to + i * {inner}] = acc;\n") },
                if self.pass == ScanPass::Totals {
                    format!("b{totals}[{} + k * {blocks} + block] = acc;\n", param(8))
                } else {
                    String::new()
                },
            );
        }
        with_library(&s)
    }
}

/// The text that adds numbers of type `e` given by their logarithms.
fn log_add_exp(e: &str) -> String {
    let (lowest, nan) =
        if e == "f32" { ("f32_lit(0xff800000u)", "f32_lit(0x7fc00000u)") } else { ("f64_lit(0u, 0xfff00000u)", "f64_nan()") };
    format!(
        "alias Acc = {e};\n\
         fn init() -> Acc {{ return {lowest}; }}\n\
         fn lift(x: {e}, y: {e}, s: {e}, j: u32) -> Acc {{ return x; }}\n\
         fn merge(a: Acc, b: Acc) -> Acc {{\n\
         if ({e}_is_nan(a) || {e}_is_nan(b)) {{ return {nan}; }}\n\
         let below = {e}_lt(a, b);\n\
         let top = select(a, b, below);\n\
         let low = select(b, a, below);\n\
         if ({e}_is_inf(top)) {{ return top; }}\n\
         if ({e}_is_inf(low)) {{ return top; }}\n\
         return top + {e}_log1p({e}_exp(low - top));\n}}\n"
    )
}

/// Running sums, products, or sums of logarithms of `x` along `dim` into `out`, row-major and of the same shape: floats in their own
/// precision, others in int64.
pub fn scan(op: &'static str, kind: ScanKind, x: BufferView<'_>, dim: usize, out: BufferView<'_>) -> Result<()> {
    check(op, &x)?;
    scan_from(op, kind, ScanInput::Memory(x), x, dim, out)
}

/// As `scan`, of the elements that a program computes, with the shape `shape` and the memory order `strides`.
pub fn scan_program(
    op: &'static str,
    kind: ScanKind,
    made: &DeviceProgram<'_>,
    (shape, strides): (&[usize], &[isize]),
    dim: usize,
    out: BufferView<'_>,
) -> Result<()> {
    // Of the input's view only the layout and the type are looked at.
    let x = BufferView { buffer: out.buffer, offset: 0, shape, strides, dtype: made.dtype() };
    scan_from(op, kind, ScanInput::Made(made), x, dim, out)
}

/// The input of a scan.
#[derive(Clone, Copy)]
enum ScanInput<'a> {
    Memory(BufferView<'a>),
    Made(&'a DeviceProgram<'a>),
}

fn scan_from(op: &'static str, kind: ScanKind, from: ScanInput<'_>, x: BufferView<'_>, dim: usize, out: BufferView<'_>) -> Result<()> {
    let (n, step) = if x.shape.is_empty() { (1, 1) } else { (x.shape[dim], x.strides[dim]) };
    let inner: usize = x.shape.iter().skip(dim + 1).product();
    let kept = StridedWalk::ordered((0..x.shape.len()).filter(|d| *d != dim).map(|d| (x.shape[d], [x.strides[d]])));
    let count = kept.count();
    if count * n == 0 {
        return Ok(());
    }
    let shared = shares(n, step, &kept);
    let block = if shared { GROUP * EACH } else { (n * count / BUSY).clamp(64, BLOCK) };
    let blocks = n.div_ceil(block);
    let job = ScanRun { op, kind, source: from, x, out, kept, shared, sizes: [count, n, inner, blocks, block], step };
    if blocks == 1 {
        return job.run(ScanPass::Whole, None);
    }
    let context = out.buffer.context();
    let bytes = count * blocks * element_size(out.dtype);
    let (totals, carried) = (Buffer::new(context, bytes)?, Buffer::new(context, bytes)?);
    job.run(ScanPass::Totals, Some(&totals))?;
    let (shape, strides) = ([count, blocks], [blocks as isize, 1]);
    let view = |buffer| BufferView { buffer, offset: 0, shape: &shape, strides: &strides, dtype: out.dtype };
    scan(op, kind, view(&totals), 1, view(&carried))?;
    job.run(ScanPass::Carried, Some(&carried))
}

/// Whether a workgroup shares what lies along a dimension of `n` elements, `step` apart, for each of what `kept` walks over. If neighbours
/// along the dimension are far apart and there are many rows, neighbouring invocations read neighbouring rows instead.
pub(super) fn shares(n: usize, step: isize, kept: &StridedWalk<1>) -> bool {
    let along = step.unsigned_abs() <= kept.step();
    n > 32 && kept.count() < if along { BUSY } else { GROUP }
}

struct ScanRun<'a> {
    op: &'static str,
    kind: ScanKind,
    source: ScanInput<'a>,
    x: BufferView<'a>,
    out: BufferView<'a>,
    kept: StridedWalk<1>,
    shared: bool,
    /// Scans, elements of each, how far apart they lie in the output, blocks, elements of a block.
    sizes: [usize; 5],
    step: isize,
}

impl ScanRun<'_> {
    fn run(&self, pass: ScanPass, totals: Option<&Buffer>) -> Result<()> {
        let mut params = Params::new();
        let mut made = None;
        let mut bindings = Bindings::new();
        let mut at = [0; 3];
        match self.source {
            ScanInput::Memory(x) => at[0] = bindings.read(x.buffer),
            ScanInput::Made(p) => made = Some((p, p.loader(&mut bindings)?)),
        }
        if pass != ScanPass::Totals {
            at[1] = bindings.write(self.out.buffer);
        }
        if let Some(b) = totals {
            at[2] = if pass == ScanPass::Totals { bindings.write(b) } else { bindings.read(b) };
        }
        let form = ScanShader {
            kind: self.kind,
            from: self.x.dtype,
            to: self.out.dtype,
            pass,
            shared: self.shared,
            made: made.is_some(),
            rank: self.kept.rank(),
            slots: at,
            writes: bindings.writes(),
        };
        let [count, _, _, blocks, _] = self.sizes;
        params.extend(self.sizes.map(|v| v as u32));
        params.extend([self.x.offset as u32, self.step as u32, self.out.offset as u32, 0, 0]);
        debug_assert_eq!(params.len(), FIXED);
        self.kept.push(&mut params);
        let made = made.as_ref().map(|(p, l)| (*p, l));
        params.extend(made.iter().flat_map(|(_, l)| l.params.iter().copied()));
        let groups = if self.shared { count * blocks } else { (count * blocks).div_ceil(GROUP) };
        self.out.buffer.context().dispatch(Dispatch {
            op: self.op,
            key: form.key(&bindings, made.map(|(_, l)| l)),
            source: &|| form.source(made),
            bindings,
            params: &params,
            groups,
            checked: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::wgsl::validate;

    #[test]
    fn every_shader_is_valid() {
        for from in DType::ALL {
            let to = if from.is_float() { from } else { DType::I64 };
            for pass in [ScanPass::Whole, ScanPass::Totals, ScanPass::Carried] {
                let kinds =
                    [ScanKind::Sum, ScanKind::Prod, ScanKind::LogSumExp].into_iter().filter(|k| from.is_float() || !k.is_float_only());
                for (kind, (shared, rank)) in kinds.flat_map(|k| [(k, (true, 0)), (k, (true, 2)), (k, (false, 3)), (k, (false, 1))]) {
                    let (slots, writes) = if pass == ScanPass::Totals { ([0, 0, 1], 2) } else { ([0, 1, 2], 2) };
                    let form = ScanShader { kind, from, to, pass, shared, made: false, rank, slots, writes };
                    validate::check(&format!("{form:?}"), &form.source(None));
                }
            }
        }
    }
}
