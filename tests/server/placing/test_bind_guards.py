"""What a write of a pod or node is guarded by: everything that was checked, and nothing that was not."""

import asyncio
from typing import Any

import pytest

from server.placing.test_bind_transaction import DAEMON
from server.placing.test_binding import lease, refusal
from server.placing.world import World, tell
from situate.agent.control_plane import LeaseRenewal
from situate.agent.control_plane_local import LocalControlPlane
from situate.core.model.ledger import Ledger
from situate.core.model.node import Node
from situate.server.errors import StatusError
from situate.server.placing import bind_transaction, ledger_repair
from situate.server.placing.bind_transaction import LEASE, LEASES, NODES, PODS
from situate.server.placing.decisions import PLACEMENT_DECISIONS
from situate.server.placing.snapshots import NODE_SNAPSHOTS, SnapshotMetadata
from situate.server.placing.write_request import PodWriteRequest
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, Object, Target
from situate.server.resources import Resource
from situate.store.entries import ABSENT
from situate.store.transactions import At, Delete, Guard, Put, Write
from situate.wire import objects as wire_objects

BIND = PodWriteRequest(binds=True)
NODE_LEASES = "kube-node-lease"
REPORT = "situate.dev/report"


def extended(
    world: World,
    resource: Resource,
    before: Object | None,
    after: Object | None,
    request: PodWriteRequest | None = None,
) -> tuple[dict[str, int], dict[str, bool]]:
    """The guarded revision of each key, and whether it is put or deleted."""
    guards: list[Guard] = []
    writes: list[Write] = []
    world.transactions.extend(world.registry.cache, resource, before, after, request, guards, writes)
    found = {guard.key: int(guard.revision) for guard in guards if isinstance(guard, At)}
    assert len(found) == len(guards)
    assert all(isinstance(write, Put | Delete) for write in writes)
    return found, {write.key: isinstance(write, Put) for write in writes}


def stored(world: World, resource: Resource, namespace: str, name: str) -> StoredObject:
    found = world.registry.cache.get(resource, namespace, name)
    assert found is not None
    return found


def on_node(pod: Object, node: str = "n1") -> Object:
    return {**pod, "spec": {**pod["spec"], "nodeName": node}}


def reporting(obj: Object, report: str, **status: Any) -> Object:
    meta = {**obj["metadata"], "annotations": {**obj["metadata"].get("annotations", {}), REPORT: report}}
    return {**obj, "metadata": meta, "status": {**obj.get("status", {}), **status}}


def test_a_bind_is_guarded_by_the_node_its_snapshot_the_term_and_the_decision() -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod()
        await lease(world, 3)
        node, snapshot = stored(world, NODES, "", "n1"), stored(world, NODE_SNAPSHOTS, "", "n1")
        term = stored(world, LEASES, *LEASE)
        pod, request = world.read("p"), PodWriteRequest(binds=True, term=3)
        guards, writes = extended(world, PODS, pod, on_node(pod), request)
        decision = next(key for key in writes if key != snapshot.key)
        assert guards == {
            node.key: node.revision,
            snapshot.key: snapshot.revision,
            term.key: term.revision,
            decision: ABSENT,
        }
        assert writes == {snapshot.key: True, decision: True}
        without, _ = extended(world, PODS, pod, on_node(pod), BIND)
        assert term.key not in without, "the caller named no term"

    tell(story)


def test_the_term_is_read_again_when_the_lease_has_changed() -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod()
        pod = world.read("p")
        for term in (1, 2):
            await lease(world, term)
            extended(world, PODS, pod, on_node(pod), PodWriteRequest(binds=True, term=term))
            with pytest.raises(StatusError, match=f"the scheduler's lease is in term {term}"):
                extended(world, PODS, pod, on_node(pod), PodWriteRequest(binds=True, term=term - 1))

    tell(story)


def test_a_pod_that_leaves_is_guarded_by_the_snapshot_and_the_decision_at_their_revisions() -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1")
        snapshot = stored(world, NODE_SNAPSHOTS, "", "n1")
        decision = stored(world, PLACEMENT_DECISIONS, "default", "p")
        guards, writes = extended(world, PODS, world.read("p"), None)
        assert guards == {snapshot.key: snapshot.revision, decision.key: decision.revision}
        assert writes == {snapshot.key: True, decision.key: False}
        await world.registry.delete(Target(NODES, "", "n1"), SYSTEM)
        guards, writes = extended(world, PODS, world.read("p"), None)
        assert guards == {snapshot.key: snapshot.revision, decision.key: decision.revision}
        assert writes == {snapshot.key: False, decision.key: False}, "nobody is left there"

    tell(story)


