"""Reads a journal: its steps in order, each with its changes and, if they were written, its effects.

A last record that was cut off, as by a crash while it was written, is reported and left out. Any other damage is an
InputError: the steps after it would not follow from those before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from situate.core.changes import Change, Millis
from situate.core.effects import Effect
from situate.loop.journal import SUFFIX, segment_name
from situate.wire.errors import InputError
from situate.wire.journal import JournalHeader, JournalRecord, StepChanges, StepEffects, decode_record

RECORD_BYTES: Final = 1 << 30
"""The longest record that is read. A first step may have a whole cluster in it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a history."""

    number: int
    now: Millis
    changes: tuple[Change, ...]
    decided: StepEffects | None
    """None: the run ended before it was written."""

    @property
    def effects(self) -> tuple[Effect, ...] | None:
        return None if self.decided is None else self.decided.effects


class History:
    """A journal's header at once, and its steps one by one. Iterate over it once."""

    def __init__(self, path: Path) -> None:
        """`path` is a journal's folder, or its first file. Raises InputError or OSError."""
        self._files = _files(path)
        self.cut_off = ""
        """Where the last record was cut off; empty: it was not, or has not been reached."""
        self.header = self._header(self._files[0], 1)
        if self.header.first_step != 1:
            raise InputError("does not begin with step 1: the files before it are missing", file=str(self._files[0]))

    def __iter__(self) -> Iterator[Step]:
        """The steps. Raises InputError where they do not follow from one another."""
        open_step: StepChanges | None = None
        expected = 1
        for file, number, record in self._records():
            if isinstance(record, StepChanges) and record.step == expected:
                if open_step is not None:
                    yield Step(open_step.step, open_step.now, open_step.changes, None)
                open_step, expected = record, expected + 1
            elif isinstance(record, StepEffects) and open_step is not None and record.step == open_step.step:
                yield Step(open_step.step, open_step.now, open_step.changes, record)
                open_step = None
            else:
                problem = f"is not what follows on step {expected - 1}"
                raise InputError(problem, file=str(file), subject=f"record {number}")
        if open_step is not None:
            yield Step(open_step.step, open_step.now, open_step.changes, None)

    def _header(self, file: Path, segment: int, line: bytes | None = None) -> JournalHeader:
        if line is None:
            with file.open("rb") as opened:
                line = opened.readline(RECORD_BYTES)
        if not line:
            raise InputError("is empty", file=str(file))
        record = decode_record(line, str(file), 1)
        if not isinstance(record, JournalHeader):
            raise InputError("does not begin as a journal does", file=str(file))
        if record.segment != segment:
            problem = f"is number {record.segment} of its journal, where number {segment} belongs"
            raise InputError(problem, file=str(file))
        return record

    def _records(self) -> Iterator[tuple[Path, int, JournalRecord]]:
        """All records but the headers, which are checked here."""
        for segment, file in enumerate(self._files, 1):
            last = segment == len(self._files)
            for number, line in _lines(file):
                if last and not line.endswith(b"\n") and len(line) < RECORD_BYTES:
                    self.cut_off = f"{file}: record {number}: was cut off after {len(line)} bytes, and is left out"
                    return
                if number > 1:
                    yield file, number, decode_record(line, str(file), number)
                elif replace(self._header(file, segment, line), segment=1, first_step=1) != self.header:
                    raise InputError("is of another run than the files before it", file=str(file))


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    with file.open("rb") as opened:
        number = 0
        while line := opened.readline(RECORD_BYTES):
            number += 1
            yield number, line


def _files(path: Path) -> list[Path]:
    """The files of a journal, in order; or a single file that has no number."""
    if not path.is_dir():
        return [path] if path.name != segment_name(1) else _files(path.parent)
    count = sum(1 for file in path.iterdir() if file.name.endswith(SUFFIX))
    files = [path / segment_name(number) for number in range(1, count + 1)]
    if not files:
        raise InputError(f"no {SUFFIX} files in this folder", file=str(path))
    for file in files:
        if not file.exists():
            raise InputError("is missing from its journal", file=str(file))
    return files
