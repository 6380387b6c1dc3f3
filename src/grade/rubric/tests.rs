use super::*;
use crate::grade::document::Problem;

const SOUND: &str = r#"schema = "wirelab-rubric/1"
id = "sample"
version = "1.0.0"
groups = ["basics"]

[param.mtu]
default = 9000
min = 576
max = 65535
unit = "bytes"

[input.jumbo]
kind = "capture"
match = ["*9000*", "*jumbo*"]
traffic = "server_port = 5201"

[input.other]
kind = "capture"
required = false

[[check]]
id = "jumbo_mss"
group = "basics"
points = "3.0"
needs = { jumbo = ["handshake", "capture_loss"] }
sql = "SELECT min(client_mss) AS c, min(server_mss) AS s FROM jumbo.tcp_flows"
on_no_rows = "fail"
on_null = "not_assessable"
expect = [{ col = "c", op = "eq", sql = ":mtu - 40", unit = "bytes" }, { col = "s", op = "approx", value = 8960, tolerance = "5%" }]
partial = [{ when = "max(c, s) = :mtu - 40", points = "1", say = "one_end_only" }]
evidence = "SELECT frame_no FROM jumbo.tcp WHERE flags & 2"

[[check]]
id = "later"
points = "0.25"
depends_on = ["jumbo_mss"]
sql = "SELECT count(*) AS n FROM files"
inputs = []
on_no_rows = "pass"
on_null = "fail"
expect = { col = "n", op = "between", value = [1, 2] }
not_assessable = "exclude"
visibility = "hidden"
"#;

fn problems(text: &str) -> Vec<Problem> {
    Rubric::parse("rubric.toml", text).expect_err("a rubric with problems")
}

/// The one problem of the sound rubric with `from` replaced.
fn problem(from: &str, to: &str) -> String {
    assert!(SOUND.contains(from), "{from}");
    let found = problems(&SOUND.replacen(from, to, 1));
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].to_string()
}

#[test]
fn a_sound_rubric_is_read_whole() {
    let rubric = Rubric::parse("rubric.toml", SOUND).unwrap();
    assert_eq!((rubric.id.as_str(), rubric.max_score().to_string().as_str()), ("sample", "3.25"));
    let [first, second] = rubric.checks.as_slice() else { panic!("{:?}", rubric.checks) };
    assert_eq!((first.line, first.points.to_string().as_str()), (21, "3"));
    assert_eq!(first.inputs, ["jumbo"]);
    assert_eq!(first.needs, [("jumbo".to_owned(), vec!["handshake".to_owned(), "capture_loss".to_owned()])]);
    assert_eq!((first.on_no_rows, first.on_null), (Outcome::Fail, Outcome::NotAssessable));
    assert_eq!(first.expect[1].tolerance, Some(Tolerance::Relative(0.05)));
    assert!(second.inputs.is_empty());
    assert_eq!((second.visibility, second.not_assessable), (Visibility::Hidden, WhenNotAssessable::Exclude));
    assert!(rubric.inputs[0].required && !rubric.inputs[1].required);
}

#[test]
fn line_ends_of_windows_change_neither_the_rubric_nor_its_hash() {
    let unix = Rubric::parse("rubric.toml", SOUND).unwrap();
    let windows = Rubric::parse("rubric.toml", &SOUND.replace('\n', "\r\n")).unwrap();
    assert_eq!(unix.sha256, windows.sha256);
    assert_ne!(unix.sha256, Rubric::parse("rubric.toml", &format!("{SOUND} ")).unwrap().sha256);
}

#[test]
fn a_misspelt_key_is_named_with_its_line_and_the_one_that_was_meant() {
    let text = problem("visibility = ", "visibilty = ");
    assert!(text.starts_with("rubric.toml:43: check later has no key visibilty (did you mean visibility?)"), "{text}");
}

#[test]
fn each_mistake_is_told_in_one_sentence() {
    let told = [
        ("op = \"between\"", "op = \"betwen\"", "rubric.toml:41: op cannot be betwen (did you mean between?)"),
        (
            "group = \"basics\"\npoints",
            "group = \"basic\"\npoints",
            "rubric.toml:23: groups, at the top of the file, has no basic (did you mean basics?)",
        ),
        ("points = \"0.25\"", "points = 0.25", "rubric.toml:35: points must be a decimal number in quotes"),
        (
            "inputs = []",
            "inputs = []\nevidence = \"SELECT 1 AS frame_no\"",
            "rubric.toml:39: the evidence of check later has frame_no, but none of its inputs (none) is a capture",
        ),
        ("points = \"1\"", "points = \"3\"", "partial points must be less than the 3 of the check"),
        ("\"handshake\"", "\"handshakes\"", "there is no need handshakes (did you mean handshake?)"),
        ("needs = { jumbo", "needs = { jumbos", "there is no input jumbos (did you mean jumbo?)"),
        ("\":mtu - 40\"", "\":mtuu - 40\"", "check jumbo_mss: :mtuu is no [param.mtuu] (did you mean mtu?)"),
        ("[\"jumbo_mss\"]", "[\"later\"]", "no check above this one is called later"),
        ("default = 9000", "default = 90000", "the default of mtu must be from 576 to 65535, not 90000"),
        ("unit = \"bytes\" }, {", "unit = \"byte\" }, {", "there is no unit byte (did you mean bytes?)"),
        (", tolerance = \"5%\"", "", "tolerance belongs to op = \"approx\""),
        ("value = [1, 2]", "value = [1]", "between takes a list of two"),
        ("value = [1, 2]", "value = [1, 2], sql = \"1\"", "expect has both value and sql"),
        ("[input.other]", "[input.main]", "an input cannot be called main"),
        (
            "kind = \"capture\"\nrequired",
            "kind = \"captur\"\nrequired",
            "there is no kind captur (did you mean capture?)",
        ),
        ("rubric/1", "rubric/2", "schema must be wirelab-rubric/1"),
        ("say = \"one_end_only\"", "say = \"pass\"", "pass cannot name words"),
        ("id = \"later\"", "id = \"jumbo_mss\"", "there are two checks jumbo_mss"),
        ("server_port = 5201", "server_port = :prt", "rubric.toml:15: :prt is no [param.prt]"),
        ("match = [\"*9000*\",", "match = [\"[\",", "[ is no file name pattern"),
    ];
    for (from, to, expected) in told {
        let text = problem(from, to);
        assert!(text.contains(expected), "{text}\n{expected}");
    }
}