def test_a_pod_that_is_on_no_ledger_or_whose_node_has_none_leaves_without_a_write() -> None:
    async def story(world: World) -> None:
        await world.node()
        pod = on_node((await world.pod()).object(PODS))  # as if it had come there unnoticed
        assert extended(world, PODS, pod, None) == ({}, {})
        assert extended(world, PODS, on_node(pod, "n9"), None) == ({}, {})

    tell(story)


def test_a_node_comes_with_an_absent_snapshot_and_goes_with_an_empty_one_at_its_revision() -> None:
    async def story(world: World) -> None:
        await world.node()
        snapshot = stored(world, NODE_SNAPSHOTS, "", "n1")
        node = world.read_node("n1")
        assert extended(world, NODES, node, None) == ({snapshot.key: snapshot.revision}, {snapshot.key: False})
        assert extended(world, NODES, None, node) == ({}, {}), "an earlier node of this name still has it"
        await world.pod(nodeName="n1")
        assert extended(world, NODES, node, None) == ({}, {}), "it has pods"
        other = {**node, "metadata": {**node["metadata"], "name": "n2"}}
        key = snapshot.key.replace("n1", "n2")
        assert extended(world, NODES, None, other) == ({key: ABSENT}, {key: True})
        assert extended(world, NODES, other, None) == ({}, {}), "it has none"

    tell(story)


def test_a_write_of_another_kind_is_left_alone() -> None:
    async def story(world: World) -> None:
        await lease(world, 1)
        held = stored(world, LEASES, *LEASE).object(LEASES)
        assert extended(world, LEASES, None, held) == ({}, {})
        assert world.transactions.lock(LEASES, None, on_node({"spec": {}}), None) is None

    tell(story)


# ── locks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_a_write_that_changes_a_ledger_takes_its_nodes_lock() -> None:
    async def story(world: World) -> None:
        there, ended = on_node({"spec": {}}), {**on_node({"spec": {}}), "status": {"phase": "Failed"}}
        lock = world.transactions.lock
        for before, after in ((None, there), (there, None), (there, ended), ({"spec": {}}, there)):
            held = lock(PODS, before, after, None)
            assert held is not None
            async with held:
                waiting = asyncio.create_task(world.transactions.node_locks.acquire("n1"))
                await asyncio.sleep(0)
                assert not waiting.done()
            await waiting
            world.transactions.node_locks.release("n1")
        assert lock(PODS, there, there, None) is None
        assert lock(PODS, ended, None, None) is None
        assert lock(PODS, None, {"spec": {}}, None) is None
        assert lock(PODS, None, there, BIND) is None, "the binder holds it"
        assert lock(PODS, None, there, PodWriteRequest()) is not None

    tell(story)


# ── agents' reports ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_report_is_guarded_by_the_nodes_lease_and_an_older_one_is_refused() -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1")
        node, pod = world.read_node("n1"), world.read("p")
        assert extended(world, NODES, node, reporting(node, "0.1")) == ({}, {}), "there is no lease yet"
        plane = LocalControlPlane(world.registry)
        term = (await plane.acquire_lease("n1", 40)).term
        await plane.renew_lease("n1", LeaseRenewal(term, 40, 1))
        held = stored(world, LEASES, NODE_LEASES, "n1")
        expected = {held.key: held.revision}
        assert extended(world, NODES, node, reporting(node, f"{term}.1")) == (expected, {})
        guards, _ = extended(world, PODS, pod, reporting(pod, f"{term}.1", phase="Running"))
        assert guards.items() >= expected.items()
        assert extended(world, NODES, node, {**node, "status": {}}) == ({}, {}), "nobody's report"
        for resource, obj in ((NODES, node), (PODS, pod)):
            taken = reporting(obj, f"{term}.5")
            assert held.key not in extended(world, resource, taken, reporting(obj, f"{term}.5"))[0], "the same again"
            extended(world, resource, taken, reporting(obj, f"{term}.6"))
            for late in (f"{term}.4", f"{term + 1}.1"):
                with pytest.raises(StatusError) as no:
                    extended(world, resource, taken, reporting(obj, late))
                assert (no.value.code, [cause.reason for cause in no.value.causes]) == (409, ["StaleReport"])
                assert f'cannot be fulfilled on {resource.plural} "{obj["metadata"]["name"]}"' in no.value.message

    tell(story)


def test_a_bind_is_no_report() -> None:
    async def story(world: World) -> None:
        await world.node()
        pod = (await world.pod()).object(PODS)
        extended(world, PODS, pod, on_node(reporting(pod, "no report at all")), BIND)
        with pytest.raises(StatusError, match="is no report"):
            extended(world, PODS, pod, reporting(pod, "no report at all"))

    tell(story)


