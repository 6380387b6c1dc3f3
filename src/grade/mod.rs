//! Grading: a rubric, a submission, a report. Labs are data: this folder knows none of them.

pub mod submission;
