//! What TCP analyzers are told.

/// One TCP segment, as seen on the wire. No clock, no I/O: time arrives here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment<'a> {
    /// Frame number in its file.
    pub frame_no: u64,
    /// Capture time; 0 for frames without one.
    pub time_ns: i64,
    /// Which end of the connection sent it: 0 the low one of the flow's key, 1 the high one.
    pub dir: u8,
    pub seq: u32,
    pub ack: u32,
    /// The twelve bits as on the wire.
    pub flags: u16,
    /// Raw field.
    pub window: u16,
    /// As the IP header declares.
    pub payload_bytes: u32,
    pub wscale: Option<u8>,
    /// Blocks of the SACK option, in wire order.
    pub sack: &'a [(u32, u32)],
    /// Kinds of MPTCP option (TCP option 30) in this segment: bit n set = an option of subtype n, 0 to 7; 0 = none.
    pub mptcp: u8,
}
