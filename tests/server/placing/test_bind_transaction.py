"""What joins every write of a pod or node: no revision overfills a node, and every phase is on record."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import astuple

from server.placing.conftest import Tell
from server.placing.test_binding import refusal
from server.placing.witness import witnessed
from server.placing.world import WITHIN_S, World, opened, pod_object
from situate.server.placing.bind_transaction import NODES, PODS
from situate.server.placing.decisions import PLACEMENT_DECISIONS
from situate.server.placing.snapshots import NODE_SNAPSHOTS
from situate.server.registry.stored_object import StoredObject, read_stored
from situate.server.requests import SYSTEM, Object, Target
from situate.store.memory import MemoryStore


def owned_by(kind: str, name: str = "o", uid: str = "o") -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}
    return {"ownerReferences": [owner]}


DAEMON = owned_by("DaemonSet")


async def no_room(world: World, name: str) -> str:
    """Why a pod of a controller is not created on n1."""
    return (await refusal(world.pod(name, nodeName="n1", metadata=DAEMON))).message


MIRROR = {"annotations": {"kubernetes.io/config.mirror": "x"}}


def test_a_node_comes_with_an_empty_snapshot(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        found = world.ledger()
        assert found is not None
        assert (found.pods, found.allocated) == ((), {})

    tell(story)


def test_a_pod_that_is_created_with_a_node_is_on_its_ledger(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1")
        assert world.on() == ["p"]
        decision = world.decision("p")
        assert decision is not None
        assert (decision.phase, decision.spec.node, decision.spec.binding_version) == ("bound", "n1", 1)

    tell(story)


def test_what_is_told_of_a_snapshot_and_a_decision_is_what_would_be_read(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        for name in ("a", "b"):  # the first comes to a snapshot without pods, the second to one that has some
            await world.pod(name, nodeName="n1")
            await world.report(name, "Running")
            cache = world.registry.cache
            for held in (*cache.all(NODE_SNAPSHOTS), *cache.all(PLACEMENT_DECISIONS)):
                read = read_stored(held.key, held.value, held.revision)
                assert read.uid
                assert astuple(held) == astuple(read)

    tell(story)


@pytest.mark.parametrize(
    "meta",
    [
        pytest.param(DAEMON, id="of a DaemonSet"),
        pytest.param(MIRROR, id="of a node itself"),
    ],
)
def test_a_controllers_pod_that_names_a_full_node_is_refused_with_the_amounts(tell: Tell, meta: dict[str, Any]) -> None:
    async def story(world: World) -> None:
        await world.node(cpu="4")
        await world.pod("a", cpu="3", nodeName="n1")
        no = await refusal(world.pod("b", cpu="2", nodeName="n1", metadata=meta))
        assert (no.code, no.reason) == (409, "Conflict")
        assert no.message == (
            'Operation cannot be fulfilled on pods "b": node "n1" has no room: cpu: asked 2, free 1, allocatable 4'
        )
        assert world.registry.cache.get(PODS, "default", "b") is None

    tell(story)


@pytest.mark.parametrize(
    "fields, reason, message",
    [
        pytest.param(
            {"nodeName": "n9"},
            "InvalidNodeInfo",
            'Pod was rejected: node "n9" not found',
            id="a node that is not there",
        ),
        pytest.param(
            {"cpu": "2"},
            "OutOfcpu",
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000",
            id="a full node",
        ),
        pytest.param(
            {"ports": [{"containerPort": 1, "hostPort": 80}]},
            "NodePorts",
            "Pod was rejected: Predicate NodePorts failed: host ports TCP/80 are taken",
            id="a node with its port in use",
        ),
        pytest.param(
            {"nodeSelector": {"disk": "fast"}},
            "NodeAffinity",
            "Pod was rejected: its labels do not have disk=fast, which the pod's nodeSelector asks for",
            id="a node without its label",
        ),
    ],
)
def test_a_users_pod_that_names_a_node_that_cannot_run_it_is_stored_as_failed(
    tell: Tell, fields: dict[str, Any], reason: str, message: str
) -> None:
    async def story(world: World) -> None:
        await world.node(cpu="4")
        await world.pod("a", cpu="3", nodeName="n1", ports=[{"containerPort": 1, "hostPort": 80}])
        made = (await world.pod("b", **{"nodeName": "n1", **fields})).object(PODS)
        assert made == world.read("b")
        status = made["status"]
        assert (status["phase"], status["reason"], status["message"]) == ("Failed", reason, message)
        assert world.on() == ["a"], "it takes no room"
        decision = world.decision("b")
        assert decision is not None
        assert decision.phase == "failed"
        assert (await witnessed(world.store)).problems == []
        await world.delete_pod("b")
        assert world.on() == ["a"]
        assert world.decision("b") is None

    tell(story)


def test_where_asked_a_pod_that_is_bound_to_a_node_that_is_not_there_has_failed() -> None:
    async def told() -> None:
        async with asyncio.timeout(WITHIN_S), opened(MemoryStore(), fails_stray_binds=True) as world:
            await world.pod("stray")
            await world.binder.bind("default", "stray", "n9")
            made = world.read("stray")
            assert made is not None
            assert made["spec"]["nodeName"] == "n9"
            status = made["status"]
            assert (status["phase"], status["reason"]) == ("Failed", "InvalidNodeInfo")
            assert {one["type"]: one["status"] for one in status["conditions"]} == {"PodScheduled": "True"}
            decision = world.decision("stray")
            assert decision is not None
            assert decision.phase == "failed"
            no = await refusal(world.binder.bind("default", "stray", "n9"))
            assert no.message.endswith('pod stray is already assigned to node "n9"')
            await world.node(cpu="1")
            await world.pod("p")
            await world.pod("q")
            await world.binder.bind("default", "p", "n1")
            assert 'node "n1" has no room' in (await refusal(world.binder.bind("default", "q", "n1"))).message
            assert (await witnessed(world.store)).problems == []

    asyncio.run(told())


def test_of_pods_from_one_template_those_that_find_no_room_have_failed(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node(cpu="2")
        for name in ("a", "b", "c", "d"):
            await world.pod(name, nodeName="n1")
        assert world.on() == ["a", "b"]
        assert [world.read(name)["status"]["phase"] for name in ("b", "c", "d")] == ["Pending", "Failed", "Failed"]
        assert [world.held(name).values for name in ("c", "d")] == [world.held("c").values] * 2

    tell(story)


def test_when_the_room_goes_between_the_look_and_the_commit_the_pod_has_failed(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node(cpu="1")
        await asyncio.gather(*(world.pod(name, nodeName="n1") for name in ("a", "b", "c")))
        phases = [world.read(name)["status"]["phase"] for name in ("a", "b", "c")]
        assert sorted(phases) == ["Failed", "Failed", "Pending"]
        assert len(world.on()) == 1

    tell(story)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_makes_room(tell: Tell, phase: str) -> None:
    async def story(world: World) -> None:
        await world.node(cpu="1")
        await world.pod("a", nodeName="n1")
        await world.report("a", "Running")
        assert world.on() == ["a"]
        await world.report("a", phase)
        assert world.on() == []
        await world.pod("b", nodeName="n1")
        await world.delete_pod("a")
        assert world.on() == ["b"]

    tell(story)


def test_a_pod_that_is_going_holds_its_room_until_it_is_gone(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node(cpu="1")
        await world.pod("a", nodeName="n1")
        await world.report("a", "Running")
        await world.delete_pod("a", grace_s=30)
        assert "no room" in await no_room(world, "b")
        await world.delete_pod("a", grace_s=0)
        await world.pod("b", nodeName="n1")
        assert world.on() == ["b"]
        assert world.decision("a") is None, "it went with its pod"

    tell(story)


def test_when_a_node_shrinks_nobody_leaves_and_nobody_comes_until_there_is_room(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node(cpu="4")
        for name in ("a", "b", "c"):
            await world.pod(name, nodeName="n1")
        await world.report_node("n1", {"cpu": "2", "memory": "8Gi", "pods": "10"})
        assert world.on() == ["a", "b", "c"]
        assert (
            "cpu: asked 1, free -1, allocatable 2"
            in (await refusal(world.pod("d", nodeName="n1", metadata=DAEMON))).message
        )
        await world.delete_pod("a")
        assert "free 0" in await no_room(world, "d")
        await world.delete_pod("b")
        await world.pod("d", nodeName="n1")
        assert world.on() == ["c", "d"]
        assert (await witnessed(world.store)).problems == []

    tell(story)


def test_the_snapshot_of_a_deleted_node_stays_until_its_last_pod_is_gone(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node(cpu="1")
        await world.pod(nodeName="n1")
        await world.registry.delete(Target(NODES, "", "n1"), SYSTEM)
        assert world.on() == ["p"]
        await world.node(cpu="1")
        assert "no room" in await no_room(world, "q"), "the old one is there still"
        await world.registry.delete(Target(NODES, "", "n1"), SYSTEM)
        await world.delete_pod("p")
        assert world.registry.cache.get(NODE_SNAPSHOTS, "", "n1") is None

    tell(story)


def test_the_snapshot_of_an_empty_node_goes_with_it(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.registry.delete(Target(NODES, "", "n1"), SYSTEM)
        assert world.registry.cache.get(NODE_SNAPSHOTS, "", "n1") is None

    tell(story)


def test_a_pod_that_grows_where_it_is_needs_room_for_that(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node(cpu="4")
        await world.pod("a", cpu="2", nodeName="n1")
        await world.pod("b", cpu="1", nodeName="n1")

        def asking(cpu: str) -> Any:
            def change(pod: Object, _held: StoredObject) -> Object:
                pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
                return pod

            return change

        await world.registry.modify(Target(PODS, "default", "b"), asking("2"), SYSTEM)
        ledger = world.ledger()
        assert ledger is not None
        assert ledger.allocated["cpu"] == 4000
        no = await refusal(world.registry.modify(Target(PODS, "default", "b"), asking("3"), SYSTEM))
        assert "cpu: asked 3, free 2, allocatable 4" in no.message
        await world.registry.modify(Target(PODS, "default", "b"), asking("500m"), SYSTEM)
        assert (await witnessed(world.store)).problems == []

    tell(story)


def test_many_pods_that_end_at_once_on_one_node_all_leave_its_ledger(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node(cpu="40", allocatable={"pods": "40", "memory": "64Gi"})
        await asyncio.gather(*[world.pod(f"p{at}") for at in range(40)])
        await asyncio.gather(*[world.binder.bind("default", f"p{at}", "n1") for at in range(40)])
        await asyncio.gather(*[world.report(f"p{at}", "Succeeded") for at in range(40)])
        assert world.on() == []
        assert (await witnessed(world.store)).problems == []

    tell(story)


# -- the life of a binding ---------------------------------------------------------------------------------------------


def phases(world: World, name: str) -> list[str]:
    decision = world.decision(name)
    return [] if decision is None else [one.phase for one in decision.status.phases]


def test_every_phase_is_on_record_with_its_time(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod()
        assert world.decision("p") is None, "nothing was decided"
        await world.binder.bind("default", "p", "n1")
        world.now_ns += 5 * 1_000_000_000
        held = await world.report("p", "Running")
        decision = world.decision("p")
        assert decision is not None
        assert [(one.phase, one.at) for one in decision.status.phases] == [
            ("bound", "2023-11-14T22:13:20Z"),
            ("running", "2023-11-14T22:13:25Z"),
        ]
        found = world.registry.cache.get(NODE_SNAPSHOTS, "", "n1")
        assert found is not None
        assert found.revision < held.revision, "the node holds what it held"
        await world.report("p", "Failed", reason="Error")
        assert phases(world, "p") == ["bound", "running", "failed"]

    tell(story)


@pytest.mark.parametrize("ended", ["Succeeded", "Failed"])
@pytest.mark.parametrize("later", ["Running", "Pending"])
def test_a_pod_that_has_ended_does_not_come_back(tell: Tell, ended: str, later: str) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1")
        await world.report("p", ended)
        no = await refusal(world.report("p", later))
        assert (no.code, {one.reason for one in no.causes}) == (409, {"IllegalMove"})
        assert no.message == f'Operation cannot be fulfilled on pods "p": pod p is {ended}, and stays so'
        assert world.on() == []

    tell(story)


def test_a_report_about_another_binding_is_refused(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1")
        no = await refusal(world.report("p", "Running", annotations={"situate.dev/binding-version": "0"}))
        assert (no.code, {one.reason for one in no.causes}) == (409, {"StaleBindingVersion"})
        await world.report("p", "Running", annotations={"situate.dev/binding-version": "1"})
        assert phases(world, "p") == ["bound", "running"]

    tell(story)


def test_what_a_user_wrote_into_that_annotation_holds_up_no_report(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1", metadata={"annotations": {"situate.dev/binding-version": "77"}})
        await world.report("p", "Running")
        assert phases(world, "p") == ["bound", "running"]

    tell(story)


async def stateful_set(world: World) -> dict[str, Any]:
    """One, and the metadata of its pods."""
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "serviceName": "s", "selector": {"matchLabels": {"app": "a"}}, "template": template}
    meta = {"name": "web", "namespace": "default"}
    made = await world.create({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec})
    return owned_by("StatefulSet", "web", made.uid)


def test_the_next_pod_of_an_evicted_ones_name_is_rebinding_and_counts_on(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        stateful = await stateful_set(world)
        first = await world.create(pod_object("web-0", nodeName="n1", metadata=stateful))
        await world.report("web-0", "Running")
        await world.evictor.evict("default", "web-0", SYSTEM)
        assert phases(world, "web-0")[-1] == "evicted"
        await world.delete_pod("web-0", grace_s=0)
        assert world.on() == []
        second = await world.create(pod_object("web-0", metadata=stateful))
        decision = world.decision("web-0")
        assert decision is not None
        assert (decision.phase, decision.spec.pod_uid) == ("rebinding", second.uid)
        assert first.uid != second.uid
        no = await refusal(world.binder.bind("default", "web-0", "n1", uid=second.uid, binding_version=1))
        assert "binding version 1 is stale" in no.message
        await world.binder.bind("default", "web-0", "n1", uid=second.uid, binding_version=2)
        ledger = world.ledger()
        assert ledger is not None
        assert [one.binding_version for one in ledger.pods] == [2]
        assert phases(world, "web-0") == ["bound", "running", "evicted", "rebinding", "bound"]

    tell(story)


def test_a_pod_of_the_same_name_that_was_just_deleted_begins_anew(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        stateful = await stateful_set(world)
        await world.create(pod_object("web-0", nodeName="n1", metadata=stateful))
        await world.delete_pod("web-0")
        await world.create(pod_object("web-0", metadata=stateful))
        assert world.decision("web-0") is None

    tell(story)


def test_a_decision_that_nobody_will_come_back_for_goes_with_its_pod(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.create(pod_object("web-0", nodeName="n1", metadata=owned_by("StatefulSet", "gone", "x")))
        await world.report("web-0", "Failed")
        await world.delete_pod("web-0")
        assert world.decision("web-0") is None

    tell(story)


def test_what_a_crash_leaves_is_whole(tell: Tell) -> None:
    """Everything that is there is in the store: a second server that opens it goes on from there."""

    async def story(world: World) -> None:
        await world.node(cpu="2")
        await world.pod("a")
        await world.binder.bind("default", "a", "n1")
        other = World(world.store)
        await other.registry.start()
        await other.pod("b", nodeName="n1")
        assert "no room" in await no_room(other, "c")
        await other.report("a", "Succeeded")
        await other.registry.aclose()
        await world.registry.cache.wait_until_fresh()
        assert world.on() == ["b"]
        assert (await witnessed(world.store)).problems == []

    tell(story)
