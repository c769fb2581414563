"""An event loop with virtual time: when no callback is ready, the time jumps to the next timer.

Every callback belongs to an actor: an agent, a machine, the control plane, or the world itself. The actor is in the
callback's context, which tasks inherit. An actor has a clock that may drift; the loop's time and the functions of
module `time` use it. The callbacks of a paused actor wait. So the code under test runs unchanged. There is no waiting
and no threads: work for an executor runs at once.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final, TypeVar

EPOCH_S: Final = 1_800_000_000
"""The epoch of worlds."""
TICK_S: Final = 1e-6
SPIN: Final = 200_000
"""More steps without time passing mean an endless loop."""
BILLION: Final = 1_000_000_000

T = TypeVar("T")


class StuckError(Exception):
    """No callback is ready and no timer is set."""


class DriftingClock:
    """A clock that runs `rate` times as fast as true time and starts `ahead_s` seconds ahead."""

    __slots__ = ("ahead_s", "rate")

    def __init__(self, rate: float = 1.0, ahead_s: float = 0.0) -> None:
        self.rate = rate
        self.ahead_s = ahead_s

    def shown(self, real_s: float) -> float:
        return real_s * self.rate

    def real(self, shown_s: float) -> float:
        return shown_s / self.rate

    def wall(self, real_s: float) -> float:
        return EPOCH_S + self.ahead_s + real_s * self.rate


class Actor:
    """Callbacks on the loop belong to an actor."""

    __slots__ = ("_context", "clock", "name", "parked", "paused", "tasks", "watched")

    def __init__(self, name: str, clock: DriftingClock) -> None:
        self.name = name
        self.clock = clock
        self.paused = False
        self.parked: list[asyncio.Handle] = []
        self.tasks: dict[asyncio.Task[Any], None] = {}
        """Unfinished tasks in start order."""
        self.watched: Callable[[], None] | None = None
        """Called after each callback of the actor."""
        self._context = copy_context()
        self._context.run(ACTOR.set, self)

    def context(self) -> Context:
        return self._context.copy()

    def run(self, call: Callable[[], T]) -> T:
        """Call a function as this actor."""
        return self.context().run(call)

    def begin(self, work: Coroutine[Any, Any, T], name: str = "") -> asyncio.Task[T]:
        return asyncio.get_running_loop().create_task(work, name=name or self.name, context=self.context())

    async def end(self) -> None:
        """Cancel all tasks. To simulate a crash, first make sure that their clean-up has no effect."""
        self.go_on()
        while tasks := [task for task in self.tasks if not task.done()]:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def pause(self) -> None:
        self.paused = True

    def go_on(self) -> None:
        self.paused = False
        loop = asyncio.get_running_loop()
        if isinstance(loop, VirtualLoop):
            loop.unpark(self)


ACTOR: ContextVar[Actor] = ContextVar("OWNER")


class VirtualLoop(asyncio.BaseEventLoop):
    """`now` is the true time in seconds since the start of the world."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.steps = self._jumped = 0
        self.world = Actor("world", DriftingClock())
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._number = 0
        self.set_task_factory(self._made)

    # -- time ----------------------------------------------------------------------------------------------------------

    def time(self) -> float:
        return ACTOR.get(self.world).clock.shown(self.now)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        actor = ACTOR.get(self.world) if context is None else context.get(ACTOR, self.world)
        made = asyncio.TimerHandle(when, callback, args, self, context)
        self._number += 1
        # A moment late, like real timers: a timer that is early by a rounding error would be set again for ever.
        heapq.heappush(self._timers, (actor.clock.real(when) + TICK_S, self._number, made))
        return made

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        actor = ACTOR.get(self.world) if context is None else context.get(ACTOR, self.world)
        return self.call_at(actor.clock.shown(self.now) + delay, callback, *args, context=context)

    # -- running -------------------------------------------------------------------------------------------------------

    def _run_once(self) -> None:
        ready: Any = self._ready  # type: ignore[attr-defined]
        if not ready and not self._stopping:  # type: ignore[attr-defined]
            self._jump(ready)
        if self.steps - self._jumped > SPIN:
            raise StuckError(f"something spins: {ready[0]!r}")
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            actor = handle._context.get(ACTOR, self.world)
            if actor.paused:
                actor.parked.append(handle)
                continue
            self.steps += 1
            handle._run()
            if actor.watched is not None:
                actor.watched()

    def _jump(self, ready: Any) -> None:
        """Jump to the next timer that is not cancelled."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if not timers:
            raise StuckError("nobody has anything to do, and no timer is set")
        if timers[0][0] > self.now:
            self.now, self._jumped = timers[0][0], self.steps
        while timers and timers[0][0] <= self.now:
            handle = heapq.heappop(timers)[2]
            if not handle.cancelled():
                ready.append(handle)

    def unpark(self, actor: Actor) -> None:
        self._ready.extend(actor.parked)  # type: ignore[attr-defined]
        actor.parked.clear()

    def _made(self, loop: Any, work: Any, **how: Any) -> asyncio.Task[Any]:
        context: Context | None = how.get("context")
        actor = ACTOR.get(self.world) if context is None else context.get(ACTOR, self.world)
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **how)
        actor.tasks[task] = None
        task.add_done_callback(lambda done: actor.tasks.pop(done, None), context=actor.context())
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whatever it is: it is the caller's
            done.set_exception(error)
        return done

    # Required by BaseEventLoop.

    def _process_events(self, events: Any) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


@contextmanager
def interposed(loop: VirtualLoop) -> Iterator[None]:
    """Make the functions of module `time` return the time of the current actor."""

    def monotonic() -> float:
        return ACTOR.get(loop.world).clock.shown(loop.now)

    def wall() -> float:
        return ACTOR.get(loop.world).clock.wall(loop.now)

    functions: dict[str, Callable[..., float]] = {
        "clock_gettime": lambda _: monotonic(),
        "monotonic": monotonic,
        "perf_counter": monotonic,
        "time": wall,
        "monotonic_ns": lambda: int(monotonic() * BILLION),
        "perf_counter_ns": lambda: int(monotonic() * BILLION),
        "time_ns": lambda: int(wall() * BILLION),
    }
    real = {name: getattr(time, name) for name in functions}
    for name, function in functions.items():
        setattr(time, name, function)
    try:
        yield
    finally:
        for name, function in real.items():
            setattr(time, name, function)
