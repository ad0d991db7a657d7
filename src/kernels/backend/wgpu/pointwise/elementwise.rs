//! Elementwise kernels: operands of any strides, one or several outputs of any strides, and a body of expressions.

use crate::backend::wgpu::common::strided;
use crate::backend::wgpu::common::strided::{GROUP, Params, StridedWalk, check, param};
use crate::backend::wgpu::device::errors::Cause;
use crate::backend::wgpu::wgsl::expr::Formula;
use crate::backend::wgpu::{Bindings, BufferView, Dispatch, Key, PointwiseInput, elem, wgsl};
use crate::error::Result;
use crate::layout::{DType, Number, Scalar};
use smallvec::SmallVec;
use std::fmt::Write;

/// The most operands of one row, the output not counted.
pub(crate) const MAX_INPUTS: usize = 5;
const N: usize = MAX_INPUTS + 1;

/// A kernel to run. `kind` and `code` identify the body; types and layouts of the operands are added to the key.
pub(crate) struct Elementwise<'a> {
    pub op: &'static str,
    pub kind: &'static str,
    pub code: &'a [u32],
    /// Inputs, with the dtype to which each is converted for the body.
    pub ins: SmallVec<[(PointwiseInput<'a>, DType); MAX_INPUTS]>,
    /// Numbers, with the dtype to which each is converted for the body.
    pub numbers: SmallVec<[(Scalar, DType); 4]>,
    /// The integer input in memory whose zeros are faults. It follows from `kind`, `code` and the layouts of the operands.
    pub divisor: Option<usize>,
    /// Generates the body from expressions for the inputs and the numbers: a value for each output.
    pub body: &'a dyn Fn(&[String], &[String]) -> Formula,
}

/// How a kernel addresses the elements of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperandAccess {
    /// Not read.
    Unread,
    /// It is a parameter.
    Number,
    /// One element for all.
    Single,
    /// Contiguous in the order of the kernel.
    Linear,
    Strided,
}

impl OperandAccess {
    fn in_memory(self) -> bool {
        !matches!(self, OperandAccess::Unread | OperandAccess::Number)
    }
}

/// The properties of an operand that the source of the shader depends on.
#[derive(Debug, Clone, Copy)]
struct OperandPlace {
    access: OperandAccess,
    slot: u32,
    dtype: DType,
}

impl OperandPlace {
    fn word(self) -> u32 {
        const { assert!(DType::COUNT <= 16, "a dtype has four bits of a key") }
        self.access as u32 | (self.dtype as u32) << 4 | self.slot << 8
    }
}

/// The properties of a kernel that its source depends on besides the body.
struct ElementwisePlan {
    /// The outputs first.
    places: SmallVec<[OperandPlace; N]>,
    outs: usize,
    wants: SmallVec<[DType; MAX_INPUTS]>,
    numbers: SmallVec<[DType; 4]>,
    divisor: Option<usize>,
    /// Dimensions of the strided operands; 0 if there are none.
    rank: usize,
    writes: u32,
    /// The outputs are packed and contiguous: an invocation computes the two elements of a word.
    pairs: bool,
}

/// The parameter words before the operands' offsets: the number of elements, and the zero that is opaque to the compiler.
const HEAD: usize = 2;

impl ElementwisePlan {
    fn strided(&self) -> impl Iterator<Item = usize> {
        self.places.iter().enumerate().filter(|(_, p)| p.access == OperandAccess::Strided).map(|(k, _)| k)
    }

