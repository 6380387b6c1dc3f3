//! One line of a ping, whoever's ping it is.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::super::units::{ip, ms_ns, number};
use super::{CLEAR, SET};
use crate::tables::{Symbol, TimeNs};
use crate::wire::Ip;

const IPUTILS: Symbol = Symbol("iputils");
const BSD: Symbol = Symbol("bsd");
const WINDOWS: Symbol = Symbol("windows");

pub(super) enum Line<'a> {
    /// The command itself, where a session was saved.
    Command {
        df: Option<Symbol>,
    },
    Start {
        tool: Symbol,
        host: &'a str,
        ip: Ip,
        payload_bytes: Option<u32>,
        ip_bytes: Option<u32>,
    },
    Answer(Answer),
    Statistics(Statistics),
    /// Nothing was sent.
    Failed {
        message: &'a str,
    },
}

pub(super) struct Answer {
    pub tool: Symbol,
    pub kind: Symbol,
    pub time: Option<TimeNs>,
    pub sequence: Option<u32>,
    pub src_ip: Ip,
    pub bytes: Option<u32>,
    pub ttl: Option<u8>,
    pub rtt_ns: Option<i64>,
    pub mtu_bytes: Option<u32>,
    /// The line shows that "don't fragment" was set.
    pub has_df: bool,
}

pub(super) enum Statistics {
    Packets { sent: u64, received: u64, duplicates: Option<u64>, errors: Option<u64>, duration_ns: Option<i64> },
    Times { min_ns: Option<i64>, avg_ns: Option<i64>, max_ns: Option<i64>, mdev_ns: Option<i64> },
}

type Lazy = LazyLock<Option<Regex>>;

/// `PING 10.9.2.2 (10.9.2.2) 8972(9000) bytes of data.`, IPv6 `PING ::1(::1) 56 data bytes`, with `from 10.0.0.1 eth0:`.
static START: Lazy = LazyLock::new(|| {
    Regex::new(r"^\s*PING6?\s?(?:\(\d+=[\d+]+ bytes\)\s)?\s*(?P<host>[^\s(]+) ?(?:\((?P<ip>[^)\s]+)\))?[^:\d]?.*?:?\s(?P<size>\d+)(?:\((?P<whole>\d+)\))?(?P<after> data bytes| bytes of data)").ok()
});
/// `64 bytes from h2 (10.9.2.2): icmp_seq=1 ttl=63 time=20.9 ms`; BusyBox says `seq=`; `(DUP!)` at the end.
static REPLY: Lazy = LazyLock::new(|| {
    Regex::new(r"(?:\[(?P<time>\d+\.\d+)\] )?(?P<bytes>\d+) bytes from (?:(?P<name>[^\s(]+) \((?P<named>[^)\s]+)\)|(?P<ip>[^\s,]+?))[:,]? .*?(?:icmp_)?[sr]eq=(?P<seq>\d+)(?: (?:ttl|hlim)=(?P<ttl>\d+))?(?:.*?time[=<](?P<rtt>[\d.]+) ?ms)?").ok()
});
/// `From 10.9.1.1 icmp_seq=1 Frag needed and DF set (mtu = 1500)`, `From 10.9.1.1 (10.9.1.1) icmp_seq=1 Packet too big: mtu=1450`.
static ERROR_FROM: Lazy = LazyLock::new(|| {
    Regex::new(r"(?:\[(?P<time>\d+\.\d+)\] )?From (?:[^\s(]+ \((?P<named>[^)\s]+)\)|(?P<ip>\S+?)):? icmp_seq=(?P<seq>\d+) (?P<what>.+)").ok()
});
/// BSD and macOS: `36 bytes from 10.9.1.1: frag needed and DF set (MTU 1500)`, `... Destination Host Unreachable`.
static BSD_ERROR: Lazy = LazyLock::new(|| {
    Regex::new(r"^\s*\d+ bytes from (?:[^\s(]+ \((?P<named>[^)\s]+)\)|(?P<ip>[^\s:]+)): (?P<what>(?i:frag needed|destination|time to live|packet too big|communication prohibited).*)").ok()
});
static MTU: Lazy = LazyLock::new(|| Regex::new(r"(?i)mtu ?=? ?(\d+)").ok());
static TOO_LONG: Lazy =
    LazyLock::new(|| Regex::new(r"(?i)(?:local error: )?message too long(?:,? mtu ?=? ?(?P<mtu>\d+))?").ok());
