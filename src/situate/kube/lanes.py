"""Work that waits for its turn: what concerns one object is done in order, what concerns different ones side by side.

Each kind of work has its own limit of how much of it is under way, so that much of one does not hold up another. What
the work is, and whether it came off, is no business of this file; work must not raise.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Protocol


class Work(Protocol):
    kind: str
    """One of the kinds that have a limit."""

    async def run(self) -> None: ...


class Lanes:
    """One lane for each key that has work, and a few workers for each kind. Lives in the running event loop."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits = dict(limits)
        self._lanes: dict[str, deque[Work]] = {}
        """The work of each key that has some; what is under way is not in the deque any more."""
        self._busy: set[str] = set()
        self._ready: dict[str, deque[str]] = {kind: deque() for kind in limits}
        """Keys whose next work is of this kind. It may have been dropped since: whoever takes one looks again."""
        self._workers: dict[str, set[asyncio.Task[None]]] = {kind: set() for kind in limits}
        self.waiting = 0
        """How much work has not begun."""

    @property
    def busy(self) -> bool:
        """Whether anything waits or is under way."""
        return bool(self._lanes)

    def put(self, key: str, work: Work) -> None:
        """To be done after all other work for this key."""
        self.waiting += 1
        lane = self._lanes.get(key)
        if lane is not None:
            lane.append(work)
        else:
            self._lanes[key] = deque((work,))
            self._line_up(key, work.kind)

    def of(self, key: str) -> tuple[Work, ...]:
        """The work for a key that has not begun, in order."""
        return tuple(self._lanes.get(key, ()))

    def drop(self, key: str, work: Work) -> None:
        """Do not do it after all. It must be one of `of(key)`."""
        lane = self._lanes[key]
        lane.remove(work)
        self.waiting -= 1
        if key not in self._busy:
            self._go_on(key, lane)

    def drop_all(self) -> list[Work]:
        """Begin nothing that has not begun; here it is."""
        dropped = [work for lane in self._lanes.values() for work in lane]
        for lane in self._lanes.values():
            lane.clear()
        self._lanes = {key: lane for key, lane in self._lanes.items() if key in self._busy}
        self.waiting = 0
        return dropped

    async def idle(self, timeout_s: float) -> bool:
        """Wait until all work is done; whether it is."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout_s
        while tasks := [task for workers in self._workers.values() for task in workers]:
            left = deadline - clock()
            if left <= 0:
                return False
            await asyncio.wait(tasks, timeout=left)
        return True

    def cancel(self) -> None:
        """Stop what is under way, wherever it is."""
        for workers in self._workers.values():
            for task in workers:
                task.cancel()

    def _line_up(self, key: str, kind: str) -> None:
        self._ready[kind].append(key)
        workers = self._workers[kind]
        if len(workers) < self._limits[kind]:
            task = asyncio.get_running_loop().create_task(self._serve(kind))
            workers.add(task)
            task.add_done_callback(partial(self._left, kind))

    def _left(self, kind: str, task: asyncio.Task[None]) -> None:
        """A worker is done. If work raised, which is a fault in the program, it is told, and others go on."""
        self._workers[kind].discard(task)
        if task.cancelled() or task.exception() is None:
            return
        told = {"message": f"{kind} work failed", "exception": task.exception()}
        asyncio.get_running_loop().call_exception_handler(told)
        if self._ready[kind]:
            self._line_up(self._ready[kind].popleft(), kind)

    def _go_on(self, key: str, lane: deque[Work]) -> None:
        if lane:
            self._line_up(key, lane[0].kind)
        else:
            del self._lanes[key]

    async def _serve(self, kind: str) -> None:
        ready, workers = self._ready[kind], self._workers[kind]
        while ready:
            key = ready.popleft()
            lane = self._lanes.get(key)
            if not lane or key in self._busy or lane[0].kind != kind:
                continue  # dropped, or in the line twice
            work = lane.popleft()
            self.waiting -= 1
            self._busy.add(key)
            try:
                await work.run()
            finally:
                self._busy.discard(key)
                self._go_on(key, lane)
        task = asyncio.current_task()
        if task is not None:
            workers.discard(task)  # at once: whoever lines up next must not count on this one
