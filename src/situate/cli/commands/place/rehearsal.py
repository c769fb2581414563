"""The rehearsal: pending pods are decided one after another, each on the cluster that the earlier ones left.

Every decision is carried out at once on a copy of the cluster: the pod is on its node, its claims have their volumes
and devices, victims are gone, and their budgets allow fewer disruptions. There are no controllers: nothing replaces a
victim, and no volume is provisioned, only reserved.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, unique

from msgspec.structs import replace

from situate.cli.commands.place.summary import DetailLevel, PodSummary, summarise
from situate.cli.output.money import price_list
from situate.core.engine.decision import Decision, decide
from situate.core.engine.framework import Framework
from situate.core.model.devices import ResourceClaim
from situate.core.model.labels import SelectorError, parse_selector
from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.core.model.policy import PodDisruptionBudget
from situate.core.place.bind_annotations import BindAnnotations, bind_annotations, with_annotations
from situate.core.plan.rescheduling import queue_key
from situate.core.plan.volume_claims import changed_volumes
from situate.core.plugins.scheduling_gates import SchedulingGates
from situate.core.plugins.support.claim_changes import change_claim, given_back, released_devices, taken_devices
from situate.core.plugins.support.prices import NodeCost, hourly_cost
from situate.core.state.classes import PodClass
from situate.core.state.cluster import FINISHED_PHASES, Cluster
from situate.core.state.pods import BoundPod
from situate.core.state.view import View

Progress = Callable[[int, int], None]
"""Receives how many pods are decided, of how many."""


@unique
class PlacementOutcome(Enum):
    """What became of a pending pod."""

    PLACED = "placed"
    PREEMPTING = "preempting"
    """It has a node, from which others were evicted."""
    REFUSED = "refused"
    GATED = "gated"
    LEAVING = "leaving"
    """It is being deleted, and was not tried."""
    FOREIGN = "foreign"
    """Another scheduler places it."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A pending pod and what became of it."""

    pod: Pod
    outcome: PlacementOutcome
    node: str = ""
    evicted: tuple[str, ...] = ()
    """The victims, by namespace/name."""
    message: str = ""
    """Why no node fitted at first, or why it was not tried."""
    summary: PodSummary | None = None
    """None if it was not tried."""
    annotations: BindAnnotations = ()
    """What its bind adds to it."""
    devices: tuple[ResourceClaim, ...] = ()
    """Its claims, with the devices that they have now."""

    @property
    def key(self) -> str:
        return key_of(self.pod.metadata)


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """Every pending pod, in the order in which they were decided."""

    placements: tuple[Placement, ...]
    node_count: int
    money: tuple[NodeCost, NodeCost] | None = None
    """What the nodes in use cost before and after; None without configured prices."""


def rehearse(
    pods: Iterable[Pod],
    cluster: Cluster,
    profiles: Mapping[str, Framework],
    *,
    detail: DetailLevel,
    progress: Progress,
) -> Rehearsed:
    """Place the pending ones of these pods on the cluster."""
    nodes = len(cluster.nodes.rows)
    stage = _Stage(cluster, profiles, detail)
    prices = price_list(profiles)
    before = None if prices is None else hourly_cost(prices, View(cluster))
    waiting = in_order(pods)
    placements = []
    for count, pod in enumerate(waiting, 1):
        placements.append(stage.place(pod))
        progress(count, len(waiting))
    money = None if prices is None or before is None else (before, hourly_cost(prices, View(cluster)))
    return Rehearsed(tuple(placements), nodes, money)


def in_order(pods: Iterable[Pod]) -> list[Pod]:
    """The pending pods, in the order of the scheduling queue; equals in the order given."""
    waiting = [pod for pod in pods if not pod.spec.node_name and pod.status.phase not in FINISHED_PHASES]
    return sorted(waiting, key=queue_key)


