//! Tiles of rows x columns of pairs. Each invocation has a block of 4 x 4 scores in registers, the sum over their numbers goes through
//! workgroup memory in chunks. The weights (or slopes) of a tile then go to workgroup memory, and each invocation adds their products with
//! chunks of the columns to four rows of the result, a part of which it has in registers until the end. While a chunk is multiplied the next
//! one is read into registers.
//!
//! The four of a block are not neighbours: row `r` of a block is `down` rows after row `r - 1`, column `c` `across` columns after column
//! `c - 1`, and the quadruples of a result's row are far apart in the same way. So neighbouring invocations read and write neighbouring
//! numbers, masks included, and bank conflicts do not occur.
//!
//! A product of scores takes 2 R C / (4 (R + C)) operations for each byte that it reads, 10.7 for 64 x 32 and for 32 x 64; a product of
//! weights R / 2 for each byte of the columns, 32 and 16. Workgroup memory gives two quadruples for 16 products.
//!
//! Keys that are after all queries of a tile are skipped, and so are queries before all of its keys.
//!
//! Not here: float64, and rows of more than `MOST` numbers, whose results do not fit registers.

use super::super::elem::value;
use super::{AttentionNames, AttentionOperands, AttentionResult};
use crate::backend::wgpu::common::word_kernels::{ParamNames, WordKernel, groups, load_real, store_real};
use crate::layout::DType;
use std::fmt::Write;

/// Numbers of the longest rows that tiles are for.
const MOST: usize = 128;
/// Fewer columns, or fewer pairs, are not worth a tile.
const FEW_COLUMNS: usize = 32;
const FEW_PAIRS: usize = 32 * 32;
/// With fewer tiles of the larger number of rows, the smaller is used: they would not keep a large device busy.
const BUSY: usize = 512;
/// Terms of a score that are in workgroup memory at once.
const DEPTH: usize = 16;

/// Quadruples of rows and of columns of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AttentionTileSize {
    down: usize,
    across: usize,
}

pub(super) const TILES: [AttentionTileSize; 2] = [AttentionTileSize { down: 8, across: 16 }, AttentionTileSize { down: 16, across: 8 }];

impl AttentionTileSize {
    pub fn rows(self) -> usize {
        self.down * 4
    }

    fn columns(self) -> usize {
        self.across * 4
    }

    fn invocations(self) -> usize {
        self.down * self.across
    }

    /// Where the quadruples of columns begin in the memory of chunks. One quadruple of padding keeps neighbours along the sum out of each
    /// other's banks.
    fn right(self) -> usize {
        DEPTH * (self.down + 1)
    }

    /// Quadruples of the memory of chunks.
    fn staged(self) -> usize {
        self.right() + DEPTH * (self.across + 1)
    }

    /// Quadruples of the memory of weights.
    fn weights(self) -> usize {
        self.columns() * (self.down + 1)
    }

    /// Quadruples of a row of `width` numbers that each invocation has.
    fn quads(self, width: usize) -> usize {
        width.div_ceil(4 * self.across)
    }

    /// Columns whose rows of `width` numbers are in workgroup memory at once.
    fn chunk(self, width: usize) -> usize {
        let fit = self.staged() / (self.quads(width) * self.across);
        (fit + 1).next_power_of_two() / 2
    }
}

/// The tile for `all` heads of a batch with so many rows and columns of pairs, whose operands have rows of these `widths`.
pub(super) fn choose(real: DType, widths: [usize; 2], all: usize, rows: usize, columns: usize) -> Option<usize> {
    let fits = real == DType::F32 && widths.iter().all(|w| (1..=MOST).contains(w));
    let many = columns >= FEW_COLUMNS && rows * columns >= FEW_PAIRS;
    let large = rows > TILES[0].rows() && all * rows.div_ceil(TILES[1].rows()) >= BUSY;
    (fits && many).then_some(usize::from(large))
}

#[derive(Debug, Hash)]
pub(super) struct AttentionTile {
    pub operands: AttentionOperands,
    pub tile: usize,
}

