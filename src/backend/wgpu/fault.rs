//! Indices that a shader finds out of range: it reports one fault with a ticket, and whoever waits for the device next raises it.

use super::host;
use crate::error::{Error, Result};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// Words of the status buffer: the ticket (0: no fault), the index (low, high), the dimension, its size.
pub(super) const WORDS: usize = 5;

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

#[derive(Debug, Default)]
struct Known {
    numbers: FxHashMap<(&'static str, u32), u32>,
    calls: Vec<(&'static str, u32)>,
}

/// The operations and call sites behind tickets. One number for each pair: there are as many as the program has such lines.
#[derive(Debug, Default)]
pub(super) struct Tickets(Mutex<Known>);

impl Tickets {
    /// The ticket of an operation at the line that is running now; never 0.
    pub(super) fn number(&self, op: &'static str) -> u32 {
        let call = (op, host::site());
        let mut known = self.0.lock();
        if let Some(n) = known.numbers.get(&call) {
            return *n;
        }
        known.calls.push(call);
        let n = known.calls.len() as u32;
        known.numbers.insert(call, n);
        n
    }

    /// The error that the words of the status buffer tell of.
    pub(super) fn check(&self, words: &[u32]) -> Result<()> {
        let [ticket, low, high, dim, size] = words else {
            return Err(Error::runtime(format!("wgpu: the status has {} words, expected {WORDS}", words.len())));
        };
        if *ticket == 0 {
            return Ok(());
        }
        let index = (u64::from(*high) << 32 | u64::from(*low)) as i64;
        let call = self.0.lock().calls.get(*ticket as usize - 1).copied();
        let (op, site) = call.unwrap_or(("an operation", 0));
        let e = Error::index(format!("index {index} is out of bounds for dimension {dim} with size {size}"));
        let where_ = host::called_at(site).map_or(String::new(), |s| format!(", {s}"));
        Err(e.note(format!("found by {op} on wgpu{where_}; its results are not valid")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn a_fault_is_an_index_error_that_names_the_operation() {
        let t = Tickets::default();
        let gather = t.number("gather");
        assert_ne!(gather, 0);
        assert_eq!(t.number("gather"), gather);
        assert_ne!(t.number("index"), gather);
        assert!(t.check(&[0, 1, 2, 3, 4]).is_ok());
        let e = t.check(&[gather, u32::MAX - 6, u32::MAX, 1, 5]).unwrap_err();
        assert_eq!(e.kind(), Kind::Index);
        assert_eq!(e.message(), "index -7 is out of bounds for dimension 1 with size 5");
        assert!(e.notes()[0].contains("gather"));
    }
}
