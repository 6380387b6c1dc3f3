//! Addresses of IP and of IEEE 802.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An IPv4 or IPv6 address, or none.
#[derive(Clone, Copy, Default)]
pub struct Ip {
    /// 0 = none, 4, 6. First, so that all IPv4 addresses sort before all IPv6 ones.
    family: u8,
    /// An IPv4 address fills the first four.
    bytes: [u8; 16],
}

impl Ip {
    pub const NONE: Self = Self { family: 0, bytes: [0; 16] };

    #[inline]
    pub fn v4(address: [u8; 4]) -> Self {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&address);
        Self { family: 4, bytes }
    }

    #[inline]
    pub fn v6(bytes: [u8; 16]) -> Self {
        Self { family: 6, bytes }
    }

    #[inline]
    pub fn is_none(&self) -> bool {
        self.family == 0
    }

    #[inline]
    pub fn is_v6(&self) -> bool {
        self.family == 6
    }

    /// The address's bytes: 4, 16 or none.
    pub fn octets(&self) -> &[u8] {
        match self.family {
            4 => &self.bytes[..4],
            6 => &self.bytes,
            _ => &[],
        }
    }

    /// Adds the address to a text, as [`Display`](fmt::Display) shows it.
    pub(crate) fn push_to(&self, text: &mut String) {
        if self.family == 4 {
            for (at, &byte) in self.bytes[..4].iter().enumerate() {
                if at > 0 {
                    text.push('.');
                }
                push_decimal(text, byte);
            }
        } else {
            use fmt::Write as _;
            let _ = write!(text, "{self}");
        }
    }

    /// All bytes as one number, in the order of addresses.
    #[inline]
    fn number(&self) -> u128 {
        u128::from_be_bytes(self.bytes)
    }

    /// Two words that tell any two addresses of one family apart.
    #[inline]
    pub(crate) fn words(&self) -> (u64, u64) {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| self.bytes[at + i]));
        (word(0), word(8) ^ u64::from(self.family))
    }
}

fn push_decimal(text: &mut String, byte: u8) {
    let digit = |value: u8| char::from(b'0' + value);
    if byte >= 100 {
        text.push(digit(byte / 100));
    }
    if byte >= 10 {
        text.push(digit(byte / 10 % 10));
    }
    text.push(digit(byte % 10));
}

// Compared in words: what a derive makes of an array of bytes is a call for each comparison, and every frame has several.
impl PartialEq for Ip {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.family == other.family && self.number() == other.number()
    }
}

impl Eq for Ip {}

impl Ord for Ip {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.family, self.number()).cmp(&(other.family, other.number()))
    }
}

impl PartialOrd for Ip {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::hash::Hash for Ip {
    #[inline]
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let (a, b) = self.words();
        state.write_u64(a);
        state.write_u64(b);
    }
}

impl std::str::FromStr for Ip {
    type Err = std::net::AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.parse::<std::net::IpAddr>()? {
            std::net::IpAddr::V4(address) => Self::v4(address.octets()),
            std::net::IpAddr::V6(address) => Self::v6(address.octets()),
        })
    }
}

impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.family {
            4 => Ipv4Addr::new(self.bytes[0], self.bytes[1], self.bytes[2], self.bytes[3]).fmt(f),
            6 => Ipv6Addr::from(self.bytes).fmt(f),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An IEEE 802 MAC address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Adds the address to a text, as [`Display`](fmt::Display) shows it.
    pub(crate) fn push_to(self, text: &mut String) {
        const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
        for (at, &byte) in self.0.iter().enumerate() {
            if at > 0 {
                text.push(':');
            }
            text.push(DIGITS[usize::from(byte >> 4)]);
            text.push(DIGITS[usize::from(byte & 15)]);
        }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_they_are_displayed() {
        let texts = ["0.0.0.0", "10.77.0.9", "255.100.99.1", "2001:db8::1", "::ffff:1.2.3.4"];
        for text in texts {
            let (ip, mut written) = (text.parse::<Ip>().unwrap(), String::new());
            ip.push_to(&mut written);
            assert_eq!((written.as_str(), ip.to_string().as_str()), (text, text));
        }
        let (mac, mut written) = (Mac([0, 0x1f, 0xa0, 0xff, 9, 0x10]), String::new());
        mac.push_to(&mut written);
        assert_eq!((written.as_str(), mac.to_string().as_str()), ("00:1f:a0:ff:09:10", "00:1f:a0:ff:09:10"));
    }

    #[test]
    fn addresses_sort_as_their_families_and_bytes_do() {
        let mut ips: Vec<Ip> = ["::1", "9.0.0.0", "10.0.0.1", "10.0.0.0", "fe80::"].map(|t| t.parse().unwrap()).into();
        ips.push(Ip::NONE);
        ips.sort_unstable();
        let texts: Vec<_> = ips.iter().map(Ip::to_string).collect();
        assert_eq!(texts, ["", "9.0.0.0", "10.0.0.0", "10.0.0.1", "::1", "fe80::"]);
    }
}
