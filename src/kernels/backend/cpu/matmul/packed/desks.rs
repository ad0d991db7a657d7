//! Memory for what tasks pack, one part for each that may run at a time: what a thread has packed is in its caches, and no other thread's.

use crate::backend::cpu::blocks::scratch;
use crate::backend::cpu::memory::alloc::Buffer;
use crate::backend::cpu::threads::SharedPointer;
use crate::backend::lock_order::Table;
use crate::error::Result;

/// The columns that a desk holds: the group, and the first step of the depth.
pub(super) type Packed = (usize, usize);

pub(super) struct Desks<T> {
    _memory: Buffer,
    start: SharedPointer<*mut T>,
    /// Numbers of a desk, and of its columns, which come first.
    sizes: [usize; 2],
    free: Table<Vec<Desk>>,
}

#[derive(Debug)]
pub(super) struct Desk {
    at: usize,
    pub holds: Option<Packed>,
}

impl<T> Desks<T> {
    /// `count` desks with room for so many numbers in columns, and in rows.
    pub fn new(count: usize, columns: usize, rows: usize) -> Result<Self> {
        let size = columns + rows;
        let memory = scratch::<T>(count.saturating_mul(size))?;
        let start = SharedPointer::new(memory.as_ptr().cast::<T>());
        let free = Table::new((0..count).map(|i| Desk { at: i * size, holds: None }).collect());
        Ok(Desks { _memory: memory, start, sizes: [size, columns], free })
    }

    /// A desk that holds these columns, if one is free, or else another one. Waits if more tasks run than there are desks.
    pub fn take(&self, columns: Packed) -> Desk {
        loop {
            let mut free = self.free.lock();
            if !free.is_empty() {
                let at = free.iter().position(|d| d.holds == Some(columns)).unwrap_or(free.len() - 1);
                return free.swap_remove(at);
            }
            drop(free);
            std::thread::yield_now();
        }
    }

    pub fn put_back(&self, desk: Desk) {
        self.free.lock().push(desk);
    }

    /// Its memory for columns, and for rows.
    pub fn room(&self, desk: &Desk) -> [*mut T; 2] {
        let start = self.start.at(desk.at);
        [start, start.wrapping_add(self.sizes[1])]
    }
}
