//! Look-ups give the rows that going through all of them gives, in the order asked for.

use std::sync::Arc;

use arrow_array::{Int64Array, UInt64Array};

use super::sources::*;

/// The same rows, found by SQLite's own comparison of an expression.
fn slow(database: &wirelab::sql::Database, condition: &str, column: &str) -> Vec<i64> {
    integers(
        database,
        &format!("SELECT frame_no FROM packets WHERE {}", condition.replace(column, &format!("+{column}"))),
    )
}

#[test]
fn ranges_of_rising_columns_are_found_by_halving() {
    let database = database(1_000);
    let time = |rows: i64| START_NS + rows * 1_000;
    let conditions = [
        "frame_no > 990".to_owned(),
        "frame_no >= 990 AND frame_no < 995".to_owned(),
        "frame_no BETWEEN 95 AND 105".to_owned(),
        "frame_no < 3".to_owned(),
        "frame_no <= 0".to_owned(),
        "frame_no > 1000".to_owned(),
        format!("time >= {} AND time < {}", time(10), time(20)),
        format!("time > {}", time(997)),
        format!("time < {} AND time > {}", time(3), time(5)),
        "delta > -3 AND delta <= 3".to_owned(),
    ];
    for condition in conditions {
        let column = condition.split(' ').next().unwrap();
        let sql = format!("SELECT frame_no FROM packets WHERE {condition}");
        assert!(plan(&database, &sql).contains(&format!("range {column}")), "{}", plan(&database, &sql));
        assert_eq!(integers(&database, &sql), slow(&database, &condition, column), "{condition}");
    }
}

#[test]
fn a_range_of_a_column_that_does_not_rise_is_found_through_an_index() {
    let numbers = [5_u64, 3, 9, 1, 9, 7, 2, 5, 8, 4];
    let times = [50_i64, 30, 90, 10, 90, 70, 20, 50, 80, 40];
    let columns = batch(vec![
        ("frame_no", Arc::new(UInt64Array::from(numbers.to_vec()))),
        ("time_rel_ns", Arc::new(times.iter().map(|time| (*time != 40).then_some(*time)).collect::<Int64Array>())),
    ]);
    let database = Memory::default().with("packets", vec![columns.slice(0, 4), columns.slice(4, 6)]).database();
    for condition in [
        "frame_no > 4",
        "frame_no >= 9",
        "frame_no < 2",
        "frame_no BETWEEN 3 AND 7",
        "time_rel_ns < 45",
        "time_rel_ns >= 90",
    ] {
        let sql = format!("SELECT frame_no FROM packets WHERE {condition}");
        assert!(plan(&database, &sql).contains("range "), "{}", plan(&database, &sql));
        let mut expected = slow(&database, condition, condition.split(' ').next().unwrap());
        expected.sort_unstable();
        // First by going through the rows, then through the index.
        for _ in 0..3 {
            let mut found = integers(&database, &sql);
            found.sort_unstable();
            assert_eq!(found, expected, "{condition}");
            assert_eq!(integers(&database, &format!("{sql} ORDER BY frame_no")), expected, "{condition}");
        }
    }
}

#[test]
fn equality_finds_every_row_by_value_from_the_first_look_up_on() {
    let database = database(1_000);
    let sql = "SELECT frame_no FROM packets WHERE ";
    for condition in [
        "flow_id = 3",
        "port = 77",
        "delta = -10",
        "src_ip = '10.0.0.4'",
        "comment = 'Nr 50'",
        "is_lost = 1",
        "length = 60",
        "port = 0",
    ] {
        let column = condition.split(' ').next().unwrap();
        let expected = slow(&database, condition, column);
        for _ in 0..4 {
            assert_eq!(integers(&database, &format!("{sql}{condition}")), expected, "{condition}");
        }
    }
    // Nulls are equal to nothing.
    let joined = "SELECT count(*) FROM packets a JOIN packets b ON a.port = b.port";
    assert_eq!(integer(&database, joined), 900);
    let several =
        "SELECT frame_no FROM packets WHERE flow_id IN (2, 5, 2, NULL, 'x') AND frame_no < 20 ORDER BY frame_no";
    assert_eq!(integers(&database, several), [3, 6, 10, 13, 17]);
}

#[test]
fn values_far_apart_are_indexed_too() {
    let wide: Vec<i64> = vec![i64::MIN, 7, i64::MAX, 7, 0, -1, i64::MAX];
    let column = batch(vec![("n", Arc::new(Int64Array::from(wide)))]);
    let database = Memory::default().with("t", vec![column]).database();
    for _ in 0..3 {
        for (value, rows) in
            [("-9223372036854775808", vec![1]), ("7", vec![2, 4]), ("9223372036854775807", vec![3, 7]), ("8", vec![])]
        {
            assert_eq!(integers(&database, &format!("SELECT rowid FROM t WHERE n = {value}")), rows, "{value}");
        }
    }
}

