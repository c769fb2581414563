"""Everything that waits for a node: by workload and reason, the longest wait first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from situate.cli.input.cluster import ClusterObjects
from situate.cli.input.owners import POD, OwningWorkload, group_of, owner_of
from situate.cli.input.published import ClusterProfiles
from situate.cli.output.text import age, columns, headline, plural
from situate.core.explain.explanation import explain
from situate.core.model.pod import Pod
from situate.core.model.timestamp import epoch_ms
from situate.core.plugins.scheduling_gates import SchedulingGates
from situate.core.state.cluster import FINISHED_PHASES, Cluster

MOST_TRIED: Final = 50
"""How many pods without a recorded reason are tried here. Each takes as long as one `situate why POD`."""
MOST_GROUPS: Final = 30
"""How many rows people see; programs get all."""
NOT_TRIED: Final = "not tried yet"
TAILS: Final = (" preemption: ", " no new claims to deallocate")
"""Where the part of kube-scheduler's message begins that is about preemption."""
GAP: Final = 3


@dataclass(slots=True)
class WaitingGroup:
    """Pods of one workload that wait for the same reason."""

    workload: OwningWorkload
    message: str
    pods: list[str]
    since: str
    """When the oldest of them was created; empty: not known."""


def is_waiting(pod: Pod) -> bool:
    meta, status = pod.metadata, pod.status
    return not pod.spec.node_name and status.phase not in FINISHED_PHASES and meta.deletion_timestamp is None


def waiting_groups(
    objects: ClusterObjects, cluster: Cluster, profiles: ClusterProfiles, namespace: str | None
) -> list[WaitingGroup]:
    """`namespace` None: of all namespaces."""
    found: dict[tuple[OwningWorkload, str], WaitingGroup] = {}
    reasons = _Reasons(cluster, profiles)
    for pod in objects.pods:
        meta = pod.metadata
        if not is_waiting(pod) or namespace not in (None, meta.namespace):
            continue
        workload = _workload(pod)
        message = reasons.of(pod, workload)
        group = found.setdefault((workload, message), WaitingGroup(workload, message, [], ""))
        group.pods.append(meta.name)
        group.since = min(filter(None, (group.since, meta.creation_timestamp or "")), default="")
    return sorted(found.values(), key=lambda one: (not one.since, one.since, one.workload))


def _workload(pod: Pod) -> OwningWorkload:
    owner = owner_of(pod)
    return group_of(pod) or owner if owner.kind == POD else owner


class _Reasons:
    """Why pods wait: as their scheduler wrote it, or else as we find out."""

    def __init__(self, cluster: Cluster, profiles: ClusterProfiles) -> None:
        self._cluster = cluster
        self._profiles = profiles
        self._tried: dict[OwningWorkload, str] = {}

    def of(self, pod: Pod, workload: OwningWorkload) -> str:
        scheduler = pod.spec.scheduler_name
        if unserved := self._profiles.unserved(scheduler):
            return unserved
        if (gated := SchedulingGates().admit(pod.spec)) is not None:
            return gated.text
        recorded = next((one.message for one in pod.status.conditions if one.type == "PodScheduled"), "")
        if recorded:
            return recorded
        if scheduler not in self._profiles.frameworks:
            return f"waits for scheduler {scheduler}"
        if workload not in self._tried and len(self._tried) < MOST_TRIED:
            explained = explain(self._cluster, self._profiles.of(scheduler), pod, suggestions=False)
            self._tried[workload] = explained.message or NOT_TRIED
        return self._tried.get(workload, NOT_TRIED)


def list_lines(groups: Sequence[WaitingGroup], now_ms: int, *, wide: bool) -> list[str]:
    pods = sum(len(one.pods) for one in groups)
    if not groups:
        return [headline("no pod waits for a node", True)]
    rows = [
        (
            one.workload.namespace,
            one.workload,
            len(one.pods),
            waited(one.since, now_ms),
            one.message if wide else short(one.message),
        )
        for one in groups
    ]
    lines = [
        headline(f"{plural(pods, 'pod')} of {plural(len(groups), 'workload')} wait{'s' if pods == 1 else ''}", False),
        "",
    ]
    return [*lines, *columns(("NAMESPACE", "WORKLOAD", "PODS", "WAITING", "WHY"), rows, gap=GAP, most=MOST_GROUPS)]


def list_values(groups: Sequence[WaitingGroup]) -> dict[str, Any]:
    return {
        "pods": sum(len(one.pods) for one in groups),
        "waiting": [
            {
                "namespace": one.workload.namespace,
                "kind": one.workload.kind,
                "name": one.workload.name,
                "pods": one.pods,
                "since": one.since or None,
                "message": one.message,
            }
            for one in groups
        ],
    }


def short(message: str) -> str:
    """The message without what it says about preemption."""
    ends = [at for tail in TAILS if (at := message.find(tail)) > 0]
    return message[: min(ends)] if ends else message


def waited(since: str, now_ms: int) -> str:
    """How long; `-` if that is not known."""
    try:
        return age(max(0, now_ms - epoch_ms(since)) // 1_000)
    except ValueError:
        return "-"
