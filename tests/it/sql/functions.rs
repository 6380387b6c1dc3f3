//! The functions that SQLite's own are short of.

use wirelab::sql::Value::{Integer, Null, Real};
use wirelab::sql::{Database, Value};

use super::sources::*;

fn given(sql: &str) -> Value {
    one(&Memory::default().database(), &format!("SELECT {sql}"))
}

fn told(sql: &str) -> String {
    refusal(&Memory::default().database(), &format!("SELECT {sql}")).to_string()
}

#[test]
fn ratio_divides_in_reals_and_is_null_where_nothing_can_be_said() {
    assert_eq!(given("ratio(1, 2)"), Real(0.5));
    assert_eq!(given("ratio(0, 7)"), Real(0.0));
    assert_eq!(given("ratio('1', '4')"), Real(0.25));
    for nothing in ["ratio(0, 0)", "ratio(1, 0)", "ratio(NULL, 1)", "ratio(1, NULL)"] {
        assert_eq!(given(nothing), Null, "{nothing}");
    }
    assert!(told("ratio('many', 1)").contains("'many' is no number"));
}

fn of_values(function: &str, values: &str) -> Value {
    one(&Memory::default().database(), &format!("SELECT {function} FROM (SELECT column1 AS x FROM (VALUES {values}))"))
}

#[test]
fn median_and_quantiles_lie_between_values_in_proportion_and_leave_nulls_out() {
    assert_eq!(of_values("median(x)", "(3), (1), (2)"), Real(2.0));
    assert_eq!(of_values("median(x)", "(4), (1), (NULL), (2), (3)"), Real(2.5));
    assert_eq!(of_values("median(x)", "(7)"), Real(7.0));
    assert_eq!(of_values("median(x)", "(NULL)"), Null);
    assert_eq!(given("median(1) WHERE 0"), Null);
    // As numpy.quantile([1, 2, 4, 8], q).
    for (share, value) in [(0.0, 1.0), (0.25, 1.75), (0.5, 3.0), (0.9, 6.8), (1.0, 8.0)] {
        let Real(found) = of_values(&format!("quantile(x, {share})"), "(8), (2), (4), (1)") else { panic!() };
        assert!((found - value).abs() < 1e-12, "{share}: {found}");
    }
    for wrong in ["quantile(1, 1.5)", "quantile(1, -0.1)", "quantile(1, NULL)"] {
        assert!(told(wrong).contains("from 0 to 1"), "{wrong}");
    }
    let database = database(100);
    let groups = values(&database, "SELECT flow_id, median(frame_no) FROM packets GROUP BY flow_id ORDER BY 1 LIMIT 2");
    assert_eq!(groups.rows, [[Integer(0), Real(50.0)], [Integer(1), Real(51.0)]]);
}

#[test]
fn stddev_is_that_of_a_sample() {
    let Real(found) = of_values("stddev(x)", "(2), (4), (4), (4), (5), (5), (7), (9), (NULL)") else { panic!() };
    assert!((found - 2.138_089_935).abs() < 1e-9, "{found}");
    assert_eq!(of_values("stddev(x)", "(5)"), Null);
    // Times are large numbers with small differences.
    let large = "(1790000000000000000), (1790000000000001024), (1790000000000002048)";
    assert_eq!(of_values("stddev(x)", large), Real(1024.0));
}

#[test]
fn ip_in_tells_networks_of_both_families() {
    let cases = [
        ("'10.1.2.3', '10.0.0.0/8'", Integer(1)),
        ("'11.1.2.3', '10.0.0.0/8'", Integer(0)),
        ("'10.1.2.3', '10.1.2.99/24'", Integer(1)),
        ("'10.1.2.3', '10.1.2.3'", Integer(1)),
        ("'10.1.2.3', '0.0.0.0/0'", Integer(1)),
        ("'fd00::1', 'fd00::/8'", Integer(1)),
        ("'fe80::1', 'fd00::/8'", Integer(0)),
        ("'10.1.2.3', '::/0'", Integer(0)),
        ("'no address', '10.0.0.0/8'", Null),
        ("NULL, '10.0.0.0/8'", Null),
        ("'10.1.2.3', NULL", Null),
        ("7, '10.0.0.0/8'", Null),
    ];
    for (arguments, expected) in cases {
        assert_eq!(given(&format!("ip_in({arguments})")), expected, "{arguments}");
    }
    for wrong in ["'10.0.0.0/33'", "'fd00::/129'", "'10.0.0/8'", "'ten'", "10"] {
        let error = told(&format!("ip_in('10.1.2.3', {wrong})"));
        assert!(error.contains("10.0.0.0/8"), "{error}");
    }
}

#[test]
fn regexp_is_an_operator_and_a_bad_pattern_is_told() {
    assert_eq!(given("'retransmit' REGEXP '^re.*it$'"), Integer(1));
    assert_eq!(given("regexp('^x', 'abc')"), Integer(0));
    assert_eq!(given("5201 REGEXP '^52'"), Integer(1));
    assert_eq!(given("NULL REGEXP 'x'"), Null);
    assert_eq!(given("'x' REGEXP NULL"), Null);
    assert!(told("'x' REGEXP '('").contains("regexp"));
    assert!(told("'x' REGEXP '((a{99}){99}){99}'").contains("regexp"));
    // Patterns that take forever elsewhere.
    assert_eq!(given("printf('%.*c', 30000, 'a') REGEXP '^(a+)+b$'"), Integer(0));
}

#[test]
fn hex_shows_integers_and_leaves_hex_texts_alone() {
    assert_eq!(given("hex(255)"), text("0xff"));
    assert_eq!(given("hex(255, 4)"), text("0x00ff"));
    assert_eq!(given("hex(-1)"), text("0xffffffffffffffff"));
    assert_eq!(given("hex('0x00ff')"), text("0x00ff"));
    assert_eq!(given("hex('ab')"), text("6162"));
    assert_eq!(given("hex(x'00ff')"), text("00FF"));
    assert_eq!(given("hex(NULL)"), Null);
    assert!(told("hex(1, 1000)").contains("from 1 to 64"));
}

#[test]
fn mathematics_has_no_value_where_there_is_none() {
    for nothing in [
        "sqrt(-1)",
        "ln(0)",
        "log(-1)",
        "log(1, 5)",
        "log10(0)",
        "pow(-8, 0.5)",
        "sqrt(NULL)",
        "pow(NULL, 1)",
        "floor(NULL)",
    ] {
        assert_eq!(given(nothing), Null, "{nothing}");
    }
    assert_eq!(given("floor(-1.5)"), Real(-2.0));
    assert_eq!(given("ceil(1.2)"), Real(2.0));
    assert_eq!(given("ceil(7)"), Integer(7));
    assert_eq!(given("power(2, 3)"), Real(8.0));
    assert_eq!(given("log2(8)"), Real(3.0));
}

#[test]
fn the_same_functions_are_there_in_every_database() {
    let database: Database = Memory::default().database();
    let error = refusal(&database, "SELECT mediann(1)").to_string();
    assert!(error.contains("mediann") && error.contains("did you mean median?"), "{error}");
}
