//! `wirelab-bench`: makes the captures that `make bench` measures on, and reads them with as little work as can be.
//!
//! The same arguments always give the same bytes. Every command prints one line of JSON to standard output.

mod bare;
mod generate;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage:
  wirelab-bench generate KIND --out FILE [--seed N] [--bytes N] [--packets N] [--flows N]
      KIND: bulk    TCP transfers with loss          --bytes: least size of the file, --flows: connections
            vxlan   the same inside VXLAN            --bytes, --flows
            small   requests and responses           --packets, --flows
            short   connections of about ten frames  --flows
            roce    RoCEv2 RC WRITE with go-back-N   --packets: data packets, --flows: queue pairs
  wirelab-bench bare FILE     pcap-parser and etherparse over the mapped file
  wirelab-bench touch FILE    adds up the mapped file's bytes";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["generate", kind, options @ ..] => match Options::parse(options) {
            Ok(options) => generate::run(kind, &options),
            Err(message) => return usage(&message),
        },
        ["bare", file] => bare::decode(Path::new(file)).map(|counts| counts.to_json()),
        ["touch", file] => bare::touch(Path::new(file)).map(|sum| format!("{{\"sum\": {sum}}}")),
        _ => return usage("no such command"),
    };
    match outcome {
        Ok(json) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("wirelab-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What `generate` is asked for; zero means "the kind's own default".
pub(crate) struct Options {
    pub out: String,
    pub seed: u64,
    pub bytes: u64,
    pub packets: u64,
    pub flows: u64,
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self { out: String::new(), seed: 1, bytes: 0, packets: 0, flows: 0 };
        for pair in words.chunks(2) {
            let [name, value] = pair else {
                return Err(format!("{} needs a value", pair[0]));
            };
            let number = || value.replace('_', "").parse::<u64>().map_err(|_| format!("{name}: {value} is no number"));
            match *name {
                "--out" => options.out = (*value).to_owned(),
                "--seed" => options.seed = number()?,
                "--bytes" => options.bytes = number()?,
                "--packets" => options.packets = number()?,
                "--flows" => options.flows = number()?,
                _ => return Err(format!("no option {name}")),
            }
        }
        if options.out.is_empty() {
            return Err("--out FILE is missing".to_owned());
        }
        Ok(options)
    }
}

fn usage(message: &str) -> ExitCode {
    eprintln!("wirelab-bench: {message}\n{USAGE}");
    ExitCode::from(2)
}
