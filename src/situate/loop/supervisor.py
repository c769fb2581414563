"""Runs the parts of a process side by side, and restarts a part that ends.

A part is made anew each time, so that it begins without the state in which it failed. Between restarts the supervisor
waits, longer each time; a part that ran for a while begins with the shortest wait again. The log has the cause of each
end in one line, a metric counts the restarts, and a health check names the part while it is down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest

from situate.loop.drive import describe_error
from situate.loop.health import Check
from situate.loop.logs import Log
from situate.loop.metrics_series import CounterSeries, SeriesCollector
from situate.loop.metrics_table import Family

_help: Final = "How often a part of the control plane ended and was started again."
RESTARTS: Final = Family("situate_part_restarts_total", "counter", _help, ("part",))
NO_ERROR: Final = "it ended without an error"
CANCELLED: Final = "it was cancelled"

_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class Part:
    """`run` makes the part and runs it until it is cancelled. The name is a label of a metric and a part of a path."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How long to wait before a part is started again."""

    first_s: float = 0.1
    """The first wait. Each one after it is twice as long."""
    last_s: float = 5.0
    """The longest wait. A part that needs the store must be back soon after the store is."""
    steady_s: float = 1.0
    """After running for this long, a part counts as up again."""
    healthy_s: float = 60.0
    """After this long without a failure, the wait is reset to the first one."""

    def wait_s(self, failures: int) -> float:
        """The wait after this many consecutive failures, counted from 1."""
        return min(self.first_s * 2.0 ** min(failures - 1, 30), self.last_s)


class Supervisor:
    """`run` it until it is cancelled; then all parts are cancelled, and it returns when they have ended."""

    def __init__(self, parts: Sequence[Part], policy: RestartPolicy = RestartPolicy()) -> None:
        self._parts = parts
        self._policy = policy
        self._causes: dict[str, str] = {}
        """The causes, by part, of those that are down or have not run for long enough since."""
        self._restarts = CounterSeries(RESTARTS)
        for part in parts:
            self._restarts.add((part.name,), 0)
        self.metrics = CollectorRegistry()
        self.metrics.register(SeriesCollector([self._restarts], lambda: None))

    def render(self) -> bytes:
        """The metric, for a scrape."""
        return generate_latest(self.metrics)

    def checks(self) -> list[Check]:
        """One health check for each part."""
        return [Check(part.name, partial(self._problem, part.name)) for part in self._parts]

    def _problem(self, name: str) -> str:
        return self._causes.get(name, "")

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for part in self._parts:
                group.create_task(self._keep_running(part), name=f"supervisor of {part.name}")

    async def _keep_running(self, part: Part) -> None:
        loop, failures = asyncio.get_running_loop(), 0
        while True:
            begun = loop.time()
            cause = await self._run_once(part)
            failures = 1 if loop.time() - begun >= self._policy.healthy_s else failures + 1
            wait_s = self._policy.wait_s(failures)
            self._causes[part.name] = cause
            _log.error("A part of the control plane ended; restarting it", part=part.name, err=cause, wait_s=wait_s)
            await asyncio.sleep(wait_s)
            self._restarts.add((part.name,), 1)

    async def _run_once(self, part: Part) -> str:
        """Run the part until it ends by itself; why it ended."""
        task = asyncio.create_task(_made_and_run(part), name=part.name)
        steady = asyncio.get_running_loop().call_later(self._policy.steady_s, self._causes.pop, part.name, None)
        try:
            await asyncio.wait([task])
        finally:
            steady.cancel()
            if not task.done():  # we are cancelled
                task.cancel()
                await asyncio.wait([task])
        return CANCELLED if task.cancelled() else _cause(task.exception())


async def _made_and_run(part: Part) -> None:
    """Create the part inside its task, so that a failure to create it is handled like any other."""
    await part.run()


def _cause(error: BaseException | None) -> str:
    return NO_ERROR if error is None else describe_error(error)
