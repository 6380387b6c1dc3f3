//! `dns`.

use super::{Symbol, TimeNs};
use crate::wire::Ip;

table! {
    /// One row per DNS transaction over UDP port 53: a query and its response, matched by addresses, ports, identifier and question. Asking again is a query of its own.
    table "dns" => DnsRow / DnsBuilder {
        /// File of the query, from 1.
        file_no: u32,
        /// Frame of the query in its file; of the response where the query was not captured.
        frame_no: u64,
        /// Time of that frame.
        time: Option<TimeNs>,
        /// Nanoseconds since the first frame of the capture.
        time_rel_ns: Option<i64>,
        /// Flow of that frame.
        flow_id: Option<u64>,
        /// Who asked.
        client_ip: Ip,
        /// Its port.
        client_port: u16,
        /// Who was asked.
        server_ip: Ip,
        /// Its port.
        server_port: u16,
        /// Identifier that both messages carry.
        dns_id: u16,
        /// Kind of query: 0 for an ordinary one.
        opcode: u8,
        /// Name asked for, as it was sent; null where the question cannot be read.
        query_name: Option<String>,
        /// Record type asked for, as a number.
        query_type: Option<u16>,
        /// The same by name: `A`, `AAAA`, `SRV`, `PTR` ...
        query_type_name: Option<Symbol>,
        /// Class asked for: 1 is the Internet.
        query_class: Option<u16>,
        /// Questions in the query (or else in the response).
        question_count: u16,
        /// Whether the client asks for recursion (RD).
        is_recursion_desired: bool,
        /// Whether the query was captured, within the limits of the run before the response: 10 s and 262,144 frames.
        is_query_seen: bool,
        /// How often the same client had asked the same within 30 s and not been answered.
        retry_count: u32,
        /// Frame of the response in its file; null where none was seen.
        response_frame_no: Option<u64>,
        /// Query to response, in nanoseconds.
        rtt_ns: Option<i64>,
        /// Response code: 0 no error, 2 server failure, 3 no such name.
        rcode: Option<u8>,
        /// The same by name: `NOERROR`, `SERVFAIL`, `NXDOMAIN` ...
        rcode_name: Option<Symbol>,
        /// Whether there is a response and it is an authority's (AA).
        is_authoritative: bool,
        /// Whether there is a response and it was cut and should be asked for over TCP (TC).
        is_truncated: bool,
        /// Whether there is a response and its server offers recursion (RA).
        is_recursion_available: bool,
        /// Records in the response's answer section.
        answer_count: Option<u16>,
        /// Records in its authority section.
        authority_count: Option<u16>,
        /// Records in its additional section.
        additional_count: Option<u16>,
        /// What the answers hold, in their order, separated by commas: addresses, names; for other types the type.
        answers: Option<String>,
        /// Responses beyond the first, up to 1 s after it; copies of one packet in the capture do not count.
        duplicate_count: u32,
    }
}
