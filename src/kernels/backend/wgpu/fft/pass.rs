//! Transforms of lines in workgroup memory, by Stockham's algorithm: steps of radix 2, 3, 4, 5 and 7, each of which puts its results where the
//! next one reads them in order.

use super::line::{EndNames, Ends, EndsForm, LineDims, ROOT};
use crate::backend::wgpu::Bindings;
use crate::backend::wgpu::common::strided::StridedWalk;
use crate::backend::wgpu::common::word_kernels::{GROUP, Launch, ParamNames, ParamValues, WordKernel, groups};
use crate::error::Result;
use smallvec::SmallVec;
use std::f64::consts::TAU;
use std::fmt::Write;

/// The longest line: its elements fill the workgroup memory that every adapter has.
pub(super) const MOST: usize = 2048;
/// Elements of a workgroup where lines are short, if there are many and if there are few.
const MANY: usize = 2048;
const FEW: usize = 512;
/// Workgroups from which there are many.
const ENOUGH: usize = 128;

/// Radices in the order in which steps take them.
const RADICES: [usize; 5] = [4, 2, 3, 5, 7];

/// The radices of the steps, and what is left of a length that has other prime factors.
fn radices(mut n: usize) -> (SmallVec<[usize; 12]>, usize) {
    let mut steps = SmallVec::new();
    for r in RADICES {
        while n.is_multiple_of(r) {
            steps.push(r);
            n /= r;
        }
    }
    (steps, n)
}

/// Whether a length has no prime factor above 7.
pub(super) fn is_smooth(n: usize) -> bool {
    n > 0 && radices(n).1 == 1
}

/// The divisor of a smooth length above `MOST` that is the length of columns: the least one that leaves rows of at most `MOST`, or the largest
/// one that fits.
pub(super) fn split(n: usize) -> usize {
    let mut fitting = (2..=MOST).filter(|d| n.is_multiple_of(*d));
    let near = (n as f64).sqrt();
    let short = |d: &usize| n / d <= MOST;
    let distance = |d: usize| (d as f64 / near).ln().abs();
    let balanced = fitting.clone().filter(short).min_by(|a, b| distance(*a).total_cmp(&distance(*b)));
    balanced.or_else(|| fitting.next_back()).unwrap_or(1)
}

/// Transforms lines of `n` elements, of which element `k` has the place `k * spreads[0]` in the operand's line and `k * spreads[1]` in the
/// result's. With `turned`, results are multiplied by the roots of that length, to the power of their number times the line's own place.
pub(super) fn run(op: &'static str, dims: &LineDims, n: usize, spreads: [usize; 2], turned: Option<usize>, ends: &Ends<'_>) -> Result<()> {
    let walk = StridedWalk::<4>::ordered(dims.iter().copied());
    let count = walk.count();
    let per = |elements: usize| (elements / n).max(1);
    let lines = if count.div_ceil(per(MANY)) >= ENOUGH { per(MANY) } else { per(FEW) }.min(count.next_power_of_two());
    // How far the neighbours of an element are: in its line, and in the next line.
    let across = |end: usize| {
        let step = if end == 0 { ends.from.step } else { ends.to.step };
        let own = spreads[end] as isize * step;
        walk.dims().last().is_some_and(|(_, s)| (s[2 * end] + s[2 * end + 1] * step).unsigned_abs() < own.unsigned_abs())
    };
    let mut bindings = Bindings::new();
    let slots = [bindings.read(ends.from.buffer), bindings.write(ends.to.buffer)];
    let kernel = FftPass { n, lines, ends: ends.form(slots), turned: turned.is_some(), across: [across(0), across(1)], rank: walk.rank() };
    let numbers = ends.numbers(ParamValues::default().push(count).push(spreads[0]).push(spreads[1]).push(turned.unwrap_or(1)).push(0));
    Launch { op, bindings, numbers: numbers.walk(&walk), groups: count.div_ceil(lines) }.run(ends.from.buffer.context(), &kernel)
}

#[derive(Debug, Hash)]
struct FftPass {
    n: usize,
    /// Lines of a workgroup.
    lines: usize,
    ends: EndsForm,
    turned: bool,
    /// Whether neighbouring invocations read, and write, neighbouring lines.
    across: [bool; 2],
    rank: u32,
}

/// `dft(v)`: the transform of `r` elements, as a function of an array.
fn butterfly(r: usize) -> String {
    let mut s = format!("fn dft{r}(v: array<vec2<f32>, {r}>) -> array<vec2<f32>, {r}> {{\n");
    match r {
        2 => s.push_str("return array<vec2<f32>, 2>(v[0] + v[1], v[0] - v[1]);\n"),
        4 => s.push_str(
            "let p = v[0] + v[2]; let q = v[0] - v[2]; let s = v[1] + v[3]; let d = v[1] - v[3];\n\
             return array<vec2<f32>, 4>(p + s, vec2<f32>(q.x + d.y, q.y - d.x), p - s, vec2<f32>(q.x - d.y, q.y + d.x));\n",
        ),
        _ => {
            // Elements `q` and `r - q` have conjugate roots.
            let half = r / 2;
            for q in 1..=half {
                let _ = writeln!(s, "let s{q} = v[{q}] + v[{0}]; let d{q} = v[{q}] - v[{0}];", r - q);
            }
            for p in 1..=half {
                let angle = |q: usize| TAU * ((p * q) % r) as f64 / r as f64;
                let sums: String = (1..=half).map(|q| format!(" + {:?} * s{q}", angle(q).cos() as f32)).collect();
                let turns: Vec<String> = (1..=half).map(|q| format!("{:?} * d{q}", angle(q).sin() as f32)).collect();
                let _ = writeln!(s, "let a{p} = v[0]{sums}; let b{p} = {};", turns.join(" + "));
            }
            let all: String = (1..=half).map(|q| format!(" + s{q}")).collect();
            let mut results = vec![format!("v[0]{all}")];
            results.extend((1..r).map(|p| match p <= half {
                true => format!("vec2<f32>(a{p}.x + b{p}.y, a{p}.y - b{p}.x)"),
                false => format!("vec2<f32>(a{0}.x - b{0}.y, a{0}.y + b{0}.x)", r - p),
            }));
            let _ = writeln!(s, "return array<vec2<f32>, {r}>({});", results.join(", "));
        }
    }
    s + "}\n"
}

