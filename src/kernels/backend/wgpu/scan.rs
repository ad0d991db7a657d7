//! Cumulative sums and products along one dimension.
//!
//! A dimension is cut into blocks. If there is more than one, a first dispatch computes the total of each block, the totals are scanned in
//! the same way, and a second dispatch starts each block with the total of all blocks before it. No workgroup waits for another one. If
//! there are many rows, a workgroup goes through the blocks of a row by itself.
//!
//! Invocations that share a block read and write neighbouring elements, and pass them through workgroup memory to the invocation that scans
//! them.

use super::pointwise::elementwise::LoadFunction;
use super::pointwise::fused::DeviceProgram;
use super::reduce::reducers::DeviceReducer;
use super::wgsl::with_library;
use super::{Bindings, Buffer, BufferView, Dispatch, Key, scratch_size};
use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::Context;
use crate::backend::wgpu::common::operands::{Elements, first, output};
use crate::backend::wgpu::common::strided::{GROUP, Params, StridedWalk, check, element, entry, header, param, slots, unknown, wgsl};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::call::{Family, Scan, ScanKind};
use crate::error::Result;
use crate::layout::DType;
use smallvec::SmallVec;
use std::fmt::Write;
use std::sync::Arc;

/// Bytes of accumulators that an invocation has in a shared block.
const EACH_BYTES: usize = 32;
/// One more accumulator after so many in workgroup memory, so that neighbouring invocations use different banks of it.
const PADDING: usize = 32;
/// Rows that are enough to give each its own invocations, and the blocks of a row that one workgroup goes through then.
const ROWS: usize = 256;
const ROUNDS: usize = 64;
/// Loads under way in a loop.
const UNROLL: usize = 4;
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
    /// Invocations that share a block; None where each invocation has one of its own.
    shared: Option<usize>,
    /// Reads elements that a program computes.
    made: bool,
    rank: u32,
    /// Binding numbers: input, output, totals.
    slots: [u32; 3],
    writes: u32,
}

