"""Which pods belong to which gang, what the gang demands, and which of its pods are here.

A gang exists through its pods: it begins with the first that names it and ends with the last. Its demands come from its
PodGroup, or from its pods if there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from situate.core.changes import Millis
from situate.core.gang.naming import (
    SIZE_LABEL,
    GangName,
    GangSource,
    gang_of,
    gang_of_group,
    size_said,
    topology_said,
    wants_disruption_of_all,
)
from situate.core.model.custom_groups.kind import CustomPodGroup
from situate.core.model.group import PodGroup, disrupted_whole, min_count, topology_key
from situate.core.model.pod import Pod
from situate.core.queue.queue import SchedulingQueue
from situate.core.queue.queued_pod import QueuedPod, QueueState
from situate.core.state.cluster import Cluster
from situate.core.state.objects import ObjectTable
from situate.core.state.pods import BoundPod


@dataclass(frozen=True, slots=True)
class Demands:
    """What a gang demands. `min_count` 0: its pods are scheduled one by one."""

    min_count: int
    topology_key: str = ""
    """Empty: its pods may be anywhere."""
    disrupted_whole: bool = False
    """If one of its pods is evicted, all are."""
    missing: str = ""
    """What has to exist before the gang can be scheduled, in words; empty if nothing is missing."""


@dataclass(eq=False, slots=True)
class Gang:
    """One gang, and what is remembered of it between attempts."""

    name: GangName
    members: dict[str, Pod] = field(default_factory=dict)
    """By namespace/name, in order of arrival: all that have not finished."""
    ours: bool = False
    """We have bound some of its pods."""
    whole: bool = False
    """All that it needs was bound once. From then on it is not the scheduler's business."""
    deadline_ms: Millis | None = None
    """When its bound pods are given up, unless it is whole by then."""
    dissolving: bool = False
    """It is being given up: its bound pods must leave."""
    condition: tuple[str, str, str] = ("", "", "")
    """The last condition of its PodGroup: status, reason and message."""
    held_because: dict[str, str] = field(default_factory=dict)
    """By member: the last reason that was reported for holding it."""
    report_at_ms: Millis | None = None
    """When to report the new reason to members whose condition has an older one."""
    refused_as: tuple[Demands, int] | None = None
    """What it demanded, and how many were placed, when it was last unschedulable."""


class Gangs:
    def __init__(self) -> None:
        self._by_name: dict[GangName, Gang] = {}
        self._by_id: dict[str, Gang] = {}
        self._by_pod: dict[str, Gang] = {}
        self._changed: dict[GangName, Gang] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def of(self, key: str) -> Gang | None:
        return self._by_pod.get(key)

    def by_id(self, gang_id: str) -> Gang | None:
        return self._by_id.get(gang_id)

    def values(self) -> list[Gang]:
        return list(self._by_name.values())

    def note(self, pod: Pod) -> None:
        name = gang_of(pod)
        if name is None and not self._by_pod:
            return  # most clusters have no gangs
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        known = self._by_pod.get(key)
        if known is not None and known.name != name:
            self.drop(key)  # it names another gang now, or none
        if name is None:
            return
        gang = self._by_name.get(name)
        if gang is None:
            gang = self._by_name[name] = self._by_id[name.id] = Gang(name)
        gang.members[key] = pod
        self._by_pod[key] = gang
        self._changed[name] = gang

    def drop(self, key: str) -> None:
        gang = self._by_pod.pop(key, None)
        if gang is None:
            return
        del gang.members[key]
        gang.held_because.pop(key, None)
        self._changed[gang.name] = gang
        if not gang.members:
            del self._by_name[gang.name]
            del self._by_id[gang.name.id]
            del self._changed[gang.name]

    def touch(self, key: str) -> None:
        gang = self._by_pod.get(key)
        if gang is not None:
            self._changed[gang.name] = gang

    def group_changed(self, group: PodGroup | CustomPodGroup) -> None:
        gang = self._by_name.get(gang_of_group(group))
        if gang is not None:
            self._changed[gang.name] = gang

    def changed(self) -> list[Gang]:
        """The gangs to review since the last call."""
        if not self._changed:
            return []
        found = list(self._changed.values())
        self._changed = {}
        return found


def group_of(gang: Gang, objects: ObjectTable) -> PodGroup | CustomPodGroup | None:
    key = (gang.name.namespace, gang.name.name)
    match gang.name.source:
        case GangSource.POD_GROUP:
            return objects.pod_groups.get(key)
        case GangSource.LABELS:
            return None
        case custom:
            return objects.custom_pod_groups[custom.value].get(key)


