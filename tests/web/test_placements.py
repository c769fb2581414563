"""Placements from Events of a foreign scheduler, and what happens to a stream that breaks."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
import pytest

from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.web import feed, placements
from situate.web.feed import DecisionFeed
from situate.web.placements import placement_feed


def event(version: int, reason: str, message: str, kind: str = "Pod") -> bytes:
    body = {
        "metadata": {"resourceVersion": str(version)},
        "reason": reason,
        "message": message,
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "reportingComponent": "default-scheduler",
        "involvedObject": {"kind": kind, "namespace": "shop", "name": "web-1"},
    }
    return msgspec.json.encode({"type": "ADDED", "object": body})


class Lines:
    def __init__(self, batches: list[list[bytes]]) -> None:
        self._batches = batches

    async def batch(self) -> list[bytes]:
        return self._batches.pop(0) if self._batches else []


class ForeignServer:
    """A server without PlacementEvents, whose streams are given."""

    def __init__(self, *streams: list[list[bytes]]) -> None:
        self.streams = list(streams)
        self.asked: list[tuple[str, str]] = []
        self.done = asyncio.Event()

    @asynccontextmanager
    async def stream(self, path: str, *, params: Mapping[str, str], idle_s: float) -> AsyncIterator[Lines]:
        self.asked.append((path, params.get("resourceVersion", "")))
        if "placementevents" in path:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        if not self.streams:
            self.done.set()
            await asyncio.Event().wait()
        yield Lines(self.streams.pop(0))


async def read(server: ForeignServer, namespace: str = "") -> DecisionFeed:
    log = placement_feed(cast("Client", server), namespace, lambda: None)
    task = asyncio.create_task(log.run())
    async with asyncio.timeout(20):
        await server.done.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return log


def test_events_of_schedulers_are_placements_and_others_are_not() -> None:
    lines = [
        event(1, "Scheduled", "Successfully assigned shop/web-1 to node-3"),
        event(2, "Pulled", "Container image is present"),
        event(3, "FailedScheduling", "0/3 nodes are available"),
        event(4, "Preempted", "Preempted by pod x on node node-3"),
        event(5, "Scheduled", "of a job", kind="Job"),
    ]
    log = asyncio.run(read(ForeignServer([lines])))
    told = [(one["event"], one["pod"], one["node"], one["message"]) for one in log.after(0)]
    assert told == [
        ("bound", "shop/web-1", "node-3", ""),
        ("waiting", "shop/web-1", "", "0/3 nodes are available"),
        ("evicted", "shop/web-1", "", "Preempted by pod x on node node-3"),
    ]
    assert log.after(2) == log.after(0)[2:]


def test_a_stream_that_breaks_is_resumed_and_nothing_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "RETRY_S", (0.0,))
    gone = msgspec.json.encode({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}})
    one, two = event(1, "Scheduled", "x to a"), event(2, "Scheduled", "x to b")
    server = ForeignServer([[one]], [[gone]], [[one, two]])
    log = asyncio.run(read(server, "shop"))
    assert [told["node"] for told in log.after(0)] == ["a", "b"]
    assert {path for path, _ in server.asked[1:]} == {"/api/v1/namespaces/shop/events"}
    assert [version for _, version in server.asked[1:4]] == ["", "1", ""]


def test_only_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placements, "MAX_PLACEMENTS", 2)
    lines: list[Any] = [event(number, "Scheduled", f"x to n{number}") for number in range(1, 6)]
    log = asyncio.run(read(ForeignServer([lines])))
    assert [one["node"] for one in log.after(0)] == ["n4", "n5"]
