"""All kinds together: the order in which they start, and how it stands with each."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kube.fake_server import FakeServer
from situate.core.changes import Change, NodeSeen, ObjectSeen, PodSeen
from situate.kube.client import Client
from situate.kube.informers import Informers
from situate.kube.kinds import ALL_KINDS, NAMESPACES, NODES, PODS, WatchedKind
from situate.kube.reflector import BACKOFF_S

PATHS = {kind: kind.path(kind.versions[0]) for kind in ALL_KINDS}
LIMIT_S = 10


class Seen:
    """What was told, and a way to wait for it."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._more = asyncio.Event()

    def tell(self, changes: list[Change]) -> None:
        self.changes += changes
        self._more.set()

    async def until(self, count: int) -> None:
        while len(self.changes) < count:
            self._more.clear()
            await self._more.wait()


def with_server(
    script: Callable[[FakeServer, Informers, Seen], Awaitable[None]],
    *,
    kinds: tuple[WatchedKind, ...] = (NODES, NAMESPACES, PODS),
    before: Callable[[FakeServer], object] = lambda _: None,
) -> None:
    async def play() -> None:
        async with asyncio.timeout(LIMIT_S), FakeServer() as server, Client(server.access(), qps=-1) as client:
            before(server)
            seen = Seen()
            watching = Informers(client, kinds, seen.tell)
            running = asyncio.create_task(watching.run())
            await script(server, watching, seen)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(play())


def test_pods_are_told_after_everything_else() -> None:
    def fill(server: FakeServer) -> None:
        server.put(PATHS[PODS], {"metadata": {"name": "a", "namespace": "default"}})
        server.put(PATHS[NODES], {"metadata": {"name": "n1"}})
        server.put(PATHS[NAMESPACES], {"metadata": {"name": "default"}})

    async def script(server: FakeServer, watching: Informers, seen: Seen) -> None:
        await watching.until_synced()
        assert watching.synced
        assert {type(change) for change in seen.changes[:2]} == {NodeSeen, ObjectSeen}
        assert isinstance(seen.changes[2], PodSeen)
        asked = [one.path for one in server.requests]
        assert asked.index(PATHS[PODS]) > max(asked.index(PATHS[NODES]), asked.index(PATHS[NAMESPACES]))

    with_server(script, before=fill)


def test_it_is_not_synced_while_one_kind_may_not_be_seen_and_says_which() -> None:
    def forbid(server: FakeServer) -> None:
        server.fault("GET", "/api/v1/namespaces", status=403, reason="Forbidden", message="no namespaces", times=1_000)

    async def script(server: FakeServer, watching: Informers, seen: Seen) -> None:
        await server.watching(PATHS[NODES])
        while not (problem := {one.name: one for one in watching.shown()}["namespaces"].problem):
            await asyncio.sleep(0.001)
        assert problem.startswith("cannot list namespaces: no namespaces; grant")
        assert not watching.synced
        shown = {one.name: one for one in watching.shown()}
        assert shown["nodes"].synced
        assert (shown["nodes"].problem, shown["nodes"].objects) == ("", 0)
        assert not shown["pods"].synced
        assert shown["pods"].quiet_s is None

    with_server(script, before=forbid)


def test_how_long_ago_the_server_said_anything_is_shown() -> None:
    async def script(server: FakeServer, watching: Informers, seen: Seen) -> None:
        await watching.until_synced()
        for one in watching.shown():
            assert one.quiet_s is not None
            assert 0 <= one.quiet_s < LIMIT_S

    with_server(script)


def test_when_one_gets_through_all_who_wait_try_at_once() -> None:
    async def script(server: FakeServer, watching: Informers, seen: Seen) -> None:
        await watching.until_synced()
        for kind in (NODES, NAMESPACES):
            await server.watching(PATHS[kind])
            server.fault("GET", PATHS[kind], status=500, times=1)
        server.cut()
        begun = asyncio.get_running_loop().time()
        while sum(bool(one.problem) for one in watching.shown()) < 2:
            await asyncio.sleep(0.001)
        first, second = (one for one in watching.reflectors if one.problem)
        first._on_contact()  # as if it had got through
        await server.watching(PATHS[second.kind])
        assert asyncio.get_running_loop().time() - begun < BACKOFF_S

    with_server(script)


def test_when_it_is_cancelled_no_watch_is_left() -> None:
    async def play() -> None:
        async with asyncio.timeout(LIMIT_S), FakeServer() as server, Client(server.access(), qps=-1) as client:
            watching = Informers(client, (NODES, PODS), lambda _: None)
            running = asyncio.create_task(watching.run())
            await watching.until_synced()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert [task for task in asyncio.all_tasks() if "reflector" in task.get_name()] == []

    asyncio.run(play())
