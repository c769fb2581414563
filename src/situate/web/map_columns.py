"""The nodes as columns for the map: name, zone, state, and the share of each resource that is requested or used.

A row remembers the tick at which it last changed, so that any reader, however slow, gets exactly the rows that changed
since it read last. Nothing is queued for anybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from situate.core.model.node import Node
from situate.core.state.classes import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from situate.core.state.cluster import Cluster

ZONE: Final = "topology.kubernetes.io/zone"
OLD_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
CORDONED: Final = 1
NOT_READY: Final = 2
TAINTED: Final = 4
"""Bits of a node's state."""
_LOST: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
PER_MILLE: Final = 1_000
MOST: Final = 9_999
"""The largest share that is shown: an overfull node."""
NONE: Final = -1
"""The share of a resource that a node does not have."""

Shares = npt.NDArray[np.int16]


class MapColumns:
    """Follows a cluster: `update` before reading."""

    def __init__(self) -> None:
        self.layout = 0
        """Grows when the columns themselves change: a reader of another layout needs everything."""
        self.resources: list[int] = [CPU, MEMORY, PODS]
        self._names: list[str] = []
        self._zones: list[str] = []
        self._states: list[int] = []
        self._shares: Shares = np.zeros((len(self.resources), 0), np.int16)
        self._used: dict[str, tuple[int, int]] = {}
        """What is used of cpu and memory, in per mille; only if somebody measures it."""
        self._changed: npt.NDArray[np.int64] = np.zeros(0, np.int64)

    # -- following -----------------------------------------------------------------------------------------------

    def node_seen(self, row: int, node: Node | None, tick: int) -> None:
        """The node of a row came, changed or went."""
        while len(self._names) <= row:
            self._names.append("")
            self._zones.append("")
            self._states.append(0)
        before = self._names[row], self._zones[row], self._states[row]
        if node is None:
            now = "", "", 0
        else:
            labels = node.metadata.labels
            now = node.metadata.name, labels.get(ZONE) or labels.get(OLD_ZONE) or "", _state(node)
        if before != now:
            self._names[row], self._zones[row], self._states[row] = now
            self._grow(row + 1)
            self._changed[row] = tick

    def update(self, cluster: Cluster, tick: int) -> bool:
        """Compute the shares again; whether any changed."""
        size = cluster.nodes.size
        self._grow(size)
        self._choose_resources(cluster)
        shares = _shares(cluster, self.resources, size)
        before = self._shares[:, :size]
        moved = (shares != before).any(axis=0) if before.shape == shares.shape else np.ones(size, np.bool_)
        if not moved.any():
            return False
        self._shares = shares
        self._changed[:size][moved] = tick
        return True

    def use_seen(self, used: Mapping[str, tuple[int, int]], tick: int) -> None:
        """What the nodes really use, in per mille of cpu and memory, by name."""
        if bool(used) != bool(self._used):
            self.layout += 1
        for row, name in enumerate(self._names):
            if name and used.get(name) != self._used.get(name):
                self._changed[row] = tick
        self._used = dict(used)

    def _grow(self, size: int) -> None:
        if size > len(self._changed):
            more = np.zeros(max(size, 2 * len(self._changed)) - len(self._changed), np.int64)
            self._changed = np.concatenate([self._changed, more])

    def _choose_resources(self, cluster: Cluster) -> None:
        """Beside cpu, memory and pods: what some node has, and disk where somebody requests it."""
        nodes = cluster.nodes
        wanted = [CPU, MEMORY, PODS]
        if nodes.requested[EPHEMERAL_STORAGE, : nodes.size].any():
            wanted.append(EPHEMERAL_STORAGE)
        wanted += [at for at in range(PODS + 1, len(nodes.allocatable)) if nodes.allocatable[at, : nodes.size].any()]
        if wanted != self.resources:
            self.resources = wanted
            self.layout += 1

    # -- reading -------------------------------------------------------------------------------------------------

    def read(self, cluster: Cluster, since: int, layout: int) -> dict[str, Any] | None:
        """The rows that changed after a tick, or all of them; None if nothing did."""
        size = min(len(self._names), self._shares.shape[1])
        if since < 0 or layout != self.layout:
            return {"layout": self.layout, "resources": self._resource_names(cluster), **self._rows(range(size))}
        rows = np.flatnonzero(self._changed[:size] > since).tolist()
        return {"layout": self.layout, "rows": rows, **self._rows(rows)} if rows else None

    def used(self, name: str) -> tuple[int, int] | None:
        """What a node uses of cpu and memory, in per mille; None if nobody measures it."""
        return self._used.get(name)

    def count(self, bit: int) -> int:
        """How many nodes have a bit in their state."""
        return sum(1 for state in self._states if state & bit)

    def _resource_names(self, cluster: Cluster) -> list[str]:
        return [cluster.resources.names[at] for at in self.resources]

    def _rows(self, rows: range | list[int]) -> dict[str, Any]:
        every = isinstance(rows, range)
        size = len(rows)
        shares = self._shares[:, :size] if every else self._shares[:, rows]
        zones: dict[str, int] = {}
        names = [self._names[row] for row in rows]
        found: dict[str, Any] = {
            "names": names,
            "zone": [zones.setdefault(self._zones[row], len(zones)) for row in rows],
            "state": [self._states[row] for row in rows],
            "shares": shares.tolist(),
        }
        found["zones"] = list(zones)
        if self._used:
            used = [self._used.get(name, (NONE, NONE)) for name in names]
            found["used"] = [[cpu for cpu, _ in used], [memory for _, memory in used]]
        return found


def _shares(cluster: Cluster, resources: list[int], size: int) -> Shares:
    nodes = cluster.nodes
    room = nodes.allocatable[resources, :size]
    asked = nodes.requested[resources, :size].copy()
    counted = [len(pods) for pods in nodes.pods[:size]]
    asked[resources.index(PODS)] = counted
    # In floats: a sum of bytes times a thousand may not fit an integer.
    share = np.where(room > 0, np.ceil(asked * float(PER_MILLE) / np.maximum(room, 1)), np.where(asked > 0, MOST, NONE))
    found: Shares = np.clip(share, NONE, MOST).astype(np.int16)
    return found


def used_shares(cluster: Cluster, usage: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """What is used of cpu and memory, in per mille of what a node has. Nodes that are not there are left out."""
    found = {}
    for name, amounts in usage.items():
        row = cluster.nodes.rows.get(name)
        if row is not None:
            rooms = (int(cluster.nodes.allocatable[at, row]) for at in (CPU, MEMORY))
            cpu, memory = (
                min(MOST, round(PER_MILLE * used / room)) if room > 0 else NONE
                for used, room in zip(amounts, rooms, strict=True)
            )
            found[name] = cpu, memory
    return found


def _state(node: Node) -> int:
    state = CORDONED if node.spec.unschedulable else 0
    taints = [taint for taint in node.spec.taints if taint.effect != "PreferNoSchedule"]
    ready = next((one.status for one in node.status.conditions if one.type == "Ready"), "True")
    if ready != "True" or any(taint.key in _LOST for taint in taints):
        state |= NOT_READY
    if any(not taint.key.startswith("node.kubernetes.io/") for taint in taints):
        state |= TAINTED
    return state
