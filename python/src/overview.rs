//! A capture at a glance, as a dictionary.

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyList};
use wirelab::Overview;
use wirelab::overview::{DnsCounts, Happening, RttCounts};

use crate::cells;
use crate::input::inputs;
use crate::observer::{PyObserver, Raised};
use crate::request::RunOptions;

#[pyfunction]
#[pyo3(signature = (given, options, progress))]
pub fn overview<'py>(
    py: Python<'py>,
    given: Vec<Bound<'py, PyAny>>,
    options: RunOptions,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let raised = Raised::default();
    let (inputs, options) = (inputs(given, &raised)?, options.into_core());
    let mut observer = PyObserver::new(progress, raised);
    let seen = observer.run(py, |observer| wirelab::overview(inputs, &options, observer))?;
    observer.finish(py)?;
    to_py(py, &seen)
}

/// The keys are the package's contract: `wirelab info --json` prints them.
pub fn to_py<'py>(py: Python<'py>, seen: &Overview) -> PyResult<Bound<'py, PyAny>> {
    let summary = &seen.summary;
    let all = PyDict::new(py);
    all.set_item("frames", summary.frames)?;
    all.set_item("original_bytes", summary.original_bytes)?;
    all.set_item("captured_bytes", summary.captured_bytes)?;
    all.set_item("first_time_ns", summary.first_time_ns)?;
    all.set_item("last_time_ns", summary.last_time_ns)?;
    all.set_item("protocols", protocols(py, seen)?)?;
    all.set_item("files", files(py, seen)?)?;
    all.set_item("findings", cells::dicts(py, &seen.findings.batches)?)?;
    all.set_item("interfaces", cells::dicts(py, &seen.interfaces.batches)?)?;
    let timeline = PyDict::new(py);
    timeline.set_item("start_ns", seen.timeline.start_ns())?;
    timeline.set_item("bin_ns", seen.timeline.bin_ns())?;
    timeline.set_item("bytes", seen.timeline.bins())?;
    all.set_item("timeline", timeline)?;
    let connections = PyDict::new(py);
    connections.set_item("count", seen.connection_count)?;
    connections.set_item("largest", cells::dicts(py, &seen.top_connections.batches)?)?;
    all.set_item("connections", connections)?;
    all.set_item("tcp_happenings", happenings(py, &seen.tcp_happenings)?)?;
    let reordered = PyDict::new(py);
    reordered.set_item("segments", seen.reordered.segments)?;
    reordered.set_item("connections", seen.reordered.connections)?;
    all.set_item("reordered", reordered)?;
    all.set_item("too_big", too_big(py, seen)?)?;
    all.set_item("roce", roce(py, seen)?)?;
    all.set_item("pauses", pauses(py, seen)?)?;
    all.set_item("tunnels", tunnels(py, seen)?)?;
    all.set_item("probes", probes(py, seen)?)?;
    all.set_item("dns", dns(py, seen)?)?;
    all.set_item("udp_flows", udp_flows(py, seen)?)?;
    Ok(all.into_any())
}

fn protocols<'py>(py: Python<'py>, seen: &Overview) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (protocol, frames) in seen.summary.protocols.iter().filter(|(_, frames)| *frames > 0) {
        let one = PyDict::new(py);
        one.set_item("protocol", protocol)?;
        one.set_item("frames", frames)?;
        list.append(one)?;
    }
    Ok(list)
}

fn files<'py>(py: Python<'py>, seen: &Overview) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for file in &seen.files {
        let one = PyDict::new(py);
        one.set_item("name", &file.name)?;
        one.set_item("format", file.format)?;
        one.set_item("compression", file.compression)?;
        one.set_item("stored_bytes", file.stored_bytes)?;
        one.set_item("frames", file.frames)?;
        one.set_item("first_time_ns", file.first_time_ns)?;
        one.set_item("last_time_ns", file.last_time_ns)?;
        list.append(one)?;
    }
    Ok(list)
}

fn happenings<'py>(py: Python<'py>, seen: &[Happening]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for happening in seen {
        let one = PyDict::new(py);
        one.set_item("outcome", happening.outcome.name())?;
        one.set_item("events", happening.events)?;
        one.set_item("count", happening.count)?;
        one.set_item("longest_ns", happening.longest_ns)?;
        one.set_item("longest", cells::dicts(py, std::slice::from_ref(&happening.longest))?.get_item(0)?)?;
        let queue_pairs = PyList::empty(py);
        for queue_pair in &happening.queue_pairs {
            let ends = PyDict::new(py);
            ends.set_item("requester_ip", &queue_pair.requester_ip)?;
            ends.set_item("requester_qp", queue_pair.requester_qp)?;
            ends.set_item("responder_ip", &queue_pair.responder_ip)?;
            ends.set_item("responder_qp", queue_pair.responder_qp)?;
            queue_pairs.append(ends)?;
        }
        one.set_item("queue_pairs", queue_pairs)?;
        one.set_item("has_more_queue_pairs", happening.has_more_queue_pairs)?;
        list.append(one)?;
    }
    Ok(list)
}

