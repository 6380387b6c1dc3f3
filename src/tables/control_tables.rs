//! `pause`, `icmp` and `arp`.

use super::{Symbol, TimeNs};
use crate::wire::{Ip, Mac};

table! {
    /// One row per PAUSE frame (IEEE 802.3x), and per PFC frame (IEEE 802.1Qbb) and class that it speaks of. The receiver of
    /// the frame is asked to stop.
    table "pause" => PauseRow / PauseBuilder {
        /// File of the capture, from 1.
        file_no: u32,
        /// Frame number in its file, from 1.
        frame_no: u64,
        /// Capture time.
        time: Option<TimeNs>,
        /// Nanoseconds since the first frame of the capture.
        time_rel_ns: Option<i64>,
        /// Interface of the capture, from 0.
        interface_id: u32,
        /// `PFC` or `PAUSE`.
        kind: Symbol,
        /// Source MAC address: the port that is congested.
        src_mac: Option<Mac>,
        /// Priority class, 0 to 7; null for PAUSE, which stops all traffic.
        class: Option<u8>,
        /// Pause time in quanta of 512 bit times; 0 ends a pause (XON).
        quanta: u16,
        /// Pause time in nanoseconds; null where the link speed is not known.
        pause_ns: Option<i64>,
    }
}

table! {
    /// One row per ICMP or ICMPv6 message.
    table "icmp" => IcmpRow / IcmpBuilder {
        /// File of the capture, from 1.
        file_no: u32,
        /// Frame number in its file, from 1.
        frame_no: u64,
        /// Capture time.
        time: Option<TimeNs>,
        /// Nanoseconds since the first frame of the capture.
        time_rel_ns: Option<i64>,
        /// Flow of the frame.
        flow_id: Option<u64>,
        /// `ICMP` or `ICMPv6`.
        protocol: Symbol,
        /// Source address.
        src_ip: Ip,
        /// Destination address.
        dst_ip: Ip,
        /// Type.
        r#type: u8,
        /// Code.
        code: u8,
        /// Identifier of an echo request or reply.
        identifier: Option<u16>,
        /// Sequence number of an echo request or reply.
        sequence: Option<u16>,
        /// Next-hop MTU of "fragmentation needed" or "packet too big", in bytes.
        mtu: Option<u32>,
        /// Source address of the packet that an error is about.
        quoted_src_ip: Ip,
        /// Destination address of the packet that an error is about.
        quoted_dst_ip: Ip,
        /// IP protocol number of the packet that an error is about.
        quoted_ip_protocol: Option<u8>,
        /// Source port of the packet that an error is about.
        quoted_src_port: Option<u16>,
        /// Destination port of the packet that an error is about.
        quoted_dst_port: Option<u16>,
        /// Size of the packet that an error is about, in bytes, as its header declares it.
        quoted_ip_bytes: Option<u16>,
    }
}

table! {
    /// One row per ARP or RARP packet.
    table "arp" => ArpRow / ArpBuilder {
        /// File of the capture, from 1.
        file_no: u32,
        /// Frame number in its file, from 1.
        frame_no: u64,
        /// Capture time.
        time: Option<TimeNs>,
        /// Nanoseconds since the first frame of the capture.
        time_rel_ns: Option<i64>,
        /// 1 request, 2 reply, 3 reverse request (RARP), 4 reverse reply.
        operation: u16,
        /// Sender's MAC address.
        sender_mac: Option<Mac>,
        /// Sender's IP address.
        sender_ip: Ip,
        /// Target's MAC address.
        target_mac: Option<Mac>,
        /// Target's IP address.
        target_ip: Ip,
    }
}
