"""The writer thread: in which order it commits, what it answers, and that nothing is tried after a failure."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import apsw
import pytest

from situate.store.entries import Batch, Revision
from situate.store.errors import FailedError, StoreFullError
from situate.store.sqlite.writer import MAX_BATCH, Commit, JobResults, Task, Writer
from situate.store.transactions import Put, Transaction


def put(key: str) -> Transaction:
    return Transaction((), (Put(key, b""),))


class Log:
    """Commits what it gets, or raises what it is told. It may be held up before a commit."""

    def __init__(self) -> None:
        self.calls: list[object] = []
        self.raises: Exception | None = None
        self.checkpoint_raises: Exception | None = None
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def commit(self, transactions: Sequence[Transaction]) -> tuple[list[Any], list[Batch]]:
        self.may_go_on.wait(10)
        keys = [transaction.writes[0].key for transaction in transactions]
        self.calls.append(keys if len(keys) < 10 else len(keys))
        if self.raises is not None:
            raise self.raises
        return keys, [Batch(Revision(len(self.calls)))]

    def checkpoint(self) -> None:
        if self.checkpoint_raises is not None:
            raise self.checkpoint_raises

    def close(self, *, in_order: bool) -> None:
        self.calls.append(f"closed, in order: {in_order}")


class Desk:
    """Submits jobs, and has what was delivered."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.failures: list[FailedError] = []
        self.batches: list[Batch] = []
        self._loop = asyncio.get_running_loop()
        used: Any = log
        self.writer = Writer(used, self._loop, self._deliver)

    def _deliver(self, answers: JobResults, batches: list[Batch], failed: FailedError | None) -> None:
        self.batches += batches
        if failed is not None:
            self.failures.append(failed)
        for answer, value in answers:
            if isinstance(value, Exception):
                answer.set_exception(value)
            else:
                answer.set_result(value)

    def commit(self, key: str) -> "asyncio.Future[Any]":
        answer: asyncio.Future[Any] = self._loop.create_future()
        self.writer.submit(Commit(put(key), answer))
        return answer

    def task(self, name: str) -> "asyncio.Future[Any]":
        def run(_log: object) -> tuple[Any, list[Batch]]:
            self.log.calls.append(name)
            return f"{name} is done", []

        answer: asyncio.Future[Any] = self._loop.create_future()
        self.writer.submit(Task(run, answer))
        return answer

    async def stop(self) -> None:
        self.writer.flush()
        await asyncio.to_thread(self.writer.stop)
        await asyncio.sleep(0)


def tell(story: Callable[[Desk], Awaitable[None]]) -> None:
    async def told() -> None:
        async with asyncio.timeout(10):
            desk = Desk(Log())
            desk.writer.start()
            await story(desk)

    asyncio.run(told())


def test_commits_that_come_together_are_one_and_any_other_job_is_alone() -> None:
    async def story(desk: Desk) -> None:
        jobs = [desk.commit("/a"), desk.commit("/b"), desk.task("one"), desk.task("two"), desk.commit("/c")]
        assert await asyncio.gather(*jobs) == ["/a", "/b", "one is done", "two is done", "/c"]
        await desk.stop()
        assert desk.log.calls == [["/a", "/b"], "one", "two", ["/c"], "closed, in order: True"]
        assert len(desk.batches) == 2
        assert desk.failures == []

    tell(story)


def test_what_is_submitted_while_the_disk_is_busy_is_the_next_commit_up_to_a_limit() -> None:
    async def story(desk: Desk) -> None:
        desk.log.may_go_on.clear()
        jobs = [desk.commit("/first")]
        await asyncio.sleep(0.01)  # the thread is at it
        for turn in range(3):
            jobs += [desk.commit(f"/{turn}/{number}") for number in range(MAX_BATCH // 2 + 20)]
            await asyncio.sleep(0)
        desk.writer.flush()
        desk.log.may_go_on.set()
        assert len(await asyncio.gather(*jobs)) == len(jobs)
        await desk.stop()
        # Two turns reach the limit, so the third one waits for the commit after that.
        assert desk.log.calls[:4] == [["/first"], MAX_BATCH, 40, MAX_BATCH // 2 + 20]

    tell(story)


def test_jobs_that_were_passed_on_are_finished_before_it_stops() -> None:
    async def story(desk: Desk) -> None:
        desk.log.may_go_on.clear()
        jobs = [desk.commit("/a")]
        desk.writer.flush()
        jobs.append(desk.commit("/b"))
        desk.writer.flush()
        desk.writer.flush()  # nothing is left
        stopping = asyncio.create_task(desk.stop())
        await asyncio.sleep(0.01)
        assert not stopping.done()
        desk.log.may_go_on.set()
        assert await asyncio.gather(*jobs) == ["/a", "/b"]
        await stopping
        assert desk.log.calls[-1] == "closed, in order: True"

    tell(story)


def test_a_refusal_is_for_those_who_asked_and_the_store_goes_on() -> None:
    async def story(desk: Desk) -> None:
        desk.log.raises = StoreFullError("no room")
        for said in await asyncio.gather(desk.commit("/a"), desk.commit("/b"), return_exceptions=True):
            assert isinstance(said, StoreFullError)
        desk.log.raises = None
        assert await desk.commit("/c") == "/c"
        assert desk.failures == []
        await desk.stop()

    tell(story)


@pytest.mark.parametrize(
    "error, why",
    [
        (apsw.IOError("fsync"), "the disk failed; the store has stopped: fsync"),
        (FailedError("the file is gone"), "the file is gone"),
        (ZeroDivisionError("a bug"), "the store has stopped: ZeroDivisionError"),
    ],
)
def test_after_a_failure_nothing_is_tried_and_everybody_is_told(error: Exception, why: str) -> None:
    async def story(desk: Desk) -> None:
        desk.log.raises = error
        with pytest.raises(FailedError, match=why):
            await desk.commit("/a")
        desk.log.raises = None
        for later in (desk.commit("/b"), desk.task("one")):
            with pytest.raises(FailedError, match=why):
                await later
        await desk.stop()
        assert desk.log.calls == [["/a"], "closed, in order: False"]
        assert {str(failed) for failed in desk.failures} == {str(desk.failures[0])}

    tell(story)


def test_a_failed_checkpoint_stops_the_store_though_the_commit_before_it_is_there() -> None:
    async def story(desk: Desk) -> None:
        desk.log.checkpoint_raises = apsw.IOError("write")
        assert await desk.commit("/a") == "/a"
        while not desk.failures:
            await asyncio.sleep(0)
        with pytest.raises(FailedError, match="the disk failed at a checkpoint; the store has stopped: write"):
            await desk.commit("/b")
        await desk.stop()
        assert desk.log.calls == [["/a"], "closed, in order: False"]

    tell(story)
