"""What `kubectl logs` shows of a log."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from situate.agent import log_reader
from situate.agent.log_reader import LogQuery, log_query, read_log
from situate.agent.log_writer import LogWriter
from situate.server.http.ports import LogOptions

SECOND = 1_000_000_000


def log_of(path: Path, lines: int, most: int = 1 << 20) -> LogWriter:
    writer = LogWriter(str(path), most, 50)
    for number in range(lines):
        writer.write(b"stderr" if number % 2 else b"stdout", b"line %d\n" % number, (1_700_000_000 + number) * SECOND)
    return writer


async def shown(path: Path, wanted: LogQuery) -> str:
    return b"".join([piece async for piece in read_log(path, wanted, lambda: True)]).decode()


@pytest.mark.parametrize("most", [1 << 20, 200], ids=["in one file", "in many files"])
@pytest.mark.parametrize(
    "options, expected",
    [
        pytest.param(LogOptions(), range(10), id="all of it"),
        pytest.param(LogOptions(tail_lines=3), [7, 8, 9], id="the last lines"),
        pytest.param(LogOptions(tail_lines=0), [], id="no lines"),
        pytest.param(LogOptions(tail_lines=50), range(10), id="more lines than there are"),
        pytest.param(LogOptions(since_s=2), [8, 9], id="since some seconds ago"),
        pytest.param(LogOptions(since_time="2023-11-14T22:13:27Z"), [7, 8, 9], id="since a time"),
        pytest.param(LogOptions(since_s=2**63 - 1), range(10), id="since longer than there was time"),
        pytest.param(LogOptions(since_time="0001-01-01T00:00:00+14:00"), range(10), id="since before the first year"),
        pytest.param(LogOptions(since_time="0999-01-01T00:00:00Z"), range(10), id="since a year of three digits"),
        pytest.param(LogOptions(since_time="9999-12-31T23:59:59-14:00"), [], id="since after the last year"),
        pytest.param(LogOptions(tail_lines=2**63 - 1, limit_bytes=2**63 - 1), range(10), id="all that a number holds"),
        pytest.param(LogOptions(stream="Stderr"), [1, 3, 5, 7, 9], id="one stream"),
    ],
)
def test_what_is_shown(options: LogOptions, expected: list[int], most: int, tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    log_of(path, 10, most)
    text = asyncio.run(shown(path, log_query(options, 1_700_000_010)))
    assert text == "".join(f"line {number}\n" for number in expected)


def test_no_more_bytes_than_asked_for(tmp_path: Path) -> None:
    log_of(tmp_path / "0.log", 10)
    assert asyncio.run(shown(tmp_path / "0.log", LogQuery(limit=10))) == "line 0\nlin"


def test_with_its_times(tmp_path: Path) -> None:
    log_of(tmp_path / "0.log", 1)
    text = asyncio.run(shown(tmp_path / "0.log", LogQuery(timestamps=True)))
    assert text == "2023-11-14T22:13:20.000000000Z line 0\n"


def test_a_line_in_parts_is_shown_as_one(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path / "0.log"), 1 << 20, 2)
    writer.write(b"stdout", b"x" * 40_000 + b"\n", SECOND)
    assert asyncio.run(shown(tmp_path / "0.log", LogQuery())) == "x" * 40_000 + "\n"


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert asyncio.run(shown(tmp_path / "0.log", LogQuery())) == ""


def test_who_follows_sees_what_comes_in_every_file_until_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("situate.agent.log_reader.FOLLOW_S", 0.01)
    path, over, got = tmp_path / "0.log", False, b""

    async def follow() -> None:
        nonlocal got
        async for piece in read_log(path, LogQuery(follow=True), lambda: over):
            got += piece

    async def told() -> None:
        nonlocal over
        writer = log_of(path, 3, 400)
        following = asyncio.create_task(follow())
        for number in range(3, 40):
            await asyncio.sleep(0.015)
            writer.write(b"stdout", b"line %d\n" % number, SECOND)
        over = True
        async with asyncio.timeout(10):
            await following

    asyncio.run(told())
    assert got.decode() == "".join(f"line {number}\n" for number in range(40))


@pytest.mark.parametrize("limit", [0, 1, 6, 7, 8, 14, 69, 70, 71])
def test_the_limit_counts_every_byte_also_in_many_pieces(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reader, "PIECE", 100)
    log_of(tmp_path / "0.log", 10)
    whole = "".join(f"line {number}\n" for number in range(10))
    assert asyncio.run(shown(tmp_path / "0.log", LogQuery(limit=limit))) == whole[:limit]


@pytest.mark.parametrize("most", [1 << 20, 200], ids=["in one file", "in many files"])
@pytest.mark.parametrize("piece", [47, 48, 100])
def test_the_last_lines_however_long_the_pieces_are(
    piece: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record has 47 bytes: some pieces end where one ends, and others do not."""
    log_of(tmp_path / "0.log", 9, most)
    assert len((tmp_path / "0.log").read_bytes().splitlines(keepends=True)[0]) == 47
    monkeypatch.setattr(log_reader, "PIECE", piece)
    for tail in range(12):
        text = asyncio.run(shown(tmp_path / "0.log", LogQuery(tail=tail)))
        assert text == "".join(f"line {number}\n" for number in range(max(0, 9 - tail), 9))


