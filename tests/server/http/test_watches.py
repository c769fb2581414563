import asyncio
import json
from typing import Any

from server.http.world import PODS, Line, pod, told, world
from situate.server.http.settings import Limits
from situate.store.memory import MemoryStore
from situate.wire.snapshot_increments import ACCEPT

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def events(line: Line, count: int) -> list[Any]:
    text = b""
    while text.count(b"\n") < count:
        text += await line.chunk()
    return [json.loads(one) for one in text.splitlines()]


def test_a_watch_tells_what_is_there_and_what_happens() -> None:
    async def story() -> None:
        async with world() as here, here.line() as line:
            await here.ask("POST", PODS, pod("a"))
            line.request("GET", f"{PODS}?watch=1")
            head = await line.head()
            assert (head.code, head.headers["content-type"]) == (200, "application/json")
            (first,) = await events(line, 1)
            assert (first["type"], first["object"]["kind"], first["object"]["metadata"]["name"]) == (
                "ADDED",
                "Pod",
                "a",
            )
            await here.ask("POST", PODS, pod("b"))
            await here.ask("DELETE", f"{PODS}/a?gracePeriodSeconds=0")
            told_ = await events(line, 3)
            assert [(one["type"], one["object"]["metadata"]["name"]) for one in told_] == [
                ("ADDED", "b"),
                ("MODIFIED", "a"),
                ("DELETED", "a"),
            ]

    told(story)


def test_a_watch_ends_when_its_time_is_over() -> None:
    async def story() -> None:
        async with world() as here:
            reply = await here.get(f"{PODS}?watch=1&timeoutSeconds=1")
            assert (reply.code, reply.body) == (200, b"")
            assert sum(here.server.metrics.long_running.values()) == 0

    told(story)


def test_a_watch_from_too_long_ago_is_told_so_in_the_stream() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with world() as here:
            before = here.registry.cache._store
            assert isinstance(before, MemoryStore)
            store = before
            await here.ask("POST", PODS, pod("a"))
        await store.compact(await store.revision())
        async with world(store=store) as here:
            reply = await here.get(f"{PODS}?watch=1&resourceVersion=1")
            error = json.loads(reply.body)
            assert (reply.code, error["type"], error["object"]["code"]) == (200, "ERROR", 410)
            assert error["object"]["reason"] == "Expired"

    told(story)


def test_a_watch_of_tables_tells_its_columns_once() -> None:
    async def story() -> None:
        async with world() as here, here.line() as line:
            line.request("GET", f"{PODS}?watch=1", headers={"Accept": TABLE})
            await line.head()
            await here.ask("POST", PODS, pod("a"))
            (first,) = await events(line, 1)
            await here.ask("POST", PODS, pod("b"))
            (second,) = await events(line, 1)
            assert first["object"]["kind"] == "Table"
            assert first["object"]["columnDefinitions"][0]["name"] == "Name"
            assert not second["object"]["columnDefinitions"]
            assert second["object"]["rows"][0]["cells"][0] == "b"

    told(story)


def test_a_client_that_leaves_is_forgotten() -> None:
    async def story() -> None:
        async with world() as here:
            async with here.line() as line:
                line.request("GET", f"{PODS}?watch=1")
                await line.head()
                assert sum(here.server.metrics.long_running.values()) == 1
            while sum(here.server.metrics.long_running.values()):
                await asyncio.sleep(0)
            assert len(here.server._streams) == 0

    told(story)


def test_a_client_that_does_not_read_is_cut_off() -> None:
    async def story() -> None:
        async with world(limits=Limits(slow_s=0.05)) as here, here.line(limit=1024) as line:
            line.request("GET", f"{PODS}?watch=1")
            await line.head()
            line.writer.transport.pause_reading()  # type: ignore[attr-defined]
            large = "x" * 200_000
            for number in range(60):
                if not len(here.server._streams):
                    break
                await here.ask("POST", PODS, pod(f"p{number}", annotations={"a": large}))
            while len(here.server._streams):
                await asyncio.sleep(0.01)
            line.writer.transport.resume_reading()  # type: ignore[attr-defined]

    told(story)


def test_watches_are_ended_when_the_server_stops() -> None:
    async def story() -> None:
        async with world() as here, here.line() as line:
            line.request("GET", f"{PODS}?watch=1")
            await line.head()
            await here.server.stop()
            assert await line.chunk() == b""
            assert await line.ended()

    told(story)


def test_increments_are_for_watches_of_snapshots_and_everything_else_is_plain() -> None:
    async def story() -> None:
        async with world() as here, here.line() as line:
            await here.ask("POST", PODS, pod("a"))
            line.request("GET", f"{PODS}?watch=1", headers={"Accept": ACCEPT})
            await line.head()
            (first,) = await events(line, 1)
            assert first["object"]["kind"] == "Pod"
            reply = await here.get("/apis/situate.dev/v1alpha1/nodesnapshots", ACCEPT)
            assert (reply.code, json.loads(reply.body)["kind"]) == (200, "NodeSnapshotList")

    told(story)
