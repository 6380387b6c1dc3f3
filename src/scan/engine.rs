//! Drives a run: reads the next window while the last one is processed, hands out batches.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::ahead::Ahead;
use super::core::{Core, Sinks};
use super::filter::Filter;
use super::finish::sentence;
use super::gate::{Asker, Gate, Progress};
use super::sink::Sink;
use super::tally::Summary;
use crate::capture::{CaptureFacts, Input, Reader, Severity};
use crate::error::Error;
use crate::observe::Observer;
use crate::options::Options;
use crate::tables::{Projection, TableId};
use crate::words::Lang;

/// What a run shall compute; nothing else is.
#[derive(Clone, Debug)]
pub struct ScanRequest {
    pub table: TableId,
    /// Columns in the order wanted; `None` = all.
    pub columns: Option<Vec<String>>,
    pub filter: Filter,
}

impl ScanRequest {
    pub fn new(table: TableId) -> Self {
        Self { table, columns: None, filter: Filter::default() }
    }
}

/// A step ends after so many windows, if it has no batches to give out before.
const MOST_WINDOWS: usize = 16;

/// A run over a capture.
pub(crate) struct Engine {
    ahead: Ahead,
    core: Core,
    pool: Option<Arc<rayon::ThreadPool>>,
    /// No reading waits for another program or calls back into Python: else it is done by the calling thread, which Ctrl-C
    /// reaches, and a step takes what there is.
    is_at_hand: bool,
    is_finished: bool,
    progress: Progress,
}

impl Engine {
    pub fn new(inputs: Vec<Input>, options: &Options, requests: &[ScanRequest]) -> Result<Self, Error> {
        Self::with_pool(inputs, options, requests, pool(options)?)
    }

    /// The same, with workers that several runs share; without any, all is done on the calling thread.
    pub fn with_pool(
        inputs: Vec<Input>,
        options: &Options,
        requests: &[ScanRequest],
        pool: Option<Arc<rayon::ThreadPool>>,
    ) -> Result<Self, Error> {
        let sinks = sinks(requests)?;
        let is_at_hand = inputs.iter().all(Input::is_at_hand);
        let reader = Reader::open(inputs, &options.limits)?;
        let needs_flows = requests.iter().any(needs_flows);
        let core = Core::new(options, sinks, needs_flows, reader.total_bytes());
        Ok(Self {
            ahead: Ahead::new(reader),
            core,
            pool,
            is_at_hand,
            is_finished: false,
            progress: Progress::default(),
        })
    }

    /// Processes some windows; `None` once all is done. The batches may be none for a while.
    pub fn step(&mut self, observer: &mut dyn Observer) -> Result<Option<Vec<(TableId, RecordBatch)>>, Error> {
        if self.is_finished {
            return Ok(None);
        }
        let stop = AtomicBool::new(false);
        let mut asker = Asker::new(observer, &stop, &self.progress);
        if asker.is_over() {
            return self.batches(&stop);
        }
        let pool = self.pool.as_deref();
        if self.ahead.is_over()? {
            let (core, facts, is_finished) = (&mut self.core, self.ahead.facts(), &mut self.is_finished);
            let finish = |gate: &mut Gate<'_, '_>, _: &dyn Fn()| *is_finished = core.finish(facts, gate);
            asker.run(pool, finish, || {}, || {});
            return self.batches(&stop);
        }
        let (core, is_at_hand, progress) = (&mut self.core, self.is_at_hand, &self.progress);
        let (ahead, is_busy) = (self.ahead.share(), AtomicBool::new(true));
        let first = if is_at_hand { None } else { ahead.next() };
        let mut next_time = first.as_ref().filter(|window| core.needs_next(window)).and_then(|_| ahead.next_time());
        let process = |gate: &mut Gate<'_, '_>, read_on: &dyn Fn()| {
            let mut left = if is_at_hand { MOST_WINDOWS } else { usize::from(first.is_some()) };
            let mut next = first;
            while left > 0
                && let Some(window) = next.take().or_else(|| ahead.next())
            {
                progress.set(window.done_bytes, window.total_bytes);
                // The next windows are read while this one is worked on.
                if is_at_hand && ahead.wants_reader() {
                    read_on();
                }
                if is_at_hand {
                    next_time = if core.needs_next(&window) { ahead.next_time() } else { None };
                }
                core.process(&window, next_time, gate);
                ahead.reuse(window.records);
                let is_enough = core.has_batches() || gate.is_shut();
                left = if is_enough { 0 } else { left - 1 };
            }
            is_busy.store(false, Ordering::Relaxed);
        };
        let read = || ahead.read_on(|| !is_busy.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed));
        let beside = || {
            if !is_at_hand {
                ahead.read_one();
            }
        };
        asker.run(pool, process, read, beside);
        self.batches(&stop)
    }

    /// What a step gave out. One that was given up is the last.
    fn batches(&mut self, stop: &AtomicBool) -> Result<Option<Vec<(TableId, RecordBatch)>>, Error> {
        if stop.load(Ordering::Relaxed) {
            self.is_finished = true;
            return Err(Error::Cancelled);
        }
        self.core.take_batches().map(Some)
    }

    pub fn summary(&self) -> Summary {
        self.core.summary()
    }

    pub fn facts(&self) -> &CaptureFacts {
        self.ahead.facts()
    }

    /// What is wrong with the files themselves (cut, damaged, not wholly decompressed), in words; complete at the end.
    pub fn warnings(&self, lang: Lang) -> Vec<String> {
        let facts = self.facts();
        let grave = facts.findings.iter().filter(|finding| finding.severity > Severity::Info);
        grave.map(|finding| sentence(finding, facts, lang)).collect()
    }
}

