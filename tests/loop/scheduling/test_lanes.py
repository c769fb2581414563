"""Work of one key is done in order, of different keys side by side, of each kind within its limit."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from situate.loop.logs import KEYS
from situate.loop.scheduling.lanes import Lanes, Together


@dataclass
class Diary:
    done: list[str] = field(default_factory=list)
    now: int = 0
    most: int = 0


@dataclass(eq=False)
class Job:
    name: str
    diary: Diary
    kind: str = "a"
    gate: asyncio.Event | None = None
    error: Exception | None = None

    async def run(self) -> None:
        self.diary.now += 1
        self.diary.most = max(self.diary.most, self.diary.now)
        await (self.gate.wait() if self.gate is not None else asyncio.sleep(0))
        self.diary.now -= 1
        if self.error is not None:
            raise self.error
        self.diary.done.append(self.name)


async def run(job: Job) -> None:
    await job.run()


def made(**limits: int) -> Lanes[Job]:
    return Lanes({kind: (limit, run) for kind, limit in limits.items()})


def play(scenario: Callable[[Diary], Awaitable[None]]) -> None:
    async def run() -> None:
        await scenario(Diary())

    asyncio.run(run())


def test_work_of_one_key_is_done_in_order_whatever_its_kind() -> None:
    async def scenario(diary: Diary) -> None:
        lanes = made(a=5, b=5)
        for at in range(6):
            lanes.put("x", Job(f"{at}", diary, "ab"[at % 2]))
        assert await lanes.idle(5)
        assert diary.done == ["0", "1", "2", "3", "4", "5"]
        assert diary.most == 1
        assert not lanes.busy

    play(scenario)


def test_work_of_different_keys_is_done_side_by_side_up_to_the_limit() -> None:
    async def scenario(diary: Diary) -> None:
        lanes = made(a=3)
        for at in range(30):
            lanes.put(f"{at}", Job(f"{at}", diary))
        assert await lanes.idle(5)
        assert len(diary.done) == 30
        assert diary.most == 3

    play(scenario)


def test_much_work_of_one_kind_does_not_hold_up_another() -> None:
    async def scenario(diary: Diary) -> None:
        lanes, gate = made(a=2, b=1), asyncio.Event()
        for at in range(10):
            lanes.put(f"a{at}", Job(f"a{at}", diary, "a", gate))
        lanes.put("urgent", Job("urgent", diary, "b"))
        while not diary.done:
            await asyncio.sleep(0)
        assert diary.done == ["urgent"]
        gate.set()
        assert await lanes.idle(5)

    play(scenario)


def test_work_that_comes_while_the_last_is_being_finished_is_done() -> None:
    async def scenario(diary: Diary) -> None:
        lanes = made(a=1)
        for at in range(200):
            lanes.put(f"{at}", Job(f"{at}", diary))
            for _ in range(at % 5):
                await asyncio.sleep(0)
        assert await lanes.idle(5)
        assert len(diary.done) == 200

    play(scenario)


def test_dropped_work_is_not_done_and_what_comes_after_it_need_not_wait_in_its_line() -> None:
    async def scenario(diary: Diary) -> None:
        lanes, gate = made(a=1, b=1), asyncio.Event()
        lanes.put("first", Job("first", diary, "a", gate))
        note, bind = Job("note", diary, "a"), Job("bind", diary, "b")
        lanes.put("x", note)
        lanes.put("x", bind)
        assert lanes.of("x") == (note, bind)
        lanes.drop("x", note)
        while not diary.done:
            await asyncio.sleep(0)
        assert diary.done == ["bind"]
        gate.set()
        assert await lanes.idle(5)
        assert diary.done == ["bind", "first"]
        assert lanes.waiting == 0

    play(scenario)


def test_dropping_the_only_work_of_a_key_leaves_nothing() -> None:
    async def scenario(diary: Diary) -> None:
        lanes = made(a=1)
        job = Job("x", diary)
        lanes.put("x", job)
        lanes.drop("x", job)
        assert not lanes.busy
        lanes.put("x", Job("y", diary))
        assert await lanes.idle(5)
        assert diary.done == ["y"]

    play(scenario)


def test_dropping_all_lets_what_is_under_way_finish() -> None:
    async def scenario(diary: Diary) -> None:
        lanes, gate = made(a=1), asyncio.Event()
        jobs = [Job(f"{at}", diary, "a", gate) for at in range(3)]
        for at, job in enumerate(jobs):
            lanes.put("x" if at < 2 else "y", job)
        await asyncio.sleep(0)
        assert lanes.drop_all() == [jobs[1], jobs[2]]
        assert not await lanes.idle(0)
        gate.set()
        assert await lanes.idle(5)
        assert diary.done == ["0"]
        assert not lanes.busy

    play(scenario)


def test_work_that_raises_is_logged_and_the_rest_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(diary: Diary) -> None:
        lanes, fault = made(a=1), LookupError("a fault")
        lanes.put("x", Job("bad", diary, error=fault))
        lanes.put("x", Job("after it", diary))
        lanes.put("y", Job("other", diary))
        assert await lanes.idle(5)
        [record] = caplog.records
        assert getattr(record, KEYS)["err"].startswith("LookupError: a fault (in ")
        assert sorted(diary.done) == ["after it", "other"]

    play(scenario)


def test_workers_that_rest_are_called_again() -> None:
    async def scenario(diary: Diary) -> None:
        lanes = made(a=2)
        for some in ("ab", "c", "def"):
            for name in some:
                lanes.put(name, Job(name, diary))
            assert await lanes.idle(5)
        assert diary.done == list("abcdef")
        assert len(asyncio.all_tasks()) == 3, "two workers, and the scenario"

    play(scenario)


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_a_worker_that_was_cancelled_while_it_rested_is_not_called(turns: int) -> None:
    async def scenario(diary: Diary) -> None:
        lanes = made(a=2)
        lanes.put("x", Job("a", diary))
        lanes.put("y", Job("b", diary))
        assert await lanes.idle(5)
        await asyncio.sleep(0)
        await lanes.cancel()
        for _ in range(turns):
            await asyncio.sleep(0)
        lanes.put("x", Job("c", diary))
        assert await lanes.idle(5)
        assert diary.done == ["a", "b", "c"]

    play(scenario)


@pytest.mark.parametrize("limit", [1, 4])
def test_cancelling_stops_what_is_under_way(limit: int) -> None:
    async def scenario(diary: Diary) -> None:
        lanes = made(a=limit)
        for at in range(limit):
            lanes.put(f"{at}", Job("never", diary, gate=asyncio.Event()))
        await asyncio.sleep(0)
        await lanes.cancel()
        assert await lanes.idle(5)
        assert diary.done == []

    play(scenario)


def test_work_of_a_kind_may_be_done_several_pieces_at_a_time_but_one_of_each_key() -> None:
    async def scenario(diary: Diary) -> None:
        sizes: list[list[str]] = []

        async def run_all(jobs: list[Job]) -> None:
            sizes.append([job.name for job in jobs])
            await asyncio.gather(*(job.run() for job in jobs))

        lanes: Lanes[Job] = Lanes({"a": Together(8, 4, run_all)})
        for at in range(10):
            lanes.put(f"{min(at, 8)}", Job(f"{at}", diary))
        assert await lanes.idle(5)
        assert sizes == [["0", "1", "2", "3"], ["4", "5", "6", "7"], ["8"], ["9"]]
        assert diary.most <= 8

    play(scenario)


def test_work_done_together_that_fails_leaves_the_rest_of_each_lane() -> None:
    async def scenario(diary: Diary) -> None:
        async def run_all(jobs: list[Job]) -> None:
            await asyncio.gather(*(job.run() for job in jobs))

        lanes: Lanes[Job] = Lanes({"a": Together(2, 2, run_all)})
        lanes.put("x", Job("0", diary, error=ValueError("no")))
        lanes.put("y", Job("1", diary))
        lanes.put("x", Job("2", diary))
        assert await lanes.idle(5)
        assert diary.done[-1] == "2"
        assert not lanes.busy

    play(scenario)
