//! Captures made from a seed: the same arguments give the same bytes on every machine.

mod bulk;
mod events;
mod flows;
mod output;
mod payload;
mod receiver;
mod rng;
mod roce;
mod sender;
mod wire;

use std::io;

use crate::Options;
use output::CaptureFile;

/// Writes one capture and returns what is in it as JSON.
pub(crate) fn run(kind: &str, options: &Options) -> io::Result<String> {
    let or = |given: u64, default: u64| if given == 0 { default } else { given };
    let mut file = CaptureFile::create(&options.out)?;
    let seed = options.seed;
    match kind {
        "bulk" => {
            let plan = bulk::Plan::plain(or(options.bytes, 320_000_000), or(options.flows, 8), seed);
            bulk::write(&plan, &mut file)?;
        }
        "vxlan" => {
            let plan = bulk::Plan::vxlan(or(options.bytes, 60_000_000), or(options.flows, 8), seed);
            bulk::write(&plan, &mut file)?;
        }
        "small" => flows::write_small(or(options.packets, 2_000_000), or(options.flows, 20_000), seed, &mut file)?,
        "short" => flows::write_short(or(options.flows, 100_000), seed, &mut file)?,
        "roce" => roce::write(or(options.packets, 200_000), or(options.flows, 16), seed, &mut file)?,
        _ => {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("no kind of capture is called {kind}")));
        }
    }
    file.finish().map(|truth| truth.to_json())
}

#[cfg(test)]
mod tests;
