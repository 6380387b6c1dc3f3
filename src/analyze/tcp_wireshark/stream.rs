//! One stream: both sides, the handshake, and what is printed.

use serde::{Deserialize, Serialize};

use super::side::{Scale, Side};
use super::unacked::Sent;
use super::{
    Segment, WsFlags, WsRow,
    circular::is_after,
    rules::{self, Context},
    tcp_flag,
};

/// Spans from here on are arithmetic accidents; Wireshark prints none.
const MAX_BYTES_IN_FLIGHT: u32 = 2_000_000_000;
/// Wireshark 4.0 looks at no more SACK blocks than this, though an option has room for four.
const MAX_SACK_BLOCKS: usize = 3;

/// State of one Wireshark stream. Feed it every segment of the stream in file order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WsStream {
    sides: [Side; 2],
    handshake: Handshake,
    /// Kinds of MPTCP option seen so far, from both sides: bit n = subtype n.
    mptcp: u8,
    reuses_ports: bool,
}

/// Whether `segment` opens a connection of its own on the addresses and ports of `stream`: a bare SYN with another
/// sequence number than the one its sender started with. The caller then goes on with
/// [`WsStream::on_reused_ports`] under a new stream number.
pub fn starts_new_stream(stream: &WsStream, segment: &Segment) -> bool {
    is_bare_syn(segment) && stream.sides[usize::from(segment.dir & 1)].base.is_some_and(|base| base != segment.seq)
}

impl WsStream {
    /// A new stream on addresses and ports that an earlier one used: its first segment is flagged `reused_ports`.
    pub fn on_reused_ports() -> Self {
        Self { reuses_ports: true, ..Self::default() }
    }

    /// Takes the next segment and says what Wireshark says about it.
    pub fn on_segment(&mut self, segment: &Segment) -> WsRow {
        let [low, high] = &mut self.sides;
        let (me, peer) = if segment.dir & 1 == 0 { (low, high) } else { (high, low) };
        let mut row = WsRow::default();
        let opening = open(segment, me);
        if std::mem::take(&mut self.reuses_ports) || opening == Opening::RestartsNumbering {
            row.flags |= WsFlags::REUSED_PORTS;
        }
        set_bases(segment, me, peer);

        let has_new_mptcp = me.mptcp != self.mptcp;
        me.mptcp = self.mptcp;
        let context = Context { initial_rtt_ns: self.handshake.rtt_ns, has_new_mptcp };
        let is_noted = rules::apply(segment, me, peer, context, &mut row);
        let acked = advance(segment, me, peer, row.flags);
        print(segment, me, peer, acked, &mut row);
        learn_options(segment, me, peer);
        self.mptcp |= segment.mptcp;
        self.handshake.observe(segment);

        let is_noted = is_noted | print_bytes_in_flight(segment, me, peer, &mut row);
        let is_noted = is_noted || acked.is_some() || opening == Opening::RepeatsSyn;
        row.initial_rtt_ns = Some(self.handshake.rtt_ns).filter(|&rtt_ns| is_noted && rtt_ns != 0);
        row
    }

    /// Takes the next segment only for what tells this stream from the next one on its ports. A stream is shown all of its
    /// segments this way, or none.
    pub fn on_unasked_segment(&mut self, segment: &Segment) {
        let [low, high] = &mut self.sides;
        let (me, peer) = if segment.dir & 1 == 0 { (low, high) } else { (high, low) };
        open(segment, me);
        set_bases(segment, me, peer);
    }

    /// Takes a TCP header that an ICMP error quotes, or one whose IP length is too short for it. Wireshark counts it
    /// into the stream (it can open one), lets it act on the handshake, and analyses nothing else: `reused_ports` is
    /// the only flag, and it shows raw numbers.
    pub fn on_quoted_segment(&mut self, segment: &Segment) -> WsFlags {
        let opening = open(segment, &mut self.sides[usize::from(segment.dir & 1)]);
        self.handshake.observe(segment);
        if std::mem::take(&mut self.reuses_ports) || opening == Opening::RestartsNumbering {
            return WsFlags::REUSED_PORTS;
        }
        WsFlags::NONE
    }

