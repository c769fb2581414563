"""The rehearsal: the waiting pods are decided one after the other, each on the cluster that those before it left.

A cluster of our own plays the real one, and what a decision asks for is done there at once: the pod is on its node, its
claims have their volumes, victims are gone and what their budgets allow is less. No controller plays along: nobody
makes a victim again, and no volume is provisioned, only spoken for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, unique
from typing import Final

from msgspec.structs import replace

from situate.cli.commands.place.summary import Detail, Finding, summarise
from situate.cli.output.money import price_list
from situate.core.engine.decision import Decision, decide
from situate.core.engine.framework import Framework
from situate.core.model.labels import SelectorError, parse_selector
from situate.core.model.pod import Pod
from situate.core.model.policy import PodDisruptionBudget
from situate.core.model.storage import ObjectReference, PersistentVolumeClaim
from situate.core.model.timestamp import epoch_ms
from situate.core.place.bind_annotations import BindAnnotations, bind_annotations, with_annotations
from situate.core.plugins import volume_binding
from situate.core.plugins.priority_sort import PrioritySort
from situate.core.plugins.scheduling_gates import SchedulingGates
from situate.core.plugins.support.prices import Bill, hourly
from situate.core.plugins.support.volume_matching import SELECTED_NODE
from situate.core.state.classes import PodClass
from situate.core.state.cluster import FINISHED_PHASES, Cluster
from situate.core.state.pods import BoundPod
from situate.core.state.view import View
from situate.wire.objects import Objects

LATEST: Final = 1 << 63
"""When a pod that does not say when it was created began to wait: after all that do."""

Progress = Callable[[int, int], None]
"""Told how many pods of how many were decided."""


@unique
class Outcome(Enum):
    """What became of a waiting pod."""

    PLACED = "placed"
    PREEMPTING = "preempting"
    """It has a node, because others were evicted from it."""
    REFUSED = "refused"
    GATED = "gated"
    LEAVING = "leaving"
    """It is being deleted, and was not looked at."""
    FOREIGN = "foreign"
    """Another scheduler's."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A waiting pod and what became of it."""

    pod: Pod
    outcome: Outcome
    node: str = ""
    evicted: tuple[str, ...] = ()
    """The victims, by namespace/name."""
    message: str = ""
    """Why there was no node for it at first, or why it was not looked at."""
    finding: Finding | None = None
    """None if it was not looked at."""
    annotations: BindAnnotations = ()
    """What was written on it with its bind."""

    @property
    def key(self) -> str:
        return _key(self.pod)


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """Every waiting pod, in the order in which they were decided."""

    placements: tuple[Placement, ...]
    node_count: int
    homeless: int
    """How many bound pods are on nodes that are not there: they count nowhere."""
    money: tuple[Bill, Bill] | None = None
    """What the nodes in use cost before and after; None where nobody configured prices."""


def rehearse(objects: Objects, profiles: Mapping[str, Framework], *, detail: Detail, progress: Progress) -> Rehearsed:
    """Place the waiting pods of these objects on their nodes."""
    cluster = Cluster()
    cluster.load(objects.nodes, objects.named(), objects.pods)
    homeless = sum(len(pods) for pods in cluster.homeless.values())
    stage = _Stage(cluster, profiles, detail)
    prices = price_list(profiles)
    before = None if prices is None else hourly(prices, View(cluster))
    waiting = in_order(objects.pods)
    placements = []
    for count, pod in enumerate(waiting, 1):
        placements.append(stage.place(pod))
        progress(count, len(waiting))
    money = None if prices is None or before is None else (before, hourly(prices, View(cluster)))
    return Rehearsed(tuple(placements), len(objects.nodes), homeless, money)


def in_order(pods: Iterable[Pod]) -> list[Pod]:
    """Those that wait, as the queue would order them; among equals, as they came."""
    waiting = [pod for pod in pods if not pod.spec.node_name and pod.status.phase not in FINISHED_PHASES]
    return sorted(waiting, key=lambda pod: PrioritySort().key(pod.spec.priority or 0, _since_ms(pod)))


def _since_ms(pod: Pod) -> int:
    created = pod.metadata.creation_timestamp
    return LATEST if created is None else epoch_ms(created)


