"""Honest clients: pods are made at a steady rate and seen bound, and nodes renew their leases."""

import asyncio
import json
import re
import ssl
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

LEASE_S = 10.0
LATE_S = 5.0
"""A pod that is not bound by then is an error."""
RENEW_S = 2.0
CONNECTIONS = 64
"""Creates wait for the disk together."""
_BOUND = re.compile(rb'"name":"(h-\d+)".*"nodeName":"')


@dataclass
class Seen:
    """What the honest clients measured since the last `take`."""

    bound_s: list[float] = field(default_factory=list)
    renewed_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    lost: int = 0
    """Leases that were not renewed in time."""


class Caller:
    """One connection with one request at a time, made again when the server closes it."""

    def __init__(self, port: int, tls: ssl.SSLContext) -> None:
        self._port = port
        self._tls = tls
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n"
        data = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        fresh = self._streams is None
        try:
            return await self._exchange(data)
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            if fresh:
                raise
        return await self._exchange(data)  # the server had closed an idle connection

    async def _exchange(self, data: bytes) -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(
                "127.0.0.1", self._port, ssl=self._tls, server_hostname="127.0.0.1", limit=1 << 22
            )
        reader, writer = self._streams
        writer.write(data)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        return int(head[9:12]), await reader.readexactly(int(length[1]) if length else 0)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


def pod(name: str) -> bytes:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}
    metadata = {"name": name, "labels": {"app": "honest"}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    return json.dumps(body).encode()


class Honest:
    """`rate` pods a second in the namespace `honest`, and the leases of `nodes`."""

    def __init__(
        self, port: int, user: ssl.SSLContext, nodes: Sequence[ssl.SSLContext], rate: float, late_s: float = LATE_S
    ) -> None:
        self._late_s = late_s
        self._port = port
        self._user = user
        self._nodes = nodes
        self._rate = rate
        self._asked: dict[str, float] = {}
        self._due: deque[tuple[str, float]] = deque()
        self._more = asyncio.Event()
        self._count = 0
        self.seen = Seen()

    def take(self) -> Seen:
        """What was seen so far, and begin anew. Pods that wait for too long count as errors."""
        seen, self.seen = self.seen, Seen()
        now = time.perf_counter()
        late = [name for name, asked in self._asked.items() if now - asked > self._late_s]
        for name in late:
            del self._asked[name]
        seen.errors += [f"{name} is not bound" for name in late]
        return seen

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch())
            for _ in range(CONNECTIONS):
                tasks.create_task(self._make())
            for number, tls in enumerate(self._nodes):
                tasks.create_task(self._renew(number, tls))
            await self._pace()

    async def _pace(self) -> None:
        """Open loop: a slow server does not slow down the demand."""
        due = time.perf_counter()
        while True:
            due += 1.0 / self._rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            self._count += 1
            self._due.append((f"h-{self._count}", due))
            self._more.set()

    async def _make(self) -> None:
        caller = Caller(self._port, self._user)
        while True:
            while not self._due:
                self._more.clear()
                await self._more.wait()
            name, due = self._due.popleft()
            self._asked[name] = due
            try:
                code, body = await caller.ask("POST", "/api/v1/namespaces/honest/pods", pod(name))
                if code != 201:
                    self._failed(name, f"{code} {body[:200]!r}")
            except (OSError, asyncio.IncompleteReadError) as error:
                self._failed(name, repr(error))

    def _failed(self, name: str, text: str) -> None:
        self._asked.pop(name, None)
        self.seen.errors.append(f"{name}: {text}")

    async def _watch(self) -> None:
        path = "/api/v1/namespaces/honest/pods?watch=true&timeoutSeconds=3600"
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self._port, ssl=self._user, server_hostname="127.0.0.1", limit=1 << 24
        )
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        while line := await reader.readline():
            found = _BOUND.search(line) if b'"nodeName":"' in line else None
            if found:
                asked = self._asked.pop(found[1].decode(), None)
                if asked is not None:
                    self.seen.bound_s.append(time.perf_counter() - asked)
        self.seen.errors.append("the watch ended")

    async def _renew(self, number: int, tls: ssl.SSLContext) -> None:
        caller, name = Caller(self._port, tls), f"ext-{number}"
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        spec = {"holderIdentity": name, "leaseDurationSeconds": int(LEASE_S)}
        body = json.dumps({"metadata": {"name": name}, "spec": spec}).encode()
        await asyncio.sleep(RENEW_S * number / max(1, len(self._nodes)))
        method, renewed = "POST", time.perf_counter()
        while True:
            began = time.perf_counter()
            try:
                code, said = await caller.ask(method, path, body)
            except (OSError, asyncio.IncompleteReadError) as error:
                code, said = 0, repr(error).encode()
            now = time.perf_counter()
            stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            body = json.dumps({"spec": {**spec, "renewTime": stamp}}).encode()
            if code in (200, 201):
                if method == "POST":
                    method, path = "PATCH", f"{path}/{name}"
                self.seen.renewed_s.append(now - began)
                self.seen.lost += now - renewed > LEASE_S
                renewed = now
            else:
                self.seen.errors.append(f"the lease of {name}: {code} {said[:200]!r}")
            await asyncio.sleep(max(0.0, began + RENEW_S - now))


def quantile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else float("inf")


def certificate(directory: Path, name: str) -> ssl.SSLContext:
    tls = ssl.create_default_context(cafile=str(directory / "pki" / "ca.crt"))
    tls.load_cert_chain(directory.parent / f"{name}.pem")
    return tls
