"""A kubelet on loopback that answers as a test tells it to, and a way to it without TLS."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from situate.server.errors import StatusError
from situate.server.kubelet.connection import NodeConnection

Answer = Callable[["Asked"], Awaitable[None]]
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\nX-Mine: 1\r\n\r\n"


@dataclass
class Asked:
    """One request."""

    first: str
    headers: dict[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@dataclass
class Kubelet:
    answer: Answer
    asked: list[Asked] = field(default_factory=list)
    port: int = 0
    purposes: list[tuple[str, str]] = field(default_factory=list)

    async def connect(self, name: str, purpose: str) -> NodeConnection:
        self.purposes.append((name, purpose))
        if name == "gone":
            raise StatusError(503, "ServiceUnavailable", "it is gone")
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        return NodeConnection(reader, writer, f"127.0.0.1:{self.port}")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            writer.close()
            return
        first, *lines = head.decode().strip().split("\r\n")
        pairs = (line.split(": ", 1) for line in lines)
        asked = Asked(first, {key.lower(): value for key, value in pairs}, reader, writer)
        self.asked.append(asked)
        try:
            await self.answer(asked)
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def kubelet(answer: Answer) -> AsyncIterator[Kubelet]:
    made = Kubelet(answer)
    server = await asyncio.start_server(made._serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


async def echo(asked: Asked) -> None:
    """Switch protocols, and send back what comes, until the end of it."""
    asked.writer.write(SWITCHED)
    while data := await asked.reader.read(65_536):
        asked.writer.write(data)
        await asked.writer.drain()


def saying(text: bytes) -> Answer:
    async def answer(asked: Asked) -> None:
        asked.writer.write(text)
        await asked.writer.drain()

    return answer
