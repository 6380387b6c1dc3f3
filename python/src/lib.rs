//! Python bindings of wirelab: convert, detach, call, convert. What things mean is the core's business; how they look is
//! the package's, in `python/wirelab/`.

#![deny(unsafe_code)]

mod capture;
mod cells;
mod convert;
mod error;
mod grade;
mod input;
mod join;
mod log;
mod observer;
mod overview;
mod request;
mod scan;
mod sql;
mod stream;
mod table;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Panics are caught and raised as exceptions; a library says nothing on standard error.
    std::panic::set_hook(Box::new(|_| {}));
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<capture::Capture>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<scan::Scan>()?;
    module.add_class::<scan::RecordBatch>()?;
    module.add_function(wrap_pyfunction!(capture::open, module)?)?;
    module.add_function(wrap_pyfunction!(scan::scan, module)?)?;
    module.add_function(wrap_pyfunction!(overview::overview, module)?)?;
    module.add_function(wrap_pyfunction!(request::log_endpoints, module)?)?;
    module.add_function(wrap_pyfunction!(join::match_captures, module)?)?;
    module.add_function(wrap_pyfunction!(convert::convert, module)?)?;
    module.add_class::<grade::Lab>()?;
    module.add_class::<grade::Report>()?;
    module.add_function(wrap_pyfunction!(grade::lab, module)?)?;
    module.add_function(wrap_pyfunction!(grade::labs, module)?)?;
    module.add_function(wrap_pyfunction!(grade::submissions, module)?)?;
    module.add_function(wrap_pyfunction!(grade::left_out, module)?)?;
    module.add_function(wrap_pyfunction!(grade::may_be_class, module)?)?;
    module.add_class::<log::Log>()?;
    module.add_function(wrap_pyfunction!(log::log, module)?)?;
    module.add_function(wrap_pyfunction!(log::empty_log, module)?)?;
    module.add_function(wrap_pyfunction!(grade::new_lab, module)?)?;
    module.add_function(wrap_pyfunction!(grade::report_schema, module)?)?;
    module.add_function(wrap_pyfunction!(grade::check_lab, module)?)?;
    module.add_function(wrap_pyfunction!(sql::sql, module)?)?;
    module.add_function(wrap_pyfunction!(table::tables, module)?)?;
    module.add_function(wrap_pyfunction!(table::table_columns, module)?)?;
    #[cfg(debug_assertions)]
    module.add_function(wrap_pyfunction!(stream::panicking_stream, module)?)?;
    Ok(())
}
