//! Capture time: exact `i64` nanoseconds since 1970-01-01 UTC, never a float.

const NS_PER_S: u128 = 1_000_000_000;

/// Time of a classic pcap record; `fraction` counts microseconds or nanoseconds. Seconds are unsigned (good past 2106).
pub fn pcap_time_ns(seconds: u32, fraction: u32, is_nano: bool) -> i64 {
    let fraction_ns = if is_nano { i64::from(fraction) } else { i64::from(fraction) * 1_000 };
    i64::from(seconds) * 1_000_000_000 + fraction_ns
}

/// Time of a pcapng block: `ticks` of the interface's `if_tsresol`, plus its `if_tsoffset` in seconds. `None` where it does
/// not fit. Finer ticks than nanoseconds are cut off, as Wireshark does.
pub fn pcapng_time_ns(ticks: u64, tsresol: u8, tsoffset_s: i64) -> Option<i64> {
    if tsoffset_s == 0 {
        match tsresol {
            9 => return i64::try_from(ticks).ok(),
            6 => return i64::try_from(ticks).ok()?.checked_mul(1_000),
            _ => {}
        }
    }
    let exponent = u32::from(tsresol & 0x7f);
    // ticks < 2^64 and 10^9 < 2^30, so this product fits. Ticks and offset may each be past 64 bits where their sum is not.
    let scaled = u128::from(ticks) * NS_PER_S;
    let since_offset_ns = if tsresol & 0x80 == 0 {
        scaled / 10_u128.checked_pow(exponent)?
    } else {
        // A shift past the product leaves 0.
        scaled.checked_shr(exponent).unwrap_or(0)
    };
    let offset_ns = i128::from(tsoffset_s) * NS_PER_S as i128;
    i64::try_from(i128::try_from(since_offset_ns).ok()?.checked_add(offset_ns)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pcap_seconds_are_unsigned() {
        assert_eq!(pcap_time_ns(u32::MAX, 999_999, false), 4_294_967_295_999_999_000);
        assert_eq!(pcap_time_ns(1, 5, true), 1_000_000_005);
    }

    #[test]
    fn every_resolution_is_exact() {
        assert_eq!(pcapng_time_ns(1_700_000_000_123_456, 6, 0), Some(1_700_000_000_123_456_000));
        assert_eq!(pcapng_time_ns(1_700_000_000_123_456_789, 9, 0), Some(1_700_000_000_123_456_789));
        assert_eq!(pcapng_time_ns(1_500, 3, 0), Some(1_500_000_000));
        assert_eq!(pcapng_time_ns(7, 0, 0), Some(7_000_000_000));
        assert_eq!(pcapng_time_ns(1_234_567_890_123, 12, 0), Some(1_234_567_890));
        // 2^-10: 1536 ticks are 1.5 s; 2^-32 as NTP counts.
        assert_eq!(pcapng_time_ns(1536, 0x8a, 0), Some(1_500_000_000));
        assert_eq!(pcapng_time_ns(3 << 31, 0xa0, 0), Some(1_500_000_000));
        assert_eq!(pcapng_time_ns(u64::MAX, 0xff, 0), Some(0));
    }

    #[test]
    fn the_offset_is_in_seconds_and_signed() {
        assert_eq!(pcapng_time_ns(1_000_000, 6, -3600), Some(-3_599_000_000_000));
        assert_eq!(pcapng_time_ns(0, 6, i64::MAX), None);
        assert_eq!(pcapng_time_ns(0, 6, i64::MIN), None);
        assert_eq!(pcapng_time_ns(u64::MAX, 9, -10_000_000_000), Some(8_446_744_073_709_551_615));
        assert_eq!(pcapng_time_ns(500, 3, -1), Some(-500_000_000));
    }

    #[test]
    fn what_does_not_fit_is_none_and_never_wraps() {
        assert_eq!(pcapng_time_ns(u64::MAX, 6, 0), None);
        assert_eq!(pcapng_time_ns(u64::MAX, 0, 0), None);
        assert_eq!(pcapng_time_ns(u64::MAX, 0x80, 0), None);
        assert_eq!(pcapng_time_ns(5, 127, 0), None);
    }
}
