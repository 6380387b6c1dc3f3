//! The functions that SQLite's own are short of.

use std::net::IpAddr;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result};

use super::guard::Guard;

/// Most memory for a compiled pattern.
const PATTERN_BYTES: usize = 1 << 20;
const FLAGS: FunctionFlags =
    FunctionFlags::SQLITE_UTF8.union(FunctionFlags::SQLITE_DETERMINISTIC).union(FunctionFlags::SQLITE_INNOCUOUS);
/// Values are gathered, and their memory asked for, in pieces of this many.
const PIECE: usize = 1_024;

/// Makes all functions known to a connection.
pub(super) fn register(connection: &Connection, guard: &Arc<Guard>) -> Result<()> {
    let scalar = |name: &'static str, of: fn(f64) -> f64| {
        connection.create_scalar_function(name, 1, FLAGS, move |context| {
            Ok(number(context, name, 0)?.map(of).filter(|result| !result.is_nan()))
        })
    };
    scalar("sqrt", f64::sqrt)?;
    scalar("exp", f64::exp)?;
    for (name, of) in
        [("ln", f64::ln as fn(f64) -> f64), ("log", f64::log10), ("log10", f64::log10), ("log2", f64::log2)]
    {
        connection.create_scalar_function(name, 1, FLAGS, move |context| {
            // As SQLite's own mathematics, where it is compiled in: nothing, and no infinity, where there is no logarithm.
            Ok(number(context, name, 0)?.filter(|of| *of > 0.0).map(of))
        })?;
    }
    connection.create_scalar_function("log", 2, FLAGS, |context| {
        let (base, of) = (number(context, "log", 0)?, number(context, "log", 1)?);
        Ok(base
            .zip(of)
            .filter(|(base, of)| *base > 0.0 && *base != 1.0 && *of > 0.0)
            .map(|(base, of)| of.ln() / base.ln()))
    })?;
    for name in ["pow", "power"] {
        connection.create_scalar_function(name, 2, FLAGS, move |context| {
            let (base, exponent) = (number(context, name, 0)?, number(context, name, 1)?);
            Ok(base.zip(exponent).map(|(base, exponent)| base.powf(exponent)).filter(|result| !result.is_nan()))
        })?;
    }
    connection.create_scalar_function("floor", 1, FLAGS, |context| rounded(context, "floor", f64::floor))?;
    connection.create_scalar_function("ceil", 1, FLAGS, |context| rounded(context, "ceil", f64::ceil))?;
    connection.create_scalar_function("ratio", 2, FLAGS, |context| {
        let (part, whole) = (number(context, "ratio", 0)?, number(context, "ratio", 1)?);
        Ok(part.zip(whole).filter(|(_, whole)| *whole != 0.0).map(|(part, whole)| part / whole))
    })?;
    connection.create_scalar_function("ip_in", 2, FLAGS, ip_in)?;
    connection.create_scalar_function("regexp", 2, FLAGS, regexp)?;
    connection.create_scalar_function("hex", 1, FLAGS, |context| hex(context, 1))?;
    connection.create_scalar_function("hex", 2, FLAGS, |context| {
        let digits = match context.get_raw(1) {
            ValueRef::Integer(digits @ 1..=64) => usize::try_from(digits).unwrap_or(1),
            _ => return Err(failure("hex: the number of digits must be from 1 to 64".to_owned())),
        };
        hex(context, digits)
    })?;
    for name in ["median", "quantile"] {
        let arguments = if name == "median" { 1 } else { 2 };
        connection.create_aggregate_function(name, arguments, FLAGS, Quantile { name, guard: Arc::clone(guard) })?;
    }
    connection.create_aggregate_function("stddev", 1, FLAGS, Stddev)
}

fn failure(message: String) -> Error {
    Error::UserFunctionError(message.into())
}

