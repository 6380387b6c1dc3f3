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
    inputs.push(scratch.write("empty.pcap", b""));
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
        assert!(failed[2].contains("empty.pcap"), "{failed:?}");
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
    refused(
        &out,
        &ConvertOptions { format: DatasetFormat::Arrow, ..some_tables() },
        one,
        "its files have the format parquet, not arrow",
    );
    refused(
        &out,
        &ConvertOptions { group_by: GroupBy::Ring, ..some_tables() },
        one,
        "its captures are grouped by file, not ring",
    );
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

/// Takes the dataset back to where a run was killed while it put the tables of `c.pcap` in their places.
fn killed_within_commit(out: &Path, name: &str, inputs: &[PathBuf], options: &ConvertOptions, first_done: &[TableId]) {
    let scratch = Scratch::new("convert-commit");
    let whole = scratch.path().join("whole");
    run(inputs, &whole, options).unwrap();
    let marker = format!("_wirelab/captures/{name}.json");
    let mut text: serde_json::Value = serde_json::from_slice(&std::fs::read(whole.join(&marker)).unwrap()).unwrap();
    let tables: Vec<String> = text["tables"].as_object().unwrap().keys().cloned().collect();
    text["tables"] = serde_json::json!({});
    text["unfinished"] = serde_json::json!(tables);
    std::fs::write(out.join(&marker), text.to_string()).unwrap();
    for table in first_done {
        std::fs::copy(part(&whole, *table, name), part(out, *table, name)).unwrap();
    }
}

#[test]
fn a_run_killed_as_tables_take_their_places_leaves_no_rows_of_before() {
    let scratch = Scratch::new("convert-killed");
    let (input, options) = (scratch.write("c.pcap", &pcap(&traffic(2_000, 1))), some_tables());
    let packets = ConvertOptions { tables: vec![TableId::Packets], ..some_tables() };
    let fresh = scratch.path().join("fresh");
    for first_done in [&[][..], &[TableId::Tcp], &TABLES] {
        std::fs::write(&input, pcap(&traffic(2_000, 1))).unwrap();
        let out = scratch.path().join(format!("out{}", first_done.len()));
        run(&[&input], &out, &options).unwrap();
        std::fs::write(&input, pcap(&traffic(3_000, 2))).unwrap();
        killed_within_commit(&out, "c.pcap", std::slice::from_ref(&input), &options, first_done);
        // The next run is asked for one table, and does those that were under way.
        run(&[&input], &out, &packets).unwrap();
        let _ = std::fs::remove_dir_all(&fresh);
        run(&[&input], &fresh, &options).unwrap();
        assert!(content(&out) == content(&fresh));
        assert_eq!(words(&run(&[&input], &out, &options).unwrap()), ["unchanged"]);
    }
}

