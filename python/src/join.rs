//! Two captures of the same traffic, compared.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use wirelab::join::{FlowCounts, PointFacts, TravelCounts};
use wirelab::{Lang, MatchOptions, MatchSummary, TableData};

use crate::input::inputs;
use crate::observer::{PyObserver, Raised};
use crate::request::RunOptions;
use crate::table::Table;

/// The table `matches`, and a dictionary of figures; its keys are the package's contract.
#[pyfunction]
#[pyo3(signature = (a, b, options, is_same_clock, packets, is_unmatched_only, progress))]
#[expect(clippy::too_many_arguments, reason = "the package names them all")]
pub fn match_captures<'py>(
    py: Python<'py>,
    a: Vec<Bound<'py, PyAny>>,
    b: Vec<Bound<'py, PyAny>>,
    options: RunOptions,
    is_same_clock: bool,
    packets: Option<usize>,
    is_unmatched_only: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Table, Bound<'py, PyDict>)> {
    let raised = Raised::default();
    let (a, b) = (inputs(a, &raised)?, inputs(b, &raised)?);
    let default = MatchOptions::default();
    let options = MatchOptions { run: options.into_core(), packets: packets.unwrap_or(default.packets), is_same_clock };
    let mut observer = PyObserver::new(progress, raised);
    let (data, summary) = observer.run(py, |observer| {
        let matches = wirelab::match_captures(a, b, &options, observer)?;
        let mut batches = Vec::new();
        for batch in matches.batches(is_unmatched_only) {
            observer.go_on()?;
            batches.push(batch?);
        }
        Ok((TableData { schema: matches.schema(), batches }, matches.summary().clone()))
    })?;
    observer.finish(py)?;
    Ok((Table::new(Arc::new(data)), to_py(py, &summary)?))
}

fn to_py<'py>(py: Python<'py>, summary: &MatchSummary) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("a", point(py, &summary.a)?)?;
    all.set_item("b", point(py, &summary.b)?)?;
    for (name, counts) in [("a_to_b", &summary.a_to_b), ("b_to_a", &summary.b_to_a), ("unknown", &summary.unknown)] {
        let one = PyDict::new(py);
        travel(&one, counts)?;
        all.set_item(name, one)?;
    }
    let flows = PyList::empty(py);
    for flow in &summary.flows {
        flows.append(flow_of(py, flow)?)?;
    }
    all.set_item("flows", flows)?;
    all.set_item("flows_left_out", summary.flows_left_out)?;
    all.set_item("is_same_clock", summary.is_same_clock)?;
    let offset = summary.clock_offset;
    all.set_item("clock_offset_ns", offset.map(|offset| offset.estimate_ns))?;
    all.set_item("clock_offset_low_ns", offset.map(|offset| offset.low_ns))?;
    all.set_item("clock_offset_high_ns", offset.map(|offset| offset.high_ns))?;
    let notes = PyDict::new(py);
    notes.set_item("en", summary.sentences(Lang::En))?;
    notes.set_item("zh", summary.sentences(Lang::Zh))?;
    all.set_item("notes", notes)?;
    Ok(all)
}

fn point<'py>(py: Python<'py>, facts: &PointFacts) -> PyResult<Bound<'py, PyDict>> {
    let one = PyDict::new(py);
    one.set_item("frames", facts.frames)?;
    one.set_item("packets", facts.packets)?;
    one.set_item("not_compared", facts.not_compared)?;
    one.set_item("copies", facts.copies)?;
    one.set_item("is_cut", facts.is_cut)?;
    one.set_item("first_time_ns", facts.first_time_ns)?;
    one.set_item("last_time_ns", facts.last_time_ns)?;
    Ok(one)
}

fn travel(one: &Bound<'_, PyDict>, counts: &TravelCounts) -> PyResult<()> {
    let named = [
        ("sent_count", counts.sent_count),
        ("delivered_count", counts.delivered_count),
        ("resegmented_count", counts.resegmented_count),
        ("lost_count", counts.lost_count),
        ("lost_bytes", counts.lost_bytes),
        ("duplicated_count", counts.duplicated_count),
        ("reordered_count", counts.reordered_count),
        ("not_captured_count", counts.not_captured_count),
        ("outside_count", counts.outside_count),
        ("unmatched_count", counts.unmatched_count),
    ];
    for (name, count) in named {
        one.set_item(name, count)?;
    }
    one.set_item("delay_min_ns", counts.delay.map(|delay| delay.min_ns))?;
    one.set_item("delay_median_ns", counts.delay.map(|delay| delay.median_ns))?;
    one.set_item("delay_p99_ns", counts.delay.map(|delay| delay.p99_ns))
}

fn flow_of<'py>(py: Python<'py>, flow: &FlowCounts) -> PyResult<Bound<'py, PyDict>> {
    let one = PyDict::new(py);
    one.set_item("src_ip", flow.src.ip.to_string())?;
    one.set_item("src_port", flow.src.port)?;
    one.set_item("dst_ip", flow.dst.ip.to_string())?;
    one.set_item("dst_port", flow.dst.port)?;
    one.set_item("protocol", flow.protocol)?;
    one.set_item("direction", flow.direction)?;
    travel(&one, &flow.counts)?;
    Ok(one)
}
