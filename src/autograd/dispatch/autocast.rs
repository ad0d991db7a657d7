//! Autocast: inside of its context some operations run in a smaller float type, and some in float32.
//!
//! The functions of `ops` that PyTorch lists call `lower` or `widen` before they check dtypes, because their checks come before dispatch. Off,
//! that is one look at the thread's mode. All other operations take tensors as they are, and promote.
//!
//! Not here: the context (`rgrad.amp`), and which functions are listed, which says each of them.

use crate::array::Device;
use crate::autograd::dispatch::mode::{self, Watch, set_watch};
use crate::autograd::primitives;
use crate::autograd::tensor::Tensor;
use crate::error::Result;
use crate::layout::DType;
use std::cell::RefCell;

/// The switch of one kind of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutocastSetting {
    pub enabled: bool,
    /// The smaller float type.
    pub dtype: DType,
}

struct AutocastState {
    /// Of the CPU and of other devices.
    settings: [AutocastSetting; 2],
    cache_enabled: bool,
    /// How many contexts are open.
    depth: u32,
    /// Leaves, and what they were cast to: weights that are used several times are cast once, and their gradients meet there.
    cache: Vec<(Tensor, Tensor)>,
}

thread_local! {
    static STATE: RefCell<AutocastState> = const {
        let off = AutocastSetting { enabled: false, dtype: DType::BF16 };
        RefCell::new(AutocastState { settings: [off; 2], cache_enabled: true, depth: 0, cache: Vec::new() })
    };
}

fn kind(device: Device) -> usize {
    usize::from(!device.is_host())
}

/// Whether a context is open on this thread, for any device.
#[inline(always)]
pub fn is_on() -> bool {
    mode::current().watches(Watch::Autocast)
}

/// The setting of a device on this thread.
pub fn setting(device: Device) -> AutocastSetting {
    STATE.with_borrow(|s| s.settings[kind(device)])
}

pub fn set(device: Device, setting: AutocastSetting) {
    let any = STATE.with_borrow_mut(|s| {
        s.settings[kind(device)] = setting;
        s.settings.iter().any(|s| s.enabled)
    });
    set_watch(Watch::Autocast, any);
}

pub fn is_cache_enabled() -> bool {
    STATE.with_borrow(|s| s.cache_enabled)
}

pub fn set_cache_enabled(on: bool) {
    STATE.with_borrow_mut(|s| s.cache_enabled = on);
}

/// A context opens or closes. Returns how many are open.
pub fn nest(opens: bool) -> u32 {
    STATE.with_borrow_mut(|s| {
        s.depth = if opens { s.depth.saturating_add(1) } else { s.depth.saturating_sub(1) };
        s.depth
    })
}

/// Forgets cast weights.
pub fn clear_cache() {
    let old = STATE.with_borrow_mut(|s| std::mem::take(&mut s.cache));
    // Tensors are dropped while nothing is borrowed.
    drop(old);
}

/// The tensors as an operation takes them: the given ones, or others.
#[derive(Debug)]
pub struct AutocastInputs<const N: usize>(Option<[Tensor; N]>);

impl<const N: usize> AutocastInputs<N> {
    #[inline]
    pub fn of<'a>(&'a self, given: [&'a Tensor; N]) -> [&'a Tensor; N] {
        match &self.0 {
            None => given,
            Some(cast) => cast.each_ref(),
        }
    }
}

/// Inputs of an operation that runs in the smaller type.
#[inline]
pub fn lower<const N: usize>(given: [&Tensor; N]) -> Result<AutocastInputs<N>> {
    if !is_on() {
        return Ok(AutocastInputs(None));
    }
    converted(given, None)
}

/// Inputs of an operation that runs in float32.
#[inline]
pub fn widen<const N: usize>(given: [&Tensor; N]) -> Result<AutocastInputs<N>> {
    if !is_on() {
        return Ok(AutocastInputs(None));
    }
    converted(given, Some(DType::F32))
}

#[cold]
fn converted<const N: usize>(given: [&Tensor; N], to: Option<DType>) -> Result<AutocastInputs<N>> {
    let mut made = given.map(Tensor::clone);
    for t in &mut made {
        *t = one(t, to)?;
    }
    Ok(AutocastInputs(Some(made)))
}

/// A tensor as a listed operation takes it: floats but float64, if autocast is on for their device.
fn one(t: &Tensor, to: Option<DType>) -> Result<Tensor> {
    let AutocastSetting { enabled, dtype } = setting(t.device());
    let (from, to) = (t.dtype(), to.unwrap_or(dtype));
    if !enabled || !from.is_float() || from == DType::F64 || from == to {
        return Ok(t.clone());
    }
    let kept = to == dtype
        && from == DType::F32
        && t.level() == 0
        && t.requires_grad()
        && t.is_leaf()
        && mode::is_grad_enabled()
        && is_cache_enabled();
    if !kept {
        return primitives::cast(t, to);
    }
    if let Some(found) = STATE.with_borrow(|s| s.cache.iter().find(|(w, c)| w.same(t) && c.dtype() == to).map(|(_, c)| c.clone())) {
        return Ok(found);
    }
    let made = primitives::cast(t, to)?;
    STATE.with_borrow_mut(|s| s.cache.push((t.clone(), made.clone())));
    Ok(made)
}
