"""Changes and creations of several objects at once."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from server.registry.stories import ANN, CONFIG_MAP, NODE, World, config_map, pod, tell
from situate.server.errors import StatusError, bad_request
from situate.server.registry.batch import Creation, Modification
from situate.server.registry.cache import Cache
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Object, Target
from situate.server.resources import BY_KIND, Resource
from situate.store.entries import Revision
from situate.store.errors import UnavailableError
from situate.store.memory import MemoryStore
from situate.store.transactions import At, Guard, Outcome, Present, Put, Write

NAMES = ("a", "b", "c")
EVENT = BY_KIND["v1", "Event"]


def one_more(obj: Object, held: StoredObject) -> Object:
    return {**obj, "data": {"n": str(int(obj["data"]["n"]) + 1)}}


def refuse(obj: Object, held: StoredObject) -> Object:
    raise bad_request("not like this")


def leave(obj: Object, held: StoredObject) -> Object:
    return dict(obj)


def of(name: str, change: Any = one_more) -> Modification:
    return Modification(Target(CONFIG_MAP, "default", name), change)


class CountingStore(MemoryStore):
    """Notes the transactions."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[list[str]] = []

    async def commit(self, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome:
        known = list(writes)
        self.written.append([write.key.rpartition("/")[2] for write in known])
        return await super().commit(guards, known)


async def filled(world: World, names: Sequence[str] = NAMES) -> None:
    for name in names:
        await world.create(config_map(name, data={"n": "0"}))


async def numbers(world: World, names: Sequence[str] = NAMES) -> list[str]:
    return [(await world.get(CONFIG_MAP, name))["data"]["n"] for name in names]


def test_several_objects_change_each_at_a_revision_of_its_own() -> None:
    store = CountingStore()

    async def story(world: World) -> None:
        await filled(world)
        store.written.clear()
        assert await world.registry.modify_each([of(name) for name in NAMES]) == [None] * 3
        assert store.written == [["a"], ["b"], ["c"]]
        assert await numbers(world) == ["1", "1", "1"]
        found = [world.cache.get(CONFIG_MAP, "default", name) for name in NAMES]
        revisions = {one.revision for one in found if one is not None}
        assert len(revisions) == 3, "or a watch that breaks between two of them would miss the second"

    tell(story, store=store)


def test_what_is_wrong_with_one_stays_with_it() -> None:
    async def story(world: World) -> None:
        await filled(world)
        before = await world.store.revision()
        changes = [of("a"), of("b", refuse), of("none"), of("c", leave)]
        first, second, third, fourth = await world.registry.modify_each(changes)
        assert (first, fourth) == (None, None)
        assert isinstance(second, StatusError)
        assert second.message == "not like this"
        assert isinstance(third, StatusError)
        assert third.code == 404
        assert await numbers(world) == ["1", "0", "0"]
        assert await world.store.revision() == before + 1, "what leaves an object as it is writes nothing"

    tell(story)


def test_another_writer_who_was_faster_with_one_object_loses_nothing() -> None:
    class Racing(CountingStore):
        async def commit(self, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome:
            known = list(writes)
            key = known[0].key
            if key.endswith("/b") and b'"n":"1"' in getattr(known[0], "value", b""):
                value = b'{"metadata":{"name":"b","namespace":"default","uid":"u"},"data":{"n":"40"}}'
                await super().commit([Present(key)], [Put(key, value)])
            return await super().commit(guards, known)

    async def story(world: World) -> None:
        await filled(world)
        assert await world.registry.modify_each([of(name) for name in NAMES]) == [None] * 3
        assert await numbers(world) == ["1", "41", "1"]

    tell(story, store=Racing())


def test_changes_of_one_object_follow_each_other() -> None:
    async def story(world: World) -> None:
        await filled(world)
        assert await world.registry.modify_each([of("a"), of("b"), of("a")]) == [None] * 3
        assert await numbers(world) == ["2", "1", "0"]

    tell(story)


def test_an_object_that_no_store_takes_is_nobody_elses_problem() -> None:
    def grow(obj: Object, held: StoredObject) -> Object:
        return {**obj, "data": {"n": "1" * 2_000_000}}

    async def story(world: World) -> None:
        await filled(world)
        first, second, third = await world.registry.modify_each([of("a"), of("b", grow), of("c")])
        assert (first, third) == (None, None)
        assert isinstance(second, StatusError)
        assert await numbers(world) == ["1", "0", "1"]

    tell(story)


def test_a_callers_fence_is_checked_for_each() -> None:
    async def story(world: World) -> None:
        await filled(world)
        key = "/lease"
        await world.store.commit([], [Put(key, b"1")])
        held = Revision(await world.store.revision())
        fenced = world.registry.fenced(lambda: At(key, held))
        assert await fenced.modify_each([of(name) for name in NAMES]) == [None] * 3
        await world.store.commit([], [Put(key, b"2")])
        assert all(isinstance(one, StatusError) for one in await fenced.modify_each([of(name) for name in NAMES]))
        assert await numbers(world) == ["1", "1", "1"]

    tell(story)


def test_a_store_that_does_not_answer_is_an_error_about_all() -> None:
    class Away(CountingStore):
        away = False

        async def commit(self, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome:
            if self.away:
                raise UnavailableError("no store")
            return await super().commit(guards, writes)

    store = Away()

    async def story(world: World) -> None:
        await filled(world)
        store.away = True
        found = await world.registry.modify_each([of(name) for name in NAMES])
        assert [isinstance(one, StatusError) for one in found] == [True] * 3
        store.away = False
        assert await numbers(world) == ["0", "0", "0"]

    tell(story, store=store)


def test_an_event_keeps_the_lease_with_which_it_expires() -> None:
    store = CountingStore()

    async def story(world: World) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"namespace": "default"},
        }
        await world.create(body)
        change = Modification(Target(EVENT, "default", "e"), lambda obj, held: {**obj, "count": 2})
        assert await world.registry.modify_each([change]) == [None]
        (entry,) = (await world.store.scan("/objects/core/events/")).entries
        assert entry.lease
        assert b'"count":2' in entry.value

    tell(story, store=store)


class Locking:
    """An extension that wants a lock for nodes with a label."""

    def __init__(self) -> None:
        self.lock_of = asyncio.Lock()
        self.held = 0

    def lock(
        self, resource: Resource, before: Object | None, after: Object | None, request: Any
    ) -> AbstractAsyncContextManager[None] | None:
        wanted = "locked" in (after or {}).get("metadata", {}).get("labels", {})
        return self.lock_of if wanted else None

    def settled(self, cache: Cache, resource: Resource, before: Object | None, after: Object) -> Object:
        return after

    def extend(
        self,
        cache: Cache,
        resource: Resource,
        before: Object | None,
        after: Object | None,
        request: Any,
        guards: list[Guard],
        writes: list[Write],
    ) -> None:
        self.held += self.lock_of.locked()
        if before is not None and after is not None:
            writes.append(Put(f"/beside/{after['metadata']['name']}", b"{}"))

    def forget(self, *_: Any) -> None: ...


def test_what_needs_a_lock_is_written_alone_and_what_is_added_to_the_others_is_written_with_them() -> None:
    store = CountingStore()
    extension = Locking()

    def cordon(obj: Object, held: StoredObject) -> Object:
        return {**obj, "spec": {"unschedulable": True}}

    async def story(world: World) -> None:
        for name in NAMES:
            labels = {"labels": {"locked": ""}} if name == "b" else {}
            await world.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **labels}})
        store.written.clear()
        changes = [Modification(Target(NODE, "", name), cordon) for name in NAMES]
        assert await world.registry.modify_each(changes) == [None] * 3
        assert store.written == [["a", "a"], ["c", "c"], ["b", "b"]]
        assert extension.held, "the lock was held"

    tell(story, store=store, extension=extension)


