//! Call sites: an interned number for the user's line that is running now.
//!
//! The core knows no Python; the embedding language registers how to find the current site and how to describe one.

use crate::array::fusion;
use std::cell::Cell;
use std::sync::OnceLock;

/// An interned call site; `UNKNOWN` where nobody registered a source or no user frame is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Site(pub u32);

impl Site {
    pub const UNKNOWN: Site = Site(0);

    /// "file.py:12 in f", if it is known.
    pub fn describe(self) -> Option<String> {
        if self == Site::UNKNOWN {
            return None;
        }
        SOURCE.get().and_then(|s| (s.describe)(self))
    }

    /// The description, or words that say it is not known.
    pub fn text(self) -> String {
        self.describe().unwrap_or_else(|| "an unknown line".into())
    }
}

/// How the embedding language finds and describes call sites.
#[derive(Debug)]
pub struct Source {
    pub current: fn() -> Site,
    pub describe: fn(Site) -> Option<String>,
}

static SOURCE: OnceLock<Source> = OnceLock::new();

thread_local! {
    /// While a node runs in backward, what it records inherits the node's own forward site.
    static INHERITED: Cell<Option<Site>> = const { Cell::new(None) };
}

/// Registers the source; the first registration stays.
pub fn register(source: Source) {
    let _ = SOURCE.set(source);
    fusion::register(fusion::Sites { current: || current().0, describe: |site| Site(site).text() });
}

/// The site of the operation that is being called now.
#[inline]
pub fn current() -> Site {
    if let Some(s) = INHERITED.with(Cell::get) {
        return s;
    }
    match SOURCE.get() {
        Some(s) => (s.current)(),
        None => Site::UNKNOWN,
    }
}

/// Makes `site` the current one until dropped.
#[derive(Debug)]
pub struct Inherit(Option<Site>);

impl Inherit {
    #[inline]
    pub fn new(site: Site) -> Inherit {
        Inherit(INHERITED.with(|c| c.replace(Some(site))))
    }

    /// Lets the user's own lines be seen again: around hooks and Functions that run the user's code.
    #[inline]
    pub fn suspend() -> Inherit {
        Inherit(INHERITED.with(|c| c.replace(None)))
    }
}

impl Drop for Inherit {
    fn drop(&mut self) {
        INHERITED.with(|c| c.set(self.0));
    }
}
