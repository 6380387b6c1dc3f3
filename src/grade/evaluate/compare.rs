//! A measured value against what is expected.

use std::cmp::Ordering;

use crate::grade::rubric::{Op, Tolerance};
use crate::sql::Value;

/// What a comparison shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Met,
    NotMet,
    /// One side is NULL.
    Null,
    /// A number against a text.
    WrongType,
}

pub(super) fn compare(value: &Value, op: Op, expected: &[Value], tolerance: Option<Tolerance>) -> Shown {
    if *value == Value::Null || expected.is_empty() || expected.contains(&Value::Null) {
        return Shown::Null;
    }
    let orders: Option<Vec<Ordering>> = expected.iter().map(|expected| order(value, expected)).collect();
    let Some(orders) = orders else { return Shown::WrongType };
    let first = orders.first().copied().unwrap_or(Ordering::Equal);
    let is_met = match op {
        Op::Eq => first.is_eq(),
        Op::Ne => first.is_ne(),
        Op::Lt => first.is_lt(),
        Op::Le => first.is_le(),
        Op::Gt => first.is_gt(),
        Op::Ge => first.is_ge(),
        Op::Between => first.is_ge() && orders.get(1).is_none_or(|most| most.is_le()),
        Op::OneOf => orders.iter().any(|order| order.is_eq()),
        Op::Approx => match (number(value), expected.first().and_then(number)) {
            (Some(value), Some(expected)) => {
                let room = match tolerance {
                    Some(Tolerance::Absolute(size)) => size,
                    Some(Tolerance::Relative(share)) => share * expected.abs(),
                    None => 0.0,
                };
                (value - expected).abs() <= room
            }
            _ => return Shown::WrongType,
        },
    };
    if is_met { Shown::Met } else { Shown::NotMet }
}

fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => Some(a.cmp(b)),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        _ => number(a)?.partial_cmp(&number(b)?),
    }
}

pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Real(number) => Some(*number),
        _ => None,
    }
}

/// Whether SQLite takes the value for true.
pub(super) fn is_true(value: &Value) -> bool {
    number(value).is_some_and(|number| number != 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: i64, op: Op, expected: &[i64]) -> bool {
        let expected: Vec<_> = expected.iter().map(|number| Value::Integer(*number)).collect();
        compare(&Value::Integer(value), op, &expected, None) == Shown::Met
    }

    #[test]
    fn every_comparison_holds_at_its_edges() {
        let at_edge: Vec<_> = [4, 5, 6]
            .into_iter()
            .map(|value| [Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge].map(|op| shown(value, op, &[5])))
            .collect();
        assert_eq!(
            at_edge,
            [
                [false, true, true, true, false, false],
                [true, false, false, true, false, true],
                [false, true, false, false, true, true]
            ]
        );
        assert_eq!([4, 5, 7, 9, 10].map(|value| shown(value, Op::Between, &[5, 9])), [false, true, true, true, false]);
        assert_eq!([1, 2, 3].map(|value| shown(value, Op::OneOf, &[1, 3])), [true, false, true]);
    }

    #[test]
    fn about_is_within_the_tolerance_and_no_further() {
        let about = |value: f64, tolerance| {
            compare(&Value::Real(value), Op::Approx, &[Value::Integer(200)], Some(tolerance)) == Shown::Met
        };
        let relative = Tolerance::Relative(0.05);
        assert_eq!([189.9, 190.0, 210.0, 210.1].map(|value| about(value, relative)), [false, true, true, false]);
        let absolute = Tolerance::Absolute(0.5);
        assert_eq!([199.4, 199.5, 200.6].map(|value| about(value, absolute)), [false, true, false]);
    }

    #[test]
    fn large_whole_numbers_are_told_apart() {
        let large = 1 << 60;
        assert!(shown(large, Op::Lt, &[large + 1]) && !shown(large, Op::Eq, &[large + 1]));
    }

    #[test]
    fn null_and_a_text_for_a_number_are_neither_right_nor_wrong() {
        let text = Value::Text("5".to_owned());
        assert_eq!(compare(&Value::Null, Op::Eq, &[Value::Integer(5)], None), Shown::Null);
        assert_eq!(compare(&Value::Integer(5), Op::Eq, &[Value::Null], None), Shown::Null);
        assert_eq!(compare(&text, Op::Eq, &[Value::Integer(5)], None), Shown::WrongType);
        assert_eq!(compare(&text, Op::Eq, std::slice::from_ref(&text), None), Shown::Met);
        assert!(is_true(&Value::Integer(2)) && !is_true(&Value::Null) && !is_true(&Value::Real(0.0)));
    }
}