/// The workers of a run; none where one thread shall do all.
pub(crate) fn pool(options: &Options) -> Result<Option<Arc<rayon::ThreadPool>>, Error> {
    let threads = options.thread_count();
    if threads < 2 {
        return Ok(None);
    }
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|at| format!("wirelab-{at}"));
    builder.build().map(|pool| Some(Arc::new(pool))).map_err(|error| Error::Usage(error.to_string()))
}

fn needs_flows(request: &ScanRequest) -> bool {
    let wants = |column: &str| request.columns.as_ref().is_none_or(|columns| columns.iter().any(|name| name == column));
    match request.table {
        TableId::Tcp
        | TableId::TcpFlows
        | TableId::TcpEvents
        | TableId::Flows
        | TableId::Probes
        | TableId::Dns
        | TableId::CaptureQuality => true,
        TableId::Pause
        | TableId::PauseIntervals
        | TableId::Lldp
        | TableId::Arp
        | TableId::Interfaces
        | TableId::RoceQps
        | TableId::RoceMessages
        | TableId::RoceIntervals
        | TableId::RoceEvents => false,
        TableId::Packets => wants("flow_id") || wants("duplicate_of") || wants("duplicate_kind"),
        TableId::Roce | TableId::Tunnels | TableId::Icmp => wants("flow_id"),
    }
}

/// A filter by what a table's rows do not have would leave nothing, which reads as if there were nothing.
fn check_filter(request: &ScanRequest) -> Result<(), Error> {
    let (has_time, has_hosts, has_ports) = match request.table {
        TableId::Interfaces | TableId::CaptureQuality => (false, false, false),
        TableId::Pause | TableId::PauseIntervals => (true, false, false),
        TableId::Arp
        | TableId::Lldp
        | TableId::Probes
        | TableId::RoceQps
        | TableId::RoceMessages
        | TableId::RoceIntervals
        | TableId::RoceEvents => (true, true, false),
        _ => (true, true, true),
    };
    let filter = &request.filter;
    let by_time = filter.time_from_ns.is_some() || filter.time_to_ns.is_some();
    let refused = [
        (by_time && !has_time, "time"),
        (!filter.hosts.is_empty() && !has_hosts, "address"),
        (!filter.ports.is_empty() && !has_ports, "port"),
    ];
    match refused.iter().find(|(is_refused, _)| *is_refused) {
        Some((_, what)) => {
            let table = request.table.name();
            Err(Error::Usage(format!("the rows of table {table} have no {what}: they cannot be filtered by it")))
        }
        None => Ok(()),
    }
}