    /// Gives unused memory back; call it on streams that went quiet.
    pub fn compact(&mut self) {
        for side in &mut self.sides {
            side.unacked.compact();
        }
    }

    /// Asks for the memory that the next segment will need: reads a little here and there.
    pub fn touch(&self) -> u32 {
        let of = |side: &Side| side.next ^ side.last_ack ^ side.last_nondup_frame_no as u32;
        of(&self.sides[0]) ^ of(&self.sides[1]) ^ u32::from(self.mptcp)
    }

    /// The same for the ends of its lists.
    pub fn touch_lists(&self) -> u32 {
        self.sides[0].unacked.touch() ^ self.sides[1].unacked.touch()
    }

    /// Heap memory held beside the struct itself, in bytes.
    #[cfg(test)]
    pub fn heap_bytes(&self) -> usize {
        self.sides.iter().map(|side| side.unacked.heap_bytes()).sum()
    }
}

/// The round trip of the handshake, measured once: from the latest bare SYN to the first segment of either side that
/// has ACK and no SYN.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Handshake {
    /// Time of the latest SYN without ACK; 0 = none.
    syn_time_ns: i64,
    /// 0 = unknown.
    rtt_ns: i64,
}

impl Handshake {
    fn observe(&mut self, segment: &Segment) {
        match flags_of(segment, SYN_ACK) {
            tcp_flag::SYN => self.syn_time_ns = segment.time_ns,
            tcp_flag::ACK if self.rtt_ns == 0 && self.syn_time_ns != 0 => {
                self.rtt_ns = segment.time_ns.wrapping_sub(self.syn_time_ns);
            }
            _ => {}
        }
    }
}

const SYN_ACK: u16 = tcp_flag::SYN | tcp_flag::ACK;

fn flags_of(segment: &Segment, mask: u16) -> u16 {
    segment.flags & mask
}

fn is_bare_syn(segment: &Segment) -> bool {
    flags_of(segment, SYN_ACK) == tcp_flag::SYN
}

/// What a SYN does to a side whose numbering is already known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    None,
    /// A bare SYN with the old number. It rewinds its sender, so that it comes out as a retransmission.
    RepeatsSyn,
    /// A SYN/ACK with another number. It stays in the stream (Wireshark 4.0) and restarts its sender's numbering.
    RestartsNumbering,
}

fn open(segment: &Segment, me: &mut Side) -> Opening {
    let Some(base) = me.base else { return Opening::None };
    let is_same = base == segment.seq;
    match flags_of(segment, SYN_ACK) {
        tcp_flag::SYN if is_same => {
            me.next = me.contig;
            Opening::RepeatsSyn
        }
        SYN_ACK if !is_same => {
            me.base = Some(segment.seq);
            Opening::RestartsNumbering
        }
        _ => Opening::None,
    }
}

/// Without a SYN the numbering starts so that the first segment seen shows 1.
fn set_bases(segment: &Segment, me: &mut Side, peer: &mut Side) {
    if me.base.is_none() {
        let is_syn = flags_of(segment, tcp_flag::SYN) != 0;
        me.base = Some(segment.seq.wrapping_sub(u32::from(!is_syn)));
    }
    if peer.base.is_none() && flags_of(segment, tcp_flag::ACK) != 0 {
        peer.base = Some(segment.ack.wrapping_sub(1));
    }
}

