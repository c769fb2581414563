"""Nodes and pods for tests, of which each says only what its case is about."""

from __future__ import annotations

from typing import Any

from situate.core.model.managed import ManagedPod, ManagedPodSpec, ManagedPodStatus
from situate.core.model.managed_node import ManagedNode, ManagedNodeSpec, ManagedNodeStatus, TimedTaint
from situate.core.model.stored import Condition, StoredMeta
from situate.core.model.tolerations import Toleration
from situate.core.reconcile.api_values import SECOND, format_time
from situate.core.reconcile.nodes.fencing import KUBERNETES, NodeProfile
from situate.core.reconcile.nodes.heartbeats import Heartbeats
from situate.core.reconcile.nodes.taints import NOT_READY, UNREACHABLE

T0 = 1_700_000_000_000
ZONE = "topology.kubernetes.io/zone"


def taint(key: str, effect: str = "NoExecute", at: int | None = T0) -> TimedTaint:
    return TimedTaint(key=key, effect=effect, time_added=None if at is None else format_time(at))


def gone(at: int = T0) -> TimedTaint:
    return taint(UNREACHABLE, at=at)


def node(
    name: str = "n",
    ready: str = "True",
    *taints: TimedTaint,
    zone: str = "",
    cordoned: bool = False,
    labels: dict[str, str] | None = None,
    **conditions: str,
) -> ManagedNode:
    said = {**conditions, **({"Ready": ready} if ready else {})}
    reports = tuple(
        Condition(type=kind, status=status, last_heartbeat_time=format_time(0), last_transition_time=format_time(0))
        for kind, status in said.items()
    )
    labels = {**({ZONE: zone} if zone else {}), **(labels or {})}
    return ManagedNode(
        metadata=StoredMeta(name=name, uid=f"uid-{name}", resource_version="7", labels=labels),
        spec=ManagedNodeSpec(taints=taints, unschedulable=cordoned),
        status=ManagedNodeStatus(conditions=reports),
    )


def pod(
    name: str = "p",
    *tolerations: Toleration,
    on: str = "n",
    phase: str = "Running",
    deleted: bool = False,
    finalizers: tuple[str, ...] = (),
    ready: Condition | None = None,
    created: int = T0,
    reason: str = "",
) -> ManagedPod:
    meta = StoredMeta(
        name=name,
        namespace="default",
        uid=f"uid-{name}",
        resource_version="3",
        creation_timestamp=format_time(created),
        deletion_timestamp=format_time(T0) if deleted else None,
        finalizers=finalizers,
    )
    conditions = () if ready is None else (ready,)
    status = ManagedPodStatus(phase=phase, conditions=conditions, reason=reason)
    return ManagedPod(metadata=meta, spec=ManagedPodSpec(node_name=on, tolerations=tolerations), status=status)


def tolerates(key: str = "", seconds: int | None = None) -> Toleration:
    return Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=seconds)


def seen(*nodes: ManagedNode, at: int = T0, since: int | None = None, profile: NodeProfile = KUBERNETES) -> Heartbeats:
    """All nodes were heard of at that time, by somebody who has looked for longer, if not since another."""
    heartbeats = Heartbeats(profile)
    for one in nodes:
        heartbeats.node_seen(None, one, at)
    if since is None:
        since = at - 1_000 * SECOND
    heartbeats.begin(since)
    return heartbeats


def patched(effects: tuple[Any, ...]) -> list[str]:
    """What was asked for, in short."""
    return [f"{type(each).__name__} {each.ref.name}" for each in effects]


__all__ = ["NOT_READY", "T0", "UNREACHABLE", "gone", "node", "patched", "pod", "seen", "taint", "tolerates"]