def demands_of(gang: Gang, objects: ObjectTable) -> Demands:
    """What a gang demands, from its PodGroup or, without one, from its pods."""
    name = gang.name
    if name.source is GangSource.LABELS:
        return _demands_of_labels(gang)
    group = group_of(gang, objects)
    if group is None:
        return Demands(1, missing=f"PodGroup {name} of {name.source.value}, which does not exist")
    key = topology_key(group) or _topology_of(gang.members.values())
    whole = disrupted_whole(group) or any(map(wants_disruption_of_all, gang.members.values()))
    return Demands(min_count(group), key, whole)


def _demands_of_labels(gang: Gang) -> Demands:
    """The pods should all name the same size. If they do not, the largest counts."""
    sizes = [size_said(pod) for pod in gang.members.values()]
    wrong = next((key for key, size in zip(gang.members, sizes, strict=True) if size is None), None)
    key = _topology_of(gang.members.values())
    whole = any(map(wants_disruption_of_all, gang.members.values()))
    missing = "" if wrong is None else f"a whole number from 1 up in label {SIZE_LABEL} of pod {wrong}"
    return Demands(max((size for size in sizes if size is not None), default=1), key, whole, missing)


def _topology_of(pods: Iterable[Pod]) -> str:
    return next((key for key in map(topology_said, pods) if key), "")


@dataclass(frozen=True, slots=True)
class GangStatus:
    placed: tuple[str, ...]
    """Bound or reserved, and not leaving."""
    bound: tuple[str, ...]
    """Those of them that were seen bound."""
    waiting: tuple[QueuedPod, ...]
    """The pods that could be placed: not gated, not leaving, with all their claims. By priority, then by arrival."""

    @property
    def here(self) -> int:
        return len(self.placed) + len(self.waiting)


def gang_status(gang: Gang, queue: SchedulingQueue, cluster: Cluster) -> GangStatus:
    placed: list[str] = []
    bound: list[str] = []
    waiting: list[QueuedPod] = []
    for key, pod in gang.members.items():
        if pod.metadata.deletion_timestamp is not None:
            continue
        entry = queue.get(key)
        if entry is None:
            if cluster.uid_of(key) is not None:
                placed.append(key)
                bound.append(key)
        elif entry.state is QueueState.RESERVED:
            placed.append(key)
        elif not entry.pod.spec.scheduling_gates and key not in queue.awaiting_claims:
            waiting.append(entry)
    waiting.sort(key=lambda entry: (-entry.priority, entry.order))
    return GangStatus(tuple(placed), tuple(bound), tuple(waiting))


def nominated_together(key: str, gangs: Gangs, queue: SchedulingQueue, cluster: Cluster) -> list[str]:
    """The pods whose nominations end with this pod's: all of its gang, while that is not placed."""
    gang = gangs.of(key)
    if gang is None:
        return [key]
    placed = len(gang_status(gang, queue, cluster).placed)
    return [key] if placed >= demands_of(gang, cluster.objects).min_count else list(gang.members)


def evicted_together(victim: BoundPod, priority: int, gangs: Gangs, cluster: Cluster) -> Sequence[BoundPod] | None:
    """All pods that leave with a victim; None if one of them has this priority or a higher one."""
    gang = gangs.of(victim.key)
    if gang is None or not demands_of(gang, cluster.objects).disrupted_whole:
        return (victim,)
    pods = cluster.pods
    going = [pods.bound(pods.rows[key]) for key in gang.members if key in pods.rows]
    return None if any(pod.kind.priority >= priority for pod in going) else going


def too_few(name: GangName, demands: Demands, here: int) -> str:
    """What a gang waits for if fewer of its pods exist than it needs, in words; empty if there are enough."""
    lacking = demands.min_count - here
    if lacking <= 0:
        return ""
    pods = "pod" if lacking == 1 else "pods"
    return f"waiting for {lacking} more {pods} of gang {name}: {here} of {demands.min_count} are here"


def why_held(gang: Gang, demands: Demands, status: GangStatus) -> str:
    """Why no pod of the gang can be tried now, in words; empty if they can."""
    if not demands.min_count:
        return ""
    if gang.dissolving:
        return f"waiting for the bound pods of gang {gang.name} to leave: it could not be bound whole in time"
    if demands.missing:
        return f"waiting for {demands.missing}"
    if reason := too_few(gang.name, demands, status.here):
        return reason
    names = list(dict.fromkeys(entry.pod.spec.scheduler_name for entry in status.waiting))
    if len(names) > 1:
        return (
            "all pods in a single pod group should have the same .spec.schedulerName set, "
            f'got: "{names[1]}" and "{names[0]}"'
        )
    return ""
