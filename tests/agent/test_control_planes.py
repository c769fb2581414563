"""The control plane as agents have it: in the server's process."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from server.placing.world import World, tell
from situate.agent.control_plane import (
    AcquiredLease,
    ControlPlaneError,
    LeaseLostError,
    LeaseRenewal,
    StaleError,
    StatusOrigin,
    StatusReport,
)
from situate.agent.control_plane_local import LocalControlPlane
from situate.agent.desired_state import NodeConfiguration, decode_snapshot
from situate.agent.node_objects import LEASES
from situate.core.reconcile.nodes.fencing import PROMISE
from situate.core.reconcile.nodes.reports import ACKNOWLEDGED, REPORT, AgentReport
from situate.server.errors import StatusError, conflict
from situate.server.resources import BY_KIND

Story = Callable[[World, LocalControlPlane], Awaitable[None]]


def told(story: Story) -> None:
    async def on(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1")
        await story(world, LocalControlPlane(world.registry))

    tell(on)


LEASE = BY_KIND["coordination.k8s.io/v1", "Lease"]
RUNNING: dict[str, Any] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def test_a_report_about_this_binding_is_taken() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        await plane.report_status(world.read("p"), RUNNING, StatusOrigin(1))
        assert world.read("p")["status"]["phase"] == "Running"

    told(story)


def test_a_report_about_another_binding_is_stale() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        with pytest.raises(StaleError):
            await plane.report_status(world.read("p"), RUNNING, StatusOrigin(2))
        assert world.read("p")["status"].get("phase") != "Running"

    told(story)


@pytest.mark.parametrize("part, name, value", [("metadata", "uid", "another"), ("spec", "nodeName", "another")])
def test_a_report_about_another_pod_is_stale(part: str, name: str, value: str) -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        pod = world.read("p")
        with pytest.raises(StaleError):
            await plane.report_status({**pod, part: {**pod[part], name: value}}, RUNNING)

    told(story)


def test_a_report_that_other_writers_outran_may_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def outrun(*_: Any, **__: Any) -> None:
        raise conflict("pods", "", "p")

    async def each_outrun(changes: Sequence[Any]) -> list[StatusError]:
        return [conflict("pods", "", "p") for _ in changes]

    async def story(world: World, plane: LocalControlPlane) -> None:
        monkeypatch.setattr(world.registry, "modify", outrun)
        monkeypatch.setattr(world.registry, "modify_each", each_outrun)
        with pytest.raises(ControlPlaneError) as raised:
            await plane.report_status(world.read("p"), RUNNING, StatusOrigin(1))
        [outcome] = await plane.report_statuses([StatusReport(world.read("p"), RUNNING, StatusOrigin(1))])
        assert (type(raised.value), type(outcome)) == (ControlPlaneError, ControlPlaneError)

    told(story)


def test_what_is_not_there_is_none() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        assert await plane.get("ConfigMap", "default", "none") is None

    told(story)


def test_a_snapshot_says_which_binding_it_is_and_how_the_agent_is_to_be() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        read = await anext(plane.watch_snapshots("n1"))
        found = decode_snapshot(read.body or b"")
        assert (read.version, found.bindings) == (found.version, {world.read("p")["metadata"]["uid"]: 1})
        assert found.configuration == NodeConfiguration(40, 10)

    told(story)


def test_snapshots_are_told_from_a_version_on() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        first = await anext(plane.watch_snapshots("n1"))
        later = plane.watch_snapshots("n1", first.version)
        await world.pod("q", nodeName="n1")
        second = await anext(later)
        assert second.version > first.version
        assert len(decode_snapshot(second.body or b"").bindings) == 2

    told(story)


def test_where_a_version_is_gone_the_whole_is_told() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        watch, refused = world.registry.watch, list[str]()

        async def forgetful(target: Any, options: Any) -> Any:
            if options.resource_version:
                refused.append(options.resource_version)
                raise StatusError(410, "Expired", "too old resource version")
            return await watch(target, options)

        world.registry.watch = forgetful  # type: ignore[assignment, method-assign]
        read = await anext(plane.watch_snapshots("n1", 1))
        assert refused == ["1"]
        assert len(decode_snapshot(read.body or b"").bindings) == 1

    told(story)


@pytest.mark.parametrize("least, term", [(0, 1), (1, 1), (5, 5)])
def test_the_first_term_of_a_new_lease_is_the_least_that_the_agent_may_have(least: int, term: int) -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        assert await plane.acquire_lease("unknown", 40, least) == AcquiredLease(term)

    told(story)


def test_a_lease_is_taken_in_a_new_term_each_time_and_whoever_had_it_is_told() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        first = await plane.acquire_lease("n1", 40)
        await plane.renew_lease("n1", LeaseRenewal(first.term, 40, 17))
        second = await plane.acquire_lease("n1", 15)
        assert (first.term, first.before) == (1, 0)
        assert second == AcquiredLease(2, 1, 40)
        with pytest.raises(LeaseLostError):
            await plane.renew_lease("n1", LeaseRenewal(first.term, 40))
        held = world.registry.cache.get(LEASE, LEASES, "n1")
        assert held is not None
        lease = held.object(LEASE)
        assert lease["spec"]["leaseTransitions"] == 2
        assert lease["metadata"]["annotations"][ACKNOWLEDGED] == "17"
        assert (await plane.acquire_lease("n1", 15, 9)).term == 9

    told(story)


def test_a_promise_to_be_fenced_is_for_the_renewal_that_made_it() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        def promised() -> bool:
            held = world.registry.cache.get(LEASE, LEASES, "n1")
            assert held is not None
            lease = held.object(LEASE)
            return bool(lease["metadata"].get("annotations", {}).get(PROMISE) == lease["spec"]["renewTime"])

        first = await plane.acquire_lease("n1", 40, 1, fenced=True)
        assert promised()
        await plane.renew_lease("n1", LeaseRenewal(first.term, 40))
        assert not promised()
        await plane.renew_lease("n1", LeaseRenewal(first.term, 40, fenced=True))
        assert promised()
        await plane.acquire_lease("n1", 40, 1, fenced=True)  # another agent, which does not know the first
        assert not promised()
        await plane.acquire_lease("n1", 40, 3, fenced=True)  # the same one again
        assert promised()

    told(story)


def test_an_older_report_of_a_pod_or_node_is_stale() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        term = (await plane.acquire_lease("n1", 40)).term
        node = world.read_node("n1")
        await plane.register_node(node, AgentReport(term, 2))
        await plane.report_status(world.read("p"), RUNNING, StatusOrigin(1, AgentReport(term, 2)))
        for number in (1,):
            with pytest.raises(StaleError, match=f"report {term}.{number} is stale: {term}.2 was taken already"):
                await plane.register_node(node, AgentReport(term, number))
            with pytest.raises(StaleError, match="is stale"):
                await plane.report_status(world.read("p"), RUNNING, StatusOrigin(1, AgentReport(term, number)))
        await plane.register_node(node, AgentReport(term, 3))

    told(story)


def test_reports_of_an_agent_that_was_replaced_are_stale() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        old = (await plane.acquire_lease("n1", 40)).term
        new = (await plane.acquire_lease("n1", 40)).term
        with pytest.raises(StaleError, match=f"the node's lease is in term {new}"):
            await plane.report_status(world.read("p"), RUNNING, StatusOrigin(1, AgentReport(old, 5)))
        with pytest.raises(StaleError, match=f"the node's lease is in term {new}"):
            await plane.register_node(world.read_node("n1"), AgentReport(old, 5))
        await plane.report_status(world.read("p"), RUNNING, StatusOrigin(1, AgentReport(new, 1)))
        assert world.read("p")["metadata"]["annotations"][REPORT] == f"{new}.1"

    told(story)


def test_a_report_of_a_node_leaves_the_conditions_of_others() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        said = {**world.read_node("n1"), "status": {"conditions": [{"type": "SnapshotLagging", "status": "True"}]}}
        await plane.register_node(said)
        await plane.register_node({**said, "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
        conditions = world.read_node("n1")["status"]["conditions"]
        assert [one["type"] for one in conditions] == ["SnapshotLagging", "Ready"]

    told(story)


def test_a_node_is_seen_as_it_changes() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        reads = plane.watch_nodes("n1")
        assert (await anext(reads)).name == "n1"
        await plane.register_node(
            {**world.read_node("n1"), "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        )
        assert b'"Ready"' in ((await anext(reads)).body or b"")

    told(story)


def test_a_report_of_a_node_changes_its_own_annotations_and_leaves_others() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        for annotations in ({"theirs": "1", "own": "1"}, {"own": "2"}):
            node = world.read_node("n1")
            await plane.register_node({**node, "metadata": {"name": "n1", "annotations": annotations}})
        found = world.read_node("n1")["metadata"]["annotations"]
        assert (found["theirs"], found["own"]) == ("1", "2")

    told(story)


def test_the_same_event_again_counts() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        from situate.agent.events import event_body
        from situate.server.requests import Target
        from situate.server.resources import BY_KIND

        event = event_body(world.read("p"), "n1", "Warning", "Unhealthy", "no answer", "c", world.now_ns)
        for _ in range(3):
            await plane.record_event(event)
        (held,) = (await world.registry.list(Target(BY_KIND["v1", "Event"], "default"))).items
        found = held.object(BY_KIND["v1", "Event"])
        assert (found["count"], found["involvedObject"]["fieldPath"]) == (3, "spec.containers{c}")

    told(story)


def test_pods_are_told_and_then_what_changes() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        reads = plane.watch_pods("n1")
        first, end = await anext(reads), await anext(reads)
        assert (first.name, first.body is not None, end.listed) == ("p", True, True)
        await world.pod("q", nodeName="n1")
        await plane.delete_pod(world.read("p"))
        later = [await anext(reads) for _ in range(3)]
        assert [(one.name, one.body is None) for one in later] == [("q", False), ("p", False), ("p", True)]
        await reads.aclose()  # type: ignore[attr-defined]

    told(story)


def test_a_pod_that_is_gone_cannot_be_removed_again() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        pod = world.read("p")
        await plane.delete_pod(pod)
        with pytest.raises(StaleError):
            await plane.delete_pod(pod)
        await asyncio.sleep(0)

    told(story)


def test_of_several_reports_each_has_its_outcome() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        await world.pod("q", nodeName="n1")
        gone = world.read("q")
        gone = {**gone, "metadata": {**gone["metadata"], "name": "gone"}}
        origin, other = StatusOrigin(1, AgentReport(1, 1)), StatusOrigin(2, AgentReport(1, 2))
        await plane.acquire_lease("n1", 40)
        found = await plane.report_statuses(
            [
                StatusReport(world.read("p"), RUNNING, origin),
                StatusReport(world.read("q"), RUNNING, other),
                StatusReport(gone, RUNNING, origin),
            ]
        )
        assert [type(one) for one in found] == [type(None), StaleError, StaleError]
        assert world.read("p")["status"]["phase"] == "Running"
        assert world.read("p")["metadata"]["annotations"][REPORT] == "1.1"
        assert world.read("q")["status"].get("phase") != "Running"

    told(story)


def test_of_several_renewals_each_has_its_outcome_and_a_deleted_lease_comes_back() -> None:
    async def story(world: World, plane: LocalControlPlane) -> None:
        for node in ("n1", "n2"):
            await plane.acquire_lease(node, 40)
        renewals = [("n1", LeaseRenewal(1, 40, 7)), ("n2", LeaseRenewal(5, 40)), ("n3", LeaseRenewal(1, 40, 9))]
        first, second, third = await plane.renew_leases(renewals)
        assert (first, third) == (None, None)
        assert isinstance(second, LeaseLostError)
        held = [world.registry.cache.get(LEASE, LEASES, node) for node in ("n1", "n2", "n3")]
        said = [{} if one is None else one.object(LEASE)["metadata"].get("annotations", {}) for one in held]
        assert [one.get(ACKNOWLEDGED) for one in said] == ["7", None, "9"]

    told(story)
