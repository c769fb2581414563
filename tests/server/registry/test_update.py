"""Replacing objects, and the server's own changes of them."""

import asyncio
from copy import deepcopy

import pytest

from server.registry.stories import (
    ANN,
    CONFIG_MAP,
    DEPLOYMENT,
    POD,
    World,
    config_map,
    deployment,
    no,
    pod,
    tell,
)
from situate.server.errors import StatusError, bad_request
from situate.server.registry.cache import Cache
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND, Resource
from situate.store.transactions import Committed, Delete, Guard, Put, Write
from situate.wire.errors import MODIFIED

LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}


def test_a_replacement_replaces_and_keeps_what_is_the_servers() -> None:
    async def story(world: World) -> None:
        made = await world.create(config_map("a"))
        world.later(5)
        given = config_map("a", data={"k": "w"}, creationTimestamp="1999-01-01T00:00:00Z", generation=9)
        new = await world.update(given)
        assert new["data"] == {"k": "w"}
        assert new["metadata"]["uid"] == made["metadata"]["uid"]
        assert new["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]
        assert "generation" not in new["metadata"]
        assert int(new["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])

    tell(story)


def test_who_saw_an_older_version_is_told_so() -> None:
    async def story(world: World) -> None:
        seen = await world.create(config_map("a"))
        await world.update(config_map("a", data={"k": "2"}))
        text = f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}'
        assert await no(world.update({**seen, "data": {"k": "3"}})) == (409, "Conflict", text)
        assert (await no(world.update(config_map("a", resourceVersion="abc"))))[0] == 400

    tell(story)


def test_a_replacement_of_another_object_of_that_name_is_refused() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        text = (
            'Operation cannot be fulfilled on configmaps "a": Precondition failed: UID in precondition: zzz, '
            "UID in object meta: uid-1"
        )
        assert await no(world.update(config_map("a", uid="zzz"))) == (409, "Conflict", text)

    tell(story)


def test_what_is_not_there_is_not_replaced_unless_its_kind_allows() -> None:
    async def story(world: World) -> None:
        assert await no(world.update(config_map("a"))) == (404, "NotFound", 'configmaps "a" not found')
        lease = BY_KIND["coordination.k8s.io/v1", "Lease"]
        made = await world.registry.replace(Target(lease, "default", "l"), LEASE, ANN)
        assert made.created
        assert made.stored.uid

    tell(story)


def test_some_kinds_must_be_told_which_version_is_replaced() -> None:
    async def story(world: World) -> None:
        await world.create(deepcopy(LEASE))
        assert await no(world.update(deepcopy(LEASE))) == (
            422,
            "Invalid",
            (
                'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: must be '
                "specified for an update"
            ),
        )

    tell(story)


def test_a_name_must_be_the_urls() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        target = Target(CONFIG_MAP, "default", "a")
        assert await no(world.registry.update(target, config_map("b"), ANN)) == (
            400,
            "BadRequest",
            "the name of the object (b) does not match the name on the URL (a)",
        )
        assert await no(world.registry.update(target, config_map(), ANN)) == (
            400,
            "BadRequest",
            "the name of the object (a based on URL) was undeterminable: name must be provided",
        )

    tell(story)


@pytest.mark.parametrize("own", [False, True], ids=["a client's write", "the server's own"])
def test_a_write_that_undoes_what_another_server_has_just_written_is_not_taken_for_none(own: bool) -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a", data={"n": "old"}))
        held = world.cache.get(CONFIG_MAP, "default", "a")
        assert held is not None
        await world.store.commit([], [Put(held.key, held.value.replace(b'"old"', b'"new"'))])
        assert world.cache.get(CONFIG_MAP, "default", "a") is held, "the cache does not have it yet"
        target = Target(CONFIG_MAP, "default", "a")
        if own:
            await world.registry.modify(target, lambda found, _: {**found, "data": {"n": "old"}}, ANN)
        else:
            await world.registry.patch(target, "merge", {"data": {"n": "old"}}, ANN)
        assert (await world.get(CONFIG_MAP, "a"))["data"] == {"n": "old"}

    tell(story)


def test_a_replacement_that_changes_nothing_writes_nothing() -> None:
    async def story(world: World) -> None:
        made = await world.create(pod("a"))
        world.later(60)
        assert await world.update(made) == made
        assert await world.update(pod("a")) == made
        assert await world.store.revision() == int(made["metadata"]["resourceVersion"])

    tell(story)


def test_a_deletion_cannot_be_written() -> None:
    async def story(world: World) -> None:
        await world.create(pod("a"))
        code, _, message = await no(world.update(pod("a", deletionTimestamp="2020-01-01T00:00:00Z")))
        assert code == 422
        assert 'metadata.deletionTimestamp: Invalid value: "2020-01-01T00:00:00Z": field is immutable' in message

    tell(story)


def test_generation_counts_what_is_wanted() -> None:
    async def story(world: World) -> None:
        made = await world.create(deployment("a"))
        assert made["metadata"]["generation"] == 1
        made["metadata"]["labels"] = {"x": "y"}
        made = await world.update(made)
        assert made["metadata"]["generation"] == 1
        made["spec"]["replicas"] = 3
        made = await world.update(made)
        assert made["metadata"]["generation"] == 2
        made["status"] = {"replicas": 3, "observedGeneration": 2}
        made = await world.update(made, "status")
        assert made["metadata"]["generation"] == 2

    tell(story)


def test_the_object_and_its_status_are_written_apart() -> None:
    async def story(world: World) -> None:
        made = await world.create({**deployment("a"), "status": {"replicas": 7}})
        assert made.get("status", {}).get("replicas", 0) == 0
        made["spec"]["replicas"] = 5
        made["status"] = {"replicas": 2}
        by_status = await world.update(made, "status")
        assert (by_status["spec"]["replicas"], by_status["status"]["replicas"]) == (1, 2)
        by_status["spec"]["replicas"] = 5
        by_status["status"] = {"replicas": 9}
        by_object = await world.update(by_status)
        assert (by_object["spec"]["replicas"], by_object["status"]["replicas"]) == (5, 2)
        owners = {entry.get("subresource", "") for entry in by_object["metadata"]["managedFields"]}
        assert owners == {"", "status"}

    tell(story)


def test_a_replacement_without_a_version_wins_a_race_in_the_end() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        await asyncio.gather(*[world.update(config_map("a", data={"by": str(each)})) for each in range(4)])
        assert (await world.get(CONFIG_MAP, "a"))["data"]["by"] in "0123"

    tell(story)


def test_modify_reads_changes_and_writes_until_it_was_first() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a", data={"n": "0"}))
        tried = []

        def one_more(obj: Object, held: StoredObject) -> Object:
            tried.append(held.revision)
            obj["data"]["n"] = str(int(obj["data"]["n"]) + 1)
            return obj

        target = Target(CONFIG_MAP, "default", "a")
        await asyncio.gather(*[world.registry.modify(target, one_more, ANN) for _ in range(4)])
        assert (await world.get(CONFIG_MAP, "a"))["data"]["n"] == "4"
        assert len(tried) > 4

    tell(story)


def test_modify_knows_which_object_and_which_version_is_meant() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        target = Target(CONFIG_MAP, "default", "a")

        def refuse(obj: Object, held: StoredObject) -> Object:
            raise bad_request("not like this")

        def leave(obj: Object, held: StoredObject) -> Object:
            return obj

        before = await world.store.revision()
        assert (await no(world.registry.modify(target, leave, ANN, uid="other")))[0] == 409
        assert (await no(world.registry.modify(target, leave, ANN, resource_version="1")))[0] == 409
        assert (await no(world.registry.modify(target, refuse, ANN)))[2] == "not like this"
        assert (await no(world.registry.modify(Target(CONFIG_MAP, "default", "b"), leave, ANN)))[0] == 404
        await world.registry.modify(target, leave, ANN)
        assert await world.store.revision() == before

    tell(story)


class Ledger:
    """Keeps a list of the pods of each node, and has room for two."""

    asked = 0

    def lock(self, resource: Resource, before: Object | None, after: Object | None, request: object) -> None:
        return None

    def settled(self, cache: Cache, resource: Resource, before: Object | None, after: Object) -> Object:
        return after

    def extend(
        self,
        cache: Cache,
        resource: Resource,
        before: Object | None,
        after: Object | None,
        request: object,
        guards: list[Guard],
        writes: list[Write],
    ) -> None:
        self.asked += 1
        node = (after or before or {})["spec"].get("nodeName", "")
        if not node:
            return
        count = sum(1 for _ in cache.on_node(node))
        if after is not None and count >= 2:
            raise StatusError(409, "Conflict", "no room")
        writes.append(Put(f"/ledgers/{node}", str(count + (1 if after else -1)).encode()))

    def forget(self, *_: object) -> None:
        raise AssertionError("nothing here is unreadable")


def test_what_extends_a_transaction_is_written_at_the_same_revision_or_refuses() -> None:
    ledger = Ledger()

    async def story(world: World) -> None:
        await world.create(config_map("not-asked"))
        assert ledger.asked == 0
        made = await world.create(pod("a", node="n"))
        [entry] = (await world.store.read(["/ledgers/n"])).entries
        assert entry is not None
        assert entry.value == b"1"
        assert str(entry.modified) == made["metadata"]["resourceVersion"]
        await world.create(pod("b", node="n"))
        assert (await no(world.create(pod("c", node="n"))))[2] == "no room"
        assert await world.names(POD) == ["a", "b"]

    tell(story, extension=ledger)


def test_a_write_elsewhere_in_between_is_seen_before_somebody_is_told_no() -> None:
    """Another server shares the store; our cache has not heard of its write yet."""

    async def story(world: World) -> None:
        await world.create(config_map("a"))
        held = world.cache.get(CONFIG_MAP, "default", "a")
        assert held is not None
        outcome = await world.store.commit(
            [], [Put(held.key, held.value), Delete("/objects/core/configmaps/default/z")]
        )
        assert isinstance(outcome, Committed)
        given = config_map("a", data={"k": "2"}, resourceVersion=str(outcome.revision))
        assert (await world.update(given))["data"] == {"k": "2"}

    tell(story)


def test_an_agent_without_a_name_is_known_by_its_program() -> None:
    async def story(world: World) -> None:
        made = await world.create(deployment("a"), Caller("x", agent="Mozilla/5.0 (X11)"))
        assert made["metadata"]["managedFields"][0]["manager"] == "Mozilla"
        assert (await world.get(DEPLOYMENT, "a")) == made

    tell(story)


def test_the_finalizers_of_a_namespace_need_a_domain() -> None:
    async def story(world: World) -> None:
        namespaces = BY_KIND["v1", "Namespace"]
        made = await world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        target = Target(namespaces, "", "team", "finalize")
        made["spec"]["finalizers"] = ["kubernetes", "mine"]
        code, _, text = await no(world.registry.update(target, made, ANN))
        assert code == 422
        assert 'spec.finalizers[1]: Invalid value: "mine": name is neither a standard finalizer name' in text
        made["spec"]["finalizers"] = ["kubernetes", "example.com/mine"]
        assert (await world.registry.update(target, made, ANN)).object(namespaces)["spec"] == made["spec"]

    tell(story)
