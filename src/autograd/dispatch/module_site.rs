//! Call sites that also say in which module of a model the call was made. Made only while memory is recorded with modules.

use crate::array::lock_order::TableLock;
use crate::autograd::dispatch::call_site::Site;
use rustc_hash::FxHashMap;
use std::cell::Cell;

/// Set in numbers that index `SITES`.
pub(super) const IS_IN_MODULE: u32 = 1 << 30;

#[derive(Default)]
struct ModuleSites {
    names: Vec<String>,
    numbers: FxHashMap<String, u32>,
    sites: Vec<(Site, u32)>,
    ids: FxHashMap<(Site, u32), u32>,
}

static SITES: TableLock<Option<ModuleSites>> = TableLock::new(None);

thread_local! {
    /// The number of the module whose forward runs on this thread; 0 if none does.
    static MODULE: Cell<u32> = const { Cell::new(0) };
}

/// The number of a module's name.
pub fn number_of(name: &str) -> u32 {
    let mut table = SITES.lock();
    let table = table.get_or_insert_default();
    if let Some(number) = table.numbers.get(name) {
        return *number;
    }
    table.names.push(name.into());
    let number = table.names.len() as u32;
    table.numbers.insert(name.into(), number);
    number
}

/// Makes the module with this number the one that runs on this thread (0: none), and returns the one before.
pub fn enter(number: u32) -> u32 {
    MODULE.replace(number)
}

/// `site`, in the module that runs.
pub(super) fn here(site: Site) -> Site {
    let module = MODULE.get();
    if module == 0 {
        return site;
    }
    let mut table = SITES.lock();
    let table = table.get_or_insert_default();
    let next = table.sites.len() as u32 | IS_IN_MODULE;
    let id = *table.ids.entry((site, module)).or_insert(next);
    if id == next {
        table.sites.push((site, module));
    }
    Site(id)
}

fn entry(site: Site) -> Option<(Site, u32)> {
    if site.0 & (IS_IN_MODULE | super::call_site::IS_DERIVED) != IS_IN_MODULE {
        return None;
    }
    SITES.lock().as_ref()?.sites.get((site.0 & !IS_IN_MODULE) as usize).copied()
}

/// The call site alone.
pub(super) fn without_module(site: Site) -> Site {
    entry(site).map_or(site, |(site, _)| site)
}

/// The name of the module.
pub(super) fn name_of(site: Site) -> Option<String> {
    let (_, module) = entry(site)?;
    SITES.lock().as_ref()?.names.get(module.checked_sub(1)? as usize).cloned()
}
