//! The fast path of pointwise operations for few floats of one type and layout: what `pointwise::run` does for them, without its checks.

use super::kernels::{self, KernelFn, LANES, MAX_INPUTS, MAX_OPERANDS};
use crate::backend::cpu::pointwise::{Func, Part, specialise};
use crate::layout::{DType, Scalar};
use crate::rows::{Kind, MAX_PARAMS, OUTPUT};
use crate::simd::instruction_set;
use std::mem::MaybeUninit;

/// Python numbers in place of operands.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Numbers {
    /// Bit `i`: operand `i` is a number.
    which: u8,
    values: [f64; MAX_OPERANDS + 1],
}

impl Numbers {
    pub const NONE: Numbers = Numbers { which: 0, values: [0.0; MAX_OPERANDS + 1] };
    /// In the place of an operand: the cotangent, of a derivative.
    pub const COTANGENT: usize = MAX_OPERANDS;

    #[inline]
    pub fn at(operand: usize, value: f64) -> Numbers {
        let mut numbers = Numbers::NONE;
        numbers.set(operand, value);
        numbers
    }

    #[inline]
    pub fn set(&mut self, operand: usize, value: f64) {
        self.which |= 1 << operand;
        self.values[operand] = value;
    }

    #[inline]
    pub fn has(&self, operand: usize) -> bool {
        self.which >> operand & 1 == 1
    }

    #[inline]
    pub fn get(&self, operand: usize) -> Option<f64> {
        self.has(operand).then(|| self.values[operand])
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.which == 0
    }
}

/// Bytes of a whole block of the widest elements.
const BLOCK: usize = LANES * 8;

#[repr(align(64))]
struct ElementBlock(MaybeUninit<[u8; BLOCK]>);

/// A number is repeated in a buffer of at most this many blocks, which is used again for the rest.
const ROOM: usize = 8;

#[repr(align(64))]
struct RepeatedNumber(MaybeUninit<[u8; ROOM * BLOCK]>);

/// A row, or its derivative, on dense memory of one floating type.
#[derive(Clone, Copy)]
pub struct SmallKernel {
    kernel: KernelFn,
    /// Bit `k`: input `k`, as `Func` counts them, is read.
    reads: u32,
    /// The last input, as `Func` counts them, which the kernel takes in its last slot: the output in a derivative.
    last: usize,
    size: usize,
    /// Bytes of an element of the result.
    out_size: usize,
    inputs: usize,
    /// The number of the input that is the first operand.
    first: usize,
    /// Whether it may compute what lies behind the elements. The time that special functions take depends on their arguments.
    pads: bool,
}

impl SmallKernel {
    /// None for what needs `pointwise::run`: other types, masks.
    #[inline]
    pub fn of(func: Func, dtype: DType, params: &[Scalar; MAX_PARAMS]) -> Option<SmallKernel> {
        let info = func.row.info();
        if !dtype.is_float() || dtype.is_half() || info.masks {
            return None;
        }
        let (func, _) = specialise(func, params);
        let out_size = func.out_dtype(dtype).size();
        let info = func.row.info();
        let (kernel, reads, last) = match func.part {
            Part::Forward => (kernels::forward_kernel(func.row, dtype, instruction_set())?, (1 << info.arity()) - 1, usize::MAX),
            Part::Vjp(i) => {
                let saves = info.operands[i as usize].saves?;
                let output = (saves & OUTPUT != 0) as u32;
                let reads = 1 | ((saves & !OUTPUT) as u32) << 1 | output << (info.arity() + 1);
                (kernels::vjp_kernel(func.row, i as usize, dtype, instruction_set())?, reads, info.arity() + 1)
            }
        };
        Some(SmallKernel {
            kernel,
            reads,
            last,
            size: dtype.size(),
            out_size,
            inputs: func.inputs(),
            first: usize::from(func.part != Part::Forward),
            pads: info.kind != Kind::Special,
        })
    }

    /// Whether it may be run with `padded`.
    #[inline]
    pub fn pads(&self) -> bool {
        self.pads
    }

    /// How many inputs there are, as `Func` counts them.
    #[inline]
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Whether input `k`, as `Func` counts them, is read.
    #[inline]
    pub fn reads(&self, k: usize) -> bool {
        self.reads >> k & 1 == 1
    }

    /// The slot of the kernel for input `k`.
    #[inline]
    pub fn place(&self, k: usize) -> usize {
        if k == self.last { 1 + MAX_OPERANDS } else { k }
    }

