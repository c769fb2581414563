"""The drive: what is told is heard in time, what is decided is carried out, and nothing is done for nothing."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from builders import node, pod
from situate.core.changes import BindDone, BindFailed, Change, NodeSeen, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, Effect, Report
from situate.core.engine.engine import BATCH, Engine
from situate.loop import drive as module
from situate.loop.drive import Drive, EngineError, running_clock
from situate.loop.history import History
from situate.loop.journal import Journal
from situate.loop.replay import Replay

CONFIG = default_configuration()
NODE = NodeSeen(node("n1", cpu="64", pods=1_000))


class Hands:
    """Carries binds out at once, or when it is told to."""

    def __init__(self, *, at_once: bool = True) -> None:
        self.effects: list[Effect] = []
        self.at_once = at_once
        self.waiting: list[Bind] = []
        self.drive: Drive | None = None

    def perform(self, effects: Sequence[Effect]) -> None:
        self.effects.extend(effects)
        self.waiting.extend(effect for effect in effects if isinstance(effect, Bind))
        if self.at_once:
            self.finish(len(self.waiting))

    def finish(self, count: int) -> None:
        done, self.waiting = self.waiting[:count], self.waiting[count:]
        assert self.drive is not None
        self.drive.tell([BindDone(bind.pod, bind.attempt) for bind in done])

    @property
    def binds_waiting(self) -> int:
        return len(self.waiting)

    @property
    def bound(self) -> list[str]:
        return [effect.pod.name for effect in self.effects if isinstance(effect, Bind)]


def made(hands: Hands, **fields: Any) -> Drive:
    hands.drive = Drive(Engine(CONFIG), **fields)
    hands.drive.attach(hands)
    return hands.drive


def waiting(count: int, prefix: str = "p") -> list[Change]:
    return [PodSeen(pod(f"{prefix}{at}", uid=f"{prefix}{at}", cpu="1m")) for at in range(count)]


def play(drive: Drive, scenario: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(10):
            driving = asyncio.create_task(drive.run())
            try:
                await scenario()
            finally:
                driving.cancel()
                await asyncio.gather(driving, return_exceptions=True)

    asyncio.run(run())


async def until(check: Callable[[], object]) -> None:
    while not check():
        await asyncio.sleep(0)


def test_nothing_is_decided_before_it_leads_and_everything_at_once_when_it_does() -> None:
    hands = Hands()
    drive = made(hands)

    async def scenario() -> None:
        drive.tell([NODE, *waiting(3)])
        await until(lambda: drive.steps)
        assert hands.effects == []
        drive.lead()
        await until(lambda: len(hands.bound) == 3)

    play(drive, scenario)


def test_what_came_of_a_bind_is_heard_and_reported() -> None:
    hands = Hands()
    drive = made(hands)

    async def scenario() -> None:
        drive.lead()
        drive.tell([NODE, *waiting(1)])
        await until(lambda: [effect for effect in hands.effects if isinstance(effect, Report)])

    play(drive, scenario)


def test_a_pod_that_comes_to_an_idle_scheduler_is_decided_within_milliseconds() -> None:
    hands = Hands()
    drive = made(hands)
    took = []

    async def scenario() -> None:
        drive.lead()
        drive.tell([NODE])
        await until(lambda: drive.steps)
        for at in range(20):
            await asyncio.sleep(0.002)
            begun = time.perf_counter()
            drive.tell(waiting(1, f"p{at}-"))
            await until(lambda: len(hands.bound) == at + 1)  # noqa: B023
            took.append(time.perf_counter() - begun)

    play(drive, scenario)
    assert sorted(took)[10] < 0.010


def test_what_several_tell_at_a_time_is_one_step() -> None:
    hands = Hands(at_once=False)
    drive = made(hands)

    async def teller(at: int) -> None:
        drive.tell(waiting(1, f"t{at}-"))

    async def scenario() -> None:
        drive.lead()
        drive.tell([NODE])
        await until(lambda: drive.steps)
        before = drive.steps
        await asyncio.gather(*(teller(at) for at in range(50)))
        await until(lambda: len(hands.bound) == 50)
        assert drive.steps - before <= 2

    play(drive, scenario)


def test_an_idle_drive_does_not_step() -> None:
    drive = made(Hands())

    async def scenario() -> None:
        drive.lead()
        drive.tell([NODE])
        await until(lambda: drive.steps)
        before = drive.steps
        await asyncio.sleep(0.05)
        assert drive.steps == before

    play(drive, scenario)


def test_it_wakes_up_by_itself_when_the_engines_next_moment_is_due() -> None:
    drive = made(Hands())

    async def scenario() -> None:
        drive.lead()
        drive.tell([NODE])
        await until(lambda: drive.steps)
        before, due = drive.steps, drive._clock() + 30
        drive.engine.next_due_ms = lambda now: due if drive.steps == before else None  # type: ignore[method-assign]
        drive._wake.set()
        await until(lambda: drive.steps > before)
        assert drive.stepped_at is not None
        assert drive.stepped_at >= due

    play(drive, scenario)


def test_others_have_their_turn_between_two_steps() -> None:
    hands = Hands(at_once=False)
    drive = made(hands)
    turns = []

    async def bystander() -> None:
        while True:
            turns.append(drive.steps)
            await asyncio.sleep(0)

    async def scenario() -> None:
        drive.lead()
        drive.tell([NODE, *waiting(900)])
        standing = asyncio.create_task(bystander())
        for at in range(5):
            drive.tell(waiting(1, f"x{at}-"))
            await until(lambda: drive.steps > at)  # noqa: B023
        standing.cancel()
        assert set(range(drive.steps)) <= set(turns) | {0}

    play(drive, scenario)


def test_no_more_is_decided_while_too_many_binds_are_under_way() -> None:
    hands = Hands(at_once=False)
    limit = 1_000
    drive = made(hands, pause_above=limit)

    async def scenario() -> None:
        drive.lead()
        drive.tell([NodeSeen(node("n1", cpu="64", pods=10_000)), *waiting(4 * limit)])
        await until(lambda: drive.engine.paused)
        assert limit < len(hands.bound) <= limit + BATCH
        reached = len(hands.bound)
        hands.finish(100)
        await until(lambda: drive.waiting == 0)
        assert len(hands.bound) == reached
        hands.finish(len(hands.waiting) - limit // 2)
        await until(lambda: len(hands.bound) > reached)

    play(drive, scenario)


def test_whoever_tells_more_than_fits_has_it_folded_in_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTAKE_LIMIT", 10)
    drive = made(Hands())
    drive.tell([NODE, *waiting(20)])
    assert (drive.waiting, drive.steps) == (0, 1)


def test_an_engine_that_fails_for_a_full_intake_fails_in_who_drives_and_not_in_who_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "INTAKE_LIMIT", 10)
    drive = made(Hands())

    def fail(now: int, changes: Sequence[Change]) -> list[Effect]:
        raise RuntimeError("ours")

    drive.engine.step = fail  # type: ignore[method-assign]
    drive.tell([NODE, *waiting(20)])
    drive.tell(waiting(20, "more"))

    async def run() -> None:
        async with asyncio.timeout(10):
            await drive.run()

    with pytest.raises(EngineError, match="RuntimeError: ours"):
        asyncio.run(run())


def test_what_a_performer_tells_at_once_waits_for_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTAKE_LIMIT", 0)
    performing = [0, 0]

    class Refusing:
        binds_waiting = 0

        def perform(self, effects: Sequence[Effect]) -> None:
            performing[0] += 1
            performing[1] = max(performing)
            for effect in effects:
                if isinstance(effect, Bind):
                    drive.tell([BindFailed(effect.pod, effect.attempt, "no")])
            performing[0] -= 1

    drive = Drive(Engine(CONFIG))
    drive.attach(Refusing())
    drive.lead()
    drive.tell([NODE, *waiting(3)])
    assert (performing[1], drive.waiting) == (1, 3)


def test_a_performer_hears_of_every_step_also_of_one_without_effects() -> None:
    heard: list[int] = []

    class Listening:
        binds_waiting = 0

        def perform(self, effects: Sequence[Effect]) -> None:
            heard.append(len(effects))

    drive = Drive(Engine(CONFIG))
    drive.attach(Listening())
    drive.tell([NODE])
    drive.step()
    assert heard == [], "it does not lead yet"
    drive.lead()
    drive.step()
    assert heard == [0]


def test_after_it_was_told_to_stop_nobody_is_decided_and_answers_are_heard() -> None:
    hands = Hands(at_once=False)
    drive = made(hands)

    async def scenario() -> None:
        drive.lead()
        drive.tell([NODE, *waiting(2)])
        await until(lambda: len(hands.bound) == 2)
        drive.stop_deciding()
        drive.tell(waiting(2, "late"))
        hands.finish(2)
        await until(lambda: [effect for effect in hands.effects if isinstance(effect, Report)])
        assert len(hands.bound) == 2

    play(drive, scenario)


def test_who_is_muted_carries_nothing_out() -> None:
    hands = Hands()
    drive = made(hands)
    drive.lead()
    drive.mute()
    drive.tell([NODE, *waiting(1)])
    drive.step()
    assert hands.effects == []


def test_a_failing_engine_ends_the_drive_with_what_and_where() -> None:
    drive = made(Hands())

    def fail(now: int, changes: Sequence[Change]) -> list[Effect]:
        raise RuntimeError("ours")

    drive.engine.step = fail  # type: ignore[method-assign]
    with pytest.raises(EngineError, match=r"RuntimeError: ours \(in fail, test_drive\.py:\d+\)"):
        drive.step()


def test_the_journal_of_a_drive_replays(tmp_path: Path) -> None:
    hands = Hands()
    with Journal(tmp_path, CONFIG) as journal:
        drive = made(hands, journal=journal)

        async def scenario() -> None:
            drive.tell([NODE, *waiting(5)])
            await until(lambda: drive.steps)
            drive.lead()
            await until(lambda: len(hands.bound) == 5)

        play(drive, scenario)
    replayed = Replay(History(tmp_path), Engine(CONFIG))
    assert list(replayed) == []
    assert replayed.steps == drive.steps


def test_a_journal_that_stops_is_said_once_and_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal = Journal(tmp_path, CONFIG, limit_bytes=10_000)
    hands = Hands()
    drive = made(hands, journal=journal)
    drive.lead()
    for at in range(40):
        drive.tell([NODE, *waiting(1, f"x{at}-")])
        drive.step()
    assert len(hands.bound) == 40
    assert [record.getMessage() for record in caplog.records].count("The journal has stopped; scheduling goes on") == 1


def test_the_clock_begins_with_the_wall_clock_and_never_goes_back() -> None:
    clock = running_clock()
    assert abs(clock() - time.time() * 1_000) < 1_000
    read = [clock() for _ in range(1_000)]
    assert read == sorted(read)
