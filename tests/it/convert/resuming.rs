//! What a second run does, and what a fault leaves behind.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use wirelab::convert::{ConvertOptions, DatasetFormat, GroupBy, Outcome, convert};
use wirelab::{Error, Lang, Observer, Options, TableId, Unobserved};

use super::{TABLES, content, outcomes, part, run, some_tables};
use crate::support::generate::{pcap, traffic};
use crate::support::{Scratch, sample, with_threads};

fn three(scratch: &Scratch) -> Vec<PathBuf> {
    let names = ["a.pcap", "b.pcap", "c.pcap"];
    names.iter().enumerate().map(|(at, name)| scratch.write(name, &pcap(&traffic(2_000, at as u64)))).collect()
}

fn words(done: &wirelab::Conversion) -> Vec<&'static str> {
    outcomes(done).into_iter().map(|(_, word)| word).collect()
}

fn written_at(root: &Path) -> Vec<(PathBuf, SystemTime)> {
    let files = crate::support::files_below(root, &[".parquet", ".json"]);
    files.into_iter().map(|path| (path.clone(), std::fs::metadata(path).unwrap().modified().unwrap())).collect()
}

#[test]
fn a_second_run_does_nothing_where_nothing_is_missing() {
    let scratch = Scratch::new("convert-again");
    let (inputs, out) = (three(&scratch), scratch.path().join("out"));
    assert_eq!(words(&run(&inputs, &out, &some_tables()).unwrap()), ["written"; 3]);
    let before = written_at(&out);
    assert_eq!(words(&run(&inputs, &out, &some_tables()).unwrap()), ["unchanged"; 3]);
    // Threads change no row, and fewer tables are all there.
    let fewer = ConvertOptions { tables: vec![TableId::Tcp], run: with_threads(1), ..ConvertOptions::default() };
    assert_eq!(words(&run(&inputs, &out, &fewer).unwrap()), ["unchanged"; 3]);
    assert_eq!(written_at(&out), before);
}

