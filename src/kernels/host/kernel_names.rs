//! Names of kernels: those that are asked for (`RGRAD_KERNEL`), and those that run, for whoever watches a thread.
//!
//! Families that have several algorithms look here when they choose one. While nothing is asked for and nobody watches, they read one word.
//! Not here: the names themselves, which are those of the families' lists.

use crate::error::{Error, Result};
use std::cell::{Cell, RefCell};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The variable of the environment that asks for kernels.
const VARIABLE: &str = "RGRAD_KERNEL";

/// Reasons to look closer: the variable has not been read, or asks for kernels; threads that ask or are watched.
static REASONS: AtomicUsize = AtomicUsize::new(1);
static ASKED: OnceLock<Vec<&'static str>> = OnceLock::new();

thread_local! {
    static ASKED_HERE: Cell<&'static [&'static str]> = const { Cell::new(&[]) };
    static WATCHER: RefCell<Option<WatchedKernels>> = const { RefCell::new(None) };
}

/// What is told the name of each kernel that runs.
pub type KernelWatcher = fn(&'static str);

/// A reason to look closer, as long as it lives.
struct WatchedKernels(KernelWatcher);

impl Drop for WatchedKernels {
    fn drop(&mut self) {
        REASONS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether nothing is asked for, and nobody watches any thread.
#[inline(always)]
pub fn is_quiet() -> bool {
    REASONS.load(Ordering::Relaxed) == 0
}

/// Settles what `RGRAD_KERNEL` asks for; the first call counts.
///
/// # Errors
/// It has a name that is not among the known ones.
pub fn choose(known: &[&'static str]) -> Result<()> {
    if is_settled() {
        return Ok(());
    }
    let asked = match std::env::var_os(VARIABLE) {
        Some(names) if !names.is_empty() => named(&names.to_string_lossy(), known)?,
        _ => Vec::new(),
    };
    let is_quiet = asked.is_empty();
    if ASKED.set(asked).is_ok() && is_quiet {
        REASONS.fetch_sub(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Whether `choose` has been called.
pub(crate) fn is_settled() -> bool {
    ASKED.get().is_some()
}

/// The known names that `RGRAD_KERNEL=names` asks for.
fn named(names: &str, known: &[&'static str]) -> Result<Vec<&'static str>> {
    let one = |name: &str| {
        known.iter().copied().find(|k| *k == name).ok_or_else(|| {
            Error::value(format!(
                "{VARIABLE}={names:?}: {name:?} is no kernel. Expected names from this list, with commas between them: {}",
                known.join(", ")
            ))
        })
    };
    names.split(',').map(one).collect()
}

/// The kernels that this thread asks for, the first one first.
pub fn asked() -> impl Iterator<Item = &'static str> {
    let all = ASKED.get().into_iter().flatten().copied();
    ASKED_HERE.get().iter().copied().chain(all)
}

/// Runs `f`, which asks for these kernels on this thread.
pub fn asking<R>(names: &'static [&'static str], f: impl FnOnce() -> R) -> R {
    struct Before(&'static [&'static str]);
    impl Drop for Before {
        fn drop(&mut self) {
            ASKED_HERE.set(self.0);
            REASONS.fetch_sub(1, Ordering::Relaxed);
        }
    }
    REASONS.fetch_add(1, Ordering::Relaxed);
    let _before = Before(ASKED_HERE.replace(names));
    f()
}

/// Tells `watcher` the kernels that this thread runs from now on; with None, nobody.
pub fn watch(watcher: Option<KernelWatcher>) {
    let watched = watcher.map(|f| {
        REASONS.fetch_add(1, Ordering::Relaxed);
        WatchedKernels(f)
    });
    let _ = WATCHER.try_with(|w| w.replace(watched));
}

/// This thread runs a kernel. Called only where `is_quiet` is false.
pub(crate) fn ran(name: &'static str) {
    let watcher = WATCHER.try_with(|w| w.borrow().as_ref().map(|w| w.0));
    if let Ok(Some(f)) = watcher {
        f(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn names_are_known_or_errors() {
        let known = ["conv.direct", "conv.plain"];
        assert_eq!(named("conv.plain,conv.direct", &known).unwrap(), ["conv.plain", "conv.direct"]);
        for names in ["conv", "conv.plain,", "conv.plain, conv.direct", "Conv.plain", "matmul.plain"] {
            let e = named(names, &known).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Value);
            assert!(e.message().contains("is no kernel") && e.message().ends_with("conv.direct, conv.plain"), "{}", e.message());
        }
    }

    #[test]
    fn a_thread_asks_and_is_watched_for_itself() {
        thread_local!(static SEEN: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) });
        watch(Some(|name| SEEN.with_borrow_mut(|s| s.push(name))));
        asking(&["a"], || {
            assert!(!is_quiet() && asked().next() == Some("a"));
            asking(&["b"], || assert_eq!(asked().next(), Some("b")));
            assert_eq!(asked().next(), Some("a"));
            ran("a");
            std::thread::spawn(|| {
                assert_ne!(asked().next(), Some("a"));
                ran("b");
            })
            .join()
            .unwrap();
        });
        watch(None);
        ran("c");
        assert_eq!(SEEN.take(), ["a"]);
    }
}
