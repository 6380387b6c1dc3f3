//! Any bytes as one frame of any link type.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use wirelab::Options;
use wirelab::capture::LinkType;
use wirelab::wire::{Chunk, DecodeConfig, decode};

const LINKS: [LinkType; 11] = [
    LinkType::ETHERNET,
    LinkType::NULL,
    LinkType::RAW_BSD,
    LinkType::RAW_OPENBSD,
    LinkType::RAW,
    LinkType::LOOP,
    LinkType::LINUX_SLL,
    LinkType::IPV4,
    LinkType::IPV6,
    LinkType::LINUX_SLL2,
    LinkType::UNKNOWN,
];

thread_local! {
    static STATE: RefCell<(DecodeConfig, Chunk)> = RefCell::new((DecodeConfig::new(&Options::default()), Chunk::default()));
}

// First byte: the link type. Second: bytes that the snap length cut off.
fuzz_target!(|data: &[u8]| {
    let [link, cut, frame @ ..] = data else { return };
    let link = LINKS[usize::from(*link) % LINKS.len()];
    let original_bytes = (frame.len() as u32).saturating_add(u32::from(*cut));
    STATE.with_borrow_mut(|(config, chunk)| {
        chunk.clear();
        decode(link, frame, original_bytes, config, chunk);
    });
});
