//! Which rows come out. Analyses always see every frame.

use crate::tables::RowSubject;
use crate::wire::Ip;

/// Keeps rows by time, host and port; each part that is empty keeps everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Nanoseconds since 1970-01-01 UTC; rows before it are left out.
    pub time_from_ns: Option<i64>,
    /// Rows at or after it are left out.
    pub time_to_ns: Option<i64>,
    /// Rows that speak of none of these addresses, in any role, are left out.
    pub hosts: Vec<Ip>,
    /// Rows that speak of none of these TCP, UDP or SCTP ports are left out.
    pub ports: Vec<u16>,
}

impl Filter {
    pub fn is_empty(&self) -> bool {
        self.time_from_ns.is_none() && self.time_to_ns.is_none() && self.hosts.is_empty() && self.ports.is_empty()
    }

    pub(crate) fn keeps(&self, row: &RowSubject) -> bool {
        let in_time = match row.time_ns {
            Some(time) => {
                self.time_from_ns.is_none_or(|from| time >= from) && self.time_to_ns.is_none_or(|to| time < to)
            }
            None => self.time_from_ns.is_none() && self.time_to_ns.is_none(),
        };
        in_time
            && (self.hosts.is_empty() || row.ips.iter().any(|ip| self.hosts.contains(ip)))
            && (self.ports.is_empty() || row.ports.iter().flatten().any(|port| self.ports.contains(port)))
    }
}
