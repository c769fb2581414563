"""The lines of a streaming response, such as a watch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import aiohttp

from situate.kube.errors import LOST, TOO_LARGE, ApiError

LINE_BYTES: Final = 64 << 20
"""The longest line; etcd stores objects of up to 1.5 MB."""


class LineStream:
    """`async for line in lines`. Ends when the server ends it.

    Raises ApiError when the connection breaks (LOST), when nothing comes for too long (TIMEOUT) and when a line is too
    long (TOO_LARGE). Skips empty lines. Time and memory are linear in the size of the response.
    """

    def __init__(self, response: aiohttp.ClientResponse, failed: Callable[[Exception], ApiError]) -> None:
        self._content = response.content
        self._failed = failed
        self._begun: list[bytes] = []
        self._begun_bytes = 0
        self._ready: deque[bytes] = deque()

    def __aiter__(self) -> LineStream:
        return self

    async def __anext__(self) -> bytes:
        """One line, without its newline."""
        if not self._ready:
            self._ready.extend(await self.batch())
            if not self._ready:
                raise StopAsyncIteration
        return self._ready.popleft()

    async def batch(self) -> list[bytes]:
        """All complete lines that have arrived, at least one; none at the end. Do not mix with `async for`."""
        while True:
            try:
                data = await self._content.readany()
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise self._failed(error) from None
            if not data:
                if self._begun:
                    raise ApiError(0, LOST, "the stream ended in the middle of a line")
                return []
            if lines := self._split(data):
                return lines

    def _split(self, data: bytes) -> list[bytes]:
        lines = data.split(b"\n")
        last = lines.pop()
        if lines and self._begun:
            lines[0] = b"".join((*self._begun, lines[0]))
            self._begun.clear()
            self._begun_bytes = 0
        if last:
            self._begun.append(last)
            self._begun_bytes += len(last)
            if self._begun_bytes > LINE_BYTES:
                raise ApiError(0, TOO_LARGE, f"a line of the stream is longer than {LINE_BYTES} bytes")
        return lines if all(lines) else [line for line in lines if line]
