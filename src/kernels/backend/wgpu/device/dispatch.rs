//! One dispatch: a shader named by its structure, the buffers it binds, its parameters.

pub use super::errors::FAULT;
use crate::backend::wgpu::Buffer;
use crate::backend::wgpu::wgsl::packed::Packing;
use smallvec::SmallVec;

/// The key of a shader: equal keys mean equal source and equal bindings. Sizes, strides and numbers are parameters and not part of the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The family.
    pub kind: &'static str,
    /// The properties that distinguish shaders of one family.
    pub words: SmallVec<[u32; 8]>,
    /// Set when the shader is dispatched.
    pub(crate) packing: Packing,
}

impl Key {
    pub fn new(kind: &'static str, words: SmallVec<[u32; 8]>) -> Key {
        Key { kind, words, packing: Packing::default() }
    }
}

/// The most buffers of a dispatch: layouts have a bit for each.
pub(crate) const MOST_BINDINGS: usize = 128;

/// The buffers of a dispatch. Each is bound once, even if it is used several times, because a buffer cannot be bound for reading and for
/// writing at the same time.
#[derive(Debug, Default)]
pub struct Bindings<'a> {
    pub(crate) slots: SmallVec<[(&'a Buffer, bool); 6]>,
}

impl<'a> Bindings<'a> {
    pub fn new() -> Self {
        Self::default()
    }

    fn slot(&mut self, buffer: &'a Buffer, write: bool) -> u32 {
        let at = match self.slots.iter().position(|(b, _)| b.same(buffer)) {
            Some(i) => {
                self.slots[i].1 |= write;
                i
            }
            None => {
                self.slots.push((buffer, write));
                self.slots.len() - 1
            }
        };
        at as u32
    }

    /// The binding number of a buffer that is read.
    pub fn read(&mut self, buffer: &'a Buffer) -> u32 {
        self.slot(buffer, false)
    }

    /// The binding number of a buffer that is written (and may be read).
    pub fn write(&mut self, buffer: &'a Buffer) -> u32 {
        self.slot(buffer, true)
    }

    /// Bit `i`: binding `i` is written. Part of a shader's key, because it decides `read` or `read_write`.
    pub fn writes(&self) -> u32 {
        debug_assert!(self.len() <= 32, "a shader with so many bindings has a key of its own");
        self.written() as u32
    }

    /// As `writes`, of up to `MOST_BINDINGS`.
    pub(crate) fn written(&self) -> u128 {
        self.slots.iter().enumerate().fold(0, |m, (i, (_, w))| m | u128::from(*w) << i)
    }

    /// The bindings whose elements are packed.
    pub(crate) fn packing(&self) -> Packing {
        let mut packing = Packing::default();
        for (slot, (buffer, _)) in self.slots.iter().enumerate() {
            if let Some(dtype) = buffer.dtype() {
                packing.add(slot, dtype);
            }
        }
        packing
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
}

/// Work for the device: `groups` workgroups of a shader.
///
/// The shader's entry point is `main`. Bindings are in group 0: the buffers 0..n in the order of `bindings`, then, at binding n, the
/// parameters as `var<uniform> params: array<vec4<u32>, K>` with K = ceil(params.len() / 4) (no binding if there are none), then, if
/// `checked`, at the next binding `var<storage, read_write> status: array<atomic<u32>>` (see `Context::ticket`). Workgroups are spread over
/// x and y, because a dimension has at most 65,535: a shader's linear workgroup index is `workgroup_id.x + workgroup_id.y *
/// num_workgroups.x`, and workgroups beyond `groups` must do nothing. A buffer may be longer than requested, so `arrayLength` must not be
/// used.
pub struct Dispatch<'a> {
    /// For labels and errors.
    pub op: &'static str,
    pub key: Key,
    /// Generates the WGSL; called only if no pipeline has this key.
    pub source: &'a dyn Fn() -> String,
    pub bindings: Bindings<'a>,
    pub params: &'a [u32],
    pub groups: usize,
    pub checked: bool,
}
