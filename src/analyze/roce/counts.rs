//! What is counted of one queue pair's requester and of what it was answered.

use super::types::Cause;

/// Counts of packets, but for what is named otherwise.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoceCounts {
    pub requests: u64,
    /// Payload of requests sent for the first time, and of responses that came in their places.
    pub request_bytes: u64,
    pub response_bytes: u64,
    pub responses: u64,
    pub acknowledgements: u64,
    pub resent: [u64; Cause::ALL.len()],
    pub resent_bytes: u64,
    /// Times that the requester went back.
    pub rewinds: [u64; Cause::ALL.len()],
    /// Time without progress before its timeouts, in all, and the longest.
    pub timeout_wait_ns: i64,
    pub longest_timeout_wait_ns: i64,
    /// Timeouts of packets that a sequence NAK had asked for in vain.
    pub timeouts_after_nak: u64,
    /// Timeouts although an acknowledgement of everything had passed the tap.
    pub timeouts_after_ack: u64,
    pub network_duplicates: u64,
    pub capture_duplicates: u64,
    pub damaged: u64,
    /// As they came to the responder, where the tap can tell.
    pub in_order: u64,
    pub out_of_sequence: u64,
    pub duplicates: u64,
    pub unknown_arrivals: u64,
    /// Gaps that the responder saw.
    pub gaps: u64,
    /// What its requester sent, and the responder got and dropped: out of sequence, or since it had come before.
    pub discarded: u64,
    /// Of these what had come before.
    pub discarded_twice: u64,
    pub discarded_bytes: u64,
    pub sequence_naks: u64,
    pub rnr_naks: u64,
    pub fatal_naks: u64,
    /// The same by code; at 0 those with a reserved one.
    pub fatal_by_code: [u64; 5],
    /// Numbers that were acknowledged and are not in the capture.
    pub not_captured: u64,
    /// Requests with the CE mark, with ECT, and without any.
    pub ce: u64,
    pub ect: u64,
    pub not_ect: u64,
    pub response_ce: u64,
    pub notifications: u64,
    /// Notifications to the responder, which sends READ responses.
    pub response_notifications: u64,
    pub messages: u64,
}

impl RoceCounts {
    pub fn resent_total(&self) -> u64 {
        self.resent.iter().sum()
    }
}
