//! Single frames with every field at hand, and pcapng files of several interfaces: for tests of one fact each.

use etherparse::{IpHeaders, Ipv4Header, PacketBuilder, TcpHeader, TcpOptionElement};

use super::generate::{Packet, START_NS};

pub const CLIENT: Host = Host { ip: [10, 0, 0, 1], port: 40_000 };
pub const SERVER: Host = Host { ip: [10, 0, 1, 2], port: 5_201 };
pub const MS: i64 = 1_000_000;
/// Where payloads start in a frame of [`Tcp`] without options: Ethernet, IPv4 and TCP headers.
pub const TCP_PAYLOAD_AT: usize = 14 + 20 + 20;

#[derive(Clone, Copy, Debug)]
pub struct Host {
    pub ip: [u8; 4],
    pub port: u16,
}

/// A TCP segment over IPv4 and Ethernet, whose checksums are right.
#[derive(Clone, Debug)]
pub struct Tcp {
    pub from: Host,
    pub to: Host,
    pub seq: u32,
    /// `None` = no ACK bit.
    pub ack: Option<u32>,
    pub flags: &'static str,
    pub window: u16,
    pub payload_bytes: usize,
    /// IPv4 identification.
    pub id: u16,
    pub ttl: u8,
    pub options: Vec<TcpOptionElement>,
}

impl Tcp {
    pub fn new(from: Host, to: Host, seq: u32, ack: u32, payload_bytes: usize) -> Self {
        let (flags, window, ttl) = ("", 500, 64);
        Self { from, to, seq, ack: Some(ack), flags, window, payload_bytes, id: 0, ttl, options: Vec::new() }
    }

    /// `flags`: `S`, `F`, `R`, `P` as in tcpdump.
    pub fn flags(self, flags: &'static str) -> Self {
        Self { flags, ..self }
    }

    pub fn id(self, id: u16) -> Self {
        Self { id, ..self }
    }

    pub fn frame(&self) -> Vec<u8> {
        let mut tcp = TcpHeader::new(self.from.port, self.to.port, self.seq, self.window);
        (tcp.ack, tcp.acknowledgment_number) = (self.ack.is_some(), self.ack.unwrap_or(0));
        let has = |letter| self.flags.contains(letter);
        (tcp.syn, tcp.fin, tcp.rst, tcp.psh) = (has('S'), has('F'), has('R'), has('P'));
        tcp.set_options(&self.options).unwrap();
        let mut ip = Ipv4Header::new(0, self.ttl, etherparse::IpNumber::TCP, self.from.ip, self.to.ip).unwrap();
        ip.identification = self.id;
        ip.dont_fragment = true;
        let ethernet = PacketBuilder::ethernet2([2, 0, 0, 0, 0, self.from.ip[3]], [2, 0, 0, 0, 0, self.to.ip[3]]);
        let mut bytes = Vec::new();
        let builder = ethernet.ip(IpHeaders::Ipv4(ip, Default::default())).tcp_header(tcp);
        builder.write(&mut bytes, &vec![0xa5; self.payload_bytes]).unwrap();
        bytes
    }

    pub fn at(&self, time_ns: i64) -> Packet {
        Packet { time_ns: START_NS + time_ns, bytes: self.frame() }
    }
}

/// SYN, SYN,ACK and ACK as a tap at the client sees them, `rtt_ns` apart; the numbers then go on from 1001 and 5001. MSS 1448.
pub fn handshake(time_ns: i64, rtt_ns: i64) -> Vec<Packet> {
    let options =
        vec![TcpOptionElement::MaximumSegmentSize(1_448), TcpOptionElement::SelectiveAcknowledgementPermitted];
    let syn = Tcp { ack: None, options, ..Tcp::new(CLIENT, SERVER, 1_000, 0, 0).flags("S").id(100) };
    let (from, to, seq, ack) = (SERVER, CLIENT, 5_000, Some(1_001));
    let syn_ack = Tcp { from, to, seq, ack, ttl: 61, id: 900, ..syn.clone() };
    let ack = Tcp::new(CLIENT, SERVER, 1_001, 5_001, 0).id(101);
    vec![syn.at(time_ns), syn_ack.at(time_ns + rtt_ns), ack.at(time_ns + rtt_ns + 20_000)]
}

/// The `number`th segment of the client's data, of 1,000 bytes each.
pub fn data(number: u16) -> Tcp {
    Tcp::new(CLIENT, SERVER, 1_001 + 1_000 * u32::from(number), 5_001, 1_000).id(200 + number)
}

/// The server's acknowledgement of the first `count` segments of [`data`].
pub fn ack_of(count: u16) -> Tcp {
    Tcp { ttl: 61, ..Tcp::new(SERVER, CLIENT, 5_001, 1_001 + 1_000 * u32::from(count), 0).id(1_000 + count) }
}

