//! How a Rust program uses wirelab: open a capture, read what is said of it, walk a table batch by batch.
//!
//! `cargo run --example embed -- FILE`

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use wirelab::{Options, ScanRequest, TableId};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: embed FILE")?;

    // An opened capture computes each table once, when it is asked for.
    let capture = wirelab::open([path.as_str()], &Options::default())?;
    let summary = capture.summary()?;
    println!("{} frames, {} bytes on the wire", summary.frames, summary.original_bytes);
    for (protocol, frames) in &summary.protocols {
        println!("  {protocol}: {frames}");
    }
    let quality = capture.table(TableId::CaptureQuality)?;
    for batch in &quality.batches {
        for message in batch["message_en"].as_string::<i32>().iter().flatten() {
            println!("note: {message}");
        }
    }

    // A scan streams one table in bounded memory, whatever the size of the capture; here with two columns only.
    let mut request = ScanRequest::new(TableId::TcpFlows);
    request.columns = Some(vec!["client_bytes".to_owned(), "handshake_rtt_ns".to_owned()]);
    for batch in wirelab::scan([path.as_str()], &Options::default(), request)? {
        let batch = batch?;
        let bytes = batch["client_bytes"].as_primitive::<UInt64Type>();
        let rtt = batch["handshake_rtt_ns"].as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let rtt = if rtt.is_null(row) { "unknown".to_owned() } else { format!("{} ns", rtt.value(row)) };
            println!("connection: {} bytes from the client, handshake RTT {rtt}", bytes.value(row));
        }
    }
    Ok(())
}
