//! Frames as bytes: Ethernet, IPv4 (RFC 791), TCP (RFC 9293), UDP (RFC 768), VXLAN (RFC 7348), with valid checksums.

pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const ACK: u8 = 0x10;

pub(crate) const ETHERNET_LEN: usize = 14;
pub(crate) const IPV4_LEN: usize = 20;
pub(crate) const UDP_LEN: usize = 8;
const TCP_LEN: usize = 20;
const VXLAN_PORT: u16 = 4789;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// One side of a conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint {
    pub ip: [u8; 4],
    pub port: u16,
}

impl Endpoint {
    /// Locally administered, and telling the address: easy to read in Wireshark.
    fn mac(self) -> [u8; 6] {
        [0x02, 0x57, self.ip[0], self.ip[1], self.ip[2], self.ip[3]]
    }
}

/// IPv4 header fields that differ between frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpFields {
    pub id: u16,
    /// DSCP and ECN.
    pub tos: u8,
    pub ttl: u8,
}

pub(crate) struct TcpSegment<'a> {
    pub src: Endpoint,
    pub dst: Endpoint,
    pub ip: IpFields,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    /// Padded to a multiple of four bytes.
    pub options: &'a [u8],
    pub payload: &'a [u8],
}

/// Replaces `frame` with the segment's frame.
pub(crate) fn tcp(frame: &mut Vec<u8>, segment: &TcpSegment<'_>) {
    let tcp_len = TCP_LEN + segment.options.len() + segment.payload.len();
    frame.clear();
    ethernet_ipv4(frame, segment.src, segment.dst, segment.ip, PROTOCOL_TCP, tcp_len);
    let start = frame.len();
    frame.extend_from_slice(&segment.src.port.to_be_bytes());
    frame.extend_from_slice(&segment.dst.port.to_be_bytes());
    frame.extend_from_slice(&segment.seq.to_be_bytes());
    frame.extend_from_slice(&segment.ack.to_be_bytes());
    frame.push((((TCP_LEN + segment.options.len()) / 4) as u8) << 4);
    frame.push(segment.flags);
    frame.extend_from_slice(&segment.window.to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(segment.options);
    frame.extend_from_slice(segment.payload);
    let sum = transport_checksum(segment.src.ip, segment.dst.ip, PROTOCOL_TCP, &frame[start..]);
    frame[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
}

/// Replaces `frame` with a UDP datagram's frame. Without `checksum` the field is zero, as tunnels and RoCE send it.
pub(crate) fn udp(frame: &mut Vec<u8>, src: Endpoint, dst: Endpoint, ip: IpFields, payload: &[u8], checksum: bool) {
    let udp_len = UDP_LEN + payload.len();
    frame.clear();
    ethernet_ipv4(frame, src, dst, ip, PROTOCOL_UDP, udp_len);
    let start = frame.len();
    frame.extend_from_slice(&src.port.to_be_bytes());
    frame.extend_from_slice(&dst.port.to_be_bytes());
    frame.extend_from_slice(&(udp_len as u16).to_be_bytes());
    frame.extend_from_slice(&[0; 2]);
    frame.extend_from_slice(payload);
    if checksum {
        // A sum of zero is sent as ones: zero means "no checksum" (RFC 768).
        let sum = match transport_checksum(src.ip, dst.ip, PROTOCOL_UDP, &frame[start..]) {
            0 => 0xffff,
            sum => sum,
        };
        frame[start + 6..start + 8].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Replaces `frame` with `inner` in VXLAN between two tunnel endpoints; `src_port` carries the flow's entropy.
pub(crate) fn vxlan(frame: &mut Vec<u8>, inner: &[u8], vteps: [[u8; 4]; 2], vni: u32, src_port: u16, ip_id: u16) {
    let mut payload = Vec::with_capacity(8 + inner.len());
    payload.extend_from_slice(&[0x08, 0, 0, 0]);
    payload.extend_from_slice(&(vni << 8).to_be_bytes());
    payload.extend_from_slice(inner);
    let src = Endpoint { ip: vteps[0], port: src_port };
    let dst = Endpoint { ip: vteps[1], port: VXLAN_PORT };
    udp(frame, src, dst, IpFields { id: ip_id, tos: 0, ttl: 64 }, &payload, false);
}

fn ethernet_ipv4(frame: &mut Vec<u8>, src: Endpoint, dst: Endpoint, ip: IpFields, protocol: u8, len: usize) {
    frame.extend_from_slice(&dst.mac());
    frame.extend_from_slice(&src.mac());
    frame.extend_from_slice(&[0x08, 0x00]);
    let start = frame.len();
    frame.extend_from_slice(&[0x45, ip.tos]);
    frame.extend_from_slice(&((IPV4_LEN + len) as u16).to_be_bytes());
    frame.extend_from_slice(&ip.id.to_be_bytes());
    // Don't Fragment, as every current TCP and RoCE sender sets it.
    frame.extend_from_slice(&[0x40, 0x00, ip.ttl, protocol, 0, 0]);
    frame.extend_from_slice(&src.ip);
    frame.extend_from_slice(&dst.ip);
    let sum = !folded(sum_words(&frame[start..]));
    frame[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
}

/// RFC 1071 over pseudo header and `segment`; what a correct packet, checksum included, gives is zero.
pub(crate) fn transport_checksum(src: [u8; 4], dst: [u8; 4], protocol: u8, segment: &[u8]) -> u16 {
    let pseudo = sum_words(&src) + sum_words(&dst) + u64::from(protocol) + segment.len() as u64;
    !folded(pseudo + sum_words(segment))
}

/// RFC 1071 over a header; zero when the checksum inside is right.
#[cfg(test)]
pub(crate) fn header_checksum(header: &[u8]) -> u16 {
    !folded(sum_words(header))
}

/// 32-bit words are summed: folding makes them the same as 16-bit ones, at half the additions.
fn sum_words(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<4>();
    let mut sum: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    let mut last = [0_u8; 4];
    last[..tail.len()].copy_from_slice(tail);
    sum += u64::from(u32::from_be_bytes(last));
    sum
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