#[test]
fn the_order_of_frames_needs_no_sorting_in_either_direction() {
    let database = database(250);
    let ascending: Vec<i64> = (1..=250).collect();
    let descending: Vec<i64> = ascending.iter().rev().copied().collect();
    for (order, expected) in [
        ("frame_no", &ascending),
        ("frame_no DESC", &descending),
        ("time DESC", &descending),
        ("rowid DESC", &descending),
    ] {
        let sql = format!("SELECT frame_no FROM packets ORDER BY {order}");
        assert!(!plan(&database, &sql).contains("TEMP B-TREE"), "{}", plan(&database, &sql));
        assert_eq!(integers(&database, &sql), *expected, "{order}");
    }
    for _ in 0..3 {
        let sql = "SELECT frame_no FROM packets WHERE flow_id = 3 ORDER BY frame_no DESC LIMIT 3";
        assert!(!plan(&database, sql).contains("TEMP B-TREE"));
        assert_eq!(integers(&database, sql), [249, 242, 235]);
        let sql = "SELECT frame_no FROM packets WHERE frame_no < 200 AND frame_no > 195 ORDER BY time DESC";
        assert!(!plan(&database, sql).contains("TEMP B-TREE"));
        assert_eq!(integers(&database, sql), [199, 198, 197, 196]);
    }
    // Where the rows are in no such order, or in one of two directions, SQLite sorts.
    for order in ["length", "frame_no, length DESC", "comment", "port"] {
        assert!(
            plan(&database, &format!("SELECT frame_no FROM packets ORDER BY {order}")).contains("TEMP B-TREE"),
            "{order}"
        );
    }
}

#[test]
fn frames_of_several_files_are_in_the_order_of_file_and_frame() {
    let columns = batch(vec![
        ("file_no", Arc::new(UInt64Array::from(vec![1, 1, 1, 2, 2, 2]))),
        ("frame_no", Arc::new(UInt64Array::from(vec![1, 2, 3, 1, 2, 3]))),
    ]);
    let database = Memory::default().with("packets", vec![columns]).database();
    let sql = "SELECT file_no * 10 + frame_no FROM packets ORDER BY file_no DESC, frame_no DESC";
    assert!(!plan(&database, sql).contains("TEMP B-TREE"));
    assert_eq!(integers(&database, sql), [23, 22, 21, 13, 12, 11]);
    let sql = "SELECT file_no * 10 + frame_no FROM packets ORDER BY file_no DESC, rowid DESC";
    assert!(!plan(&database, sql).contains("TEMP B-TREE"));
    assert_eq!(integers(&database, sql), [23, 22, 21, 13, 12, 11]);
    let sql = "SELECT file_no * 10 + frame_no FROM packets ORDER BY file_no DESC, rowid";
    assert_eq!(integers(&database, sql), [21, 22, 23, 11, 12, 13]);
    let sql = "SELECT file_no * 10 + frame_no FROM packets ORDER BY frame_no, file_no";
    assert_eq!(integers(&database, sql), [11, 21, 12, 22, 13, 23]);
    let sql =
        "SELECT a.frame_no FROM packets a JOIN packets b ON a.file_no = b.file_no AND a.frame_no = b.frame_no + 1";
    assert_eq!(integer(&database, &format!("SELECT count(*) FROM ({sql})")), 4);
}

#[test]
fn empty_tables_and_batches_are_no_trouble() {
    let full = packets(10, 7, 100).remove(0);
    let batches = vec![full.slice(0, 0), full.slice(0, 4), full.slice(4, 0), full.slice(4, 6)];
    let database = Memory::default().with("packets", batches).with("empty", packets(0, 7, 100)).database();
    assert_eq!(
        integers(&database, "SELECT frame_no FROM packets ORDER BY frame_no DESC"),
        (1..=10).rev().collect::<Vec<_>>()
    );
    assert_eq!(integers(&database, "SELECT frame_no FROM packets WHERE frame_no > 3 AND frame_no < 7"), [4, 5, 6]);
    assert_eq!(integer(&database, "SELECT count(*) FROM empty e JOIN packets p ON e.flow_id = p.flow_id"), 0);
    assert_eq!(integer(&database, "SELECT count(*) FROM packets p LEFT JOIN empty e ON e.flow_id = p.flow_id"), 10);
    assert_eq!(table(&database, "SELECT * FROM empty").schema.fields().len(), 12);
}
