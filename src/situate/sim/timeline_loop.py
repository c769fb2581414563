"""An event loop on a timeline: code of the live scheduler that awaits runs in virtual time, always in the same order.

A loop belongs to one process. When that is killed, its tasks end where they are, and have no effect any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from math import ceil
from typing import Any, TypeVar

from situate.sim.timeline import Timeline

T = TypeVar("T")


class TimelineLoop(asyncio.BaseEventLoop):
    def __init__(self, timeline: Timeline, around: Callable[[bool], None] = lambda _: None) -> None:
        """`around` is called with True before each callback, and with False after it."""
        super().__init__()
        self._timeline = timeline
        self._around = around
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._killed = False
        self.set_task_factory(self._made)

    def time(self) -> float:
        return self._timeline.now / 1_000

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._timeline.after(0, self._run_handle, handle)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._timeline.after(max(0, ceil(when * 1_000 - self._timeline.now)), self._run_handle, handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call(self, callback: Callable[[], T]) -> T:
        """Call a function as this process."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        self._around(True)
        try:
            return callback()
        finally:
            self._around(False)
            asyncio._set_running_loop(before)

    def kill(self) -> None:
        """The process is gone."""
        self._killed = True
        for task in list(self._tasks):
            work = task.get_coro()
            if isinstance(work, Coroutine):
                self.call(work.close)
        self._tasks.clear()

    def _run_handle(self, handle: asyncio.Handle) -> None:
        if not self._killed and not handle.cancelled():
            self.call(handle._run)

    def _made(self, loop: Any, work: Any, **how: Any) -> Any:
        if self._killed:
            work.close()
            return self.create_future()
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **how)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return task

    def __del__(self) -> None:
        """There is nothing to close: it has no descriptors and no threads."""

    # Required by BaseEventLoop.

    def _process_events(self, events: Any) -> None:
        pass

    def _write_to_self(self) -> None:
        pass
