//! `lldp`.

use super::{NameSet, Symbol, TimeNs};
use crate::wire::{Ip, Mac};

table! {
    /// One row per LLDPDU (IEEE 802.1AB): what a port tells the other end of its link, with the priorities that DCBX announces
    /// (IEEE 802.1Q; its predecessor CEE gives the same columns where the standard's TLVs are not there). What was not sent is null.
    table "lldp" => LldpRow / LldpBuilder {
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
        /// Source MAC address: the port that sends.
        src_mac: Option<Mac>,
        /// Destination MAC address: how far the frame goes (01:80:c2:00:00:0e to the next bridge or host only).
        dst_mac: Option<Mac>,
        /// Identifier of the sending system.
        chassis_id: Option<String>,
        /// What kind of identifier it is: `mac_address`, `interface_name`, `network_address`, `local` ...
        chassis_id_kind: Option<Symbol>,
        /// Identifier of the sending port.
        port_id: Option<String>,
        /// What kind of identifier it is.
        port_id_kind: Option<Symbol>,
        /// How long the neighbour shall believe this, in nanoseconds; 0 takes back what was said before.
        hold_ns: Option<i64>,
        /// Description of the port.
        port_description: Option<String>,
        /// Name of the system.
        system_name: Option<String>,
        /// Description of the system.
        system_description: Option<String>,
        /// What the system does: `bridge`, `router`, `station_only` ..., separated by commas.
        capabilities: Option<NameSet>,
        /// First management address.
        management_ip: Ip,
        /// VLAN of untagged frames.
        port_vlan: Option<u16>,
        /// Largest Ethernet frame that the port takes, in bytes.
        max_frame_bytes: Option<u16>,
        /// Which dialects of DCBX the port speaks: `ieee`, `cee`, `cin` (the one before, which is not read further), separated by commas; null for none.
        dcbx: Option<NameSet>,
        /// Lossless priorities (PFC enabled), separated by commas; empty where none is.
        pfc_priorities: Option<NameSet>,
        /// The same as bits: bit n is set where priority n is lossless.
        pfc_mask: Option<u8>,
        /// Whether the port takes over the other end's PFC configuration.
        is_pfc_willing: Option<bool>,
        /// Priorities that can be lossless at once.
        pfc_max_classes: Option<u8>,
        /// Whether PFC also works with MACsec bypassed.
        is_macsec_bypass: Option<bool>,
        /// Traffic class of each priority from 0 to 7 (CEE: priority group), separated by commas.
        ets_classes: Option<String>,
        /// Bandwidth of each traffic class from 0 to 7 in percent, separated by commas.
        ets_bandwidths: Option<String>,
        /// Transmission selection of each traffic class from 0 to 7: `strict`, `cbs`, `ets`, `vendor`, or its number, separated by commas.
        ets_algorithms: Option<String>,
        /// Whether the port takes over the other end's ETS configuration.
        is_ets_willing: Option<bool>,
        /// Traffic classes that the port has.
        ets_max_classes: Option<u8>,
        /// Traffic class of each priority that the port recommends to the other end.
        ets_recommended_classes: Option<String>,
        /// Bandwidth of each traffic class in percent that it recommends.
        ets_recommended_bandwidths: Option<String>,
        /// Transmission selection of each traffic class that it recommends.
        ets_recommended_algorithms: Option<String>,
        /// Application priorities, as `udp:4791=3`, `ethertype:0x8915=3`, `dscp:26=3`, separated by commas; at most 256.
        app_priorities: Option<String>,
        /// Priority announced for RoCEv2 (UDP port 4791).
        roce_v2_priority: Option<u8>,
        /// Priority announced for RoCEv1 (EtherType 0x8915).
        roce_v1_priority: Option<u8>,
        /// TLVs read, without the one that ends the list.
        tlv_count: u32,
        /// First thing that is wrong with it: `truncated`, `order` (chassis, port, time to live must come first), `length`, `repeated`. What is broken is left out.
        problem: Option<Symbol>,
    }
}
