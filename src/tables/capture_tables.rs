//! `interfaces` and `capture_quality`.

use super::{FrameList, Symbol, TimeNs};

table! {
    /// One row per interface of the capture.
    table "interfaces" => InterfaceRow / InterfaceBuilder {
        /// First file of the interface, from 1.
        file_no: u32,
        /// Name of that file.
        file_name: Option<String>,
        /// Number of the interface in the capture, from 0.
        interface_id: u32,
        /// Name, where the file gives one.
        name: Option<String>,
        /// Description, where the file gives one.
        description: Option<String>,
        /// LINKTYPE number as registered at tcpdump.org.
        link_type: u16,
        /// Name of the link type.
        link_name: Symbol,
        /// Most bytes kept of a frame; null where no limit is stated.
        snap_length_bytes: Option<u32>,
        /// Link speed in bits per second, where the file gives one.
        link_speed_bps: Option<u64>,
        /// Frames captured.
        frames: u64,
        /// Frames that the interface dropped for lack of resources, where the file counts them.
        interface_drops: Option<u64>,
        /// Frames that the operating system dropped, where the file counts them.
        os_drops: Option<u64>,
    }
}

table! {
    /// One row per finding on the capture itself: read these before any other figure.
    table "capture_quality" => QualityRow / QualityBuilder {
        /// File concerned, from 1; null where it is the whole capture.
        file_no: Option<u32>,
        /// First frame concerned, in its file.
        frame_no: Option<u64>,
        /// Time of the first frame concerned.
        time: Option<TimeNs>,
        /// Stable name of the finding.
        code: Symbol,
        /// `info`, `warning` or `error`.
        severity: Symbol,
        /// Interface concerned.
        interface_id: Option<u32>,
        /// The figure, in `unit`.
        value: Option<i64>,
        /// Unit of `value`.
        unit: Option<Symbol>,
        /// Frames or events that it concerns.
        count: u64,
        /// The first frames concerned, at most 20.
        frames: FrameList,
        /// What it is, in English.
        message_en: Option<String>,
        /// What it is, in Chinese.
        message_zh: Option<String>,
    }
}
