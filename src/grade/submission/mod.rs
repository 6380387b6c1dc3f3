//! What was handed in: a folder, a zip or one file, read with limits and without trusting a path.
