"""Capture.write: the frames that prove a point, for Wireshark."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import wirelab as wl

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

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


@pytest.mark.parametrize(
    "frames",
    [
        "17",
        b"17",
        ["17"],
        5,
        [1.0],
        [True],
        [np.True_],
        [None],
        [(1, 2, 3)],
        [()],
        [("1", "7")],
        np.array(["17"]),
        np.array([1.5]),
        np.array(3),
        pa.array([1, None]),
        pd.Series([1, None], dtype="Int64"),
        pd.DataFrame({"frame_no": [1]}),
        [2**70],
    ],
    ids=lambda frames: type(frames).__name__,
)
def test_what_are_no_frames_is_said_in_one_sentence(tmp_path: Path, frames: object) -> None:
    with pytest.raises(wl.UsageError, match="frames are numbers, or pairs of file_no and frame_no"):
        wl.open(PING).write(tmp_path / "out.pcapng", frames=frames)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_columns_of_other_libraries_name_frames(tmp_path: Path) -> None:
    capture = wl.open(PING)
    frame = capture.packets.to_pandas()[["file_no", "frame_no"]].head(3)
    table = capture.packets.to_arrow().slice(0, 3)
    polars = pytest.importorskip("polars")
    for frames in (
        frame.frame_no,
        frame.frame_no.values,
        frame.values,
        list(frame.itertuples(index=False)),
        frame.frame_no.astype("Int64"),
        table["frame_no"],
        table["frame_no"].combine_chunks(),
        polars.Series([1, 2, 3]),
        [np.int64(1), np.uint64(2), (np.int32(1), np.int64(3))],
        list(zip(table["file_no"], table["frame_no"], strict=True)),
        {1, 2, 3},
        range(1, 4),
        (number for number in (1, 2, 3)),
    ):
        assert capture.write(tmp_path / "out.pcapng", frames=frames) == 3, frames
        times = wl.open(tmp_path / "out.pcapng").packets.to_arrow()["time"]
        assert times.to_pylist() == table["time"].to_pylist()
    comments = {np.int64(2): "a", (1, np.uint8(3)): "b"}
    assert capture.write(tmp_path / "out.pcapng", frames=frame.frame_no, comments=comments) == 3
    assert wl.open(tmp_path / "out.pcapng").packets.to_arrow()["comment"].to_pylist() == [None, "a", "b"]


def test_no_comment_is_lost_without_a_word(tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    two = wl.open(SAMPLES / "tcp-loss" / "tcp-loss.h1.pcap", SAMPLES / "tcp-loss" / "tcp-loss.h2.pcap")
    last = two.files[1]["frames"]
    for capture, frames, comment, says in (
        (wl.open(PING), [1, 2], 3, "comment for frame 3 of file 1, but frames does not name it"),
        (wl.open(PING), [1, 2], (2, 1), "comment for frame 1 of file 2, but frames does not name it"),
        (wl.open(PING), None, 25, "comment for frame 25 of file 1, but the capture has no such frame"),
        (two, None, (2, last + 1), f"comment for frame {last + 1} of file 2, but the capture has no such frame"),
        (two, None, (3, 1), "comment for frame 1 of file 3, but the capture has no such frame"),
    ):
        with pytest.raises(wl.UsageError, match=says):
            capture.write(out, frames=frames, comments={comment: "lost"})
        assert not out.exists()
    two.write(out, comments={(1, 1): "first", (2, last): "last of the second"})
    comments = [one for one in wl.open(out).packets.to_arrow()["comment"].to_pylist() if one]
    assert sorted(comments) == ["first", "last of the second"]


@pytest.mark.parametrize("comments", [["x"], 5, "x", {1: 5}, {1: None}, {"1": "x"}, {1.5: "x"}], ids=repr)
def test_what_are_no_comments_is_told(tmp_path: Path, comments: object) -> None:
    with pytest.raises(wl.UsageError, match="comment|frames are"):
        wl.open(PING).write(tmp_path / "out.pcapng", comments=comments)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", [5, None, ""], ids=repr)
def test_what_is_no_path_to_write_to_is_told(path: object) -> None:
    with pytest.raises(wl.UsageError, match="path to write to"):
        wl.open(PING).write(path)  # type: ignore[arg-type]


def test_what_is_no_character_is_no_comment(tmp_path: Path) -> None:
    with pytest.raises(wl.UsageError, match="no character"):
        wl.open(PING).write(tmp_path / "out.pcapng", frames=[1], comments={1: "\ud800"})


def test_a_comment_that_the_format_has_no_place_for_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def block(kind: int, body: bytes) -> bytes:
        return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))

    frame = bytes(12) + b"\x08\x06" + bytes(50)
    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", 1, 0, 0))
    out = tmp_path / "out.pcapng"
    capture = wl.open(section + block(3, struct.pack("<I", 64) + frame))
    with pytest.raises(wl.UsageError, match="is written, but for 1 of the comments"):
        capture.write(out, comments={1: "no time"})
    assert len(wl.open(out).packets) == 1 and capfd.readouterr() == ("", "")
