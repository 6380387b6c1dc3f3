//! SQL over tables. The numbered points of the notes on SQLite over Arrow have a test each in `points`.

mod functions;
mod limits;
mod performance;
mod points;
mod seeks;
mod sources;
mod tables;
mod typing;
