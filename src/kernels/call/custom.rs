//! Kernels from outside of the crate.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements};
use super::view::View;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A kernel from outside of the crate. It reads memory and is never deferred.
///
/// # Safety
/// `run` writes every element of every output, reads and writes nothing else than the views describe, and keeps none of their pointers: what
/// comes after it relies on that.
pub unsafe trait Custom: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;

    /// Computes the outputs, which are new, on the CPU.
    ///
    /// # Errors
    /// The kernel's own errors.
    ///
    /// # Safety
    /// Operands and outputs are what the kernel expects. All views stay inside their memory.
    unsafe fn run(&self, ins: &[View<'_>], outs: &[View<'_>]) -> crate::error::Result<()>;
}

impl Hash for dyn Custom {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl Family for Arc<dyn Custom> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn elems(&self) -> Elems {
        Elems::ALL
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, _ins: &[Seen<'_>], _outs: &[Seen<'_>]) -> bool {
        true
    }

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        elements(ins, outs)
    }

    fn outputs(&self) -> usize {
        1
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        Vec::new()
    }
}
