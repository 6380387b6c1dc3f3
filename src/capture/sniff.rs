//! Tells what a file is by its first bytes, never by its name.

/// A capture format that is read, or a compression around one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Pcap,
    Pcapng,
    Compressed(Compression),
    Other(LooksLike),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
    Lz4,
    Xz,
}

impl Compression {
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
            Self::Xz => "xz",
        }
    }
}

/// What an input that is no readable capture seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LooksLike {
    Empty,
    /// A pcap or pcapng file that ends inside its first header.
    CutHeader,
    /// What tcpdump prints, saved instead of `-w`.
    TcpdumpText,
    Text,
    Html,
    Json,
    Zip,
    Rar,
    SevenZip,
    Tar,
    Bzip2,
    Pdf,
    Image,
    Snoop,
    NetMon,
    Sniffer,
    Observer,
    Etl,
    Erf,
    Parquet,
    Arrow,
    /// A pcap variant of certain devices, which Wireshark reads.
    PcapVariant,
    /// Compressed, and what is inside is text, compressed again, nothing, or of no known kind.
    CompressedText,
    CompressedTwice,
    CompressedEmpty,
    CompressedOther,
    Unknown,
}

impl LooksLike {
    fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::CutHeader => "cut_header",
            Self::TcpdumpText => "tcpdump_text",
            Self::Text => "text",
            Self::Html => "html",
            Self::Json => "json",
            Self::Zip => "zip",
            Self::Rar => "rar",
            Self::SevenZip => "seven_zip",
            Self::Tar => "tar",
            Self::Bzip2 => "bzip2",
            Self::Pdf => "pdf",
            Self::Image => "image",
            Self::Snoop => "snoop",
            Self::NetMon => "netmon",
            Self::Sniffer => "sniffer",
            Self::Observer => "observer",
            Self::Etl => "etl",
            Self::Erf => "erf",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::PcapVariant => "pcap_variant",
            Self::CompressedText => "compressed_text",
            Self::CompressedTwice => "compressed_twice",
            Self::CompressedEmpty => "compressed_empty",
            Self::CompressedOther => "compressed_other",
            Self::Unknown => "unknown",
        }
    }

    pub(crate) fn key(self) -> &'static str {
        // Keys are few and fixed; leaking none, a match keeps them `'static`.
        match self {
            Self::Empty => "looks_like.empty",
            Self::CutHeader => "looks_like.cut_header",
            Self::TcpdumpText => "looks_like.tcpdump_text",
            Self::Text => "looks_like.text",
            Self::Html => "looks_like.html",
            Self::Json => "looks_like.json",
            Self::Zip => "looks_like.zip",
            Self::Rar => "looks_like.rar",
            Self::SevenZip => "looks_like.seven_zip",
            Self::Tar => "looks_like.tar",
            Self::Bzip2 => "looks_like.bzip2",
            Self::Pdf => "looks_like.pdf",
            Self::Image => "looks_like.image",
            Self::Snoop => "looks_like.snoop",
            Self::NetMon => "looks_like.netmon",
            Self::Sniffer => "looks_like.sniffer",
            Self::Observer => "looks_like.observer",
            Self::Etl => "looks_like.etl",
            Self::Erf => "looks_like.erf",
            Self::Parquet => "looks_like.parquet",
            Self::Arrow => "looks_like.arrow",
            Self::PcapVariant => "looks_like.pcap_variant",
            Self::CompressedText => "looks_like.compressed_text",
            Self::CompressedTwice => "looks_like.compressed_twice",
            Self::CompressedEmpty => "looks_like.compressed_empty",
            Self::CompressedOther => "looks_like.compressed_other",
            Self::Unknown => "looks_like.unknown",
        }
    }

    /// What to do about it: formats that Wireshark's `editcap` converts share one advice, archives another.
    pub(crate) fn advice_key(self) -> &'static str {
        match self {
            Self::Snoop | Self::NetMon | Self::Sniffer | Self::Observer | Self::Erf | Self::PcapVariant => {
                "advice.convert"
            }
            Self::Etl => "advice.etl",
            Self::Zip | Self::Rar | Self::SevenZip | Self::Tar | Self::Bzip2 | Self::CompressedTwice => "advice.unpack",
            Self::TcpdumpText => "advice.tcpdump_text",
            Self::Empty | Self::CutHeader | Self::CompressedEmpty => "advice.empty",
            Self::Parquet | Self::Arrow => "advice.table",
            _ => "advice.other",
        }
    }
}

