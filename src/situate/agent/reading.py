"""Reading what `lines.LogWriter` wrote, as `kubectl logs` asks for it: from where, how much, and what comes next.

Files are read in another thread, piece by piece: a log may be long, and others wait for this loop.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from situate.agent.lines import rotated
from situate.server.http.contracts import LogOptions

__all__ = ["Wanted", "pieces", "wanted_of"]

PIECE: Final = 256 << 10
FOLLOW_S: Final = 0.2
"""How often to look for more."""
MOST_FILES: Final = 100


@dataclass(frozen=True, slots=True)
class Wanted:
    since: bytes = b""
    """A time as the log has it: what is older is left out."""
    streams: tuple[bytes, ...] = (b"stdout", b"stderr")
    timestamps: bool = False
    tail: int | None = None
    limit: int | None = None
    follow: bool = False


def wanted_of(options: LogOptions, now: float) -> Wanted:
    since = b""
    if options.since_s is not None:
        since = _time(datetime.fromtimestamp(now - options.since_s, UTC))
    elif options.since_time:
        since = _time(datetime.fromisoformat(options.since_time).astimezone(UTC))
    streams = {"Stdout": (b"stdout",), "Stderr": (b"stderr",)}.get(options.stream, (b"stdout", b"stderr"))
    return Wanted(since, streams, options.timestamps, options.tail_lines, options.limit_bytes, options.follow)


def _time(at: datetime) -> bytes:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f").encode()


async def pieces(path: Path, wanted: Wanted, over: Callable[[], bool]) -> AsyncIterator[bytes]:
    """The log, and if it is followed what comes, until `over` and all is told."""
    left = wanted.limit
    async for data in _raw(path, wanted, over):
        shown = b"".join(_shown(data, wanted))
        if left is not None:
            shown = shown[:left]
            left -= len(shown)
        if shown:
            yield shown
        if left == 0:
            return


def _shown(data: bytes, wanted: Wanted) -> Iterator[bytes]:
    for line in data.split(b"\n"):
        parts = line.split(b" ", 3)
        if len(parts) < 4 or parts[1] not in wanted.streams or (wanted.since and parts[0] < wanted.since):
            continue
        if wanted.timestamps:
            yield parts[0] + b" "
        yield parts[3]
        if parts[2] == b"F":
            yield b"\n"


async def _raw(path: Path, wanted: Wanted, over: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Whole lines of the files, oldest first. Whoever follows goes on with the next file when one is full."""
    files = await asyncio.to_thread(_files, path, wanted.tail)
    for file, begin in files[:-1]:
        async for data in _whole(file, begin):
            yield data
    if not files:
        return
    file, at = files[-1]
    while True:
        was_over = over()
        number = await asyncio.to_thread(_inode, path)
        async for data in _whole(file, at):
            at += len(data)
            yield data
        if not wanted.follow:
            return
        if await asyncio.to_thread(_inode, path) != number or _has_moved(file, at):
            async for data in _whole(_find(path, number) or file, at):  # what came between reading and renaming
                yield data
            at = 0
            continue
        if was_over:
            return
        await asyncio.sleep(FOLLOW_S)


def _has_moved(path: Path, at: int) -> bool:
    with suppress(OSError):
        return path.stat().st_size < at
    return False


def _inode(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_ino
    return 0


def _find(path: Path, inode: int) -> Path | None:
    found = [Path(rotated(str(path), number)) for number in range(MOST_FILES)]
    return next((one for one in found if _inode(one) == inode), None)


def _files(path: Path, tail: int | None) -> list[tuple[Path, int]]:
    """All files, oldest first, and where in each to begin, so that so many lines are there."""
    found: list[tuple[Path, int]] = []
    left = tail
    for number in range(MOST_FILES):
        file = Path(rotated(str(path), number))
        if not file.exists():
            break
        begin = 0
        if left is not None:
            begin, count = _tail(file, left)
            left -= count
        found.append((file, begin))
        if left is not None and left <= 0:
            break
    return found[::-1]


def _tail(file: Path, lines: int) -> tuple[int, int]:
    """Where the last lines of a file begin, and how many there are of them."""
    with file.open("rb") as reading:
        at = reading.seek(0, os.SEEK_END)
        if lines <= 0:
            return at, 0
        count = -1  # the last line ends with one, too
        while at > 0:
            size = min(PIECE, at)
            at -= size
            reading.seek(at)
            data = reading.read(size)
            end = len(data)
            while (end := data.rfind(b"\n", 0, end)) >= 0:
                count += 1
                if count == lines:
                    return at + end + 1, lines
    return 0, count + 1


async def _whole(file: Path, begin: int) -> AsyncIterator[bytes]:
    """Of a file from there on, whole lines."""
    while True:
        data = await asyncio.to_thread(_read, file, begin)
        end = data.rfind(b"\n") + 1
        if not end:
            return
        yield data[:end]
        begin += end


def _read(file: Path, begin: int) -> bytes:
    try:
        with file.open("rb") as reading:
            reading.seek(begin)
            return reading.read(PIECE)
    except OSError:
        return b""
