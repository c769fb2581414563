"""Invariants of every world, checked at every step against the store and the running containers.

Times are true times. Actors use clocks that may drift, and the checks allow for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import Any, Final

import msgspec

from situate.core.reconcile.nodes.fencing import NodeProfile
from situate.core.reconcile.nodes.reports import ACKNOWLEDGED
from situate.sim.nodes.claim_checker import CLAIMS, ClaimChecker
from situate.sim.nodes.pod_counts import PodCountChecker
from situate.sim.nodes.run_log import RunLog
from situate.sim.nodes.virtual_time import EPOCH_S, DriftingClock, VirtualLoop
from situate.store.transactions import Delete, Put, Write

NODES: Final = "/objects/core/nodes/"
PODS: Final = "/objects/core/pods/"
LEASES: Final = "/objects/coordination.k8s.io/leases/kube-node-lease/"
LOST: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
ZONE: Final = "topology.kubernetes.io/zone"
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
BY_TAINT: Final = "DeletionByTaintManager"
ENDED: Final = ("Succeeded", "Failed")
SLACK_S: Final = 0.01
"""Times are rounded to milliseconds."""


class _Annotated(msgspec.Struct):
    annotations: dict[str, str] = {}


class _Lease(msgspec.Struct):
    metadata: _Annotated


_decode_lease: Final = msgspec.json.Decoder(_Lease).decode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(slots=True)
class NodeState:
    zone: str
    up: bool
    given_up: float | None
    """When it got its NoExecute taint, by the control plane's clock in whole seconds; None: it has none."""
    out_of_service: bool
    """It has the out-of-service taint, so its pods leave at once."""

    @property
    def repels(self) -> bool:
        """Its pods have to leave."""
        return self.given_up is not None or self.out_of_service


@dataclass(slots=True)
class PodState:
    uid: str
    key: str
    node: str
    phase: str
    leaves: bool
    patience: dict[str, int | None]
    """How many seconds it tolerates each taint; None: for ever."""
    body: dict[str, Any] = field(repr=False)
    targeted_at: float | None = None
    """When the taint manager announced its eviction; None: it did not."""


@dataclass(slots=True)
class ServerTimes:
    """The clock of a server, and since when it has seen every node: when it last started, knew that it had been paused,
    or reached the store again."""

    clock: DriftingClock
    grace_s: float = 0.0
    """For how long it sees nodes before it judges them, by its clock."""
    began_at: float = 0.0
    resumed_at: float = 0.0
    judged_until: float = -inf
    """When it last lost sight of the nodes after it had seen them for long enough: what it decided until then may be
    written later."""

    def started(self, now: float) -> None:
        """As a new process, which writes nothing that the last one decided."""
        self.began_at, self.judged_until = now, -inf

    def sees_again(self, now: float, since: float) -> None:
        """It saw no node from `since` until now."""
        if self.seen_s(since) >= self.grace_s:
            self.judged_until = since
        self.began_at = now

    def seen_s(self, now: float) -> float:
        """For how long it has seen all nodes, by its clock."""
        return (now - self.began_at) * self.clock.rate