static NO_ANSWER: Lazy =
    LazyLock::new(|| Regex::new(r"(?:Request timeout for icmp_seq|no answer yet for icmp_seq=) ?(?P<seq>\d+)").ok());
static PACKETS: Lazy = LazyLock::new(|| {
    Regex::new(r"(?P<sent>\d+) packets transmitted, (?P<received>\d+)(?: packets)? received(?P<rest>.*)").ok()
});
static MORE: Lazy = LazyLock::new(|| Regex::new(r"\+(\d+) (duplicates|errors)").ok());
static DURATION: Lazy = LazyLock::new(|| Regex::new(r"time (\d+)ms").ok());
static TIMES: Lazy = LazyLock::new(|| {
    Regex::new(r"(?:rtt|round-trip) min/avg/max(?:/(?:mdev|stddev|std-dev))? = (?P<min>[\d.]+|-?nan)/(?P<avg>[\d.]+|-?nan)/(?P<max>[\d.]+|-?nan)(?:/(?P<mdev>[\d.]+|-?nan))? ms").ok()
});
static COMMAND: Lazy = LazyLock::new(|| Regex::new(r"(?:[#$%>]|^\++)\s*(?:sudo )?ping6? (?P<options>.*)").ok());
static DO_OPTION: Lazy = LazyLock::new(|| Regex::new(r"(?:^|\s)-M ?(do|dont|want|probe)\b").ok());
static FAILED: Lazy = LazyLock::new(|| {
    Regex::new(r"ping6?: (?P<message>(?:.*: )?(?:Name or service not known|Temporary failure in name resolution|No address associated with hostname|unknown host.*|bad address.*|cannot resolve .*|connect: .*|Network is unreachable|socket: .*|Operation not permitted.*|invalid argument.*|unknown iface.*|Do you want to ping broadcast.*))").ok()
});

/// `Pinging h2 [10.9.2.2] with 32 bytes of data:` and `正在 Ping 10.9.2.2 具有 32 字节的数据:`.
static WINDOWS_START: Lazy = LazyLock::new(|| {
    Regex::new(r"(?:Pinging|正在 Ping) (?P<host>[^\s\[]+)(?: \[(?P<ip>[^\]]+)\])? (?:with|具有) (?P<size>\d+) (?:bytes of data|字节的数据)").ok()
});
/// `Reply from 10.9.2.2: bytes=32 time<1ms TTL=64`, `来自 10.9.2.2 的回复: 字节=32 时间=1ms TTL=64`; IPv6 lines lack both ends.
static WINDOWS_REPLY: Lazy = LazyLock::new(|| {
    Regex::new(r"(?:Reply from |来自 )(?P<ip>[^\s]+?)(?:: | 的回复: ?)(?:(?:bytes|字节)=(?P<bytes>\d+) )?(?:time|时间)(?P<less>[=<])(?P<rtt>\d+)ms(?: TTL=(?P<ttl>\d+))?").ok()
});
static WINDOWS_ERROR: Lazy =
    LazyLock::new(|| Regex::new(r"(?:Reply from |来自 )(?P<ip>[^\s]+?)(?:: | 的回复: ?)(?P<what>.+)").ok());
static WINDOWS_PACKETS: Lazy =
    LazyLock::new(|| Regex::new(r"(?:Sent|已发送) = (?P<sent>\d+)[,，] ?(?:Received|已接收) = (?P<received>\d+)").ok());
static WINDOWS_TIMES: Lazy = LazyLock::new(|| {
    Regex::new(r"(?:Minimum|最短) = (?P<min>\d+)ms[,，] ?(?:Maximum|最长) = (?P<max>\d+)ms[,，] ?(?:Average|平均) = (?P<avg>\d+)ms").ok()
});

/// What a line says, if it is a line of ping.
pub(super) fn read(line: &str) -> Option<Line<'_>> {
    if line.trim().is_empty() {
        return None;
    }
    if let Some(found) = matched(&PACKETS, line) {
        return Some(Line::Statistics(packets(&found)?));
    }
    if let Some(found) = matched(&TIMES, line) {
        let ms = |name| found.name(name).and_then(|ms| number(ms.as_str())).and_then(ms_ns);
        let (min_ns, avg_ns, max_ns, mdev_ns) = (ms("min"), ms("avg"), ms("max"), ms("mdev"));
        return Some(Line::Statistics(Statistics::Times { min_ns, avg_ns, max_ns, mdev_ns }));
    }
    unix(line).or_else(|| windows(line))
}

