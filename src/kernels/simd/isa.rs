//! Instruction sets, and which one this machine has.

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU8, Ordering};

/// A type that stands for an instruction set. A number type with this parameter knows at compile time what the instance can do: whether
/// `mul_add` is one instruction or a library call.
pub trait Isa: Copy + Send + Sync + std::fmt::Debug + 'static {
    /// Whether a fused multiply-add is one instruction.
    const FMA: bool;
    /// Whether periodic functions must take arguments, and remainders quotients, of any size; if not, only what `KernelNumber` calls in range.
    const FULL_RANGE: bool = false;
    /// Whether kernels of this instance are left scalar: it does not vectorise, or no current machine runs it.
    const SCALAR: bool = Self::FULL_RANGE;
}

/// `I` with periodic functions and remainders of any size, which do not vectorise.
#[derive(Debug, Clone, Copy)]
pub struct FullRange<I>(std::marker::PhantomData<I>);

impl<I: Isa> Isa for FullRange<I> {
    const FMA: bool = I::FMA;
    const FULL_RANGE: bool = true;
}

/// What the build's target has at least.
#[derive(Debug, Clone, Copy)]
pub struct Base;
/// x86-64-v3: AVX2 and FMA.
#[derive(Debug, Clone, Copy)]
pub struct Avx2;
/// x86-64-v4: AVX-512 with F, DQ, BW and VL.
#[derive(Debug, Clone, Copy)]
pub struct Avx512;

impl Isa for Base {
    const SCALAR: bool = cfg!(target_arch = "x86_64");
    const FMA: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));
}

impl Isa for Avx2 {
    const FMA: bool = true;
}

impl Isa for Avx512 {
    const FMA: bool = true;
}

/// The instances that were compiled, in the order of the kernel table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum InstructionSet {
    Base,
    Avx2,
    Avx512,
}

impl InstructionSet {
    /// From the lowest to the highest.
    pub const ALL: [InstructionSet; 3] = [InstructionSet::Base, InstructionSet::Avx2, InstructionSet::Avx512];
    /// As many as were compiled for this architecture.
    pub const COUNT: usize = if cfg!(target_arch = "x86_64") { 3 } else { 1 };

    /// Its name in `RGRAD_ISA`.
    pub fn name(self) -> &'static str {
        match self {
            InstructionSet::Base => "base",
            InstructionSet::Avx2 => "avx2",
            InstructionSet::Avx512 => "avx512",
        }
    }
}

const UNKNOWN: u8 = u8::MAX;
static SELECTED: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The variable of the environment that asks for an instruction set.
const VARIABLE: &str = "RGRAD_ISA";

/// The instruction set that kernels run in: the best of this machine, or the one that `RGRAD_ISA` names.
///
/// # Panics
/// `RGRAD_ISA` names none, or one that this machine lacks. Programs that want an error call `choose` before anything else.
#[inline]
pub fn instruction_set() -> InstructionSet {
    match SELECTED.load(Ordering::Relaxed) {
        0 => InstructionSet::Base,
        1 => InstructionSet::Avx2,
        2 => InstructionSet::Avx512,
        _ => detect(),
    }
}

#[cold]
fn detect() -> InstructionSet {
    choose().unwrap_or_else(|e| panic!("{}", e.message()))
}

/// Settles what `instruction_set` answers.
///
/// # Errors
/// `RGRAD_ISA` names no instruction set, or one that this machine lacks.
pub fn choose() -> Result<InstructionSet> {
    let best = best();
    let isa = match std::env::var_os(VARIABLE) {
        Some(name) if !name.is_empty() => named(&name.to_string_lossy(), best)?,
        _ => best,
    };
    SELECTED.store(isa as u8, Ordering::Relaxed);
    Ok(isa)
}

/// The instruction set that `RGRAD_ISA=name` asks for, on a machine whose best one is `best`.
fn named(name: &str, best: InstructionSet) -> Result<InstructionSet> {
    let Some(asked) = InstructionSet::ALL.into_iter().find(|isa| isa.name() == name) else {
        return Err(Error::value(format!(
            "{VARIABLE}={name:?} is no instruction set: expected base, avx2 or avx512. Unset {VARIABLE} for the best one of this machine, {}",
            best.name()
        )));
    };
    if asked > best {
        let has: Vec<_> = InstructionSet::ALL.into_iter().filter(|isa| *isa <= best).map(InstructionSet::name).collect();
        return Err(Error::runtime(format!(
            "{VARIABLE}={name} asks for an instruction set that this machine lacks: expected {}. Unset {VARIABLE} for the best one of this \
             machine, {}",
            has.join(" or "),
            best.name()
        )));
    }
    Ok(asked)
}

