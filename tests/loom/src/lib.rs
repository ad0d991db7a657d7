//! The files of the crate that have atomics of their own, compiled with those of loom.
#![cfg(loom)]
#![allow(dead_code, unused_imports, clippy::undocumented_unsafe_blocks)]

#[path = "../../../src/autograd/tensor/handle.rs"]
mod handle;
#[path = "../../../src/autograd/tensor/lock.rs"]
mod lock;

/// What the locks ask of the rest of the crate, which a model does not need.
mod array {
    pub mod lock_order {
        #[derive(Debug)]
        pub struct HeldLock;
        pub enum LockMode {
            Exclusive,
            Shared,
            Tried,
        }
        pub enum Rank {
            Tensor,
            Node,
        }
        pub fn enter(_: Rank, _: LockMode) -> HeldLock {
            HeldLock
        }
    }
}

#[cfg(test)]
mod handles;
#[cfg(test)]
mod locks;
