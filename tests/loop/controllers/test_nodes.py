"""What the runner sees of nodes: renewals that cost nothing, whom a change concerns, and when it must not judge."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from situate.core.model.managed import ManagedPod
from situate.core.model.managed_node import ManagedNode
from situate.core.reconcile.effects import Effect, ObjectRef, PatchStatus
from situate.core.reconcile.nodes.fencing import KUBERNETES
from situate.loop.controllers.cache import ControllerCache, Reconcile, ServedKind, Survey, Task
from situate.loop.controllers.port import WriteResult
from situate.loop.controllers.runner import ASLEEP_MS, Runner

NODES, PODS = ServedKind("v1", "Node", "nodes"), ServedKind("v1", "Pod", "pods")
ZONES = Survey("zones")
NODE, POD = Reconcile(ManagedNode, "", "n"), Reconcile(ManagedPod, "default", "p")
GRACE = KUBERNETES.grace_ms


def node(version: int = 1, ready: str = "True", beat: str = "1", **spec: Any) -> bytes:
    conditions = [{"type": "Ready", "status": ready, "lastHeartbeatTime": beat}]
    meta = {"name": "n", "uid": "u", "resourceVersion": str(version)}
    return msgspec.json.encode({"metadata": meta, "spec": spec, "status": {"conditions": conditions}})


def pod(on: str = "n", phase: str = "Running", *, deleted: bool = False) -> bytes:
    meta = {"name": "p", "namespace": "default", "uid": "up", "resourceVersion": "2"}
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return msgspec.json.encode({"metadata": meta, "spec": {"nodeName": on}, "status": {"phase": phase}})


def lease(renewed: str, version: int = 1, seconds: int = 0) -> bytes:
    meta = {"name": "n", "uid": "ul", "resourceVersion": str(version)}
    return msgspec.json.encode({"metadata": meta, "spec": {"renewTime": renewed, "leaseDurationSeconds": seconds}})


TAINT = [{"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}]


@pytest.mark.parametrize(
    "after, called",
    [
        pytest.param(node(2, beat="2"), [], id="a heartbeat concerns nobody"),
        pytest.param(node(2, "Unknown"), [NODE, POD, ZONES], id="a node that is lost"),
        pytest.param(node(2, taints=TAINT), [NODE, POD, ZONES], id="a taint that makes pods leave"),
        pytest.param(node(2, unschedulable=True), [NODE], id="a cordon"),
    ],
)
def test_whom_a_change_of_a_node_concerns(after: bytes, called: list[Task]) -> None:
    view = ControllerCache([NODES, PODS], KUBERNETES)
    view.put(NODES, node(), 0)
    view.put(PODS, pod(), 0)
    assert view.put(NODES, after, 1) == called


def test_a_node_that_goes_concerns_its_pods_and_the_zones() -> None:
    view = ControllerCache([NODES, PODS], KUBERNETES)
    view.put(NODES, node(), 0)
    view.put(PODS, pod(), 0)
    assert view.drop(NODES, "", "n", 9, 5) == [POD, ZONES]


@pytest.mark.parametrize("held", [None, node(1, "Unknown"), node(1, taints=TAINT)], ids=["gone", "lost", "tainted"])
def test_a_pod_that_comes_to_a_node_that_is_not_well_is_looked_at(held: bytes | None) -> None:
    view = ControllerCache([NODES, PODS], KUBERNETES)
    if held is not None:
        view.put(NODES, held, 0)
    assert view.put(PODS, pod(), 3) == [POD]
    assert view.heartbeats is not None
    view.heartbeats.begin(0)
    assert view.heartbeats.absent_since("n") == (3 if held is None else None)


@pytest.mark.parametrize(
    "held, called",
    [(node(), False), (None, True), (node(1, "Unknown"), True), (node(1, taints=TAINT), True)],
    ids=["well", "gone", "lost", "tainted"],
)
def test_after_a_restart_pods_are_looked_at_whose_node_is_not_well(held: bytes | None, called: bool) -> None:
    view = ControllerCache([NODES, PODS], KUBERNETES)
    if held is not None:
        view.put(NODES, held, 0)
    view.put(PODS, pod(), 0)
    assert (POD in list(view.everything())) is called


def test_pods_that_have_ended_are_counted() -> None:
    view = ControllerCache([NODES, PODS], KUBERNETES)
    view.put(NODES, node(), 0)
    assert view.heartbeats is not None
    for phase, counted in (("Running", 0), ("Failed", 1), ("Failed", 1)):
        view.put(PODS, pod(phase=phase), 0)
        assert view.heartbeats.finished == counted
    view.drop(PODS, "default", "p", 9, 0)
    assert view.heartbeats.finished == 0


def test_without_a_profile_nodes_are_nobodys_business() -> None:
    view = ControllerCache([NODES, PODS])
    view.put(NODES, node(), 0)
    view.put(PODS, pod(), 0)
    view.renewed(lease("1"), 0)
    assert Survey("zones") not in [*view.everything(), *view.put(NODES, node(2, "Unknown"), 0)]


def test_a_node_whose_lease_is_shorter_by_now_is_looked_at_again() -> None:
    view = ControllerCache([NODES, PODS], KUBERNETES)
    view.put(NODES, node(), 0)
    told = [view.renewed(lease(str(at), seconds=each), 0) for at, each in enumerate((40, 40, 15, 15, 40))]
    assert told == [[], [], [NODE], [], []]


class Lives:
    """One node, a clock that is turned by hand, and a port that keeps what it is asked."""

    def __init__(self) -> None:
        self.now = 10 * GRACE
        self.asked: list[Effect] = []
        self.runner = Runner([NODES, PODS], self, lambda: self.now, KUBERNETES)
        self.runner.seen(NODES, node())

    async def perform(self, effect: Effect) -> WriteResult | None:
        self.asked.append(effect)
        return None

    async def is_gone(self, ref: ObjectRef) -> bool:
        raise AssertionError(f"nobody asks for {ref}")

    async def turn(self, ms: int) -> None:
        """Time passes, and is noticed all the while."""
        for _ in range(0, ms, ASLEEP_MS // 2):
            self.now += min(ASLEEP_MS // 2, ms)
            await self.look()

    async def look(self) -> None:
        self.runner.seen(NODES, node(self.now, cordon="no"))
        self.runner._call([NODE, ZONES])
        self.runner._told.set()  # whoever sleeps does so by another clock
        for _ in range(20):
            await asyncio.sleep(0)

    @property
    def judged(self) -> bool:
        return any(isinstance(effect, PatchStatus) for effect in self.asked)


def story(told: Any) -> None:
    async def run() -> None:
        lives = Lives()
        running = asyncio.create_task(lives.runner.run())
        await asyncio.sleep(0)
        try:
            await told(lives)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())


def test_a_node_whose_lease_is_not_renewed_is_judged_and_one_whose_is_is_not() -> None:
    async def told(lives: Lives) -> None:
        for number in range(10):
            lives.runner.renewed(lease(str(number)))
            await lives.turn(GRACE // 2)
        assert not lives.judged
        await lives.turn(GRACE + ASLEEP_MS)
        assert lives.judged

    story(told)


def test_a_lease_that_is_written_and_not_renewed_is_not_renewed() -> None:
    async def told(lives: Lives) -> None:
        for number in range(5):
            lives.runner.renewed(lease("the same", number))
            await lives.turn(GRACE // 2)
        assert lives.judged

    story(told)


def test_who_slept_judges_nobody_for_a_grace() -> None:
    async def told(lives: Lives) -> None:
        lives.now += 100 * GRACE
        await lives.look()
        await lives.turn(GRACE - ASLEEP_MS)
        assert not lives.judged
        await lives.turn(2 * ASLEEP_MS)
        assert lives.judged

    story(told)


def test_who_does_not_see_leases_judges_nobody() -> None:
    async def told(lives: Lives) -> None:
        lives.runner.leases_seen(False)
        await lives.turn(3 * GRACE)
        lives.runner.leases_seen(True)
        await lives.turn(GRACE - ASLEEP_MS)
        assert not lives.judged
        await lives.turn(2 * ASLEEP_MS)
        assert lives.judged

    story(told)


def test_an_outage_stops_what_was_decided_before_it() -> None:
    """The second effect of a call waits for the first, which waits for the store: nodes may be back by then."""

    async def told(lives: Lives) -> None:
        store = asyncio.Event()

        async def perform(effect: Effect) -> WriteResult | None:
            lives.asked.append(effect)
            if len(lives.asked) == 1:
                await store.wait()
            return None

        lives.perform = perform  # type: ignore[method-assign]
        lives.runner.seen(PODS, pod())
        await lives.turn(GRACE + ASLEEP_MS)
        assert len(lives.asked) == 1
        lives.runner.leases_seen(False)
        lives.runner.leases_seen(True)
        store.set()
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(lives.asked) == 1
        await lives.turn(GRACE + ASLEEP_MS)
        assert len(lives.asked) > 2, "it is decided again, and done"

    story(told)


def test_pods_without_a_node_whose_deletion_was_begun_are_counted() -> None:
    view = ControllerCache([NODES, PODS], KUBERNETES)
    assert view.heartbeats is not None
    for made, counted in ((pod(on=""), 0), (pod(on="", deleted=True), 1), (pod(on="", deleted=True), 1)):
        view.put(PODS, made, 0)
        assert view.heartbeats.stranded == counted
    view.drop(PODS, "default", "p", 9, 0)
    assert view.heartbeats.stranded == 0