impl std::fmt::Display for LooksLike {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a file that begins so is a capture, and not a packed one.
#[cfg(feature = "convert")]
pub(crate) fn is_capture(head: &[u8]) -> bool {
    matches!(sniff(head), Content::Pcap | Content::Pcapng)
}

/// Judges by the first bytes (the more the better; 64 KiB are plenty).
pub(crate) fn sniff(head: &[u8]) -> Content {
    let magic = |bytes: &[u8]| head.starts_with(bytes);
    if head.is_empty() {
        return Content::Other(LooksLike::Empty);
    }
    if let Some(first) = head.first_chunk::<4>() {
        match u32::from_be_bytes(*first) {
            0xa1b2_c3d4 | 0xd4c3_b2a1 | 0xa1b2_3c4d | 0x4d3c_b2a1 | 0xa1b2_cd34 | 0x34cd_b2a1 => {
                return if head.len() < 24 { Content::Other(LooksLike::CutHeader) } else { Content::Pcap };
            }
            0x0a0d_0d0a => {
                return if head.len() < 28 { Content::Other(LooksLike::CutHeader) } else { Content::Pcapng };
            }
            0x28b5_2ffd | 0x502a_4d18..=0x5f2a_4d18 if first[1..] == [0x2a, 0x4d, 0x18] || first[0] == 0x28 => {
                return Content::Compressed(Compression::Zstd);
            }
            0x0422_4d18 => return Content::Compressed(Compression::Lz4),
            _ => {}
        }
    }
    if magic(&[0x1f, 0x8b]) {
        return Content::Compressed(Compression::Gzip);
    }
    if magic(b"\xfd7zXZ\0") {
        return Content::Compressed(Compression::Xz);
    }
    Content::Other(other(head))
}

fn other(head: &[u8]) -> LooksLike {
    const MAGICS: [(&[u8], LooksLike); 28] = [
        (b"snoop\0\0\0", LooksLike::Snoop),
        (b"RTSS", LooksLike::NetMon),
        (b"GMBU", LooksLike::NetMon),
        (b"XCP\0", LooksLike::Sniffer),
        (b"TRSNIFF data", LooksLike::Sniffer),
        (b"ObserverPktBuffe", LooksLike::Observer),
        (b"PK\x03\x04", LooksLike::Zip),
        (b"PK\x05\x06", LooksLike::Zip),
        (b"Rar!", LooksLike::Rar),
        (b"7z\xbc\xaf\x27\x1c", LooksLike::SevenZip),
        (b"BZh", LooksLike::Bzip2),
        (b"%PDF", LooksLike::Pdf),
        (b"\x89PNG", LooksLike::Image),
        (b"\xff\xd8\xff", LooksLike::Image),
        (b"GIF8", LooksLike::Image),
        (b"PAR1", LooksLike::Parquet),
        (b"ARROW1", LooksLike::Arrow),
        (b"<!DOCTYPE", LooksLike::Html),
        (b"<!doctype", LooksLike::Html),
        (b"<html", LooksLike::Html),
        (b"<HTML", LooksLike::Html),
        (b"\0\x02\0\0\0\0\0\0ETL", LooksLike::Etl),
        // Ixia lcap (hardware and software) and Navtel, in both byte orders.
        (b"\xac\x01\x00\x1c", LooksLike::PcapVariant),
        (b"\x1c\x00\x01\xac", LooksLike::PcapVariant),
        (b"\xab\x01\x00\x1c", LooksLike::PcapVariant),
        (b"\x1c\x00\x01\xab", LooksLike::PcapVariant),
        (b"\x12\xcb\xe2\xa1", LooksLike::PcapVariant),
        (b"\xa1\xe2\xcb\x12", LooksLike::PcapVariant),
    ];
    if let Some((_, what)) = MAGICS.iter().find(|(bytes, _)| head.starts_with(bytes)) {
        return *what;
    }
    if head.get(257..262) == Some(b"ustar") {
        return LooksLike::Tar;
    }
    if looks_like_erf(head) {
        return LooksLike::Erf;
    }
    match text_of(head) {
        Some(text) => text_kind(text),
        None => LooksLike::Unknown,
    }
}

/// Text up to the last whole character: UTF-8 without control characters other than white space.
fn text_of(head: &[u8]) -> Option<&str> {
    let head = &head[..head.len().min(16 * 1024)];
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    text.chars().all(|c| !c.is_control() || c.is_whitespace() || c == '\u{1b}').then_some(text)
}

fn text_kind(text: &str) -> LooksLike {
    let trimmed = text.trim_start_matches('\u{feff}').trim_start();
    if trimmed.starts_with('<') && trimmed.contains("<html") {
        return LooksLike::Html;
    }
    if trimmed.starts_with('{') || trimmed.starts_with("[{") {
        return LooksLike::Json;
    }
    let is_tcpdump = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let has_time = words.next().is_some_and(|time| {
            time.split(':').count() == 3 && time.bytes().all(|b| b.is_ascii_digit() || b == b':' || b == b'.')
        });
        has_time && words.any(|word| matches!(word, "IP" | "IP6" | "ARP," | "ethertype"))
    };
    if text.starts_with("tcpdump: ") || text.lines().take(20).any(is_tcpdump) {
        return LooksLike::TcpdumpText;
    }
    LooksLike::Text
}

