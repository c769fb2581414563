"""Writes a container's log in the CRI format, rotated by size.

    2026-11-15T14:16:22.123456789Z stdout F the text of a line
    2026-11-15T14:16:22.123456789Z stderr P the beginning of a line that is too long for one record

`0.log` is the current file, `0.log.1` the one before it, and so on. Imports little, because every shim loads this.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Final

LINE_BYTES: Final = 16 << 10
"""A longer line is written in several records."""
FULL, PART = b"F", b"P"
NANOS: Final = 1_000_000_000


def rotated(path: str, number: int) -> str:
    """The file that was current `number` rotations ago; 0: the current one."""
    return f"{path}.{number}" if number else path


class LogWriter:
    """Appends the output of a process. If the disk is full, lines are lost, and nothing else happens."""

    def __init__(self, path: str, most_bytes: int, files: int) -> None:
        self.lost_bytes = 0
        self._path = path
        self._most_bytes = most_bytes
        self._files = files
        self._begun: dict[bytes, bytes] = {}
        self._open()

    def write(self, stream: bytes, data: bytes, at_ns: int) -> None:
        """Write whole lines now, the rest when the line ends or gets too long."""
        body = self._begun.pop(stream, b"") + data
        end = body.rfind(b"\n") + 1
        whole, rest = body[:end], body[end:]
        head = _time(at_ns) + b" " + stream + b" "
        kept = [_lines(head, whole)] if whole else []
        while len(rest) >= LINE_BYTES:
            kept.append(_line(head, PART, rest[:LINE_BYTES]))
            rest = rest[LINE_BYTES:]
        if rest:
            self._begun[stream] = rest
        self._keep(b"".join(kept))

    def close(self, at_ns: int) -> None:
        """Write unfinished lines as they are."""
        for stream, rest in self._begun.items():
            self._keep(_line(_time(at_ns) + b" " + stream + b" ", FULL, rest))
        self._close()

    def _keep(self, lines: bytes) -> None:
        """One write per file; a line is never in two files."""
        while self._size + len(lines) > self._most_bytes:
            fit = lines.rfind(b"\n", 0, max(0, self._most_bytes - self._size)) + 1
            if not fit and not self._size:
                fit = lines.find(b"\n") + 1  # longer than a file may be: it gets one of its own
            self._append(lines[:fit])
            lines = lines[fit:]
            if not lines:
                return
            self._rotate()
        self._append(lines)

    def _append(self, data: bytes) -> None:
        if not data:
            return
        self._size += len(data)
        try:
            if os.write(self._file, data) < len(data):
                self.lost_bytes += len(data)
        except OSError:
            self.lost_bytes += len(data)

    def _rotate(self) -> None:
        self._close()
        for number in range(self._files - 1, 0, -1):
            with suppress(OSError):  # there are fewer files
                os.replace(rotated(self._path, number - 1), rotated(self._path, number))  # noqa: PTH105
        if self._files == 1:
            with suppress(OSError):
                os.truncate(self._path, 0)
        self._open()

    def _close(self) -> None:
        with suppress(OSError):  # it could not be opened
            os.close(self._file)

    def _open(self) -> None:
        try:
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._size = os.fstat(self._file).st_size
        except OSError:
            self._file, self._size = -1, 0


def _lines(head: bytes, whole: bytes) -> bytes:
    """Lines with their prefixes. Most are short: one replace handles all of them, because logs come by the gigabyte."""
    if _are_short(whole):
        return head + b"F " + whole[:-1].replace(b"\n", b"\n" + head + b"F ") + b"\n"
    return b"".join(part for line in whole[:-1].split(b"\n") for part in _parts(head, line))


def _are_short(whole: bytes) -> bool:
    at = 0
    while at < len(whole):
        at = whole.rfind(b"\n", at, at + LINE_BYTES + 1) + 1
        if not at:
            return False
    return True


def _parts(head: bytes, line: bytes) -> list[bytes]:
    if len(line) <= LINE_BYTES:
        return [_line(head, FULL, line)]
    cut = [line[at : at + LINE_BYTES] for at in range(0, len(line), LINE_BYTES)]
    return [*(_line(head, PART, one) for one in cut[:-1]), _line(head, FULL, cut[-1])]


def _line(head: bytes, tag: bytes, text: bytes) -> bytes:
    return b"%b%b %b\n" % (head, tag, text)


def _time(ns: int) -> bytes:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // NANOS))
    return b"%b.%09dZ" % (seconds.encode(), ns % NANOS)
