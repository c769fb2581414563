"""Reads logs of `log_writer` for `kubectl logs`: since, tail, limit and follow.

Files are read in another thread, piece by piece, so that long logs do not block the event loop.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from situate.agent.log_writer import rotated
from situate.agent.runtime import Runtime
from situate.core.model.refs import Millis
from situate.core.model.timestamp import epoch_ms
from situate.server.errors import bad_request
from situate.server.http.ports import LogOptions

PIECE: Final = 256 << 10
FOLLOW_S: Final = 0.2
"""The poll interval of a follow."""
_LAST: Final = 253_402_300_799_999
"""The end of the year 9999, in milliseconds."""
MOST_FILES: Final = 100
TRIES: Final = 100
"""How often to retry if the log is rotated while it is opened."""


@dataclass(frozen=True, slots=True)
class LogQuery:
    since: bytes = b""
    """A timestamp as in the log; older lines are left out."""
    streams: tuple[bytes, ...] = (b"stdout", b"stderr")
    timestamps: bool = False
    tail: int | None = None
    limit: int | None = None
    follow: bool = False


def open_log(runtime: Runtime, uid: str, container: str, pod: str, options: LogOptions) -> AsyncIterator[bytes]:
    """The log of the container's last run, or of the previous one. Raises StatusError if there is none."""
    runs = runtime.runs(uid).get(container, ())
    if options.previous:
        if len(runs) < 2:
            raise bad_request(f'previous terminated container "{container}" in pod "{pod}" not found')
        run = runs[-2]
    elif runs:
        run = runs[-1]
    else:
        raise bad_request(f'container "{container}" in pod "{pod}" is waiting to start: ContainerCreating')
    attempt = run.attempt

    def over() -> bool:
        return not any(one.attempt == attempt and not one.is_over for one in runtime.runs(uid).get(container, ()))

    return read_log(runtime.log(uid, container, attempt), log_query(options, time.time()), over)


def log_query(options: LogOptions, now: float) -> LogQuery:
    since = b""
    if options.since_s is not None:
        since = _time(int((now - options.since_s) * 1000))
    elif options.since_time:
        since = _time(epoch_ms(options.since_time))
    streams = {"Stdout": (b"stdout",), "Stderr": (b"stderr",)}.get(options.stream, (b"stdout", b"stderr"))
    return LogQuery(since, streams, options.timestamps, options.tail_lines, options.limit_bytes, options.follow)


def _time(at: Millis) -> bytes:
    """The timestamp that begins a log line. Times before 1970 become 1970, and those after 9999 the end of 9999."""
    at = max(0, min(at, _LAST))
    return f"{datetime.fromtimestamp(at // 1000, UTC):%Y-%m-%dT%H:%M:%S}.{at % 1000:03}000".encode()


async def read_log(path: Path, query: LogQuery, over: Callable[[], bool]) -> AsyncIterator[bytes]:
    """The log; with `follow`, also what comes until `over` returns True."""
    left = query.limit
    async for data in _raw(path, query, over):
        shown = b"".join(_shown(data, query))
        if left is not None:
            shown = shown[:left]
            left -= len(shown)
        if shown:
            yield shown
        if left == 0:
            return


def _shown(data: bytes, query: LogQuery) -> Iterator[bytes]:
    for line in data.split(b"\n"):
        parts = line.split(b" ", 3)
        if len(parts) < 4 or parts[1] not in query.streams or (query.since and parts[0] < query.since):
            continue
        if query.timestamps:
            yield parts[0] + b" "
        yield parts[3]
        if parts[2] == b"F":
            yield b"\n"


async def _raw(path: Path, query: LogQuery, over: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Whole lines of the files, oldest first. A follow continues with the next file after a rotation.

    Files stay open: a rotation renames a file, but an open file stays the same.
    """
    files = await asyncio.to_thread(_opened, path, query.tail)
    try:
        for file in files[:-1]:
            async for data in _rest_of(file):
                yield data
        while files:
            was_over = over()
            async for data in _rest_of(files[-1]):
                yield data
            if not query.follow:
                return
            newer = await asyncio.to_thread(_newer, path, files[-1])
            if newer is not None:
                async for data in _rest_of(files[-1]):  # what was written before the rotation
                    yield data
                files.pop().close()
                files.append(newer)
            elif was_over:
                return
            else:
                await asyncio.sleep(FOLLOW_S)
    finally:
        for file in files:
            file.close()


async def _rest_of(file: BinaryIO) -> AsyncIterator[bytes]:
    """Whole lines from the current position, which stays at the beginning of a line."""
    while data := await asyncio.to_thread(_read, file):
        yield data


def _read(file: BinaryIO) -> bytes:
    at = file.tell()
    if os.fstat(file.fileno()).st_size < at:
        at = file.seek(0)  # truncated by a rotation
    data = file.read(PIECE)
    end = data.rfind(b"\n") + 1
    file.seek(at + end)
    return data[:end]


def _newer(path: Path, file: BinaryIO) -> BinaryIO | None:
    """The next newer file; None: this is the newest."""
    own = os.fstat(file.fileno()).st_ino
    for _ in range(TRIES):
        inodes = _inodes(path)
        number = inodes.index(own) if own in inodes else len(inodes)
        if not number or not inodes[number - 1]:
            return None
        found = _open(path, number - 1)
        if found is not None and os.fstat(found.fileno()).st_ino == inodes[number - 1]:
            return found
        if found is not None:
            found.close()  # rotated meanwhile
    return None


def _inodes(path: Path) -> list[int]:
    """The inodes of all files, newest first; 0 if a rotation has just moved the newest."""
    found: list[int] = []
    for number in range(MOST_FILES):
        try:
            found.append(Path(rotated(str(path), number)).stat().st_ino)
        except OSError:
            if number:
                break
            found.append(0)
    return found


def _open(path: Path, number: int) -> BinaryIO | None:
    with suppress(OSError):
        return Path(rotated(str(path), number)).open("rb")
    return None


def _opened(path: Path, tail: int | None) -> list[BinaryIO]:
    """All files, oldest first, positioned so that `tail` lines remain."""
    found: list[BinaryIO] = []
    for _ in range(TRIES):
        before = _inodes(path)
        found = [one for number in range(len(before)) if (one := _open(path, number)) is not None]
        if [os.fstat(one.fileno()).st_ino for one in found] == [one for one in _inodes(path) if one]:
            break
        for one in found:
            one.close()
        found = []
    left, kept = tail, []
    for file in found:
        if left is not None:
            left -= _seek_tail(file, left)
        kept.append(file)
        if left is not None and left <= 0:
            break
    for file in found[len(kept) :]:
        file.close()
    return kept[::-1]


def _seek_tail(file: BinaryIO, lines: int) -> int:
    """Seek to the last `lines` lines; return how many there are."""
    at = file.seek(0, os.SEEK_END)
    if lines <= 0:
        return 0
    count = -1  # the last line ends with a newline as well
    while at > 0:
        size = min(PIECE, at)
        at -= size
        file.seek(at)
        data = file.read(size)
        end = len(data)
        while (end := data.rfind(b"\n", 0, end)) >= 0:
            count += 1
            if count == lines:
                file.seek(at + end + 1)
                return lines
    file.seek(0)
    return count + 1