/// Endace ERF has no magic: a plausible type, record length and wire length, and a second record after the first.
fn looks_like_erf(head: &[u8]) -> bool {
    let record_length = |at: usize| -> Option<usize> {
        let header = head.get(at..at + 16)?;
        let length = usize::from(u16::from_be_bytes([header[10], header[11]]));
        let seconds = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let known_type = matches!(header[8] & 0x7f, 1..=27);
        (known_type && length >= 16 && (0x3000_0000..0x8000_0000).contains(&seconds)).then_some(length)
    };
    record_length(0).and_then(record_length).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_decides_whatever_the_name() {
        let padded = |head: &[u8]| [head, &[0; 64]].concat();
        assert_eq!(sniff(&padded(&[0xd4, 0xc3, 0xb2, 0xa1])), Content::Pcap);
        assert_eq!(sniff(&padded(&[0xa1, 0xb2, 0x3c, 0x4d])), Content::Pcap);
        assert_eq!(sniff(&padded(&[0x0a, 0x0d, 0x0d, 0x0a])), Content::Pcapng);
        assert_eq!(sniff(&[0xd4, 0xc3, 0xb2, 0xa1, 2]), Content::Other(LooksLike::CutHeader));
        assert_eq!(sniff(&padded(&[0x1f, 0x8b])), Content::Compressed(Compression::Gzip));
        assert_eq!(sniff(&padded(&[0x28, 0xb5, 0x2f, 0xfd])), Content::Compressed(Compression::Zstd));
        assert_eq!(sniff(&padded(&[0x54, 0x2a, 0x4d, 0x18])), Content::Compressed(Compression::Zstd));
        assert_eq!(sniff(&padded(&[0x04, 0x22, 0x4d, 0x18])), Content::Compressed(Compression::Lz4));
        assert_eq!(sniff(&padded(b"\xfd7zXZ\0")), Content::Compressed(Compression::Xz));
    }

    #[test]
    fn what_is_no_capture_is_named() {
        let of = |head: &[u8]| match sniff(head) {
            Content::Other(what) => what,
            content => panic!("{content:?}"),
        };
        assert_eq!(of(b""), LooksLike::Empty);
        assert_eq!(of(b"12:00:01.000001 IP 10.0.0.1.80 > 10.0.0.2.9: Flags [S]\n"), LooksLike::TcpdumpText);
        assert_eq!(of(b"hello, this is my homework"), LooksLike::Text);
        assert_eq!(of("抓包文件".as_bytes()), LooksLike::Text);
        assert_eq!(of(b"{\"start\": {}}"), LooksLike::Json);
        assert_eq!(of(b"PK\x03\x04abc"), LooksLike::Zip);
        assert_eq!(of(b"snoop\0\0\0\0\0\0\x02"), LooksLike::Snoop);
        assert_eq!(of(&[0x80, 0xff, 0x01, 0x02]), LooksLike::Unknown);
    }
}
