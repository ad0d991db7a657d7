//! Families that have several algorithms: the form of their lists, and all names.
//!
//! A family's list is an enum, made by `algorithms!`: one name for each algorithm, in the order in which they are tried. An algorithm's `plan`
//! looks at sizes and strides alone and says why it does not take a call, or gives what its run needs: a plan is the only way to a run, so check
//! and use cannot part. The last one takes what is left.

use super::{conv, matmul, pool};
use crate::error::Result;
use crate::host::kernel_names;

/// Why an algorithm does not take a call, as the end of a sentence.
pub(super) type Why = &'static str;

/// How an algorithm is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// If it is the fastest one.
    ForSpeed,
    /// By name (`RGRAD_KERNEL`, tests): it takes all that it can compute.
    ByName,
}

impl Asked {
    /// A condition without which the algorithm is not the fastest one.
    #[inline(always)]
    pub fn gains(self, is_faster: bool, why: Why) -> std::result::Result<(), Why> {
        if is_faster || self == Asked::ByName { Ok(()) } else { Err(why) }
    }
}

/// A condition without which the algorithm cannot compute it.
#[inline(always)]
pub(super) fn needs(is_so: bool, why: Why) -> std::result::Result<(), Why> {
    if is_so { Ok(()) } else { Err(why) }
}

/// The names of all algorithms, family by family.
pub fn names() -> Vec<&'static str> {
    let mut all: Vec<&'static str> = Vec::new();
    for name in LISTS.iter().copied().flatten() {
        // A name may stand in the lists of several passes.
        if !all.contains(name) {
            all.push(name);
        }
    }
    all
}

const LISTS: &[&[&str]] = &[
    conv::algorithms::ImagePlan::NAMES,
    conv::algorithms::WeightPlan::NAMES,
    matmul::algorithms::FloatPlan::NAMES,
    &[matmul::algorithms::PLAIN],
    pool::algorithms::PoolPlan::NAMES,
];

/// Settles which algorithms `RGRAD_KERNEL` asks for.
///
/// # Errors
/// It has a name that no list has.
pub fn choose() -> Result<()> {
    kernel_names::choose(&names())
}

/// As `choose`, for programs that have not called it.
///
/// # Panics
/// With its error.
#[cold]
pub(super) fn settle() {
    if kernel_names::is_settled() {
        return;
    }
    choose().unwrap_or_else(|e| panic!("{}", e.message()));
}

/// The list of a family: an enum of plans. Each entry is a variant with what its plan holds, the name, and the function that plans.
macro_rules! algorithms {
    (
        $(#[$meta:meta])*
        $vis:vis enum $List:ident[$($life:lifetime)?] for $Call:ty where [$($bounds:tt)*] {
            $($(#[$doc:meta])* $Name:ident($Plan:ty) = $name:literal, $plan:expr;)+
        }
    ) => {
        $(#[$meta])*
        $vis enum $List$(<$life>)? {
            $($(#[$doc])* $Name($Plan),)+
        }

        impl$(<$life>)? $List$(<$life>)? {
            /// In the order in which they are tried.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            pub fn name(&self) -> &'static str {
                match self {
                    $($List::$Name(..) => $name),+
                }
            }

            /// The first algorithm from number `from` on that takes the call.
            #[inline(always)]
            fn first<$($bounds)*>(call: &$($life)? $Call, from: usize) -> Option<Self> {
                let mut _number = 0;
                $(
                    if from <= _number
                        && let Ok(plan) = $plan(call, $crate::backend::cpu::algorithms::Asked::ForSpeed)
                    {
                        return Some($List::$Name(plan));
                    }
                    _number += 1;
                )+
                None
            }

            /// The plan of the algorithm with this name.
            #[allow(dead_code, reason = "not every family needs each of these")]
            pub fn named<$($bounds)*>(call: &$($life)? $Call, name: &str) -> Result<Self, $crate::backend::cpu::algorithms::Why> {
                match name {
                    $($name => $plan(call, $crate::backend::cpu::algorithms::Asked::ByName).map($List::$Name),)+
                    _ => Err("another family has it, or none"),
                }
            }

            /// What computes this call: one that is asked for by name and takes it, or else the first that does.
            #[allow(dead_code, reason = "not every family needs each of these")]
            #[inline(always)]
            pub fn of<$($bounds)*>(call: &$($life)? $Call) -> Option<Self> {
                if $crate::host::kernel_names::is_quiet() { Self::first(call, 0) } else { Self::asked(call) }
            }

            #[cold]
            #[inline(never)]
            fn asked<$($bounds)*>(call: &$($life)? $Call) -> Option<Self> {
                $crate::backend::cpu::algorithms::settle();
                $crate::host::kernel_names::asked().find_map(|name| Self::named(call, name).ok()).or_else(|| Self::first(call, 0))
            }

            /// As `of`, to run it at once: whoever watches is told.
            #[allow(dead_code, reason = "not every family needs each of these")]
            #[inline(always)]
            pub fn to_run<$($bounds)*>(call: &$($life)? $Call) -> Option<Self> {
                if $crate::host::kernel_names::is_quiet() { Self::first(call, 0) } else { Self::asked_to_run(call) }
            }

            #[allow(dead_code, reason = "not every family needs each of these")]
            #[cold]
            #[inline(never)]
            fn asked_to_run<$($bounds)*>(call: &$($life)? $Call) -> Option<Self> {
                let plan = Self::asked(call);
                if let Some(plan) = &plan {
                    $crate::host::kernel_names::ran(plan.name());
                }
                plan
            }

            /// The next one in order after this one, which has given up.
            #[allow(dead_code, reason = "not every family needs each of these")]
            fn after<$($bounds)*>(&self, call: &$($life)? $Call) -> Option<Self> {
                let at = Self::NAMES.iter().position(|name| *name == self.name());
                Self::first(call, at.map_or(0, |at| at + 1))
            }
        }
    };
}
pub(super) use algorithms;

/// Tells whoever watches this thread that the algorithm runs.
#[inline(always)]
pub(super) fn runs(name: &'static str) {
    if !kernel_names::is_quiet() {
        kernel_names::ran(name);
    }
}
