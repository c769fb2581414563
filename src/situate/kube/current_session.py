"""One session after another: a new configuration is a new session.

The old session drains, and the new one lists the cluster afresh. There is at most one at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final, TypeAlias

from situate.kube.session import Session, SessionContext, open_session
from situate.kube.settings import Loaded
from situate.loop.scheduling.session import end_tasks

RELOAD_DRAIN_S: Final = 5.0
"""How long binds in flight may take to finish when the configuration changes."""

Guard: TypeAlias = Callable[[Coroutine[Any, Any, None]], Coroutine[Any, Any, None]]
"""Reports whatever a session ends with."""


class CurrentSession:
    """The current session of a process."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._leading = False
        self._changing = asyncio.Lock()
        """Held while a session begins or replaces another."""
        self._task: asyncio.Task[None] | None = None
        self._stack = AsyncExitStack()
        self.session: Session | None = None

    async def begin(self, context: SessionContext, loaded: Loaded) -> None:
        """Begin a session, and wait until it is synced."""
        async with self._changing:
            await self._begin(context, loaded)

    async def swap(self, context: SessionContext, loaded: Loaded) -> None:
        """Replace the session, if there is one, with a new one. The old one drains first."""
        async with self._changing:
            if self.session is None:
                return
            if self._leading:
                await self.session.drain(RELOAD_DRAIN_S)
            await self.close()
            await self._begin(context, loaded)
            if self._leading and self.session is not None:
                self.session.drive.lead()

    async def lead(self) -> None:
        """Have this session, and later ones, decide."""
        async with self._changing:
            self._leading = True
            if self.session is not None:
                self.session.drive.lead()

    def mute(self) -> None:
        """Carry out nothing any more."""
        self._leading = False
        if self.session is not None:
            self.session.drive.mute()

    async def drain(self, timeout_s: float) -> None:
        if self.session is not None and self._leading:
            await self.session.drain(timeout_s)

    async def close(self) -> None:
        """End the session, if there is one, and wait for it."""
        task, self._task = self._task, None
        if task is not None:
            await end_tasks(task)
        self.session = None
        await self._stack.aclose()

    async def _begin(self, context: SessionContext, loaded: Loaded) -> None:
        self._stack = AsyncExitStack()
        self.session = session = await self._stack.enter_async_context(open_session(context, loaded))
        self._task = asyncio.create_task(self._guard(session.run()), name="session")
        await session.until_synced()
