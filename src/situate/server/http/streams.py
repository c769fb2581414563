"""Chunked responses for watches and logs, to clients that may be slow or gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Final, Protocol

from aiohttp import web

from situate.server.http.connection import Connection
from situate.server.http.responses import Response, head

LAST: Final = b"0\r\n\r\n"


class ChunkedStream:
    """One chunked response. `stop`, and a client that disconnects, cancel the task that writes it."""

    def __init__(self, request: web.BaseRequest, slow_s: float) -> None:
        self._request = request
        self._slow_s = slow_s
        self._task: asyncio.Task[object] | None = asyncio.current_task()
        self._connection = request.protocol if isinstance(request.protocol, Connection) else None
        self.stopped = False
        """By the server or because the client left: the cancellation that follows is expected."""
        self.gone = False
        self.started = False
        if self._connection is not None:
            self._connection.on_lost = self._lost

    def _lost(self) -> None:
        self.gone = True
        self.stop()

    def stop(self) -> None:
        if not self.stopped:
            self.stopped = True
            if self._task is not None:
                self._task.cancel()

    def start(self, content_type: str, headers: str = "", code: int = HTTPStatus.OK) -> None:
        closing = "" if self._request.keep_alive else "Connection: close\r\n"
        lines = f"Content-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n{closing}"
        self._write(head(code, f"{lines}Cache-Control: no-cache, private\r\n{headers}"))
        self.started = True

    async def send(self, pieces: Sequence[bytes]) -> None:
        """Send one chunk. Raises ConnectionError if the client is gone, or has read nothing for too long."""
        size = sum(map(len, pieces))
        if not size:
            return
        self._write(b"".join((b"%x\r\n" % size, *pieces, b"\r\n")))
        if self._connection is not None and self._connection.paused:
            await self._connection.drained(self._request.writer, self._slow_s)

    def abort(self) -> None:
        """Drop the connection and everything not yet sent."""
        if self._request.transport is not None:
            self._request.transport.abort()

    def _write(self, data: bytes) -> None:
        transport = self._request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self._request.writer.output_size += len(data)
        transport.write(data)

    def finish(self) -> Response:
        """End the body, if the client is still there, and return the response for aiohttp."""
        response = Response(HTTPStatus.OK)
        response.written = True
        transport = self._request.transport
        if transport is not None and not transport.is_closing():
            transport.write(LAST)
        return response

    def detach(self) -> None:
        """Ignore the end of the connection from now on."""
        if self._connection is not None:
            self._connection.on_lost = None

    def cancelled(self) -> bool:
        """In `except CancelledError`: whether `stop` cancelled the task, so that the response can be finished."""
        if self.stopped and self._task is not None:
            self._task.uncancel()
            return True
        return False


class Stoppable(Protocol):
    def stop(self) -> None:
        """End soon."""


class OpenStreams:
    """The streams being sent, so that the server can end them when it stops."""

    def __init__(self, slow_s: float) -> None:
        self._slow_s = slow_s
        self._open: dict[Stoppable, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def stop(self) -> None:
        for stream in list(self._open):
            stream.stop()

    @contextmanager
    def tracked(self, stream: Stoppable) -> Iterator[None]:
        """Stop this one, too, when the server stops."""
        self._open[stream] = None
        try:
            yield
        finally:
            self._open.pop(stream, None)

    @asynccontextmanager
    async def open(
        self, request: web.BaseRequest, content_type: str, headers: str, code: int = HTTPStatus.OK
    ) -> AsyncIterator[ChunkedStream]:
        """Start a stream. The block ends quietly when the client leaves or the server stops; then `finish` it."""
        stream = ChunkedStream(request, self._slow_s)
        try:
            with self.tracked(stream):
                stream.start(content_type, headers, code)
                yield stream
        except asyncio.CancelledError:
            if not stream.cancelled():
                raise
        except ConnectionError:
            if not stream.started:  # the block has not begun, so it cannot end
                raise
        finally:
            stream.detach()
