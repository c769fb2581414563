"""All nodes: the health of zones, and how fast lost nodes may be given up.

Giving a node up means tainting it NoExecute: its pods leave and are recreated elsewhere. One lost node is the node's
fault. If most of a zone is lost, the fault is rather ours or the network's, and its pods are left alone:

    a zone                                      nodes given up
    less than 55 % unhealthy, or at most two    0.1 per second
    more                                        0.01 per second if it has more than 50 nodes, else none
    all of it                                   0.1 per second: the zone is lost, and others are not
    all zones                                   none, and the taints are removed

One node at a time, at the rate. The time of the last one is in its taint, and is remembered while we watch. A new
watcher counts as if a node of every zone had just been given up, so the rate holds across restarts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from situate.core.model.managed_node import ManagedNode
from situate.core.model.refs import Millis
from situate.core.reconcile.api_values import SECOND
from situate.core.reconcile.effects import BURST, ReconcileResult, ResultBuilder
from situate.core.reconcile.nodes.fencing import NodeProfile
from situate.core.reconcile.nodes.health import retainted
from situate.core.reconcile.nodes.heartbeats import Heartbeats
from situate.core.reconcile.nodes.taints import (
    LOST,
    counts,
    given_up,
    is_up,
    ready_report,
    with_no_execute,
    without_no_execute,
    zone_of,
)
from situate.core.reconcile.objects import ObjectLister

LOOK_MS: Final[Millis] = 5 * SECOND
"""The poll interval while lost nodes wait, because heartbeats are not events."""

State: TypeAlias = Literal["normal", "partial", "full"]


@dataclass(slots=True)
class Zone:
    nodes: int = 0
    down: int = 0
    """Stored as not ready."""
    silent: int = 0
    """Stored as ready, but silent."""
    lost: list[ManagedNode] = field(default_factory=list)
    """Nodes that may be given up now."""
    lost_next: Millis | None = None
    """When the next node may be given up."""


def taint_lost_nodes(objects: ObjectLister, heartbeats: Heartbeats, now: Millis) -> ReconcileResult:
    """Give up at most one lost node per zone, if the rate allows; take all back if every node is lost."""
    result, may = ResultBuilder(), heartbeats.may_give_up_at
    nodes = objects.among(ManagedNode)
    if may is None:
        return result.done()
    if not heartbeats.up:
        _take_back(nodes, result)
        return result.done()
    zones = zones_of(nodes, heartbeats, now)
    for zone in zones.values():
        result.requeue(zone.lost_next)
    waiting = [name for name in sorted(zones) if zones[name].lost]
    if not waiting:
        return result.done()
    if now < may:
        result.requeue(may)
        return result.done()
    result.requeue(now + LOOK_MS)
    if all(zone.down + zone.silent == zone.nodes for zone in zones.values()):
        return result.done()
    for name in waiting:
        _give_up_one(name, zones, heartbeats, now, result)
    return result.done()


def zones_of(nodes: Sequence[ManagedNode], heartbeats: Heartbeats, now: Millis) -> Mapping[str, Zone]:
    """The health of the zones by name. A silent node is unhealthy, whatever is stored."""
    profile, zones = heartbeats.profile, dict[str, Zone]()
    for one in nodes:
        name = zone_of(one)
        zone = zones.get(name)
        if zone is None:
            zone = zones[name] = Zone()
        up = is_up(one)
        if counts(one):
            zone.nodes += 1
            zone.down += not up
            zone.silent += up and heartbeats.is_silent(one.metadata.name, now, profile.silent_ms)
        lost_at = None if up else _lost_at(one, heartbeats, now)
        if lost_at is not None and lost_at <= now:
            zone.lost.append(one)
        elif lost_at is not None and (zone.lost_next is None or lost_at < zone.lost_next):
            zone.lost_next = lost_at
    return zones


def _lost_at(one: ManagedNode, heartbeats: Heartbeats, now: Millis) -> Millis | None:
    """When the node may be given up."""
    report = ready_report(one)
    if report is None or report.status not in LOST or given_up(one) is not None:
        return None
    return now if report.status == "False" else heartbeats.silent_at(one.metadata.name, heartbeats.profile.grace_ms)


def state_of(nodes: int, unhealthy: int, profile: NodeProfile) -> State:
    if unhealthy == nodes:
        return "full"
    many = unhealthy >= profile.unhealthy_least and unhealthy >= profile.unhealthy_part * nodes
    return "partial" if many else "normal"


def spacing(zone: Zone, profile: NodeProfile) -> Millis | None:
    """The time between two nodes of a zone that are given up; None: none may be."""
    # Silence may only slow this down: a zone is not lost before that is certain, and any of the silent may be lost.
    most = max(zone.down, min(zone.down + zone.silent, zone.nodes - 1))
    rate = min(_rate(zone.nodes, unhealthy, profile) for unhealthy in (zone.down, most))
    return None if rate <= 0 else int(SECOND / rate)


def _rate(nodes: int, unhealthy: int, profile: NodeProfile) -> float:
    if state_of(nodes, unhealthy, profile) != "partial":
        return profile.rate
    return profile.reduced_rate if nodes > profile.large_zone else 0.0


def _give_up_one(
    name: str, zones: Mapping[str, Zone], heartbeats: Heartbeats, now: Millis, result: ResultBuilder
) -> None:
    zone, since = zones[name], heartbeats.since
    apart = spacing(zone, heartbeats.profile)
    if apart is None or since is None:
        return
    last = heartbeats.last_given_up(name)
    # A taint's time has whole seconds, so it may be almost a second later.
    due = max(since, since if last is None else last + SECOND) + apart
    if due > now:
        result.requeue(due)
        return
    first = min(zone.lost, key=_longest_lost)
    taints = with_no_execute(first, now)
    if taints is not None:
        result.effects.append(retainted(first, taints))
        result.requeue(now + apart)


def _longest_lost(one: ManagedNode) -> tuple[str, str]:
    report = ready_report(one)
    return "" if report is None else report.last_transition_time or "", one.metadata.name


def _take_back(nodes: Sequence[ManagedNode], result: ResultBuilder) -> None:
    for one in nodes:
        if given_up(one) is not None and len(result.effects) < BURST:
            result.effects.append(retainted(one, without_no_execute(one)))
