//! Hooks of the embedding language: call sites, and the choice of a default device.

use crate::error::Result;
pub(crate) use crate::host::language::{interrupted, unlocked};
use std::sync::OnceLock;

/// Functions of the embedding language that find and describe call sites, and that install a device.
#[derive(Debug)]
pub struct Hooks {
    /// The number of the current call site.
    pub site: fn() -> u32,
    /// "file.py:12 in f", if the number is known.
    pub describe: fn(u32) -> Option<String>,
    /// Installs the default device; the error says why there is none.
    pub install: fn() -> Result<()>,
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// Registers the hooks; the first registration stays.
pub fn register(hooks: Hooks) {
    let _ = HOOKS.set(hooks);
}

pub(crate) fn hooks() -> Option<&'static Hooks> {
    HOOKS.get()
}

/// The current call site; 0 if it is unknown.
pub(crate) fn site() -> u32 {
    HOOKS.get().map_or(0, |h| (h.site)())
}

/// " (called at file.py:12 in f)", or nothing.
pub(crate) fn called_at(site: u32) -> Option<String> {
    HOOKS.get().and_then(|h| (h.describe)(site)).map(|s| format!("called at {s}"))
}