    /// Computes `n` elements. `padded`: all operands have room for a whole number of blocks, initialised in the inputs; what the output
    /// holds behind its `n` elements is then arbitrary.
    ///
    /// # Safety
    /// Every input that is read and the output hold `n` elements (whole blocks, if `padded`), dense and aligned. The output overlaps no
    /// input, unless it is exactly that input.
    #[inline]
    pub unsafe fn run(&self, n: usize, padded: bool, out: *mut u8, ins: &[*const u8; MAX_INPUTS], params: &[Scalar; MAX_PARAMS]) {
        let (blocks, rest) = (n / LANES, n % LANES);
        // SAFETY: the caller's.
        unsafe {
            if rest == 0 || padded {
                return (self.kernel)(n.div_ceil(LANES), out, ins, params);
            }
            if blocks > 0 {
                (self.kernel)(blocks, out, ins, params);
            }
            self.partial(blocks * LANES, rest, out, ins, params);
        }
    }

    /// As `run`, with numbers in place of some operands; the pointers of these operands are not used.
    ///
    /// # Safety
    /// As for `run`, but for operands that are numbers.
    pub unsafe fn run_with(
        &self,
        n: usize,
        padded: bool,
        out: *mut u8,
        ins: &[*const u8; MAX_INPUTS],
        numbers: &Numbers,
        params: &[Scalar; MAX_PARAMS],
    ) {
        let mut repeated = [const { RepeatedNumber(MaybeUninit::uninit()) }; MAX_OPERANDS + 1];
        let mut at = *ins;
        let mut steps = [LANES * self.size; MAX_INPUTS];
        let whole = n.div_ceil(LANES).min(ROOM);
        for (i, buffer) in repeated.iter_mut().enumerate() {
            let k = if i == Numbers::COTANGENT { 0 } else { i + self.first };
            if numbers.has(i) && self.reads(k) {
                let buffer = buffer.0.as_mut_ptr() as *mut u8;
                // SAFETY: the buffer has room for `ROOM` blocks of the widest elements.
                unsafe { repeat(numbers.values[i], buffer, whole * LANES, self.size) };
                at[self.place(k)] = buffer;
                steps[self.place(k)] = 0;
            }
        }
        let mut done = 0;
        while done < n {
            let now = (n - done).min(ROOM * LANES);
            // SAFETY: the caller's; a number is repeated for as many elements as are computed at once.
            unsafe {
                self.run(now, padded, out.add(done * self.out_size), &at, params);
                for (at, step) in at.iter_mut().zip(steps) {
                    if !at.is_null() && done + now < n {
                        *at = at.add(step * ROOM);
                    }
                }
            }
            done += now;
        }
    }

    /// The `n < LANES` elements from `start` on, through buffers.
    ///
    /// # Safety
    /// As for `run`, not padded.
    #[inline(never)]
    unsafe fn partial(&self, start: usize, n: usize, out: *mut u8, ins: &[*const u8; MAX_INPUTS], params: &[Scalar; MAX_PARAMS]) {
        let mut buffers = [const { ElementBlock(MaybeUninit::zeroed()) }; MAX_INPUTS];
        let mut result = ElementBlock(MaybeUninit::uninit());
        let mut at = *ins;
        // SAFETY: the caller's; a buffer holds a block of the widest elements, and all of it is initialised.
        unsafe {
            for k in 0..MAX_INPUTS {
                if !ins[k].is_null() {
                    let buffer = buffers[k].0.as_mut_ptr() as *mut u8;
                    copy_few(ins[k].add(start * self.size), buffer, n, self.size);
                    at[k] = buffer;
                }
            }
            let buffer = result.0.as_mut_ptr() as *mut u8;
            (self.kernel)(1, buffer, &at, params);
            copy_few(buffer, out.add(start * self.out_size), n, self.out_size);
        }
    }
}

/// Writes `n` times the same float.
///
/// # Safety
/// `dst` has room for `n` elements of 4 or 8 bytes, aligned.
#[inline]
unsafe fn repeat(value: f64, dst: *mut u8, n: usize, size: usize) {
    // SAFETY: the caller's.
    unsafe {
        if size == 4 {
            std::slice::from_raw_parts_mut(dst as *mut MaybeUninit<f32>, n).fill(MaybeUninit::new(value as f32));
        } else {
            std::slice::from_raw_parts_mut(dst as *mut MaybeUninit<f64>, n).fill(MaybeUninit::new(value));
        }
    }
}