    /// The statements that compute the outputs of element `i`, whose words begin at `head`.
    fn text(&self, head: usize, body: &dyn Fn(&[String], &[String]) -> Formula) -> ElementText {
        let (mut vars, mut loads) = (String::new(), String::new());
        // Offsets: one word for each operand in memory, two for each number; then two for each number of the body.
        let mut at = head;
        let mut inputs: Vec<String> = Vec::new();
        let mut targets: Vec<String> = Vec::new();
        for (k, place) in self.places.iter().enumerate() {
            let index = match place.access {
                OperandAccess::Unread => String::new(),
                OperandAccess::Number => {
                    at += 2;
                    elem::from_words(place.dtype, &param(at - 2), &param(at - 1))
                }
                access => {
                    at += 1;
                    let offset = param(at - 1);
                    match access {
                        OperandAccess::Single => offset,
                        OperandAccess::Linear => format!("{offset} + i"),
                        _ => {
                            let _ = writeln!(vars, "var o{k} = {offset};");
                            format!("o{k}")
                        }
                    }
                }
            };
            let buffer = format!("b{}", place.slot);
            if k < self.outs {
                targets.push(index);
                continue;
            }
            let want = self.wants[k - self.outs];
            inputs.push(match place.access {
                // Any value will do.
                OperandAccess::Unread => elem::zero(want).to_owned(),
                OperandAccess::Number => index,
                _ => {
                    let loaded = format!("x{k}");
                    let _ = writeln!(loads, "let {loaded} = {};", elem::load(place.dtype, &buffer, &index));
                    elem::convert(place.dtype, want, &loaded)
                }
            });
        }
        let mut numbers: Vec<String> = Vec::new();
        for dtype in &self.numbers {
            numbers.push(elem::from_words(*dtype, &param(at), &param(at + 1)));
            at += 2;
        }
        let mut refusal = String::new();
        if let Some(k) = self.divisor {
            let truth = elem::convert(self.wants[k], DType::Bool, &inputs[k]);
            let _ = writeln!(refusal, "if (({truth}) == 0u) {{ fault({}, 0u, 0u, 0u, 0u); }}", param(at));
            at += 1;
        }
        let strided: Vec<usize> = self.strided().collect();
        let mut text = vars;
        if self.rank > 0 {
            let names: Vec<String> = strided.iter().map(|k| format!("o{k}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            text.push_str(&strided::wgsl(self.rank as u32, at, "i", &names));
        }
        text.push_str(&loads);
        text.push_str(&refusal);
        let Formula { lets, values } = body(&inputs, &numbers);
        text.push_str(&lets);
        ElementText { text, values, targets, end: at + self.rank * (1 + strided.len()) }
    }

    /// The buffers that are bound, with the types in which they are.
    fn declared(&self) -> Vec<(u32, &'static str)> {
        self.places.iter().filter(|p| p.access.in_memory()).map(|p| (p.slot, elem::storage(p.dtype))).collect()
    }

    fn source(&self, body: &dyn Fn(&[String], &[String]) -> Formula) -> String {
        let ElementText { mut text, values, targets, end } = self.text(HEAD, body);
        if self.pairs {
            return self.paired(&text, &values, end);
        }
        for (k, (value, dtype)) in values.iter().enumerate() {
            let (out, result) = (self.places[k], format!("result{k}"));
            // A name, because a conversion may use its operand twice.
            let _ = writeln!(text, "let {result} = {value};");
            let stored = elem::convert(*dtype, out.dtype, &result);
            let _ = writeln!(text, "{}", elem::store(out.dtype, &format!("b{}", out.slot), &targets[k], &stored));
        }
        let declared = self.declared();
        let status = match self.divisor {
            Some(_) => strided::status(&declared),
            None => String::new(),
        };
        let shader = format!(
            "{}{status}{}let i = group * {GROUP}u + lid;\nif i >= {} {{ return; }}\nunknown = {};\n{text}\n}}\n",
            strided::header(&declared, self.writes, end),
            strided::entry(),
            param(0),
            param(1),
        );
        wgsl::with_library(&shader)
    }
}

impl ElementwisePlan {
    /// As `source`, for outputs of which an invocation owns whole words.
    fn paired(&self, text: &str, values: &[(String, DType)], end: usize) -> String {
        let (mut words, mut adds, mut stores) = (String::new(), String::new(), String::new());
        for (k, (value, dtype)) in values.iter().enumerate() {
            let slot = self.places[k].slot;
            let stored = elem::convert(*dtype, DType::F32, &format!("result{k}"));
            let _ = writeln!(words, "var word{k} = 0u;");
            let _ = writeln!(adds, "let result{k} = {value};\nword{k} |= b{slot}_bits({stored}) << (half << 4u);");
            let _ = writeln!(stores, "b{slot}_word(({} >> 1u) + w, word{k}, have);", param(HEAD + k));
        }
        let declared = self.declared();
        let shader = format!(
            "{}{}let w = group * {GROUP}u + lid;\nlet first = {} & 1u;\nunknown = {};\nvar have = 0u;\n{words}\
             for (var half = 0u; half < 2u; half += 1u) {{\nlet i = 2u * w + half - first;\nif i >= {} {{ continue; }}\n\
             {text}\n{adds}have |= 1u << half;\n}}\n{stores}}}\n",
            strided::header(&declared, self.writes, end),
            strided::entry(),
            param(HEAD),
            param(1),
            param(0),
        );
        wgsl::with_library(&shader)
    }
}

/// The WGSL for one element.
struct ElementText {
    text: String,
    /// Expressions of the outputs.
    values: SmallVec<[(String, DType); 1]>,
    /// Where they go.
    targets: Vec<String>,
    /// The end of the parameter words that are read.
    end: usize,
}

/// Computes every element of `out`.
pub(crate) fn run(out: BufferView<'_>, work: &Elementwise<'_>) -> Result<()> {
    run_all::<N>(&[out], work)
}

/// Computes every element of several outputs of one shape. `N` is no less than the number of all operands.
pub(crate) fn run_all<const N: usize>(outs: &[BufferView<'_>], work: &Elementwise<'_>) -> Result<()> {
    let first = outs[0];
    let numel: usize = first.shape.iter().product();
    if numel == 0 {
        return Ok(());
    }
    let mut params = Params::new();
    params.extend([numel as u32, 0]);
    let operands =
        Operands { outs, ins: &work.ins, numbers: &work.numbers, divisor: work.divisor, shape: first.shape, order: first.strides };
    let (plan, words);
    // Declared last, because it must be dropped first: it borrows from the others.
    let mut bindings = Bindings::new();
    (plan, words) = operands.prepared::<N>(work.op, work.code, &mut params, &mut bindings)?;
    let invocations = if plan.pairs { (numel + first.offset % 2).div_ceil(2) } else { numel };
    first.buffer.context().dispatch(Dispatch {
        op: work.op,
        key: Key::new(work.kind, words),
        source: &|| plan.source(work.body),
        bindings,
        params: &params,
        groups: invocations.div_ceil(GROUP),
        checked: work.divisor.is_some(),
    })
}

/// The operands of a kernel over `shape`, whose elements are numbered in the order of the strides `order`.
#[derive(Clone, Copy)]
pub(crate) struct Operands<'w, 'a> {
    pub outs: &'w [BufferView<'a>],
    pub ins: &'w [(PointwiseInput<'a>, DType)],
    pub numbers: &'w [(Scalar, DType)],
    pub divisor: Option<usize>,
    pub shape: &'w [usize],
    pub order: &'w [isize],
}

