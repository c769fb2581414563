"""One hostile client of each kind, in a process: python -m server.hostile.clients KIND PORT DIRECTORY SECONDS

They come from 127.0.0.2, as from another machine (those who hold the most connections from ten). They share the cores
with the server and with the honest clients, and leave these the larger part. Each keeps up its number of connections,
and opens a new one when one is closed. The file `hostile.json` says what it did: `Effort`.
"""

import asyncio
import json
import os
import ssl
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import count, cycle
from pathlib import Path
from typing import Any, cast

import uvloop

ADDRESSES = [f"127.0.0.{number}" for number in range(2, 12)]
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
HEAD = "HTTP/1.1\r\nHost: 127.0.0.1\r\n"
NUMBERS = count()
EFFORT = "hostile.json"
NICE = 10
"""They share the cores with the server and the honest clients; real ones would have their own."""


@dataclass
class Effort:
    """What a hostile client did, so that one that hardly came to attack is not taken for a server that holds."""

    held: int = 0
    """Connections that it had open, at most."""
    opened: int = 0
    """Connections in all."""
    sent: int = 0
    """Pieces of requests, or requests."""
    cpu_s: float = 0.0

    def write(self, directory: Path) -> None:
        new = directory / f"{EFFORT}.new"
        self.cpu_s = time.process_time()
        new.write_text(json.dumps(asdict(self)))
        new.replace(directory / EFFORT)


def read_effort(directory: Path) -> Effort:
    return Effort(**json.loads((directory / EFFORT).read_text()))


DONE = Effort()


class Hostile(asyncio.Protocol):
    """A connection. It says `first`, and then what `next` returns: after each answer, or each `pace` seconds."""

    first: bytes = b""
    reads = True
    pace = 0.0
    """0: say nothing more."""
    after_answers = False
    addresses = 1
    secure = True
    """Whether it performs the TLS handshake."""

    def __init__(self, closed: Callable[[], None]) -> None:
        self._closed = closed
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if not self.reads:
            self._transport.pause_reading()
        if self.first:
            self._send(self.first)
        if self.pace:
            asyncio.get_running_loop().call_later(self.pace, self._again)
        if self.after_answers:
            self._send(self.next())

    def next(self) -> bytes:
        return b""

    def data_received(self, data: bytes) -> None:
        # A list comes in many pieces, and its last one is the end of chunks.
        if self.after_answers and (data.startswith(b"HTTP/1.1 ") or data.endswith(b"0\r\n\r\n")):
            self._write()

    def _again(self) -> None:
        if self._write():
            asyncio.get_running_loop().call_later(self.pace, self._again)

    def _write(self) -> bool:
        if self._transport is None or self._transport.is_closing():
            return False
        self._send(self.next())
        return True

    def _send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)
            DONE.sent += 1

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._closed()


class StalledBodies(Hostile):
    first = f"POST {REVIEWS} {HEAD}Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{{".encode()


class SlowReaders(Hostile):
    first = f"GET /openapi/v3/api/v1 {HEAD}\r\nGET /api/v1/pods {HEAD}\r\n".encode() * 3
    reads = False


class IdleConnections(Hostile):
    """It does not even begin its handshake: nothing is cheaper for the client, and the server has to wait."""

    addresses = 10
    secure = False


class HeaderFloods(Hostile):
    first = f"GET / {HEAD}".encode()
    pace = 0.5

    def next(self) -> bytes:
        return b"X-%d: %b\r\n" % (next(NUMBERS), b"x" * 30_000)


class PathFloods(Hostile):
    after_answers = True

    def next(self) -> bytes:
        return f"GET /{next(NUMBERS)}/{'p' * 2_000}?q={'x' * 30_000} {HEAD}\r\n".encode()


class UnreadWatches(Hostile):
    first = f"GET /api/v1/pods?watch=true {HEAD}\r\n".encode()
    reads = False


class HugeLists(Hostile):
    after_answers = True

    def next(self) -> bytes:
        packed = "Accept-Encoding: gzip\r\n" if next(NUMBERS) % 2 else ""
        return f"GET /api/v1/configmaps {HEAD}{packed}\r\n".encode()

    def data_received(self, data: bytes) -> None:
        if data.endswith(b"0\r\n\r\n"):
            self._write()


class FailingLogins(Hostile):
    after_answers = True

    def next(self) -> bytes:
        claims = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMuY2x1c3Rlci5sb2NhbCJ9"
        return f"GET /api/v1/pods {HEAD}Authorization: Bearer {claims}.{next(NUMBERS):086d}\r\n\r\n".encode()


class RefusedRequests(Hostile):
    after_answers = True

    def next(self) -> bytes:
        return f"GET /api/v1/namespaces/n-{next(NUMBERS)}/secrets {HEAD}\r\n".encode()


class Reconnects(Hostile):
    """A handshake, and away again."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).close()


NOBODY, MALLORY, READER = "", "mallory", "reader"
KINDS: dict[str, tuple[type[Hostile], int, str]] = {
    "stalled bodies": (StalledBodies, 1_000, MALLORY),
    "slow readers": (SlowReaders, 500, READER),
    "idle connections": (IdleConnections, 10_000, NOBODY),
    "header floods": (HeaderFloods, 200, NOBODY),
    "path floods": (PathFloods, 100, NOBODY),
    "unread watches": (UnreadWatches, 500, READER),
    "huge lists": (HugeLists, 20, READER),
    "failing logins": (FailingLogins, 100, NOBODY),
    "refused requests": (RefusedRequests, 100, MALLORY),
    "reconnects": (Reconnects, 20, NOBODY),
}
"""The connection, how many at a time, and as whom."""
OPENED_PER_S = 300
"""New connections: their handshakes take as much of this process' time as of the server's."""
OPENED_PER_S_PLAIN = 2_000


async def attack(kind: str, port: int, directory: Path, seconds: float) -> None:
    make, most, user = KINDS[kind]
    tls = ssl.create_default_context(cafile=str(directory / "pki" / "ca.crt"))
    if user:
        tls.load_cert_chain(directory.parent / f"{user}.pem")
    secure: dict[str, Any] = {"ssl": tls, "server_hostname": "127.0.0.1"} if make.secure else {}
    per_s = OPENED_PER_S if make.secure else OPENED_PER_S_PLAIN
    addresses = cycle(ADDRESSES[: make.addresses])
    loop, there, opening = asyncio.get_running_loop(), 0, 0

    def closed() -> None:
        nonlocal there
        there -= 1

    async def connect() -> None:
        nonlocal there, opening
        there += 1
        opening += 1
        try:
            await loop.create_connection(
                lambda: make(closed), "127.0.0.1", port, local_addr=(next(addresses), 0), **secure
            )
            DONE.opened += 1
        except OSError:
            there -= 1
        finally:
            opening -= 1

    end = loop.time() + seconds
    async with asyncio.TaskGroup() as tasks:
        while loop.time() < end:
            for _ in range(min(per_s // 10, most - there)):
                tasks.create_task(connect())
            await asyncio.sleep(0.1)
            DONE.held = max(DONE.held, there - opening)
            DONE.write(directory.parent)
        os._exit(0)  # without a TLS close, as such clients leave


if __name__ == "__main__":
    os.nice(NICE)
    uvloop.run(attack(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4])))
