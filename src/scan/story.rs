//! Rows of `tcp_events`: put in order when the capture was read, each with its sentence.

use std::fmt;

use super::core::Core;
use super::finish::{client_of, ends};
use super::gate::{Gate, ROWS_BETWEEN_LOOKS};
use super::rows::{file_no, relative};
use crate::analyze::{EventKind, StoryEvent};
use crate::flow::Endpoint;
use crate::tables::*;
use crate::wire::Ip;
use crate::words::{self, Lang};

/// An event with the connection it belongs to.
struct Told {
    event: StoryEvent,
    flow_id: u64,
    stream: Option<u64>,
    has_time: bool,
    client: u8,
    ends: (Endpoint, Endpoint),
}

pub(super) fn event_table(core: &mut Core, gate: &mut Gate<'_, '_>) {
    let Some(sink) = &mut core.sinks.tcp_events else { return };
    let mut told = Vec::new();
    for shard in &core.shards {
        for (flow, state) in shard.flows.flows.iter().enumerate() {
            let events = shard.tell(flow, |story, _| story.map(|story| story.events().cloned().collect::<Vec<_>>()));
            let Some(events) = events.flatten() else { continue };
            let connection = shard.connections.get(flow);
            let connection = connection.as_deref();
            let (client, _) = client_of(state, connection);
            let stream = shard.streams.streams.get(state.stream as usize).map(|stream| stream.id);
            told.extend(events.into_iter().map(|event| Told {
                event,
                flow_id: state.id,
                stream,
                has_time: state.first_time_ns.is_some(),
                client,
                ends: ends(state, client),
            }));
        }
    }
    told.sort_unstable_by_key(|told| {
        let Told { event, flow_id, .. } = told;
        (event.start.time_ns, event.start.file, event.start.frame_no, *flow_id, event.kind, event.dir, event.end_ns)
    });
    for (at, told) in told.iter().enumerate() {
        if at % ROWS_BETWEEN_LOOKS == 0 && gate.is_shut() {
            return;
        }
        sink.push(event_row(told, core.first_time_ns));
    }
}

fn event_row(told: &Told, first_ns: Option<i64>) -> TcpEventRow {
    let event = &told.event;
    let side = if event.dir == told.client { "client" } else { "server" };
    let time_ns = told.has_time.then_some(event.start.time_ns);
    let (client, server) = told.ends;
    TcpEventRow {
        file_no: file_no(event.start.file),
        frame_no: event.start.frame_no,
        time: time_ns.map(TimeNs),
        time_rel_ns: relative(time_ns, first_ns),
        flow_id: told.flow_id,
        tcp_stream: told.stream,
        client_ip: client.ip,
        client_port: client.port,
        server_ip: server.ip,
        server_port: server.port,
        kind: Symbol(event.kind.name()),
        side: Symbol(side),
        duration_ns: event.end_ns.saturating_sub(event.start.time_ns),
        end: told.has_time.then_some(TimeNs(event.end_ns)),
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
        _ => format!("event.{kind}"),
    };
    let other = if side == "client" { "server" } else { "client" };
    let frames = FrameWords(event.frames.list());
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
pub(super) struct FrameWords<'a>(pub &'a [u64]);

impl fmt::Display for FrameWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        for (at, frame_no) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{frame_no}", if at > 0 { ", " } else { "" })?;
        }
        if self.0.len() > SHOWN { write!(f, " ...") } else { Ok(()) }
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
        assert_eq!(FrameWords(&[1, 2, 3, 4, 5, 6]).to_string(), "1, 2, 3, 4, 5 ...");
        assert_eq!(FrameWords(&[7]).to_string(), "7");
    }
}
