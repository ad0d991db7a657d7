//! Reductions over strided memory: how elements are divided, and the shader around a `DeviceReducer`. `reducers` holds the WGSL of each
//! reduction. Not here: scans, softmax, sums of nll_loss.
//!
//! A workgroup is a tile of X results by Y invocations that share each of them. Every invocation reduces a part of the elements in blocks,
//! several at once so that several loads are under way, and the Y parts are merged as a tree. If there are few results, elements are cut into
//! segments whose results are reduced by a second dispatch. All of this depends on sizes and strides alone, so results are the same bits in
//! every run.

pub(super) mod compute;
pub(super) mod reducers;
pub(super) mod rows;

use self::reducers::{LOWEST, POWER, ReducerCode, ZERO};
use self::rows::{RowTile, gather, tree};
use super::elem::to_words;
use super::pointwise::elementwise::LoadFunction;
use super::pointwise::fused::DeviceProgram;
use super::wgsl::with_library;
use super::{Bindings, Buffer, BufferView, Dispatch, Key};
use crate::backend::wgpu::common::strided::{
    GROUP, Params, StridedWalk, check_count, check_reach, element, entry, header, param, slots, unknown, wgsl,
};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use smallvec::SmallVec;
use std::fmt::Write;

pub use self::reducers::DeviceReducer;

/// Workgroups that fill a large device, and how many there are where results are cut into segments: more, because the last ones to run
/// should be a small part of all.
const WORKGROUPS: (usize, usize) = (1024, 2048);
/// Elements of an invocation: the number from which further segments pay, and the largest number.
const ELEMENTS: (usize, usize) = (64, 4096);
/// Elements of an invocation in a short result.
const SHORT: usize = 32;
/// Groups of elements that are added up before the sum joins the others.
const ROUNDS: usize = 16;

/// How a reduction is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReduceTile {
    /// Results of a workgroup.
    x: usize,
    /// Neighbouring invocations are neighbours in a result (else among the results).
    along: bool,
    segments: usize,
    /// Elements of a segment.
    segment: usize,
}

fn tile(results: usize, elements: usize, along: bool) -> ReduceTile {
    let x = if along {
        GROUP / RowTile::new(results, elements, SHORT).map_or(GROUP, |t| t.shared)
    } else if elements <= 16 {
        GROUP
    } else if results <= 4 {
        4
    } else if results < 1 << 14 {
        32
    } else {
        GROUP
    };
    let y = GROUP / x;
    let (each, groups) = (elements.div_ceil(y), results.div_ceil(x));
    let mut segments =
        if each > ELEMENTS.0 && groups < WORKGROUPS.0 { WORKGROUPS.1.div_ceil(groups).min(each.div_ceil(ELEMENTS.0)) } else { 1 };
    segments = segments.max(each.div_ceil(ELEMENTS.1));
    let segment = elements.div_ceil(segments).next_multiple_of(y);
    ReduceTile { x, along: along && x < GROUP, segments: elements.div_ceil(segment.max(1)).max(1), segment }
}

/// The properties that the source of a shader depends on.
#[derive(Debug, Clone, Copy)]
struct ReduceShader {
    reducer: DeviceReducer,
    from: DType,
    to: DType,
    /// Reads accumulators of an earlier dispatch.
    second: bool,
    /// Reads elements that a program computes.
    made: bool,
    /// Writes accumulators for a later dispatch.
    partial: bool,
    shifted: bool,
    tile: (usize, bool),
    ranks: (u32, u32),
    /// Binding numbers: first operand, second operand, shift, first and second output.
    slots: [u32; 5],
    writes: u32,
}

impl ReduceShader {
    fn key(&self, bindings: &Bindings<'_>, loader: Option<&LoadFunction>) -> Key {
        let flags = [self.second, self.partial, self.shifted, self.tile.1, self.made]
            .iter()
            .enumerate()
            .fold(0, |w, (i, f)| w | u32::from(*f) << i);
        let [at, writes] = slots(&self.slots, bindings);
        let words = [
            self.reducer.word() | (self.from as u32) << 8 | (self.to as u32) << 16 | flags << 24,
            self.tile.0 as u32,
            self.ranks.0 | self.ranks.1 << 16,
            at,
            writes,
        ];
        let mut words = SmallVec::from_slice(&words);
        words.extend(loader.iter().flat_map(|l| l.words.iter().copied()));
        Key::new("reduce", words)
    }

