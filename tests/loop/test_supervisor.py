"""A part that ends is restarted, its cause is known, and the other parts go on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from situate.loop.drive import describe_error
from situate.loop.health import report_all, report_one
from situate.loop.supervisor import Part, RestartPolicy, Supervisor

QUICK = RestartPolicy(first_s=0.001, last_s=0.002, steady_s=0.02, healthy_s=30.0)


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0.001)


def _run(supervisor: Supervisor, watch: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        running = asyncio.create_task(supervisor.run())
        try:
            await watch()
            assert not running.done()
        finally:
            running.cancel()
            await asyncio.wait([running])
        assert running.cancelled()

    asyncio.run(run())


class _Failing:
    """Fails until it has begun so many times, then runs."""

    def __init__(self, error: BaseException | None, times: int) -> None:
        self.begun = 0
        self._error = error
        self._times = times

    async def run(self) -> None:
        self.begun += 1
        if self.begun > self._times:
            await asyncio.Event().wait()
        if self._error is not None:
            raise self._error


@pytest.mark.parametrize(
    "error, cause",
    [
        pytest.param(ValueError("odd"), "ValueError: odd", id="an exception"),
        pytest.param(
            ExceptionGroup("of tasks", [ExceptionGroup("inside", [OverflowError("too large")]), KeyError("b")]),
            "OverflowError: too large",
            id="the first exception of nested groups",
        ),
        pytest.param(None, "it ended without an error", id="a part that returns"),
        pytest.param(asyncio.CancelledError(), "it was cancelled", id="a part that awaited a cancelled task"),
    ],
)
def test_a_part_that_ends_is_started_again_and_the_others_go_on(
    error: BaseException | None, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    failing, other = _Failing(error, 3), _Failing(None, 0)
    supervisor = Supervisor([Part("failing", failing.run), Part("other", other.run)], QUICK)
    with caplog.at_level(logging.ERROR):
        _run(supervisor, lambda: _until(lambda: failing.begun == 4))
    assert other.begun == 1
    ends = [record.__dict__["keys"] for record in caplog.records]
    assert [(one["part"], one["err"].split(" (in ")[0]) for one in ends] == [("failing", cause)] * 3
    shown = supervisor.render().decode()
    assert 'situate_part_restarts_total{part="failing"} 3.0' in shown
    assert 'situate_part_restarts_total{part="other"} 0.0' in shown


def test_a_part_that_is_down_is_named_with_its_cause_until_it_runs_again() -> None:
    failing = _Failing(ValueError("odd"), 1)
    supervisor = Supervisor([Part("failing", failing.run), Part("other", _Failing(None, 0).run)], QUICK)
    checks = supervisor.checks()

    async def watch() -> None:
        await _until(lambda: report_one(checks, "failing") != (200, "ok"))
        code, text = report_one(checks, "failing") or (0, "")
        assert code == 500
        assert text.startswith("internal server error: ValueError: odd")
        whole = report_all("readyz", checks, (), verbose=False)
        assert whole == (500, "[-]failing failed: reason withheld\n[+]other ok\nreadyz check failed\n")
        await _until(lambda: report_one(checks, "failing") == (200, "ok"))
        assert failing.begun == 2

    _run(supervisor, watch)


def test_a_part_that_cannot_be_made_is_made_again() -> None:
    made = 0

    def make() -> Coroutine[Any, Any, None]:
        nonlocal made
        made += 1
        raise OSError("no such directory")

    supervisor = Supervisor([Part("failing", make)], QUICK)
    _run(supervisor, lambda: _until(lambda: made == 3))


def test_waits_grow_up_to_a_limit() -> None:
    policy = RestartPolicy(first_s=0.1, last_s=5.0)
    assert [policy.wait_s(failures) for failures in (1, 2, 3, 7, 8, 10_000)] == [0.1, 0.2, 0.4, 5.0, 5.0, 5.0]


def test_after_a_healthy_period_the_first_wait_is_used_again(caplog: pytest.LogCaptureFixture) -> None:
    failing = _Failing(ValueError("odd"), 4)
    policy = RestartPolicy(first_s=0.001, last_s=60.0, steady_s=0.0, healthy_s=0.0)  # any run counts as healthy
    with caplog.at_level(logging.ERROR):
        _run(Supervisor([Part("failing", failing.run)], policy), lambda: _until(lambda: failing.begun == 5))
    assert [record.__dict__["keys"]["wait_s"] for record in caplog.records] == [0.001] * 4


def test_a_supervisor_that_is_cancelled_waits_until_its_parts_have_stopped() -> None:
    began, stopped = [], []

    async def slow() -> None:
        began.append("slow")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            stopped.append("slow")

    _run(Supervisor([Part("slow", slow)], QUICK), lambda: _until(lambda: bool(began)))
    assert stopped == ["slow"]


def test_the_cause_of_a_group_is_described_by_its_first_exception() -> None:
    assert describe_error(ExceptionGroup("of tasks", [ValueError("odd")])) == "ValueError: odd"
