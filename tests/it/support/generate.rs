//! Captures made on the spot: traffic of many flows, and the bytes of pcap and pcapng files around it.

use etherparse::{PacketBuilder, TcpOptionElement};

/// A frame and its time in nanoseconds since 1970-01-01 UTC.
#[derive(Clone, Debug)]
pub struct Packet {
    pub time_ns: i64,
    pub bytes: Vec<u8>,
}

pub const START_NS: i64 = 1_700_000_000_000_000_000;

/// A pcap file with nanosecond times.
pub fn pcap(packets: &[Packet]) -> Vec<u8> {
    let mut file = pcap_header(1);
    for packet in packets {
        file.extend(pcap_record_header(packet.time_ns, packet.bytes.len() as u32));
        file.extend(&packet.bytes);
    }
    file
}

pub fn pcap_header(link_type: u32) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(0xa1b2_3c4d_u32.to_le_bytes());
    header.extend(2_u16.to_le_bytes());
    header.extend(4_u16.to_le_bytes());
    header.extend([0; 8]);
    header.extend(262_144_u32.to_le_bytes());
    header.extend(link_type.to_le_bytes());
    header
}

pub fn pcap_record_header(time_ns: i64, frame_bytes: u32) -> [u8; 16] {
    let (seconds, fraction) = ((time_ns / 1_000_000_000) as u32, (time_ns % 1_000_000_000) as u32);
    let mut header = [0; 16];
    for (at, field) in [seconds, fraction, frame_bytes, frame_bytes].into_iter().enumerate() {
        header[4 * at..4 * at + 4].copy_from_slice(&field.to_le_bytes());
    }
    header
}

/// A pcapng file of one section and one Ethernet interface with nanosecond times; every tenth frame has a comment.
pub fn pcapng(packets: &[Packet], interface_name: &str) -> Vec<u8> {
    let mut file = Vec::new();
    let mut section = Vec::new();
    section.extend(0x1a2b_3c4d_u32.to_le_bytes());
    section.extend([1, 0, 0, 0]);
    section.extend([0xff; 8]);
    block(&mut file, 0x0a0d_0d0a, &section);
    let mut interface = vec![1, 0, 0, 0];
    interface.extend(262_144_u32.to_le_bytes());
    option(&mut interface, 2, interface_name.as_bytes());
    option(&mut interface, 9, &[9]);
    option(&mut interface, 0, &[]);
    block(&mut file, 1, &interface);
    for (at, packet) in packets.iter().enumerate() {
        let mut body = Vec::new();
        body.extend(0_u32.to_le_bytes());
        body.extend(((packet.time_ns >> 32) as u32).to_le_bytes());
        body.extend((packet.time_ns as u32).to_le_bytes());
        body.extend((packet.bytes.len() as u32).to_le_bytes());
        body.extend((packet.bytes.len() as u32).to_le_bytes());
        body.extend(&packet.bytes);
        body.resize(body.len().next_multiple_of(4), 0);
        if at % 10 == 9 {
            option(&mut body, 1, format!("frame {}", at + 1).as_bytes());
            option(&mut body, 0, &[]);
        }
        block(&mut file, 6, &body);
    }
    file
}

fn block(file: &mut Vec<u8>, block_type: u32, body: &[u8]) {
    let total = (12 + body.len()) as u32;
    file.extend(block_type.to_le_bytes());
    file.extend(total.to_le_bytes());
    file.extend(body);
    file.extend(total.to_le_bytes());
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// A run of numbers that is the same every time.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: u32) -> u32 {
        // Xorshift: the low bits are as good as the high ones.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % u64::from(limit)) as u32
    }
}

