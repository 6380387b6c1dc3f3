//! A TCP receiver with SACK (RFC 2018), D-SACK (RFC 2883) and one ACK for a run of segments, as with GRO.

/// Blocks that fit beside timestamps.
const MAX_SACK_BLOCKS: usize = 3;
/// Segments a coalescing receiver acknowledges at once.
const SEGMENTS_PER_ACK: u32 = 16;
/// The same beyond a gap, where coalescing is cut short more often.
const SEGMENTS_PER_ACK_BEYOND: u32 = 4;
pub(crate) const BUFFER_BYTES: u64 = 3 * 1024 * 1024;
/// The application lags behind by some steps of bytes, which change as the stream goes on.
const WINDOW_STEP_BYTES: u64 = 1 << 20;
const UNREAD_STEP_BYTES: u64 = 16 * 1024;

#[derive(Default)]
pub(crate) struct Receiver {
    next: u64,
    /// What arrived beyond a gap; the range added to last comes first, as SACK wants it.
    beyond: Vec<(u64, u64)>,
    unacknowledged: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acknowledgement {
    pub ack: u64,
    pub window_bytes: u64,
    sack: [(u64, u64); MAX_SACK_BLOCKS],
    sack_count: u8,
}

impl Acknowledgement {
    /// What the three-way handshake acknowledges: the SYN.
    pub fn of_handshake() -> Self {
        Self { ack: 1, ..Self::default() }
    }

    pub fn sack(&self) -> &[(u64, u64)] {
        &self.sack[..usize::from(self.sack_count)]
    }
}

/// What the receiver does about a segment.
pub(crate) enum Reply {
    Now(Acknowledgement),
    /// An ACK is due soon unless more data brings one about.
    Later,
}

impl Receiver {
    pub fn new() -> Self {
        Self { next: 1, ..Self::default() }
    }

    pub fn on_segment(&mut self, left: u64, len: u64) -> Reply {
        let right = left + len;
        let is_duplicate = right <= self.next || self.beyond.iter().any(|range| range.0 <= left && right <= range.1);
        if is_duplicate {
            return Reply::Now(self.acknowledge_with(Some((left, right))));
        }
        if left > self.next {
            let is_first = self.beyond.first().is_none_or(|latest| latest.1 != left);
            self.insert_beyond(left, right);
            self.unacknowledged += 1;
            if is_first || self.unacknowledged >= SEGMENTS_PER_ACK_BEYOND {
                return Reply::Now(self.acknowledge());
            }
            return Reply::Later;
        }
        self.next = right;
        let filled_gap = !self.beyond.is_empty();
        if let Some(index) = self.beyond.iter().position(|range| range.0 <= self.next) {
            self.next = self.next.max(self.beyond.remove(index).1);
        }
        self.unacknowledged += 1;
        if filled_gap || self.unacknowledged >= SEGMENTS_PER_ACK {
            return Reply::Now(self.acknowledge());
        }
        Reply::Later
    }

    /// True of a segment that leaves no gap, whose timestamp is thus the one to echo (RFC 7323 section 4.3).
    pub fn expects(&self, left: u64) -> bool {
        left <= self.next
    }

    /// The ACK that was put off, if it is still owed.
    pub fn on_delay_over(&mut self) -> Option<Acknowledgement> {
        (self.unacknowledged > 0).then(|| self.acknowledge())
    }

    fn acknowledge(&mut self) -> Acknowledgement {
        self.acknowledge_with(None)
    }

    fn acknowledge_with(&mut self, duplicate: Option<(u64, u64)>) -> Acknowledgement {
        self.unacknowledged = 0;
        // What lies beyond a gap does not move the window's right edge: repeated ACKs repeat the window, too.
        let unread_bytes = self.next / WINDOW_STEP_BYTES % 5 * UNREAD_STEP_BYTES;
        let window_bytes = BUFFER_BYTES - unread_bytes;
        let mut acknowledgement = Acknowledgement { ack: self.next, window_bytes, ..Acknowledgement::default() };
        for &block in duplicate.iter().chain(&self.beyond).take(MAX_SACK_BLOCKS) {
            acknowledgement.sack[usize::from(acknowledgement.sack_count)] = block;
            acknowledgement.sack_count += 1;
        }
        acknowledgement
    }

    fn insert_beyond(&mut self, mut left: u64, mut right: u64) {
        self.beyond.retain(|range| {
            let touches = range.0 <= right && left <= range.1;
            if touches {
                left = left.min(range.0);
                right = right.max(range.1);
            }
            !touches
        });
        self.beyond.insert(0, (left, right));
    }
}