const LANES: [&str; 4] = ["x", "y", "z", "w"];

/// Places in `NAMES`.
const Q: usize = 0;
const K: usize = 1;
const V: usize = 2;
const G: usize = 3;

impl AttentionTile {
    /// The operand that has the rows of the first product of a pair, and the one that has the columns.
    fn scored(&self) -> [usize; 2] {
        if self.operands.result.by_key() { [K, Q] } else { [Q, K] }
    }

    /// The same of the second product, where there is one.
    fn second(&self) -> Option<[usize; 2]> {
        match self.operands.result {
            AttentionResult::QueryGradient => Some([G, V]),
            AttentionResult::KeyGradient => Some([V, G]),
            _ => None,
        }
    }

    /// The operand whose rows the weights are multiplied with.
    fn added(&self) -> usize {
        match self.operands.result {
            AttentionResult::QueryGradient => K,
            AttentionResult::KeyGradient => Q,
            AttentionResult::ValueGradient => G,
            AttentionResult::Forward | AttentionResult::Along => V,
        }
    }

    fn size_of(&self, operand: usize) -> usize {
        if operand == Q || operand == K { self.operands.e } else { self.operands.ev }
    }

    /// Functions: `quad_q(o, i, c, end)` are the numbers at column `c` of four rows of the head at `o`, from row `i` on, and `wide_v(o, i, c,
    /// end)` four numbers of row `i`, from column `c` on; 0 outside. `score` is the score of a product of query and key, the lowest number
    /// where there is no attention, and `weight` or `slope` what its row is multiplied with.
    fn functions(&self, n: &AttentionNames) -> String {
        let (a, tile) = (&self.operands, TILES[self.tile]);
        let mut s = a.functions(n);
        for [row, column] in [Some(self.scored()), self.second()].into_iter().flatten() {
            for (operand, step) in [(row, tile.down), (column, tile.across)] {
                let Some(slot) = a.from[operand] else { continue };
                let [_, _, _, i, c] = &n.from[operand];
                let (name, size) = (super::NAMES[operand], self.size_of(operand));
                let _ = write!(
                    s,
                    "fn quad_{name}(o: u32, i: u32, c: u32, end: u32) -> vec4<f32> {{
var v = vec4<f32>();
if (c < {size}u) {{
let at = o + c * {c};
"
                );
                for (k, lane) in LANES.iter().enumerate() {
                    let load = load_real(a.real, slot, &format!("at + (i + {}u) * {i}", k * step));
                    let _ = writeln!(s, "if (i + {}u < end) {{ v.{lane} = {load}; }}", k * step);
                }
                s.push_str("}\nreturn v;\n}\n");
            }
        }
        let (added, width) = (self.added(), a.width());
        if let Some(slot) = a.from[added] {
            let [_, _, _, i, c] = &n.from[added];
            let _ = write!(
                s,
                "fn wide_{}(o: u32, i: u32, c: u32, end: u32) -> vec4<f32> {{
var v = vec4<f32>();
if (i < end) {{
let at = o + i * {i};
",
                super::NAMES[added]
            );
            let apart = tile.quads(width) * tile.across;
            for (k, lane) in LANES.iter().enumerate() {
                let load = load_real(a.real, slot, &format!("at + (c + {}u) * {c}", k * apart));
                let _ = writeln!(s, "if (c + {}u < {width}u) {{ v.{lane} = {load}; }}", k * apart);
            }
            s.push_str("}\nreturn v;\n}\n");
        }
        let after = if a.causal { " || j > i" } else { "" };
        let _ = write!(
            s,
            "fn score(sum: f32, b: u32, h: u32, i: u32, j: u32) -> f32 {{
if (i >= {l} || j >= {s}{after}) {{ return {lowest}; }}
var extra = 0.0;
{mask}return sum * {scale} + extra;
}}
fn attends(x: f32) -> bool {{ return f32_is_nan(x) || x > {lowest}; }}
",
            l = n.l,
            s = n.s,
            lowest = a.lowest(),
            mask = a.masked(n),
            scale = n.scale,
        );
        let weight = "if (attends(x)) { w = f32_exp(x - top); }";
        let _ = match self.second() {
            None => writeln!(s, "fn weight(x: f32, top: f32) -> f32 {{ var w = 0.0; {weight} return w; }}"),
            Some(_) => writeln!(
                s,
                "fn slope(x: f32, top: f32, dw: f32, along: f32) -> f32 {{
var w = 0.0;
if (attends(x)) {{ w = f32_exp(x - top) * (dw - along) * {}; }}
return w;
}}",
                n.scale
            ),
        };
        s
    }