fn unix(line: &str) -> Option<Line<'_>> {
    if let Some(found) = matched(&REPLY, line) {
        return Some(Line::Answer(reply(line, &found)));
    }
    if let Some(found) = matched(&ERROR_FROM, line) {
        let mut answer = error(&found, IPUTILS);
        answer.sequence = part(&found, "seq").and_then(|seq| seq.parse().ok());
        answer.time = part(&found, "time").and_then(seconds);
        return Some(Line::Answer(answer));
    }
    if let Some(found) = matched(&BSD_ERROR, line) {
        return Some(Line::Answer(error(&found, BSD)));
    }
    if let Some(found) = matched(&START, line) {
        let host = found.name("host")?.as_str();
        let payload_bytes = part(&found, "size").and_then(|size| size.parse().ok());
        let ip_bytes = part(&found, "whole").and_then(|size| size.parse().ok());
        // BSD has a colon after the address: `PING 10.0.0.1 (10.0.0.1): 56 data bytes`.
        let is_bsd = line.contains("): ") && ip_bytes.is_none();
        let tool = if is_bsd { BSD } else { IPUTILS };
        let ip = part(&found, "ip").map_or(Ip::NONE, ip);
        return Some(Line::Start { tool, host, ip, payload_bytes, ip_bytes });
    }
    if let Some(found) = matched(&NO_ANSWER, line) {
        let tool = if line.contains("Request timeout") { BSD } else { IPUTILS };
        let sequence = part(&found, "seq").and_then(|seq| seq.parse().ok());
        return Some(Line::Answer(Answer { sequence, ..Answer::new(tool, Symbol("timeout")) }));
    }
    if line.contains("ping") || line.contains("sendto") || line.contains("sendmsg") {
        if let Some(found) = matched(&TOO_LONG, line) {
            let tool = if line.contains("local error") { IPUTILS } else { BSD };
            let mtu_bytes = part(&found, "mtu").and_then(|mtu| mtu.parse().ok());
            let answer = Answer { mtu_bytes, has_df: true, ..Answer::new(tool, Symbol("message_too_long")) };
            return Some(Line::Answer(answer));
        }
        if let Some(found) = matched(&FAILED, line) {
            return Some(Line::Failed { message: found.name("message")?.as_str() });
        }
    }
    let command = matched(&COMMAND, line)?;
    let df = matched(&DO_OPTION, part(&command, "options")?).and_then(|option| match &option[1] {
        "do" => Some(SET),
        "dont" => Some(CLEAR),
        _ => None,
    });
    Some(Line::Command { df })
}

fn windows(line: &str) -> Option<Line<'_>> {
    if let Some(found) = matched(&WINDOWS_REPLY, line) {
        let is_less = part(&found, "less") == Some("<");
        let rtt = part(&found, "rtt").and_then(number).filter(|_| !is_less);
        let answer = Answer {
            src_ip: part(&found, "ip").map_or(Ip::NONE, ip),
            bytes: part(&found, "bytes").and_then(|bytes| bytes.parse().ok()),
            ttl: part(&found, "ttl").and_then(|ttl| ttl.parse().ok()),
            rtt_ns: rtt.and_then(ms_ns),
            ..Answer::new(WINDOWS, Symbol("reply"))
        };
        return Some(Line::Answer(answer));
    }
    if let Some(found) = matched(&WINDOWS_START, line) {
        let host = found.name("host")?.as_str();
        let address = part(&found, "ip").unwrap_or(host);
        let payload_bytes = part(&found, "size").and_then(|size| size.parse().ok());
        return Some(Line::Start { tool: WINDOWS, host, ip: ip(address), payload_bytes, ip_bytes: None });
    }
    if let Some(found) = matched(&WINDOWS_PACKETS, line) {
        let count = |name| part(&found, name).and_then(|count| count.parse().ok());
        let (sent, received) = (count("sent")?, count("received")?);
        let packets = Statistics::Packets { sent, received, duplicates: None, errors: None, duration_ns: None };
        return Some(Line::Statistics(packets));
    }
    if let Some(found) = matched(&WINDOWS_TIMES, line) {
        let ms = |name| part(&found, name).and_then(number).and_then(ms_ns);
        let (min_ns, avg_ns, max_ns) = (ms("min"), ms("avg"), ms("max"));
        return Some(Line::Statistics(Statistics::Times { min_ns, avg_ns, max_ns, mdev_ns: None }));
    }
    if let Some(found) = matched(&WINDOWS_ERROR, line) {
        return Some(Line::Answer(error(&found, WINDOWS)));
    }
    let kind = match line.trim() {
        "Request timed out." | "请求超时。" => "timeout",
        "Packet needs to be fragmented but DF set." | "需要拆分数据包但是设置 DF。" => "message_too_long",
        "General failure." | "一般故障。" => "other_error",
        _ => return None,
    };
    Some(Line::Answer(Answer { has_df: kind == "message_too_long", ..Answer::new(WINDOWS, Symbol(kind)) }))
}

