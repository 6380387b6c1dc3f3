//! Capture files in memory, for tests.

/// A pcapng file, block by block, in either byte order.
#[derive(Clone, Default)]
pub(crate) struct Pcapng {
    pub bytes: Vec<u8>,
    pub is_big_endian: bool,
}

impl Pcapng {
    /// Starts with a section header.
    pub fn new(is_big_endian: bool) -> Self {
        let mut file = Self::default();
        file.section(is_big_endian);
        file
    }

    pub fn section(&mut self, is_big_endian: bool) -> &mut Self {
        self.is_big_endian = is_big_endian;
        let body =
            [self.u32(0x1a2b_3c4d), self.u32(if is_big_endian { 0x0001_0000 } else { 1 }), vec![0xff; 8]].concat();
        self.block(0x0a0d_0d0a, &body)
    }

    pub fn block(&mut self, block_type: u32, body: &[u8]) -> &mut Self {
        let length = 12 + body.len().next_multiple_of(4) as u32;
        let head = [self.u32(block_type), self.u32(length)].concat();
        self.bytes.extend(head);
        self.bytes.extend_from_slice(body);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let trailer = self.u32(length);
        self.bytes.extend(trailer);
        self
    }

    pub fn interface(&mut self, link: u16, snap_length: u32, options: &[(u16, &[u8])]) -> &mut Self {
        let mut body = self.u16(link);
        body.extend([0, 0]);
        body.extend(self.u32(snap_length));
        body.extend(self.options(options));
        self.block(1, &body)
    }

    pub fn packet(&mut self, interface: u32, ticks: u64, data: &[u8], options: &[(u16, &[u8])]) -> &mut Self {
        let length = data.len() as u32;
        self.packet_of(interface, ticks, (length, length), data, options)
    }

    pub fn packet_of(
        &mut self,
        interface: u32,
        ticks: u64,
        lengths: (u32, u32),
        data: &[u8],
        options: &[(u16, &[u8])],
    ) -> &mut Self {
        let fields = [interface, (ticks >> 32) as u32, ticks as u32, lengths.0, lengths.1];
        let mut body: Vec<u8> = fields.iter().flat_map(|field| self.u32(*field)).collect();
        body.extend_from_slice(data);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(self.options(options));
        self.block(6, &body)
    }

    pub fn simple(&mut self, original: u32, data: &[u8]) -> &mut Self {
        let body = [self.u32(original), data.to_vec()].concat();
        self.block(3, &body)
    }

    pub fn options(&self, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (code, value) in options {
            bytes.extend(self.u16(*code));
            bytes.extend(self.u16(value.len() as u16));
            bytes.extend_from_slice(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    pub fn u16(&self, value: u16) -> Vec<u8> {
        if self.is_big_endian { value.to_be_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
    }

    pub fn u32(&self, value: u32) -> Vec<u8> {
        if self.is_big_endian { value.to_be_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
    }

    pub fn u64(&self, value: u64) -> Vec<u8> {
        if self.is_big_endian { value.to_be_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
    }
}

/// A nanosecond pcap of Ethernet frames: time in nanoseconds, and bytes.
pub(crate) fn pcap(frames: &[(i64, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        bytes.extend(field.to_le_bytes());
    }
    for (time_ns, data) in frames {
        let length = data.len() as u32;
        for field in [(time_ns / 1_000_000_000) as u32, (time_ns % 1_000_000_000) as u32, length, length] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend_from_slice(data);
    }
    bytes
}