/// An argument as a number; a text that reads as one is one.
fn number(context: &Context<'_>, function: &str, at: usize) -> Result<Option<f64>> {
    match context.get_raw(at) {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(number) => Ok(Some(number as f64)),
        ValueRef::Real(number) => Ok(Some(number)),
        ValueRef::Text(text) => {
            let text = String::from_utf8_lossy(text);
            let read = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
            read.map(Some).ok_or_else(|| failure(format!("{function}: '{}' is no number", shortened(&text))))
        }
        ValueRef::Blob(_) => Err(failure(format!("{function}: a blob is no number"))),
    }
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// A whole number stays one.
fn rounded(context: &mut Context<'_>, name: &str, of: fn(f64) -> f64) -> Result<rusqlite::types::Value> {
    use rusqlite::types::Value;
    if let ValueRef::Integer(number) = context.get_raw(0) {
        return Ok(Value::Integer(number));
    }
    Ok(number(context, name, 0)?.map_or(Value::Null, |number| Value::Real(of(number))))
}

/// An integer as `0x…`; texts that are such already stay, so that `hex(va)` is no trap. Anything else as SQLite does.
fn hex(context: &mut Context<'_>, digits: usize) -> Result<Option<String>> {
    let bytes = match context.get_raw(0) {
        ValueRef::Null => return Ok(None),
        ValueRef::Integer(number) => return Ok(Some(format!("0x{number:0digits$x}"))),
        ValueRef::Real(number) => number.to_string().into_bytes(),
        ValueRef::Text(text) => {
            let is_hex =
                text.strip_prefix(b"0x").is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_hexdigit));
            if is_hex {
                return Ok(Some(String::from_utf8_lossy(text).into_owned()));
            }
            text.to_vec()
        }
        ValueRef::Blob(bytes) => bytes.to_vec(),
    };
    Ok(Some(bytes.iter().map(|byte| format!("{byte:02X}")).collect()))
}

fn regexp(context: &mut Context<'_>) -> Result<Option<bool>> {
    let pattern = context.get_or_create_aux(0, |value| -> Result<Option<Regex>, String> {
        match value {
            ValueRef::Null => Ok(None),
            ValueRef::Text(pattern) => {
                let pattern = std::str::from_utf8(pattern).map_err(|_| "regexp: the pattern is no text".to_owned())?;
                let built = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES).build();
                built.map(Some).map_err(|error| format!("regexp: {error}"))
            }
            _ => Err("regexp: the pattern is no text".to_owned()),
        }
    })?;
    Ok(match (pattern.as_ref(), context.get_raw(1)) {
        (None, _) | (_, ValueRef::Null) => None,
        (Some(pattern), ValueRef::Text(text)) => Some(pattern.is_match(&String::from_utf8_lossy(text))),
        (Some(pattern), ValueRef::Integer(number)) => Some(pattern.is_match(&number.to_string())),
        (Some(pattern), ValueRef::Real(number)) => Some(pattern.is_match(&number.to_string())),
        (Some(_), ValueRef::Blob(_)) => return Err(failure("regexp: a blob is no text".to_owned())),
    })
}

/// An address with the number of leading bits that count.
struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.trim().split_once('/') {
            Some((address, bits)) => (address.parse::<IpAddr>().ok()?, Some(bits.parse::<u32>().ok()?)),
            None => (text.trim().parse::<IpAddr>().ok()?, None),
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        (bits <= most).then_some(Self { address, bits })
    }

    fn has(&self, address: IpAddr) -> bool {
        let differing = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros(),
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros(),
            _ => return false,
        };
        differing >= self.bits
    }
}

