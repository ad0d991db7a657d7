//! Finds the index of a node in the pass that discovers nodes.

use crate::array::lock_order::{Ordered, OrderedGuard, Rank};
use crate::autograd::graph::node::Node;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Uses marks in the nodes while no other thread discovers nodes, else a hash table.
pub(in crate::autograd) enum NodeIndex {
    Marks(OrderedGuard<'static, u64>),
    Table(FxHashMap<*const Node, u32>),
}

impl NodeIndex {
    pub fn new() -> NodeIndex {
        /// Held while nodes are marked. The value is the number of the last pass that did so.
        static MARKING: Ordered<u64, { Rank::Marks as u8 }> = Ordered::new(0);
        match MARKING.try_lock() {
            Some(mut pass) => {
                *pass += 1;
                NodeIndex::Marks(pass)
            }
            None => NodeIndex::Table(FxHashMap::default()),
        }
    }

    /// The node's index, which becomes `next` if it has none yet.
    #[inline]
    pub fn position(&mut self, node: &Arc<Node>, next: u32) -> u32 {
        match self {
            NodeIndex::Marks(pass) => {
                if node.mark.pass.load(Ordering::Relaxed) == **pass {
                    return node.mark.at.load(Ordering::Relaxed);
                }
                node.mark.pass.store(**pass, Ordering::Relaxed);
                node.mark.at.store(next, Ordering::Relaxed);
                next
            }
            NodeIndex::Table(table) => *table.entry(Arc::as_ptr(node)).or_insert(next),
        }
    }

    /// The node's index, if it has one.
    pub fn find(&self, node: &Arc<Node>) -> Option<usize> {
        match self {
            NodeIndex::Marks(pass) if node.mark.pass.load(Ordering::Relaxed) == **pass => {
                Some(node.mark.at.load(Ordering::Relaxed) as usize)
            }
            NodeIndex::Marks(_) => None,
            NodeIndex::Table(table) => table.get(&Arc::as_ptr(node)).map(|at| *at as usize),
        }
    }
}
