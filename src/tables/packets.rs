//! `packets` and `tunnels`.

use super::{Symbol, TimeNs};
use crate::wire::{Ip, Mac};

table! {
    /// One row per frame. MAC addresses and VLAN are those of the outermost frame; addresses, ports and everything else from
    /// IP upwards belong to the innermost packet; `outer_*` is the outermost tunnel's own packet.
    table "packets" by columns => PacketRow / PacketBuilder {
        /// File of the capture, from 1, in the order the files were given.
        file_no: u32,
        /// Frame number in its file, from 1, as Wireshark counts.
        frame_no: u64,
        /// Capture time; null where the file gives none.
        time: Option<TimeNs>,
        /// Nanoseconds since the first frame of the capture.
        time_rel_ns: Option<i64>,
        /// Interface of the capture, from 0: see table `interfaces`.
        interface_id: u32,
        /// Whose frame it was to the capturing host: `to_us`, `broadcast`, `multicast`, `to_other`, `from_us`; only Linux cooked captures (`-i any`) tell.
        packet_direction: Option<Symbol>,
        /// Number of the device in the capturing host that the frame passed; only Linux cooked captures v2 tell. A frame that crosses a bridge or a veth pair shows once per device.
        ifindex: Option<u32>,
        /// Bytes in the file.
        captured_bytes: u32,
        /// Bytes on the wire; more than `captured_bytes` where the snap length cut the frame.
        original_bytes: u32,
        /// Source MAC address.
        src_mac: Option<Mac>,
        /// Destination MAC address; null in Linux cooked captures, which do not keep it.
        dst_mac: Option<Mac>,
        /// EtherType after any VLAN tags, of the outermost frame; null where the link layer has none.
        ethertype: Option<u16>,
        /// VLAN identifier of the outermost tag; null without a tag (a network card may have removed it).
        vlan_id: Option<u16>,
        /// Priority code point (IEEE 802.1Q) of the outermost tag, 0 to 7; null without a tag, which is not priority 0.
        vlan_pcp: Option<u8>,
        /// VLAN identifier of the second tag (QinQ).
        inner_vlan_id: Option<u16>,
        /// Label of the top MPLS label stack entry.
        mpls_label: Option<u32>,
        /// Innermost tunnel: `VXLAN`, `VXLAN-GPE`, `GENEVE`, `GRE`, `NVGRE`, `ERSPAN`, `IPIP`; null without one.
        tunnel: Option<Symbol>,
        /// VXLAN or GENEVE network identifier, NVGRE virtual subnet, GRE key or ERSPAN session of the innermost tunnel that has one.
        vni: Option<u32>,
        /// Source address of the outermost tunnel's packet.
        outer_src_ip: Ip,
        /// Destination address of the outermost tunnel's packet.
        outer_dst_ip: Ip,
        /// UDP source port of the outermost tunnel's packet.
        outer_src_port: Option<u16>,
        /// UDP destination port of the outermost tunnel's packet.
        outer_dst_port: Option<u16>,
        /// DSCP of the outermost tunnel's packet.
        outer_dscp: Option<u8>,
        /// ECN of the outermost tunnel's packet.
        outer_ecn: Option<u8>,
        /// TTL or hop limit of the outermost tunnel's packet.
        outer_ttl: Option<u8>,
        /// Source IP address; for ARP the sender's.
        src_ip: Ip,
        /// Destination IP address; for ARP the target's.
        dst_ip: Ip,
        /// Highest protocol that was recognised: `TCP`, `UDP`, `ICMP`, `ICMPv6`, `ARP`, `RoCEv2`, `RoCEv1`, `PFC`, `PAUSE`, `LLDP` ...
        protocol: Option<Symbol>,
        /// Source port of TCP, UDP or SCTP.
        src_port: Option<u16>,
        /// Destination port of TCP, UDP or SCTP.
        dst_port: Option<u16>,
        /// Differentiated services code point, 0 to 63.
        dscp: Option<u8>,
        /// Explicit congestion notification: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
        ecn: Option<u8>,
        /// IPv4 time to live or IPv6 hop limit.
        ttl: Option<u8>,
        /// IPv4 identification, or that of an IPv6 fragment header; null where the packet has none.
        ip_id: Option<u32>,
        /// IP packet with its header, in bytes, as the header declares it; the frame's where it declares 0 (left to the network card).
        ip_bytes: Option<u32>,
        /// IP protocol number, after any IPv6 extension headers and authentication headers.
        ip_protocol: Option<u8>,
        /// Whether the innermost packet is a fragment. Later fragments carry the first one's ports; the one that completes the
        /// datagram has the protocol and payload of the whole.
        is_fragment: bool,
        /// Fragment offset in bytes; null where the packet is no fragment.
        fragment_offset: Option<u16>,
        /// Bytes after the highest header that was recognised, as the headers declare it: without Ethernet padding, and for RoCE without pad bytes and invariant CRC.
        payload_bytes: Option<u32>,
        /// Flow of the frame: see table `flows`; null for frames without IP.
        flow_id: Option<u64>,
        /// Checksum of the innermost IPv4 header: `ok`, `bad`, `absent` (zero: left to the network card), `unverifiable` (cut); null where not verified.
        ip_checksum: Option<Symbol>,
        /// Checksum of the innermost TCP, UDP or ICMP: `ok`, `bad`, `partial` (only the pseudo-header's sum: left to the sender's network card), `unverifiable` (cut, fragment), `absent` (none was written); null where not verified.
        l4_checksum: Option<Symbol>,
        /// Earlier frame of the same file that this one is a copy of: same packet by IP identification, transport checksum, sequence numbers and length; null for originals. Whether the capture or the network made the copy is for `capture_quality` and the TCP verdicts to say.
        duplicate_of: Option<u64>,
        /// How the copy differs from its original: `same_interface` (not at all), `other_interface`, `router_hop` (lower TTL), `tunnel` (once inside a tunnel and once outside).
        duplicate_kind: Option<Symbol>,
        /// Comment of the frame in a pcapng file.
        comment: Option<String>,
        /// Where and why decoding stopped; null where it reached the end.
        decode_stop: Option<String>,
    }
}