#[test]
fn several_problems_are_told_at_once_in_the_order_of_the_file() {
    let text = SOUND.replace("on_null = \"fail\"\n", "").replace("default = 9000", "defualt = 9000");
    let found: Vec<_> = problems(&text).iter().map(Problem::to_string).collect();
    assert!(found.len() >= 3, "{found:?}");
    assert!(found.iter().any(|text| text.contains("param mtu lacks a default")));
    assert!(found.iter().any(|text| text.contains("has no key defualt (did you mean default?)")));
    assert!(found.iter().any(|text| text.contains("check later lacks the key on_null")));
}

#[test]
fn what_is_no_toml_is_said_with_its_line() {
    let found = problems("schema = \"wirelab-rubric/1\"\nid = \n");
    assert!(found.iter().any(|problem| problem.line == 2 && problem.message.contains("not valid TOML")), "{found:?}");
}

#[test]
fn names_after_colons_are_parameters_but_not_in_texts_and_comments() {
    let sql = "SELECT :a, ':b', \":c\" -- :d\n /* :e */ FROM t WHERE x = :f_1 AND y - :a > 1";
    assert_eq!(bound_names(sql), ["a", "f_1"]);
    assert_eq!(bound_names("it's :x"), Vec::<&str>::new());
}

#[test]
fn schemas_are_found_before_dots() {
    let found = qualifiers("SELECT t.x, 1.5 FROM jumbo.tcp t JOIN \"other\".flows");
    assert!(found.contains("jumbo") && found.contains("other") && found.contains("t"));
}

#[test]
fn a_visible_check_cannot_wait_for_a_hidden_one() {
    let hidden_first = SOUND.replacen("id = \"jumbo_mss\"", "id = \"jumbo_mss\"\nvisibility = \"hidden\"", 1);
    assert!(Rubric::parse("rubric.toml", &hidden_first).is_ok());
    let told = problems(&hidden_first.replace("not_assessable = \"exclude\"\nvisibility = \"hidden\"", ""));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].message.contains("jumbo_mss is hidden, and this check is not"), "{told:?}");
}

#[test]
fn a_sign_for_an_operator_is_told_by_its_word_and_no_word_is_guessed_from_nothing() {
    for (sign, word) in [("<=", "le"), (">", "gt"), ("!=", "ne"), ("in", "one_of")] {
        let told = problem(r#"op = "eq", sql"#, &format!(r#"op = "{sign}", sql"#));
        assert!(told.contains(&format!("op is a word: for {sign} it is {word}")), "{told}");
    }
    let told = problem(r#"op = "eq", sql"#, r#"op = "~>", sql"#);
    assert!(told.contains("op cannot be ~>; it is one of"), "{told}");
    assert!(problem(r#"op = "eq", sql"#, r#"op = "lte", sql"#).contains("did you mean le?"));
}

#[test]
fn views_come_before_the_queries_that_name_them_and_bring_only_required_inputs() {
    let text = SOUND
        .replace(
            "[[check]]\nid = \"jumbo_mss\"",
            "[view.flows]\nsql = \"SELECT * FROM jumbo.tcp_flows, other.tcp_flows\"\n\n[[check]]\nid = \"jumbo_mss\"",
        )
        .replace("FROM jumbo.tcp_flows\"", "FROM flows\"");
    let rubric = Rubric::parse("rubric.toml", &text).unwrap_or_else(|problems| panic!("{problems:?}"));
    let check = &rubric.checks[0];
    assert!(check.sql.starts_with("WITH flows AS (\nSELECT * FROM jumbo.tcp_flows"), "{}", check.sql);
    assert!(!check.evidence.as_ref().unwrap().contains("flows"), "the evidence names no view");
    assert_eq!((&check.inputs[..], &check.optional_inputs[..]), (&["jumbo".to_owned()][..], &["other".to_owned()][..]));
    let slip = text.replace("other.tcp_flows\"", "other.tcp_flows WHERE :mut\"");
    assert!(problems(&slip)[0].to_string().contains("view flows: :mut is no [param.mut] (did you mean mtu?)"));
}
