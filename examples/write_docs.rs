//! Writes `docs/tables.md` from the declarations of the tables: what `make docs` runs.
//!
//! `make docs`

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("tables.md"), wirelab::tables::markdown() + &wirelab::logs::markdown())
}
