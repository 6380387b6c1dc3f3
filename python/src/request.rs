//! Options and filters as the package hands them over.

use std::net::IpAddr;
use std::num::NonZeroUsize;

use pyo3::prelude::*;
use wirelab::wire::Ip;
use wirelab::{Checksums, Filter, Lang, Options, RoceEndpoint};

use crate::error::{usage, usage_in};

pub type Endpoint = (String, u32, u32, Option<u32>, Option<u64>, Option<u32>);

/// Settings of a run; the package has checked their ranges.
#[derive(FromPyObject)]
pub struct RunOptions {
    #[pyo3(item)]
    threads: Option<usize>,
    #[pyo3(item)]
    link_speed_bps: Option<u64>,
    #[pyo3(item)]
    vxlan_ports: Option<Vec<u16>>,
    #[pyo3(item)]
    roce_ports: Option<Vec<u16>>,
    #[pyo3(item)]
    pause_storm_ns: Option<i64>,
    /// Address, queue pair number, first packet sequence number, remote key, virtual address, number of the peer.
    #[pyo3(item)]
    roce_endpoints: Vec<Endpoint>,
    /// `auto`, `on` or `off`.
    #[pyo3(item)]
    checksums: String,
    #[pyo3(item)]
    memory_budget_bytes: Option<u64>,
}

impl RunOptions {
    pub fn into_core(self) -> Options {
        let default = Options::default();
        Options {
            threads: self.threads.and_then(NonZeroUsize::new),
            link_speed_bps: self.link_speed_bps,
            vxlan_ports: self.vxlan_ports.unwrap_or(default.vxlan_ports),
            roce_ports: self.roce_ports.unwrap_or(default.roce_ports),
            pause_storm_ns: self.pause_storm_ns.unwrap_or(default.pause_storm_ns),
            roce_endpoints: self.roce_endpoints.into_iter().filter_map(endpoint).collect(),
            checksums: match self.checksums.as_str() {
                "on" => Checksums::On,
                "off" => Checksums::Off,
                _ => Checksums::Auto,
            },
            memory_budget_bytes: self.memory_budget_bytes,
            ..default
        }
    }
}

fn endpoint((ip, qpn, psn, rkey, vaddr, peer_qpn): Endpoint) -> Option<RoceEndpoint> {
    // The package has read the address before.
    Some(RoceEndpoint { ip: ip.parse().ok()?, qpn, psn, rkey, vaddr, peer_qpn })
}

/// The queue pairs that a log of perftest names.
#[pyfunction]
pub fn log_endpoints(py: Python<'_>, name: &str, log: &[u8]) -> PyResult<Vec<Endpoint>> {
    let found = py.detach(|| wirelab::logs::roce_endpoints(log)).map_err(|failure| {
        let [english, chinese] = [Lang::En, Lang::Zh].map(|lang| format!("{name}: {}", failure.message(lang)));
        usage_in(py, &english, &chinese)
    })?;
    let ends = found.into_iter();
    Ok(ends.map(|end| (end.ip.to_string(), end.qpn, end.psn, end.rkey, end.vaddr, end.peer_qpn)).collect())
}

/// Which rows; the package has turned times into nanoseconds.
#[derive(FromPyObject)]
pub struct RowFilter {
    #[pyo3(item)]
    time_from_ns: Option<i64>,
    #[pyo3(item)]
    time_to_ns: Option<i64>,
    #[pyo3(item)]
    hosts: Vec<String>,
    #[pyo3(item)]
    ports: Vec<u16>,
}

impl RowFilter {
    pub fn into_core(self, py: Python<'_>) -> PyResult<Filter> {
        let hosts = self.hosts.iter().map(|host| match host.parse() {
            Ok(IpAddr::V4(address)) => Ok(Ip::v4(address.octets())),
            Ok(IpAddr::V6(address)) => Ok(Ip::v6(address.octets())),
            Err(_) => Err(usage(py, &format!("host must be an IP address, not {host}"))),
        });
        Ok(Filter {
            time_from_ns: self.time_from_ns,
            time_to_ns: self.time_to_ns,
            hosts: hosts.collect::<PyResult<_>>()?,
            ports: self.ports,
        })
    }
}
