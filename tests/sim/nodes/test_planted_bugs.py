"""Bugs of the kinds that data planes have had, planted one at a time: the simulation must find each, and name it.

A checker that finds no planted bug finds no real one either. Each bug is in an agent or in the control plane; machines,
network and checkers are as ever.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from situate.agent import node_status
from situate.agent.control_plane import NodeUpdate
from situate.agent.control_plane_local import LocalControlPlane
from situate.agent.desired_state import DesiredState
from situate.agent.fence import Fence
from situate.agent.pod_manager import PodManager
from situate.agent.worker import WorkerContext
from situate.core.reconcile.nodes import eviction, health, taints, zones
from situate.core.reconcile.nodes.fencing import FAST, KUBERNETES, NodeProfile
from situate.core.reconcile.nodes.heartbeats import Heartbeats
from situate.core.reconcile.nodes.taints import given_up
from situate.loop.election import Elector
from situate.server.controllers import leader
from situate.server.controllers.registry_controllers import RegistryControllers
from situate.server.placing.bind_transaction import LEASES
from situate.server.registry.keys import key_of
from situate.server.registry.registry import Registry
from situate.server.scheduling import scheduler
from situate.sim.nodes.world import run
from situate.store.transactions import Guard, Present

Plant = Callable[[pytest.MonkeyPatch], None]

WORLDS = 40
FOR_EVER_S = 1e9


# -- two at once ------------------------------------------------------------------------------------------------------


def an_agent_never_stops_by_itself(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fence, "closes_at", property(lambda self: self.renewed_at + FOR_EVER_S))


def an_agent_takes_its_clock_to_be_right(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fence, "closes_at", property(lambda self: self.renewed_at + self.lease_s))


def nobody_waits_until_a_lost_node_must_have_stopped(patch: pytest.MonkeyPatch) -> None:
    """A node counts as lost, and its pods as stopped, after a third of the time."""
    patch.setattr(Heartbeats, "waits_ms", lambda self, node: 0)
    patch.setattr(Heartbeats, "lease_over_at", lambda self, node: None if (at := self.last(node)) is None else at)
    real = Heartbeats.silent_at
    patch.setattr(Heartbeats, "silent_at", lambda self, node, patience: real(self, node, patience // 3))


def no_promise_is_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Heartbeats, "stopped_at", lambda self, node: None)


def pods_of_a_node_that_is_gone_are_forced_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(eviction, "_orphaned", lambda one, _, now, result: eviction._force(one, now, result))


def an_agent_begins_pods_as_soon_as_it_may(patch: pytest.MonkeyPatch) -> None:
    """And not only when it was told once more which they are."""
    patch.setattr(PodManager, "is_current", property(lambda self: True, lambda self, value: None), raising=False)


# -- snapshots that go back -------------------------------------------------------------------------------------------


def an_older_snapshot_is_taken(patch: pytest.MonkeyPatch) -> None:
    def update(self: DesiredState, snapshot: Any) -> str:
        self.held = snapshot
        return "newer"

    patch.setattr(DesiredState, "update", update)


def what_is_on_disk_is_begun_at_once(patch: pytest.MonkeyPatch) -> None:
    real = PodManager.restore

    def restore(self: PodManager, context: WorkerContext) -> None:
        real(self, context)
        for pod in self._checkpoint.pods:
            if pod["metadata"]["uid"] not in self.workers:
                self._add_worker(pod, 1, None)

    patch.setattr(PodManager, "restore", restore)
    patch.setattr(PodManager, "is_current", property(lambda self: True, lambda self, value: None), raising=False)


def what_is_on_disk_is_acknowledged(patch: pytest.MonkeyPatch) -> None:
    real = PodManager.restore

    def restore(self: PodManager, context: WorkerContext) -> None:
        real(self, context)
        self._lease.acknowledge(self.desired.version)

    patch.setattr(PodManager, "restore", restore)


# -- evictions beyond the rates ---------------------------------------------------------------------------------------


def nodes_are_given_up_one_after_the_other(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(zones, "spacing", lambda zone, profile: 0)
    patch.setattr(Heartbeats, "last_given_up", lambda self, zone: -(10**9))


def nodes_are_given_up_in_a_zone_that_is_mostly_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(zones, "_rate", lambda nodes, unhealthy, profile: profile.rate)


def nodes_are_given_up_though_all_are_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(zones, "all", lambda _: False, raising=False)
    patch.setattr(zones, "_take_back", lambda nodes, result: None)
    real = zones.taint_lost_nodes

    def survey(objects: Any, heartbeats: Any, now: int) -> Any:
        heartbeats._up["nobody"] = None
        try:
            return real(objects, heartbeats, now)
        finally:
            del heartbeats._up["nobody"]

    patch.setattr("situate.loop.controllers.surveys.taint_lost_nodes", survey)


def a_control_plane_that_has_just_begun_gives_nodes_up(patch: pytest.MonkeyPatch) -> None:
    """By what is stored of them, though it was not listened to meanwhile."""
    patch.setattr(Heartbeats, "may_give_up_at", property(lambda self: self.since))
    patch.setattr(zones, "_lost_at", lambda one, _, now: None if given_up(one) else now)


def pods_leave_before_their_patience_is_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(eviction, "_tolerated_until", lambda tolerations, taint, now: now)


# -- what is told late ---------------------------------------------------------------------------------------------


def late_reports_are_taken(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("situate.server.placing.reports.stale_reason", lambda said, held, term: "")


# -- several servers on one store --------------------------------------------------------------------------------


def a_server_ends_with_its_lease(patch: pytest.MonkeyPatch) -> None:
    """The loss cancels the controllers, and whoever waits for them takes that for their end."""

    async def lead(elector: Elector, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await elector.acquire()
        working = asyncio.create_task(work())
        await elector.hold()
        working.cancel()
        await working

    patch.setattr(leader, "lead", lead)


def a_leader_writes_without_its_term(patch: pytest.MonkeyPatch) -> None:
    def fence(registry: Registry, elector: Elector) -> Callable[[], Guard]:
        """The Lease is there, whoever holds it."""
        return lambda: Present(key_of(LEASES, *leader.LEASE))

    patch.setattr(leader, "fence", fence)


def a_scheduler_does_not_list_again(patch: pytest.MonkeyPatch) -> None:
    """Not even when the store has compacted what it missed."""
    patch.setattr(scheduler, "CompactedError", OSError)


def nodes_are_judged_by_the_silence_of_the_store(patch: pytest.MonkeyPatch) -> None:
    async def look(self: RegistryControllers) -> None:
        await asyncio.Event().wait()

    patch.setattr(RegistryControllers, "_look_at_store", look)


# -- what does not settle ---------------------------------------------------------------------------------------------


def an_agent_does_not_say_that_it_is_well(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(node_status, "is_ready", lambda node: True)


def an_agent_does_not_notice_that_its_node_was_deleted(patch: pytest.MonkeyPatch) -> None:
    real = LocalControlPlane.watch_nodes

    async def watch_nodes(self: LocalControlPlane, node: str = "") -> AsyncIterator[NodeUpdate]:
        async for read in real(self, node):
            if read.body is not None:
                yield read

    patch.setattr(LocalControlPlane, "watch_nodes", watch_nodes)


def an_agent_does_not_hear_what_is_gone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PodManager, "_pod_gone", lambda self, key: None)


def taints_stay(patch: pytest.MonkeyPatch) -> None:
    real = taints.wanted_taints
    patch.setattr(health, "wanted_taints", lambda one, now: one.spec.taints or real(one, now))


@dataclass(frozen=True)
class Bug:
    control_plane: Plant
    said: str
    """A part of what is said about it."""
    kinds: tuple[str, ...]
    """The faults in whose company it shows soon."""
    profile: NodeProfile = FAST
    seed: int = 1
    """The world in which it was found last: where it is looked for first, to save time. Any other will do as well."""


LOSSES = ("cuts", "nodes deleted")
RATES = ("cuts of many", "vanishing")

BUGS: dict[str, Bug] = {
    "an agent never stops by itself": Bug(an_agent_never_stops_by_itself, "runs twice", LOSSES),
    "an agent takes its clock to be right": Bug(
        an_agent_takes_its_clock_to_be_right, "runs twice", ("drift", "nodes deleted"), KUBERNETES, seed=5
    ),
    "nobody waits until a lost node must have stopped": Bug(
        nobody_waits_until_a_lost_node_must_have_stopped, "still runs it", ("cuts",)
    ),
    "no promise is believed": Bug(no_promise_is_believed, "not recovered", ("churn",)),
    "pods of a node that is gone are forced at once": Bug(
        pods_of_a_node_that_is_gone_are_forced_at_once, "runs twice", LOSSES
    ),
    "an agent begins pods as soon as it may": Bug(an_agent_begins_pods_as_soon_as_it_may, "runs twice", LOSSES),
    "what is on disk is begun at once": Bug(
        what_is_on_disk_is_begun_at_once, "it had released", ("old disks", "churn", "reboots")
    ),
    "an older snapshot is taken": Bug(an_older_snapshot_is_taken, "went back", ("mixed streams", "churn")),
    "what is on disk is acknowledged": Bug(
        what_is_on_disk_is_acknowledged, "had acknowledged", ("old disks", "churn", "restarts")
    ),
    "nodes are given up one after the other": Bug(
        nodes_are_given_up_one_after_the_other, "after another of its zone", RATES
    ),
    "nodes are given up in a zone that is mostly lost": Bug(
        nodes_are_given_up_in_a_zone_that_is_mostly_lost, "of its zone are lost", RATES
    ),
    "nodes are given up though all are lost": Bug(
        nodes_are_given_up_though_all_are_lost, "though all nodes are lost", ("cuts of many",), seed=14
    ),
    "a control plane that has just begun gives nodes up": Bug(
        a_control_plane_that_has_just_begun_gives_nodes_up,
        "after the control plane started",
        ("vanishing", "control plane restarts"),
        KUBERNETES,
        seed=22,
    ),
    "pods leave before their patience is over": Bug(
        pods_leave_before_their_patience_is_over, "and not after", ("vanishing",)
    ),
    "late reports are taken": Bug(late_reports_are_taken, "settled", ("late messages", "restarts", "reboots"), seed=3),
    "an agent does not say that it is well": Bug(an_agent_does_not_say_that_it_is_well, "is not ready", ("cuts",)),
    "an agent does not notice that its node was deleted": Bug(
        an_agent_does_not_notice_that_its_node_was_deleted, "is not registered", ("nodes deleted",), seed=6
    ),
    "an agent does not hear what is gone": Bug(an_agent_does_not_hear_what_is_gone, "which is gone", LOSSES),
    "a server ends with its lease": Bug(a_server_ends_with_its_lease, "crashed", ("store stalls",), KUBERNETES),
    "a leader writes without its term": Bug(
        a_leader_writes_without_its_term,
        "asked for",
        ("control plane pauses", "several servers", "slow store", "churn"),
        KUBERNETES,
        seed=11,
    ),
    "a scheduler does not list again": Bug(
        a_scheduler_does_not_list_again, "crashed", ("store stalls", "compactions", "churn"), KUBERNETES
    ),
    "nodes are judged by the silence of the store": Bug(
        nodes_are_judged_by_the_silence_of_the_store,
        "after the control plane started",
        ("store outages", "cuts"),
        seed=3,
    ),
    "taints stay": Bug(taints_stay, "settled", ("cuts", "vanishing")),
}


def find(bug: Bug, first: int) -> int | None:
    """The first world in which a bug is found."""
    seeds: list[int] = [first, *range(1, WORLDS + 1)]
    for seed in seeds:
        with pytest.MonkeyPatch.context() as patch:
            bug.control_plane(patch)
            if any(bug.said in line for line in run(seed, kinds=bug.kinds, profile=bug.profile).violations):
                return seed
    return None


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", BUGS)
def test_the_simulation_finds(name: str) -> None:
    assert find(BUGS[name], BUGS[name].seed) is not None, f"not found in {WORLDS} worlds"


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    for each in sys.argv[1:] or BUGS:
        print(f"{each}: {find(BUGS[each], 1)}", flush=True)
