//! Frames written as pcapng, read back by tshark and by wirelab.

use std::path::Path;
use std::process::Command;

use wirelab::{Lang, Options, TableId};

use crate::support::cells::{column, ints};
use crate::support::{Scratch, sample};

/// Frame number, time, lengths, interface, comments, and the frame's bytes in hexadecimal, as tshark shows them.
fn tshark(path: &Path) -> Option<Vec<Vec<String>>> {
    let fields = ["frame.time_epoch", "frame.len", "frame.cap_len", "frame.interface_name", "frame.comment"];
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-E", "aggregator=|", "-r"]).arg(path);
    for field in fields {
        command.args(["-e", field]);
    }
    let Ok(output) = command.output() else {
        println!("SKIPPED: tshark is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

/// The bytes of each frame, as tshark prints them.
fn hex_dump(path: &Path) -> Vec<String> {
    let output = Command::new("tshark").args(["-n", "-x", "-r"]).arg(path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split("\n\n").map(|frame| frame.trim().to_owned()).filter(|frame| !frame.is_empty()).collect()
}

#[test]
fn tshark_reads_back_what_was_written() {
    let scratch = Scratch::new("write-tshark");
    let source = sample("roce-loss/roce-loss.requester.pcap");
    let capture = wirelab::open([source.as_path()], &Options::default()).unwrap();
    let path = scratch.path().join("proof.pcapng");
    let chosen = [(1, 2), (1, 9), (1, 17)];
    let comments = [(1, 9, "first loss"), (1, 9, "see frame 17"), (1, 17, "重传")];
    let report = capture.write(&path, Some(&chosen), &comments).unwrap();
    assert_eq!((report.frames, report.comments), (3, 3));
    let (Some(written), Some(original)) = (tshark(&path), tshark(&source)) else { return };
    let (ours, theirs) = (hex_dump(&path), hex_dump(&source));
    assert_eq!((written.len(), ours.len()), (3, 3));
    for (at, (_, frame)) in chosen.iter().enumerate() {
        let frame = *frame as usize - 1;
        assert_eq!(written[at][..3], original[frame][..3], "time and lengths of frame {}", frame + 1);
        assert_eq!(ours[at], theirs[frame], "bytes of frame {}", frame + 1);
    }
    let shown: Vec<_> = written.iter().map(|frame| frame[4].as_str()).collect();
    assert_eq!(shown, ["", "first loss|see frame 17", "重传"]);
}

#[test]
fn everything_written_is_read_back_as_the_same_rows() {
    let scratch = Scratch::new("write-rows");
    let path = scratch.path().join("all.pcapng");
    for name in
        ["tcp-loss/tcp-loss.h1.pcap", "any-interface/any-interface.sll2.pcap", "any-interface/one-port.nano.pcap"]
    {
        let capture = wirelab::open([sample(name).as_path()], &Options::default()).unwrap();
        let first = capture.table(TableId::Packets).unwrap();
        capture.write(&path, None, &[(1, 1, "a note")]).unwrap();
        let again = wirelab::open([path.as_path()], &Options::default()).unwrap().table(TableId::Packets).unwrap();
        assert_eq!(again.num_rows(), first.num_rows());
        for name_of in ["frame_no", "time", "captured_bytes", "original_bytes", "interface_id"] {
            assert_eq!(ints(&again.batches, name_of), ints(&first.batches, name_of), "{name}: {name_of}");
        }
        let comments = column(&again.batches, "comment");
        assert_eq!(comments[0].text(), Some("a note"), "{name}");
        assert!(comments[1..].iter().all(|comment| comment.text().is_none()), "{name}");
    }
}

#[test]
fn a_capture_is_not_written_over_its_own_file_and_a_failure_leaves_the_target_alone() {
    let scratch = Scratch::new("write-own");
    let path = scratch.write("own.pcap", &std::fs::read(sample("ping-delay/ping-delay.pcap")).unwrap());
    let before = std::fs::read(&path).unwrap();
    let capture = wirelab::open([path.as_path()], &Options::default()).unwrap();
    let link = scratch.path().join("link.pcap");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for own in [&path, &link, &scratch.path().join("./own.pcap")] {
        let error = capture.write(own, Some(&[(1, 1)]), &[]).unwrap_err();
        assert!(matches!(error, wirelab::Error::OwnFile { .. }), "{error}");
    }
    std::fs::remove_file(&link).unwrap();
    let other = scratch.write("other.pcap", b"something else");
    let error = capture.write(&other, Some(&[(1, 1), (1, 1_000_000)]), &[]).unwrap_err();
    assert!(error.to_string().contains("1000000"), "{error}");
    assert_eq!((std::fs::read(&path).unwrap(), std::fs::read(&other).unwrap()), (before, b"something else".to_vec()));
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 2, "nothing half-written is left");
    capture.write(&other, Some(&[(1, 1), (1, 2)]), &[]).unwrap();
    let rows = wirelab::open([other.as_path()], &Options::default()).unwrap().table(TableId::Packets).unwrap();
    assert_eq!(rows.num_rows(), 2);
}

#[test]
fn tables_of_two_captures_under_one_name_are_never_mixed() {
    let scratch = Scratch::new("write-changed");
    let path = scratch.write("trace.pcap", &std::fs::read(sample("tcp-loss/tcp-loss.h1.pcap")).unwrap());
    let capture = wirelab::open([path.as_path()], &Options::default()).unwrap();
    let rows = capture.table(TableId::Tcp).unwrap().num_rows();
    scratch.write("trace.pcap", &std::fs::read(sample("ping-delay/ping-delay.pcap")).unwrap());
    let error = capture.table(TableId::Probes).unwrap_err();
    assert!(matches!(error, wirelab::Error::Changed { .. }), "{error}");
    assert!(error.message(Lang::Zh).contains("请重新打开"));
    assert!(capture.write(scratch.path().join("out.pcapng"), None, &[]).is_err());
    // What is there stays.
    assert_eq!(capture.table(TableId::Tcp).unwrap().num_rows(), rows);
    let again = wirelab::open([path.as_path()], &Options::default()).unwrap();
    assert!(again.table(TableId::Probes).unwrap().num_rows() > 0);
}
