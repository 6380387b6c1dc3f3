"""Samples that a script writes."""

import shutil
import subprocess
import sys
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[2] / "sample-captures"


def test_the_script_writes_the_sample_again(tmp_path: Path) -> None:
    made = shutil.copy(SAMPLES / "lldp-dcbx" / "make.py", tmp_path)
    subprocess.run([sys.executable, made], check=True, timeout=60)
    assert (tmp_path / "lldp-dcbx.pcap").read_bytes() == (SAMPLES / "lldp-dcbx" / "lldp-dcbx.pcap").read_bytes()