impl ScanShader {
    fn key(&self, bindings: &Bindings<'_>, loader: Option<&LoadFunction>) -> Key {
        let shared = self.shared.unwrap_or(0) as u32;
        let flags = self.kind as u32 | (self.pass as u32) << 3 | u32::from(self.made) << 5 | self.rank << 6 | shared << 16;
        let [at, writes] = slots(&self.slots, bindings);
        let mut words: SmallVec<[u32; 8]> = SmallVec::from_slice(&[flags, self.from as u32 | (self.to as u32) << 8, at, writes]);
        words.extend(loader.iter().flat_map(|l| l.words.iter().copied()));
        Key::new("scan", words)
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
        let _ = writeln!(
            s,
            "fn at(i: u32, p: u32) -> Acc {{ let j = p + i * {}; return lift({}, {e}(), {e}(), 0u); }}",
            param(6),
            if self.made { "load(j)".into() } else { format!("b{x}[j]") },
        );
        let each = each(self.to);
        if self.shared.is_some() {
            let _ = write!(
                s,
                "var<workgroup> parts: array<Acc, {}>;\n\
                 var<workgroup> tile: array<Acc, {}>;\n\
                 fn padded(i: u32) -> u32 {{ return i + i / {PADDING}u; }}\n",
                2 * GROUP,
                GROUP * each + GROUP * each / PADDING
            );
        }
        s.push_str(&entry());
        if self.made || self.kind == ScanKind::LogSumExp || self.to.is_complex() {
            let _ = writeln!(s, "{}", unknown(ZERO));
        }
        let place = format!(
            "var o0 = {};\n{}let to = {} + (k / {inner}) * {n} * {inner} + k % {inner};\n",
            param(5),
            wgsl(self.rank, FIXED, "k", &["o0"]),
            param(7)
        );
        if let Some(y) = self.shared {
            let rows = GROUP / y;
            let own = |i: &str| format!("padded(x * {}u + y + {i} * {y}u)", y * each);
            // What is behind the end is not used: the last element is read instead.
            let read = "at(min(begin + y + I, end - 1u), o0)".replace('I', &format!("i * {y}u"));
            let reads: String = if self.made {
                format!("for (var i = 0u; i < {each}u; i += 1u) {{ tile[{}] = {read}; }}\n", own("i"))
            } else {
                let loads: String = (0..each).map(|i| format!("let r{i} = {};\n", read.replace("i *", &format!("{i}u *")))).collect();
                loads + &(0..each).map(|i| format!("tile[{}] = r{i};\n", own(&format!("{i}u")))).collect::<String>()
            };
            let (tile, w_step) = (|i: &str| format!("tile[padded(lid * {each}u + {i})]"), "sum = merge(parts[half + lid - w], sum);");
            // `merge` is long for logarithms: loops repeat it less.
            let long = self.kind == ScanKind::LogSumExp;
            let sums: String = if long {
                let v = tile("i");
                format!("var sum = init();\nfor (var i = 0u; i < min(mine, {each}u); i += 1u) {{ sum = merge(sum, {v}); {v} = sum; }}\n")
            } else {
                let one = |i: usize| {
                    let v = format!("select(init(), {}, {i}u < mine)", tile(&format!("{i}u")));
                    if i == 0 { format!("let v0 = {v};\n") } else { format!("let v{i} = merge(v{}, {v});\n", i - 1) }
                };
                (0..each).map(one).collect::<String>() + &format!("var sum = v{};\n", each - 1)
            };
            // The halves of `parts` are read and written in turn.
            let mut half = 0;
            let mut scan = String::from("parts[lid] = sum;\n");
            let mut w = 1;
            if long {
                half = if y.ilog2() % 2 == 1 { GROUP } else { 0 };
                let _ = write!(
                    scan,
                    "var half = 0u;\n\
                     for (var w = 1u; w < {y}u; w <<= 1u) {{\n\
                     workgroupBarrier();\n\
                     if (y >= w) {{ {w_step} }}\n\
                     half = {GROUP}u - half; parts[half + lid] = sum;\n}}\n"
                );
                w = y;
            }
            while w < y {
                let next = GROUP - half;
                let _ = write!(
                    scan,
                    "workgroupBarrier();\n\
                     if (y >= {w}u) {{ sum = merge(parts[{half}u + lid - {w}u], sum); }}\n\
                     parts[{next}u + lid] = sum;\n"
                );
                (w, half) = (2 * w, next);
            }
            let all = format!("parts[{half}u + x * {y}u + {}u]", y - 1);
            let _ = write!(
                s,
                "if (group >= {groups} * {blocks}) {{ return; }}\n\
                 let block = group % {blocks};\n\
                 let x = lid / {y}u; let y = lid % {y}u;\n\
                 let row = (group / {blocks}) * {rows}u + x;\n\
                 let inside = row < {count};\n\
                 let k = min(row, {count} - 1u);\n{place}\
                 var acc = init();\n{carry}\
                 let last = min((block + 1u) * {block}, {n});\n\
                 for (var begin = block * {block}; begin < last; begin += {step}u) {{\n\
                 let end = min(begin + {step}u, last);\n\
                 let mine = max(end - begin, y * {each}u) - y * {each}u;\n\
                 {reads}workgroupBarrier();\n{sums}{scan}workgroupBarrier();\n",
                groups = format_args!("(({count} + {}u) / {rows}u)", rows - 1),
                step = y * each,
            );
            if self.pass == ScanPass::Totals {
                let _ = write!(
                    s,
                    "acc = merge(acc, {all});\nworkgroupBarrier();\n}}\n\
                     if (inside && y == 0u) {{ b{totals}[{} + k * {blocks} + block] = acc; }}\n}}\n",
                    param(8)
                );
            } else {
                let puts: String = if long {
                    format!("for (var i = 0u; i < {each}u; i += 1u) {{ {0} = merge(before, {0}); }}\n", tile("i"))
                } else {
                    (0..each).map(|i| format!("{} = merge(before, v{i});\n", tile(&format!("{i}u")))).collect()
                };
                let writes: String = (0..each)
                    .map(|i| {
                        let from = own(&format!("{i}u"));
                        format!("{{ let i = begin + y + {}u; if (i < end) {{ b{out}[to + i * {inner}] = tile[{from}]; }} }}\n", i * y)
                    })
                    .collect();
                let _ = write!(
                    s,
                    "var before = acc;\n\
                     if (y > 0u) {{ before = merge(acc, parts[{half}u + lid - 1u]); }}\n\
                     acc = merge(acc, {all});\n\
                     {puts}workgroupBarrier();\n\
                     if (inside) {{\n{writes}}}\n}}\n}}\n"
                );
            }
        } else {
            let put = |i: &str| match self.pass {
                ScanPass::Totals => String::new(),
                ScanPass::Whole | ScanPass::Carried => format!("b{out}[to + {i} * {inner}] = acc;\n"),
            };
            let many = if self.made {
                String::new()
            } else {
                let loads: String = (0..UNROLL).map(|u| format!("let v{u} = at(i + {u}u, o0);\n")).collect();
                let merges: String = (0..UNROLL).map(|u| format!("acc = merge(acc, v{u});\n{}", put(&format!("(i + {u}u)")))).collect();
                format!("while (i + {}u < end) {{\n{loads}{merges}i += {UNROLL}u;\n}}\n", UNROLL - 1)
            };
            let _ = write!(
                s,
                "let e = group * {GROUP}u + lid;\n\
                 if (e >= {count} * {blocks}) {{ return; }}\n\
                 let k = e % {count}; let block = e / {count};\n{place}\
                 var acc = init();\n{carry}\
                 let end = min((block + 1u) * {block}, {n});\n\
                 var i = block * {block};\n{many}\
                 while (i < end) {{\n\
                 acc = merge(acc, at(i, o0));\n{}i += 1u;\n}}\n{}}}\n",
                put("i"),
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
    let along = step.unsigned_abs() <= kept.step();
    let each = each(out.dtype);
    let shared = (n > each && (along || shares(n, step, &kept))).then(|| n.div_ceil(each).next_power_of_two().min(GROUP));
    let block = match shared {
        Some(y) if count >= ROWS && n <= ROUNDS * y * each => n,
        Some(y) => y * each,
        None => (n * count / BUSY).clamp(64, BLOCK),
    };
    let blocks = n.div_ceil(block);
    let job = ScanRun { op, kind, source: from, x, out, kept, shared, sizes: [count, n, inner, blocks, block], step };
    if blocks == 1 {
        return job.run(ScanPass::Whole, None);
    }
    let context = out.buffer.context();
    let bytes = count * blocks * scratch_size(out.dtype);
    let (totals, carried) = (Buffer::new(context, bytes)?, Buffer::new(context, bytes)?);
    job.run(ScanPass::Totals, Some(&totals))?;
    let (shape, strides) = ([count, blocks], [blocks as isize, 1]);
    let view = |buffer| BufferView { buffer, offset: 0, shape: &shape, strides: &strides, dtype: out.dtype };
    scan(op, kind, view(&totals), 1, view(&carried))?;
    job.run(ScanPass::Carried, Some(&carried))
}

/// Elements that an invocation scans in a shared block.
fn each(to: DType) -> usize {
    EACH_BYTES / scratch_size(to)
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
    shared: Option<usize>,
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
        let groups = self.shared.map_or((count * blocks).div_ceil(GROUP), |y| count.div_ceil(GROUP / y) * blocks);
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

impl WgpuFamily for Scan {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn takes_complex(&self) -> bool {
        self.kind != ScanKind::LogSumExp
    }

    fn compute(s: &Scan, context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output(outs, 0)?;
        first(
            context,
            ins,
            |p| p.can_be_read(context),
            |x| match x {
                Elements::Memory(x) => scan(s.name(), s.kind, x, s.dim, out),
                Elements::Made(p, shape, strides) => scan_program(s.name(), s.kind, p, (shape, strides), s.dim, out),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::reduce::rows::tests::workgroup_bytes;
    use crate::backend::wgpu::wgsl::validate;

    #[test]
    fn every_shader_is_valid() {
        for from in crate::backend::wgpu::elem::on_device() {
            let to = if from.is_differentiable() { from } else { DType::I64 };
            for pass in [ScanPass::Whole, ScanPass::Totals, ScanPass::Carried] {
                let kinds =
                    [ScanKind::Sum, ScanKind::Prod, ScanKind::LogSumExp].into_iter().filter(|k| from.is_float() || !k.is_float_only());
                let shares = [(Some(GROUP), 0), (Some(8), 2), (None, 3), (None, 1)];
                for (kind, (shared, rank)) in kinds.flat_map(|k| shares.map(|s| (k, s))) {
                    let (slots, writes) = if pass == ScanPass::Totals { ([0, 0, 1], 2) } else { ([0, 1, 2], 2) };
                    let form = ScanShader { kind, from, to, pass, shared, made: false, rank, slots, writes };
                    let source = form.source(None);
                    validate::check(&format!("{form:?}"), &source);
                    assert!(workgroup_bytes(&source) <= 16384, "{form:?}");
                }
            }
        }
    }
}