fn sinks(requests: &[ScanRequest]) -> Result<Sinks, Error> {
    let mut sinks = Sinks::default();
    for request in requests {
        let projection = request.table.definition().project(request.columns.as_deref())?;
        check_filter(request)?;
        let filter = request.filter.clone();
        fn sink<R: crate::tables::TableRow>(projection: Projection, filter: Filter) -> Option<Sink<R>> {
            Some(Sink::new(projection, filter))
        }
        match request.table {
            TableId::Packets => sinks.packets = sink(projection, filter),
            TableId::Tcp => sinks.tcp = sink(projection, filter),
            TableId::TcpFlows => sinks.tcp_flows = sink(projection, filter),
            TableId::TcpEvents => sinks.tcp_events = sink(projection, filter),
            TableId::Flows => sinks.flows = sink(projection, filter),
            TableId::Roce => sinks.roce = sink(projection, filter),
            TableId::RoceQps => sinks.roce_qps = sink(projection, filter),
            TableId::RoceMessages => sinks.roce_messages = sink(projection, filter),
            TableId::RoceIntervals => sinks.roce_intervals = sink(projection, filter),
            TableId::RoceEvents => sinks.roce_events = sink(projection, filter),
            TableId::Pause => sinks.pause = sink(projection, filter),
            TableId::PauseIntervals => sinks.pause_intervals = sink(projection, filter),
            TableId::Lldp => sinks.lldp = sink(projection, filter),
            TableId::Tunnels => sinks.tunnels = sink(projection, filter),
            TableId::Probes => sinks.probes = sink(projection, filter),
            TableId::Dns => sinks.dns = sink(projection, filter),
            TableId::Icmp => sinks.icmp = sink(projection, filter),
            TableId::Arp => sinks.arp = sink(projection, filter),
            TableId::Interfaces => sinks.interfaces = sink(projection, filter),
            TableId::CaptureQuality => sinks.capture_quality = sink(projection, filter),
        }
    }
    Ok(sinks)
}

/// A scan keeps no table: what it says of the capture must not depend on how much memory there is.
fn without_budget(options: &Options) -> Options {
    Options { memory_budget_bytes: None, ..options.clone() }
}

/// Streams the batches of several tables in one pass, in bounded memory.
pub struct MultiScan {
    engine: Engine,
}

impl MultiScan {
    pub fn new(inputs: Vec<Input>, options: &Options, requests: &[ScanRequest]) -> Result<Self, Error> {
        Ok(Self { engine: Engine::new(inputs, &without_budget(options), requests)? })
    }

    /// The batches that are ready after one more window of input (often none), or `None` at the end.
    pub fn next_batches(&mut self, observer: &mut dyn Observer) -> Result<Option<Vec<(TableId, RecordBatch)>>, Error> {
        self.engine.step(observer)
    }

    pub fn summary(&self) -> Summary {
        self.engine.summary()
    }

    /// See [`Scan::warnings`].
    #[cfg(feature = "sql")]
    pub(crate) fn warnings(&self, lang: Lang) -> Vec<String> {
        self.engine.warnings(lang)
    }
}

/// Streams the batches of one table in bounded memory, whatever the size of the capture.
pub struct Scan {
    engine: Engine,
    schema: SchemaRef,
    ready: VecDeque<RecordBatch>,
    is_done: bool,
}

impl Scan {
    pub fn new(inputs: Vec<Input>, options: &Options, request: ScanRequest) -> Result<Self, Error> {
        let definition = request.table.definition();
        let schema = definition.schema_of(&definition.project(request.columns.as_deref())?);
        let engine = Engine::new(inputs, &without_budget(options), &[request])?;
        Ok(Self { engine, schema, ready: VecDeque::new(), is_done: false })
    }

    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The next batch, or `None` at the end. Batches are never empty.
    pub fn next_batch(&mut self, observer: &mut dyn Observer) -> Result<Option<RecordBatch>, Error> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if self.is_done {
                return Ok(None);
            }
            match self.engine.step(observer) {
                Ok(Some(batches)) => self.ready.extend(batches.into_iter().map(|(_, batch)| batch)),
                Ok(None) => self.is_done = true,
                Err(error) => {
                    self.is_done = true;
                    return Err(error);
                }
            }
        }
    }

    pub fn summary(&self) -> Summary {
        self.engine.summary()
    }

    /// What is wrong with the files themselves (cut, damaged, not wholly decompressed), in words; complete at the end.
    /// All findings on the capture are in table `capture_quality`.
    pub fn warnings(&self, lang: Lang) -> Vec<String> {
        self.engine.warnings(lang)
    }
}

impl Iterator for Scan {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch(&mut crate::observe::Unobserved).transpose()
    }
}