/// `frames` frames of many flows, microseconds apart: TCP connections with handshakes, losses, resent and overtaken segments
/// and closing, reused ports, UDP, DNS, pings, RoCE, VXLAN, ARP, LLDP and PFC; and some frames twice, as a mirror port gives them.
pub fn traffic(frames: usize, seed: u64) -> Vec<Packet> {
    let mut numbers = Numbers::new(seed);
    let mut connections: Vec<_> = (0..400).map(|number| Connection::new(number, &mut numbers)).collect();
    let mut time_ns = START_NS;
    let mut packets = Vec::with_capacity(frames);
    let (mut echo, mut ip_id) = (0_u16, 0_u16);
    while packets.len() < frames {
        time_ns += 1 + i64::from(numbers.below(20_000));
        let mut bytes = match numbers.below(100) {
            0..75 => {
                let at = numbers.below(connections.len() as u32) as usize;
                connections[at].next_segment(&mut numbers)
            }
            75..78 => dns(&mut numbers),
            78..85 => {
                let (host, port) = (numbers.below(200) as u8, 20_000 + numbers.below(300) as u16);
                udp([10, 1, 1, host], [10, 1, 2, 7], (port, 5201), numbers.below(1_200) as usize)
            }
            85..90 => {
                echo = echo.wrapping_add(1);
                let host = numbers.below(50) as u8;
                let request = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 1, 3, host], [10, 1, 4, 1], 64);
                written(request.icmpv4_echo_request(u16::from(host), echo), &[7; 56])
            }
            90..93 => {
                let reply = PacketBuilder::ethernet2([4; 6], [2; 6]).ipv4(
                    [10, 1, 4, 1],
                    [10, 1, 3, numbers.below(50) as u8],
                    63,
                );
                written(
                    reply.icmpv4_echo_reply(numbers.below(50) as u16, echo.wrapping_sub(numbers.below(3) as u16)),
                    &[7; 56],
                )
            }
            93..96 => roce(&mut numbers),
            96..98 => {
                let at = numbers.below(connections.len() as u32) as usize;
                let inner = connections[at].next_segment(&mut numbers);
                let mut payload = vec![0x08, 0, 0, 0, 0, 0, numbers.below(4) as u8, 0];
                payload.extend(inner);
                let outer = PacketBuilder::ethernet2([6; 6], [8; 6]).ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64);
                written(outer.udp(49_152 + at as u16, 4789), &payload)
            }
            98 => match numbers.below(250) as u8 {
                port @ 0..50 => lldp(port),
                host => arp(host),
            },
            _ => pfc(numbers.below(8) as u8, numbers.below(65_536) as u16),
        };
        ip_id = ip_id.wrapping_add(1);
        set_ip_id(&mut bytes, ip_id);
        let is_doubled = numbers.below(200) == 0 && packets.len() + 1 < frames;
        packets.push(Packet { time_ns, bytes: bytes.clone() });
        if is_doubled {
            packets.push(Packet { time_ns: time_ns + 1, bytes });
        }
    }
    packets
}

/// Where a file may end so that no frame is parted from its copy.
pub fn split_near(packets: &[Packet], at: usize) -> usize {
    (at..packets.len()).find(|at| packets[*at].bytes != packets[at - 1].bytes).unwrap()
}

/// Gives an IPv4 packet its identification, and the header its checksum.
fn set_ip_id(frame: &mut [u8], id: u16) {
    if frame[12..14] != [0x08, 0x00] {
        return;
    }
    frame[18..20].copy_from_slice(&id.to_be_bytes());
    frame[24..26].fill(0);
    let words = frame[14..34].chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum = words.sum::<u32>();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
}

pub fn udp(src: [u8; 4], dst: [u8; 4], ports: (u16, u16), payload_bytes: usize) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, src[3]], [2, 0, 0, 0, 1, dst[3]]).ipv4(src, dst, 64);
    written(builder.udp(ports.0, ports.1), &vec![0x55; payload_bytes])
}

