//! Encapsulations: what is kept of a tunnel's own headers.

use super::address::Ip;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TunnelKind {
    Vxlan,
    VxlanGpe,
    Geneve,
    Gre,
    Nvgre,
    Erspan,
    /// IPv4 or IPv6 in IPv4 or IPv6 (protocols 4 and 41).
    IpInIp,
}

impl TunnelKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Vxlan => "VXLAN",
            Self::VxlanGpe => "VXLAN-GPE",
            Self::Geneve => "GENEVE",
            Self::Gre => "GRE",
            Self::Nvgre => "NVGRE",
            Self::Erspan => "ERSPAN",
            Self::IpInIp => "IPIP",
        }
    }
}

/// One encapsulation layer of a frame.
#[derive(Clone, Copy, Debug)]
pub struct TunnelLayer {
    pub kind: TunnelKind,
    /// VXLAN network identifier, GENEVE VNI, NVGRE virtual subnet identifier, GRE key or ERSPAN session.
    pub vni: Option<u32>,
    pub src_ip: Ip,
    pub dst_ip: Ip,
    /// UDP ports, for tunnels over UDP.
    pub ports: Option<(u16, u16)>,
    pub traffic_class: u8,
    pub ttl: u8,
    pub ip_id: u32,
    /// Where the tunnel's own IP header starts.
    pub l3_at: u32,
    /// From the tunnel's own IP header to the IP header inside (or to the payload of the inner frame, where that is no IP).
    pub overhead_bytes: u16,
    /// The inner packet's addresses; none where it is no IP.
    pub inner_src_ip: Ip,
    pub inner_dst_ip: Ip,
}
