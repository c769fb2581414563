"""Eviction: by the budget, in the transaction that marks the pod."""

import asyncio
from typing import Any

import pytest

from server.placing.conftest import Tell
from server.placing.test_binding import refusal
from server.placing.world import World
from situate.server.errors import StatusError
from situate.server.http.ports import CreateRequest
from situate.server.placing.bind_transaction import PODS
from situate.server.placing.binding import with_condition
from situate.server.placing.eviction import ATTEMPTS, BUDGETS, EVICTED
from situate.server.placing.specials import specials
from situate.server.registry.stored_object import DeleteResult, StoredObject
from situate.server.requests import SYSTEM, Caller, DeleteOptions, Object, Target, WriteOptions

READY_NOW = [{"type": "Ready", "status": "True"}]
READY = {"conditions": READY_NOW}


async def running(world: World, *names: str) -> None:
    for name in names:
        await world.pod(name, nodeName="n1", metadata={"labels": {"app": "a"}})
        await world.report(name, "Running", **READY)


async def budget(world: World, allowed: int, name: str = "pdb", **status: Any) -> None:
    """A budget as its controller has left it."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    meta = {"name": name, "namespace": "default"}
    await world.create({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec})

    def change(obj: Object, _held: StoredObject) -> Object:
        obj["status"] = {
            "observedGeneration": obj["metadata"].get("generation", 0),
            "disruptionsAllowed": allowed,
            "currentHealthy": allowed + 1,
            "desiredHealthy": 1,
            "expectedPods": allowed + 1,
            **status,
        }
        return obj

    await world.registry.modify(Target(BUDGETS, "default", name), change, SYSTEM)


def status_of(world: World, name: str = "pdb") -> dict[str, Any]:
    found = world.registry.cache.get(BUDGETS, "default", name)
    assert found is not None
    status: dict[str, Any] = found.object(BUDGETS)["status"]
    return status


def test_a_pod_is_evicted_and_its_budget_pays(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await running(world, "a", "b")
        await budget(world, 1)
        await world.evictor.evict("default", "a", SYSTEM)
        pod = world.read("a")
        assert "deletionTimestamp" in pod["metadata"]
        said = {one["type"]: one for one in pod["status"]["conditions"]}["DisruptionTarget"]
        assert (said["reason"], said["message"]) == ("EvictionByEvictionAPI", "Eviction API: evicting")
        assert status_of(world)["disruptionsAllowed"] == 0
        assert status_of(world)["disruptedPods"] == {"a": "2023-11-14T22:13:20Z"}
        decision = world.decision("a")
        assert decision is not None
        assert decision.phase == "evicted"
        assert world.on() == ["a", "b"], "it holds its room until it is gone"

    tell(story)


def test_an_exhausted_budget_refuses_in_kubernetes_words_and_nothing_is_written(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await running(world, "a")
        await budget(world, 0)
        before = await world.store.revision()
        no = await refusal(world.evictor.evict("default", "a", SYSTEM))
        assert (no.code, no.reason) == (429, "TooManyRequests")
        assert no.message == "Cannot evict pod as it would violate the pod's disruption budget."
        assert [(one.reason, one.message) for one in no.causes] == [
            ("DisruptionBudget", "The disruption budget pdb needs 1 healthy pods and has 1 currently")
        ]
        assert await world.store.revision() == before

    tell(story)


def test_of_many_evictions_at_once_no_more_are_granted_than_the_budget_allows(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node(cpu="8")
        names = [f"p{at}" for at in range(8)]
        await running(world, *names)
        await budget(world, 3)
        answers = await asyncio.gather(
            *[world.evictor.evict("default", name, SYSTEM) for name in names], return_exceptions=True
        )
        assert sum(one is None for one in answers) == 3
        refused = [one for one in answers if isinstance(one, StatusError)]
        assert {one.code for one in refused} <= {409, 429}
        assert sum("deletionTimestamp" in world.read(name)["metadata"] for name in names) == 3
        assert status_of(world)["disruptionsAllowed"] == 0

    tell(story)


def test_a_pod_that_was_marked_and_not_deleted_is_asked_about_again_when_its_budget_waits_no_longer(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await running(world, "a", "b")
        await budget(world, 1)

        def marked(pod: Object, _held: StoredObject) -> Object:
            with_condition(pod["status"], EVICTED, "2023-11-14T22:13:20Z")
            return pod

        await world.registry.modify(Target(PODS, "default", "a"), marked, SYSTEM)  # and then the server died
        await world.evictor.evict("default", "a", SYSTEM)
        assert status_of(world)["disruptionsAllowed"] == 0
        assert "deletionTimestamp" in world.read("a")["metadata"]
        await world.registry.modify(Target(PODS, "default", "b"), marked, SYSTEM)
        assert (await refusal(world.evictor.evict("default", "b", SYSTEM))).code == 429
        assert "deletionTimestamp" not in world.read("b")["metadata"]

    tell(story)


def test_a_pod_that_has_ended_needs_no_budget(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await running(world, "a")
        await world.report("a", "Succeeded")
        await budget(world, 0)
        await world.evictor.evict("default", "a", SYSTEM, DeleteOptions(grace_s=0))
        assert world.registry.cache.get(PODS, "default", "a") is None

    tell(story)


@pytest.mark.parametrize("allowed", [0, 1])
def test_a_pod_that_becomes_ready_between_its_mark_and_its_deletion_needs_its_budget(
    tell: Tell, allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod("a", nodeName="n1", metadata={"labels": {"app": "a"}})
        await budget(world, allowed)
        delete = world.registry.delete
        deletes = []

        async def later(target: Target, caller: Caller, options: DeleteOptions) -> DeleteResult:
            deletes.append(options.resource_version)
            if len(deletes) == 1:
                await world.report("a", "Running", conditions=[*world.read("a")["status"]["conditions"], *READY_NOW])
            return await delete(target, caller, options)

        monkeypatch.setattr(world.registry, "delete", later)
        if allowed:
            await world.evictor.evict("default", "a", SYSTEM)
            assert "deletionTimestamp" in world.read("a")["metadata"]
            assert status_of(world)["disruptionsAllowed"] == 0
        else:
            no = await refusal(world.evictor.evict("default", "a", SYSTEM))
            assert no.code == 429
            assert "deletionTimestamp" not in world.read("a")["metadata"]

    tell(story)


def test_a_pod_that_changes_at_every_attempt_is_given_up_with_a_conflict(
    tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod("a", nodeName="n1")
        delete = world.registry.delete
        attempts = 0

        async def later(target: Target, caller: Caller, options: DeleteOptions) -> DeleteResult:
            nonlocal attempts
            attempts += 1

            def touch(pod: Object, _held: StoredObject) -> Object:
                pod["metadata"]["annotations"] = {"attempt": str(attempts)}
                return pod

            await world.registry.modify(target, touch, SYSTEM)
            return await delete(target, caller, options)

        monkeypatch.setattr(world.registry, "delete", later)
        assert (await refusal(world.evictor.evict("default", "a", SYSTEM))).code == 409
        assert attempts == ATTEMPTS
        attempts = 0
        at = DeleteOptions(resource_version=world.read("a")["metadata"]["resourceVersion"])
        assert (await refusal(world.evictor.evict("default", "a", SYSTEM, at))).code == 409
        assert attempts == 1, "a caller that named a version is told that it is gone"

    tell(story)


def test_two_budgets_of_one_pod_are_too_many(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await running(world, "a")
        await budget(world, 1, "one")
        await budget(world, 1, "two")
        no = await refusal(world.evictor.evict("default", "a", SYSTEM))
        assert no.code == 500
        assert no.message.startswith("This pod has more than one PodDisruptionBudget")

    tell(story)


def test_a_dry_run_asks_the_budget_and_writes_nothing(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await running(world, "a")
        await budget(world, 1)
        before = await world.store.revision()
        await world.evictor.evict("default", "a", SYSTEM, DeleteOptions(dry_run=True))
        assert await world.store.revision() == before

    tell(story)


def test_preconditions_are_asked(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await running(world, "a")
        for wrong in (DeleteOptions(uid="other"), DeleteOptions(resource_version="1")):
            assert (await refusal(world.evictor.evict("default", "a", SYSTEM, wrong))).code == 409
        assert "conditions" not in world.read("a")["metadata"]
        held = world.held("a")
        right = DeleteOptions(uid=held.uid, resource_version=str(held.revision))
        await world.evictor.evict("default", "a", SYSTEM, right)
        assert "deletionTimestamp" in world.read("a")["metadata"]
        assert (await refusal(world.evictor.evict("default", "none", SYSTEM))).code == 404

    tell(story)


def test_an_eviction_that_is_posted_takes_its_options_from_the_body(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await running(world, "a")
        call = specials(world.binder, world.evictor)["", "pods", "eviction"].call
        target = Target(PODS, "default", "a", "eviction")
        body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
        options = {"preconditions": {"uid": "other"}, "gracePeriodSeconds": 7}
        assert (await refusal(call(CreateRequest(target, {**body, "deleteOptions": options}, SYSTEM)))).code == 409
        other = {**body, "metadata": {"name": "b"}}
        assert (await refusal(call(CreateRequest(target, other, SYSTEM)))).code == 400
        answer = await call(CreateRequest(target, {**body, "deleteOptions": {"gracePeriodSeconds": 7}}, SYSTEM))
        assert (answer["status"], answer["code"]) == ("Success", 201)
        assert world.read("a")["metadata"]["deletionGracePeriodSeconds"] == 7

    tell(story)


def test_a_pod_that_changes_after_its_preconditions_were_asked_is_not_marked(
    tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(world: World) -> None:
        await world.node()
        await running(world, "a")
        seen = world.held("a")
        await world.report("a", "Running", message="changed")

        async def stale(_target: Target) -> StoredObject:
            return seen

        monkeypatch.setattr(world.registry, "get", stale)
        before = await world.store.revision()
        named = DeleteOptions(resource_version=str(seen.revision))
        assert (await refusal(world.evictor.evict("default", "a", SYSTEM, named))).code == 409
        assert await world.store.revision() == before

    tell(story)


async def marked(world: World, name: str) -> None:
    """Marked by a server that then died."""

    def change(pod: Object, _held: StoredObject) -> Object:
        with_condition(pod["status"], EVICTED, "2023-11-14T22:13:20Z")
        return pod

    await world.registry.modify(Target(PODS, "default", name), change, SYSTEM)


def test_a_pod_that_was_marked_before_charges_its_own_budget_and_no_other(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await running(world, "a")
        await budget(world, 2)
        await world.create(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "another", "namespace": "default"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "b"}}},
            }
        )
        await marked(world, "a")
        other = world.registry.cache.get(BUDGETS, "default", "another")
        await world.evictor.evict("default", "a", SYSTEM)
        assert status_of(world)["disruptionsAllowed"] == 1
        assert list(status_of(world)["disruptedPods"]) == ["a"]
        assert world.registry.cache.get(BUDGETS, "default", "another") == other

    tell(story)


def test_a_budget_that_still_waits_for_a_marked_pod_is_not_charged_again(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await running(world, "a")
        await budget(world, 1, disruptedPods={"a": "2023-11-14T22:13:20Z"})
        await marked(world, "a")
        await world.evictor.evict("default", "a", SYSTEM)
        assert status_of(world)["disruptionsAllowed"] == 1
        assert "deletionTimestamp" in world.read("a")["metadata"]

    tell(story)


def test_a_budget_that_is_used_up_meanwhile_refuses_a_marked_pod(tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        await world.node()
        await running(world, "a")
        await budget(world, 1)
        await marked(world, "a")
        modify = world.registry.modify

        async def used_up_first(target: Target, change: Any, caller: Caller, **more: Any) -> StoredObject:
            def last(obj: Object, _held: StoredObject) -> Object:
                obj["status"]["disruptionsAllowed"] = 0
                return obj

            if target.resource is BUDGETS:
                await modify(target, last, SYSTEM)
            return await modify(target, change, caller, **more)

        monkeypatch.setattr(world.registry, "modify", used_up_first)
        no = await refusal(world.evictor.evict("default", "a", SYSTEM))
        assert no.code == 429
        assert status_of(world)["disruptionsAllowed"] == 0
        assert "deletionTimestamp" not in world.read("a")["metadata"]

    tell(story)


@pytest.mark.parametrize(
    "change, code, text",
    [
        ({"metadata": {"name": "a", "namespace": "other"}}, 400, "the namespace of the provided object does not match"),
        ({"metadata": {"name": "b"}}, 400, "name in URL does not match name in Eviction object"),
        ({"deleteOptions": {"dryRun": ["All", "Some"]}}, 422, "dryRun"),
        ({"deleteOptions": {"preconditions": {"resourceVersion": "1"}}}, 409, "ResourceVersion in precondition: 1"),
        ({"deleteOptions": {"preconditions": {"uid": "x"}}}, 409, "UID in precondition: x"),
    ],
)
def test_an_eviction_that_makes_no_sense_is_refused(tell: Tell, change: Object, code: int, text: str) -> None:
    async def story(world: World) -> None:
        await world.node()
        await running(world, "a")
        body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}, **change}
        asked = CreateRequest(Target(PODS, "default", "a", "eviction"), body, SYSTEM)
        before = await world.store.revision()
        no = await refusal(world.evictor.create_eviction(asked))
        assert no.code == code
        assert text in no.message
        assert await world.store.revision() == before

    tell(story)


@pytest.mark.parametrize("way", ["in the body", "of the call", "of the request"])
def test_a_dry_run_may_be_asked_for_in_any_of_the_places(tell: Tell, way: str) -> None:
    async def story(world: World) -> None:
        await world.node()
        await running(world, "a")
        body: Object = {"metadata": {}, "deleteOptions": {"dryRun": ["All"] if way == "in the body" else None}}
        options = WriteOptions(dry_run=way == "of the request")
        target = Target(PODS, "default", "a", "eviction")
        before = await world.store.revision()
        await world.evictor.create_eviction(CreateRequest(target, body, SYSTEM, options, way == "of the call"))
        assert await world.store.revision() == before
        body = {"metadata": {}, "deleteOptions": None}
        await world.evictor.create_eviction(CreateRequest(target, body, SYSTEM))
        assert "deletionTimestamp" in world.read("a")["metadata"]

    tell(story)


def test_a_dry_run_is_refused_what_the_budget_refuses(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await running(world, "a")
        await budget(world, 0)
        no = await refusal(world.evictor.evict("default", "a", SYSTEM, DeleteOptions(dry_run=True)))
        assert no.code == 429

    tell(story)