#[test]
fn a_second_run_does_what_has_changed_or_is_missing_and_nothing_else() {
    let scratch = Scratch::new("convert-missing");
    let (inputs, out) = (three(&scratch), scratch.path().join("out"));
    run(&inputs, &out, &some_tables()).unwrap();
    // Another content.
    std::fs::write(&inputs[1], pcap(&traffic(2_500, 9))).unwrap();
    let done = run(&inputs, &out, &some_tables()).unwrap();
    assert_eq!(words(&done), ["unchanged", "written", "unchanged"]);
    let Outcome::Written(rows) = &done.captures[1].outcome else { panic!() };
    assert_eq!(rows[0], (TableId::Packets, 2_500));
    // A table that is gone, one that was cut, and a marker that is no JSON.
    std::fs::remove_file(part(&out, TableId::Tcp, "a.pcap")).unwrap();
    std::fs::write(part(&out, TableId::TcpFlows, "b.pcap"), b"PAR1").unwrap();
    std::fs::write(out.join("_wirelab/captures/c.pcap.json"), b"{").unwrap();
    let done = run(&inputs, &out, &some_tables()).unwrap();
    let tables = |at: usize| match &done.captures[at].outcome {
        Outcome::Written(rows) => rows.iter().map(|(table, _)| *table).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!((tables(0), tables(1)), (vec![TableId::Tcp], vec![TableId::TcpFlows]));
    assert_eq!(tables(2), TABLES);
    // Further tables.
    let more = ConvertOptions { tables: vec![TableId::Flows, TableId::Tcp], ..some_tables() };
    let done = run(&inputs, &out, &more).unwrap();
    assert!(done.captures.iter().all(|capture| match &capture.outcome {
        Outcome::Written(rows) => rows.len() == 1 && rows[0].0 == TableId::Flows,
        _ => false,
    }));
    // All of it is what one run would have made.
    let (fresh, all) =
        (scratch.path().join("fresh"), vec![TableId::Flows, TableId::Packets, TableId::Tcp, TableId::TcpFlows]);
    run(&inputs, &fresh, &ConvertOptions { tables: all, ..some_tables() }).unwrap();
    assert!(content(&out) == content(&fresh));
}

#[test]
fn other_options_make_it_anew_with_all_the_tables_that_were_there() {
    let scratch = Scratch::new("convert-options");
    let (inputs, out) = (three(&scratch), scratch.path().join("out"));
    run(&inputs, &out, &some_tables()).unwrap();
    let other = ConvertOptions {
        tables: vec![TableId::Packets],
        run: Options { link_speed_bps: Some(100_000_000_000), ..with_threads(2) },
        ..ConvertOptions::default()
    };
    let done = run(&inputs[..1], &out, &other).unwrap();
    let Outcome::Written(rows) = &done.captures[0].outcome else { panic!() };
    assert_eq!(rows.len(), TABLES.len(), "no table of other options stays behind");
    assert_eq!(done.outdated_count, 2);
    assert_eq!(words(&run(&inputs[..1], &out, &other).unwrap()), ["unchanged"]);
}

#[test]
fn one_bad_file_is_told_and_the_others_are_done() {
    let scratch = Scratch::new("convert-bad");
    let mut inputs = three(&scratch);
    let whole = std::fs::read(&inputs[0]).unwrap();
    inputs.insert(1, scratch.write("text.pcap", b"this is no capture at all\n"));
    inputs.insert(0, scratch.path().join("gone.pcap"));
    inputs.push(scratch.path().to_path_buf());
    inputs.push(scratch.write("cut.pcap", &whole[..whole.len() - 7]));
    let out = scratch.path().join("out");
    let error = run(&inputs, &out.join("deeper"), &ConvertOptions { tables: vec![], ..some_tables() }).unwrap_err();
    assert!(error.to_string().contains("no table"), "{error}");
    for threads in [1, 2] {
        let out = scratch.path().join(format!("out{threads}"));
        let options = ConvertOptions { run: with_threads(threads), ..some_tables() };
        let done = run(&inputs, &out, &options).unwrap();
        assert_eq!(words(&done), ["failed", "written", "failed", "written", "written", "failed", "written"]);
        let failed: Vec<String> = done.failed().map(|(_, error)| error.message(Lang::En)).collect();
        assert!(failed[0].contains("gone.pcap") && failed[0].contains("no such file"), "{failed:?}");
        assert!(failed[1].contains("text.pcap") && failed[1].contains("is no capture"), "{failed:?}");
        assert!(failed[2].contains("directory"), "{failed:?}");
        let warnings = |at: usize, lang| done.captures[at].warnings(lang).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(warnings(1, Lang::En), [""; 0]);
        let (english, chinese) = (warnings(6, Lang::En), warnings(6, Lang::Zh));
        assert!(english.len() == 1 && english[0].contains("cut.pcap"), "{english:?}");
        assert!(chinese.len() == 1 && chinese != english, "{chinese:?}");
        assert_eq!(std::fs::read_dir(out.join("_wirelab/part")).unwrap().count(), 0);
        assert!(!out.join("packets/capture=text.pcap").exists());
        // Those that failed are tried again, and what the damaged one said is said again.
        let again = run(&inputs, &out, &options).unwrap();
        assert_eq!(words(&again), ["failed", "unchanged", "failed", "unchanged", "unchanged", "failed", "unchanged"]);
        assert_eq!(again.captures[6].warnings(Lang::En).collect::<Vec<_>>(), english);
    }
}

#[test]
fn a_capture_that_fails_later_leaves_what_the_dataset_had_of_it() {
    let scratch = Scratch::new("convert-later");
    let (inputs, out) = (three(&scratch), scratch.path().join("out"));
    run(&inputs, &out, &some_tables()).unwrap();
    let before = content(&out);
    std::fs::write(&inputs[0], b"overwritten by something else").unwrap();
    std::fs::remove_file(&inputs[2]).unwrap();
    assert_eq!(words(&run(&inputs, &out, &some_tables()).unwrap()), ["failed", "unchanged", "failed"]);
    assert!(content(&out) == before);
}

/// Stops a run once a capture is done.
struct StopAfterOne(PathBuf);

impl Observer for StopAfterOne {
    fn on_progress(&mut self, _: u64, _: Option<u64>) -> ControlFlow<()> {
        let done = std::fs::read_dir(self.0.join("_wirelab/captures")).unwrap().count();
        if done > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn a_run_that_is_stopped_keeps_what_is_done_and_the_next_one_does_the_rest() {
    let scratch = Scratch::new("convert-stop");
    let mut inputs = three(&scratch);
    inputs.extend((0..3).map(|at| scratch.write(&format!("long{at}.pcap"), &pcap(&traffic(12_000, 20 + at)))));
    for threads in [1, 2] {
        let out = scratch.path().join(format!("out{threads}"));
        let options = ConvertOptions { run: with_threads(threads), ..some_tables() };
        let error = convert(inputs.iter().cloned(), &out, &options, &mut StopAfterOne(out.clone())).unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{error}");
        let kept = std::fs::read_dir(out.join("_wirelab/captures")).unwrap().count();
        assert!((1..6).contains(&kept), "{kept} were done");
        assert_eq!(std::fs::read_dir(out.join("_wirelab/part")).unwrap().count(), 0, "half-written files are left");
        let done = run(&inputs, &out, &options).unwrap();
        assert_eq!(words(&done).iter().filter(|word| **word == "unchanged").count(), kept);
        let fresh = scratch.path().join(format!("fresh{threads}"));
        run(&inputs, &fresh, &options).unwrap();
        assert!(content(&out) == content(&fresh));
    }
}

#[test]
fn what_cannot_be_written_ends_the_run_with_the_place() {
    let scratch = Scratch::new("convert-blocked");
    let (inputs, out) = (three(&scratch), scratch.path().join("out"));
    run(&inputs[..1], &out, &ConvertOptions { tables: vec![TableId::Packets], ..some_tables() }).unwrap();
    std::fs::write(out.join("tcp"), b"in the way").unwrap();
    let error = run(&inputs, &out, &some_tables()).unwrap_err();
    assert!(matches!(error, Error::Write { .. }) && error.to_string().contains("cannot be written"), "{error}");
    assert!(error.to_string().contains("capture="), "{error}");
    assert_eq!(std::fs::read_dir(out.join("_wirelab/part")).unwrap().count(), 0);
    std::fs::remove_file(out.join("tcp")).unwrap();
    assert_eq!(run(&inputs, &out, &some_tables()).unwrap().failed().count(), 0);
    let fresh = scratch.path().join("fresh");
    run(&inputs, &fresh, &some_tables()).unwrap();
    assert!(content(&out) == content(&fresh));
}

#[test]
fn a_directory_with_something_else_is_refused_and_left_alone() {
    let scratch = Scratch::new("convert-refuse");
    let ping = sample("ping-delay/ping-delay.pcap");
    let refused = |out: &Path, options: &ConvertOptions, inputs: &[PathBuf], why: &str| {
        let error = run(inputs, out, options).unwrap_err();
        assert!(matches!(error, Error::Usage(_)) && error.to_string().contains(why), "{why}: {error}");
    };
    let one = std::slice::from_ref(&ping);
    let holds = scratch.path().join("holds");
    std::fs::create_dir(&holds).unwrap();
    std::fs::write(holds.join("thesis.tex"), b"mine").unwrap();
    refused(&holds, &some_tables(), one, "thesis.tex");
    assert_eq!(std::fs::read_dir(&holds).unwrap().count(), 1);
    let file = scratch.write("file", b"");
    refused(&file, &some_tables(), one, "is a file");
    let out = scratch.path().join("out");
    refused(Path::new(""), &some_tables(), one, "has no name");
    refused(&out, &some_tables(), &[], "no capture");
    refused(&out, &some_tables(), &["-".into()], "standard input");
    refused(&out, &ConvertOptions { group_by: GroupBy::Bytes(0), ..some_tables() }, one, "at least one byte");
    assert!(!out.exists());
    std::fs::create_dir(&out).unwrap();
    run(one, &out, &some_tables()).unwrap();
    let before = content(&out);
    refused(&out, &ConvertOptions { format: DatasetFormat::Arrow, ..some_tables() }, one, "format = parquet");
    refused(&out, &ConvertOptions { group_by: GroupBy::Ring, ..some_tables() }, one, "group_by = file");
    let inside = out.join("mine.pcap");
    std::fs::copy(&ping, &inside).unwrap();
    refused(&out, &some_tables(), std::slice::from_ref(&inside), "lies in");
    refused(scratch.path(), &some_tables(), std::slice::from_ref(&inside), "lies in");
    std::fs::remove_file(inside).unwrap();
    assert!(content(&out) == before);
    for text in ["{}", "no JSON", r#"{"wirelab": "dataset", "layout": 99}"#] {
        std::fs::write(out.join("_wirelab.json"), text).unwrap();
        refused(&out, &some_tables(), one, "_wirelab.json");
    }
}

/// Starts a second conversion while the first one is at work.
struct Meanwhile(PathBuf, Option<Result<wirelab::Conversion, Error>>);

impl Observer for Meanwhile {
    fn on_progress(&mut self, _: u64, _: Option<u64>) -> ControlFlow<()> {
        if self.1.is_none() {
            let other = [sample("tcp-loss/tcp-loss.h1.pcap")];
            self.1 = Some(convert(other, &self.0, &some_tables(), &mut Unobserved));
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn two_conversions_into_one_dataset_do_not_meet() {
    let scratch = Scratch::new("convert-two");
    let (inputs, out) = (three(&scratch), scratch.path().join("out"));
    let mut meanwhile = Meanwhile(out.clone(), None);
    let done = convert(inputs, &out, &some_tables(), &mut meanwhile).unwrap();
    assert_eq!(words(&done), ["written"; 3]);
    let error = meanwhile.1.unwrap().unwrap_err();
    assert!(error.to_string().contains("another conversion"), "{error}");
}