    fn operands(&self) -> usize {
        if self.second { 1 } else { self.reducer.operands() }
    }

    fn source(&self, made: Option<(&DeviceProgram<'_>, &LoadFunction)>) -> String {
        let ReducerCode { text, store, .. } = self.reducer.code(self.from, self.to);
        let n = self.operands();
        let (e, o) = (self.reducer.element(self.from), self.reducer.output(self.to));
        let (input, output) = (if self.second { "Acc" } else { e }, if self.partial { "Acc" } else { o });
        let mut types: SmallVec<[(u32, &str); 5]> = SmallVec::new();
        match made {
            Some((_, loader)) => types.extend(loader.declared()),
            None => types.push((self.slots[0], input)),
        }
        if n == 2 {
            types.push((self.slots[1], e));
        }
        if self.shifted {
            types.push((self.slots[2], e));
        }
        types.push((self.slots[3], output));
        if self.two_outputs() {
            types.push((self.slots[4], element(DType::I64)));
        }
        let words = 1 + n;
        let kept_at = FIXED;
        let reduced_at = kept_at + self.ranks.0 as usize * words;
        let total = reduced_at + self.ranks.1 as usize * words;
        let mut s = header(&types, self.writes, total + made.map_or(0, |(_, l)| l.params.len()));
        if let Some((program, loader)) = made {
            s.push_str(&program.function(loader, total));
        }
        s.push_str(&text);
        let (x, y) = (self.tile.0, GROUP / self.tile.0);
        let offsets: &[&str] = if n == 2 { &["o0", "o1"] } else { &["o0"] };
        // One element, seen from the first one of its result.
        let [a, b, shift, out, out2] = self.slots;
        let lift = match (self.second, n) {
            (true, _) => format!("b{a}[o0]"),
            (false, 2) => format!("lift(b{a}[o0], b{b}[o1], s, j)"),
            // Values that are compared by their bits in memory are compared so here.
            _ if self.made && self.from == DType::F64 && e != element(DType::F64) => format!("lift(f64_words(load(o0)), {e}(), s, j)"),
            _ if self.made => format!("lift(load(o0), {e}(), s, j)"),
            _ => format!("lift(b{a}[o0], {e}(), s, j)"),
        };
        let _ = write!(
            s,
            "fn at(j: u32, p: u32, q: u32, s: {e}) -> Acc {{\nvar o0 = p; var o1 = q;\n{}return {lift};\n}}\n",
            wgsl(self.ranks.1, reduced_at, "j", offsets)
        );
        if y > 1 {
            let _ = writeln!(s, "var<workgroup> parts: array<Acc, {GROUP}>;");
        }
        let unroll = if self.reducer.is_long() { 4 } else { 8 };
        let merge = |a: &str, b: &str| format!("merge({a}, {b})");
        let elements_from_j = |many: usize| tree(&(0..many).map(|i| format!("at(j + {}u, o0, o1, s)", i * y)).collect::<Vec<_>>(), &merge);
        if unroll == 8 {
            // A program is in the loop once. Its elements are merged in the order of those in memory: results have the same bits.
            let body = if self.made {
                format!(
                    "var sum = init();\n\
                     for (var i = 0u; i < 2u; i += 1u) {{\n\
                     let four = {};\n\
                     if (i == 0u) {{ sum = four; }} else {{ sum = merge(sum, four); }}\n\
                     j += {}u;\n}}\n\
                     return sum;",
                    elements_from_j(4),
                    4 * y
                )
            } else {
                format!("return {};", elements_from_j(8))
            };
            let _ = writeln!(s, "fn eight(first: u32, o0: u32, o1: u32, s: {e}) -> Acc {{\nvar j = first;\n{body}\n}}");
        }
        s.push_str(&entry());
        let _ = writeln!(s, "{}", unknown(ZERO));
        let _ = write!(
            s,
            "if (group >= {groups} * {segments}) {{ return; }}\n\
             let part = group / {groups};\n\
             let x = {lx}; let y = {ly};\n\
             let k = (group % {groups}) * {x}u + x;\n\
             var acc = init();\n\
             var s = {e}();\n\
             if (k < {results}) {{\n\
             var o0 = {off0}; var o1 = {off1};\n{kept}{load_shift}\
             let begin = part * {segment};\n\
             let end = min(begin + {segment}, {elements});\n\
             var j = begin + y;\n\
             while (j + {last}u < end) {{\n\
             var sum = init();\n\
             for (var i = 0u; i < {ROUNDS}u && j + {last}u < end; i += 1u) {{\n\
             sum = merge(sum, {many});\n\
             j += {all}u;\n}}\n\
             acc = merge(acc, sum);\n}}\n{four}\
             while (j < end) {{ acc = merge(acc, at(j, o0, o1, s)); j += {y}u; }}\n}}\n",
            groups = param(4),
            segments = param(2),
            lx = if self.tile.1 { format!("lid / {y}u") } else { format!("lid % {x}u") },
            ly = if self.tile.1 { format!("lid % {y}u") } else { format!("lid / {x}u") },
            results = param(0),
            off0 = param(5),
            off1 = param(6),
            kept = wgsl(self.ranks.0, kept_at, "k", offsets),
            load_shift = if self.shifted { format!("s = b{shift}[{} + k];\n", param(7)) } else { String::new() },
            segment = param(3),
            elements = param(1),
            last = (unroll - 1) * y,
            many = if unroll == 4 { elements_from_j(4) } else { "eight(j, o0, o1, s)".into() },
            all = unroll * y,
            four = if unroll > 4 {
                format!("if (j + {}u < end) {{ acc = merge(acc, {}); j += {}u; }}\n", 3 * y, elements_from_j(4), 4 * y)
            } else {
                String::new()
            },
        );
        let step = if self.tile.1 { 1 } else { x };
        if y > 1 && self.reducer.is_long() {
            let _ = write!(
                s,
                "parts[lid] = acc;\n\
                 for (var w = {}u; w > 0u; w >>= 1u) {{\n\
                 workgroupBarrier();\n\
                 if (y < w) {{ parts[lid] = merge(parts[lid], parts[lid + w * {step}u]); }}\n}}\n\
                 if (y == 0u) {{ acc = parts[lid]; }}\n",
                y / 2
            );
        } else {
            s.push_str(&gather(y, step, "acc", &merge));
        }
        let store = if self.partial {
            format!("b{out}[part * {} + k] = acc;", param(0))
        } else {
            store.replace("{0}[k]", &format!("b{out}[{} + k]", param(8))).replace("{1}[k]", &format!("b{out2}[{} + k]", param(9)))
        };
        let _ = write!(s, "if (y == 0u && k < {}) {{ let a = acc; {store} }}\n}}\n", param(0));
        with_library(&s)
    }

    fn two_outputs(&self) -> bool {
        matches!(self.reducer, DeviceReducer::Place { .. }) && !self.partial
    }
}

/// Words of the parameters before the walks.
const FIXED: usize = 15;

/// Reduces `ins` (one operand or, for `Dot`, two of one shape) over the dimensions marked in `reduced` into `outs`, row-major over the
/// others; `shift` is row-major like them. `power` is read by `Reducer::Power`.
pub fn reduce(
    op: &'static str,
    reducer: DeviceReducer,
    ins: &[BufferView<'_>],
    shift: Option<BufferView<'_>>,
    reduced: &[bool],
    power: f64,
    outs: &[BufferView<'_>],
) -> Result<()> {
    for v in ins {
        check_reach(op, v)?;
    }
    let (first, last) = (&ins[0], ins.last().unwrap_or(&ins[0]));
    let job = ReduceRun { op, reducer, from: first.dtype, to: outs[0].dtype, power, shift, outs };
    job.reduce(ReduceSource::Elements(ins), first.shape, [first.strides, last.strides], reduced)
}

/// As `reduce`, of the elements that a program computes, with the shape `shape` and the memory order `strides`. The program does not read
/// what the shift lies in.
#[allow(clippy::too_many_arguments)]
pub fn reduce_program(
    op: &'static str,
    reducer: DeviceReducer,
    program: &DeviceProgram<'_>,
    (shape, strides): (&[usize], &[isize]),
    shift: Option<BufferView<'_>>,
    reduced: &[bool],
    power: f64,
    outs: &[BufferView<'_>],
) -> Result<()> {
    let job = ReduceRun { op, reducer, from: program.dtype(), to: outs[0].dtype, power, shift, outs };
    job.reduce(ReduceSource::Made(program), shape, [strides; 2], reduced)
}

#[derive(Clone, Copy)]
enum ReduceSource<'a> {
    Elements(&'a [BufferView<'a>]),
    Partial(&'a Buffer),
    Made(&'a DeviceProgram<'a>),
}

struct ReduceRun<'a> {
    op: &'static str,
    reducer: DeviceReducer,
    from: DType,
    to: DType,
    power: f64,
    shift: Option<BufferView<'a>>,
    outs: &'a [BufferView<'a>],
}

impl ReduceRun<'_> {
    fn reduce(&self, source: ReduceSource<'_>, shape: &[usize], strides: [&[isize]; 2], reduced: &[bool]) -> Result<()> {
        let dim =
            |want: bool| (0..shape.len()).filter(move |d| reduced[*d] == want).map(move |d| (shape[d], [strides[0][d], strides[1][d]]));
        let (kept, over) = (StridedWalk::ordered(dim(false)), StridedWalk::unordered(dim(true)));
        let (results, elements) = (kept.count(), over.count());
        if results == 0 {
            return Ok(());
        }
        check_count(self.op, results.max(elements))?;
        let along = over.step() <= kept.step();
        let t = tile(results, elements, along);
        if t.segments == 1 {
            return self.run(source, &kept, &over, t, None);
        }
        let size = self.reducer.code(self.from, self.to).size;
        let bytes = t
            .segments
            .checked_mul(results * size)
            .ok_or_else(|| Error::memory(format!("{}: the intermediate results are too large", self.op)))?;
        let partial = Buffer::new(self.outs[0].buffer.context(), bytes)?;
        self.run(source, &kept, &over, t, Some(&partial))?;
        let kept = StridedWalk::ordered([(results, [1, 1])].into_iter());
        let over = StridedWalk::ordered([(t.segments, [results as isize; 2])].into_iter());
        let t = tile(results, t.segments, results == 1);
        self.run(
            ReduceSource::Partial(&partial),
            &kept,
            &over,
            ReduceTile { segments: 1, segment: over.count().next_multiple_of(GROUP), ..t },
            None,
        )
    }

