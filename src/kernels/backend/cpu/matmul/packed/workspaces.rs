//! Memory for what tasks pack, a part for each that may run at a time: what a thread has packed is in its caches, and no other thread's.

use crate::backend::cpu::common::blocks::scratch;
use crate::error::Result;
use crate::host::lock_order::Table;
use crate::host::memory::alloc::Buffer;
use crate::host::threads::SharedPointer;

/// Which packed columns a workspace holds: the group, and the first step of the depth.
pub(super) type Packed = (usize, usize);

pub(super) struct Workspaces<T> {
    _memory: Buffer,
    start: SharedPointer<*mut T>,
    /// Numbers of a workspace, and of its columns, which come first.
    sizes: [usize; 2],
    free: Table<Vec<Workspace>>,
}

#[derive(Debug)]
pub(super) struct Workspace {
    at: usize,
    pub holds: Option<Packed>,
}

impl<T> Workspaces<T> {
    /// `count` workspaces with room for so many numbers in columns, and in rows.
    pub fn new(count: usize, columns: usize, rows: usize) -> Result<Self> {
        let size = columns + rows;
        let memory = scratch::<T>(count.saturating_mul(size))?;
        let start = SharedPointer::new(memory.as_ptr().cast::<T>());
        let free = Table::new((0..count).map(|i| Workspace { at: i * size, holds: None }).collect());
        Ok(Workspaces { _memory: memory, start, sizes: [size, columns], free })
    }

    /// One that holds these columns, if it is free, or else the one that this thread had in the last product, or another. Waits if more tasks run
    /// than there are workspaces.
    pub fn take(&self, columns: Packed) -> Workspace {
        let usual = rayon::current_thread_index().map_or(0, |i| i + 1) * self.sizes[0];
        loop {
            let mut free = self.free.lock();
            if let Some(last) = free.len().checked_sub(1) {
                let held = free.iter().position(|d| d.holds == Some(columns));
                let at = held.or_else(|| free.iter().position(|d| d.at == usual)).unwrap_or(last);
                return free.swap_remove(at);
            }
            drop(free);
            std::thread::yield_now();
        }
    }

    pub fn put_back(&self, workspace: Workspace) {
        self.free.lock().push(workspace);
    }

    /// Its memory for columns, and for rows.
    pub fn room(&self, workspace: &Workspace) -> [*mut T; 2] {
        let start = self.start.at(workspace.at);
        [start, start.wrapping_add(self.sizes[1])]
    }
}
