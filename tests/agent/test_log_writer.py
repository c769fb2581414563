"""A container's log on disk."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.agent.log_writer import LINE_BYTES, LogWriter

AT_NS = 1_700_000_000_123_456_789
HEAD = "2023-11-14T22:13:20.123456789Z stdout"


def written(path: Path, *pieces: bytes, most: int = 1 << 20, files: int = 3) -> None:
    writer = LogWriter(str(path), most, files)
    for piece in pieces:
        writer.write(b"stdout", piece, AT_NS)
    writer.close(AT_NS)


@pytest.mark.parametrize(
    "pieces, lines",
    [
        pytest.param([b"one\ntwo\n"], ["F one", "F two"], id="each line has its time, stream and tag"),
        pytest.param([b"o", b"ne\nt", b"wo\n"], ["F one", "F two"], id="a line that comes in pieces is one line"),
        pytest.param([b"no end"], ["F no end"], id="what has no end when the process ends is a line, too"),
        pytest.param([b"\n\n"], ["F ", "F "], id="empty lines stay"),
    ],
)
def test_lines(pieces: list[bytes], lines: list[str], tmp_path: Path) -> None:
    written(tmp_path / "0.log", *pieces)
    assert (tmp_path / "0.log").read_text() == "".join(f"{HEAD} {line}\n" for line in lines)


def test_a_line_that_is_too_long_is_kept_in_parts(tmp_path: Path) -> None:
    written(tmp_path / "0.log", b"x" * (2 * LINE_BYTES + 5) + b"\n")
    tags = [line.split(" ", 3)[2] for line in (tmp_path / "0.log").read_text().splitlines()]
    assert tags == ["P", "P", "F"]


def test_a_full_file_makes_room_for_the_next_and_the_oldest_goes(tmp_path: Path) -> None:
    written(tmp_path / "0.log", *(b"line-%04d\n" % number for number in range(100)), most=500, files=3)
    files = [tmp_path / "0.log.2", tmp_path / "0.log.1", tmp_path / "0.log"]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    assert all(file.stat().st_size <= 500 for file in files)
    kept = [line.rpartition(" ")[2] for file in files for line in file.read_text().splitlines()]
    assert kept == [f"line-{number:04d}" for number in range(100)][-len(kept) :]


def test_one_file_is_begun_again_when_it_is_full(tmp_path: Path) -> None:
    written(tmp_path / "0.log", *(b"line-%04d\n" % number for number in range(30)), most=500, files=1)
    assert [one.name for one in tmp_path.iterdir()] == ["0.log"]
    assert (tmp_path / "0.log").read_text().endswith("line-0029\n")


def test_a_disk_that_takes_nothing_loses_lines_and_nothing_else(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path / "nowhere" / "0.log"), 1_000, 2)
    writer.write(b"stdout", b"lost\n" * 100, AT_NS)
    writer.close(AT_NS)
    assert writer.lost_bytes


@settings(max_examples=50, deadline=None)
@given(
    data=st.lists(st.binary(max_size=60), max_size=20),
    most=st.integers(min_value=200, max_value=2_000),
)
def test_nothing_is_lost_or_reordered_between_files(
    data: list[bytes], most: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("log")
    written(folder / "0.log", *data, most=most, files=100)
    files = sorted(folder.iterdir(), key=lambda file: -int(file.suffix[1:]) if file.suffix != ".log" else 1)
    texts = [line.split(b" ", 3)[3] for file in files for line in file.read_bytes().split(b"\n") if line]
    expected = b"".join(data).split(b"\n")
    assert texts == (expected if expected[-1] else expected[:-1])