def test_modify_and_modify_each_race_and_lose_nothing() -> None:
    async def story(world: World) -> None:
        await filled(world)
        targets = [Target(CONFIG_MAP, "default", name) for name in NAMES]
        alone = [world.registry.modify(target, one_more, ANN, altered=False) for target in targets]
        together = [world.registry.modify_each([of(name) for name in NAMES]) for _ in range(2)]
        await asyncio.gather(*alone, *together)
        assert await numbers(world) == ["3", "3", "3"]

    tell(story)


POD = BY_KIND["v1", "Pod"]


def new(obj: Object) -> Creation:
    return Creation(Target(BY_KIND[obj["apiVersion"], obj["kind"]], "default"), obj)


def without_own(obj: Object) -> Object:
    """Without what every object has of its own."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("name", "uid", "resourceVersion")}
    return {**obj, "metadata": meta}


def test_objects_created_together_are_as_if_each_had_been_created_alone() -> None:
    async def story(world: World) -> None:
        alone = await world.create(pod("alone", labels={"app": "web"}))
        made = await world.registry.create_each([new(pod(name, labels={"app": "web"})) for name in NAMES], ANN)
        found = [one.object(POD) for one in made if isinstance(one, StoredObject)]
        assert [one["metadata"]["name"] for one in found] == list(NAMES)
        assert [without_own(one) for one in found] == [without_own(alone)] * 3
        assert len({one["metadata"]["uid"] for one in found}) == 3
        assert len({one["metadata"]["resourceVersion"] for one in found}) == 3, "each has a revision of its own"
        for one in found:
            assert await world.get(POD, one["metadata"]["name"]) == one

    tell(story)


def test_what_goes_wrong_with_one_new_object_stays_with_it() -> None:
    async def story(world: World) -> None:
        await world.create(pod("b"))
        given = [pod("a"), pod("b"), pod("Not A Name"), config_map("m"), pod("c", labels={"app": "-"}), pod("d")]
        made = await world.registry.create_each([new(one) for one in given], ANN)
        codes = [one.code if isinstance(one, StatusError) else one.__class__.__name__ for one in made]
        assert codes == ["StoredObject", 409, 422, "StoredObject", 422, "StoredObject"]

    tell(story)


def test_a_store_that_does_not_answer_is_the_answer_of_every_new_object() -> None:
    class Closed(MemoryStore):
        closed = False

        async def commit(self, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome:
            if self.closed:
                raise UnavailableError("no answer")
            return await super().commit(guards, writes)

    store = Closed()

    async def story(world: World) -> None:
        await world.create(pod("first"))
        store.closed = True
        made = await world.registry.create_each([new(pod(name)) for name in NAMES], ANN)
        assert all(isinstance(one, StatusError) and one.code >= 500 for one in made)

    tell(story, store=store)


def test_a_pod_that_was_changed_while_pending_need_not_be_decoded_for_the_next_change() -> None:
    made: list[Object] = []
    found: list[Object] = []

    def bound(obj: Object, held: StoredObject) -> Object:
        made.append({**obj, "spec": {**obj["spec"], "nodeName": "n"}})
        return made[-1]

    def noted(obj: Object, held: StoredObject) -> Object:
        found.append(obj)
        return {**obj, "status": {"phase": "Running"}}

    async def story(world: World) -> None:
        await world.create(pod("p"))
        target = Target(BY_KIND["v1", "Pod"], "default", "p")
        for change in (bound, noted):
            assert await world.registry.modify_each([Modification(target, change)]) == [None]
        assert found[0]["spec"] is made[0]["spec"]

    tell(story)