def test_a_line_of_the_very_time_is_shown_and_times_have_milliseconds(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path / "0.log"), 1 << 20, 2)
    for nanos in (499_999_999, 500_000_000, 500_000_001):
        writer.write(b"stdout", b"%d\n" % nanos, 1_700_000_000 * SECOND + nanos)
    query = log_query(LogOptions(since_time="2023-11-14T22:13:20.5Z"), 0)
    assert query.since == b"2023-11-14T22:13:20.500000"
    assert asyncio.run(shown(tmp_path / "0.log", query)) == "500000000\n500000001\n"
    assert log_query(LogOptions(since_s=1), 1_700_000_001.25).since == b"2023-11-14T22:13:20.250000"


@pytest.mark.parametrize(
    "options, since",
    [
        (LogOptions(), b""),
        (LogOptions(since_time="1969-12-31T23:59:59Z"), b"1970-01-01T00:00:00.000000"),
        (LogOptions(since_s=2_000_000_000), b"1970-01-01T00:00:00.000000"),
        (LogOptions(since_s=-(10**15)), b"9999-12-31T23:59:59.999000"),
    ],
)
def test_a_time_is_one_that_a_log_can_have(options: LogOptions, since: bytes) -> None:
    assert log_query(options, 1_700_000_000).since == since


def test_what_is_no_record_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_bytes(b"half a line\n2023-11-14T22:13:20.0Z stdout F kept\n\n2023 stdout F\nno end")
    assert asyncio.run(shown(tmp_path / "0.log", LogQuery())) == "kept\n"


# -- follow ----------------------------------------------------------------------------------------------------------


def followed(
    path: Path, monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], object], query: LogQuery | None = None
) -> str:
    """What one who follows sees. A step happens each time that it waits for more, and then the container is over."""
    waiting, done = list(steps), False

    async def sleep(_seconds: float) -> None:
        nonlocal done
        if waiting:
            waiting.pop(0)()
        else:
            done = True

    monkeypatch.setattr(asyncio, "sleep", sleep)

    async def follow() -> bytes:
        wanted = query or LogQuery(follow=True)
        async with asyncio.timeout(10):
            return b"".join([piece async for piece in read_log(path, wanted, lambda: done)])

    return asyncio.run(follow()).decode()


def test_who_follows_sees_the_rest_of_a_file_that_was_rotated_and_then_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "0.log"
    writer = log_of(path, 2, most=150)  # a file has room for three lines

    def write(*numbers: int) -> Callable[[], None]:
        return lambda: writer.write(b"stdout", b"".join(b"line %d\n" % number for number in numbers), SECOND)

    rotated: list[Path] = []

    def look() -> None:
        opened = [one.readlink() for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
        rotated.extend(one for one in opened if one.name.startswith("0.log."))

    text = followed(path, monkeypatch, write(2), write(3), write(4, 5, 6, 7, 8, 9, 10), look, write(11))
    assert text == "".join(f"line {number}\n" for number in range(12))
    assert rotated == [], "it closes what it has read"


def test_who_follows_what_is_over_sees_all_files_though_the_newest_was_just_moved(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    log_of(path, 1)

    def rotate_twice() -> bool:
        if path.exists():
            path.rename(tmp_path / "0.log.2")
            log_of(tmp_path / "another", 2)
            (tmp_path / "another").rename(tmp_path / "0.log.1")
        return True

    async def follow() -> bytes:
        return b"".join([piece async for piece in read_log(path, LogQuery(follow=True), rotate_twice)])

    assert asyncio.run(follow()).decode() == "line 0\nline 0\nline 1\n"


def test_who_follows_from_the_end_sees_only_what_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "0.log"
    writer = log_of(path, 5)
    query = LogQuery(follow=True, tail=0)
    text = followed(path, monkeypatch, lambda: writer.write(b"stdout", b"new\n", SECOND), query=query)
    assert text == "new\n"


def test_who_follows_a_log_of_one_file_begins_again_when_it_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "0.log"
    writer = LogWriter(str(path), 100, 1)
    writer.write(b"stdout", b"1\n2\n", SECOND)
    text = followed(path, monkeypatch, lambda: writer.write(b"stdout", b"3\n", SECOND))
    assert text == "1\n2\n3\n"


def test_half_a_record_is_shown_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"2023 stdout F be")

    def finish() -> None:
        with path.open("ab") as file:
            file.write(b"gun\n")

    assert followed(path, monkeypatch, finish) == "begun\n"


def test_who_follows_what_is_over_sees_it_all_and_waits_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_of(tmp_path / "0.log", 3)

    async def never(_seconds: float) -> None:
        raise AssertionError("it waits")

    monkeypatch.setattr(asyncio, "sleep", never)
    text = asyncio.run(shown(tmp_path / "0.log", LogQuery(follow=True)))
    assert text == "line 0\nline 1\nline 2\n"


@pytest.mark.parametrize("tail", [None, 0, 2, 5])
def test_no_file_stays_open(tail: int | None, tmp_path: Path) -> None:
    log_of(tmp_path / "0.log", 10, 200)
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    for _ in range(3):
        asyncio.run(shown(tmp_path / "0.log", LogQuery(tail=tail)))
    assert len(os.listdir("/proc/self/fd")) == len(before)  # noqa: PTH208
