#!/bin/sh
# Runs every fuzz target for the number of seconds given (default 30), seeded from sample-captures/.
# See README.md for what it needs.
set -eu
cd "$(dirname "$0")"
seconds="${1:-30}"
shift || true
toolchain="${FUZZ_TOOLCHAIN:-nightly}"
if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "cargo-fuzz is missing: cargo install cargo-fuzz --locked" >&2
    exit 1
fi
python3 seed.py
for target in ${FUZZ_TARGETS:-read_capture decode_frame tcp_stream all_tables}; do
    mkdir -p "corpus/$target"
    # No sanitizer: the crate's own code is safe Rust but for one map, and the limit on memory is part of the test.
    cargo "+$toolchain" fuzz run --fuzz-dir . --sanitizer none "$target" "corpus/$target" "seeds/$target" -- \
        -max_total_time="$seconds" -rss_limit_mb=1024 -malloc_limit_mb=512 -timeout=20 -max_len=65536 "$@"
done
