//! Chooses which resource changes are kept when not all fit.
//!
//! What destroys data comes first, then what destroys, then the rest. When space runs out, attributes go before any
//! resource does; only what destroys data keeps its attributes longer. At every moment what is held is within the limits.

use crate::model::{Action, AttributeChange, ResourceChange, Shown};

const RANKS: usize = 4;
const DESTROYS_DATA: usize = 0;
const DESTROYS: usize = 1;
const KEEPS: usize = 2;
const READS: usize = 3;
const RESOURCE_BYTES: usize = 160;
const ATTRIBUTE_BYTES: usize = 80;

/// How much may be kept.
pub(crate) struct Room {
    pub(crate) resources: usize,
    pub(crate) bytes: usize,
}

pub(crate) struct Kept {
    pub(crate) resources: Vec<ResourceChange>,
    pub(crate) omitted: u64,
}

pub(crate) struct Keeper {
    room: Room,
    ranks: [Rank; RANKS],
    seen: u64,
    count: usize,
    line_bytes: usize,
    attribute_bytes: usize,
}

#[derive(Default)]
struct Rank {
    entries: Vec<Entry>,
    /// The entries that have attributes, by their index.
    full: Vec<usize>,
}

struct Entry {
    order: u64,
    change: ResourceChange,
    line_bytes: usize,
    attribute_bytes: usize,
}

impl Keeper {
    pub(crate) fn new(room: Room) -> Self {
        Self { room, ranks: Default::default(), seen: 0, count: 0, line_bytes: 0, attribute_bytes: 0 }
    }

    pub(crate) fn add(&mut self, change: ResourceChange) {
        let attribute_bytes = change.attributes.iter().map(bytes_of_attribute).sum();
        let line_bytes = bytes_of_line(&change);
        let rank = &mut self.ranks[rank_of(&change)];
        if attribute_bytes > 0 {
            rank.full.push(rank.entries.len());
        }
        rank.entries.push(Entry { order: self.seen, change, line_bytes, attribute_bytes });
        self.seen += 1;
        self.count += 1;
        self.line_bytes += line_bytes;
        self.attribute_bytes += attribute_bytes;
        self.shrink();
    }

    /// Everything kept, in the order it came.
    pub(crate) fn finish(self) -> Kept {
        let omitted = self.seen - self.count as u64;
        let mut entries: Vec<Entry> = self.ranks.into_iter().flat_map(|rank| rank.entries).collect();
        entries.sort_by_key(|entry| entry.order);
        Kept { resources: entries.into_iter().map(|entry| entry.change).collect(), omitted }
    }

    fn shrink(&mut self) {
        while self.count > self.room.resources && self.drop_resource(DESTROYS_DATA) {}
        while self.line_bytes + self.attribute_bytes > self.room.bytes {
            let dropped = self.drop_attributes(DESTROYS)
                || self.drop_resource(KEEPS)
                || self.drop_attributes(DESTROYS_DATA)
                || self.drop_resource(DESTROYS_DATA);
            if !dropped {
                return;
            }
        }
    }

    /// Takes away the attributes of the last of the least important, of this rank or a lesser one.
    fn drop_attributes(&mut self, rank: usize) -> bool {
        let Some(rank) = self.ranks[rank..].iter_mut().rev().find(|rank| !rank.full.is_empty()) else { return false };
        let Some(entry) = rank.full.pop().and_then(|at| rank.entries.get_mut(at)) else { return false };
        entry.change.attributes_omitted += entry.change.attributes.len() as u64;
        entry.change.attributes = Vec::new();
        self.attribute_bytes -= std::mem::take(&mut entry.attribute_bytes);
        true
    }

    fn drop_resource(&mut self, rank: usize) -> bool {
        let Some(rank) = self.ranks[rank..].iter_mut().rev().find(|rank| !rank.entries.is_empty()) else {
            return false;
        };
        let Some(entry) = rank.entries.pop() else { return false };
        rank.full.pop_if(|at| *at == rank.entries.len());
        self.count -= 1;
        self.line_bytes -= entry.line_bytes;
        self.attribute_bytes -= entry.attribute_bytes;
        true
    }
}

/// The smaller, the more important.
fn rank_of(change: &ResourceChange) -> usize {
    match change.action {
        _ if change.stateful => DESTROYS_DATA,
        action if action.destroys() => DESTROYS,
        Action::Read => READS,
        _ => KEEPS,
    }
}

fn bytes_of_line(change: &ResourceChange) -> usize {
    let optional = [&change.previous_address, &change.import_id, &change.reason, &change.deposed];
    let texts: usize = optional.into_iter().flatten().map(String::len).sum();
    RESOURCE_BYTES + change.address.len() + change.kind.len() + change.provider.len() + texts
}

pub(crate) fn bytes_of_attribute(attribute: &AttributeChange) -> usize {
    let bytes = |shown: &Shown| match shown {
        Shown::Value { text, .. } => text.len(),
        Shown::Absent | Shown::Sensitive | Shown::Unknown => 0,
    };
    ATTRIBUTE_BYTES + attribute.path.len() + bytes(&attribute.before) + bytes(&attribute.after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(address: &str, action: Action, stateful: bool, attributes: usize) -> ResourceChange {
        let attribute = AttributeChange {
            path: "p".to_owned(),
            before: Shown::Absent,
            after: Shown::Value { text: "v".repeat(1_000), cut_chars: 0 },
            replaces: false,
        };
        ResourceChange {
            address: address.to_owned(),
            previous_address: None,
            import_id: None,
            kind: "k".to_owned(),
            provider: "p".to_owned(),
            action,
            reason: None,
            deposed: None,
            stateful,
            attributes: vec![attribute; attributes],
            attributes_omitted: 0,
        }
    }

    fn kept(room: Room, changes: Vec<ResourceChange>) -> (Vec<(String, usize)>, u64) {
        let mut keeper = Keeper::new(room);
        changes.into_iter().for_each(|change| keeper.add(change));
        let kept = keeper.finish();
        let names = kept.resources.into_iter().map(|change| (change.address, change.attributes.len())).collect();
        (names, kept.omitted)
    }

    #[test]
    fn the_important_ones_stay() {
        let all = || {
            vec![
                change("read", Action::Read, false, 1),
                change("create", Action::Create, false, 1),
                change("destroy", Action::Destroy, false, 1),
                change("update", Action::Update, false, 1),
                change("data", Action::ReplaceDestroyFirst, true, 1),
            ]
        };
        let names = |names: &[(&str, usize)]| {
            names.iter().map(|(name, attributes)| ((*name).to_owned(), *attributes)).collect::<Vec<_>>()
        };
        let everything = [("read", 1), ("create", 1), ("destroy", 1), ("update", 1), ("data", 1)];
        let bare = [("read", 0), ("create", 0), ("destroy", 0), ("update", 0), ("data", 1)];
        for (resources, bytes, expected, omitted) in [
            (9, 1 << 20, names(&everything), 0),
            (2, 1 << 20, names(&[("destroy", 1), ("data", 1)]), 3),
            (9, 2_500, names(&bare), 0),
            (9, 400, names(&[("destroy", 0), ("data", 0)]), 3),
            (0, 1 << 20, Vec::new(), 5),
            (9, 0, Vec::new(), 5),
        ] {
            assert_eq!(kept(Room { resources, bytes }, all()), (expected, omitted), "{resources} {bytes}");
        }
    }
}