impl<'a> Operands<'_, 'a> {
    /// Binds the operands and appends their parameters; returns the plan of the kernel, and the words of its key.
    fn prepared<const N: usize>(
        &self,
        op: &'static str,
        code: &[u32],
        params: &mut Params,
        bindings: &mut Bindings<'a>,
    ) -> Result<(ElementwisePlan, SmallVec<[u32; 8]>)> {
        let Operands { outs, ins, numbers, divisor, shape, order } = *self;
        let count = outs.len();
        debug_assert!(1.max(count) + ins.len() <= N);
        // The strides of the order first, then those of the inputs; outputs all have the first one's shape, and strides of their own.
        let mut strides: [&[isize]; N] = [&[]; N];
        strides[0] = order;
        for (k, out) in outs.iter().enumerate() {
            check(op, out)?;
            strides[k] = out.strides;
        }
        let inputs = 1.max(count);
        for (k, (input, _)) in ins.iter().enumerate() {
            if let PointwiseInput::View(v) = input {
                check(op, v)?;
                strides[inputs + k] = v.strides;
            }
        }
        let of = |k: usize, d: usize| strides[k].get(d).copied().unwrap_or(0);
        let walk = StridedWalk::<N>::unordered(shape.iter().enumerate().map(|(d, n)| (*n, std::array::from_fn(|k| of(k, d)))));
        let access = |k: usize| {
            let mut next = 1;
            let (mut single, mut linear) = (true, true);
            for (size, s) in walk.dims().iter().rev() {
                single &= s[k] == 0;
                linear &= s[k] == next;
                next *= *size as isize;
            }
            if single {
                OperandAccess::Single
            } else if linear {
                OperandAccess::Linear
            } else {
                OperandAccess::Strided
            }
        };

        let mut plan = ElementwisePlan {
            places: SmallVec::new(),
            outs: count,
            wants: SmallVec::new(),
            numbers: SmallVec::new(),
            divisor,
            rank: 0,
            writes: 0,
            pairs: false,
        };
        for (k, out) in outs.iter().enumerate() {
            params.push(out.offset as u32);
            plan.places.push(OperandPlace { access: access(k), slot: bindings.write(out.buffer), dtype: out.dtype });
        }
        for (k, (input, want)) in ins.iter().enumerate() {
            plan.wants.push(*want);
            plan.places.push(match input {
                PointwiseInput::Unread => OperandPlace { access: OperandAccess::Unread, slot: 0, dtype: *want },
                PointwiseInput::Number(v) => {
                    params.extend(elem::to_words(*v, *want));
                    OperandPlace { access: OperandAccess::Number, slot: 0, dtype: *want }
                }
                PointwiseInput::View(v) => {
                    params.push(v.offset as u32);
                    OperandPlace { access: access(inputs + k), slot: bindings.read(v.buffer), dtype: v.dtype }
                }
            });
        }
        for (v, dtype) in numbers {
            params.extend(elem::to_words(*v, *dtype));
            plan.numbers.push(*dtype);
        }
        if divisor.is_some()
            && let Some(first) = outs.first()
        {
            params.push(first.buffer.context().ticket_for(op, Cause::Division));
        }
        plan.writes = bindings.writes();
        let packed = |(out, place): (&BufferView<'_>, &OperandPlace)| {
            place.access == OperandAccess::Linear && out.buffer.is_packed() && out.offset % 2 == outs[0].offset % 2
        };
        plan.pairs = count > 0 && divisor.is_none() && outs.iter().zip(&plan.places).all(packed);
        // Places stand from the outputs on; without any, the order has the first strides.
        let at = |k: usize| k + inputs - count;
        let strided: SmallVec<[usize; N]> = plan.strided().collect();
        if !strided.is_empty() {
            plan.rank = walk.dims().len();
            for (size, s) in walk.dims() {
                params.push(*size as u32);
                params.extend(strided.iter().map(|k| s[at(*k)] as u32));
            }
        }
        let mut words: SmallVec<[u32; 8]> = SmallVec::new();
        words.extend_from_slice(code);
        words.extend([plan.writes, plan.rank as u32 | (count as u32) << 8 | u32::from(plan.pairs) << 16]);
        // Two operands in a word, with sixteen bits each.
        for pair in plan.places.chunks(2) {
            words.push(pair[0].word() | pair.get(1).map_or(0, |p| p.word() << 16));
        }
        Ok((plan, words))
    }
}