def test_a_report_about_an_earlier_pod_of_the_name_is_not_compared_with_this_ones_binding() -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1")
        pod = world.read("p")
        said = {**pod["metadata"], "annotations": {"situate.dev/binding-version": "7"}}
        with pytest.raises(StatusError, match="about binding version 7, and pod p is at version 1") as no:
            extended(world, PODS, pod, {**pod, "metadata": said})
        assert no.value.message.startswith('Operation cannot be fulfilled on pods "p"')
        other = {**pod, "metadata": {**pod["metadata"], "uid": "another"}}
        extended(world, PODS, other, {**other, "metadata": {**said, "uid": "another"}})

    tell(story)


# ── resizes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def asking(pod: Object, cpu: str = "1", port: int = 0, **requests: str) -> Object:
    (container,) = pod["spec"]["containers"]
    wanted = {"cpu": cpu, "memory": "1Gi", **requests}
    made = {**container, "resources": {"requests": wanted}, "ports": [{"containerPort": 80, "hostPort": port}]}
    return {**pod, "spec": {**pod["spec"], "containers": [made]}}


def test_a_resize_is_guarded_by_the_node_and_its_snapshot() -> None:
    async def story(world: World) -> None:
        await world.node(cpu="4")
        await world.pod("a", cpu="2", nodeName="n1", ports=[{"containerPort": 80, "hostPort": 90}])
        await world.pod("b", cpu="1", nodeName="n1")
        pod = world.read("b")
        node, snapshot = stored(world, NODES, "", "n1"), stored(world, NODE_SNAPSHOTS, "", "n1")
        guards, writes = extended(world, PODS, pod, asking(pod, "2"))
        assert guards == {node.key: node.revision, snapshot.key: snapshot.revision}
        assert writes == {snapshot.key: True}
        assert extended(world, PODS, pod, {**pod, "spec": {**pod["spec"], "priority": 1}}) == ({}, {})
        assert set(extended(world, PODS, pod, asking(pod, port=91))[1]) == {snapshot.key}, "another port"
        with pytest.raises(StatusError, match='on pods "b": node "n1" has no room: cpu: asked 3, free 2'):
            extended(world, PODS, pod, asking(pod, "3"))
        with pytest.raises(StatusError, match=r'on pods "b": .* host port TCP/90 is taken by pod default/a'):
            extended(world, PODS, pod, asking(pod, port=90))

    tell(story)


def test_on_an_overfull_node_a_pod_may_shrink_and_keep_what_it_has() -> None:
    async def story(world: World) -> None:
        await world.node(cpu="4")
        await world.pod("a", cpu="4", nodeName="n1")
        await world.report_node("n1", {"cpu": "1", "memory": "512Mi", "pods": "10"})
        pod = world.read("a")
        extended(world, PODS, pod, asking(pod, "2"))  # still too much, and less than before
        extended(world, PODS, pod, asking(pod, "4", port=90))
        with pytest.raises(StatusError, match="memory: asked 2147483648") as no:
            extended(world, PODS, pod, asking(pod, "2", memory="2Gi"))
        assert [cause.field for cause in no.value.causes] == ["memory"], "what shrinks is not held against it"

    tell(story)


def test_where_the_node_is_gone_a_pod_may_only_shrink_and_a_pod_on_no_ledger_is_left_alone() -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod(cpu="2", nodeName="n1")
        stray = on_node((await world.pod("stray")).object(PODS))
        await world.registry.delete(Target(NODES, "", "n1"), SYSTEM)
        pod, snapshot = world.read("p"), stored(world, NODE_SNAPSHOTS, "", "n1")
        guards, _ = extended(world, PODS, pod, asking(pod, "1"))
        assert guards == {snapshot.key: snapshot.revision}
        with pytest.raises(StatusError, match="asked 3, free 0, allocatable 0"):
            extended(world, PODS, pod, asking(pod, "3"))
        _, writes = extended(world, PODS, stray, asking(stray, "3"))
        assert snapshot.key not in writes
        _, writes = extended(world, PODS, on_node(stray, "n9"), asking(on_node(stray, "n9"), "3"))
        assert not [key for key in writes if "snapshot" in key]

    tell(story)


