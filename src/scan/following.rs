//! The last stage of several windows: their TCP segments are followed, connection by connection.

use super::gate::Gate;
use super::route::number_streams;
use super::shard::{Shard, ShardNeeds};
use super::sink::Sink;
use super::tcp::TcpHold;
use crate::analyze::Moment;
use crate::tables::TcpRow;

/// What it works on: nothing that decoding the next window needs.
pub(super) struct Following<'a> {
    pub needs: &'a ShardNeeds,
    /// How far the capture had come with the last frame whose segment is kept.
    pub now: Moment,
    pub shards: &'a mut [Shard],
    pub next_stream_id: &'a mut u64,
    pub sink: Option<&'a mut Sink<TcpRow>>,
    pub hold: &'a mut TcpHold,
    pub kept_frames: &'a mut u32,
}

impl Following<'_> {
    /// Follows the TCP segments kept so far, and gives out what is known of them then.
    pub fn follow(self, gate: &mut Gate<'_, '_>) {
        let Self { needs, now, shards, next_stream_id, sink, hold, kept_frames } = self;
        gate.each(shards, |_, shard| shard.follow(needs, now));
        if gate.is_shut() {
            return;
        }
        number_streams(shards, next_stream_id);
        if let Some(sink) = sink {
            let is_judged = needs.verdicts;
            hold.add_found(shards, gate.is_parallel());
            if is_judged {
                hold.judge(shards);
                // An eighth more than may wait, so that not all connections are looked at every time.
                let most = needs.hold.rows.saturating_add(needs.hold.rows / 8);
                if hold.waiting_rows() > most {
                    shards.iter_mut().for_each(|shard| shard.expire_all(needs, now));
                    hold.judge(shards);
                }
            }
            hold.release(sink, is_judged, false, gate.is_parallel());
        } else {
            shards.iter_mut().for_each(|shard| shard.judgements.clear());
        }
        shards.iter_mut().for_each(Shard::forget);
        *kept_frames = 0;
    }
}