fn ip_in(context: &mut Context<'_>) -> Result<Option<bool>> {
    let network = context.get_or_create_aux(1, |value| -> Result<Option<Network>, String> {
        match value {
            ValueRef::Null => Ok(None),
            ValueRef::Text(text) => {
                let text = String::from_utf8_lossy(text);
                let told = || format!("ip_in: '{}' is no network, as 10.0.0.0/8 is one", shortened(&text));
                Network::parse(&text).map(Some).ok_or_else(told)
            }
            _ => Err("ip_in: a network is a text, as '10.0.0.0/8'".to_owned()),
        }
    })?;
    let ValueRef::Text(text) = context.get_raw(0) else { return Ok(None) };
    // What is no address is in no network, and out of none.
    let address = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<IpAddr>().ok());
    Ok(network.as_ref().as_ref().zip(address).map(|(network, address)| network.has(address)))
}

/// `median(x)` and `quantile(x, q)`: between two values in proportion, as NumPy and DuckDB's `quantile_cont` do.
struct Quantile {
    name: &'static str,
    guard: Arc<Guard>,
}

/// Values of one group, whose memory is accounted for until it is let go.
struct Gathered {
    values: Vec<f64>,
    share: Option<f64>,
    taken_bytes: u64,
    guard: Arc<Guard>,
}

impl std::panic::RefUnwindSafe for Gathered {}
impl std::panic::UnwindSafe for Gathered {}

impl Drop for Gathered {
    fn drop(&mut self) {
        self.guard.give_back(self.taken_bytes);
    }
}

impl Aggregate<Gathered, Option<f64>> for Quantile {
    fn init(&self, _: &mut Context<'_>) -> Result<Gathered> {
        Ok(Gathered { values: Vec::new(), share: None, taken_bytes: 0, guard: Arc::clone(&self.guard) })
    }

    fn step(&self, context: &mut Context<'_>, gathered: &mut Gathered) -> Result<()> {
        if gathered.share.is_none() {
            let share = if context.len() > 1 { number(context, self.name, 1)? } else { Some(0.5) };
            let share = share.filter(|share| (0.0..=1.0).contains(share));
            gathered.share =
                Some(share.ok_or_else(|| failure(format!("{}: the share must be from 0 to 1", self.name)))?);
        }
        let Some(value) = number(context, self.name, 0)? else { return Ok(()) };
        if gathered.values.len() == gathered.values.capacity() {
            let more = gathered.values.len().max(PIECE);
            let bytes = (more * size_of::<f64>()) as u64;
            if !self.guard.take(bytes) {
                return Err(failure(format!("{}: the memory allowed is used up", self.name)));
            }
            gathered.taken_bytes += bytes;
            gathered.values.reserve_exact(more);
        }
        gathered.values.push(value);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, gathered: Option<Gathered>) -> Result<Option<f64>> {
        let Some(mut gathered) = gathered else { return Ok(None) };
        let share = gathered.share.unwrap_or(0.5);
        Ok(quantile(&mut gathered.values, share))
    }
}

fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let at = share * last as f64;
    let below = (at.floor() as usize).min(last);
    let (_, low, above) = values.select_nth_unstable_by(below, f64::total_cmp);
    let low = *low;
    let part = at - below as f64;
    let high = above.iter().copied().min_by(f64::total_cmp).filter(|_| part > 0.0);
    Some(high.map_or(low, |high| low + (high - low) * part))
}

/// The standard deviation of a sample; null for fewer than two values.
struct Stddev;

/// Welford's running mean and sum of squared distances, which loses nothing to large means.
#[derive(Default)]
struct Spread {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Aggregate<Spread, Option<f64>> for Stddev {
    fn init(&self, _: &mut Context<'_>) -> Result<Spread> {
        Ok(Spread::default())
    }

    fn step(&self, context: &mut Context<'_>, spread: &mut Spread) -> Result<()> {
        if let Some(value) = number(context, "stddev", 0)? {
            spread.count += 1;
            let distance = value - spread.mean;
            spread.mean += distance / spread.count as f64;
            spread.squares += distance * (value - spread.mean);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, spread: Option<Spread>) -> Result<Option<f64>> {
        let spread = spread.filter(|spread| spread.count > 1);
        Ok(spread.map(|spread| (spread.squares / (spread.count - 1) as f64).sqrt()))
    }
}
