"""The feed: all that is stored, then what happens, in order, and never ahead of the cache."""

import asyncio
from collections.abc import Sequence

from server.placing.world import World
from server.scheduling.stories import tell, until
from situate.core.changes import Change, NodeGone, NodeSeen, ObjectGone, ObjectSeen, PodGone, PodSeen
from situate.core.model.devices import ResourceClaim
from situate.server.placing.bind_transaction import NODES
from situate.server.requests import SYSTEM, Target
from situate.server.resources import BY_KIND
from situate.server.scheduling.feed import EngineFeed, engine_kinds
from situate.store.transactions import Delete, Put

SERVICES = BY_KIND["v1", "Service"]


class Told:
    def __init__(self, world: World) -> None:
        self.changes: list[Change] = []
        self.behind = 0
        self._world = world
        self.feed = EngineFeed(world.store, world.registry.cache, self.hear)

    def hear(self, changes: Sequence[Change]) -> None:
        self.changes.extend(changes)
        for change in changes:
            if isinstance(change, PodSeen) and not self._world.registry.cache.count(BY_KIND["v1", "Pod"]):
                self.behind += 1

    def names(self) -> list[tuple[str, str]]:
        return [(type(one).__name__, _name(one)) for one in self.changes]


def _name(change: Change) -> str:
    match change:
        case PodSeen(pod):
            return pod.metadata.name
        case NodeSeen(node):
            return node.metadata.name
        case NodeGone(name):
            return name
        case PodGone(ref):
            return ref.name
        case ObjectSeen(item) | ObjectGone(item):
            return f"{type(item).__name__} {item.metadata.name}"
        case _:
            raise AssertionError(change)


def test_what_is_there_is_told_with_pods_last() -> None:
    async def story(world: World) -> None:
        await world.pod("a")
        await world.node("n1")
        told = Told(world)
        told.feed.begin()
        assert told.names() == [
            ("ObjectSeen", "Namespace default"),
            ("ObjectSeen", "Namespace kube-system"),
            ("NodeSeen", "n1"),
            ("PodSeen", "a"),
        ]
        assert told.feed.revision == world.registry.cache.revision

    tell(story)


def test_a_claim_is_told_in_its_version() -> None:
    """A scheduler writes it in that version: a claim that somebody else has written since is decided on again."""

    async def story(world: World) -> None:
        told = Told(world)
        claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": {}}
        first = await world.create({**claim, "metadata": {"name": "first", "namespace": "default"}})
        told.feed.begin()
        following = asyncio.create_task(told.feed.follow())
        second = await world.create({**claim, "metadata": {"name": "second", "namespace": "default"}})
        await until(lambda: ("ObjectSeen", "ResourceClaim second") in told.names())
        following.cancel()
        seen = [one.item for one in told.changes if isinstance(one, ObjectSeen) and isinstance(one.item, ResourceClaim)]
        assert [one.metadata.resource_version for one in seen] == [str(first.revision), str(second.revision)]

    tell(story)


def test_what_happens_is_told_in_order_once_and_not_before_the_cache_has_it() -> None:
    async def story(world: World) -> None:
        told = Told(world)
        told.feed.begin()
        told.changes.clear()
        following = asyncio.create_task(told.feed.follow())
        await world.node("n1")
        uid = (await world.pod("a")).uid
        await world.binder.bind("default", "a", "n1")
        spec = {"selector": {"app": "a"}, "ports": [{"port": 80}]}
        meta = {"name": "s", "namespace": "default"}
        await world.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})
        await world.registry.delete(Target(SERVICES, "default", "s"), SYSTEM)
        await world.delete_pod("a")
        await world.registry.delete(Target(NODES, "", "n1"), SYSTEM)
        await until(lambda: ("NodeGone", "n1") in told.names())
        following.cancel()
        assert told.names() == [
            ("NodeSeen", "n1"),
            ("NodeSeen", "n1"),
            ("PodSeen", "a"),
            ("PodSeen", "a"),
            ("ObjectSeen", "Service s"),
            ("ObjectGone", "Service s"),
            ("PodSeen", "a"),
            ("PodGone", "a"),
            ("NodeGone", "n1"),
        ]
        gone = next(one for one in told.changes if isinstance(one, PodGone))
        assert (gone.pod.uid, told.behind) == (uid, 0)

    tell(story)


def test_an_object_that_does_not_decode_is_not_there_and_an_earlier_version_stands() -> None:
    async def story(world: World) -> None:
        told = Told(world)
        told.feed.begin()
        following = asyncio.create_task(told.feed.follow())
        held = await world.pod("a")
        bad = held.value.replace(b'"containers":[', b'"containers":["x",')
        assert bad != held.value
        await world.store.commit([], [Put(held.key, bad)])
        await until(lambda: told.feed.unreadable == 1)
        following.cancel()
        assert told.names()[-1] == ("PodSeen", "a")

    tell(story)


def test_an_object_that_does_not_decode_any_more_goes_from_the_engine_when_it_is_deleted() -> None:
    async def story(world: World) -> None:
        told = Told(world)
        told.feed.begin()
        following = asyncio.create_task(told.feed.follow())
        await world.node("n1")
        held = await world.pod("a")
        for key in (held.key, "/objects/core/nodes/n1", "/objects/core/pods/default/never", "/objects/core"):
            for value in (b"not json", b"[]"):
                await world.store.commit([], [Put(key, value)])
        await until(lambda: told.feed.unreadable == 6)
        told.changes.clear()
        for key in (held.key, "/objects/core/nodes/n1", "/objects/core/pods/default/never", "/objects/core"):
            await world.store.commit([], [Delete(key)])
        await until(lambda: len(told.changes) == 2)
        await world.pod("b")
        await until(lambda: len(told.changes) == 3)
        following.cancel()
        assert told.names() == [("PodGone", "a"), ("NodeGone", "n1"), ("PodSeen", "b")]
        assert [one.pod.uid for one in told.changes if isinstance(one, PodGone)] == [held.uid]

    tell(story)


def test_an_engine_reads_every_kind_once_and_pods_come_last() -> None:
    kinds = [f"{resource.group}/{resource.kind}" for resource, _ in engine_kinds()]
    assert len(set(kinds)) == len(kinds) == 23
    assert kinds[-1] == "/Pod"
    assert {f"scheduling.{one}/PodGroup" for one in ("k8s.io", "x-k8s.io", "volcano.sh", "run.ai")} < set(kinds)
