"""The journal: the time, changes and effects of every step, on disk as they happen.

Changes are written before the step, and effects before they are carried out, so the journal has what led to any
failure. Every record goes to the operating system at once: a crash of this process loses nothing. The journal is synced
to disk when a file is full, on closing, and otherwise once a second by the caller's clock: a crash of the machine loses
at most that second. The journal explains decisions; the cluster does not depend on it, and nothing waits for it.

A journal is a folder of files, numbered from 1, each up to SEGMENT_BYTES. A history is read from its beginning, so no
file may be removed. One folder is one run of one engine. When the journal reaches its limit, or the disk refuses, it
stops and says why; the engine goes on without it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum, unique
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final

from msgspec.structs import replace

from situate.core.changes import Change, Millis
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.effects import Effect
from situate.core.engine.engine import BATCH
from situate.core.queue.queue import UNSCHEDULABLE_LIMIT_MS
from situate.wire.journal import JournalHeader, JournalRecord, StepChanges, StepEffects, digest_of, encode_record

SEGMENT_BYTES: Final = 64 << 20
"""When a file has this size, the next begins."""
LIMIT_BYTES: Final = 16 << 30
"""The journal stops before all files together exceed this."""
SYNC_EVERY_MS: Final = 1_000
SUFFIX: Final = ".journal"


@unique
class Keep(Enum):
    """What to keep of a step's effects. With a digest, a replay can tell that they differ, but not how."""

    EFFECTS = "effects"
    DIGEST = "digest"


def segment_name(number: int) -> str:
    return f"{number:06}{SUFFIX}"


class Journal:
    """Writes the history of one run into a folder without one. Raises OSError if it cannot begin."""

    def __init__(
        self,
        folder: Path,
        config: KubeSchedulerConfiguration,
        *,
        batch: int = BATCH,
        unschedulable_limit_ms: Millis = UNSCHEDULABLE_LIMIT_MS,
        keep: Keep = Keep.EFFECTS,
        segment_bytes: int = SEGMENT_BYTES,
        limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        self.folder = folder
        self.steps = 0
        self.stopped = ""
        """Why the journal has stopped; empty: it has not."""
        self._header = JournalHeader(config=config, batch=batch, unschedulable_limit_ms=unschedulable_limit_ms)
        self._keep = keep
        self._segment_bytes = segment_bytes
        self._limit_bytes = limit_bytes
        self._segment = 0
        self._segment_size = self._size = 0
        self._synced_at: Millis | None = None
        self._file: BinaryIO | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self._next_segment()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def size(self) -> int:
        """The bytes of all files together."""
        return self._size

    # -- appending -----------------------------------------------------------------------------------------------

    def heard(self, now: Millis, changes: Sequence[Change]) -> None:
        """To be called before the step."""
        self.steps += 1
        self._try(lambda: self._append_step(now, changes))

    def decided(self, effects: Sequence[Effect]) -> None:
        """To be called after the step, before the effects are carried out."""
        self._try(lambda: self._append(self._decided(effects)))

    def close(self) -> None:
        """Sync, and write nothing any more."""
        self._try(self._close_segment)
        self._stop(self.stopped or "closed")

    def _decided(self, effects: Sequence[Effect]) -> StepEffects:
        if self._keep is Keep.DIGEST:
            return StepEffects(self.steps, None, digest_of(effects))
        return StepEffects(self.steps, tuple(effects))

    def _append_step(self, now: Millis, changes: Sequence[Change]) -> None:
        if self._segment_size >= self._segment_bytes:
            self._close_segment()
            self._next_segment()
        self._append(StepChanges(self.steps, now, tuple(changes)))
        if self._synced_at is None or not 0 <= now - self._synced_at < SYNC_EVERY_MS:
            self._synced_at = now
            self._sync()

    def _append(self, record: JournalRecord) -> None:
        if self._file is None:
            return
        line = encode_record(record)
        if self._size + len(line) > self._limit_bytes:
            self._stop(f"the journal's limit of {self._limit_bytes} bytes is reached")
            return
        self._segment_size += len(line)
        self._size += len(line)
        self._file.write(line)
        self._file.flush()

    # -- files ---------------------------------------------------------------------------------------------------

    def _next_segment(self) -> None:
        self._segment += 1
        path = self.folder / segment_name(self._segment)
        # Only the owner may read the names and labels of pods. A file that exists belongs to another run.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(descriptor, "wb")
        self._append(replace(self._header, segment=self._segment, first_step=max(1, self.steps)))
        self._segment_size = 0  # a header alone does not make a file full
        self._sync()
        _sync_folder(self.folder)

    def _close_segment(self) -> None:
        if self._file is not None:
            self._sync()
            self._file.close()

    def _sync(self) -> None:
        if self._file is not None:
            os.fsync(self._file.fileno())

    # -- stopping ------------------------------------------------------------------------------------------------

    def _try(self, write: Callable[[], None]) -> None:
        """An error of the disk stops the journal, not the scheduler."""
        if self.stopped:
            return
        try:
            write()
        except (OSError, ValueError, OverflowError) as error:
            self._stop(str(error))

    def _stop(self, why: str) -> None:
        self.stopped = why
        file, self._file = self._file, None
        if file is None or file.closed:
            return
        with suppress(OSError):  # the disk may be why it stops
            os.fsync(file.fileno())
        with suppress(OSError):
            file.close()


def _sync_folder(folder: Path) -> None:
    """So that a new file survives a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
