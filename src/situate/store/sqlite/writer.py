"""The writer thread: group commit. It commits all transactions submitted meanwhile as one, then checkpoints.

While one commit waits for the disk, the next one collects. A commit is acknowledged after fsync, on the event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeAlias

import apsw
from msgspec import Struct

from situate.store.entries import Batch
from situate.store.errors import FailedError, StoreError
from situate.store.sqlite.log import TransactionLog
from situate.store.transactions import Transaction

MAX_BATCH: Final = 256


class Commit(Struct, gc=False):
    """One transaction, to commit together with others."""

    transaction: Transaction
    answer: asyncio.Future[Any]


class Task(Struct, gc=False):
    """Any other write, on its own."""

    run: Callable[[TransactionLog], tuple[Any, list[Batch]]]
    answer: asyncio.Future[Any]


Job: TypeAlias = Commit | Task
JobResults: TypeAlias = list[tuple[asyncio.Future[Any], Any]]
"""Futures, each with a value or an exception."""
Deliver: TypeAlias = Callable[[JobResults, list[Batch], FailedError | None], None]


def _is_commit(job: Job) -> bool:
    return isinstance(job, Commit)


class Writer:
    """Owns the log. Calls `deliver` on the event loop, in the order of commits."""

    def __init__(self, log: TransactionLog, loop: asyncio.AbstractEventLoop, deliver: Deliver) -> None:
        self._log = log
        self._loop = loop
        self._deliver = deliver
        self._jobs: SimpleQueue[list[Job] | None] = SimpleQueue()
        self._submitted: list[Job] = []
        self._thread = threading.Thread(target=self._run, name="store writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Call on the event loop. Jobs of one iteration of the loop are passed on together, since waking the thread
        takes as long as a commit."""
        if not self._submitted:
            self._loop.call_soon(self.flush)
        self._submitted.append(job)

    def flush(self) -> None:
        """Pass submitted jobs to the thread."""
        if self._submitted:
            self._jobs.put(self._submitted)
            self._submitted = []

    def stop(self) -> None:
        """Finish all jobs passed on, and close the log. Blocks."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        """Never retry after an I/O error: fsync may succeed the second time, though the data is lost."""
        failed: FailedError | None = None
        for jobs in self._job_groups():
            if failed:
                answers: JobResults = [(job.answer, failed) for job in jobs]
                batches: list[Batch] = []
            else:
                answers, batches, failed = self._perform(jobs)
            self._loop.call_soon_threadsafe(self._deliver, answers, batches, failed)
            if not failed:
                failed = self._checkpoint()
        self._log.close(in_order=not failed)

    def _job_groups(self) -> Iterator[list[Job]]:
        """Jobs in groups, up to a limit: transactions together, any other job alone."""
        while (jobs := self._jobs.get()) is not None:
            ended = False
            while len(jobs) < MAX_BATCH:
                try:
                    more = self._jobs.get_nowait()
                except Empty:
                    break
                if more is None:
                    ended = True
                    break
                jobs += more
            for are_commits, group in groupby(jobs, key=_is_commit):
                together = list(group)
                size = MAX_BATCH if are_commits else 1
                yield from (together[start : start + size] for start in range(0, len(together), size))
            if ended:
                return

    def _perform(self, jobs: list[Job]) -> tuple[JobResults, list[Batch], FailedError | None]:
        try:
            if isinstance(first := jobs[0], Task):
                value, batches = first.run(self._log)
                return [(first.answer, value)], batches, None
            values, batches = self._log.commit([job.transaction for job in jobs if isinstance(job, Commit)])
            return [(job.answer, value) for job, value in zip(jobs, values, strict=True)], batches, None
        except FailedError as error:
            return [(job.answer, error) for job in jobs], [], error
        except StoreError as error:
            return [(job.answer, error) for job in jobs], [], None
        except apsw.Error as error:
            failed = FailedError(f"the disk failed; the store has stopped: {error}")
        except Exception as error:  # noqa: BLE001 - a bug of ours: fail, rather than let every caller wait for ever
            failed = FailedError(f"the store has stopped: {error!r}")
        return [(job.answer, failed) for job in jobs], [], failed

    def _checkpoint(self) -> FailedError | None:
        try:
            self._log.checkpoint()
        except apsw.Error as error:
            failed = FailedError(f"the disk failed at a checkpoint; the store has stopped: {error}")
            self._loop.call_soon_threadsafe(self._deliver, [], [], failed)
            return failed
        return None
