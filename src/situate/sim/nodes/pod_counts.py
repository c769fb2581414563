"""An invariant of the workload controllers: they create no more pods than users ask for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import ceil
from typing import Any, Final, Protocol

import msgspec

from situate.sim.nodes.run_log import RunLog
from situate.sim.nodes.virtual_time import VirtualLoop

DEPLOYMENTS: Final = "/objects/apps/deployments/"
REPLICA_SETS: Final = "/objects/apps/replicasets/"
STATEFUL_SETS: Final = "/objects/apps/statefulsets/"
JOBS: Final = "/objects/batch/jobs/"
OWNERS: Final = {"Deployment": DEPLOYMENTS, "ReplicaSet": REPLICA_SETS, "StatefulSet": STATEFUL_SETS, "Job": JOBS}
SURGE: Final = 0.25
"""How many extra pods a Deployment may ask for during a rollout, by its defaults (maxSurge)."""
SEEN_S: Final = 60.0
"""For how long a controller may act on an older size of its workload."""
REMEMBERED: Final = 100

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class CountedPod(Protocol):
    key: str
    phase: str
    leaves: bool
    body: dict[str, Any]


class PodCountChecker:
    """No controller creates more pods than its workload asks for, whichever server it runs on.

    A Deployment is held to the sizes of its ReplicaSets, not to its pods. Kubernetes' Deployment controller adds up
    `spec.replicas` of the ReplicaSets before it makes the new one larger, and so does ours: it does not wait until the
    ReplicaSet controller has deleted the pod that an old one no longer asks for. For that moment there is one pod more
    than the surge allows. In exchange, each ReplicaSet is held to its own size, without any surge.
    """

    def __init__(self, loop: VirtualLoop, log: RunLog) -> None:
        self._loop = loop
        self._log = log
        self._sizes: dict[str, deque[tuple[float, int]]] = {}
        """The recent sizes of each workload, by key."""
        self._deployments: dict[str, str] = {}
        """The Deployment of each ReplicaSet, both by key."""

    def workload(self, key: str, value: bytes) -> None:
        """A workload is written."""
        if not key.startswith(tuple(OWNERS.values())):
            return
        body = _decode(value)
        size: int = body["spec"].get("completions" if key.startswith(JOBS) else "replicas", 1)
        sizes = self._sizes.setdefault(key, deque(maxlen=REMEMBERED))
        before = sizes[-1][1] if sizes else 0
        if not sizes or size != before:
            sizes.append((self._loop.now, size))
        if key.startswith(REPLICA_SETS):
            self._deployments[key] = _owner(body, key.removeprefix(REPLICA_SETS))
            if size > before:
                self._check_deployment(self._deployments[key])

    def gone(self, key: str) -> None:
        """An object is deleted."""
        self._sizes.pop(key, None)
        self._deployments.pop(key, None)

    def _check_deployment(self, deployment: str) -> None:
        """After one of its ReplicaSets has become larger."""
        if deployment in self._sizes:
            asked = sum(self._sizes[key][-1][1] for key, owner in self._deployments.items() if owner == deployment)
            most = self._most(deployment)
            if asked > most + ceil(SURGE * most):
                name = deployment.rpartition("/")[2]
                self._log.violation(f"the ReplicaSets of {name} ask for {asked} pods; it asked for {most}")

    def created(self, pod: CountedPod, pods: Iterable[CountedPod]) -> None:
        owner = _owner(pod.body, pod.key)
        if owner in self._sizes and owner.startswith(STATEFUL_SETS):
            # It replaces a lost pod before it deletes those beyond its new size, one at a time: as in Kubernetes, their
            # number says nothing, but a pod beyond the size is never created.
            most, ordinal = self._most(owner), int(pod.key.rpartition("-")[2])
            if ordinal >= most:
                self._log.violation(f"{owner.rpartition('/')[2]} creates pod {ordinal}; it asked for {most}")
        elif owner in self._sizes:
            count = sum(_owner(one.body, one.key) == owner and not one.leaves and one.phase != "Failed" for one in pods)
            most = self._most(owner)
            if count > most:
                self._log.violation(f"{owner.rpartition('/')[2]} has {count} pods; it asked for {most}")

    def _most(self, workload: str) -> int:
        """The largest recent size: a controller may not have seen the newest one yet."""
        most, until = 0, self._loop.now
        for at, size in reversed(self._sizes[workload]):
            if self._loop.now - until > SEEN_S:
                break
            most, until = max(most, size), at
        return most


def _owner(body: dict[str, Any], key: str) -> str:
    """The key of the workload that controls an object with this namespace and name; "": none does."""
    for one in body["metadata"].get("ownerReferences", ()):
        if one.get("controller") and one["kind"] in OWNERS:
            return f"{OWNERS[one['kind']]}{key.partition('/')[0]}/{one['name']}"
    return ""
