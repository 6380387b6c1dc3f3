//! The tables of what `dcb` and `mlnx_qos` print.

use crate::tables::{Symbol, table};

table! {
    /// One row per interface whose priorities `dcb` (iproute2) or `mlnx_qos` printed: calls about the same interface are one
    /// sample until something comes again.
    table "dcb" => DcbRow / DcbBuilder {
        /// Number of the sample in the log, from 1.
        sample_no: u32,
        /// Line of the log that it starts on, from 1.
        line: u64,
        /// `dcb` or `mlnx_qos`.
        tool: Symbol,
        /// Interface, where the log holds the command.
        device: Option<String>,
        /// Lossless priorities (PFC enabled), separated by commas; empty where none is.
        pfc_priorities: Option<String>,
        /// The same as bits: bit n is set where priority n is lossless.
        pfc_mask: Option<u8>,
        /// Priorities that can be lossless at once.
        pfc_max_classes: Option<u8>,
        /// Whether PFC also works with MACsec bypassed.
        is_macsec_bypass: Option<bool>,
        /// Allowance for the link's round trip, in bits.
        pfc_delay_bits: Option<u32>,
        /// Whether the interface takes over its neighbour's ETS configuration.
        is_ets_willing: Option<bool>,
        /// Traffic classes that it has.
        ets_max_classes: Option<u8>,
        /// Whether it has a credit-based shaper.
        is_credit_based: Option<bool>,
        /// What the priority of a received packet is taken from: `pcp`, `dscp`, or both in their order.
        trust: Option<String>,
        /// Who negotiates: what `mlnx_qos` calls the DCBX mode, or the flags that `dcb dcbx` shows.
        dcbx_mode: Option<String>,
        /// Priority of packets that nothing else says a priority of.
        default_priority: Option<u8>,
    }
}

table! {
    /// One row per priority of a sample.
    table "dcb_priorities" => PriorityRow / PriorityBuilder {
        /// Sample: see `dcb`.
        sample_no: u32,
        /// Priority, 0 to 7.
        priority: u8,
        /// Whether it is lossless (PFC enabled).
        is_lossless: Option<bool>,
        /// Traffic class that it is sent in.
        traffic_class: Option<u8>,
        /// Receive buffer that it goes to.
        buffer: Option<u8>,
    }
}

table! {
    /// One row per traffic class of a sample.
    table "dcb_classes" => ClassRow / ClassBuilder {
        /// Sample: see `dcb`.
        sample_no: u32,
        /// Traffic class, 0 to 7.
        traffic_class: u8,
        /// How it is served: `strict`, `ets`, `cb-shaper`, `vendor`.
        algorithm: Option<String>,
        /// Its share of the bandwidth in percent.
        bandwidth_percent: Option<u8>,
    }
}

table! {
    /// One row per entry of the table that gives applications and DSCPs their priority.
    table "dcb_apps" => AppRow / AppBuilder {
        /// Sample: see `dcb`.
        sample_no: u32,
        /// Line of the log, from 1.
        line: u64,
        /// What is looked at: `dscp`, `ethertype`, `tcp`, `udp`, `port` (of both), `pcp`.
        selector: Symbol,
        /// DSCP, EtherType or port; null for a PCP by name.
        protocol: Option<u32>,
        /// As the tool printed it: `26`, `AF31`, `8915`.
        name: Option<String>,
        /// Priority, 0 to 7.
        priority: u8,
    }
}