/// A SYN.
pub fn syn(src: [u8; 4], dst: [u8; 4], ports: (u16, u16)) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, src[3]], [2, 0, 0, 0, 1, dst[3]]).ipv4(src, dst, 64);
    written(builder.tcp(ports.0, ports.1, 1_000, 64_000).syn(), &[])
}

/// A query of one of 40 clients for one of 6 names, or a response that fits one of them now and then.
fn dns(numbers: &mut Numbers) -> Vec<u8> {
    let (client, name) = (numbers.below(40) as u8, b'a' + numbers.below(6) as u8);
    let is_response = numbers.below(2) == 1;
    let (id, flags) =
        (numbers.below(4) as u8, if is_response { [0x81, 0x80 | (numbers.below(2) * 3) as u8] } else { [1, 0] });
    let mut payload = vec![0, id, flags[0], flags[1], 0, 1, 0, u8::from(is_response), 0, 0, 0, 0];
    payload.extend([1, name, 3, b's', b'v', b'c', 0, 0, 1, 0, 1]);
    if is_response {
        payload.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4, 10, 96, 0, name]);
    }
    let (host, server) = ([10, 1, 5, client], [10, 96, 0, 10]);
    let (src, dst, ports) = if is_response { (server, host, (53, 40_000)) } else { (host, server, (40_000, 53)) };
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, src[3]], [2, 0, 0, 0, 1, dst[3]]).ipv4(src, dst, 64);
    written(builder.udp(ports.0, ports.1), &payload)
}

fn written<S: Writable>(step: S, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    step.write_into(&mut bytes, payload);
    bytes
}

/// The last step of each kind of packet that etherparse builds.
trait Writable {
    fn write_into(self, bytes: &mut Vec<u8>, payload: &[u8]);
}

macro_rules! writable {
    ($($header:ty),*) => {$(
        impl Writable for etherparse::PacketBuilderStep<$header> {
            fn write_into(self, bytes: &mut Vec<u8>, payload: &[u8]) {
                self.write(bytes, payload).unwrap();
            }
        }
    )*};
}

writable!(etherparse::UdpHeader, etherparse::TcpHeader, etherparse::Icmpv4Header);

struct Connection {
    number: u16,
    client: ([u8; 4], u16),
    server: ([u8; 4], u16),
    /// Next sequence numbers of client and server.
    seq: [u32; 2],
    phase: u32,
    last: Option<(u8, u32, usize)>,
}

impl Connection {
    fn new(number: u16, numbers: &mut Numbers) -> Self {
        let client = ([10, 1, 0, (number % 200) as u8], 40_000 + number);
        let server = ([10, 2, 0, (number % 7) as u8], 80 + number % 3);
        Self { number, client, server, seq: Self::isns(numbers), phase: 0, last: None }
    }

    /// Near the wrap of 32 bits as often as not.
    fn isns(numbers: &mut Numbers) -> [u32; 2] {
        [0_u32.wrapping_sub(numbers.below(100_000)), numbers.below(u32::MAX)]
    }

    fn next_segment(&mut self, numbers: &mut Numbers) -> Vec<u8> {
        self.phase += 1;
        match self.phase {
            1 => self.segment(0, self.seq[0], Flags::Syn, 0),
            2 => {
                self.seq[0] = self.seq[0].wrapping_add(1);
                self.segment(1, self.seq[1], Flags::SynAck, 0)
            }
            3 => {
                self.seq[1] = self.seq[1].wrapping_add(1);
                self.segment(0, self.seq[0], Flags::Ack, 0)
            }
            4..400 => match numbers.below(20) {
                // Sent again.
                0 if self.last.is_some() => {
                    let (side, seq, payload_bytes) = self.last.unwrap_or_default();
                    self.segment(side, seq, Flags::Ack, payload_bytes)
                }
                // Lost before the capture.
                1 => {
                    self.seq[0] = self.seq[0].wrapping_add(1_000);
                    self.segment(0, self.seq[0], Flags::Ack, 0)
                }
                2..8 => self.segment(1, self.seq[1], Flags::Ack, 0),
                pick => {
                    let side = u8::from(pick == 8);
                    let (seq, payload_bytes) = (self.seq[usize::from(side)], 1 + numbers.below(900) as usize);
                    self.seq[usize::from(side)] = seq.wrapping_add(payload_bytes as u32);
                    self.last = Some((side, seq, payload_bytes));
                    self.segment(side, seq, Flags::Ack, payload_bytes)
                }
            },
            400 => self.segment(0, self.seq[0], Flags::Fin, 0),
            _ => {
                let bytes = self.segment(1, self.seq[1], Flags::Fin, 0);
                // The same ports again, with numbers of its own.
                (self.seq, self.phase, self.last) = (Self::isns(numbers), 0, None);
                bytes
            }
        }
    }

