//! Verifies the checksums and the invariant CRC of a decoded frame. Touches every byte, so it is done only where asked for.

use super::address::Ip;
use super::checksum::{PseudoAddresses, ipv4_header, l4};
use super::frame::{Chunk, Frame, Layers, Protocol};
use super::icrc;

/// Looks at the innermost packet of the frame that was decoded last into `chunk`.
pub(crate) fn verify(bytes: &[u8], chunk: &mut Chunk) {
    let Some(frame) = chunk.frames.last_mut() else { return };
    if !frame.layers.has(Layers::IP) {
        return;
    }
    let (l3_at, l4_at) = (frame.l3_at as usize, frame.l4_at as usize);
    let packet = bytes.get(l3_at..).unwrap_or(&[]);
    match frame.protocol {
        Protocol::RoceV1 => return set_icrc(chunk, icrc::check_v1(packet)),
        Protocol::RoceV2 if frame.src_ip.is_v6() => set_icrc(chunk, icrc::check_ipv6(packet)),
        Protocol::RoceV2 => set_icrc(chunk, icrc::check_ipv4(packet)),
        _ => {}
    }
    let Some(frame) = chunk.frames.last_mut() else { return };
    if !frame.src_ip.is_v6() {
        frame.ip_checksum = Some(ipv4_header(packet));
    }
    // A later fragment starts in the middle of its datagram: what is there is no header.
    if frame.fragment_offset != 0 {
        return;
    }
    let l4_bytes = frame.ip_bytes.saturating_sub(frame.l4_at.saturating_sub(frame.l3_at));
    let captured = bytes.get(l4_at..).unwrap_or(&[]);
    let is_fragment = frame.layers.has(Layers::FRAGMENT);
    frame.l4_checksum = addresses(frame).and_then(|a| l4(a, frame.ip_protocol, l4_bytes, captured, is_fragment));
}

fn addresses(frame: &Frame) -> Option<PseudoAddresses> {
    let v4 = |ip: &Ip| <[u8; 4]>::try_from(ip.octets()).ok();
    let v6 = |ip: &Ip| <[u8; 16]>::try_from(ip.octets()).ok();
    match frame.src_ip.is_v6() {
        false => Some(PseudoAddresses::v4(v4(&frame.src_ip)?, v4(&frame.dst_ip)?)),
        true => Some(PseudoAddresses::v6(v6(&frame.src_ip)?, v6(&frame.dst_ip)?)),
    }
}

fn set_icrc(chunk: &mut Chunk, status: icrc::IcrcStatus) {
    let detail = chunk.frames.last().map_or(usize::MAX, |frame| frame.detail as usize);
    if let Some(packet) = chunk.roce.get_mut(detail) {
        packet.icrc = Some(status);
    }
}
