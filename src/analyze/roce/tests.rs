//! Crafted packets.