fn too_big<'py>(py: Python<'py>, seen: &Overview) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (said, messages) in seen.too_big.iter() {
        let one = PyDict::new(py);
        one.set_item("by", &said.by)?;
        one.set_item("src_ip", &said.src_ip)?;
        one.set_item("dst_ip", &said.dst_ip)?;
        one.set_item("mtu", said.mtu)?;
        one.set_item("messages", messages)?;
        list.append(one)?;
    }
    Ok(list)
}

fn roce<'py>(py: Python<'py>, seen: &Overview) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("packets", seen.roce.packets)?;
    all.set_item("payload_bytes", seen.roce.payload_bytes)?;
    all.set_item("ce_count", seen.roce.ce_count)?;
    all.set_item("queue_pair_count", seen.roce.queue_pair_count)?;
    all.set_item("management_count", seen.roce.management_count)?;
    all.set_item("largest", cells::dicts(py, &seen.roce.top_queue_pairs)?)?;
    all.set_item("event_count", seen.roce.event_count)?;
    all.set_item("first_events", cells::dicts(py, &seen.roce.first_events)?)?;
    all.set_item("happenings", happenings(py, &seen.roce.happenings)?)?;
    let opcodes = PyList::empty(py);
    for (opcode, name, packets) in &seen.roce.opcodes {
        let one = PyDict::new(py);
        one.set_item("opcode", opcode)?;
        one.set_item("opcode_name", name)?;
        one.set_item("packets", packets)?;
        opcodes.append(one)?;
    }
    all.set_item("opcodes", opcodes)?;
    let syndromes = PyList::empty(py);
    for (aeth, packets) in seen.roce.syndromes.iter() {
        let one = PyDict::new(py);
        one.set_item("aeth", aeth)?;
        one.set_item("packets", packets)?;
        syndromes.append(one)?;
    }
    all.set_item("syndromes", syndromes)?;
    Ok(all)
}

fn pauses<'py>(py: Python<'py>, seen: &Overview) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for ((kind, class, src_mac), counts) in seen.pauses.iter() {
        let one = PyDict::new(py);
        one.set_item("kind", kind)?;
        one.set_item("class", class)?;
        one.set_item("src_mac", src_mac)?;
        one.set_item("pause_count", counts.pause_count)?;
        one.set_item("resume_count", counts.resume_count)?;
        one.set_item("largest_quanta", counts.largest_quanta)?;
        list.append(one)?;
    }
    Ok(list)
}

fn tunnels<'py>(py: Python<'py>, seen: &Overview) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for ((kind, vni), counts) in seen.tunnels.iter() {
        let one = PyDict::new(py);
        one.set_item("kind", kind)?;
        one.set_item("vni", vni)?;
        one.set_item("packets", counts.packets)?;
        one.set_item("overhead_bytes", counts.overhead_bytes)?;
        list.append(one)?;
    }
    Ok(list)
}

fn probes<'py>(py: Python<'py>, seen: &Overview) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for ((protocol, src_ip, dst_ip), counts) in seen.probes.iter() {
        let one = PyDict::new(py);
        one.set_item("protocol", protocol)?;
        one.set_item("src_ip", src_ip)?;
        one.set_item("dst_ip", dst_ip)?;
        one.set_item("sent_count", counts.sent_count)?;
        one.set_item("lost_count", counts.lost_count)?;
        one.set_item("error_count", counts.error_count)?;
        set_rtts(&one, &counts.rtt)?;
        list.append(one)?;
    }
    Ok(list)
}

fn set_rtts(one: &Bound<'_, PyDict>, rtt: &RttCounts) -> PyResult<()> {
    one.set_item("rtt_min_ns", rtt.min_ns)?;
    one.set_item("rtt_mean_ns", rtt.mean_ns())?;
    one.set_item("rtt_max_ns", rtt.max_ns)
}

fn dns<'py>(py: Python<'py>, seen: &Overview) -> PyResult<Bound<'py, PyDict>> {
    let questions = PyList::empty(py);
    for (question, counts) in &seen.dns.questions {
        let one = PyDict::new(py);
        one.set_item("server_ip", &question.server_ip)?;
        one.set_item("query_name", &question.name)?;
        one.set_item("query_type", &question.record_type)?;
        set_dns_counts(&one, counts)?;
        questions.append(one)?;
    }
    let all = PyDict::new(py);
    set_dns_counts(&all, &seen.dns.total)?;
    all.set_item("question_count", seen.dns.question_count)?;
    all.set_item("left_out_count", seen.dns.left_out)?;
    all.set_item("questions", questions)?;
    all.set_item("silent_servers", &seen.dns.silent_servers)?;
    Ok(all)
}

fn set_dns_counts(one: &Bound<'_, PyDict>, counts: &DnsCounts) -> PyResult<()> {
    one.set_item("query_count", counts.query_count)?;
    one.set_item("unanswered_count", counts.unanswered_count)?;
    one.set_item("retry_count", counts.retry_count)?;
    one.set_item("wrong_count", counts.wrong_count())?;
    one.set_item("failures", counts.failures.iter().collect::<Vec<_>>().into_py_dict(one.py())?)?;
    set_rtts(one, &counts.rtt)
}

fn udp_flows<'py>(py: Python<'py>, seen: &Overview) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("count", seen.udp_flow_count)?;
    all.set_item("largest", cells::dicts(py, &seen.top_udp_flows)?)?;
    Ok(all)
}
