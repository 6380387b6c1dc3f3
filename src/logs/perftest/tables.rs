//! The tables of a perftest log.

use serde_json::Value;

use super::super::reading::Reading;
use super::super::units::{count, us_ns};
use super::MEBIBYTE;
use crate::RoceEndpoint;
use crate::capture::Severity;
use crate::tables::{Symbol, table};
use crate::wire::Ip;

table! {
    /// One row per run of a perftest program in the log.
    table "perftest" => PerftestRow / PerftestBuilder {
        /// Number of the run in the log, from 1.
        run_no: u32,
        /// Line of the log that it starts on, from 1.
        line: u64,
        /// The test's name, as `RDMA_Write BW Test`.
        test: Option<String>,
        /// `write`, `read`, `send`, `atomic` or `raw_ethernet`.
        operation: Option<Symbol>,
        /// `bandwidth` or `latency`.
        measures: Option<Symbol>,
        /// `server` where the log shows that it waited for a client, `client` where it shows that it did not; null for JSON.
        role: Option<Symbol>,
        /// RDMA device, as `mlx5_0` or `rxe0`.
        device: Option<String>,
        /// Transport service: `RC`, `UC`, `UD`, `XRC`, `DC`.
        connection_type: Option<String>,
        /// `Ethernet` or `IB`.
        link_type: Option<String>,
        /// Queue pairs (`-q`).
        qp_count: Option<u32>,
        /// Path MTU of the connection.
        path_mtu_bytes: Option<u32>,
        /// Index of the GID.
        gid_index: Option<u32>,
        /// Depth of the send queue.
        tx_depth: Option<u32>,
        /// Largest payload sent inline.
        max_inline_bytes: Option<u32>,
        /// How addresses were exchanged: `Ethernet` (a TCP connection) or `rdma_cm`.
        exchange: Option<String>,
        /// Whether there is a line of results.
        is_complete: bool,
        /// What went wrong, as printed.
        error: Option<String>,
    }
}

table! {
    /// One row per queue pair that a perftest program connected. Numbers, keys and addresses are those of the packets.
    table "perftest_qps" => QpRow / QpBuilder {
        /// Number of the run in the log, from 1.
        run_no: u32,
        /// Number of the queue pair in the run, from 1.
        qp_no: u32,
        /// Queue pair number on the side that printed the log.
        local_qp: Option<u32>,
        /// First packet sequence number that it sends.
        local_psn: Option<u32>,
        /// Remote key of its memory.
        local_rkey: Option<u32>,
        /// Virtual address of its memory.
        local_va: Option<u64>,
        /// IPv4 address in its GID, or the GID where it holds none.
        local_ip: Ip,
        /// Queue pair number on the other side.
        remote_qp: Option<u32>,
        /// First packet sequence number that the other side sends.
        remote_psn: Option<u32>,
        /// Remote key of the other side's memory.
        remote_rkey: Option<u32>,
        /// Virtual address of the other side's memory.
        remote_va: Option<u64>,
        /// IPv4 address in the other side's GID, or the GID where it holds none.
        remote_ip: Ip,
    }
}

table! {
    /// One row per line of results, that is per message size.
    table "perftest_results" => ResultRow / ResultBuilder {
        /// Number of the run in the log, from 1.
        run_no: u32,
        /// Line of the log, from 1.
        line: u64,
        /// Size of a message.
        message_bytes: Option<u64>,
        /// Messages sent, of all queue pairs.
        iteration_count: Option<u64>,
        /// Unit that the program printed bandwidth in: `MiB/s` (whatever its label says, a MB is 2^20 bytes) or `Gb/s`.
        unit: Option<Symbol>,
        /// Best bandwidth of a part of the run; null where the program does not measure it (`-D`).
        peak_bps: Option<u64>,
        /// Mean bandwidth, in bits of payload per second.
        average_bps: Option<u64>,
        /// Messages per second.
        messages_per_second: Option<f64>,
        /// Smallest latency: half a round trip, except for reads and atomics.
        latency_min_ns: Option<i64>,
        /// Largest latency.
        latency_max_ns: Option<i64>,
        /// Median latency.
        latency_typical_ns: Option<i64>,
        /// Mean latency.
        latency_avg_ns: Option<i64>,
        /// Standard deviation of the latency.
        latency_stdev_ns: Option<i64>,
        /// 99th percentile of the latency.
        latency_p99_ns: Option<i64>,
        /// 99.9th percentile of the latency.
        latency_p999_ns: Option<i64>,
        /// Transactions per second, of a latency test by duration.
        transactions_per_second: Option<f64>,
    }
}

impl QpRow {
    /// Both ends, as far as the log names them for RoCE.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = RoceEndpoint> {
        let end = |ip: Ip, qpn: Option<u32>, psn: Option<u32>, rkey, vaddr, peer_qpn| {
            let (qpn, psn) = (qpn?, psn?);
            (!ip.is_none()).then_some(RoceEndpoint { ip, qpn, psn, rkey, vaddr, peer_qpn })
        };
        let local = end(self.local_ip, self.local_qp, self.local_psn, self.local_rkey, self.local_va, self.remote_qp);
        let remote =
            end(self.remote_ip, self.remote_qp, self.remote_psn, self.remote_rkey, self.remote_va, self.local_qp);
        local.into_iter().chain(remote)
    }
}

impl PerftestRow {
    pub(super) fn new(run_no: u32, line: u64) -> Self {
        Self {
            run_no,
            line,
            test: None,
            operation: None,
            measures: None,
            role: None,
            device: None,
            connection_type: None,
            link_type: None,
            qp_count: None,
            path_mtu_bytes: None,
            gid_index: None,
            tx_depth: None,
            max_inline_bytes: None,
            exchange: None,
            is_complete: false,
            error: None,
        }
    }

