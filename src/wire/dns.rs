//! DNS messages (RFC 1035) in UDP datagrams.
//!
//! Header of 12 bytes, big-endian; then questions, answers, authorities and additional records:
//!
//! ```text
//!   0      2        4         6         8           10          12
//!   +------+--------+---------+---------+-----------+-----------+
//!   |  ID  | QR      | QDCOUNT | ANCOUNT |  NSCOUNT  |  ARCOUNT  |
//!   |      | Opcode  |         |         |           |           |
//!   |      | AA TC RD|         |         |           |           |
//!   |      | RA RCODE|         |         |           |           |
//!   +------+--------+---------+---------+-----------+-----------+
//! ```

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::error::DecodeErrorKind;

/// A message's header and what its first question asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsMessage {
    pub id: u16,
    /// QR, opcode, AA, TC, RD, RA, Z, RCODE.
    pub flags: u16,
    pub question_count: u16,
    pub answer_count: u16,
    pub authority_count: u16,
    pub additional_count: u16,
    /// The first question.
    pub question: Option<Question>,
    /// Addresses and names that the answers hold, as far as they could be read.
    pub answers: Vec<String>,
}

/// What a question asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// Without the final dot; `.` is the root. Bytes that are no printable ASCII, and dots within a label, are `\ddd`.
    pub name: String,
    pub qtype: u16,
    pub qclass: u16,
}

impl DnsMessage {
    /// UDP port of servers.
    pub const PORT: u16 = 53;
    const HEADER_BYTES: usize = 12;
    /// Answers that are read; more are only counted.
    const MAX_ANSWERS: usize = 64;

    /// Reads a message. What its end, or a name that makes no sense, cuts off is left out; only a header too short is an error.
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeErrorKind> {
        let Some(header) = bytes.first_chunk::<{ Self::HEADER_BYTES }>() else {
            return Err(DecodeErrorKind::Truncated { need_bytes: Self::HEADER_BYTES, have_bytes: bytes.len() });
        };
        let be16 = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let mut message = Self {
            id: be16(0),
            flags: be16(2),
            question_count: be16(4),
            answer_count: be16(6),
            authority_count: be16(8),
            additional_count: be16(10),
            question: None,
            answers: Vec::new(),
        };
        // A message that does not make sense further on still has its header.
        let _ = message.read_records(bytes);
        Ok(message)
    }

    fn read_records(&mut self, bytes: &[u8]) -> Option<()> {
        let mut at = Self::HEADER_BYTES;
        for number in 0..self.question_count {
            let (name, next) = read_name(bytes, at)?;
            let fields = bytes.get(next..)?.first_chunk::<4>()?;
            let question = Question {
                name,
                qtype: u16::from_be_bytes([fields[0], fields[1]]),
                qclass: u16::from_be_bytes([fields[2], fields[3]]),
            };
            at = next + 4;
            if number == 0 {
                self.question = Some(question);
            }
        }
        for _ in 0..usize::from(self.answer_count).min(Self::MAX_ANSWERS) {
            let (_, next) = read_name(bytes, at)?;
            let fields = bytes.get(next..)?.first_chunk::<10>()?;
            let rtype = u16::from_be_bytes([fields[0], fields[1]]);
            let length = usize::from(u16::from_be_bytes([fields[8], fields[9]]));
            let data_at = next + 10;
            let data = bytes.get(data_at..data_at + length)?;
            match rtype {
                1 => {
                    let octets: [u8; 4] = data.try_into().ok()?;
                    self.answers.push(Ipv4Addr::from(octets).to_string());
                }
                28 => {
                    let octets: [u8; 16] = data.try_into().ok()?;
                    self.answers.push(Ipv6Addr::from(octets).to_string());
                }
                // NS, CNAME, PTR.
                2 | 5 | 12 => self.answers.push(read_name(bytes, data_at)?.0),
                // SRV: priority, weight, port, target.
                33 => {
                    let port = data.get(4..6)?;
                    let port = u16::from_be_bytes([port[0], port[1]]);
                    self.answers.push(format!("{}:{port}", read_name(bytes, data_at + 6)?.0));
                }
                _ => self.answers.push(type_name(rtype).map_or_else(|| format!("TYPE{rtype}"), str::to_owned)),
            }
            at = data_at + length;
        }
        Some(())
    }

    pub fn is_response(&self) -> bool {
        self.flags & 0x8000 != 0
    }

    pub fn opcode(&self) -> u8 {
        (self.flags >> 11 & 0xf) as u8
    }

    pub fn rcode(&self) -> u8 {
        (self.flags & 0xf) as u8
    }
}

/// A name of the registry of resource record types.
pub fn type_name(qtype: u16) -> Option<&'static str> {
    Some(match qtype {
        1 => "A",
        2 => "NS",
        5 => "CNAME",
        6 => "SOA",
        12 => "PTR",
        15 => "MX",
        16 => "TXT",
        28 => "AAAA",
        33 => "SRV",
        35 => "NAPTR",
        41 => "OPT",
        43 => "DS",
        46 => "RRSIG",
        47 => "NSEC",
        48 => "DNSKEY",
        64 => "SVCB",
        65 => "HTTPS",
        251 => "IXFR",
        252 => "AXFR",
        255 => "ANY",
        _ => return None,
    })
}