def test_a_resize_keeps_the_binding_and_its_place_among_its_neighbours_devices() -> None:
    async def story(world: World) -> None:
        await world.node()
        uid = (await world.pod()).uid
        await world.binder.bind("default", "p", "n1")

        def change(pod: Object, _held: StoredObject) -> Object:
            return asking(pod, "2", port=90)

        await world.registry.modify(Target(PODS, "default", "p"), change, SYSTEM)
        ledger = world.ledger()
        assert ledger is not None
        (bound,) = ledger.pods
        assert (bound.key, bound.uid, bound.binding_version) == ("default/p", uid, 1)
        assert bound.host_ports == ("TCP/90",)
        assert ledger.allocated["cpu"] == 2000

    tell(story)


def test_a_pod_that_comes_without_a_bind_counts_with_what_it_asks_for_then() -> None:
    async def story(world: World) -> None:
        await world.node(cpu="2")
        pod = (await world.pod(cpu="1")).object(PODS)
        with pytest.raises(StatusError, match="cpu: asked 3, free 2"):
            extended(world, PODS, pod, on_node(asking(pod, "3")))

    tell(story)


# ── phases ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_bound_pod_cannot_become_pending_again() -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1")
        pod = world.read("p")
        with pytest.raises(StatusError, match="pod p is bound, and cannot become pending"):
            extended(world, PODS, pod, {**pod, "spec": {"containers": pod["spec"]["containers"]}})
        nominated = {**pod, "spec": {"containers": pod["spec"]["containers"]}, "status": {"nominatedNodeName": "n2"}}
        with pytest.raises(StatusError, match="pod p is bound, and cannot become reserved"):
            extended(world, PODS, pod, nominated)

    tell(story)


def test_a_nomination_is_a_reservation_and_its_end_is_on_record() -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod()
        await world.report("p", "Pending", nominatedNodeName="n1")
        decision = world.decision("p")
        assert decision is not None
        assert (decision.phase, decision.spec.node, decision.spec.binding_version) == ("reserved", "n1", 0)
        before = stored(world, PLACEMENT_DECISIONS, "default", "p").revision
        await world.report("p", "Pending", message="still")
        assert stored(world, PLACEMENT_DECISIONS, "default", "p").revision == before, "nothing new"
        await world.report("p", "Pending", nominatedNodeName="n2")
        decision = world.decision("p")
        assert decision is not None
        assert decision.spec.node == "n2"
        await world.report("p", "Pending", nominatedNodeName="")
        decision = world.decision("p")
        assert decision is not None
        assert (decision.phase, decision.spec.node) == ("pending", "")

    tell(story)


# ── caches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("most, nodes, snapshots", [(2, ["n1", "n2"], ["n1", "n2"]), (1, ["n1", "n2", "n1"], None)])
def test_decoded_nodes_and_ledgers_are_kept_up_to_a_limit_and_the_oldest_goes(
    monkeypatch: pytest.MonkeyPatch, most: int, nodes: list[str], snapshots: list[str] | None
) -> None:
    read: list[str] = []
    decoded: list[str] = []

    def decode_node(value: bytes) -> Node:
        found = wire_objects.decode_node(value)
        decoded.append(found.metadata.name)
        return found

    def read_snapshot(held: StoredObject) -> tuple[SnapshotMetadata, Ledger]:
        read.append(held.name)
        return ledger_repair.read_snapshot(held)

    monkeypatch.setattr(bind_transaction, "REMEMBERED", most)
    monkeypatch.setattr(bind_transaction, "decode_node", decode_node)
    monkeypatch.setattr(bind_transaction, "read_snapshot", read_snapshot)

    async def story(world: World) -> None:
        for name in ("n1", "n2"):
            await world.node(name)
        for number, node in enumerate(("n1", "n1", "n2", "n2", "n1")):
            await world.pod(f"p{number}", cpu="100m", nodeName=node)
        assert decoded == nodes
        assert read == (snapshots or nodes)

    tell(story)


def test_a_node_that_changed_is_decoded_again() -> None:
    async def story(world: World) -> None:
        await world.node(cpu="1")
        await world.pod("a", nodeName="n1")
        await world.report_node("n1", {"cpu": "2", "memory": "8Gi", "pods": "10"})
        await world.pod("b", nodeName="n1")
        assert world.on() == ["a", "b"]

    tell(story)


def test_a_snapshot_that_another_server_wrote_is_read() -> None:
    async def story(world: World) -> None:
        await world.node(cpu="2")
        await world.pod("a", nodeName="n1")
        other = World(world.store)
        await other.registry.start()
        await other.pod("b", nodeName="n1")
        await other.registry.aclose()
        await world.registry.cache.wait_until_fresh()
        assert "no room" in (await refusal(world.pod("c", nodeName="n1", metadata=DAEMON))).message

    tell(story)
