//! Where and why decoding of one frame stopped.

use std::fmt;

/// A layer as messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layer {
    Link,
    Ethernet,
    Vlan,
    Mpls,
    Arp,
    MacControl,
    Ipv4,
    Ipv6,
    Ipv6Extension,
    Tcp,
    TcpOptions,
    Udp,
    Icmp,
    Vxlan,
    Geneve,
    Gre,
    Erspan,
    Grh,
    Bth,
    RoceExtension,
}

impl Layer {
    pub fn name(self) -> &'static str {
        match self {
            Self::Link => "link header",
            Self::Ethernet => "Ethernet",
            Self::Vlan => "VLAN tag",
            Self::Mpls => "MPLS",
            Self::Arp => "ARP",
            Self::MacControl => "MAC control",
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::Ipv6Extension => "IPv6 extension header",
            Self::Tcp => "TCP",
            Self::TcpOptions => "TCP options",
            Self::Udp => "UDP",
            Self::Icmp => "ICMP",
            Self::Vxlan => "VXLAN",
            Self::Geneve => "GENEVE",
            Self::Gre => "GRE",
            Self::Erspan => "ERSPAN",
            Self::Grh => "RoCEv1 GRH",
            Self::Bth => "BTH",
            Self::RoceExtension => "RoCE extension header",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The layer needs `need_bytes`, the capture holds `have_bytes`.
    Truncated { need_bytes: usize, have_bytes: usize },
    /// A field holds a value its standard forbids.
    BadField { field: &'static str, value: u64 },
    /// More tunnels, tags or extension headers inside each other than are followed.
    TooDeep,
    /// The capture's link type is not decoded.
    UnknownLinkType { link_type: u16 },
}

/// Where and why decoding of one frame stopped. `offset_bytes` counts from the frame's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    pub layer: Layer,
    pub offset_bytes: usize,
    pub kind: DecodeErrorKind,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (layer, at) = (self.layer.name(), self.offset_bytes);
        match self.kind {
            DecodeErrorKind::Truncated { need_bytes, have_bytes } => {
                write!(f, "{layer} at byte {at}: needs {need_bytes} bytes, the capture holds {have_bytes}")
            }
            DecodeErrorKind::BadField { field, value } => write!(f, "{layer} at byte {at}: {field} is {value}"),
            DecodeErrorKind::TooDeep => write!(f, "{layer} at byte {at}: nested too deep"),
            DecodeErrorKind::UnknownLinkType { link_type } => write!(f, "link type {link_type} is not decoded"),
        }
    }
}

impl std::error::Error for DecodeError {}
