"""What `kubectl logs` shows of a log."""

import asyncio
from pathlib import Path

import pytest

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
