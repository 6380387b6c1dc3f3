//! Options and filters as the package hands them over.

use std::net::IpAddr;
use std::num::NonZeroUsize;

use pyo3::prelude::*;
use wirelab::wire::Ip;
use wirelab::{Checksums, Filter, Options};

use crate::error::usage;

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