#[test]
fn tables_that_no_marker_names_are_removed_with_the_next_commit() {
    let scratch = Scratch::new("convert-unnamed");
    let input = scratch.write("c.pcap", &pcap(&traffic(2_000, 1)));
    let packets = ConvertOptions { tables: vec![TableId::Packets], ..some_tables() };
    let fresh = scratch.path().join("fresh");
    let marker = Path::new("_wirelab/captures/c.pcap.json");
    for (at, spoil) in [None, Some("{"), Some(r#"{"capture": "another"}"#)].into_iter().enumerate() {
        std::fs::write(&input, pcap(&traffic(2_000, 1))).unwrap();
        let out = scratch.path().join(format!("out{at}"));
        run(&[&input], &out, &some_tables()).unwrap();
        match spoil {
            None => std::fs::remove_file(out.join(marker)).unwrap(),
            Some(text) => std::fs::write(out.join(marker), text).unwrap(),
        }
        std::fs::write(&input, pcap(&traffic(3_000, 2))).unwrap();
        run(&[&input], &out, &packets).unwrap();
        let _ = std::fs::remove_dir_all(&fresh);
        run(&[&input], &fresh, &packets).unwrap();
        assert!(content(&out) == content(&fresh), "{spoil:?}");
        assert!(!out.join("tcp_flows/capture=c.pcap").exists());
    }
    // A table that was cut, and that nobody asks for, as another one is added.
    let out = scratch.path().join("cut");
    run(&[&input], &out, &some_tables()).unwrap();
    std::fs::write(part(&out, TableId::TcpFlows, "c.pcap"), b"PAR1").unwrap();
    run(&[&input], &out, &ConvertOptions { tables: vec![TableId::Flows], ..some_tables() }).unwrap();
    assert!(!part(&out, TableId::TcpFlows, "c.pcap").exists() && part(&out, TableId::Tcp, "c.pcap").exists());
}

#[test]
fn names_do_not_depend_on_where_a_run_was_stopped() {
    let scratch = Scratch::new("convert-claims");
    let inputs: Vec<PathBuf> = ["a/x.pcap", "b/x.pcap", "c/x.pcap", "y.pcap"]
        .iter()
        .map(|name| {
            std::fs::create_dir_all(scratch.path().join(name).parent().unwrap()).unwrap();
            scratch.write(name, &pcap(&traffic(300, 1)))
        })
        .collect();
    let fresh = scratch.path().join("fresh");
    let done = run(&inputs, &fresh, &some_tables()).unwrap();
    let names: Vec<String> = done.captures.iter().map(|capture| capture.name.clone()).collect();
    assert_eq!(names, ["a/x.pcap", "b/x.pcap", "c/x.pcap", "y.pcap"]);
    // Any of them may have been done before the end.
    for done in [0b0001, 0b0010, 0b0110, 0b1101] {
        let out = scratch.path().join(format!("out{done}"));
        run(&inputs, &out, &some_tables()).unwrap();
        for (_, name) in names.iter().enumerate().filter(|(at, _)| done & (1 << at) == 0) {
            let encoded = name.replace('/', "%2F");
            std::fs::remove_file(out.join(format!("_wirelab/captures/{encoded}.json"))).unwrap();
            for table in TABLES {
                std::fs::remove_dir_all(part(&out, table, &encoded).parent().unwrap()).unwrap();
            }
        }
        run(&inputs, &out, &some_tables()).unwrap();
        assert!(content(&out) == content(&fresh), "{done:04b}");
    }
}

/// Asks for the end when all is in its place.
struct StopAtTheEnd(PathBuf);

impl Observer for StopAtTheEnd {
    fn on_progress(&mut self, _: u64, _: Option<u64>) -> ControlFlow<()> {
        let marker = std::fs::read_to_string(self.0.join("_wirelab/captures/a.pcap.json")).unwrap_or_default();
        let is_done = marker.contains("capture") && !marker.contains("unfinished");
        if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn a_run_that_was_asked_to_stop_when_all_was_done_says_that_it_is_done() {
    let scratch = Scratch::new("convert-stop-late");
    let (inputs, out) = (three(&scratch), scratch.path().join("out"));
    let done = convert([&inputs[0]], &out, &some_tables(), &mut StopAtTheEnd(out.clone())).unwrap();
    assert_eq!(words(&done), ["written"]);
    let error = convert(&inputs, &out, &some_tables(), &mut StopAtTheEnd(out.clone())).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
}

#[cfg(unix)]
#[test]
fn pipes_folders_and_links_among_the_datasets_own_files_neither_hang_nor_harm() {
    let scratch = Scratch::new("convert-odd");
    let (inputs, out) = (three(&scratch), scratch.path().join("out"));
    run(&inputs, &out, &some_tables()).unwrap();
    let own = out.join("_wirelab");
    let pipe = |path: &Path| {
        let _ = std::fs::remove_file(path);
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    pipe(&own.join("captures/b.pcap.json"));
    pipe(&own.join("captures/z.json"));
    pipe(&own.join("part/z"));
    std::fs::create_dir_all(own.join("part/mine/deeper")).unwrap();
    assert_eq!(words(&run(&inputs, &out, &some_tables()).unwrap()), ["unchanged", "written", "unchanged"]);
    assert!(own.join("part/mine/deeper").exists() && !own.join("part/z").exists());
    std::fs::remove_dir_all(own.join("part")).unwrap();
    let refused = |why: &str| {
        let error = run(&inputs, &out, &some_tables()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    std::os::unix::fs::symlink(scratch.path(), own.join("part")).unwrap();
    refused("part is no directory");
    assert!(inputs.iter().all(|input| input.exists()), "the link was followed");
    std::fs::remove_file(own.join("part")).unwrap();
    pipe(&own.join("lock"));
    refused("lock");
    std::fs::remove_file(own.join("lock")).unwrap();
    pipe(&out.join("_wirelab.json"));
    refused("_wirelab.json");
}

#[test]
fn what_a_dataset_says_is_shown_and_not_obeyed() {
    let scratch = Scratch::new("convert-hostile");
    let (inputs, out) = (three(&scratch), scratch.path().join("out"));
    run(&inputs[..1], &out, &ConvertOptions { group_by: GroupBy::Ring, ..some_tables() }).unwrap();
    let told = |inputs: &[PathBuf], options: &ConvertOptions| {
        let error = run(inputs, &out, options).unwrap_err().to_string();
        assert!(!error.chars().any(char::is_control) && !error.contains('\u{202e}'), "{error:?}");
        error
    };
    let marker = out.join("_wirelab/captures/a.pcap.json");
    let mut text: serde_json::Value = serde_json::from_slice(&std::fs::read(&marker).unwrap()).unwrap();
    let other = serde_json::json!({ "path": "/x\u{1b}[2J\n\u{202e}", "bytes": 1, "modified_ns": 1 });
    text["inputs"].as_array_mut().unwrap().push(other);
    std::fs::write(&marker, text.to_string()).unwrap();
    let error = told(&inputs[..1], &ConvertOptions { group_by: GroupBy::Ring, ..some_tables() });
    assert!(error.contains("also holds /x\\u{1b}[2J\\n\\u{202e}"), "{error}");
    let manifest = out.join("_wirelab.json");
    let hostile = std::fs::read_to_string(&manifest).unwrap().replace("\"ring\"", "\"a\\u001b[2J\\nb\\u202e\"");
    std::fs::write(&manifest, hostile).unwrap();
    let error = told(&inputs[..1], &some_tables());
    assert!(error.contains("grouped by a\\u{1b}[2J\\nb\\u{202e}, not file"), "{error}");
}