def _key(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


class _Stage:
    """The cluster that is played on."""

    def __init__(self, cluster: Cluster, profiles: Mapping[str, Framework], detail: Detail) -> None:
        self._cluster = cluster
        self._profiles = profiles
        self._detail = detail
        self._in_vain: dict[PodClass, Finding] = {}
        """What was found about classes that fit nowhere, since something last changed: pods often wait in hundreds."""

    def place(self, pod: Pod) -> Placement:
        """Decide about one pod, and do what was decided."""
        deciding = self._profiles.get(pod.spec.scheduler_name)
        if deciding is None:
            return Placement(pod, Outcome.FOREIGN, message=f"waits for scheduler {pod.spec.scheduler_name}")
        gated = SchedulingGates().admit(pod.spec)
        if gated is not None:
            return Placement(pod, Outcome.GATED, message=gated.text)
        if pod.metadata.deletion_timestamp is not None:
            return Placement(pod, Outcome.LEAVING, message=f"skip schedule deleting pod: {_key(pod)}")
        kind = self._cluster.class_of(pod)
        nominated = pod.status.nominated_node_name
        if not nominated and (known := self._in_vain.get(kind)) is not None:
            return Placement(pod, Outcome.REFUSED, message=known.message, finding=known)
        decision = decide(deciding, kind, View(self._cluster), nominated_node=nominated)
        return self._carry_out(pod, kind, decision)

    def _carry_out(self, pod: Pod, kind: PodClass, decision: Decision) -> Placement:
        names = self._cluster.nodes.names
        row = self._chosen(pod, decision)
        finding = summarise(decision, names, row, self._detail)
        if row is not None:
            said = self._put(pod, kind, row)
            return Placement(pod, Outcome.PLACED, names[row], finding=finding, annotations=said)
        remedy = decision.post_filter
        if remedy is None or remedy.node_row is None:
            if not pod.status.nominated_node_name:
                self._in_vain[kind] = finding
            return Placement(pod, Outcome.REFUSED, message=finding.message, finding=finding)
        self._evict(remedy.victims)
        self._let_leave(remedy.node_row, kind.priority)
        said = self._put(pod, kind, remedy.node_row)
        victims = tuple(sorted(victim.key for victim in remedy.victims))
        return Placement(pod, Outcome.PREEMPTING, names[remedy.node_row], victims, finding.message, finding, said)

    def _chosen(self, pod: Pod, decision: Decision) -> int | None:
        """The best node; but a node that is nominated for the pod goes first, if it fits."""
        nominated = self._cluster.nodes.rows.get(pod.status.nominated_node_name)
        if nominated is not None and decision.filtered.feasible[nominated]:
            return nominated
        return decision.chosen

    def _put(self, pod: Pod, kind: PodClass, row: int) -> BindAnnotations:
        self._in_vain.clear()
        self._claim_volumes(kind, row)
        said = bind_annotations(self._profiles[pod.spec.scheduler_name].profile, kind, View(self._cluster), row)
        self._cluster.put(with_annotations(pod, said), kind, row)
        return said

    def _evict(self, victims: Iterable[BoundPod]) -> None:
        cluster = self._cluster
        for victim in victims:
            for budget in list(cluster.objects.budgets.values()):
                if _speaks_of(budget, victim):
                    allowed = max(0, budget.status.disruptions_allowed - 1)
                    cluster.put_object(replace(budget, status=replace(budget.status, disruptions_allowed=allowed)))
            cluster.remove_pod(victim.key)

    def _let_leave(self, row: int, priority: int) -> None:
        """Pods that are being deleted are no victims, and the room that they leave was counted on all the same."""
        for pod in View(self._cluster).pods_on(row):
            if pod.leaving and pod.kind.priority < priority:
                self._cluster.remove_pod(pod.key)

    def _claim_volumes(self, kind: PodClass, row: int) -> None:
        """Give the pod's claims the volumes that they get on this node, or have them wait for one to be made there."""
        if not kind.spec.volumes:
            return
        volumes = volume_binding.decide(kind, View(self._cluster), row)
        if volumes is None:
            return  # the profile let it through unasked
        storage = self._cluster.objects.storage
        for claim_name, volume_name in volumes.bindings:
            claim, volume = storage.claims[kind.namespace, claim_name], storage.volumes[volume_name]
            meta = claim.metadata
            ref = ObjectReference(namespace=meta.namespace, name=meta.name, uid=meta.uid)
            status = replace(volume.status, phase="Bound")
            self._cluster.put_object(replace(volume, spec=replace(volume.spec, claim_ref=ref), status=status))
            bound = replace(claim, spec=replace(claim.spec, volume_name=volume_name))
            self._cluster.put_object(_annotated(bound, volume_binding.BIND_COMPLETED, "yes"))
        for claim_name in volumes.provisions:
            claim = storage.claims[kind.namespace, claim_name]
            self._cluster.put_object(_annotated(claim, SELECTED_NODE, self._cluster.nodes.names[row]))


def _annotated(claim: PersistentVolumeClaim, key: str, value: str) -> PersistentVolumeClaim:
    annotations = {**claim.metadata.annotations, key: value}
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations))


def _speaks_of(budget: PodDisruptionBudget, pod: BoundPod) -> bool:
    """Whether the pod's leaving counts in a budget, as preemption sees it: an empty selector speaks of nobody."""
    if budget.metadata.namespace != pod.namespace or pod.name in budget.status.disrupted_pods:
        return False
    try:
        selector = parse_selector(budget.spec.selector)
    except SelectorError:
        return False
    return bool(selector.requirements and pod.kind.labels) and selector.matches(pod.kind.labels)