#[cfg(test)]
mod cuts;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::WINDOW_RECORDS;
    use crate::observe::Unobserved;

    /// Frames that a row may wait for evidence: more than there are.
    const LONG: u64 = 1 << 20;

    /// Segments of very many connections, in turn; now and then one comes twice or is missing.
    fn capture(connections: u32, rounds: u32, pause_us: u32) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 101_u32] {
            file.extend(word.to_le_bytes());
        }
        let mut time_us = 0_u32;
        for (round, connection) in (0..rounds).flat_map(|round| (0..connections).map(move |one| (round, one))) {
            let (is_reply, number) = (round % 3 == 2, round * 13 + connection);
            time_us += if connection == 0 { pause_us } else { 0 };
            let copies = if number % 97 == 3 { 0 } else { 1 + u32::from(number % 89 == 5) };
            for _ in 0..copies {
                let flags = if round == 0 { 2_u8 } else { 16 };
                let seq = if is_reply { 1 } else { 1_000 * round + 500 * u32::from(number % 31 == 7) };
                let ack = 1_000 * round * u32::from(is_reply);
                let payload = if is_reply || round == 0 { 0_u16 } else { 1_000 };
                let (near, far) = ([10, 0, 0, 1_u8], [10, 1, (connection >> 8) as u8, connection as u8]);
                let (src, dst) = if is_reply { (far, near) } else { (near, far) };
                let ports = if is_reply { [80, 5_000_u16] } else { [5_000, 80] };
                let mut packet = vec![0x45, 0];
                packet.extend((40 + payload).to_be_bytes());
                packet.extend(((number & 0x7fff) as u16 | 1).to_be_bytes());
                packet.extend([0x40, 0, 64, 6, 0, 0]);
                packet.extend(src.into_iter().chain(dst));
                packet.extend(ports.map(u16::to_be_bytes).concat());
                packet.extend([seq, ack].map(u32::to_be_bytes).concat());
                packet.extend([0x50, flags, 0x20, 0, 0, 0, 0, 0]);
                time_us += 1;
                let lengths = [packet.len() as u32, packet.len() as u32 + u32::from(payload)];
                for word in [time_us / 1_000_000, time_us % 1_000_000 * 1_000, lengths[0], lengths[1]] {
                    file.extend(word.to_le_bytes());
                }
                file.extend(packet);
            }
        }
        file
    }

    fn rows(bytes: &[u8], most_segments: usize, most_idle: usize, hold_frames: u64) -> Vec<(TableId, RecordBatch)> {
        let tables = [TableId::Packets, TableId::Tcp, TableId::TcpFlows, TableId::TcpEvents, TableId::CaptureQuality];
        let requests = tables.map(ScanRequest::new);
        let mut options = Options { threads: std::num::NonZeroUsize::new(1), ..Options::default() };
        options.limits.hold_frames = hold_frames;
        let mut engine = Engine::new(vec![Input::Bytes(bytes.into())], &options, &requests).unwrap();
        engine.core.most_segments = most_segments;
        engine.core.shards.iter_mut().for_each(|shard| shard.keep_idle(most_idle));
        let mut rows = Vec::new();
        while let Some(batches) = engine.step(&mut Unobserved).unwrap() {
            for (table, batch) in batches {
                rows.extend((0..batch.num_rows()).map(|row| (table, batch.slice(row, 1))));
            }
        }
        rows.sort_by_key(|(table, _)| table.name());
        rows
    }

    #[test]
    fn the_rows_are_the_same_however_many_segments_are_followed_at_a_time() {
        let file = capture(2_000, 25, 0);
        let apart = rows(&file, WINDOW_RECORDS / 2, usize::MAX, LONG);
        let joined = rows(&file, 8 * WINDOW_RECORDS, usize::MAX, LONG);
        let of = |table| apart.iter().filter(|(other, _)| *other == table).count();
        assert!(of(TableId::Packets) > 45_000 && of(TableId::TcpFlows) == 2_000, "{}", of(TableId::TcpFlows));
        assert_same(&apart, &joined);
    }

    #[test]
    fn the_rows_are_the_same_whether_quiet_connections_are_packed_or_not() {
        // Every connection is quiet for three seconds between its segments: packed after each of them, and unpacked again.
        let file = capture(700, 25, 3_000_000);
        let at_work = rows(&file, WINDOW_RECORDS / 2, usize::MAX, LONG);
        let packed = rows(&file, WINDOW_RECORDS / 2, 0, LONG);
        assert_same(&at_work, &packed);
    }

    #[test]
    fn the_rows_are_the_same_whether_busy_connections_are_packed_or_not() {
        // Rows of all of them wait all the time; with the shorter hold most come out while their connections are packed.
        let file = capture(2_000, 25, 0);
        for hold_frames in [LONG, 1_500, 20_000] {
            let at_work = rows(&file, WINDOW_RECORDS / 2, usize::MAX, hold_frames);
            let packed = rows(&file, WINDOW_RECORDS / 2, 0, hold_frames);
            assert_same(&at_work, &packed);
        }
    }

    fn assert_same(one: &[(TableId, RecordBatch)], other: &[(TableId, RecordBatch)]) {
        assert_eq!(one.len(), other.len());
        for (one, other) in one.iter().zip(other) {
            assert_eq!(one, other);
        }
    }
}
