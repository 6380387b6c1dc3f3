//! The flows of one shard, and what is counted of each.

use hashbrown::HashTable;

use super::key::FlowKey;
use super::opening::Opening;
use crate::wire::{Protocol, TcpHeader, TunnelKind};

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
    /// Another virtual network that packets of this flow came in; see [`FlowTable::find_or_add`].
    pub other_vni: Option<u32>,
    /// Stands for the two ends of the tunnel around it, the same for both directions.
    pub tunnel_ends: u64,
    /// Number in the capture, given out in the order of first frames when a window is merged.
    pub id: u64,
    /// Numbers of its two addresses, given out with its own: see [`AddressBook`](super::AddressBook).
    pub addresses: [u32; 2],
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
    pub protocol: Protocol,
    pub tunnel: Option<TunnelKind>,
    /// For TCP: what tells the next connection on the same ports from this one.
    pub opening: Opening,
    /// Wireshark's streams between these ends: a slot of the shard; `u32::MAX` for what is no TCP.
    pub stream_slot: u32,
    /// The last stream of this connection, by its index in the shard; `u32::MAX` for none.
    pub stream: u32,
}

impl FlowState {
    /// Asks for the memory that the next packet will need: reads a little here and there.
    pub fn touch(&self) -> u64 {
        self.hash
            ^ self.packets[0]
            ^ self.payload_bytes[1]
            ^ u64::from(self.key.ip_protocol)
            ^ self.opening.touch()
            ^ u64::from(self.stream_slot)
            ^ self.first_frame
            ^ u64::from(self.last_time_ns.is_some())
    }

    /// Whether a flow lies between the same ends, outside and inside, in whatever virtual network.
    fn is_beside(&self, key: &FlowKey, tunnel_ends: u64) -> bool {
        self.key.vni.is_some() && self.tunnel_ends == tunnel_ends && self.key == FlowKey { vni: self.key.vni, ..*key }
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
    /// The flow under `key`; `make` builds it where it is new, unless `limit` flows are known. `tcp` is the packet's TCP
    /// header.
    ///
    /// Some networks number the two directions of a connection apart, and change the number while it lasts (Cilium puts the
    /// sender's identity there, AWS the endpoint's). A packet in another virtual network than a flow between the same ends,
    /// inside and outside of the tunnel, belongs to that flow where its TCP numbers go on from there; without TCP, where
    /// nothing went its way before and no other flow waits for an answer. Other tenants of the same addresses stay apart.
    pub fn find_or_add(
        &mut self,
        hash: u64,
        key: &FlowKey,
        tcp: Option<&TcpHeader>,
        limit: usize,
        make: impl FnOnce() -> FlowState,
    ) -> FlowRef {
        let flows = &self.flows;
        if let Some(&at) = self.index.find(hash, |&at| flows[at as usize].key == *key) {
            return FlowRef(at);
        }
        if key.vni.is_none() {
            return if self.flows.len() >= limit { FlowRef::NONE } else { self.add(hash, make()) };
        }
        let flow = make();
        if let Some(at) = self.find_beside(hash, key, tcp, &flow) {
            self.flows[at as usize].other_vni = key.vni;
            return FlowRef(at);
        }
        if self.flows.len() >= limit { FlowRef::NONE } else { self.add(hash, flow) }
    }

    /// The flow in another virtual network that a packet belongs to; `flow` is the one that would be made for it.
    fn find_beside(&self, hash: u64, key: &FlowKey, tcp: Option<&TcpHeader>, flow: &FlowState) -> Option<u32> {
        let sender = usize::from(flow.first_sender);
        let state = |at: u32| &self.flows[at as usize];
        let beside = self.index.iter_hash(hash).copied().filter(|&at| state(at).is_beside(key, flow.tunnel_ends));
        if let Some(tcp) = tcp {
            // Of several the one that began last: where in the table each lies is another thing from run to run.
            return beside.filter(|&at| state(at).opening.goes_on(flow.first_sender, tcp)).max();
        }
        let known = beside.clone().filter(|&at| state(at).other_vni == key.vni).max();
        let mut waiting = beside.filter(|&at| state(at).other_vni.is_none() && state(at).packets[sender] == 0);
        known.or_else(|| waiting.next().filter(|_| waiting.next().is_none()))
    }

    /// The flow under `key`, if there is one; else the last one between the same ends that has another virtual network in
    /// its other direction.
    pub fn find(&self, hash: u64, key: &FlowKey) -> Option<FlowRef> {
        let state = |at: u32| &self.flows[at as usize];
        if let Some(&at) = self.index.find(hash, |&at| state(at).key == *key) {
            return Some(FlowRef(at));
        }
        let same = |at: u32| {
            let flow = state(at);
            flow.other_vni.is_some() && flow.other_vni == key.vni && flow.is_beside(key, flow.tunnel_ends)
        };
        key.vni.and_then(|_| self.index.iter_hash(hash).copied().filter(|&at| same(at)).max()).map(FlowRef)
    }

    /// Some flow under a hash: nearly always the one that a packet with it belongs to.
    pub fn likely(&self, hash: u64) -> Option<FlowRef> {
        self.index.iter_hash(hash).next().copied().map(FlowRef)
    }

    /// Puts a new flow under a key, replacing the one found under it so far (a new connection on the same ports).
    pub fn replace(&mut self, hash: u64, key: &FlowKey, limit: usize, flow: FlowState) -> FlowRef {
        if self.flows.len() >= limit {
            return FlowRef::NONE;
        }
        let flows = &self.flows;
        if let Ok(entry) = self.index.find_entry(hash, |&at| flows[at as usize].key == *key) {
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
