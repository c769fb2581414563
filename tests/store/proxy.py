"""A door between our client and etcd, that loses requests or answers, or holds requests back, when it is told to."""

import asyncio
from contextlib import suppress
from typing import Self

CHUNK = 65_536


class Proxy:
    """Passes bytes on. `deafen`: what etcd answers is thrown away.

    `hold`: on the connections that there are, what the client says waits until `release`. What it says after a request
    that has some bytes in it is lost, as it would take back that request. New connections are not held.
    """

    def __init__(self, endpoint: str) -> None:
        host, _, port = endpoint.partition(":")
        self._there = (host, int(port))
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self._until = b""
        self._holding: set[asyncio.StreamWriter] = set()
        self._deaf = False
        self._writers: list[asyncio.StreamWriter] = []
        self._to_etcd: list[asyncio.StreamWriter] = []
        self.held = asyncio.Event()
        self.unheard = asyncio.Event()
        self.answered = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._met, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in [*self._writers, *self._to_etcd]:
            writer.close()

    @property
    def endpoint(self) -> str:
        if self._server is None:
            raise RuntimeError("not started")
        host, port = self._server.sockets[0].getsockname()
        return f"{host}:{port}"

    def hold(self, until: bytes) -> None:
        self._until = until
        self._holding = set(self._to_etcd)
        self._passing.clear()

    def release(self) -> None:
        self._passing.set()

    def deafen(self) -> None:
        self._deaf = True

    def hear(self) -> None:
        self._deaf = False

    def lose_held(self) -> None:
        for task in self._tasks:
            task.cancel()

    def cut_clients(self) -> None:
        """The client finds its connection gone; what it sent is still on its way."""
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        there_reader, there_writer = await asyncio.open_connection(*self._there)
        self._to_etcd.append(there_writer)
        for task in (
            asyncio.create_task(self._requests(reader, there_writer)),
            asyncio.create_task(self._answers(there_reader, writer)),
        ):
            self._tasks.add(task)

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                if writer in self._holding:
                    await self._held(data, reader, writer)
                    return
                writer.write(data)
                await writer.drain()

    async def _held(self, data: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while self._until not in data:
            data += await reader.read(CHUNK)
        self.held.set()
        await self._passing.wait()
        writer.write(data)
        await writer.drain()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                self.answered.set()
                if self._deaf:
                    self.unheard.set()
                    continue
                writer.write(data)
                await writer.drain()
