//! `pause`, `pause_intervals`, `icmp` and `arp`.

use super::{FrameList, Symbol, TimeNs};
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
    /// One row per pause: from the frame that begins it, over its refreshes, to XON or expiry. Pauses come in the order in
    /// which they end. A host's capture may hold none although the host is paused: network cards keep these frames to
    /// themselves.
    table "pause_intervals" => PauseIntervalRow / PauseIntervalBuilder {
        /// File of the first frame, from 1.
        file_no: u32,
        /// First frame of the pause in its file.
        frame_no: u64,
        /// Time of the first frame: the pause begins.
        time: Option<TimeNs>,
        /// Nanoseconds from the first frame of the capture.
        time_rel_ns: Option<i64>,
        /// Interface of the capture, from 0.
        interface_id: u32,
        /// `PFC` or `PAUSE`.
        kind: Symbol,
        /// Priority class, 0 to 7; null for PAUSE, which stops all traffic.
        class: Option<u8>,
        /// Source MAC address: the port that is congested. The other end of its link is paused.
        src_mac: Option<Mac>,
        /// When it ended: time of the XON, or when the last request had run its time. Null where the link speed is not known and no XON came.
        end: Option<TimeNs>,
        /// How long it lasted; null where the link speed is not known, since it may have run out before the XON.
        duration_ns: Option<i64>,
        /// `xon`, `expiry`, `capture_end`.
        ended_by: Symbol,
        /// Frames that asked for it: the first and its refreshes.
        pause_count: u64,
        /// Longest time asked for, in quanta of 512 bit times.
        quanta: u16,
        /// It lasted as long as a pause storm (200 ms unless set otherwise); false where the duration is not known.
        is_storm: bool,
        /// Frames of the paused class (by VLAN priority, else by DSCP) that passed the tap meanwhile, other than from the congested port.
        carried_count: u64,
        /// Their bytes on the wire.
        carried_bytes: u64,
        /// Flows of the class that sent in the 10 ms before or meanwhile: all but the congested one's are victims of head-of-line blocking.
        sharing_flow_count: u64,
        /// Its first 20 frames.
        frames: FrameList,
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
