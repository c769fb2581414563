"""Serves watches: events as lines of JSON, several in one write when they come together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus

from situate.server.errors import StatusError
from situate.server.http import query
from situate.server.http.negotiation import JSON, refuse_yaml
from situate.server.http.ports import ComputedResources, EventStream
from situate.server.http.rendering import Renderer
from situate.server.http.request import ApiRequest
from situate.server.http.request_state import RequestState
from situate.server.http.responses import Response, encode
from situate.server.http.settings import Limits
from situate.server.http.streams import ChunkedStream, OpenStreams
from situate.server.registry.registry import Registry


class WatchHandler:
    def __init__(self, registry: Registry, streams: OpenStreams, limits: Limits, random: Callable[[], float]) -> None:
        """`random` returns numbers from 0 to 1, so that watches which start together do not end together."""
        self._registry = registry
        self._streams = streams
        self._limits = limits
        self._random = random

    async def handle(
        self, request: ApiRequest, renderer: Renderer, headers: str, computed: ComputedResources | None = None
    ) -> Response:
        """`computed`: the source, if the resource is computed and not stored."""
        refuse_yaml(request.http.headers.get("Accept", ""))
        options = query.watch_options(request.query)
        if not options.timeout_s:
            options = replace(options, timeout_s=int(self._limits.watch_least_s * (1.0 + self._random())))
        try:
            source = self._registry if computed is None else computed
            events: EventStream = await source.watch(request.target, options)
        except StatusError as error:
            if error.code != HTTPStatus.GONE:
                raise
            return await self._expired(request, error, headers)
        try:
            # Clients wait for the headers before they read.
            async with self._streams.open(request.http, JSON, headers) as stream:
                await self._follow(events, stream, renderer, request.state)
        finally:
            await events.aclose()
        return stream.finish()

    async def _expired(self, request: ApiRequest, error: StatusError, headers: str) -> Response:
        """Clients expect a 410 as an event of the stream, not as the status of the response."""
        stream = ChunkedStream(request.http, self._limits.slow_s)
        stream.start(JSON, headers)
        await stream.send((encode({"type": "ERROR", "object": error.status()}), b"\n"))
        return stream.finish()

    async def _follow(
        self, events: EventStream, stream: ChunkedStream, renderer: Renderer, state: RequestState
    ) -> None:
        most, flows = self._limits.batch_bytes, state.flows
        async for event in events:
            await flows.take_turn(state.level, state.flow)
            pieces, size = [renderer.line(event)], 0
            for other in events.ready():
                if size > most:
                    await stream.send(pieces)
                    await flows.take_turn(state.level, state.flow)
                    pieces, size = [], 0
                pieces.append(renderer.line(other))
                size += len(pieces[-1])
            await stream.send(pieces)