class _Stage:
    """The cluster on which decisions are carried out."""

    def __init__(self, cluster: Cluster, profiles: Mapping[str, Framework], detail: DetailLevel) -> None:
        self._cluster = cluster
        self._profiles = profiles
        self._detail = detail
        self._unplaceable: dict[PodClass, PodSummary] = {}
        """Classes that fit nowhere since the last change: pending pods are often hundreds of one class."""

    def place(self, pod: Pod) -> Placement:
        """Decide about one pod, and carry the decision out."""
        deciding = self._profiles.get(pod.spec.scheduler_name)
        if deciding is None:
            return Placement(pod, PlacementOutcome.FOREIGN, message=f"waits for scheduler {pod.spec.scheduler_name}")
        gated = SchedulingGates().admit(pod.spec)
        if gated is not None:
            return Placement(pod, PlacementOutcome.GATED, message=gated.text)
        if pod.metadata.deletion_timestamp is not None:
            return Placement(
                pod, PlacementOutcome.LEAVING, message=f"skip schedule deleting pod: {key_of(pod.metadata)}"
            )
        kind = self._cluster.class_of(pod)
        nominated = pod.status.nominated_node_name
        if not nominated and (known := self._unplaceable.get(self._alike(kind))) is not None:
            return Placement(pod, PlacementOutcome.REFUSED, message=known.message, summary=known)
        while True:
            decision = decide(deciding, kind, View(self._cluster), nominated_node=nominated)
            released = None if decision.post_filter is None else decision.post_filter.released
            if released is None:
                return self._carry_out(pod, kind, decision)
            # As the scheduler does: the claim gives its devices back, and the pod is tried again.
            change_claim(self._cluster, given_back(released))

    def _alike(self, kind: PodClass) -> PodClass:
        """Pods whose claims ask for the same devices are refused alike."""
        return self._cluster.claim_stand_ins.of(kind) if kind.spec.resource_claims else kind

    def _carry_out(self, pod: Pod, kind: PodClass, decision: Decision) -> Placement:
        names = self._cluster.nodes.names
        row = self._chosen(pod, decision)
        summary = summarise(decision, names, row, self._detail)
        if row is not None:
            annotations, devices = self._put(pod, kind, row)
            return Placement(
                pod, PlacementOutcome.PLACED, names[row], summary=summary, annotations=annotations, devices=devices
            )
        remedy = decision.post_filter
        if remedy is None or remedy.node_row is None:
            if not pod.status.nominated_node_name:
                self._unplaceable[self._alike(kind)] = summary
            return Placement(pod, PlacementOutcome.REFUSED, message=summary.message, summary=summary)
        self._evict(remedy.victims)
        self._let_leave(remedy.node_row, kind.priority)
        annotations, devices = self._put(pod, kind, remedy.node_row)
        victims = tuple(sorted(victim.key for victim in remedy.victims))
        node, outcome = names[remedy.node_row], PlacementOutcome.PREEMPTING
        return Placement(pod, outcome, node, victims, summary.message, summary, annotations, devices)

    def _chosen(self, pod: Pod, decision: Decision) -> int | None:
        """The node nominated for the pod, if it fits; else the best one."""
        nominated = self._cluster.nodes.rows.get(pod.status.nominated_node_name)
        if nominated is not None and decision.filtered.feasible[nominated]:
            return nominated
        return decision.chosen

    def _put(self, pod: Pod, kind: PodClass, row: int) -> tuple[BindAnnotations, tuple[ResourceClaim, ...]]:
        """What the bind adds to the pod, and the claims with its devices."""
        self._unplaceable.clear()
        for changed in changed_volumes(self._cluster, pod, row):
            self._cluster.put_object(changed)
        profile = self._profiles[pod.spec.scheduler_name].profile
        taken = taken_devices(self._cluster, profile.filters, kind, pod, row) or []
        for change in taken:
            change_claim(self._cluster, change)
        annotations = bind_annotations(profile, kind, View(self._cluster), row)
        self._cluster.put(with_annotations(pod, annotations), kind, row)
        return annotations, tuple(after for _, after in taken if after is not None)

    def _evict(self, victims: Iterable[BoundPod]) -> None:
        cluster = self._cluster
        for victim in victims:
            for budget in list(cluster.objects.budgets.values()):
                if _covers(budget, victim):
                    allowed = max(0, budget.status.disruptions_allowed - 1)
                    cluster.put_object(replace(budget, status=replace(budget.status, disruptions_allowed=allowed)))
            self._remove(victim)

    def _remove(self, pod: BoundPod) -> None:
        pods = self._cluster.pods
        gone = pods.as_object(pods.rows[pod.key], self._cluster.node_of(pod.key))
        self._cluster.remove_pod(pod.key)
        for change in released_devices(self._cluster, gone):
            change_claim(self._cluster, change)

    def _let_leave(self, row: int, priority: int) -> None:
        """Remove pods that are being deleted: they are no victims, but preemption counted their room as free."""
        for pod in View(self._cluster).pods_on(row):
            if pod.leaving and pod.kind.priority < priority:
                self._remove(pod)


def _covers(budget: PodDisruptionBudget, pod: BoundPod) -> bool:
    """Whether evicting the pod counts in a budget, as preemption sees it: an empty selector selects nothing."""
    if budget.metadata.namespace != pod.namespace or pod.name in budget.status.disrupted_pods:
        return False
    try:
        selector = parse_selector(budget.spec.selector)
    except SelectorError:
        return False
    return bool(selector.requirements and pod.kind.labels) and selector.matches(pod.kind.labels)