impl FftPass {
    /// The step of radix `r` after steps whose radices have the product `done`.
    fn step(&self, r: usize, done: usize) -> String {
        let (n, apart) = (self.n, self.n / r);
        let all = self.lines * apart;
        let each = all.div_ceil(GROUP);
        let mut s = "{\n".to_owned();
        for b in 0..each {
            let t = format!("(lane + {}u)", b * GROUP);
            let _ = writeln!(s, "let l{b} = {t} / {apart}u; let j{b} = {t} % {apart}u; let k{b} = j{b} % {done}u;");
            let _ = writeln!(s, "var v{b} = array<vec2<f32>, {r}>();\nif ({t} < {all}u) {{");
            for q in 0..r {
                let x = format!("x[l{b} * {n}u + j{b} + {}u]", q * apart);
                let v = if q == 0 || done == 1 { x } else { format!("times({x}, root(k{b} * {q}u, {}u))", done * r) };
                let _ = writeln!(s, "v{b}[{q}] = {v};");
            }
            s.push_str("}\n");
        }
        s.push_str("workgroupBarrier();\n");
        for b in 0..each {
            let _ = writeln!(s, "if ((lane + {}u) < {all}u) {{\nlet y = dft{r}(v{b});", b * GROUP);
            let _ = writeln!(s, "let to = l{b} * {n}u + (j{b} - k{b}) * {r}u + k{b};");
            for p in 0..r {
                let _ = writeln!(s, "x[to + {}u] = y[{p}];", p * done);
            }
            s.push_str("}\n");
        }
        s + "workgroupBarrier();\n}\n"
    }

    /// A loop over all elements of the workgroup's lines: `body` has the number `i` of an element in the line `l` of the workgroup, and where the
    /// line is.
    fn each(&self, across: bool, count: &str, walk: &str, body: &str) -> String {
        let (n, lines) = (self.n, self.lines);
        let place =
            if across { format!("let l = e % {lines}u; let i = e / {lines}u;") } else { format!("let l = e / {n}u; let i = e % {n}u;") };
        format!(
            "for (var e = lane; e < {}u; e += {GROUP}u) {{\n{place}\nlet line = group * {lines}u + l;\nif (line < {count}) {{\n\
             var ia = 0u; var ii = 0u; var oa = 0u; var oi = 0u;\n{walk}{body}}}\n}}\n",
            n * lines
        )
    }
}

impl WordKernel for FftPass {
    const KIND: &'static str = "fft";

    fn body(&self, p: &mut ParamNames) -> String {
        let [count, spread_from, spread_to, turned, zero] = p.many();
        let names = EndNames::new(p.many());
        let walk = p.walk(self.rank, "line", &["ia", "ii", "oa", "oi"]);
        let n = self.n;
        let (steps, _) = radices(n);
        let mut text = format!("var<workgroup> x: array<vec2<f32>, {}>;\n{ROOT}", n * self.lines);
        for r in RADICES.iter().filter(|r| steps.contains(r)) {
            text.push_str(&butterfly(*r));
        }
        let load = format!("let full = ii + i * {spread_from};\nvar v = vec2<f32>();\n{}x[l * {n}u + i] = v;\n", self.ends.load(&names));
        let turn = if self.turned { format!("v = times(v, root(ii * i, {turned}));\n") } else { String::new() };
        let store = format!("var v = x[l * {n}u + i];\n{turn}let full = oi + i * {spread_to};\n{}", self.ends.store(&names));
        let mut main = format!("unknown = {zero};\n{}workgroupBarrier();\n", self.each(self.across[0], &count, &walk, &load));
        let mut done = 1;
        for r in steps {
            main.push_str(&self.step(r, done));
            done *= r;
        }
        main.push_str(&self.each(self.across[1], &count, &walk, &store));
        text + &groups(GROUP, &main)
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Stored;
    use super::*;
    use crate::backend::wgpu::common::word_kernels::validate;

    #[test]
    fn every_shader_is_valid() {
        for (n, lines) in [(1, 8), (2, 1024), (7, 32), (12, 1), (60, 8), (210, 2), (2048, 1), (2401 / 7, 5)] {
            for (from, to) in [(Stored::Complex, Stored::Complex), (Stored::Real, Stored::Half), (Stored::Half, Stored::Real)] {
                for turned in [false, true] {
                    let ends = EndsForm { from, to, conjugated: (turned, !turned), slots: [0, 1] };
                    validate(&FftPass { n, lines, ends, turned, across: [turned, false], rank: 2 }, 2);
                }
            }
        }
    }

    #[test]
    fn lengths_are_cut_into_short_ones() {
        for n in [4096, 2 * 3 * 5 * 7 * 64, 1 << 20, 7usize.pow(8), 3usize.pow(14), 1 << 26] {
            let mut rest = n;
            while rest > MOST {
                let columns = split(rest);
                assert!((2..=MOST).contains(&columns) && rest.is_multiple_of(columns), "{n} {rest} {columns}");
                rest /= columns;
            }
        }
        assert_eq!([1, 2, 11, 22, 2048, 0].map(is_smooth), [true, true, false, false, true, false]);
    }
}
