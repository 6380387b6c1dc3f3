//! The TCP segments that wait for their connections' turns, with all that is said of them: their windows may be gone by then.

use super::quoted::Quote;
use crate::analyze::segment::{Checksum, Segment};
use crate::analyze::{Mark, Moment, SeenSegment};
use crate::capture::Record;
use crate::wire::{ChecksumStatus, Chunk, Frame, TcpHeader};

/// A segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// Its SACK blocks are among those of [`Keep`].
    pub tcp: TcpHeader,
    /// Place of its frame in the windows that are followed together.
    pub place: u32,
    pub time_ns: i64,
    /// Of its [`Moment`].
    latest_ns: i64,
    frame_no: u64,
    payload_bytes: u32,
    interface: u32,
    pub file: u16,
    ip_id: u16,
    ttl: u8,
    ecn: u8,
    is_v6: bool,
    has_time: bool,
    checksum: Checksum,
}

/// A TCP header that an ICMP error quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptQuote {
    pub mark: Mark,
    pub at: Moment,
    pub slot: u32,
    pub sender: u8,
    /// `None` where less than its fixed part was quoted.
    pub segment: Option<Kept>,
    pub seq: Option<u32>,
    pub mtu: Option<u32>,
    /// The error says that nothing gets through.
    pub is_unreachable: bool,
}

/// What one shard keeps.
#[derive(Default)]
pub(super) struct Keep {
    pub segments: Vec<Kept>,
    pub quotes: Vec<KeptQuote>,
    sacks: Vec<(u32, u32)>,
    /// Frames of the capture before place 0.
    first_frame: u64,
}

impl Keep {
    pub fn clear(&mut self) {
        self.segments.clear();
        self.quotes.clear();
        self.sacks.clear();
    }

    /// Keeps a segment; returns its index.
    pub fn add(
        &mut self,
        place: u32,
        at: Moment,
        record: &Record,
        frame: &Frame,
        chunk: &Chunk,
        tcp: &TcpHeader,
    ) -> u32 {
        self.first_frame = at.frame.saturating_sub(u64::from(place));
        let first = tcp.sack_at as usize;
        let sacks = chunk.sacks.get(first..first + usize::from(tcp.sack_count)).unwrap_or(&[]);
        let mut kept = Kept::of(place, at, record, frame, tcp);
        (kept.tcp.sack_at, kept.tcp.sack_count) = (self.sacks.len() as u32, sacks.len() as u8);
        self.sacks.extend_from_slice(sacks);
        self.segments.push(kept);
        self.segments.len() as u32 - 1
    }

    /// Keeps what an ICMP error quotes; returns its index. `slot`: the streams between its ends.
    pub fn add_quote(&mut self, place: u32, at: Moment, quote: &Quote<'_>, slot: u32) -> u32 {
        let Quote { record, message, quoted, stand_in, sender, tcp, .. } = quote;
        self.quotes.push(KeptQuote {
            mark: Mark { file: record.file, frame_no: record.frame_no, time_ns: record.time_ns },
            at,
            slot,
            sender: *sender,
            segment: tcp.as_ref().map(|tcp| Kept::of(place, at, record, stand_in, tcp)),
            seq: quoted.seq,
            mtu: message.mtu,
            // "Fragmentation needed" is no refusal: the sender cuts its segments and goes on.
            is_unreachable: match message.is_v6 {
                false => message.icmp_type == 3 && message.code != 4,
                true => message.icmp_type == 1,
            },
        });
        self.quotes.len() as u32 - 1
    }

    /// How far the capture had come with a segment.
    pub fn moment(&self, kept: &Kept) -> Moment {
        Moment { ns: kept.latest_ns, frame: self.first_frame + u64::from(kept.place) }
    }

    pub fn sacks(&self, kept: &Kept) -> &[(u32, u32)] {
        let first = kept.tcp.sack_at as usize;
        self.sacks.get(first..first + usize::from(kept.tcp.sack_count)).unwrap_or(&[])
    }

    /// A segment as the analyses want it.
    pub fn segment(&self, kept: &Kept, sender: u8, row: u64) -> Segment<'_> {
        let tcp = &kept.tcp;
        Segment {
            frame_no: kept.frame_no,
            time_ns: kept.time_ns,
            at: self.moment(kept),
            dir: sender,
            seq: tcp.seq,
            ack: tcp.ack,
            flags: tcp.flags,
            window: tcp.window,
            payload_bytes: kept.payload_bytes,
            mss: tcp.mss(),
            wscale: tcp.wscale(),
            sack_permitted: tcp.is_sack_permitted(),
            ts: tcp.timestamps(),
            sack: self.sacks(kept),
            mptcp: tcp.mptcp_subtypes as u8,
            row,
            ip_id: (!kept.is_v6).then_some(kept.ip_id),
            ttl: kept.ttl,
            ecn: kept.ecn,
            l4_checksum_field: tcp.checksum,
            checksum: kept.checksum,
            interface: kept.interface,
        }
    }

    /// The same for the summary of its connection.
    pub fn seen<'a>(&'a self, kept: &'a Kept, sender: u8, is_copy: bool, is_router_copy: bool) -> SeenSegment<'a> {
        SeenSegment {
            sender,
            frame_no: kept.frame_no,
            time_ns: kept.has_time.then_some(kept.time_ns),
            tcp: &kept.tcp,
            sack: self.sacks(kept),
            payload_bytes: kept.payload_bytes,
            ecn: kept.ecn,
            ttl: kept.ttl,
            is_copy,
            is_router_copy,
            file: kept.file,
        }
    }
}

impl Kept {
    /// Asks for the lines that it lies in.
    pub fn touch(&self) -> u32 {
        self.tcp.seq ^ self.frame_no as u32 ^ u32::from(self.ttl)
    }

    fn of(place: u32, at: Moment, record: &Record, frame: &Frame, tcp: &TcpHeader) -> Self {
        Self {
            tcp: *tcp,
            place,
            time_ns: record.time_ns,
            latest_ns: at.ns,
            frame_no: record.frame_no,
            payload_bytes: frame.payload_bytes,
            interface: record.interface,
            file: record.file,
            ip_id: frame.ip_id as u16,
            ttl: frame.ttl,
            ecn: frame.ecn(),
            is_v6: frame.src_ip.is_v6(),
            has_time: record.has_time(),
            checksum: match frame.l4_checksum {
                None => Checksum::NotChecked,
                Some(ChecksumStatus::Ok) => Checksum::Ok,
                Some(ChecksumStatus::Bad) => Checksum::Bad,
                Some(ChecksumStatus::Partial) => Checksum::Partial,
                Some(ChecksumStatus::Unverifiable) => Checksum::Unverifiable,
                Some(ChecksumStatus::Absent) => Checksum::Absent,
            },
        }
    }
}
