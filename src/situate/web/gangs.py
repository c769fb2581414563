"""Gangs, and the queues of the schedulers: which pods have to come together, and how many wait with which priority."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from situate.core.gang.naming import GangName, gang_of, size_said
from situate.core.model.custom_groups.kind import CustomPodGroup
from situate.core.model.group import PodGroup, min_count, topology_key
from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.web.limits import MAX_GROUPS
from situate.web.waiting import why_waiting

NAMED: Final = 12
"""Nodes and pods that a row names."""


class GangMembers:
    """Which pods are in which gang, and where."""

    def __init__(self) -> None:
        self._gangs: dict[GangName, dict[str, str]] = {}
        self._of: dict[str, GangName] = {}
        self._sizes: dict[GangName, int] = {}

    def seen(self, pod: Pod, finished: bool) -> bool:
        """A pod came or changed; whether that changes a gang."""
        key, name = key_of(pod.metadata), gang_of(pod)
        if name is None or finished:
            return self.gone(key)
        members = self._gangs.setdefault(name, {})
        if members.get(key) == pod.spec.node_name:
            return False
        members[key] = pod.spec.node_name
        self._of[key] = name
        self._sizes[name] = size_said(pod) or 0
        return True

    def gone(self, key: str) -> bool:
        name = self._of.pop(key, None)
        if name is None:
            return False
        members = self._gangs[name]
        members.pop(key, None)
        if not members:
            del self._gangs[name]
            self._sizes.pop(name, None)
        return True

    def rows(self, groups: Mapping[GangName, PodGroup | CustomPodGroup], pending: Mapping[str, Pod]) -> dict[str, Any]:
        """The gangs that are not whole first."""
        shown = [self._row(name, members, groups, pending) for name, members in self._gangs.items()]
        shown.sort(key=lambda row: (row["waiting"] == 0, row["namespace"], row["name"]))
        return {
            "gangs": shown[:MAX_GROUPS],
            "more": max(0, len(shown) - MAX_GROUPS),
            "queues": _queues(pending.values()),
        }

    def _row(
        self,
        name: GangName,
        members: Mapping[str, str],
        groups: Mapping[GangName, PodGroup | CustomPodGroup],
        pending: Mapping[str, Pod],
    ) -> dict[str, Any]:
        group = groups.get(name)
        nodes = sorted({node for node in members.values() if node})
        waiting = [key for key, node in members.items() if not node]
        first = next((pending[key] for key in waiting if key in pending), None)
        return {
            "namespace": name.namespace,
            "name": name.name,
            "minCount": min_count(group) if group is not None else self._sizes[name],
            "topologyKey": topology_key(group) if group is not None else "",
            "pods": len(members),
            "bound": len(members) - len(waiting),
            "waiting": len(waiting),
            "nodes": nodes[:NAMED],
            "nodeCount": len(nodes),
            "waitingPods": waiting[:NAMED],
            "message": why_waiting(first)[1] if first is not None else "",
        }


def _queues(pending: Iterable[Pod]) -> list[dict[str, Any]]:
    """The pods that wait, by scheduler and priority, the highest first."""
    found: dict[tuple[str, int, str], list[str]] = {}
    for pod in pending:
        key = (pod.spec.scheduler_name, pod.spec.priority or 0, pod.spec.priority_class_name)
        found.setdefault(key, []).append(pod.metadata.creation_timestamp or "")
    ordered = sorted(found.items(), key=lambda one: (one[0][0], -one[0][1], one[0][2]))
    return [
        {"scheduler": name, "priority": priority, "class": word, "pods": len(since), "since": min(since)}
        for (name, priority, word), since in ordered[:MAX_GROUPS]
    ]