impl Answer {
    fn new(tool: Symbol, kind: Symbol) -> Self {
        Self {
            tool,
            kind,
            time: None,
            sequence: None,
            src_ip: Ip::NONE,
            bytes: None,
            ttl: None,
            rtt_ns: None,
            mtu_bytes: None,
            has_df: false,
        }
    }
}

fn reply(line: &str, found: &Captures<'_>) -> Answer {
    // BusyBox and BSD print no address in parentheses after a name, and BusyBox says `seq`, not `icmp_seq`.
    let tool = if line.contains("icmp_seq=") || line.contains("icmp_req=") { IPUTILS } else { BSD };
    let kind = if line.contains("DUP!") { "duplicate" } else { "reply" };
    Answer {
        time: part(found, "time").and_then(seconds),
        sequence: part(found, "seq").and_then(|seq| seq.parse().ok()),
        src_ip: part(found, "named").or(part(found, "ip")).map_or(Ip::NONE, |text| ip(text.trim_end_matches(':'))),
        bytes: part(found, "bytes").and_then(|bytes| bytes.parse().ok()),
        ttl: part(found, "ttl").and_then(|ttl| ttl.parse().ok()),
        rtt_ns: part(found, "rtt").and_then(number).and_then(ms_ns),
        ..Answer::new(tool, Symbol(kind))
    }
}

fn error(found: &Captures<'_>, tool: Symbol) -> Answer {
    let what = part(found, "what").unwrap_or("");
    let lower = what.to_lowercase();
    let mtu_bytes = matched(&MTU, what).and_then(|mtu| mtu[1].parse().ok()).filter(|mtu| *mtu > 0);
    let kind = if lower.contains("frag needed") || lower.contains("too big") || lower.contains("needs to be fragmented")
    {
        "frag_needed"
    } else if lower.contains("unreachable") || what.contains("无法访问") {
        "unreachable"
    } else if lower.contains("time to live exceeded")
        || lower.contains("ttl expired")
        || what.contains("TTL 传输中过期")
    {
        "ttl_exceeded"
    } else {
        "other_error"
    };
    Answer {
        src_ip: part(found, "named").or(part(found, "ip")).map_or(Ip::NONE, ip),
        mtu_bytes,
        // IPv6 never fragments on the way, with or without the option.
        has_df: kind == "frag_needed" && !lower.contains("too big"),
        ..Answer::new(tool, Symbol(kind))
    }
}

fn packets(found: &Captures<'_>) -> Option<Statistics> {
    let count = |name| part(found, name).and_then(|count| count.parse().ok());
    let rest = part(found, "rest").unwrap_or("");
    let mut more = (None, None);
    if let Some(regex) = LazyLock::force(&MORE) {
        for found in regex.captures_iter(rest) {
            let value = found[1].parse().ok();
            if &found[2] == "errors" { more.1 = value } else { more.0 = value }
        }
    }
    let duration = matched(&DURATION, rest).and_then(|found| number(&found[1])).and_then(ms_ns);
    let (sent, received) = (count("sent")?, count("received")?);
    Some(Statistics::Packets { sent, received, duplicates: more.0, errors: more.1, duration_ns: duration })
}

/// `1796055679.223737`, exact.
fn seconds(text: &str) -> Option<TimeNs> {
    let (whole, fraction) = text.split_once('.')?;
    let digits = fraction.len().min(9);
    let fraction: i64 = fraction.get(..digits)?.parse().ok()?;
    let ns = fraction.checked_mul(10_i64.checked_pow(9 - digits as u32)?)?;
    Some(TimeNs(whole.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(ns)?))
}

fn part<'t>(found: &Captures<'t>, name: &str) -> Option<&'t str> {
    found.name(name).map(|part| part.as_str())
}

fn matched<'t>(regex: &Lazy, text: &'t str) -> Option<Captures<'t>> {
    LazyLock::force(regex).as_ref()?.captures(text)
}
