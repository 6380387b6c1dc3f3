//! A lab's parameters: typed, with limits, bound into queries and never pasted.

use std::collections::BTreeMap;

use super::document::did_you_mean;
use super::units::Unit;
use crate::error::Error;
use crate::sql::Value;

/// A figure of the lab that an instructor may set, per class or per student.
#[derive(Clone, Debug)]
pub struct Param {
    pub name: String,
    pub kind: ParamKind,
    pub default: Value,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub unit: Option<Unit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    Integer,
    Number,
    Text,
    Boolean,
}

impl ParamKind {
    pub const ALL: [(&'static str, Self); 4] =
        [("integer", Self::Integer), ("number", Self::Number), ("text", Self::Text), ("boolean", Self::Boolean)];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

impl Param {
    /// The value for a text such as a command line's, or why it is none.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        let value = match self.kind {
            ParamKind::Integer => text.parse().ok().map(Value::Integer),
            ParamKind::Number => text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Real),
            ParamKind::Text => Some(Value::Text(text.to_owned())),
            ParamKind::Boolean => match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" => Some(Value::Integer(1)),
                "false" | "0" | "no" => Some(Value::Integer(0)),
                _ => None,
            },
        };
        let value = value.ok_or_else(|| format!("{} must be of type {}, not {text:?}", self.name, self.kind.name()))?;
        self.within(value)
    }

    /// The value, if it is of the right type and within the limits.
    pub fn within(&self, value: Value) -> Result<Value, String> {
        let number = match (&value, self.kind) {
            (Value::Integer(number), ParamKind::Integer) => Some(*number as f64),
            (Value::Integer(number), ParamKind::Number) => Some(*number as f64),
            (Value::Real(number), ParamKind::Number) => Some(*number),
            (Value::Integer(0 | 1), ParamKind::Boolean) | (Value::Text(_), ParamKind::Text) => None,
            _ => return Err(format!("{} must be of type {}", self.name, self.kind.name())),
        };
        let Some(number) = number else { return Ok(value) };
        let is_low = self.min.is_some_and(|min| number < min);
        let is_high = self.max.is_some_and(|max| number > max);
        if is_low || is_high {
            let limit = |limit: Option<f64>| limit.map_or("any".to_owned(), |limit| limit.to_string());
            let (min, max) = (limit(self.min), limit(self.max));
            return Err(format!("{} must be from {min} to {max}, not {number}", self.name));
        }
        Ok(match (value, self.kind) {
            (Value::Integer(number), ParamKind::Number) => Value::Real(number as f64),
            (value, _) => value,
        })
    }
}

/// Every parameter's value: as given, else its default.
pub fn values(params: &[Param], given: &BTreeMap<String, String>) -> Result<BTreeMap<String, Value>, Error> {
    for name in given.keys() {
        if !params.iter().any(|param| param.name == *name) {
            let known: Vec<_> = params.iter().map(|param| param.name.as_str()).collect();
            let hint = did_you_mean(name, known.iter().copied());
            let there_are =
                if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
            return Err(Error::Usage(format!("the lab has no parameter {name}{hint}; {there_are}")));
        }
    }
    let value = |param: &Param| {
        let value = match given.get(&param.name) {
            Some(text) => param.read(text).map_err(Error::Usage)?,
            None => param.default.clone(),
        };
        Ok((param.name.clone(), value))
    };
    params.iter().map(value).collect()
}
