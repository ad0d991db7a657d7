//! Errors found by shaders (indices out of range, integer division by zero). A shader reports the first fault with a ticket, and the next
//! wait for the device raises it as an error.

use super::host;
use crate::error::{Error, Result};
use crate::host::lock_order::Table;
use rustc_hash::FxHashMap;

/// Words of the status buffer: the ticket (0: no fault), the index (low, high), the dimension, its size.
pub(crate) const WORDS: usize = 5;

/// WGSL of `fault(ticket, index_low, index_high, dim, size)` over the binding `status`: the first fault is kept.
pub const FAULT: &str = "
fn fault(ticket: u32, index_low: u32, index_high: u32, dim: u32, size: u32) {
    loop {
        let seen = atomicCompareExchangeWeak(&status[0], 0u, ticket);
        if (seen.exchanged) {
            atomicStore(&status[1], index_low);
            atomicStore(&status[2], index_high);
            atomicStore(&status[3], dim);
            atomicStore(&status[4], size);
            break;
        }
        if (seen.old_value != 0u) { break; }
    }
}
";

/// The cause of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// An index out of range; the fault contains the index, the dimension and its size.
    Index,
    /// An integer division by zero.
    Division,
}

/// An operation, its call site, and the cause of the fault that it may report.
type CheckedCall = (&'static str, u32, Cause);

#[derive(Debug, Default)]
struct KnownCalls {
    numbers: FxHashMap<CheckedCall, u32>,
    calls: Vec<CheckedCall>,
}

/// The calls that tickets stand for. Each call site gets one number, so there are as many as the program has such lines.
#[derive(Debug, Default)]
pub(crate) struct Tickets(Table<KnownCalls>);

impl Tickets {
    /// The ticket of an operation at the current call site; never 0.
    pub(crate) fn number(&self, op: &'static str, cause: Cause) -> u32 {
        let call = (op, host::site(), cause);
        let mut known = self.0.lock();
        if let Some(n) = known.numbers.get(&call) {
            return *n;
        }
        known.calls.push(call);
        let n = known.calls.len() as u32;
        known.numbers.insert(call, n);
        n
    }

    /// The error that the words of the status buffer describe.
    pub(crate) fn check(&self, words: &[u32]) -> Result<()> {
        let [ticket, low, high, dim, size] = words else {
            return Err(Error::runtime(format!("wgpu: the status has {} words, expected {WORDS}", words.len())));
        };
        if *ticket == 0 {
            return Ok(());
        }
        let index = (u64::from(*high) << 32 | u64::from(*low)) as i64;
        let call = self.0.lock().calls.get(*ticket as usize - 1).copied();
        let (op, site, cause) = call.unwrap_or(("an operation", 0, Cause::Index));
        let e = match cause {
            Cause::Index => Error::index(format!("index {index} is out of bounds for dimension {dim} with size {size}")),
            Cause::Division => division_by_zero(op),
        };
        let where_ = host::called_at(site).map_or(String::new(), |s| format!(", {s}"));
        Err(e.note(format!("found by {op} on wgpu{where_}; its results are not valid")))
    }
}

/// The error of integers divided by zero.
#[cold]
pub(crate) fn division_by_zero(op: &str) -> Error {
    Error::runtime(format!("ZeroDivisionError: {op}: integer division by zero; the divisor has zeros, mask them or divide floats"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_fault_is_an_index_error_that_names_the_operation() {
        let t = Tickets::default();
        let gather = t.number("gather", Cause::Index);
        assert_ne!(gather, 0);
        assert_eq!(t.number("gather", Cause::Index), gather);
        assert_ne!(t.number("index", Cause::Index), gather);
        assert!(t.check(&[0, 1, 2, 3, 4]).is_ok());
        let e = t.check(&[gather, u32::MAX - 6, u32::MAX, 1, 5]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Index);
        assert_eq!(e.message(), "index -7 is out of bounds for dimension 1 with size 5");
        assert!(e.notes()[0].contains("gather"));
    }

    #[test]
    fn a_zero_divisor_is_told_from_an_index() {
        let t = Tickets::default();
        assert_ne!(t.number("fmod", Cause::Division), t.number("fmod", Cause::Index));
        let e = t.check(&[t.number("fmod", Cause::Division), 0, 0, 0, 0]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Runtime);
        assert!(e.message().starts_with("ZeroDivisionError: fmod"));
    }
}