    fn run(
        &self,
        source: ReduceSource<'_>,
        kept: &StridedWalk<2>,
        over: &StridedWalk<2>,
        t: ReduceTile,
        partial: Option<&Buffer>,
    ) -> Result<()> {
        let mut params = Params::new();
        let mut made = None;
        let mut bindings = Bindings::new();
        let mut at = [0; 5];
        let mut offsets = [0usize; 5];
        let mut second = false;
        match source {
            ReduceSource::Made(program) => made = Some((program, program.loader(&mut bindings)?)),
            ReduceSource::Elements(ins) => {
                for (i, v) in ins.iter().enumerate() {
                    at[i] = bindings.read(v.buffer);
                    offsets[i] = v.offset;
                }
            }
            ReduceSource::Partial(b) => {
                second = true;
                at[0] = bindings.read(b);
            }
        }
        if let Some(v) = self.shift {
            at[2] = bindings.read(v.buffer);
            offsets[2] = v.offset;
        }
        match partial {
            Some(b) => at[3] = bindings.write(b),
            None => {
                for (i, v) in self.outs.iter().enumerate() {
                    at[3 + i] = bindings.write(v.buffer);
                    offsets[3 + i] = v.offset;
                }
            }
        }
        let form = ReduceShader {
            reducer: self.reducer,
            from: self.from,
            to: self.to,
            second,
            made: made.is_some(),
            partial: partial.is_some(),
            shifted: self.shift.is_some(),
            tile: (t.x, t.along),
            ranks: (kept.rank(), over.rank()),
            slots: at,
            writes: bindings.writes(),
        };
        let (results, groups) = (kept.count(), kept.count().div_ceil(t.x));
        params.extend([results, over.count(), t.segments, t.segment, groups].map(|v| v as u32));
        params.extend(offsets.map(|v| v as u32));
        debug_assert_eq!(params.len(), LOWEST);
        params.extend(self.reducer.lowest(self.from));
        debug_assert_eq!(params.len(), POWER);
        params.extend(to_words(Scalar::Float(self.power), self.from));
        debug_assert_eq!(params.len(), ZERO);
        params.push(0);
        debug_assert_eq!(params.len(), FIXED);
        if form.operands() == 2 {
            kept.push(&mut params);
            over.push(&mut params);
        } else {
            kept.first().push(&mut params);
            over.first().push(&mut params);
        }
        let made = made.as_ref().map(|(p, l)| (*p, l));
        params.extend(made.iter().flat_map(|(_, l)| l.params.iter().copied()));
        self.outs[0].buffer.context().dispatch(Dispatch {
            op: self.op,
            key: form.key(&bindings, made.map(|(_, l)| l)),
            source: &|| form.source(made),
            bindings,
            params: &params,
            groups: groups * t.segments,
            checked: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::wgpu::wgsl::validate;
    use crate::call::Reducer;

    /// Every reducer with an element type that it is offered for, and its result's.
    fn offered() -> Vec<(DeviceReducer, DType, DType)> {
        let norms = [0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY].map(Reducer::Norm);
        let mut all = Vec::new();
        for d in crate::backend::wgpu::elem::on_device() {
            for asked in Reducer::SAMPLES
                .into_iter()
                .chain(norms)
                .filter(|r| d.is_float() || !r.is_float_only() && (!d.is_complex() || !matches!(r, Reducer::Extreme { .. })))
            {
                all.extend(DeviceReducer::of(asked).map(|r| (r, d, asked.out_dtype(d))));
            }
            if !d.is_complex() {
                all.extend([false, true].map(|max| (DeviceReducer::Place { max }, d, d)));
            }
            if d.is_float() {
                all.extend([DeviceReducer::Power, DeviceReducer::SumExp].map(|r| (r, d, d)));
            }
        }
        all.extend([DType::F32, DType::F64, DType::I32, DType::I64, DType::U8, DType::C64].map(|d| (DeviceReducer::Dot, d, d)));
        all
    }

    #[test]
    fn every_shader_is_valid() {
        for (reducer, from, to) in offered() {
            let shifted = matches!(reducer, DeviceReducer::Power | DeviceReducer::SumExp);
            for (second, partial) in [(false, false), (false, true), (true, false)] {
                for (tile, ranks) in [((GROUP, false), (0, 0)), ((1, true), (2, 3)), ((8, true), (1, 1)), ((32, false), (1, 2))] {
                    let slots = if partial { [0, 0, 1, 2, 0] } else { [0, 1, 2, 3, 4] };
                    let form = ReduceShader {
                        reducer,
                        from,
                        to,
                        second,
                        made: false,
                        partial,
                        shifted,
                        tile,
                        ranks,
                        slots,
                        writes: if partial { 4 } else { 24 },
                    };
                    let source = form.source(None);
                    validate::check(&format!("{form:?}"), &source);
                    assert!(rows::tests::workgroup_bytes(&source) <= 16384, "{form:?}");
                }
            }
        }
    }

    #[test]
    fn shaders_of_programs_are_valid() {
        for reducer in [DeviceReducer::Sum, DeviceReducer::Squares] {
            for tile in [(GROUP, false), (8, true)] {
                let form = ReduceShader {
                    reducer,
                    from: DType::F32,
                    to: DType::F32,
                    second: false,
                    made: true,
                    partial: false,
                    shifted: false,
                    tile,
                    ranks: (1, 1),
                    slots: [0, 0, 0, 1, 0],
                    writes: 2,
                };
                validate::check(&format!("{form:?}"), &("fn load(i: u32) -> f32 { return f32(i); }\n".to_string() + &form.source(None)));
            }
        }
    }

    #[test]
    fn tiles_cover_every_element_once() {
        for results in [1, 3, 5, 100, 40_000] {
            for elements in [0, 1, 15, 17, 500, 513, 70_000, 5_000_000] {
                for along in [false, true] {
                    let t = tile(results, elements, along);
                    assert!(t.segments * t.segment >= elements && (t.segments - 1) * t.segment <= elements, "{results} {elements} {t:?}");
                    assert!(t.segment.div_ceil(GROUP / t.x) <= ELEMENTS.1, "{results} {elements} {t:?}");
                }
            }
        }
    }
}