/// Moves the sequence state of both sides on. Gives the peer's segment that this one acknowledges exactly.
fn advance(segment: &Segment, me: &mut Side, peer: &mut Side, flags: WsFlags) -> Option<Sent> {
    let takes_number = flags_of(segment, tcp_flag::SYN | tcp_flag::FIN) != 0;
    let mut end = segment.seq.wrapping_add(segment.payload_bytes);
    if (segment.payload_bytes > 0 || takes_number) && !me.unacked.is_full() {
        end = end.wrapping_add(u32::from(takes_number));
        me.unacked.insert(segment.seq, end, Sent { frame_no: segment.frame_no, time_ns: segment.time_ns });
    }
    if !flags.contains(WsFlags::ZERO_WINDOW_PROBE) {
        if me.next == 0 || is_after(end, me.next) {
            me.next = end;
            me.next_time_ns = segment.time_ns;
        }
        if segment.seq == me.contig || me.contig == 0 {
            me.contig = me.next;
        }
    }
    me.remember(segment, flags);
    let acked = peer.unacked.acknowledge(segment.ack, segment.frame_no);
    if flags_of(segment, tcp_flag::ACK) != 0 {
        peer.knows_flight = true;
    }
    acked
}

/// Options are read after the analysis of the segment that carries them.
fn learn_options(segment: &Segment, me: &mut Side, peer: &mut Side) {
    let blocks = segment.sack.iter().take(MAX_SACK_BLOCKS);
    me.sacked_bytes = blocks.fold(0, |sum, &(left, right)| sum.wrapping_add(right.wrapping_sub(left)));
    if let Some(shift) = segment.wscale {
        me.scale = Scale::Shift(shift.min(14));
    }
    if flags_of(segment, tcp_flag::SYN) == 0 {
        return;
    }
    if me.scale == Scale::Unknown {
        me.scale = Scale::NotUsed;
        peer.scale = Scale::NotUsed;
    }
    // An answer cannot bring scaling in where the question went without.
    if flags_of(segment, tcp_flag::ACK) != 0 && peer.scale == Scale::NotUsed {
        me.scale = Scale::NotUsed;
    }
}

fn print(segment: &Segment, me: &Side, peer: &Side, acked: Option<Sent>, row: &mut WsRow) {
    row.relative_seq = segment.seq.wrapping_sub(me.base.unwrap_or(0));
    row.relative_ack = segment.ack;
    if flags_of(segment, tcp_flag::ACK) != 0 {
        row.relative_ack = segment.ack.wrapping_sub(peer.base.unwrap_or(0));
    }
    let is_syn = flags_of(segment, tcp_flag::SYN) != 0;
    let raw = u32::from(segment.window);
    row.window_shown = match me.scale {
        Scale::Shift(shift) if !is_syn => raw << u32::from(shift),
        _ => raw,
    };
    row.window_bytes = (is_syn || me.scale != Scale::Unknown).then_some(u64::from(row.window_shown));
    if let Some(sent) = acked {
        row.acks_frame = Some(sent.frame_no);
        row.ack_rtt_ns = Some(segment.time_ns.wrapping_sub(sent.time_ns)).filter(|&rtt_ns| rtt_ns != 0);
    }
}

/// Span of what is not acknowledged, less the peer's SACK blocks (also those that cover none of it, such as a
/// D-SACK) and less the number that a SYN or FIN takes. Returns whether Wireshark keeps a note on the frame: it does
/// even where the result makes no sense and is not printed.
fn print_bytes_in_flight(segment: &Segment, me: &Side, peer: &Side, row: &mut WsRow) -> bool {
    if segment.payload_bytes == 0 || !me.knows_flight {
        return false;
    }
    let Some((start, end)) = me.unacked.span_from(me.base.unwrap_or(0)) else {
        return false;
    };
    let virtual_byte = u32::from(flags_of(segment, tcp_flag::SYN | tcp_flag::FIN) != 0);
    let in_flight = end.wrapping_sub(start).wrapping_sub(peer.sacked_bytes).wrapping_sub(virtual_byte);
    row.bytes_in_flight = Some(in_flight).filter(|in_flight| (1..MAX_BYTES_IN_FLIGHT).contains(in_flight));
    true
}
