//! Rows of `tcp_events`: put in order when the capture was read, each with its sentence.

use std::fmt;
use std::sync::Arc;

use super::attic::{Attic, AtticFile, Place};
use super::core::Core;
use super::finish::{client_of, ends};
use super::gate::{Gate, ROWS_BETWEEN_LOOKS};
use super::rows::{file_no, relative};
use super::shard::Shard;
use crate::analyze::{EventKind, Story, StoryEvent, frozen};
use crate::tables::*;
use crate::wire::Ip;
use crate::words::{self, Lang};

/// Events whose rows are built in one go.
const ROWS_AT_A_TIME: usize = 8_192;

/// The events of all connections in the order of their rows, and how many of them have theirs. There may be millions: what
/// they say lies packed in an attic until then.
pub(crate) struct EventOrder {
    events: Vec<Listed>,
    done: usize,
    attic: Attic,
}

/// An event and the connection it belongs to.
struct Listed {
    /// Time, file and frame of its start, flow number, kind, direction, time of its end.
    order: (i64, u16, u64, u64, EventKind, u8, i64),
    shard: u32,
    flow: u32,
    client: u8,
    what: What,
}

enum What {
    Packed(Place),
    /// What cannot be packed.
    Whole(Box<StoryEvent>),
}

impl EventOrder {
    fn of(shards: &[Shard], file: &Arc<AtticFile>, gate: &mut Gate<'_, '_>) -> Self {
        let (mut events, mut attic, mut scratch) = (Vec::new(), Attic::new(file), Vec::new());
        for (at, shard) in shards.iter().enumerate() {
            for (flow, state) in shard.flows.flows.iter().enumerate() {
                if flow % ROWS_BETWEEN_LOOKS == 0 && gate.is_shut() {
                    break;
                }
                shard.tell(flow, |story, _| {
                    let mut told = story.map(Story::events).into_iter().flatten().peekable();
                    if told.peek().is_none() {
                        return;
                    }
                    let client = client_of(state, shard.connections.get(flow).as_deref()).0;
                    events.extend(told.map(|event| {
                        let packed = frozen::freeze(event, &mut scratch).and_then(|packed| attic.keep(packed));
                        let start = event.start;
                        Listed {
                            order: (
                                start.time_ns,
                                start.file,
                                start.frame_no,
                                state.id,
                                event.kind,
                                event.dir,
                                event.end_ns,
                            ),
                            shard: at as u32,
                            flow: flow as u32,
                            client,
                            what: packed.map_or_else(|| What::Whole(Box::new(event.clone())), What::Packed),
                        }
                    }));
                });
            }
        }
        events.sort_unstable_by_key(|listed| listed.order);
        Self { events, done: 0, attic }
    }
}

/// Builds the rows of the next events; says whether there are more to come.
pub(super) fn event_table(core: &mut Core, gate: &mut Gate<'_, '_>) -> bool {
    let Some(sink) = &mut core.sinks.tcp_events else { return false };
    let order = core.events.get_or_insert_with(|| EventOrder::of(&core.shards, &core.attic_file, gate));
    let mut scratch = Vec::new();
    let next = order.events.iter().skip(order.done).take(ROWS_AT_A_TIME);
    let count = next.len();
    for listed in next {
        let packed = match &listed.what {
            // Where the file cannot be read, the run ends with that.
            What::Packed(place) => order.attic.read(*place, &mut scratch).and_then(frozen::thaw),
            What::Whole(event) => Some(StoryEvent::clone(event)),
        };
        let Some(event) = packed else { continue };
        sink.push(event_row(listed, &event, &core.shards[listed.shard as usize], core.first_time_ns));
    }
    order.done += count;
    count == ROWS_AT_A_TIME
}

fn event_row(listed: &Listed, event: &StoryEvent, shard: &Shard, first_ns: Option<i64>) -> TcpEventRow {
    let state = &shard.flows.flows[listed.flow as usize];
    let side = if event.dir == listed.client { "client" } else { "server" };
    let has_time = state.first_time_ns.is_some();
    let time_ns = has_time.then_some(event.start.time_ns);
    let (client, server) = ends(state, listed.client);
    TcpEventRow {
        file_no: file_no(event.start.file),
        frame_no: event.start.frame_no,
        time: time_ns.map(TimeNs),
        time_rel_ns: relative(time_ns, first_ns),
        flow_id: state.id,
        tcp_stream: shard.streams.streams.get(state.stream as usize).map(|stream| stream.id),
        client_ip: client.ip,
        client_port: client.port,
        server_ip: server.ip,
        server_port: server.port,
        kind: Symbol(event.kind.name()),
        side: Symbol(side),
        duration_ns: event.end_ns.saturating_sub(event.start.time_ns),
        end: has_time.then_some(TimeNs(event.end_ns)),
        bytes: event.bytes,
        count: event.count,
        cause: event.cause.map(Symbol),
        end_reason: event.end_reason.map(Symbol),
        frames: FrameList(event.frames.list().to_vec()),
        message_en: Some(message(Lang::En, event, side)),
        message_zh: Some(message(Lang::Zh, event, side)),
    }
}

/// The sentence on an event: the one of its kind, or of its kind and cause, with words for cause and end put in.
fn message(lang: Lang, event: &StoryEvent, side: &str) -> String {
    let word = |group: &str, name: Option<&str>| {
        name.map_or(String::new(), |name| words::say(lang, &format!("event.{group}.{name}"), &[]))
    };
    let kind = event.kind.name();
    let key = match (event.kind, event.cause) {
        (EventKind::Reset | EventKind::SynRetry | EventKind::NoAnswer, Some(cause)) => format!("event.{kind}.{cause}"),
        // How long nobody answered is not known then: the capture may end with it.
        (EventKind::NoAnswer, None) if event.count == 1 => format!("event.{kind}.once"),
        _ => format!("event.{kind}"),
    };
    let other = if side == "client" { "server" } else { "client" };
    let frames = FrameWords(event.frames.list(), lang);
    let span = words::short(event.end_ns.saturating_sub(event.start.time_ns));
    let bytes = event.bytes.unwrap_or(0);
    words::say(
        lang,
        &key,
        &[
            ("side", &word("side", Some(side))),
            ("other", &word("side", Some(other))),
            ("frame_no", &event.start.frame_no),
            ("frames", &frames),
            ("span", &span),
            ("bytes", &bytes),
            ("count", &event.count),
            ("cause", &word("cause", event.cause)),
            ("end", &word("end", event.end_reason)),
        ],
    )
}

/// The first few frame numbers.
pub(super) struct FrameWords<'a>(pub &'a [u64], pub Lang);

impl fmt::Display for FrameWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        let (comma, rest) = match self.1 {
            Lang::En => (", ", " ..."),
            Lang::Zh => ("、", "……"),
        };
        for (at, frame_no) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{frame_no}", if at > 0 { comma } else { "" })?;
        }
        if self.0.len() > SHOWN { f.write_str(rest) } else { Ok(()) }
    }
}

impl TableRow for TcpEventRow {
    type Builder = TcpEventBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        let ips = [self.client_ip, self.server_ip, Ip::NONE, Ip::NONE];
        RowSubject::of(self.time, ips, Some(self.client_port), Some(self.server_port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_shown_short() {
        assert_eq!(FrameWords(&[1, 2, 3, 4, 5, 6], Lang::En).to_string(), "1, 2, 3, 4, 5 ...");
        assert_eq!(FrameWords(&[1, 2, 3, 4, 5, 6], Lang::Zh).to_string(), "1、2、3、4、5……");
        assert_eq!(FrameWords(&[7], Lang::Zh).to_string(), "7");
    }
}