    fn segment(&self, side: u8, seq: u32, flags: Flags, payload_bytes: usize) -> Vec<u8> {
        let (from, to) = if side == 0 { (self.client, self.server) } else { (self.server, self.client) };
        let ack = self.seq[usize::from(side ^ 1)];
        let host = [2, 0, 0, side, 0, self.number as u8];
        let builder = PacketBuilder::ethernet2(host, [2, 0, 0, 9, 9, 9]).ipv4(from.0, to.0, 64);
        let tcp = builder.tcp(from.1, to.1, seq, 64_000);
        let options = [TcpOptionElement::MaximumSegmentSize(1_460), TcpOptionElement::WindowScale(7)];
        let tcp = match flags {
            Flags::Syn => tcp.syn().options(&options).unwrap(),
            Flags::SynAck => tcp.syn().ack(ack).options(&options).unwrap(),
            Flags::Ack => tcp.ack(ack),
            Flags::Fin => tcp.fin().ack(ack),
        };
        written(tcp, &vec![0xaa; payload_bytes])
    }
}

#[derive(Clone, Copy)]
enum Flags {
    Syn,
    SynAck,
    Ack,
    Fin,
}

/// RC SEND Only to one of four queue pairs, with a CRC that is wrong.
fn roce(numbers: &mut Numbers) -> Vec<u8> {
    let mut bth = vec![0x04, 0x40, 0xff, 0xff, 0, 0, 0, 0x11 + numbers.below(4) as u8, 0x80];
    bth.extend(&numbers.below(1 << 24).to_be_bytes()[1..]);
    bth.extend([0x33; 64]);
    bth.extend([0; 4]);
    let builder =
        PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 3, 0, 1], [10, 3, 0, 1 + numbers.below(3) as u8], 64);
    written(builder.udp(0xc000 | numbers.below(100) as u16, 4791), &bth)
}

fn arp(host: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, host, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, host, 10, 1, 0, host]);
    frame.extend([0, 0, 0, 0, 0, 0, 10, 1, 0, 1]);
    frame.resize(60, 0);
    frame
}

/// LLDP of one of some ports, with the lossless priorities of DCBX.
fn lldp(port: u8) -> Vec<u8> {
    let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 1, port, 0x88, 0xcc];
    frame.extend([0x02, 7, 4, 2, 0, 0, 0, 1, port, 0x04, 2, 7, b'a' + port % 26, 0x06, 2, 0, 120]);
    frame.extend([0xfe, 6, 0x00, 0x80, 0xc2, 0x0b, 8, 1 << (port % 8), 0, 0]);
    frame.resize(60, 0);
    frame
}

fn pfc(class: u8, quanta: u16) -> Vec<u8> {
    let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 0x01, 2, 0, 0, 0, 0, 1, 0x88, 0x08, 0x01, 0x01, 0, 1 << class];
    let mut quantas = [0; 16];
    quantas[2 * usize::from(class)..][..2].copy_from_slice(&quanta.to_be_bytes());
    frame.extend(quantas);
    frame.resize(60, 0);
    frame
}