    /// One setting of the heading, as `Mtu : 1024[B]`.
    pub(super) fn setting(&mut self, name: &str, value: &str) {
        let value = value.trim();
        let number = || value.split('[').next().and_then(|number| number.trim().parse().ok());
        let text = || Some(value.to_owned()).filter(|text| !text.is_empty());
        match name.trim() {
            "test" | "Test" => self.name(&value.replace('_', " ").replace("RDMA ", "RDMA_")),
            "Device" => self.device = text(),
            "Number of qps" => self.qp_count = number(),
            "Connection type" => self.connection_type = text(),
            "Link type" => self.link_type = text(),
            "Mtu" => self.path_mtu_bytes = number(),
            "GID index" => self.gid_index = number(),
            "TX depth" => self.tx_depth = number(),
            "Max inline data" => self.max_inline_bytes = number(),
            "Data ex. method" | "Data ex method" => self.exchange = text(),
            _ => {}
        }
    }

    pub(super) fn name(&mut self, name: &str) {
        let name = name.trim();
        self.operation = [
            ("RDMA_Write", "write"),
            ("RDMA_Read", "read"),
            ("Send", "send"),
            ("Atomic", "atomic"),
            ("Raw Ethernet", "raw_ethernet"),
        ]
        .into_iter()
        .find(|(mark, _)| name.contains(mark))
        .map(|(_, operation)| Symbol(operation));
        self.measures = if name.contains("Latency") {
            Some(Symbol("latency"))
        } else if name.contains("BW") {
            Some(Symbol("bandwidth"))
        } else {
            None
        };
        self.test = Some(name.to_owned());
    }
}

impl QpRow {
    pub(super) fn new(run_no: u32, qp_no: u32) -> Self {
        Self {
            run_no,
            qp_no,
            local_qp: None,
            local_psn: None,
            local_rkey: None,
            local_va: None,
            local_ip: Ip::NONE,
            remote_qp: None,
            remote_psn: None,
            remote_rkey: None,
            remote_va: None,
            remote_ip: Ip::NONE,
        }
    }
}

impl ResultRow {
    pub(super) fn new(run_no: u32, line: u64) -> Self {
        Self {
            run_no,
            line,
            message_bytes: None,
            iteration_count: None,
            unit: None,
            peak_bps: None,
            average_bps: None,
            messages_per_second: None,
            latency_min_ns: None,
            latency_max_ns: None,
            latency_typical_ns: None,
            latency_avg_ns: None,
            latency_stdev_ns: None,
            latency_p99_ns: None,
            latency_p999_ns: None,
            transactions_per_second: None,
        }
    }

    /// Bandwidth in the program's unit, messages in millions per second. A peak of 0 was not measured; a negative figure is a
    /// fault of the program.
    pub(super) fn bandwidth(
        &mut self,
        unit: Option<Symbol>,
        [peak, average, rate]: [Option<f64>; 3],
        reading: &mut Reading,
    ) {
        if [peak, average, rate].iter().flatten().any(|figure| *figure < 0.0) {
            reading.counts("negative_figure", Severity::Warning, Some(self.line), "");
        }
        self.unit = unit.or_else(|| self.unit_of(average?, rate?));
        let factor = match self.unit {
            Some(Symbol("Gb/s")) => 1e9,
            Some(_) => MEBIBYTE * 8.0,
            None => f64::NAN,
        };
        let bps = |figure: Option<f64>| count(figure? * factor);
        self.peak_bps = bps(peak).filter(|peak| *peak > 0);
        self.average_bps = bps(average);
        self.messages_per_second = rate.filter(|rate| *rate >= 0.0).map(|rate| rate * 1e6);
    }

    /// JSON does not always name the unit, but messages per second times their size is the bandwidth.
    fn unit_of(&self, average: f64, rate: f64) -> Option<Symbol> {
        let bits = rate * 1e6 * self.message_bytes? as f64 * 8.0;
        let is_near = |factor: f64| (average * factor / bits - 1.0).abs() < 0.05;
        if is_near(1e9) {
            Some(Symbol("Gb/s"))
        } else if is_near(MEBIBYTE * 8.0) {
            Some(Symbol("MiB/s"))
        } else {
            None
        }
    }

    pub(super) fn from_json(
        run_no: u32,
        line: u64,
        value: &Value,
        unit: Option<Symbol>,
        reading: &mut Reading,
    ) -> Self {
        let number = |names: &[&str]| names.iter().find_map(|name| value.get(name)).and_then(Value::as_f64);
        let mut row = Self::new(run_no, line);
        row.message_bytes = number(&["MsgSize", "#bytes"]).and_then(count);
        row.iteration_count = number(&["n_iterations", "#iterations"]).and_then(count);
        row.bandwidth(unit, [number(&["BW_peak"]), number(&["BW_average"]), number(&["MsgRate"])], reading);
        let us = |names: &[&str]| number(names).and_then(us_ns);
        row.latency_min_ns = us(&["t_min"]);
        row.latency_max_ns = us(&["t_max"]);
        row.latency_typical_ns = us(&["t_typical"]);
        row.latency_avg_ns = us(&["t_avg"]);
        row.latency_stdev_ns = us(&["t_stdev"]);
        row.latency_p99_ns = us(&["percentile_99", "t_99percentile", "99_percentile"]);
        row.latency_p999_ns = us(&["percentile_99.9", "percentile_99_9", "t_99_9percentile", "99.9_percentile"]);
        row.transactions_per_second = number(&["tps_average", "tps"]);
        row
    }
}