    /// Statements that make `{sums}0` to `{sums}3`, for each column of the block the products with its four rows.
    fn product(&self, [row, column]: [usize; 2], sums: &str, rows: &str) -> String {
        let (tile, size) = (TILES[self.tile], self.size_of(row));
        let (ra, rb, right) = (tile.down + 1, tile.across + 1, tile.right());
        let (r, c) = (super::NAMES[row], super::NAMES[column]);
        let apart = tile.invocations() / DEPTH;
        let (mut fetch, mut store) = (String::new(), String::new());
        for i in 0..tile.down / apart {
            let _ = writeln!(fetch, "l{i} = quad_{r}({r}_head, row + r0 + {}u, next + p0, {rows});", i * apart);
            let _ = writeln!(store, "staged[p0 * {ra}u + r0 + {}u] = l{i};", i * apart);
        }
        for i in 0..tile.across / apart {
            let _ = writeln!(fetch, "m{i} = quad_{c}({c}_head, column + r0 + {}u, next + p0, end);", i * apart);
            let _ = writeln!(store, "staged[{right}u + p0 * {rb}u + r0 + {}u] = m{i};", i * apart);
        }
        let terms = if size.is_multiple_of(DEPTH) { format!("{DEPTH}u") } else { format!("min({DEPTH}u, {size}u + {DEPTH}u - next)") };
        let zero: String = (0..4).map(|j| format!("{sums}{j} = vec4<f32>(); ")).collect();
        let add: String = LANES.iter().enumerate().map(|(j, lane)| format!("{sums}{j} += l * m.{lane}; ")).collect();
        format!(
            "{zero}
next = 0u;
{fetch}while (next < {size}u) {{
workgroupBarrier();
{store}workgroupBarrier();
next += {DEPTH}u;
if (next < {size}u) {{
{fetch}}}
let terms = {terms};
for (var p = 0u; p < terms; p++) {{
let l = staged[p * {ra}u + ty];
let m = staged[{right}u + p * {rb}u + tx];
{add}
}}
}}
"
        )
    }

    /// Statements that add the products of weights and rows of the added operand to the results `c{row}_{quad}`, and those that read the
    /// first chunk for them.
    fn addition(&self) -> [String; 2] {
        let (tile, width, name) = (TILES[self.tile], self.operands.width(), super::NAMES[self.added()]);
        let (ra, chunk, quads, threads) = (tile.down + 1, tile.chunk(width), tile.quads(width), tile.invocations());
        let wide = quads * tile.across;
        let (mut fetch, mut store, mut add) = (String::new(), String::new(), String::new());
        for i in 0..chunk * wide / threads {
            let q = format!("(lane + {}u)", i * threads);
            let _ = writeln!(fetch, "v{i} = wide_{name}({name}_head, column + next + {q} / {wide}u, {q} % {wide}u, end);");
            let _ = writeln!(store, "staged[lane + {}u] = v{i};", i * threads);
        }
        for j in 0..quads {
            let _ = write!(add, "let u{j} = staged[k * {wide}u + tx + {}u]; ", j * tile.across);
            for (r, lane) in LANES.iter().enumerate() {
                let _ = write!(add, "c{r}_{j} += w.{lane} * u{j}; ");
            }
            add.push('\n');
        }
        let add = format!(
            "let some = min({columns}u, end - column);
while (next < some) {{
workgroupBarrier();
{store}workgroupBarrier();
let from_ = next;
next += {chunk}u;
if (next < some) {{
{fetch}}}
for (var k = 0u; k < {chunk}u; k++) {{
let w = weights[(from_ + k) * {ra}u + ty];
{add}}}
}}
",
            columns = tile.columns(),
        );
        [format!("next = 0u;\n{fetch}"), add]
    }

