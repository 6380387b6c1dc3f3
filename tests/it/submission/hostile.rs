//! No bytes make the reader of submissions panic.

use proptest::prelude::*;
use wirelab::Lang;
use wirelab::grade::submission::{InputKind, InputSpec, SubmissionLimits, assign};

use super::zips::{Entry, crafted};
use super::{capture, log, read_bytes, zip_of};

fn read_and_assign(bytes: Vec<u8>) {
    let limits =
        SubmissionLimits { file_bytes: 1 << 20, unpacked_bytes: 4 << 20, files: 50, ..SubmissionLimits::default() };
    let submission = read_bytes("lab.zip", bytes.into(), &limits);
    assert!(submission.files.len() <= 50);
    let total: u64 = submission.files.iter().map(|file| file.size).sum();
    assert!(total <= (4 << 20) + (1 << 20), "{total}");
    let inputs = ["capture", "ping", "text"].map(|kind| InputSpec {
        name: kind.into(),
        kind: InputKind::from_name(kind).unwrap(),
        patterns: vec!["*a*".into(), "**/b".into()],
        required: false,
    });
    let assignment = assign(&inputs, &submission);
    for finding in submission.findings.iter().chain(&assignment.findings) {
        assert!(!finding.message(Lang::Zh).is_empty());
    }
    let mut names: Vec<_> = submission.files.iter().map(|file| file.name.to_lowercase()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), submission.files.len(), "names are distinct");
    for file in &submission.files {
        assert!(
            !file.name.starts_with('/') && !file.name.contains('\\') && !file.name.split('/').any(|part| part == ".."),
            "{}",
            file.name
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_mutation_of_a_zip_makes_it_panic(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..30),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let inner = zip_of(&[("b/a.pcap", &capture())]);
        let mut bytes = zip_of(&[("a.pcap", &capture()), ("ping.txt", &log("ping_delay.txt")), ("in.zip", &inner)]);
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        read_and_assign(bytes);
    }

    #[test]
    fn no_names_and_headers_make_it_panic(
        entries in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 0..60), proptest::collection::vec(any::<u8>(), 0..200), any::<u16>(), 0..20u16, any::<u16>(), proptest::collection::vec(any::<u8>(), 0..30)),
            0..70,
        )
    ) {
        let entries: Vec<_> = entries
            .into_iter()
            .map(|(name, data, flags, method, mode, extra)| Entry { name, data, flags: flags & 0x0809, method: if method > 2 { 0 } else { method * 4 }, extra, mode, declared_size: None })
            .collect();
        read_and_assign(crafted(&entries));
    }

    #[test]
    fn no_single_file_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        read_and_assign(bytes);
    }
}

/// Asks to stop at the given question.
struct UpTo(u32);

impl wirelab::Observer for UpTo {
    fn on_progress(&mut self, _: u64, _: Option<u64>) -> std::ops::ControlFlow<()> {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    }
}

#[test]
fn unpacking_and_hashing_end_when_the_observer_asks_wherever_that_is() {
    let scratch = crate::support::Scratch::new("cancelled");
    let large = vec![7; 5 << 20];
    let zip = zip_of(&[("a.bin", &large), ("b.pcap", &capture()), ("c.json", &log("iperf3_tcp_json.client.txt"))]);
    let folder = scratch.path().join("submission");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, bytes) in [("lab.zip", zip), ("plain.bin", large), ("b.pcap", capture())] {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    let read = |most| {
        let mut observer = UpTo(most);
        let read = wirelab::grade::submission::read(&folder, &SubmissionLimits::default(), &mut observer);
        (read, most - observer.0)
    };
    let (whole, asked) = read(u32::MAX);
    assert_eq!(whole.unwrap().files.len(), 5);
    // How often it is asked while a log is looked at depends on the clock.
    assert!(asked > 25, "{asked}: a question for each mebibyte");
    for most in 1..=25 {
        let (cut, asked) = read(most);
        assert!(matches!(cut, Err(wirelab::Error::Cancelled)), "{most}");
        assert_eq!(asked, most, "nothing is read once it was asked to stop");
    }
}
