//! Labs: checked, listed, begun; and that the core knows none.

use wirelab::Unobserved;
use wirelab::grade::{GradeOptions, Lab, Library, check_lab, new_lab};

use super::lab_folder;
use crate::support::{crate_root, files_below};

#[test]
fn a_sound_lab_passes_and_each_case_gets_just_what_it_must() {
    let check = check_lab(&lab_folder("every-outcome"), None, &GradeOptions::default(), &mut Unobserved).unwrap();
    let problems: Vec<_> = check.cases.iter().flat_map(|case| &case.problems).collect();
    assert!(check.is_sound(), "{:#?} {problems:#?}", check.problems);
    assert_eq!(check.cases.len(), 10);
    assert!(check.losses.iter().all(|(_, cases)| !cases.is_empty()));
}

#[test]
fn a_lab_whose_checks_fail_to_run_is_not_sound_and_says_where() {
    let check = check_lab(&lab_folder("faulty"), None, &GradeOptions::default(), &mut Unobserved).unwrap();
    let of_lab: Vec<_> = check.problems.iter().map(ToString::to_string).collect();
    let of_cases = check.cases.iter().flat_map(|case| case.problems.clone());
    let all = of_cases.chain(of_lab.clone()).collect::<Vec<_>>().join("\n");
    assert!(!check.is_sound());
    for told in ["check unknown_column: ", "no_such_column", "did not finish within 1 s", "nothing fills {nope}"] {
        assert!(all.contains(told), "{told}: {all}");
    }
    // A slip in the SQL is told once, with the line of the rubric where the query begins.
    let rubric = std::fs::read_to_string(lab_folder("faulty").join("rubric.toml")).unwrap();
    let line = rubric.lines().position(|line| line.starts_with("sql") && line.contains("no_such_column")).unwrap() + 1;
    let slips: Vec<_> = of_lab.iter().filter(|text| text.contains("no_such_column")).collect();
    assert!(slips.len() == 1 && slips[0].contains(&format!("rubric.toml:{line}: ")), "{slips:?} {line}");
    assert!(of_lab.iter().any(|text| text.contains("no case makes check sound fail")), "{of_lab:?}");
    assert!(of_lab.iter().any(|text| text.contains("no case in cases/ passes every check")), "{of_lab:?}");
}

#[test]
fn a_new_lab_works_from_the_start_and_is_sound_with_words_of_its_own() {
    let into = std::env::temp_dir().join(format!("wirelab-new-{}", std::process::id()));
    std::fs::create_dir_all(&into).unwrap();
    let folder = new_lab("my-lab", &into).unwrap();
    let check = check_lab(&folder, None, &GradeOptions::default(), &mut Unobserved).unwrap();
    let problems: Vec<_> = check.cases.iter().flat_map(|case| &case.problems).collect();
    // All of it works; what is left to do is to write words of one's own.
    assert!(problems.is_empty(), "{problems:#?}");
    let told: Vec<_> = check.problems.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 6, "{told:#?}");
    assert!(told.iter().all(|text| text.contains("is still that of the template")), "{told:#?}");
    for name in ["feedback.en.toml", "feedback.zh.toml", "README.md", "README.zh.md"] {
        let path = folder.join(name);
        let mut text = std::fs::read_to_string(&path).unwrap();
        for (from, to) in [
            ("my-lab: a title of your own", "Ping"),
            ("One sentence: what the experiment shows.", "Who answers."),
            ("my-lab：请改为自己的标题", "Ping"),
            ("用一句话说明这个实验要观察什么。", "谁在应答。"),
            ("What the experiment shows, in a few sentences.", "Who answers."),
            ("用几句话说明这个实验要观察什么。", "谁在应答。"),
        ] {
            text = text.replace(from, to);
        }
        std::fs::write(path, text).unwrap();
    }
    let check = check_lab(&folder, None, &GradeOptions::default(), &mut Unobserved).unwrap();
    assert!(check.is_sound(), "{:#?}", check.problems);
    assert!(new_lab("my-lab", &into).unwrap_err().to_string().contains("is there already"));
    assert!(new_lab("My Lab", &into).is_err() && new_lab("../up", &into).is_err());
    // And it is found among the others.
    let library = Library::new([into.clone()]);
    assert!(library.list().unwrap().iter().any(|lab| lab.id == "my-lab"));
    assert_eq!(library.lab("my-lab").unwrap().id(), "my-lab");
    let missing = library.lab("my-lob").unwrap_err().to_string();
    assert!(missing.contains("did you mean my-lab?"), "{missing}");
    std::fs::remove_dir_all(into).unwrap();
}

#[test]
fn words_that_differ_between_the_languages_are_told_with_file_and_key() {
    let into = std::env::temp_dir().join(format!("wirelab-words-{}", std::process::id()));
    let folder = into.join("every-outcome");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["rubric.toml", "feedback.en.toml", "feedback.zh.toml", "README.md"] {
        std::fs::copy(lab_folder("every-outcome").join(name), folder.join(name)).unwrap();
    }
    let chinese = folder.join("feedback.zh.toml");
    let text = std::fs::read_to_string(&chinese).unwrap();
    let told = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        std::fs::write(&chinese, text.replacen(from, to, 1)).unwrap();
        let problems: Vec<_> = Lab::read(&folder).unwrap_err().iter().map(ToString::to_string).collect();
        problems.join("\n")
    };
    let place = told("时延小于 {rtt_ns}。\"\nfail", "时延较小。\"\nfail");
    assert!(
        place.contains("feedback.zh.toml") && place.contains("check.delay.pass lacks the place {rtt_ns}"),
        "{place}"
    );
    let key = told("[check.delay]", "[check.dealy]");
    assert!(key.contains("the rubric has no check dealy (did you mean delay?)"), "{key}");
    let missing = told("pass = \"没有丢失。\"\n", "");
    assert!(missing.contains("check probes_answered lacks the words pass"), "{missing}");
    let param = told("{param.count} 个探测报文\"", "{param.cuont} 个探测报文\"");
    assert!(param.contains("param.cuont"), "{param}");
    std::fs::remove_dir_all(into).unwrap();
}

#[test]
fn the_core_knows_no_lab() {
    let graders = crate_root().join("graders");
    let mut labs: Vec<_> = std::fs::read_dir(&graders)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    labs.sort();
    let mut sources = files_below(&crate_root().join("src"), &[".rs", ".toml", ".html"]);
    sources.extend(files_below(&crate_root().join("python/src"), &[".rs"]));
    sources.extend(files_below(&crate_root().join("python/wirelab"), &[".py", ".json"]));
    assert!(sources.len() > 100);
    for path in sources {
        let text = std::fs::read_to_string(&path).unwrap();
        if let Some(lab) = labs.iter().find(|lab| text.contains(lab.as_str())) {
            panic!("{} knows the lab {lab}", path.display());
        }
    }
    // What is compiled in is what the folder holds, lab by lab.
    let shipped: Vec<_> = Library::default().list().unwrap().into_iter().map(|lab| lab.id).collect();
    assert_eq!(shipped, labs, "graders/labs.txt names every lab of graders/");
    for id in shipped {
        Library::default().lab(&id).unwrap();
    }
}

#[test]
fn the_documentation_tells_of_every_key() {
    let text = std::fs::read_to_string(crate_root().join("docs/grading.md")).unwrap();
    for (table, keys) in wirelab::grade::documented_keys() {
        for key in keys {
            assert!(text.contains(&format!("`{key}`")), "docs/grading.md does not tell of {key} of {table}");
        }
    }
}
