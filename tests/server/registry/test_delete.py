"""Deleting objects: at once, with grace, with finalizers, with or without dependents."""

from typing import Any

import pytest

from server.registry.stories import (
    ANN,
    CONFIG_MAP,
    JOB,
    NAMESPACE,
    POD,
    World,
    config_map,
    heard,
    job,
    namespace,
    no,
    pod,
    tell,
)
from situate.server.registry.registry import collecting
from situate.server.registry.stored_object import DeleteResult
from situate.server.requests import DeleteOptions, ListOptions, Object, Target
from situate.server.resources import Resource


async def delete(world: World, resource: Resource, name: str, **options: Any) -> DeleteResult:
    target = Target(resource, "default" if resource.namespaced else "", name)
    return await world.registry.delete(target, ANN, DeleteOptions(**options))


def metadata_of(deleted: DeleteResult, resource: Resource) -> Object:
    found: Object = deleted.stored.object(resource)["metadata"]
    return found


def test_an_object_that_nothing_keeps_is_gone_at_once() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        done = await delete(world, CONFIG_MAP, "a")
        assert done.gone
        assert done.stored.uid == "uid-1"
        assert done.stored.revision == await world.store.revision()
        missing = (404, "NotFound", 'configmaps "a" not found')
        assert await no(world.get(CONFIG_MAP, "a")) == missing
        assert await no(delete(world, CONFIG_MAP, "a")) == missing

    tell(story)


def test_preconditions_say_which_object_is_meant() -> None:
    async def story(world: World) -> None:
        await world.create(pod("a"))
        assert await no(delete(world, POD, "a", uid="x")) == (
            409,
            "Conflict",
            (
                'Operation cannot be fulfilled on Pod "a": the UID in the precondition (x) does not match the UID in '
                "record (uid-1). The object might have been deleted and then recreated"
            ),
        )
        assert await no(delete(world, POD, "a", resource_version="1")) == (
            409,
            "Conflict",
            (
                'Operation cannot be fulfilled on Pod "a": the ResourceVersion in the precondition (1) does not match '
                "the ResourceVersion in record (2). The object might have been modified"
            ),
        )
        assert (await delete(world, POD, "a", uid="uid-1", resource_version="2")).gone

    tell(story)


def test_a_pod_on_a_node_has_its_grace_which_can_only_be_shortened() -> None:
    async def story(world: World) -> None:
        await world.create(pod("a", node="n"))
        asked = await delete(world, POD, "a")
        assert not asked.gone
        metadata = metadata_of(asked, POD)
        assert metadata["deletionTimestamp"] == "2026-01-02T12:00:30Z"
        assert metadata["deletionGracePeriodSeconds"] == 30
        assert metadata["generation"] == 2

        labelled = asked.stored.object(POD)
        labelled["metadata"]["labels"] = {"x": "y"}
        assert await world.update(labelled) == await world.get(POD, "a")

        world.later(2)
        again = await delete(world, POD, "a")
        longer = await delete(world, POD, "a", grace_s=60)
        assert again.stored.revision == longer.stored.revision == await world.store.revision()

        shorter = metadata_of(await delete(world, POD, "a", grace_s=5), POD)
        assert shorter["deletionTimestamp"] == "2026-01-02T12:00:05Z"
        assert shorter["deletionGracePeriodSeconds"] == 5
        assert shorter["generation"] == 2

        world.later(10)
        latest = metadata_of(await delete(world, POD, "a", grace_s=1), POD)
        assert latest["deletionTimestamp"] == "2026-01-02T12:00:12Z"
        assert (await delete(world, POD, "a", grace_s=0)).gone

    tell(story)


def test_a_pod_without_a_node_or_without_grace_goes_at_once() -> None:
    async def story(world: World) -> None:
        await world.create(pod("a"))
        await world.create(pod("b", node="n"))
        assert (await delete(world, POD, "a")).gone
        assert (await delete(world, POD, "b", grace_s=0)).gone

    tell(story)


@pytest.mark.parametrize("made, grace_s", [(pod("a"), None), (pod("a", node="n"), 0)])
def test_a_pod_that_goes_at_once_is_marked_first(made: Object, grace_s: int | None) -> None:
    async def story(world: World) -> None:
        watching = await world.watch(POD)
        await world.create(made)
        assert (await delete(world, POD, "a", grace_s=grace_s, dry_run=True)).gone
        gone = await delete(world, POD, "a", grace_s=grace_s)
        assert await heard(watching, 1) == [("ADDED", "a")]
        seen = [await anext(watching), await anext(watching)]
        assert [event.type for event in seen] == ["MODIFIED", "DELETED"]
        told = [event.stored.object(POD)["metadata"] for event in seen if event.stored is not None]
        for metadata in (*told, metadata_of(gone, POD)):
            assert metadata["deletionGracePeriodSeconds"] == 0
            assert metadata["deletionTimestamp"] == "2026-01-02T12:00:00Z"

    tell(story)


