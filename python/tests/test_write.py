"""Capture.write: the frames that prove a point, for Wireshark."""

from __future__ import annotations

from pathlib import Path

import pytest

import wirelab as wl

SAMPLES = Path(__file__).resolve().parents[2] / "sample-captures"
PING = SAMPLES / "ping-delay" / "ping-delay.pcap"


def test_chosen_frames_come_back_with_their_comments(tmp_path: Path) -> None:
    out = tmp_path / "proof.pcapng"
    assert wl.open(PING).write(out, frames=[1, 2, 5], comments={2: "first reply", 5: "第三个请求"}) == 3
    before = wl.open(PING).packets.to_arrow().select(["time", "original_bytes", "ip_id"]).take([0, 1, 4])
    after = wl.open(out).packets.to_arrow()
    assert after.select(["time", "original_bytes", "ip_id"]).to_pylist() == before.to_pylist()
    assert after["comment"].to_pylist() == [None, "first reply", "第三个请求"]


def test_without_frames_all_are_written_and_pairs_name_files(tmp_path: Path) -> None:
    capture = wl.open(PING)
    assert capture.write(tmp_path / "all.pcapng") == 24
    assert capture.write(tmp_path / "one.pcapng", frames=[(1, 3)]) == 1


@pytest.mark.parametrize("frames", [[0], [(0, 1)], [-3]])
def test_what_is_no_frame_number_is_refused(tmp_path: Path, frames: list[int]) -> None:
    with pytest.raises(wl.UsageError):
        wl.open(PING).write(tmp_path / "out.pcapng", frames=frames)
    assert not list(tmp_path.iterdir())


def test_a_frame_that_is_not_there_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(wl.WirelabError):
        wl.open(PING).write(tmp_path / "out.pcapng", frames=[99])
    assert not list(tmp_path.iterdir())
