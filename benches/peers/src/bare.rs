//! The yardsticks: what reading a capture costs when nothing is kept.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::path::Path;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use memmap2::Mmap;

const VXLAN_PORT: u16 = 4789;
const VXLAN_LEN: usize = 8;
const ROCE_PORT: u16 = 4791;

/// What the bare loop saw; the harness holds these against the other programs' answers.
#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub frames: u64,
    pub tcp: u64,
    pub udp: u64,
    pub roce: u64,
    /// TCP and UDP payload of the innermost layer, in bytes.
    pub payload_bytes: u64,
    pub undecoded: u64,
}

impl Counts {
    pub fn to_json(&self) -> String {
        format!(
            "{{\"frames\": {}, \"tcp\": {}, \"udp\": {}, \"roce\": {}, \"payload_bytes\": {}, \"undecoded\": {}}}",
            self.frames, self.tcp, self.udp, self.roce, self.payload_bytes, self.undecoded
        )
    }

    fn add_frame(&mut self, frame: &[u8]) {
        self.frames += 1;
        let Ok(packet) = SlicedPacket::from_ethernet(frame) else {
            self.undecoded += 1;
            return;
        };
        if let Some(NetSlice::Ipv4(ip)) = &packet.net {
            // Reading an address keeps the compiler from dropping the header's decoding.
            black_box(ip.header().source());
        }
        self.add_transport(&packet, true);
    }

    fn add_transport(&mut self, packet: &SlicedPacket<'_>, may_hold_tunnel: bool) {
        match &packet.transport {
            Some(TransportSlice::Tcp(tcp)) => {
                self.tcp += 1;
                black_box(tcp.sequence_number());
                self.payload_bytes += tcp.payload().len() as u64;
            }
            Some(TransportSlice::Udp(udp)) => {
                let payload = udp.payload();
                if may_hold_tunnel && udp.destination_port() == VXLAN_PORT && payload.len() > VXLAN_LEN {
                    match SlicedPacket::from_ethernet(&payload[VXLAN_LEN..]) {
                        Ok(inner) => self.add_transport(&inner, false),
                        Err(_) => self.undecoded += 1,
                    }
                    return;
                }
                self.udp += 1;
                self.roce += u64::from(udp.destination_port() == ROCE_PORT);
                self.payload_bytes += payload.len() as u64;
            }
            _ => {}
        }
    }
}

/// Walks every record of a little-endian pcap file and slices it down to TCP or UDP.
pub(crate) fn decode(path: &Path) -> io::Result<Counts> {
    let map = map(path)?;
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()));
    let (mut rest, header) = pcap_parser::parse_pcap_header(&map).map_err(|_| bad("no pcap header"))?;
    if header.is_bigendian() {
        return Err(bad("big-endian, which the bare loop leaves out"));
    }
    let mut counts = Counts::default();
    while !rest.is_empty() {
        let (after, block) = pcap_parser::parse_pcap_frame(rest).map_err(|_| bad("cut record"))?;
        counts.add_frame(block.data);
        rest = after;
    }
    Ok(counts)
}

/// Adds up the file as 64-bit words: each byte is loaded once and nothing is decoded.
pub(crate) fn touch(path: &Path) -> io::Result<u64> {
    let map = map(path)?;
    let (words, tail) = map.as_chunks::<8>();
    let sum = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    Ok(tail.iter().fold(sum, |sum, &byte| sum.wrapping_add(u64::from(byte))))
}

fn map(path: &Path) -> io::Result<Mmap> {
    let file =
        File::open(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    // SAFETY: the benchmark's own input, which nothing changes while a yardstick runs.
    unsafe { Mmap::map(&file) }
}