    /// Statements that exchange the quadruple `mine` among the invocations of the same rows, in the memory of chunks, and combine them all.
    fn exchange(&self, mine: &str, combine: &str) -> String {
        let AttentionTileSize { down, across } = TILES[self.tile];
        let ra = down + 1;
        format!(
            "workgroupBarrier();
staged[tx * {ra}u + ty] = {mine};
workgroupBarrier();
{mine} = staged[ty];
for (var t = 1u; t < {across}u; t++) {{
let other = staged[t * {ra}u + ty];
{mine} = {combine};
}}
"
        )
    }

    /// Statements that turn the scores of a block into its weights (or slopes), in workgroup memory. They are loops over the columns of the
    /// block and not unrolled, because the exponential is long and some compilers are slow.
    fn weigh(&self) -> String {
        let (a, tile) = (&self.operands, TILES[self.tile]);
        let [i, j] = if a.result.by_key() { ["c", "r"] } else { ["r", "c"] };
        let each = format!(
            "for (var t = 0u; t < 4u; t++) {{\nlet c = column + tx + t * {across}u; let place = (tx + t * {across}u) * {ra}u + ty;\n",
            across = tile.across,
            ra = tile.down + 1
        );
        let pick = |of: &str| {
            format!(
                "var {of} = {of}0; if (t == 1u) {{ {of} = {of}1; }} if (t == 2u) {{ {of} = {of}2; }} if (t == 3u) {{ {of} = {of}3; }}\n"
            )
        };
        let mut s = format!("{each}{}", pick("x"));
        for (r, lane) in LANES.iter().enumerate() {
            let _ = writeln!(s, "{{ let r = row + ty + {}u; x.{lane} = score(x.{lane}, b, h, {i}, {j}); }}", r * tile.down);
        }
        let four = |of: &dyn Fn(&str) -> String| LANES.map(of).join(", ");
        if a.result == AttentionResult::Forward {
            s = format!("var high = top;\n{s}weights[place] = x;\nhigh = select(high, x, x > high);\n}}\n");
            s += &self.exchange("high", "select(high, other, other > high)");
            s.push_str("if (any(high > top)) {\n");
            for (r, lane) in LANES.iter().enumerate() {
                let _ = write!(s, "if (high.{lane} > top.{lane}) {{ let less = f32_exp(top.{lane} - high.{lane}); total.{lane} *= less; ");
                for j in 0..tile.quads(a.width()) {
                    let _ = write!(s, "c{r}_{j} *= less; ");
                }
                s.push_str("}\n");
            }
            let w = four(&|lane| format!("weight(x.{lane}, top.{lane})"));
            let _ = write!(
                s,
                "top = high;\n}}\n{each}let x = weights[place];\nlet w = vec4<f32>({w});\nweights[place] = w;\ntotal += w;\n}}\n"
            );
            return s;
        }
        // By key the logarithms belong to columns, else `top` and `along` have those of the rows.
        if a.result.by_key() {
            s.push_str("var top = vec4<f32>(); var along = top;\nif (c < end) {\ntop = vec4<f32>(lse_at(lse_row(b, h, c), 0u));\n");
            if self.second().is_some() {
                s.push_str("along = vec4<f32>(along_at(along_row(b, h, c), 0u));\n");
            }
            s.push_str("}\n");
        }
        let w = match self.second() {
            None => four(&|lane| format!("weight(x.{lane}, top.{lane})")),
            Some(_) => {
                s += &pick("y");
                four(&|lane| format!("slope(x.{lane}, top.{lane}, y.{lane}, along.{lane})"))
            }
        };
        let _ = writeln!(s, "weights[place] = vec4<f32>({w});\n}}");
        s
    }
}

impl WordKernel for AttentionTile {
    const KIND: &'static str = "attention_tile";