/// The best instruction set of this machine.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub fn best() -> InstructionSet {
    let v3 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("f16c");
    let v4 = v3
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl");
    match (v3, v4) {
        (_, true) => InstructionSet::Avx512,
        (true, _) => InstructionSet::Avx2,
        _ => InstructionSet::Base,
    }
}

/// The best instruction set of this machine.
#[cfg(any(not(target_arch = "x86_64"), miri))]
pub fn best() -> InstructionSet {
    InstructionSet::Base
}

/// Calls `$f::<$cell<ISA>>` in the instance that this machine runs: `avx512::$f`, `avx2::$f`, or `$f` of the calling module.
macro_rules! dispatch {
    ($f:ident, $cell:ident, $args:tt) => {{
        #[cfg(target_arch = "x86_64")]
        {
            use $crate::simd::{Avx2, Avx512, InstructionSet, instruction_set};
            match instruction_set() {
                InstructionSet::Avx512 => avx512::$f::<$cell<Avx512>> $args,
                InstructionSet::Avx2 => avx2::$f::<$cell<Avx2>> $args,
                InstructionSet::Base => $f::<$cell<Base>> $args,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        $f::<$cell<Base>> $args
    }};
}
pub(crate) use dispatch;

/// A function that calls `$f::<T>` in the instance of this machine's instruction set.
macro_rules! instance {
    (fn $name:ident<$T:ident: $bound:path> = $f:ident($($a:ident: $t:ty),+)) => {
        fn $name<$T: $bound>($($a: $t),+) {
            #[cfg(target_arch = "x86_64")]
            {
                use $crate::simd::{InstructionSet, instruction_set};
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi1,bmi2,lzcnt")]
                fn avx512<$T: $bound>($($a: $t),+) {
                    $f($($a),+)
                }
                #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt")]
                fn avx2<$T: $bound>($($a: $t),+) {
                    $f($($a),+)
                }
                match instruction_set() {
                    // SAFETY: the features were found on this machine.
                    InstructionSet::Avx512 => unsafe { avx512($($a),+) },
                    // SAFETY: as above.
                    InstructionSet::Avx2 => unsafe { avx2($($a),+) },
                    InstructionSet::Base => $f($($a),+),
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            $f($($a),+)
        }
    };
}
pub(crate) use instance;

/// As `instance!`, of `$f::<T, I>`, which is told the instruction set `I`.
macro_rules! instance_of {
    ($(#[$doc:meta])* fn $name:ident<$T:ident: $bound:path> = $f:ident($($a:ident: $t:ty),+)) => {
        $(#[$doc])*
        pub(super) fn $name<$T: $bound>($($a: $t),+) {
            #[cfg(target_arch = "x86_64")]
            {
                use $crate::simd::{Avx2, Avx512, Base, InstructionSet, instruction_set};
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi1,bmi2,lzcnt")]
                fn avx512<$T: $bound>($($a: $t),+) {
                    $f::<$T, Avx512>($($a),+)
                }
                #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt")]
                fn avx2<$T: $bound>($($a: $t),+) {
                    $f::<$T, Avx2>($($a),+)
                }
                match instruction_set() {
                    // SAFETY: the features were found on this machine.
                    InstructionSet::Avx512 => unsafe { avx512($($a),+) },
                    // SAFETY: as above.
                    InstructionSet::Avx2 => unsafe { avx2($($a),+) },
                    InstructionSet::Base => $f::<$T, Base>($($a),+),
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            $f::<$T, $crate::simd::Base>($($a),+)
        }
    };
}
pub(crate) use instance_of;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn names_are_those_of_this_machine_or_errors() {
        for (k, isa) in InstructionSet::ALL.into_iter().enumerate() {
            for best in InstructionSet::ALL {
                let got = named(isa.name(), best);
                if isa <= best {
                    assert_eq!(got.unwrap(), isa);
                    continue;
                }
                let e = got.unwrap_err();
                assert_eq!(e.kind(), ErrorKind::Runtime);
                assert!(e.message().contains(&format!("this machine, {}", best.name())), "{}", e.message());
            }
            assert_eq!(isa as usize, k);
        }
        for name in ["AVX2", "avx", "sse", " base", "0"] {
            let e = named(name, InstructionSet::Avx2).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Value);
            assert!(e.message().contains("expected base, avx2 or avx512"), "{}", e.message());
        }
    }
}
