//! What comes back, and as what.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampNanosecondType};
use arrow_schema::DataType;
use wirelab::sql::Value;

use super::sources::*;

#[test]
fn every_value_of_a_table_comes_back_as_it_was() {
    let database = database(250);
    let (whole, given) = (table(&database, "SELECT * FROM packets"), packets(250, 7, 250).remove(0));
    assert_eq!(whole.num_rows(), 250);
    let back = &whole.batches[0];
    for (at, field) in given.schema().fields().iter().enumerate() {
        let (column, back) = (given.column(at), back.column(at));
        match field.name().as_str() {
            "src_ip" => {
                let words = column.as_dictionary::<arrow_array::types::Int32Type>();
                let words = words.downcast_dict::<arrow_array::StringArray>().unwrap();
                assert!(words.into_iter().eq(back.as_string::<i32>().iter()));
            }
            "frames" => assert_eq!(back.as_string::<i32>().value(3), "[3,4]"),
            "va" => assert_eq!(back.as_string::<i32>().value(1), "0xfffffffffffffffe"),
            _ => assert_eq!(column, back, "{}", field.name()),
        }
    }
}

#[test]
fn a_result_of_many_rows_comes_in_batches_of_one_type() {
    let database = Memory::default().with("packets", packets(100_000, 7, 8_192)).database();
    let found = table(
        &database,
        "SELECT frame_no, CASE WHEN frame_no < 40000 THEN frame_no WHEN frame_no < 80000 THEN frame_no + 0.5 END AS n, CASE WHEN frame_no > 99000 THEN 'late' END AS late, time FROM packets",
    );
    assert!(found.batches.len() > 2);
    assert_eq!(found.num_rows(), 100_000);
    let kinds: Vec<_> = found.schema.fields().iter().map(|field| field.data_type().clone()).collect();
    assert_eq!(kinds[..3], [DataType::UInt64, DataType::Float64, DataType::Utf8]);
    let mut row = 0_u64;
    for batch in &found.batches {
        assert_eq!(batch.schema(), found.schema);
        let numbers = batch.column(1).as_primitive::<Float64Type>();
        let times = batch.column(3).as_primitive::<TimestampNanosecondType>();
        for at in 0..batch.num_rows() {
            row += 1;
            match row {
                1..40_000 => assert_eq!(numbers.value(at), row as f64),
                40_000..80_000 => assert_eq!(numbers.value(at), row as f64 + 0.5),
                _ => assert!(numbers.is_null(at)),
            }
            assert_eq!(times.value(at), START_NS + (row as i64 - 1) * 1_000);
            assert_eq!(batch.column(2).is_null(at), row <= 99_000);
        }
    }
}

#[test]
fn a_result_without_rows_or_without_columns_of_the_table_has_its_columns_all_the_same() {
    let database = database(10);
    let empty = table(&database, "SELECT frame_no, src_ip, 1 AS one FROM packets WHERE 0");
    let kinds: Vec<_> = empty.schema.fields().iter().map(|field| field.data_type().clone()).collect();
    assert_eq!((empty.num_rows(), kinds), (0, vec![DataType::UInt64, DataType::Utf8, DataType::Int64]));
    let nulls = table(&database, "SELECT NULL AS n, max(port) FROM packets WHERE 0");
    assert_eq!(nulls.batches[0].column(0).as_primitive::<Int64Type>().null_count(), 1);
}

#[test]
fn lists_are_json_and_blobs_are_shown_as_sql_writes_them() {
    let database = database(10);
    let ends = "SELECT value FROM packets, json_each(packets.frames) WHERE frame_no <= 2";
    assert_eq!(integers(&database, ends), [0, 1, 1, 2]);
    assert_eq!(one(&database, "SELECT x'0aff'"), text("x'0aff'"));
    assert_eq!(one(&database, "SELECT CAST(x'61ff' AS TEXT)"), text("a\u{fffd}"));
    assert_eq!(one(&database, "SELECT 1e999"), Value::Real(f64::INFINITY));
}

#[test]
fn counting_a_whole_table_gives_what_sqlite_would_count() {
    let database =
        Memory::default().with("packets", packets(20_000, 7, 8_192)).with("none", packets(0, 7, 1)).database();
    for (plain, walked, rows) in [
        ("SELECT count(*) FROM packets", "SELECT count(*) FROM packets WHERE 1", 20_000),
        ("select Count( * ) from PACKETS;", "select Count( * ) from PACKETS WHERE 1", 20_000),
        ("SELECT count(*) AS n FROM none", "SELECT count(*) AS n FROM none WHERE 1", 0),
        ("SELECT count(*) n FROM memory.packets", "SELECT count(*) n FROM memory.packets WHERE 1", 20_000),
    ] {
        let (plain, walked) = (table(&database, plain), table(&database, walked));
        assert_eq!(plain.schema, walked.schema);
        assert_eq!(plain.batches, walked.batches);
        assert_eq!(plain.batches[0].column(0).as_primitive::<Int64Type>().values()[..], [rows]);
    }
    assert_eq!(integer(&database, "SELECT count(*) NOTNULL FROM packets"), 1);
    assert_eq!(integer(&database, "SELECT count(*) ISNULL FROM packets"), 0);
}
