//! Numbers, units and addresses as tools print them.

use crate::wire::Ip;

/// A span in seconds, as nanoseconds.
pub(super) fn seconds_ns(seconds: f64) -> Option<i64> {
    scaled(seconds, 1e9)
}

pub(super) fn ms_ns(ms: f64) -> Option<i64> {
    scaled(ms, 1e6)
}

pub(super) fn us_ns(us: f64) -> Option<i64> {
    scaled(us, 1e3)
}

fn scaled(value: f64, factor: f64) -> Option<i64> {
    let ns = (value * factor).round();
    // The largest float below 2^63 is what an i64 can hold.
    (ns.is_finite() && ns.abs() < 9.2e18).then_some(ns as i64)
}

/// A count that is printed as a float, or a rate: rounded, `None` where it is no such number.
pub(super) fn count(value: f64) -> Option<u64> {
    let rounded = value.round();
    (rounded.is_finite() && (0.0..1.8e19).contains(&rounded)).then_some(rounded as u64)
}

/// `K`, `M`, `G`, `T`, `P` before a unit, as powers of `base`.
pub(super) fn prefix(letter: &str, base: f64) -> f64 {
    match letter {
        "K" | "k" => base,
        "M" => base.powi(2),
        "G" => base.powi(3),
        "T" => base.powi(4),
        "P" => base.powi(5),
        _ => 1.0,
    }
}

/// A number in a text; `nan` and whatever else is no number is `None`.
pub(super) fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

/// An address as tools print it: in brackets, with a scope, or IPv4 inside IPv6. `Ip::NONE` for a host name.
pub(super) fn ip(text: &str) -> Ip {
    let bare = text.trim().trim_start_matches('[').trim_end_matches(']');
    let bare = bare.split('%').next().unwrap_or(bare);
    match bare.parse::<std::net::IpAddr>().map(|address| address.to_canonical()) {
        Ok(std::net::IpAddr::V4(address)) => Ip::v4(address.octets()),
        Ok(std::net::IpAddr::V6(address)) => Ip::v6(address.octets()),
        Err(_) => Ip::NONE,
    }
}

/// `address:port` where the address may hold colons itself.
pub(super) fn ip_port(text: &str) -> (Ip, Option<u16>) {
    match text.rsplit_once(':') {
        Some((address, port)) => (ip(address), port.parse().ok()),
        None => (ip(text), None),
    }
}

/// A share of a whole, `None` for nothing of nothing.
pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// `0x1f`, `000000` or `12` as a number.
pub(super) fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x").trim_start_matches("0X"), 16).ok()
}

/// Nanoseconds since 1970 of `Mon, 30 Nov 2026 16:21:16 GMT`.
pub(super) fn http_date_ns(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split(|c: char| c.is_whitespace() || c == ',' || c == ':').filter(|word| !word.is_empty());
    words.next()?;
    let day: i64 = words.next()?.parse().ok()?;
    let name = words.next()?;
    let month = MONTHS.iter().position(|month| *month == name)? as i64 + 1;
    let mut next = || words.next()?.parse::<i64>().ok();
    let (year, hour, minute, second) = (next()?, next()?, next()?, next()?);
    if !(1970..=2200).contains(&year) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days since 1970 in years that begin in March, so that the leap day is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468;
    Some((days * 86_400 + hour * 3_600 + minute * 60 + second) * 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_every_dress() {
        for (text, expected) in [
            ("[::ffff:10.0.0.1]", "10.0.0.1"),
            ("10.0.0.1%eth0", "10.0.0.1"),
            ("fe80::1%eth0", "fe80::1"),
            ("[2001:db8::7]", "2001:db8::7"),
        ] {
            assert_eq!(ip(text).to_string(), expected);
        }
        assert!(ip("server-1").is_none() && ip("").is_none());
        let (address, port) = ip_port("[::ffff:127.0.0.1]:5400");
        assert_eq!((address.to_string().as_str(), port), ("127.0.0.1", Some(5400)));
        assert_eq!(ip_port("*:*").1, None);
    }

    #[test]
    fn a_printed_date_is_an_exact_time() {
        // date -u -d 'Mon, 30 Nov 2026 16:21:16 GMT' +%s
        assert_eq!(http_date_ns("Mon, 30 Nov 2026 16:21:16 GMT"), Some(1_796_055_676_000_000_000));
        assert_eq!(http_date_ns("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800_000_000_000));
        assert_eq!(http_date_ns("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(http_date_ns("yesterday"), None);
    }

    #[test]
    fn numbers_that_do_not_fit_are_none() {
        assert_eq!((count(-1.0), count(f64::NAN), count(1e30), count(2.6)), (None, None, None, Some(3)));
        assert_eq!((seconds_ns(1e20), seconds_ns(0.5)), (None, Some(500_000_000)));
        assert_eq!((hex("0xff"), hex("000000"), hex("zz")), (Some(255), Some(0), None));
    }
}
