"""A container's log on disk."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.agent import log_writer
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
    lines = (tmp_path / "0.log").read_text().splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == [f"line-{number:04d}" for number in range(30)][-len(lines) :]
    assert len({len(line) for line in lines}) == 1, "nothing is left of the lines before"


@pytest.mark.parametrize("files", [1, 2])
def test_a_disk_that_takes_nothing_loses_lines_and_nothing_else(files: int, tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path / "nowhere" / "0.log"), 1_000, files)
    writer.write(b"stdout", b"lost\n" * 100, AT_NS)
    writer.close(AT_NS)
    assert writer.lost_bytes == 100 * len(f"{HEAD} F lost\n")


def test_a_disk_that_takes_half_a_line_has_lost_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, line = LogWriter(str(tmp_path / "0.log"), 1_000, 2), len(f"{HEAD} F lost\n")
    writer.write(b"stdout", b"kept\n", AT_NS)
    assert writer.lost_bytes == 0
    monkeypatch.setattr(os, "write", lambda _file, data: len(data) - 1)
    writer.write(b"stdout", b"lost\n", AT_NS)
    assert writer.lost_bytes == line
    writer.write(b"stdout", b"lost\n", AT_NS)
    assert writer.lost_bytes == 2 * line


def test_both_streams_have_unfinished_lines_of_their_own(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path / "0.log"), 1_000, 2)
    for stream, text in ((b"stdout", b"o"), (b"stderr", b"e"), (b"stdout", b"ut"), (b"stderr", b"rr")):
        writer.write(stream, text, AT_NS)
    assert (tmp_path / "0.log").read_bytes() == b""
    writer.close(AT_NS)
    lines = (tmp_path / "0.log").read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == ["stdout F out", "stderr F err"]


def test_a_file_is_full_when_not_one_byte_more_has_room(tmp_path: Path) -> None:
    line = len(f"{HEAD} F 12345\n")
    for most, files in ((2 * line, 1), (2 * line - 1, 2)):
        folder = tmp_path / str(most)
        folder.mkdir()
        written(folder / "0.log", b"12345\n", b"12345\n", most=most)
        assert len(list(folder.iterdir())) == files
        written(folder / "1.log", b"12345\n12345\n", most=most)
        assert len(list(folder.glob("1.log*"))) == files, "the same if they come together"


def test_a_line_that_is_longer_than_a_file_may_be_has_a_file_of_its_own(tmp_path: Path) -> None:
    written(tmp_path / "0.log", b"a\n", b"longer than that\nb\n", most=40, files=5)
    texts = [(tmp_path / f"0.log{end}").read_text() for end in (".2", ".1", "")]
    assert [text.partition(" F ")[2] for text in texts] == ["a\n", "longer than that\n", "b\n"]


def test_a_log_that_is_there_is_continued(tmp_path: Path) -> None:
    most = 3 * len(f"{HEAD} F 1\n")
    written(tmp_path / "0.log", b"1\n2\n", most=most)
    written(tmp_path / "0.log", b"3\n4\n", most=most)
    assert [line[-1] for line in (tmp_path / "0.log.1").read_text().splitlines()] == ["1", "2", "3"]
    assert [line[-1] for line in (tmp_path / "0.log").read_text().splitlines()] == ["4"]
    assert (tmp_path / "0.log").stat().st_mode & 0o777 == 0o600, "only its owner may read it"


@pytest.mark.parametrize(
    "text, tags",
    [
        pytest.param(b"x" * LINE_BYTES, ["F"], id="as long as a record may be"),
        pytest.param(b"x" * (LINE_BYTES + 1), ["P", "F"], id="one more"),
        pytest.param(b"x" * 2 * LINE_BYTES, ["P", "F"], id="twice as long"),
        pytest.param(b"a\n" + b"x" * (LINE_BYTES + 1) + b"\nb", ["F", "P", "F", "F"], id="between short lines"),
        pytest.param(b"x" * LINE_BYTES + b"\n" + b"y" * LINE_BYTES, ["F", "F"], id="two of the longest"),
    ],
)
def test_a_record_is_as_long_as_it_may_be(text: bytes, tags: list[str], tmp_path: Path) -> None:
    written(tmp_path / "0.log", text + b"\n")
    assert [line.split(" ", 3)[2] for line in (tmp_path / "0.log").read_text().splitlines()] == tags


def test_a_long_line_does_not_wait_for_its_end(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path / "0.log"), 1 << 20, 2)
    writer.write(b"stdout", b"x" * (LINE_BYTES - 1), AT_NS)
    assert (tmp_path / "0.log").read_bytes() == b""
    writer.write(b"stdout", b"x" * (LINE_BYTES + 2), AT_NS)
    records = (tmp_path / "0.log").read_text().splitlines()
    assert [(line.split(" ", 3)[2], len(line.split(" ", 3)[3])) for line in records] == [("P", LINE_BYTES)] * 2
    writer.write(b"stdout", b"end\n", AT_NS)
    assert (tmp_path / "0.log").read_text().splitlines()[-1] == f"{HEAD} F xend"


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


@settings(max_examples=50, deadline=None)
@given(
    data=st.lists(st.binary(max_size=40), max_size=12),
    most=st.integers(min_value=1, max_value=300),
)
def test_records_of_long_lines_make_up_what_was_written(
    data: list[bytes], most: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("log")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_writer, "LINE_BYTES", 8)
        written(folder / "0.log", *data, most=most, files=2_000)
    files = sorted(folder.iterdir(), key=lambda file: -int(file.suffix[1:]) if file.suffix != ".log" else 1)
    records = [line.split(b" ", 3)[2:] for file in files for line in file.read_bytes().split(b"\n") if line]
    assert all(len(text) <= 8 for _, text in records)
    assert all(file.stat().st_size <= most or file.read_bytes().count(b"\n") == 1 for file in files)
    whole = b"".join(text + (b"\n" if tag == b"F" else b"") for tag, text in records)
    ended = b"".join(data)
    assert whole.removesuffix(b"\n") == ended.removesuffix(b"\n")
