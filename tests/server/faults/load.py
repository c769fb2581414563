"""Clients that write, watch and read while the server is killed under them, and note every call with its answer."""

import asyncio
import contextlib
import json
import random
import ssl
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp

from server.faults.history import Event, Read, Watched, Write
from server.tls_session import TlsSession

NAMESPACE = "default"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
REQUEST_S = 10.0
RETRY_S = 0.01
READ_EVERY_S = 0.1
BROKEN = (aiohttp.ClientError, ConnectionError, TimeoutError, asyncio.IncompleteReadError)
EVEN = "even"
FULL = 507
REFUSED = (404, 409, FULL)


class Clients:
    """`url` says where the server is now: it changes when the server is started again."""

    def __init__(self, url: Callable[[], str], tls: ssl.SSLContext) -> None:
        self._url = url
        self.up = asyncio.Event()
        """Whether it makes sense to try: who was cut off waits for this."""
        self.up.set()
        self._tls = tls
        self.writes: list[Write] = []
        self.reads: list[Read] = []
        self.watches: list[Watched] = []
        self.acknowledged = 0
        self.full = 0
        """Writes that were refused because there was no room."""
        self.odd: list[str] = []
        """Answers that nobody should get."""
        self._session: TlsSession | None = None

    async def __aenter__(self) -> "Clients":
        self._session = TlsSession(self._tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        if self._session is None:
            raise RuntimeError("not entered")
        limit = aiohttp.ClientTimeout(total=REQUEST_S)
        async with self._session.http.request(method, self._url() + path, json=body, timeout=limit) as answer:
            found: dict[str, Any] = json.loads(await answer.read())
            return answer.status, found

    # ── writers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def write_for_ever(self, number: int) -> None:
        """Objects of its own, and some that it shares with the others, who are in each other's way there."""
        dice = random.Random(number)
        names = [f"own-{number}-{at}" for at in range(3)] + [f"shared-{at}" for at in range(4)]
        known: dict[str, tuple[int, str] | None] = dict.fromkeys(names)
        for count in range(1 << 30):
            key = dice.choice(names)
            try:
                await self._write(number, key, f"{number}.{count}", known, dice)
            except BROKEN:
                await self._next_try()

    async def _write(
        self, number: int, key: str, token: str, known: dict[str, tuple[int, str] | None], dice: random.Random
    ) -> None:
        now = known[key]
        kind = "create" if now is None else "delete" if dice.random() < 0.15 else "update"
        expected, there = now or (0, "")
        if kind == "delete":
            token = there
        request = _request(kind, key, token, expected)
        sent = time.monotonic()
        code, outcome = 0, "unknown"
        body: dict[str, Any] = {}
        try:
            code, body = await self.ask(*request)
            outcome = "acknowledged" if code in (200, 201) else "refused" if code in REFUSED else "odd"
            self.full += code == FULL
        finally:
            answered = time.monotonic()
            revision = int(body["metadata"]["resourceVersion"]) if code in (200, 201) and kind != "delete" else 0
            self.writes.append(Write(number, kind, key, token, expected, sent, answered, revision, outcome))
        if outcome == "acknowledged":
            self.acknowledged += 1
            known[key] = None if kind == "delete" else (revision, token)
        elif outcome == "refused":
            known[key] = await self._found(key)
        else:
            self.odd.append(f"{kind} was answered with {code}: {body}")

    async def _found(self, key: str) -> tuple[int, str] | None:
        code, body = await self.ask("GET", f"{MAPS}/{key}")
        return (int(body["metadata"]["resourceVersion"]), body["data"]["token"]) if code == 200 else None

    # ── watchers ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def watch_for_ever(self, watched: Watched, query: str, since: int) -> None:
        """From its last revision on, each time that the connection breaks."""
        while True:
            try:
                async for line in self._lines(f"{MAPS}?watch=1&resourceVersion={since}{query}"):
                    since = self._heard(watched, json.loads(line), since)
            except BROKEN:
                await self._next_try()
            watched.resumed += 1

    def _heard(self, watched: Watched, told: dict[str, Any], since: int) -> int:
        if told["type"] == "ERROR":
            watched.expired += told["object"].get("code") == 410
            self.odd.append(f"a watch was told {told['object']}")
            return since
        metadata = told["object"]["metadata"]
        revision = int(metadata["resourceVersion"])
        if told["type"] != "BOOKMARK":
            key, token = metadata["name"], told["object"]["data"]["token"]
            watched.events.append(Event(told["type"], revision, key, token))
        return revision

    async def _lines(self, path: str) -> AsyncIterator[bytes]:
        if self._session is None:
            raise RuntimeError("not entered")
        limit = aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_S)
        async with self._session.http.get(self._url() + path, timeout=limit) as answer:
            if answer.status != 200:
                self.odd.append(f"a watch was answered with {answer.status}: {await answer.text()}")
                return
            rest = b""
            async for piece in answer.content.iter_any():
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    yield line

    # ── readers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def read(self) -> int:
        """Everything, as it is now; the revision."""
        _, body = await self.ask("GET", MAPS)
        found = {
            one["metadata"]["name"]: (int(one["metadata"]["resourceVersion"]), one["data"]["token"])
            for one in body["items"]
            if "token" in one.get("data", {})
        }
        revision = int(body["metadata"]["resourceVersion"])
        self.reads.append(Read(revision, found))
        return revision

    async def read_for_ever(self) -> None:
        while True:
            with contextlib.suppress(*BROKEN):
                await self.read()
            await asyncio.sleep(READ_EVERY_S)

    async def _next_try(self) -> None:
        await asyncio.sleep(RETRY_S)
        await self.up.wait()


def is_even(key: str) -> bool:
    return int(key[-1]) % 2 == 0


def _request(kind: str, key: str, token: str, expected: int) -> tuple[str, str, Any]:
    if kind == "delete":
        return "DELETE", f"{MAPS}/{key}", {"preconditions": {"resourceVersion": str(expected)}}
    metadata = {"name": key, "labels": {EVEN: str(is_even(key)).lower()}}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"token": token}}
    if kind == "create":
        return "POST", MAPS, body
    return "PUT", f"{MAPS}/{key}", body | {"metadata": {**metadata, "resourceVersion": str(expected)}}