class NodeCheckers:
    def __init__(self, loop: VirtualLoop, log: RunLog, profile: NodeProfile, late_s: float = 0.0) -> None:
        """`late_s`: how long after its decision a write may happen."""
        self.nodes: dict[str, NodeState] = {}
        self.pods: dict[str, PodState] = {}
        """As stored, by key."""
        self.running: dict[str, dict[str, None]] = {}
        """The machines that run a pod, by uid."""
        self.evictions = self.given_up = self.starts = 0
        self._loop = loop
        self._log = log
        self._profile = profile
        self._server = ServerTimes(DriftingClock())
        """The server that wrote last."""
        self.pod_counts = PodCountChecker(loop, log)
        self.claims = ClaimChecker(log, self.running)
        self._known: dict[str, str] = {}
        self._versions: dict[tuple[str, int], int] = {}
        self._acknowledged: dict[str, int] = {}
        self._let_go: set[tuple[str, str]] = set()
        self._late_s = late_s
        self._repelled_until: dict[str, float] = {}
        """When a node that pods had to leave was taken back or deleted: evictions may be under way."""
        self._last_up_at = -inf
        """When a node was up for the last time, if none is."""
        self._last_given_up: dict[str, tuple[float, ServerTimes]] = {}

    # -- containers
    # ------------------------------------------------------------------------------------------------------

    def began(self, node: str, uid: str) -> None:
        key = self._known.get(uid, uid)
        self.starts += 1
        self._log.record(f"{node} runs {key} ({uid[:8]})")
        if (node, uid) in self._let_go:
            self._log.violation(f"{node} runs {key} ({uid[:8]}) again, which it had released: its snapshot went back")
        on = self.running.setdefault(uid, {})
        on[node] = None
        for other, places in self.running.items():
            if other == uid or self._known.get(other, other) == key:
                for place in places:
                    if place != node:
                        self._log.violation(f"{key} runs twice: {uid[:8]} on {node}, {other[:8]} on {place}")

    def ended(self, node: str, uid: str) -> None:
        self._log.record(f"{node} ended {self._known.get(uid, uid)} ({uid[:8]})")
        on = self.running.get(uid, {})
        on.pop(node, None)
        if not on:
            self.running.pop(uid, None)

    def let_go(self, node: str, uid: str) -> None:
        self._let_go.add((node, uid))

    def agent_at(self, node: str, life: int, version: int) -> None:
        """The snapshot version of an agent, for each of its lives."""
        last = self._versions.get((node, life), 0)
        if version < last:
            self._log.violation(f"the agent of {node} went back from version {last} of its snapshot to {version}")
        self._versions[node, life] = version

    # -- the store
    # -------------------------------------------------------------------------------------------------------

    def committed(self, writes: Sequence[Write], server: ServerTimes) -> None:
        self._server = server
        for write in writes:
            if isinstance(write, Put) and write.key.startswith(NODES):
                self._node(write.key.removeprefix(NODES), _decode(write.value))
            elif isinstance(write, Put) and write.key.startswith(PODS):
                self._pod(write.key.removeprefix(PODS), _decode(write.value))
            elif isinstance(write, Put) and write.key.startswith(LEASES):
                self._lease(write.key.removeprefix(LEASES), write.value)
            elif isinstance(write, Put) and write.key.startswith(CLAIMS):
                self.claims.written(write.key, write.value)
            elif isinstance(write, Put):
                self.pod_counts.workload(write.key, write.value)
            elif isinstance(write, Delete):
                self._gone(write.key)

    def _lease(self, node: str, value: bytes) -> None:
        said = _decode_lease(value).metadata.annotations.get(ACKNOWLEDGED)
        if said is not None:
            version, last = int(said), self._acknowledged.get(node, 0)
            if version < last:
                self._log.violation(f"{node} had acknowledged version {last} of its snapshot, and says {version}")
            self._acknowledged[node] = version

    def _gone(self, key: str) -> None:
        if key.startswith(NODES):
            self._log.record(f"node {key.removeprefix(NODES)} is deleted")
            self._note_up()
            gone = self.nodes.pop(key.removeprefix(NODES), None)
            if gone is not None and gone.repels:
                self._repelled_until[key.removeprefix(NODES)] = self._loop.now
        elif key.startswith(PODS):
            self._log.record(f"pod {key.removeprefix(PODS)} is gone")
            self._stopped(self.pods.pop(key.removeprefix(PODS), None))
        elif key.startswith(CLAIMS):
            self.claims.gone(key)
        else:
            self.pod_counts.gone(key)

    def _stopped(self, gone: PodState | None) -> None:
        """A pod that is gone, or replaced, runs nowhere: others of its name may start now."""
        if gone is not None and (places := self.running.get(gone.uid)):
            self._log.violation(f"{gone.key} ({gone.uid[:8]}) is gone, and {', '.join(places)} still runs it")

    def _node(self, name: str, body: dict[str, Any]) -> None:
        before = self.nodes.get(name)
        ready = next((c["status"] for c in body.get("status", {}).get("conditions", ()) if c["type"] == "Ready"), "")
        lost = [t for t in body["spec"].get("taints", ()) if t["effect"] == "NoExecute" and t["key"] in LOST]
        zone = body["metadata"].get("labels", {}).get(ZONE, "")
        added = _seconds(lost[0].get("timeAdded", "")) if lost else None
        out = any(one["key"] == OUT_OF_SERVICE for one in body["spec"].get("taints", ()))
        new = NodeState(zone, ready == "True", added, out)
        if before is None or before.up != new.up:
            self._log.record(f"node {name} is {'ready' if new.up else f'not ready ({ready})'}")
        if new.given_up is not None and (before is None or before.given_up is None):
            self._giving_up(name, new)
        elif before is not None and before.given_up is not None and new.given_up is None:
            self._log.record(f"node {name} is not given up any more")
        if before is not None and before.repels and not new.repels:
            self._repelled_until[name] = self._loop.now
        self._note_up()
        self.nodes[name] = new

    def _note_up(self) -> None:
        """Before the nodes change: some node was up until now."""
        if any(one.up for one in self.nodes.values()):
            self._last_up_at = self._loop.now

    def _giving_up(self, name: str, node: NodeState) -> None:
        self.given_up += 1
        self._log.record(f"node {name} is given up")
        now, profile = self._loop.now, self._profile
        what = f"node {name} is given up"
        self._too_early(what, inf if node.given_up is None else node.given_up)
        self._all_lost(what)
        zone = [one for one in self.nodes.values() if one.zone == node.zone]
        down = sum(not one.up for one in zone)
        large = len(zone) > profile.large_zone
        most = down != len(zone) and down >= profile.unhealthy_least and down >= profile.unhealthy_part * len(zone)
        rate = profile.rate if not most else profile.reduced_rate if large else 0.0
        last = self._last_given_up.get(node.zone)
        if not rate:
            self._log.violation(f"{what} though {down} of the {len(zone)} nodes of its zone are lost")
        elif last is not None and last[1] is self._server:
            since = (now - last[0]) * self._server.clock.rate
            if since < 1 / rate - SLACK_S - self._late_s:
                self._log.violation(f"{what} {since:.1f} s after another of its zone")
        self._last_given_up[node.zone] = now, self._server

    def _too_early(self, what: str, due: float = inf) -> None:
        """No node is tainted and no pod evicted in the first grace period of a server, unless it was due before the
        server lost sight of the nodes, by the server's clock: the request was on its way to a store that stalled."""
        server = self._server
        since = server.seen_s(self._loop.now)
        under_way = due <= server.clock.wall(server.judged_until) + SLACK_S
        if under_way and self._loop.now - server.judged_until <= self._late_s:
            return
        if since < server.grace_s - SLACK_S:
            self._log.violation(f"{what} {since:.1f} s after the control plane started")

    def _all_lost(self, what: str) -> None:
        if not any(one.up for one in self.nodes.values()) and self._loop.now - self._last_up_at >= self._late_s:
            self._log.violation(f"{what} though all nodes are lost")

    def _pod(self, key: str, body: dict[str, Any]) -> None:
        meta, status = body["metadata"], body.get("status", {})
        node, phase = body["spec"].get("nodeName", ""), status.get("phase", "Pending")
        tolerations = body["spec"].get("tolerations", ())
        new = PodState(meta["uid"], key, node, phase, "deletionTimestamp" in meta, _patience(tolerations), body)
        before = self.pods.get(key)
        self._known[new.uid] = key
        if before is not None and before.uid == new.uid:
            if before.node and before.node != node:
                self._log.violation(f"pod {key} was bound to {before.node}, and is now to {node or 'nothing'}")
            if before.phase in ENDED and phase != before.phase:
                self._log.violation(f"pod {key} had {before.phase}, and is {phase}")
        else:
            self._stopped(before)
        self._tell(before, new)
        if node and (before is None or before.uid != new.uid or not before.node):
            self.claims.bound(new)
        targets = [c.get("reason") for c in status.get("conditions", ()) if c["type"] == "DisruptionTarget"]
        if BY_TAINT in targets:
            known = None if before is None or before.uid != new.uid else before.targeted_at
            new.targeted_at = self._loop.now if known is None else known
            # After an eviction that could not be written, somebody else may delete the pod.
            recent = self._loop.now - new.targeted_at <= max(self._late_s, SLACK_S)
            if new.leaves and (before is None or not before.leaves) and recent:
                self._evicted(new)
        self.pods[key] = new
        if before is None or before.uid != new.uid:
            self.pod_counts.created(new, self.pods.values())

    def _tell(self, before: PodState | None, new: PodState) -> None:
        if before is None or before.uid != new.uid:
            self._log.record(f"pod {new.key} ({new.uid[:8]}) is created")
        elif before.node != new.node:
            self._log.record(f"pod {new.key} is bound to {new.node}")
        elif before.phase != new.phase:
            self._log.record(f"pod {new.key} is {new.phase}")
        elif new.leaves and not before.leaves:
            self._log.record(f"pod {new.key} on {new.node or 'no node'} is being deleted")

    def _evicted(self, pod: PodState) -> None:
        self.evictions += 1
        what = f"pod {pod.key} is evicted from {pod.node}"
        node = self.nodes.get(pod.node)
        if node is not None and node.out_of_service:
            return
        if node is None or node.given_up is None:
            if self._loop.now - self._repelled_until.get(pod.node, -inf) > self._late_s:
                self._log.violation(f"{what}, which is not given up")
            return
        patience = min((s for s in pod.patience.values() if s is not None), default=None)
        self._too_early(what, node.given_up + (patience or 0))
        self._all_lost(what)
        wall = self._server.clock.wall(self._loop.now)
        if pod.patience and patience is None:
            self._log.violation(f"{what}, whose taint it tolerates")
        elif patience is not None and wall < node.given_up + patience - SLACK_S:
            after = wall - node.given_up
            self._log.violation(f"{what} {after:.1f} s after that was given up, and not after {patience} s")


def _patience(tolerations: Sequence[dict[str, Any]]) -> dict[str, int | None]:
    return {one["key"]: one.get("tolerationSeconds") for one in tolerations if one.get("key") in LOST}


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() if text else float(EPOCH_S)
