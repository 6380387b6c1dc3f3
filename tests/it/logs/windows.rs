//! ping of Windows and macOS, as their consoles save it.

use wirelab::logs::{self, LogKind};

use super::{Value, cells, codes, expect, int, read_as, text};

const CHINESE: &str = "\r\n正在 Ping 10.9.2.2 具有 1472 字节的数据:\r\n来自 10.9.2.2 的回复: 字节=1472 时间=3ms TTL=62\r\n来自 10.9.2.2 的回复: 字节=1472 时间<1ms TTL=62\r\n\
    请求超时。\r\n需要拆分数据包但是设置 DF。\r\n\r\n10.9.2.2 的 Ping 统计信息:\r\n    数据包: 已发送 = 4，已接收 = 2，丢失 = 2 (50% 丢失)，\r\n往返行程的估计时间(以毫秒为单位):\r\n    \
    最短 = 0ms，最长 = 3ms，平均 = 1ms\r\n";
const ENGLISH: &str = "\r\nPinging h2 [10.9.2.2] with 32 bytes of data:\r\nReply from 10.9.2.2: bytes=32 time=3ms TTL=62\r\nReply from 10.9.2.2: bytes=32 time<1ms TTL=62\r\n\
    Request timed out.\r\nReply from 10.9.1.1: Destination host unreachable.\r\n\r\nPing statistics for 10.9.2.2:\r\n    Packets: Sent = 4, Received = 3, Lost = 1 (25% loss),\r\n\
    Approximate round trip times in milli-seconds:\r\n    Minimum = 0ms, Maximum = 3ms, Average = 1ms\r\n";

#[test]
fn ping_of_windows_in_chinese_and_english_in_every_encoding() {
    let (gbk, _, _) = encoding_rs::GBK.encode(CHINESE);
    let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain(CHINESE.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    for bytes in [CHINESE.as_bytes(), &gbk, &wide] {
        assert_eq!(logs::detect(bytes), Some(LogKind::Ping));
        let log = read_as(LogKind::Ping, bytes);
        expect(
            &log,
            "ping",
            &[
                ("tool", text("windows")),
                ("host", text("10.9.2.2")),
                ("payload_bytes", int(1472)),
                ("df", text("set")),
                ("sent_count", int(4)),
                ("received_count", int(2)),
                ("loss_ratio", Value::Float(0.5)),
                ("rtt_max_ns", int(3_000_000)),
                ("is_complete", Value::Bool(true)),
            ],
        );
        assert_eq!(cells(&log, "ping_replies", "kind"), ["reply", "reply", "timeout", "message_too_long"].map(text));
        assert_eq!(cells(&log, "ping_replies", "rtt_ns")[..2], [int(3_000_000), Value::Null]);
    }
    let log = read_as(LogKind::Ping, ENGLISH.as_bytes());
    expect(
        &log,
        "ping",
        &[("host", text("h2")), ("dst_ip", text("10.9.2.2")), ("sent_count", int(4)), ("received_count", int(3))],
    );
    assert_eq!(cells(&log, "ping_replies", "kind")[3], text("unreachable"));
    assert_eq!(codes(&log), [""; 0]);
}

#[test]
fn ping_of_macos() {
    let session = "% ping -c 3 -D -s 8972 10.9.2.2\nPING 10.9.2.2 (10.9.2.2): 8972 data bytes\nping: sendto: Message too long\nping: sendto: Message too long\n\
        Request timeout for icmp_seq 0\n8980 bytes from 10.9.2.2: icmp_seq=2 ttl=62 time=0.714 ms\n\n--- 10.9.2.2 ping statistics ---\n\
        3 packets transmitted, 1 packets received, 66.7% packet loss\nround-trip min/avg/max/stddev = 0.714/0.714/0.714/0.000 ms\n";
    let log = read_as(LogKind::Ping, session.as_bytes());
    expect(
        &log,
        "ping",
        &[
            ("tool", text("bsd")),
            ("payload_bytes", int(8972)),
            ("df", text("set")),
            ("sent_count", int(3)),
            ("received_count", int(1)),
            ("path_mtu_bytes", Value::Null),
            ("rtt_mdev_ns", int(0)),
        ],
    );
    let error =
        "PING 10.9.2.2 (10.9.2.2): 8972 data bytes\n36 bytes from 10.9.1.1: frag needed and DF set (MTU 1500)\n";
    let log = read_as(LogKind::Ping, error.as_bytes());
    expect(
        &log,
        "ping",
        &[("path_mtu_bytes", int(1500)), ("path_mtu_source", text("router")), ("path_mtu_ip", text("10.9.1.1"))],
    );
}
