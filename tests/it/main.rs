//! wirelab from the outside: what a caller sees, on real captures, on generated ones, and on inputs that are no captures.
//!
//! One binary, so that it links once. Two places outside the repository are read where they exist, and their tests say
//! aloud when they are skipped: `WIRELAB_CORPUS` (default `../shared/corpus`) and `WIRELAB_LAB_CAPTURES` (default
//! `../shared/lab-captures`).

mod support;

#[cfg(feature = "convert")]
mod convert;
mod corpus;
mod docs;
mod file_sets;
#[cfg(feature = "grade")]
mod grade;
mod hostile;
mod inputs;
mod join;
mod layout;
mod lldp;
#[cfg(feature = "logs")]
mod logs;
mod memory;
mod observer;
mod roce_lab;
mod roce_logs;
mod samples;
mod spill;
#[cfg(feature = "sql")]
mod sql;
#[cfg(feature = "grade")]
mod submission;
mod tcp_story;
mod threads;
mod traps;
mod wireshark;
mod write;
