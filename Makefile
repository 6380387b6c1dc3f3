# wirelab: `make demo` and `make test` do all set-up themselves. `make help` lists the targets.

PYTHON ?= python3
VENV ?= .venv
CARGO_TARGET_DIR ?= $(CURDIR)/target
export CARGO_TARGET_DIR
BIN := $(VENV)/bin
# cargo-nextest runs tests in parallel processes; without it cargo's own runner does.
NEXTEST := $(shell command -v cargo-nextest 2>/dev/null)
ifneq ($(NEXTEST),)
RUST_TESTS = cargo nextest run $(TOGETHER) -p wirelab-bench
else
RUST_TESTS = cargo test $(TOGETHER) -p wirelab-bench --lib --bins --tests
endif
# Options of `make bench`, such as BENCH=--quick or BENCH=--full.
BENCH ?=
BENCH_VENV ?= $(CARGO_TARGET_DIR)/bench-venv
STAGES ?=
FUZZ_SECONDS ?= 30
# Cargo chooses the features of dependencies by the packages it is asked for: asked for these together, the tests and the
# Python package share one build.
TOGETHER := -p wirelab -p wirelab-python --features wirelab-python/extension-module

.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-rust test-python lint fmt bench bench-stages fuzz docs clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.ready ## make the Python environment (everything else is fetched by cargo)

$(VENV)/.ready: python/requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r python/requirements-dev.txt
	@touch $@

build: setup ## build the Python package into the environment
	@VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop >/dev/null

demo: build ## analyse the sample captures
	@$(BIN)/python sample-captures/demo.py

# The Python packages are fetched while cargo compiles.
test: ## run all tests
	@$(MAKE) --no-print-directory setup & fetching=$$!; \
		$(RUST_TESTS) --no-run && wait $$fetching
	@$(MAKE) --no-print-directory test-rust test-python

test-rust:
	$(RUST_TESTS)
	cargo test $(TOGETHER) --doc

# The harness of `make bench` is tested with captures of its generator.
test-python: build
	cargo build --quiet -p wirelab-bench
	WIRELAB_BENCH_PEERS=$(CARGO_TARGET_DIR)/debug/wirelab-bench $(BIN)/python -m pytest -q -n 2 --dist worksteal python/tests benches/tests

lint: setup ## formatting, clippy, ruff
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo check -p wirelab --no-default-features
	cargo check -p wirelab
	$(BIN)/ruff check python benches sample-captures tests
	$(BIN)/ruff format --check python benches sample-captures tests

fmt: setup ## format the sources
	cargo fmt --all
	$(BIN)/ruff format python benches sample-captures tests

# The Python peers have an environment of their own. One that cannot be installed here is left out, and asked for again next time.
$(BENCH_VENV)/.ready: benches/requirements.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	@failed=; for peer in $$(grep -v '^#' benches/requirements.txt); do \
		$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check "$$peer" \
			|| { echo "$$peer cannot be installed here: it is left out"; failed=1; }; \
	done; [ -n "$$failed" ] || touch $@

bench: $(BENCH_VENV)/.ready ## compare with tshark, tcptrace, nfstream and others (BENCH=--quick, --full, --growth, --memory)
	cargo build --release -p wirelab --features sql --example scan_rows
	cargo build --release -p wirelab-bench
	WIRELAB_SCAN=$(CARGO_TARGET_DIR)/release/examples/scan_rows \
		WIRELAB_BENCH_PEERS=$(CARGO_TARGET_DIR)/release/wirelab-bench \
		$(PYTHON) benches/run.py --python $(BENCH_VENV)/bin/python --markdown docs/performance.md $(BENCH)

bench-stages: ## time the stages of a run one by one, with Criterion (STAGES=decode runs some)
	cargo bench -p wirelab-bench --features stages --bench stages -- $(STAGES)

fuzz: ## run each fuzz target for FUZZ_SECONDS
	fuzz/run.sh $(FUZZ_SECONDS)

docs: ## write docs/tables.md from the declarations, and the Rust documentation
	cargo build $(TOGETHER) --example write_docs
	$(CARGO_TARGET_DIR)/debug/examples/write_docs
	RUSTDOCFLAGS="-D warnings" cargo doc -p wirelab --all-features --no-deps

clean: ## remove what was built here
	rm -rf target $(VENV)
