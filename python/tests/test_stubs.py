from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import wirelab as wl

PROJECT = Path(__file__).parents[2]


def test_the_stubs_match_the_compiled_part(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed: the stubs were not checked")
    allowed = tmp_path / "allowed.txt"
    # A debug build can panic on purpose; the dataframe libraries are imported by who needs
    # them only; a cached function looks different from its source.
    allowed.write_text(
        "wirelab\\._core\\.(panicking_stream|__all__)\nwirelab\\._tabular\\.(pandas|polars|pyarrow)\nwirelab\\._times\\._whole_seconds\nwirelab\\.__main__\n"
    )
    command = [sys.executable, "-m", "mypy.stubtest", "wirelab"]
    command += [
        "--allowlist",
        str(allowed),
        "--ignore-unused-allowlist",
        "--mypy-config-file",
        str(PROJECT / "pyproject.toml"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(wl.__file__).parent / "py.typed").is_file()