/// A kernel as a function of another shader: `load(i)` computes an element that the other shader would otherwise read from memory.
pub(crate) struct LoadFunction {
    plan: ElementwisePlan,
    /// What names it in the other shader's key.
    pub words: SmallVec<[u32; 8]>,
    /// Its words among the other shader's parameters.
    pub params: Params,
}

impl LoadFunction {
    /// Of operands without an output.
    pub fn new<'a, const N: usize>(
        op: &'static str,
        code: &[u32],
        operands: &Operands<'_, 'a>,
        bindings: &mut Bindings<'a>,
    ) -> Result<LoadFunction> {
        let mut params = Params::new();
        let (plan, words) = operands.prepared::<N>(op, code, &mut params, bindings)?;
        Ok(LoadFunction { plan, words, params })
    }

    /// The bindings, for `strided::header`.
    pub fn declared(&self) -> Vec<(u32, &'static str)> {
        self.plan.declared()
    }

    /// The function, whose parameters begin at `head`. The compiler is kept from fusing its result with later arithmetic.
    pub fn function(&self, head: usize, body: &dyn Fn(&[String], &[String]) -> Formula) -> String {
        let ElementText { text, values, .. } = self.plan.text(head, body);
        let (value, dtype) = &values[0];
        let kept = match dtype.number() {
            Number::F32 => format!("f32_keep({value})"),
            Number::F64 => format!("f64_keep({value})"),
            Number::C64 => format!("c64_keep({value})"),
            Number::Bool | Number::U8 | Number::I32 | Number::I64 | Number::C128 => value.clone(),
        };
        format!("fn load(i: u32) -> {} {{\n{text}return {kept};\n}}\n", elem::value(*dtype))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::backend::wgpu::wgsl::validate;

    /// Validates the sources of a body: with all operands dense, and with operands of any strides, numbers, and the output converted.
    pub(in crate::backend::wgpu) fn check(
        name: &str,
        out: DType,
        wants: &[DType],
        numbers: &[DType],
        divisor: Option<usize>,
        body: &dyn Fn(&[String], &[String]) -> Formula,
    ) {
        check_all(name, &[out], wants, numbers, divisor, body);
    }

    /// As `check`, for several outputs.
    pub(in crate::backend::wgpu) fn check_all(
        name: &str,
        outs: &[DType],
        wants: &[DType],
        numbers: &[DType],
        divisor: Option<usize>,
        body: &dyn Fn(&[String], &[String]) -> Formula,
    ) {
        let mut plan = ElementwisePlan {
            places: SmallVec::new(),
            outs: outs.len(),
            wants: SmallVec::from_slice(wants),
            numbers: SmallVec::from_slice(numbers),
            divisor,
            rank: 0,
            writes: (1 << outs.len()) - 1,
            pairs: false,
        };
        let dtypes = outs.iter().chain(wants);
        plan.places.extend(dtypes.enumerate().map(|(k, d)| OperandPlace { access: OperandAccess::Linear, slot: k as u32, dtype: *d }));
        validate::check(&format!("{name}, dense"), &plan.source(body));
        if outs.iter().all(|d| d.is_half()) && divisor.is_none() {
            plan.pairs = true;
            validate::check(&format!("{name}, in pairs"), &plan.source(body));
            plan.pairs = false;
        }
        plan.rank = 3;
        for (k, p) in plan.places.iter_mut().enumerate() {
            p.access = match k.checked_sub(outs.len()) {
                None => OperandAccess::Strided,
                Some(k) => {
                    [OperandAccess::Strided, OperandAccess::Number, OperandAccess::Single, OperandAccess::Unread, OperandAccess::Linear][k]
                }
            };
        }
        validate::check(&format!("{name}, strided"), &plan.source(body));
    }

    /// As `check`, with operands of another dtype than the body takes.
    pub(in crate::backend::wgpu) fn check_from(
        name: &str,
        dtype: DType,
        out: DType,
        wants: &[DType],
        body: &dyn Fn(&[String], &[String]) -> Formula,
    ) {
        let mut plan = ElementwisePlan {
            places: SmallVec::new(),
            outs: 1,
            wants: SmallVec::from_slice(wants),
            numbers: SmallVec::new(),
            divisor: None,
            rank: 0,
            writes: 1,
            pairs: false,
        };
        plan.places.push(OperandPlace { access: OperandAccess::Linear, slot: 0, dtype: out });
        plan.places.extend((0..wants.len()).map(|k| OperandPlace { access: OperandAccess::Linear, slot: 1 + k as u32, dtype }));
        validate::check(name, &plan.source(body));
    }

    #[test]
    fn operands_have_words_of_their_own() {
        let places =
            [(OperandAccess::Linear, 0, DType::F32), (OperandAccess::Strided, 1, DType::I64), (OperandAccess::Strided, 1, DType::F32)];
        let words: Vec<u32> = places.map(|(access, slot, dtype)| OperandPlace { access, slot, dtype }.word()).into();
        assert!(words.iter().all(|w| *w < 1 << 16));
        assert!(words[0] != words[1] && words[1] != words[2]);
    }
}
