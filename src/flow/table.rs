//! The flows of one shard, and what is counted of each.

use hashbrown::HashTable;

use super::key::FlowKey;
use super::opening::Opening;

/// A flow of this shard, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowRef(pub u32);

impl FlowRef {
    /// The frame belongs to no flow (no IP, or more flows than are told apart).
    pub const NONE: Self = Self(u32::MAX);
}

/// What is counted of one flow. Index 0 of each pair is what the key's low end sent, 1 what the high end sent.
#[derive(Clone, Debug)]
pub(crate) struct FlowState {
    pub key: FlowKey,
    pub hash: u64,
    /// The virtual network of the other direction, where that is another one; see [`FlowTable::find_or_add`].
    pub other_vni: Option<u32>,
    /// Stands for the two ends of the tunnel around it, the same for both directions.
    pub tunnel_ends: u64,
    /// Number in the capture, given out in the order of first frames when a window is merged.
    pub id: u64,
    /// Place of the first frame in its window: the order in which numbers are given.
    pub first_in_window: u32,
    pub first_frame: u64,
    pub file: u16,
    pub first_time_ns: Option<i64>,
    pub last_time_ns: Option<i64>,
    pub packets: [u64; 2],
    /// On the wire.
    pub bytes: [u64; 2],
    pub payload_bytes: [u64; 2],
    /// The end that sent the first frame.
    pub first_sender: u8,
    pub protocol: &'static str,
    pub tunnel: Option<&'static str>,
    /// For TCP: what tells the next connection on the same ports from this one.
    pub opening: Opening,
    /// Wireshark's streams between these ends: a slot of the shard; `u32::MAX` for what is no TCP.
    pub stream_slot: u32,
    /// The last stream of this connection, by its index in the shard; `u32::MAX` for none.
    pub stream: u32,
}

impl FlowState {
    /// Whether frames with this key belong to this flow.
    fn holds(&self, key: &FlowKey) -> bool {
        self.key == *key
            || self.other_vni.is_some()
                && self.other_vni == key.vni
                && self.key == FlowKey { vni: self.key.vni, ..*key }
    }

    /// Whether what has been seen of this flow may be the other direction of a packet of end `sender`.
    fn is_answered_by(&self, key: &FlowKey, tunnel_ends: u64, sender: usize) -> bool {
        self.other_vni.is_none()
            && self.tunnel_ends == tunnel_ends
            && self.packets[sender] == 0
            && self.key.vni.is_some()
            && self.key == FlowKey { vni: self.key.vni, ..*key }
    }
}

/// Finds flows by key.
#[derive(Default)]
pub(crate) struct FlowTable {
    index: HashTable<u32>,
    pub flows: Vec<FlowState>,
    /// Flows from here on are new in this window and have no id yet.
    pub numbered: usize,
}

impl FlowTable {
    /// The flow under `key`; `make` builds it where it is new, unless `limit` flows are known.
    ///
    /// Some networks number the two directions of a connection apart (Cilium puts the sender's identity there, AWS the
    /// endpoint's): a packet in another virtual network than the flow seen so far belongs to it where it goes the other
    /// way, between the same two tunnel ends, and nothing went that way before.
    pub fn find_or_add(&mut self, hash: u64, key: &FlowKey, limit: usize, make: impl FnOnce() -> FlowState) -> FlowRef {
        let flows = &self.flows;
        if let Some(&at) = self.index.find(hash, |&at| flows[at as usize].holds(key)) {
            return FlowRef(at);
        }
        if key.vni.is_none() {
            return if self.flows.len() >= limit { FlowRef::NONE } else { self.add(hash, make()) };
        }
        let flow = make();
        let (ends, sender) = (flow.tunnel_ends, usize::from(flow.first_sender));
        // Of several the one that began last: where in the table each lies is another thing from run to run.
        let unanswered = self.index.iter_hash(hash).copied();
        let unanswered = unanswered.filter(|&at| flows[at as usize].is_answered_by(key, ends, sender)).max();
        if let Some(at) = unanswered {
            self.flows[at as usize].other_vni = key.vni;
            return FlowRef(at);
        }
        if self.flows.len() >= limit { FlowRef::NONE } else { self.add(hash, flow) }
    }

    /// The flow under `key`, if there is one.
    pub fn find(&self, hash: u64, key: &FlowKey) -> Option<FlowRef> {
        let at = self.index.find(hash, |&at| self.flows[at as usize].holds(key))?;
        Some(FlowRef(*at))
    }

    /// Puts a new flow under a key, replacing the one found under it so far (a new connection on the same ports).
    pub fn replace(&mut self, hash: u64, key: &FlowKey, limit: usize, flow: FlowState) -> FlowRef {
        if self.flows.len() >= limit {
            return FlowRef::NONE;
        }
        let flows = &self.flows;
        if let Ok(entry) = self.index.find_entry(hash, |&at| flows[at as usize].holds(key)) {
            entry.remove();
        }
        self.add(hash, flow)
    }

    fn add(&mut self, hash: u64, flow: FlowState) -> FlowRef {
        let at = self.flows.len() as u32;
        self.flows.push(flow);
        let flows = &self.flows;
        self.index.insert_unique(hash, at, |&at| flows[at as usize].hash);
        FlowRef(at)
    }
}