/// A response code by its name (RFC 1035, RFC 2136).
pub fn rcode_name(rcode: u8) -> Option<&'static str> {
    Some(match rcode {
        0 => "NOERROR",
        1 => "FORMERR",
        2 => "SERVFAIL",
        3 => "NXDOMAIN",
        4 => "NOTIMP",
        5 => "REFUSED",
        6 => "YXDOMAIN",
        7 => "YXRRSET",
        8 => "NXRRSET",
        9 => "NOTAUTH",
        10 => "NOTZONE",
        _ => return None,
    })
}

/// A name that starts at `at`, and where what follows it starts. Compression pointers lead backwards, or it is no name.
fn read_name(bytes: &[u8], at: usize) -> Option<(String, usize)> {
    /// RFC 1035 2.3.4.
    const MAX_NAME_BYTES: usize = 255;
    let (mut name, mut name_bytes) = (String::new(), 0);
    let (mut at, mut end, mut lowest) = (at, None, at);
    loop {
        let length = usize::from(*bytes.get(at)?);
        match length >> 6 {
            0 if length == 0 => break,
            0 => {
                name_bytes += length + 1;
                if name_bytes > MAX_NAME_BYTES {
                    return None;
                }
                if !name.is_empty() {
                    name.push('.');
                }
                for &byte in bytes.get(at + 1..at + 1 + length)? {
                    match byte {
                        b'.' | b'\\' => write!(name, "\\{}", char::from(byte)).ok()?,
                        0x21..=0x7e => name.push(char::from(byte)),
                        _ => write!(name, "\\{byte:03}").ok()?,
                    }
                }
                at += 1 + length;
            }
            3 => {
                let target = (length & 0x3f) << 8 | usize::from(*bytes.get(at + 1)?);
                end.get_or_insert(at + 2);
                if target >= lowest {
                    return None;
                }
                (at, lowest) = (target, target);
            }
            _ => return None,
        }
    }
    if name.is_empty() {
        name.push('.');
    }
    Some((name, end.unwrap_or(at + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A response to `www.example.com A`: a CNAME by pointer, then an address.
    fn response() -> Vec<u8> {
        let mut bytes = vec![0x12, 0x34, 0x85, 0x80, 0, 1, 0, 2, 0, 0, 0, 1];
        bytes.extend(b"\x03www\x07example\x03com\0\0\x01\0\x01");
        bytes.extend(b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x06\x03lb1\xc0\x10");
        bytes.extend(b"\xc0\x2d\0\x01\0\x01\0\0\0\x3c\0\x04\x0a\x60\0\x0a");
        bytes
    }

    #[test]
    fn header_question_and_answers_are_read() {
        let message = DnsMessage::parse(&response()).unwrap();
        assert_eq!((message.id, message.is_response(), message.opcode(), message.rcode()), (0x1234, true, 0, 0));
        assert_eq!((message.question_count, message.answer_count, message.additional_count), (1, 2, 1));
        let question = message.question.unwrap();
        assert_eq!((question.name.as_str(), question.qtype, question.qclass), ("www.example.com", 1, 1));
        assert_eq!(message.answers, ["lb1.example.com", "10.96.0.10"]);
    }

    #[test]
    fn every_truncation_keeps_what_is_there() {
        let whole = response();
        for cut in 0..whole.len() {
            match DnsMessage::parse(&whole[..cut]) {
                Err(kind) => {
                    assert!(cut < 12);
                    assert_eq!(kind, DecodeErrorKind::Truncated { need_bytes: 12, have_bytes: cut });
                }
                Ok(message) => {
                    assert_eq!((cut >= 12, message.id), (true, 0x1234));
                    assert_eq!(message.question.is_some(), cut >= 33, "{cut}");
                    assert!(message.answers.len() < 2);
                }
            }
        }
    }

    #[test]
    fn a_pointer_that_leads_nowhere_forward_or_to_itself_ends_the_reading() {
        for pointer in [[0xc0, 0x0c], [0xc0, 0x20], [0xff, 0xff], [0x80, 0]] {
            let mut bytes = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            bytes.extend(pointer);
            bytes.extend([0, 1, 0, 1]);
            assert_eq!(DnsMessage::parse(&bytes).unwrap().question, None, "{pointer:?}");
        }
    }

    #[test]
    fn strange_bytes_in_a_name_are_shown_and_the_root_is_a_dot() {
        let mut bytes = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        bytes.extend(b"\x04a.\\ \0\0\x01\0\x01");
        assert_eq!(DnsMessage::parse(&bytes).unwrap().question.unwrap().name, "a\\.\\\\\\032");
        bytes.truncate(12);
        bytes.extend(b"\0\0\x02\0\x01");
        assert_eq!(DnsMessage::parse(&bytes).unwrap().question.unwrap().name, ".");
    }
}