    fn body(&self, p: &mut ParamNames) -> String {
        let (a, tile) = (&self.operands, TILES[self.tile]);
        let names = a.names(p);
        let (by_key, width, t) = (a.result.by_key(), a.width(), value(a.real));
        let AttentionNames { count, heads, kv_heads, l, s, zero, to, to_lse, .. } = &names;
        let (rows, columns) = if by_key { (s, l) } else { (l, s) };
        let quads = tile.quads(width);
        let mut text = self.functions(&names);
        let _ = write!(
            text,
            "var<workgroup> staged: array<vec4<{t}>, {}>;\nvar<workgroup> weights: array<vec4<{t}>, {}>;\n",
            tile.staged(),
            tile.weights()
        );
        // Causal queries have more keys the later they are: the longest tiles start first.
        let order = if a.causal && !by_key { "tiles - 1u - group % tiles" } else { "group % tiles" };
        let mut body = format!(
            "unknown = {zero};
if (group >= {count}) {{ return; }}
let tiles = ({rows} + {last}u) / {of}u;
let row = ({order}) * {of}u;
let tx = lane % {across}u; let ty = lane / {across}u;
let p0 = lane % {DEPTH}u; let r0 = lane / {DEPTH}u;
var next = 0u;
",
            of = tile.rows(),
            last = tile.rows() - 1,
            across = tile.across,
        );
        body += &if by_key {
            format!("let kh = (group / tiles) % {kv_heads}; let b = group / tiles / {kv_heads};\n")
        } else {
            format!("let h = (group / tiles) % {heads}; let b = group / tiles / {heads}; let kh = h / ({heads} / {kv_heads});\n")
        };
        let [end, first] = match (a.causal, by_key) {
            (true, false) => [format!("min({s}, row + {}u)", tile.rows()), "0u".to_owned()],
            (true, true) => [columns.clone(), "row".to_owned()],
            (false, _) => [columns.clone(), "0u".to_owned()],
        };
        let _ = writeln!(body, "let end = {end};");
        // Where the heads of operands begin; those of columns by key are another for each head of queries.
        let (mut of_rows, mut of_columns) = (String::new(), String::new());
        for [row, column] in [Some(self.scored()), self.second()].into_iter().flatten() {
            for (operand, into) in [(row, &mut of_rows), (column, &mut of_columns)] {
                let (name, h) = (super::NAMES[operand], if operand == K || operand == V { "kh" } else { "h" });
                let _ = writeln!(into, "let {name}_head = {name}_row(b, {h}, 0u);");
            }
        }
        let name = super::NAMES[self.added()];
        if !of_columns.contains(&format!("let {name}_head")) {
            let h = if self.added() == V { "kh" } else { "h" };
            let _ = writeln!(of_columns, "let {name}_head = {name}_row(b, {h}, 0u);");
        }
        body += &of_rows;
        for (k, prefix) in [tile.down, tile.across].into_iter().zip(["l", "m"]) {
            for i in 0..k * DEPTH / tile.invocations() {
                let _ = writeln!(body, "var {prefix}{i} = vec4<{t}>();");
            }
        }
        for i in 0..tile.chunk(width) * quads * tile.across / tile.invocations() {
            let _ = writeln!(body, "var v{i} = vec4<{t}>();");
        }
        for i in 0..4 {
            let _ = writeln!(body, "var x{i} = vec4<{t}>();");
            if self.second().is_some() {
                let _ = writeln!(body, "var y{i} = vec4<{t}>();");
            }
            for j in 0..quads {
                let _ = writeln!(body, "var c{i}_{j} = vec4<{t}>();");
            }
        }
        match a.result {
            AttentionResult::Forward => {
                let _ = writeln!(body, "var top = vec4<{t}>({}); var total = vec4<{t}>();", a.lowest());
            }
            AttentionResult::QueryGradient => {
                let _ = writeln!(body, "var top = vec4<{t}>(); var along = vec4<{t}>();");
                for (r, lane) in LANES.iter().enumerate() {
                    let _ = writeln!(
                        body,
                        "{{ let i = row + ty + {}u; if (i < {l}) {{ top.{lane} = lse_at(lse_row(b, h, i), 0u); along.{lane} = \
                         along_at(along_row(b, h, i), 0u); }} }}",
                        r * tile.down
                    );
                }
            }
            _ => {}
        }
        if by_key {
            let _ = writeln!(body, "for (var h = kh * ({heads} / {kv_heads}); h < (kh + 1u) * ({heads} / {kv_heads}); h++) {{");
        }
        let second = self.second().map_or(String::new(), |s| self.product(s, "y", rows));
        let [fetch, add] = self.addition();
        let _ = write!(
            body,
            "{of_columns}for (var column = {first}; column < end; column += {}u) {{\n{}{second}{fetch}{}{add}}}\n",
            tile.columns(),
            self.product(self.scored(), "x", rows),
            self.weigh()
        );
        if by_key {
            body.push_str("}\n");
        }
        if a.result == AttentionResult::Forward {
            body += &self.exchange("total", "total + other");
            let _ = writeln!(body, "let safe = select(total, vec4<{t}>(1.0), total == vec4<{t}>());");
        }
        let index = if by_key { "j" } else { "i" };
        for (r, lane) in LANES.iter().enumerate() {
            let _ = writeln!(body, "{{ let {index} = row + ty + {}u;\nif ({index} < {rows}) {{", r * tile.down);
            if let (AttentionResult::Forward, Some(slot)) = (a.result, a.lse) {
                let at = format!("{to_lse} + (b * {l} + i) * {heads} + h");
                let put = store_real(a.real, slot, &at, &format!("select(top.{lane} + f32_log(safe.{lane}), 0.0, total.{lane} == 0.0)"));
                let _ = writeln!(body, "if (tx == 0u) {{ {put} }}");
            }
            let _ = writeln!(body, "let at = {to} + {} * {width}u;", a.row_of_result(&names));
            let by = if a.result == AttentionResult::Forward { format!(" / safe.{lane}") } else { String::new() };
            for j in 0..quads {
                for (c, of) in LANES.iter().enumerate() {
                    let place = j * tile.across + c * quads * tile.across;
                    let put = store_real(a.real, a.to, &format!("at + tx + {place}u"), &format!("c{r}_{j}.{of}{by}"));
                    let _ = writeln!(body, "if (tx + {place}u < {width}u) {{ {put} }}");
                }
            }
            body.push_str("} }\n");
        }
        text + &groups(tile.invocations(), &body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_what_every_adapter_offers() {
        for t in TILES {
            let threads = t.invocations();
            assert!((t.staged() + t.weights()) * 16 <= 16384 && threads <= 256, "{t:?}");
            // Whole rounds of loads, and room for what a group exchanges.
            assert!(threads.is_multiple_of(DEPTH) && [t.down, t.across].iter().all(|q| (q * DEPTH).is_multiple_of(threads)), "{t:?}");
            assert!(t.across * (t.down + 1) <= t.staged(), "{t:?}");
            for width in 1..=MOST {
                let (chunk, wide) = (t.chunk(width), t.quads(width) * t.across);
                assert!(chunk * wide <= t.staged() && wide * 4 >= width, "{t:?} {width}");
                assert!(t.columns().is_multiple_of(chunk) && (chunk * wide).is_multiple_of(threads), "{t:?} {width}");
            }
        }
    }

    #[test]
    fn shapes_choose_the_form() {
        let of = |e, all, rows, columns| choose(DType::F32, [e, 64], all, rows, columns);
        assert_eq!([of(64, 8, 512, 512), of(64, 8, 4096, 4096), of(128, 32, 1, 2048)], [Some(0), Some(1), Some(0)]);
        assert_eq!([of(64, 8, 31, 32), of(64, 8, 4096, 8), of(129, 8, 512, 512), of(0, 8, 512, 512)], [None; 4]);
        assert_eq!(choose(DType::F64, [64, 64], 8, 512, 512), None);
    }
}
