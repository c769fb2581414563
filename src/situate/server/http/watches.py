"""Watches: events of the registry as lines of JSON, several in one write when they come together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus

from situate.server.errors import StatusError
from situate.server.http import query
from situate.server.http.negotiation import JSON
from situate.server.http.ports import ComputedResources, EventStream
from situate.server.http.rendering import Renderer
from situate.server.http.request import ApiRequest
from situate.server.http.responses import Response, encode
from situate.server.http.settings import Limits
from situate.server.http.streams import ChunkedStream
from situate.server.registry.registry import Registry

__all__ = ["WatchHandler"]


class WatchHandler:
    """All that are open, so that they can be ended when the server stops."""

    def __init__(self, registry: Registry, limits: Limits, dice: Callable[[], float]) -> None:
        """`dice` gives numbers from 0 to 1: watches that began together must not end together."""
        self._registry = registry
        self._limits = limits
        self._dice = dice
        self._open: dict[ChunkedStream, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def stop(self) -> None:
        for stream in list(self._open):
            stream.stop()

    async def handle(
        self, request: ApiRequest, renderer: Renderer, headers: str, computed: ComputedResources | None = None
    ) -> Response:
        """`computed`: who works out what is asked for, if it is not the registry's."""
        options = query.watch_options(request.query)
        if not options.timeout_s:
            options = replace(options, timeout_s=int(self._limits.watch_least_s * (1.0 + self._dice())))
        try:
            source = self._registry if computed is None else computed
            events: EventStream = await source.watch(request.target, options)
        except StatusError as error:
            if error.code != HTTPStatus.GONE:
                raise
            return await self._expired(request, error, headers)
        stream = ChunkedStream(request.http, self._limits.slow_s)
        self._open[stream] = None
        try:
            # Clients wait for the headers before they begin to read.
            stream.start(JSON, headers)
            await self._follow(events, stream, renderer)
        except asyncio.CancelledError:
            if not stream.cancelled():
                raise
        except ConnectionError:
            pass
        finally:
            self._open.pop(stream, None)
            stream.detach()
            await events.aclose()
        return stream.finish()

    async def _expired(self, request: ApiRequest, error: StatusError, headers: str) -> Response:
        """Clients look for this in the stream, not in the answer's code."""
        stream = ChunkedStream(request.http, self._limits.slow_s)
        stream.start(JSON, headers)
        await stream.send((encode({"type": "ERROR", "object": error.status()}), b"\n"))
        return stream.finish()

    async def _follow(self, events: EventStream, stream: ChunkedStream, renderer: Renderer) -> None:
        most = self._limits.batch_bytes
        async for event in events:
            pieces, size = [renderer.line(event)], 0
            for other in events.ready():
                if size > most:
                    await stream.send(pieces)
                    pieces, size = [], 0
                pieces.append(renderer.line(other))
                size += len(pieces[-1])
            await stream.send(pieces)
