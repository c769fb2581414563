"""Watches: events of the registry as lines of JSON, several in one write when they come together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus

from situate.server.errors import StatusError
from situate.server.http import query
from situate.server.http.negotiation import JSON
from situate.server.http.ports import Computed, Followed
from situate.server.http.rendering import Shower
from situate.server.http.request import Incoming
from situate.server.http.responses import Answer, encode
from situate.server.http.settings import Limits
from situate.server.http.streams import Stream
from situate.server.registry.registry import Registry

__all__ = ["Watches"]


class Watches:
    """All that are open, so that they can be ended when the server stops."""

    def __init__(self, registry: Registry, limits: Limits, dice: Callable[[], float]) -> None:
        """`dice` gives numbers from 0 to 1: watches that began together must not end together."""
        self._registry = registry
        self._limits = limits
        self._dice = dice
        self._open: dict[Stream, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def stop(self) -> None:
        for stream in list(self._open):
            stream.stop()

    async def answer(self, asked: Incoming, shower: Shower, headers: str, computed: Computed | None = None) -> Answer:
        """`computed`: who works out what is asked for, if it is not the registry's."""
        options = query.watch_options(asked.query)
        if not options.timeout_s:
            options = replace(options, timeout_s=int(self._limits.watch_least_s * (1.0 + self._dice())))
        try:
            source = self._registry if computed is None else computed
            watching: Followed = await source.watch(asked.target, options)
        except StatusError as error:
            if error.code != HTTPStatus.GONE:
                raise
            return await self._expired(asked, error, headers)
        stream = Stream(asked.http, self._limits.slow_s)
        self._open[stream] = None
        try:
            # Clients wait for the headers before they begin to read.
            stream.start(JSON, headers)
            await self._follow(watching, stream, shower)
        except asyncio.CancelledError:
            if not stream.cancelled():
                raise
        except ConnectionError:
            pass
        finally:
            self._open.pop(stream, None)
            stream.forget()
            await watching.aclose()
        return stream.finish()

    async def _expired(self, asked: Incoming, error: StatusError, headers: str) -> Answer:
        """Clients look for this in the stream, not in the answer's code."""
        stream = Stream(asked.http, self._limits.slow_s)
        stream.start(JSON, headers)
        await stream.send((encode({"type": "ERROR", "object": error.status()}), b"\n"))
        return stream.finish()

    async def _follow(self, watching: Followed, stream: Stream, shower: Shower) -> None:
        most = self._limits.batch_bytes
        async for event in watching:
            pieces, size = [shower.line(event)], 0
            for other in watching.ready():
                if size > most:
                    await stream.send(pieces)
                    pieces, size = [], 0
                pieces.append(shower.line(other))
                size += len(pieces[-1])
            await stream.send(pieces)
