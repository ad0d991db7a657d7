//! A run of nodes of the embedding language (custom Functions) in a pass: its lock is taken once for all of them.

use std::sync::OnceLock;

/// Runs the work, exactly once, while this thread holds the lock of the host.
pub type Attached = fn(&mut dyn FnMut());

static ATTACHED: OnceLock<Attached> = OnceLock::new();

/// Registers the host language's hook; the first registration stays.
pub fn register(attached: Attached) {
    let _ = ATTACHED.set(attached);
}

/// Runs `f` with the lock of the host, if there is a host.
pub(in crate::autograd) fn attached<R>(f: impl FnOnce() -> R) -> R {
    let Some(attached) = ATTACHED.get() else { return f() };
    let (mut work, mut result) = (Some(f), None);
    attached(&mut || {
        if let Some(f) = work.take() {
            result = Some(f());
        }
    });
    match (result, work) {
        (Some(r), _) => r,
        // A host that has not run the work: it runs here.
        (None, Some(f)) => f(),
        (None, None) => unreachable!("work that ran has a result, or has unwound"),
    }
}
