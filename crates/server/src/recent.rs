//! Owns a small table of things that are made once and used for a while: the one that was used longest ago goes first.
//! The fleet and the line numbers of logs are kept in one each.
//! No truth: whatever goes is made anew.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Whoever makes or changes an entry holds its lock; the others wait for it.
pub(crate) struct Recent<K, V> {
    entries: Arc<Mutex<HashMap<K, Entry<V>>>>,
    most: usize,
}

struct Entry<V> {
    used: Instant,
    slot: Arc<tokio::sync::Mutex<V>>,
}

impl<K, V> Clone for Recent<K, V> {
    fn clone(&self) -> Self {
        Self { entries: Arc::clone(&self.entries), most: self.most }
    }
}

impl<K: Clone + Eq + Hash, V: Default> Recent<K, V> {
    pub(crate) fn of(most: usize) -> Self {
        Self { entries: Arc::default(), most }
    }

    pub(crate) fn slot(&self, key: &K) -> Arc<tokio::sync::Mutex<V>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.most && !entries.contains_key(key) {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| entries.remove(&oldest));
        }
        let entry = entries.entry(key.clone()).or_insert_with(|| Entry { used: Instant::now(), slot: Arc::default() });
        entry.used = Instant::now();
        Arc::clone(&entry.slot)
    }
}
