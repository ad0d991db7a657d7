//! Random numbers of every distribution and dtype.

use crate::backend::contract::{Memory, Operand, View};
use crate::backend::cpu::common::operands::{DenseOperand, result, view};
use crate::backend::cpu::copy;
use crate::backend::cpu::elem::{Loops, by_narrow_float, loops};
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::backend::cpu::random::{Bits, Exponential, Normal, Uniform, fill};
use crate::call::{Distribution, Random, below};
use crate::error::Result;
use crate::host::memory::alloc::Buffer;
use crate::host::memory::raw_slice::RawSlice;
use crate::layout::DType;

/// Numbers that are drawn at a time where they are converted from wider ones.
const STEP: usize = 1 << 18;

impl CpuFamily for Random {
    const NARROW: NarrowElements = NarrowElements::Taken;

    unsafe fn compute(r: &Random, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = result(r, outs, 0)?;
        let (n, p) = (out.numel(), out.ptr());
        // Dtypes in which such numbers are seldom drawn have no loops of their own: the numbers are drawn in another one, some at a time, and
        // converted. A step is a whole number of blocks.
        let through = |dtype: DType, step: usize| {
            let drawn = Buffer::new(n.min(step) * dtype.size())?;
            for first in (0..n).step_by(step.max(1)) {
                let some = step.min(n - first);
                let part = Random { start: r.start.wrapping_add(r.distribution.blocks(first, dtype)), ..*r };
                let to = View { memory: Memory::Host(drawn.as_ptr()), offset: 0, shape: &[some], strides: &[1], dtype };
                // SAFETY: the caller's; there is room for these numbers, and dense memory is converted in the order in which it lies.
                unsafe {
                    Self::compute(&part, ins, &[Some(to)])?;
                    copy::copy(dtype, out.dtype, &[some], drawn.as_ptr(), &[1], p.add(first * out.dtype.size()), &[1]);
                }
            }
            Ok(())
        };
        macro_rules! go {
            ($T:ty, $draw:ty, $kind:expr, $f:expr) => {
                // SAFETY: the output is dense and writable for n elements of the type.
                unsafe { fill::<$draw, _, $T>(p.cast(), n, r.seed, r.start, $kind, $f) }
            };
        }
        macro_rules! hits {
            ($hit:expr) => {
                match loops(out.dtype) {
                    Some(Loops::U8 | Loops::I8) => go!(u8, f64, Uniform, |i, u| u8::from($hit(i, u))),
                    Some(Loops::F32) => go!(f32, f64, Uniform, |i, u| f32::from(u8::from($hit(i, u)))),
                    _ => return through(DType::U8, n),
                }
            };
        }
        // Half the distance of the numbers below 1 is rounded up to 1, which is outside.
        macro_rules! halves {
            ($H:ident) => {
                match r.distribution {
                    Distribution::Uniform { from, to } => {
                        let (a, w) = (from as f32, (to - from) as f32);
                        let to = $H::from_f32(to as f32).to_f32();
                        return Ok(go!($H, f32, Uniform, move |_, u: f32| {
                            let v = $H::from_f32(a + u * w);
                            if v.to_f32() < to || w == 0.0 { v } else { v.below($H::from_f32(a)) }
                        }));
                    }
                    Distribution::Normal { mean, std } => {
                        return Ok(go!($H, f32, Normal, move |_, z: f32| $H::from_f32(mean as f32 + z * std as f32)));
                    }
                    Distribution::Exponential { rate } => {
                        return Ok(go!($H, f64, Exponential, move |_, e: f64| $H::from_f32((e / rate) as f32)));
                    }
                    _ => {}
                }
            };
        }
        by_narrow_float!(out.dtype, H => halves!(H), _ => {});
        let single = out.dtype == DType::F32;
        match r.distribution {
            Distribution::Uniform { from, to } if single => {
                let (a, w) = (from as f32, (to - from) as f32);
                // Rounding may reach `to` itself, which is outside.
                let (to, below) = (to as f32, (to as f32).next_down().max(a));
                go!(f32, f32, Uniform, move |_, u: f32| {
                    let v = a + u * w;
                    if v >= to { below } else { v }
                });
            }
            Distribution::Uniform { from, to } => {
                let below = to.next_down().max(from);
                go!(f64, f64, Uniform, move |_, u: f64| {
                    let v = from + u * (to - from);
                    if v >= to { below } else { v }
                });
            }
            Distribution::Normal { mean, std } if single => go!(f32, f32, Normal, move |_, z: f32| mean as f32 + z * std as f32),
            Distribution::Normal { mean, std } => go!(f64, f64, Normal, move |_, z: f64| mean + z * std),
            Distribution::Exponential { rate } if single => go!(f32, f64, Exponential, move |_, e: f64| (e / rate) as f32),
            Distribution::Exponential { rate } => go!(f64, f64, Exponential, move |_, e: f64| e / rate),
            Distribution::Bernoulli { p: chance } => {
                let hit = move |_: usize, u: f64| u < chance;
                hits!(hit);
            }
            Distribution::BernoulliOf => {
                let chances = view(r.op, ins, 0)?;
                // SAFETY: the caller's.
                let chances = unsafe { DenseOperand::cast(&chances, DType::F64)? };
                // SAFETY: the caller's: as many probabilities as numbers.
                let chances = unsafe { RawSlice::new(chances.ptr().cast::<f64>(), n) };
                let hit = |i: usize, u: f64| u < chances.get(i).unwrap_or(0.0);
                hits!(hit);
            }
            Distribution::Integers { from, range } => {
                let at = move |_: usize, b: u64| from.wrapping_add(below(b, range) as i64);
                match loops(out.dtype) {
                    Some(Loops::I32) => go!(i32, u64, Bits, |i, b| at(i, b) as i32),
                    Some(Loops::I64) => go!(i64, u64, Bits, at),
                    _ => return through(DType::I64, STEP),
                }
            }
        }
        Ok(())
    }
}
