//! A cache with bounded growth: values that are no longer used are dropped.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// A map that, after every `many` new values, drops the values that were not used since the last time.
///
/// So it holds at most twice that number, beside the values in use; and a loop over fewer than twice that number finds all of its values.
#[derive(Debug)]
pub(crate) struct GenerationCache<K, V> {
    /// Values with the round in which they were last used.
    map: FxHashMap<K, (V, u32)>,
    round: u32,
    many: usize,
    /// Values that were added in this round.
    added: usize,
}

impl<K: Hash + Eq, V: Copy> GenerationCache<K, V> {
    pub(crate) fn new(many: usize) -> Self {
        GenerationCache { map: FxHashMap::default(), round: 0, many, added: 0 }
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<V> {
        let round = self.round;
        self.map.get_mut(key).map(|(value, used)| {
            *used = round;
            *value
        })
    }

    /// Adds a value. Values that are dropped are passed to `release`.
    pub(crate) fn insert(&mut self, key: K, value: V, mut release: impl FnMut(V)) {
        if self.added >= self.many {
            let round = self.round;
            self.map.retain(|_, (value, used)| {
                let keep = *used == round;
                if !keep {
                    release(*value);
                }
                keep
            });
            self.round = round.wrapping_add(1);
            self.added = 0;
        }
        self.added += 1;
        if let Some((old, _)) = self.map.insert(key, (value, self.round)) {
            release(old);
        }
    }

    /// Drops the values whose keys match, and passes them to `release`.
    pub(crate) fn forget(&mut self, named: impl Fn(&K) -> bool, mut release: impl FnMut(V)) {
        self.map.retain(|key, (value, _)| {
            let gone = named(key);
            if gone {
                release(*value);
            }
            !gone
        });
    }

    /// From now on.
    pub(crate) fn set_many(&mut self, many: usize) {
        self.many = many;
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_goes_when_there_are_many() {
        let (mut kept, mut gone) = (GenerationCache::new(8), Vec::new());
        for i in 0..1000 {
            assert_eq!(kept.get(&(i % 4)).is_some(), i >= 4);
            kept.insert(if i < 4 { i } else { 1000 + i }, i, |old| gone.push(old));
            assert!(kept.len() <= 4 + 2 * 8);
        }
        assert!((0..4).all(|i| kept.get(&i) == Some(i)));
        assert_eq!(gone.len() + kept.len(), 1000);
        assert!(gone.iter().all(|old| *old >= 4));
    }

    #[test]
    fn a_loop_of_less_than_twice_as_many_finds_them_again() {
        let (mut kept, mut made) = (GenerationCache::new(8), 0);
        for i in (0..10).flat_map(|_| 0..15) {
            if kept.get(&i).is_none() {
                made += 1;
                kept.insert(i, i, |_| panic!("all are in use"));
            }
        }
        assert_eq!(made, 15);
        let mut gone = 0;
        kept.forget(|i| *i < 5, |_| gone += 1);
        assert_eq!((kept.len(), gone), (10, 5));
    }
}
