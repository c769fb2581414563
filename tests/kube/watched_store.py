"""A store with history that is listed and watched in process, by dice or by script, as badly as an API server may.

`WatchedStore` is the truth and its history. `Faulty` is a client of it: each request goes to some replica, which may
lag, and may be refused, cut, answered with rubbish, or expired on the way. What Kubernetes promises it keeps: events of
a watch come in order, once, and without a gap; a list is of one moment, and no older than was asked for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from situate.kube.errors import LOST, TIMEOUT, UNREACHABLE, ApiError

Object = dict[str, Any]
NAMES = ("a", "b", "c", "d", "e", "f")


def status(code: int, reason: str) -> Object:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": f"said {reason}"}


def frame(kind: str, found: object) -> bytes:
    return json.dumps({"type": kind, "object": found}).encode()


def bookmark(version: int, *, listed: bool = False) -> bytes:
    meta: Object = {"resourceVersion": str(version)}
    if listed:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return frame("BOOKMARK", {"kind": "Pod", "metadata": meta, "spec": {"containers": None}})


@dataclass
class WatchedStore:
    version: int = 10
    compacted: int = 0
    objects: dict[str, Object] = field(default_factory=dict)
    history: list[tuple[int, str, Object]] = field(default_factory=list)
    uids: int = 0

    def write(self, dice: Random) -> None:
        """Something of somebody: a pod comes, changes, goes; or another kind is written, and only the version moves."""
        name = dice.choice(NAMES)
        before = self.objects.get(name)
        if dice.random() < 0.2:
            self.version += 1
        elif before is None:
            self.uids += 1
            self._put("ADDED", name, f"uid-{self.uids}")
        elif dice.random() < 0.4:
            self.delete(name)
        else:
            self._put("MODIFIED", name, before["metadata"]["uid"])

    def delete(self, name: str) -> None:
        self.version += 1
        gone = self.objects.pop(name)
        meta = {**gone["metadata"], "resourceVersion": str(self.version)}
        self.history.append((self.version, "DELETED", {**gone, "metadata": meta}))

    def _put(self, kind: str, name: str, uid: str) -> None:
        self.version += 1
        meta = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(self.version)}
        made = {"metadata": {**meta, "labels": {"written": str(self.version)}}, "spec": {"containers": []}}
        self.objects[name] = made
        self.history.append((self.version, kind, made))

    def at(self, version: int) -> dict[str, Object]:
        """All objects, as they were then."""
        found: dict[str, Object] = {}
        for when, kind, one in self.history:
            if when > version:
                break
            found.pop(one["metadata"]["name"], None)
            if kind != "DELETED":
                found[one["metadata"]["name"]] = one
        return found


@dataclass
class Faulty:
    """Answers by dice until `calm`."""

    store: WatchedStore
    dice: Random
    writes: int
    """How many writes are still to come; they happen while watches are open."""
    streams_lists: bool = True
    gentle: bool = False
    """Only refuses and cuts: nothing that leads to another list."""
    calm: bool = False
    requests: int = 0
    broken: int = 0
    """How often it misbehaved."""

    def now(self) -> int:
        """The moment a replica is at: often the last, sometimes a while ago, never before what is compacted."""
        if self.calm or self.dice.random() < 0.6:
            return self.store.version
        return max(self.store.compacted, self.store.version - self.dice.randint(0, 6))

    def _live(self) -> None:
        for _ in range(self.dice.randint(0, 3)):
            if self.writes:
                self.writes -= 1
                self.store.write(self.dice)
        if not self.calm and not self.gentle and self.dice.random() < 0.08:
            self.store.compacted = self.store.version - self.dice.randint(0, 3)

    def _may_refuse(self) -> None:
        if self.calm or self.dice.random() > 0.25:
            return
        self.broken += 1
        code, reason = self.dice.choice(
            [(0, UNREACHABLE), (0, LOST), (429, "TooManyRequests"), (500, "InternalError")]
            + [(503, "ServiceUnavailable"), (504, "Timeout"), (403, "Forbidden"), (401, "Unauthorized")]
        )
        raise ApiError(code, reason, "refused", retry_after_s=self.dice.choice([None, 1.0]), sent=reason != UNREACHABLE)

    async def request(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None, timeout_s: float = 0
    ) -> bytes:
        await asyncio.sleep(0)
        self.requests += 1
        self._live()
        self._may_refuse()
        params = params or {}
        offset, _, at = params.get("continue", "0@").partition("@")
        version = int(at) if at else self.store.version
        if version < self.store.compacted:
            raise ApiError(410, "Expired", "the continue token is too old")
        if not self.calm and self.dice.random() < 0.05:
            self.broken += 1
            return self.dice.choice([b"<html>", b"{}", b'{"metadata":{},"items":[]}'])
        found = [one for _, one in sorted(self.store.at(version).items())]
        first, limit = int(offset), self.dice.choice([1, 2, 5]) if "limit" in params else len(found)
        meta = {"resourceVersion": str(version)}
        if first + limit < len(found):
            meta["continue"] = f"{first + limit}@{version}"
        return json.dumps({"metadata": meta, "items": found[first : first + limit]}).encode()

    @asynccontextmanager
    async def stream(
        self, path: str, *, params: Mapping[str, str] | None = None, idle_s: float
    ) -> AsyncIterator[FaultyLines]:
        await asyncio.sleep(0)
        self.requests += 1
        self._live()
        self._may_refuse()
        params = params or {}
        since = int(params.get("resourceVersion") or 0)
        if params.get("sendInitialEvents") != "true":
            if since < self.store.compacted and self.dice.random() < 0.5:
                raise ApiError(410, "Expired", "too old")
            yield FaultyLines(self, since, [])
            return
        if not self.streams_lists:
            raise ApiError(422, "Invalid", "sendInitialEvents is forbidden")
        now = self.now() if since else self.store.version  # without a version, of the store itself
        if now < since:
            raise ApiError(504, "Timeout", "Too large resource version")
        first = [frame("ADDED", one) for one in self.store.at(now).values()]
        self.dice.shuffle(first)
        yield FaultyLines(self, now, [*first, bookmark(now, listed=True)])


class FaultyLines:
    def __init__(self, faulty: Faulty, since: int, first: list[bytes]) -> None:
        self._faulty, self._since, self._first = faulty, since, first

    async def batch(self) -> list[bytes]:
        await asyncio.sleep(0)
        faulty, dice = self._faulty, self._faulty.dice
        faulty._live()
        if not faulty.calm and dice.random() < 0.25:
            faulty.broken += 1
            match dice.randrange(3 if faulty.gentle else 6):
                case 0:
                    raise ApiError(0, LOST, "cut")
                case 1:
                    return []
                case 2:
                    return [*self._some(), frame("ERROR", status(500, "InternalError"))]
                case 3:
                    raise ApiError(0, TIMEOUT, "silent")
                case 4:
                    return [frame("ERROR", status(410, "Expired"))]
                case _:
                    return [*self._some(), b"rubbish"]
        if self._since < faulty.store.compacted and not self._first:
            return [frame("ERROR", status(410, "Expired"))]
        return self._some() or [bookmark(max(self._since, faulty.now()) if faulty.calm else self._since)]

    def _some(self) -> list[bytes]:
        """The next events, some or all."""
        if self._first:
            many = self._faulty.dice.randint(1, len(self._first))
            sent, self._first = self._first[:many], self._first[many:]
            return sent
        seen = self._faulty.now()
        missed = [(when, kind, one) for when, kind, one in self._faulty.store.history if self._since < when <= seen]
        missed = missed[: self._faulty.dice.randint(1, 4)]
        if missed:
            self._since = missed[-1][0]
        return [frame(kind, one) for _, kind, one in missed]