/// Copies `n` floats or truth values: a handful, for which a call of `memcpy` costs more than the copying.
///
/// # Safety
/// Both hold `n` elements of 4, 8 or 1 bytes, aligned, and do not overlap.
#[inline]
unsafe fn copy_few(src: *const u8, dst: *mut u8, n: usize, size: usize) {
    // SAFETY: the caller's.
    unsafe {
        if size == 4 {
            for i in 0..n {
                (dst as *mut u32).add(i).write((src as *const u32).add(i).read());
            }
        } else if size == 1 {
            for i in 0..n {
                dst.add(i).write(src.add(i).read());
            }
        } else {
            for i in 0..n {
                (dst as *mut u64).add(i).write((src as *const u64).add(i).read());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::pointwise::{StridedOperand, run};
    use crate::rows::RowId;

    #[test]
    fn gives_the_same_bits_as_the_long_way() {
        let values = |k: usize| (0..48).map(|i| 0.1 + 0.017 * (i * (k + 2)) as f64).collect::<Vec<f64>>();
        let data: Vec<Vec<f64>> = (0..MAX_INPUTS).map(values).collect();
        let params = [Scalar::Float(0.5), Scalar::Float(1.5), Scalar::Float(2.0)];
        let mut compared = 0;
        for &row in RowId::ALL {
            let info = row.info();
            let parts = std::iter::once(Part::Forward).chain((0..info.arity()).map(|i| Part::Vjp(i as u8)));
            for func in parts.map(|part| Func { row, part }) {
                let Some(direct) = SmallKernel::of(func, DType::F64, &params) else { continue };
                for n in [1, 3, 16, 20, 33] {
                    let mut ins = [std::ptr::null(); MAX_INPUTS];
                    let mut operands = Vec::new();
                    for k in 0..func.inputs() {
                        let ptr = if direct.reads(k) { data[k].as_ptr().cast::<u8>() } else { std::ptr::null() };
                        ins[direct.place(k)] = ptr;
                        operands.push(StridedOperand { ptr, strides: &[1], dtype: DType::F64 });
                    }
                    let (mut short, mut long, mut wide) = ([0f64; 48], [0f64; 48], [0f64; 48]);
                    // SAFETY: 48 elements, three whole blocks, everywhere.
                    unsafe {
                        direct.run(n, false, short.as_mut_ptr().cast(), &ins, &params);
                        direct.run(n, true, wide.as_mut_ptr().cast(), &ins, &params);
                        let count = info.params.len();
                        run(func, DType::F64, &[n], long.as_mut_ptr().cast(), &[1], &operands, &params[..count]).unwrap();
                    }
                    let bytes = |v: &[f64]| v.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>();
                    let (short, long, wide) = (bytes(&short), bytes(&long), bytes(&wide));
                    let n = n * direct.out_size;
                    assert_eq!(short[..n], long[..n], "{} {:?} {n}", info.name, func.part);
                    assert_eq!(wide[..n], long[..n], "{} {:?} {n}", info.name, func.part);
                    assert!(short[n..].iter().all(|x| *x == 0), "{} wrote past its end", info.name);
                    compared += 1;
                }
            }
        }
        assert!(compared > 200, "{compared}");
    }

    #[test]
    fn numbers_give_the_same_bits_as_the_long_way() {
        let data: Vec<f64> = (0..304).map(|i| 0.1 + 0.017 * i as f64).collect();
        let params = [Scalar::Float(0.5), Scalar::Float(1.5), Scalar::Float(2.0)];
        let number = 0.7;
        for row in [RowId::Mul, RowId::Rsub, RowId::Div, RowId::Pow, RowId::AddScaled, RowId::Lerp, RowId::Lt, RowId::Ne] {
            let info = row.info();
            let parts = std::iter::once(Part::Forward).chain((0..info.arity()).map(|i| Part::Vjp(i as u8)));
            for func in parts.map(|part| Func { row, part }) {
                let Some(direct) = SmallKernel::of(func, DType::F64, &params) else { continue };
                let cotangent = (func.part != Part::Forward).then_some(Numbers::COTANGENT);
                let places = (0..info.arity()).chain(cotangent);
                for (n, at) in [1, 3, 16, 20, 128, 130, 300].into_iter().flat_map(|n| places.clone().map(move |at| (n, at))) {
                    let mut ins = [std::ptr::null(); MAX_INPUTS];
                    let mut operands = Vec::new();
                    for k in 0..func.inputs() {
                        let is_number = k == if at == Numbers::COTANGENT { 0 } else { at + usize::from(func.part != Part::Forward) };
                        let ptr = if is_number { (&raw const number).cast() } else { data.as_ptr().cast::<u8>() };
                        ins[direct.place(k)] = if is_number { std::ptr::null() } else { ptr };
                        operands.push(StridedOperand { ptr, strides: if is_number { &[0] } else { &[1] }, dtype: DType::F64 });
                    }
                    let (mut short, mut long) = ([0f64; 304], [0f64; 304]);
                    // SAFETY: 304 elements, whole blocks, everywhere but in the place of the number.
                    unsafe {
                        direct.run_with(n, false, short.as_mut_ptr().cast(), &ins, &Numbers::at(at, number), &params);
                        let count = info.params.len();
                        run(func, DType::F64, &[n], long.as_mut_ptr().cast(), &[1], &operands, &params[..count]).unwrap();
                    }
                    let bits = |v: &[f64]| v.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
                    assert_eq!(bits(&short), bits(&long), "{} {:?} {n} {at}", info.name, func.part);
                }
            }
        }
    }
}