def test_finalizers_keep_an_object_until_the_last_is_removed() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a", finalizers=["x.io/a", "x.io/b"]))
        watching = await world.watch(CONFIG_MAP)
        asked = await delete(world, CONFIG_MAP, "a")
        assert not asked.gone
        assert metadata_of(asked, CONFIG_MAP)["deletionGracePeriodSeconds"] == 0
        assert (await delete(world, CONFIG_MAP, "a")).stored.revision == asked.stored.revision

        left = asked.stored.object(CONFIG_MAP)
        left["metadata"]["finalizers"] = ["x.io/b"]
        left = await world.update(left)
        refusal = await no(world.update({**left, "metadata": {**left["metadata"], "finalizers": ["x.io/b", "x.io/c"]}}))
        assert refusal[0] == 422
        assert "no new finalizers can be added if the object is being deleted" in refusal[2]
        del left["metadata"]["finalizers"]
        last = await world.update(left)
        assert last["metadata"]["uid"] == "uid-1"
        assert await world.names(CONFIG_MAP) == []
        assert await heard(watching, 4) == [("ADDED", "a"), ("MODIFIED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]

    tell(story)


def test_what_shall_become_of_dependents_is_a_finalizer() -> None:
    async def story(world: World) -> None:
        for name in "abc":
            await world.create(config_map(name, finalizers=["x.io/a"] if name == "c" else []))
        await world.create(config_map("d", finalizers=["orphan", "x.io/a"]))
        asked = await delete(world, CONFIG_MAP, "d")
        assert metadata_of(asked, CONFIG_MAP)["finalizers"] == ["orphan", "x.io/a"]
        assert (await delete(world, CONFIG_MAP, "d", propagation="Orphan")).stored.revision == asked.stored.revision
        orphaned = await delete(world, CONFIG_MAP, "a", propagation="Orphan")
        foreground = await delete(world, CONFIG_MAP, "b", propagation="Foreground")
        both = await delete(world, CONFIG_MAP, "c", propagation="Foreground")
        assert metadata_of(orphaned, CONFIG_MAP)["finalizers"] == ["orphan"]
        assert metadata_of(foreground, CONFIG_MAP)["finalizers"] == ["foregroundDeletion"]
        assert metadata_of(both, CONFIG_MAP)["finalizers"] == ["x.io/a", "foregroundDeletion"]
        assert not (await delete(world, CONFIG_MAP, "b")).gone
        assert (await delete(world, CONFIG_MAP, "b", propagation="Background")).gone

    tell(story)


def test_a_job_leaves_its_pods_alone_unless_told_and_says_so() -> None:
    async def story(world: World) -> None:
        await world.create(job("a"))
        with collecting() as warnings:
            done = await delete(world, JOB, "a")
        assert metadata_of(done, JOB)["finalizers"] == ["orphan"]
        assert warnings[0].startswith("child pods are preserved by default when jobs are deleted")
        await world.create(job("b"))
        assert (await delete(world, JOB, "b", propagation="Background")).gone

    tell(story)


def test_a_namespace_goes_when_it_is_finalized() -> None:
    async def story(world: World) -> None:
        made = await world.create(namespace("t"))
        assert made["spec"]["finalizers"] == ["kubernetes"]
        asked = await delete(world, NAMESPACE, "t")
        going = asked.stored.object(NAMESPACE)
        assert not asked.gone
        assert going["status"]["phase"] == "Terminating"
        assert "deletionGracePeriodSeconds" not in going["metadata"]
        assert (await delete(world, NAMESPACE, "t")).stored.revision == asked.stored.revision
        going["metadata"]["labels"]["x"] = "y"
        going = await world.update(going)
        assert (await world.get(NAMESPACE, "t")) == going
        going["spec"] = {}
        await world.update(going, "finalize")
        assert (await no(world.get(NAMESPACE, "t")))[0] == 404

    tell(story)


def test_a_collection_is_deleted_one_by_one() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a", labels={"x": "1"}))
        await world.create(config_map("b", labels={"x": "2"}))
        await world.create(config_map("c", labels={"x": "1"}, finalizers=["x.io/a"]))
        gone = await world.registry.delete_collection(Target(CONFIG_MAP, "default"), ANN, ListOptions(labels="x=1"))
        assert [held.name for held in gone.items] == ["a", "c"]
        assert await world.names(CONFIG_MAP) == ["b", "c"]

    tell(story)


def test_a_dry_run_deletes_nothing() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        assert (await delete(world, CONFIG_MAP, "a", dry_run=True)).gone
        assert await world.names(CONFIG_MAP) == ["a"]

    tell(story)


def test_a_grace_period_beyond_all_time_ends_in_292_years() -> None:
    async def story(world: World) -> None:
        await world.create(pod("a", node="n"))
        longest = 2**63 - 1
        marked = metadata_of(await delete(world, POD, "a", grace_s=longest), POD)
        assert marked["deletionTimestamp"] == "2318-04-14T11:47:16Z"
        assert marked["deletionGracePeriodSeconds"] == longest
        shorter = metadata_of(await delete(world, POD, "a", grace_s=5), POD)
        assert shorter["deletionTimestamp"] == "2026-01-02T12:00:05Z"

    tell(story)
