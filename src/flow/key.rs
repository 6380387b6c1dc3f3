//! Flow identity: innermost 5-tuple, virtual network and interface, the same for both directions.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use crate::wire::{Frame, Ip, Layers, Protocol};

/// One end of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    pub ip: Ip,
    /// 0 where the protocol has no ports.
    pub port: u16,
}

/// What tells flows apart. `low` and `high` are the two ends in a fixed order, so both directions have one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    pub low: Endpoint,
    pub high: Endpoint,
    pub ip_protocol: u8,
    pub vni: Option<u32>,
    pub interface: u32,
}

impl FlowKey {
    /// The key of a frame's flow, and whether the frame goes from `high` to `low`. `None` for frames without IP.
    pub fn of(frame: &Frame, interface: u32) -> Option<(Self, bool)> {
        if !frame.layers.has(Layers::IP) {
            return None;
        }
        let src = Endpoint { ip: frame.src_ip, port: frame.src_port };
        let dst = Endpoint { ip: frame.dst_ip, port: frame.dst_port };
        let is_reversed = src > dst;
        let (low, high) = if is_reversed { (dst, src) } else { (src, dst) };
        let vni = frame.layers.has(Layers::VNI).then_some(frame.vni);
        Some((Self { low, high, ip_protocol: frame.ip_protocol, vni, interface }, is_reversed))
    }
}

/// Hashes frames so that both directions of a flow, seen on any interface and in any tunnel, fall on one number. The seed
/// differs from run to run: nobody can craft a capture whose flows all collide.
#[derive(Clone, Debug)]
pub(crate) struct FlowHasher {
    seed: u64,
}

impl FlowHasher {
    pub fn new() -> Self {
        Self { seed: RandomState::new().hash_one(0_u64) | 1 }
    }

    /// TCP and UDP by the two endpoints and the protocol. RoCE, whose 5-tuples never mirror, and everything without ports by
    /// the two addresses, where fragments whose ports nobody knows and ICMP fall as well.
    pub fn hash(&self, frame: &Frame) -> u64 {
        if !frame.layers.has(Layers::IP) {
            return 0;
        }
        let by_port = frame.layers.has(Layers::PORTS) && frame.protocol != Protocol::RoceV2;
        let end = |ip: &Ip, port: u16| {
            let (a, b) = ip.words();
            let port = if by_port { u64::from(port) << 48 | 1 } else { 0 };
            self.mix(self.mix(a) ^ b.rotate_left(17) ^ port)
        };
        let both = end(&frame.src_ip, frame.src_port).wrapping_add(end(&frame.dst_ip, frame.dst_port));
        self.mix(both ^ if by_port { u64::from(frame.ip_protocol) } else { 0 })
    }

    /// Identifies a packet wherever it is captured: by flow and direction, IP identification, fragment offset, transport
    /// checksum, length, and two numbers of its transport (sequence and acknowledgement). TTL, MAC addresses, tunnel and
    /// interface do not count: they differ between copies.
    pub fn packet(&self, frame: &Frame, checksum: u16, numbers: (u32, u32)) -> u64 {
        let (a, b) = frame.src_ip.words();
        let ports = u64::from(frame.src_port) << 16 | u64::from(frame.dst_port);
        let way = self.mix(frame.flow_hash ^ a ^ b.rotate_left(7) ^ ports.rotate_left(31));
        let header = u64::from(frame.ip_id) << 32 | u64::from(checksum) << 16 | u64::from(frame.fragment_offset);
        let content = u64::from(numbers.0) << 32 | u64::from(numbers.1);
        // One after the other: identification and sequence number often grow in step, and two hashes of words that differ
        // alike, taken together, may not differ at all.
        let hash = self.mix(self.mix(way ^ header).rotate_left(23) ^ content);
        self.mix(hash.rotate_left(23) ^ u64::from(frame.ip_bytes))
    }

    /// A hash that depends on one word more.
    pub fn with(&self, hash: u64, word: u64) -> u64 {
        self.mix(hash ^ self.mix(word).rotate_left(23))
    }

    fn mix(&self, word: u64) -> u64 {
        let product = u128::from(word ^ self.seed) * 0x9e37_79b9_7f4a_7c15;
        (product as u64) ^ (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_whose_numbers_grow_in_step_are_told_apart() {
        let frame = |number: u32| Frame {
            layers: Layers(Layers::IP.0 | Layers::PORTS.0),
            src_ip: Ip::v4([10, 77, 0, 2]),
            dst_ip: Ip::v4([10, 77, 0, 1]),
            ip_id: number,
            ip_bytes: 1_068,
            ..Frame::default()
        };
        for seed in 0..2_000_u64 {
            let hasher = FlowHasher { seed: seed.wrapping_mul(0xd134_2543_de82_ef95) | 1 };
            let hash = |number| hasher.packet(&frame(number), 0, (12_119_118 + number, 0x1400_000e));
            let mut hashes: Vec<_> = (25_570..25_634).map(hash).collect();
            hashes.sort_unstable();
            hashes.dedup();
            assert_eq!(hashes.len(), 64, "seed {seed}");
        }
    }
}