table! {
    /// One row per encapsulation layer of a frame: a packet in VXLAN in GRE has two.
    table "tunnels" => TunnelRow / TunnelBuilder {
        /// File of the capture, from 1.
        file_no: u32,
        /// Frame number in its file, from 1.
        frame_no: u64,
        /// Capture time.
        time: Option<TimeNs>,
        /// Nanoseconds since the first frame of the capture.
        time_rel_ns: Option<i64>,
        /// 0 for the outermost tunnel.
        depth: u8,
        /// `VXLAN`, `VXLAN-GPE`, `GENEVE`, `GRE`, `NVGRE`, `ERSPAN` or `IPIP`.
        kind: Symbol,
        /// VXLAN or GENEVE network identifier, NVGRE virtual subnet, GRE key or ERSPAN session.
        vni: Option<u32>,
        /// Source address of the tunnel (for VXLAN, a VTEP).
        outer_src_ip: Ip,
        /// Destination address of the tunnel.
        outer_dst_ip: Ip,
        /// UDP source port of the tunnel.
        outer_src_port: Option<u16>,
        /// UDP destination port of the tunnel.
        outer_dst_port: Option<u16>,
        /// DSCP of the tunnel's packet.
        outer_dscp: u8,
        /// ECN of the tunnel's packet.
        outer_ecn: u8,
        /// TTL or hop limit of the tunnel's packet.
        outer_ttl: u8,
        /// Source address of the packet inside; null where it is no IP packet.
        inner_src_ip: Ip,
        /// Destination address of the packet inside.
        inner_dst_ip: Ip,
        /// Bytes from the tunnel's own IP header to the IP header inside: 50 for VXLAN over IPv4.
        overhead_bytes: u16,
        /// Flow of the innermost packet.
        flow_id: Option<u64>,
    }
}