/// The frame one router further on: TTL one less, checksum mended, other MAC addresses.
pub fn routed(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[..12].copy_from_slice(&[2, 9, 9, 9, 9, 1, 2, 9, 9, 9, 9, 2]);
    frame[22] -= 1;
    mend_ip_checksum(&mut frame);
    frame
}

/// Computes the IPv4 header checksum of an Ethernet frame anew.
pub fn mend_ip_checksum(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let sum: u32 = frame[14..34].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = !((folded & 0xffff) + (folded >> 16)) as u16;
    frame[24..26].copy_from_slice(&folded.to_be_bytes());
}

/// The frame in VXLAN, from one VTEP to another.
pub fn in_vxlan(frame: &[u8], vni: u8) -> Vec<u8> {
    in_vxlan_between(frame, vni, 1, 2)
}

/// The same between given VTEPs, the last bytes of their addresses.
pub fn in_vxlan_between(frame: &[u8], vni: u8, from: u8, to: u8) -> Vec<u8> {
    let mut payload = vec![8, 0, 0, 0, 0, 0, vni, 0];
    payload.extend(frame);
    let outer =
        PacketBuilder::ethernet2([2, 5, 0, 0, 0, 1], [2, 5, 0, 0, 0, 2]).ipv4([192, 0, 2, from], [192, 0, 2, to], 64);
    let mut bytes = Vec::new();
    outer.udp(50_000, 4_789).write(&mut bytes, &payload).unwrap();
    bytes
}

/// A pcapng file, block by block.
pub struct Ng {
    pub bytes: Vec<u8>,
    is_big: bool,
}

impl Ng {
    pub fn new(is_big: bool) -> Self {
        let mut file = Self { bytes: Vec::new(), is_big };
        file.section(is_big);
        file
    }

    /// Starts a section; its interfaces count from 0 again.
    pub fn section(&mut self, is_big: bool) {
        self.is_big = is_big;
        let mut body = self.u32(0x1a2b_3c4d).to_vec();
        body.extend(self.u16(1));
        body.extend(self.u16(0));
        body.extend([0xff; 8]);
        self.block(0x0a0d_0d0a, &body);
    }

    /// `options`: code and value.
    pub fn interface(&mut self, link: u16, snap_length: u32, options: &[(u16, &[u8])]) {
        let mut body = self.u16(link).to_vec();
        body.extend([0, 0]);
        body.extend(self.u32(snap_length));
        self.options(&mut body, options);
        self.block(1, &body);
    }

    /// `ticks`: in the interface's own resolution.
    pub fn packet(
        &mut self,
        interface: u32,
        ticks: u64,
        bytes: &[u8],
        original_bytes: usize,
        options: &[(u16, &[u8])],
    ) {
        let mut body = self.u32(interface).to_vec();
        body.extend(self.u32((ticks >> 32) as u32));
        body.extend(self.u32(ticks as u32));
        body.extend(self.u32(bytes.len() as u32));
        body.extend(self.u32(original_bytes as u32));
        body.extend(bytes);
        body.resize(body.len().next_multiple_of(4), 0);
        self.options(&mut body, options);
        self.block(6, &body);
    }

    /// Interface statistics with drops by interface and operating system.
    pub fn drops(&mut self, interface: u32, by_interface: u64, by_system: u64) {
        let mut body = self.u32(interface).to_vec();
        body.extend([0; 8]);
        let (by_interface, by_system) = (self.u64(by_interface), self.u64(by_system));
        self.options(&mut body, &[(5, &by_interface), (7, &by_system)]);
        self.block(5, &body);
    }

    pub fn simple_packet(&mut self, bytes: &[u8]) {
        let mut body = self.u32(bytes.len() as u32).to_vec();
        body.extend(bytes);
        self.block(3, &body);
    }

    pub fn block(&mut self, block_type: u32, body: &[u8]) {
        let total = self.u32(12 + body.len().next_multiple_of(4) as u32);
        self.bytes.extend(self.u32(block_type));
        self.bytes.extend(total);
        self.bytes.extend(body);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self.bytes.extend(total);
    }

    fn options(&self, body: &mut Vec<u8>, options: &[(u16, &[u8])]) {
        for (code, value) in options {
            body.extend(self.u16(*code));
            body.extend(self.u16(value.len() as u16));
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        if !options.is_empty() {
            body.extend([0; 4]);
        }
    }

    pub fn u16(&self, value: u16) -> [u8; 2] {
        if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn u32(&self, value: u32) -> [u8; 4] {
        if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn u64(&self, value: u64) -> [u8; 8] {
        if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() }
    }
}

/// A pcapng file of Ethernet interfaces with nanosecond times: each packet with the number of its interface.
pub fn interfaces(names: &[&str], packets: &[(u32, Packet)]) -> Vec<u8> {
    let mut file = Ng::new(false);
    for name in names {
        file.interface(1, 262_144, &[(2, name.as_bytes()), (9, &[9])]);
    }
    for (interface, packet) in packets {
        file.packet(*interface, packet.time_ns as u64, &packet.bytes, packet.bytes.len(), &[]);
    }
    file.bytes
}
