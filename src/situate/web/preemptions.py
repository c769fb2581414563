"""Preemptions: which pods had to go, for whom, and why that one needed their room.

A scheduler writes an Event about each victim, which names the pod that preempts it. What an Event does not say (the
priorities, what the preemptor was waiting for) is remembered from the pods themselves while they are there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from situate.core.model.pod import Pod
from situate.core.state.cluster import Cluster
from situate.core.state.pods import DISRUPTION_TARGET
from situate.kube.client import Client
from situate.web.feed import DecisionFeed, FeedSource, Told
from situate.web.limits import MAX_PREEMPTIONS, MAX_REMEMBERED
from situate.web.placements import FOREIGN, within_namespace
from situate.web.waiting import why_waiting

REASON: Final = "Preempted"
WAITED: Final = ("waiting", "placed")
"""Placements of pods that have no node yet; `placed`: one is reserved for them."""
_ON_NODE: Final = " on node "


def preemption_feed(client: Client, namespace: str, moved: Callable[[], None]) -> DecisionFeed:
    """Of victims in one namespace, or in all if it is empty."""
    params = {"fieldSelector": f"reason={REASON}"}
    source = FeedSource(f"{FOREIGN}{within_namespace(namespace)}/events", _of_event, params=params)
    return DecisionFeed(client, (source,), MAX_PREEMPTIONS, "preemptions", moved)


def _of_event(found: Mapping[str, Any]) -> Told | None:
    victim, by = found.get("involvedObject") or {}, found.get("related") or {}
    if found.get("reason") != REASON or victim.get("kind") != "Pod":
        return None
    # "Preempted by pod 0b6c... on node node-3"
    _, on_node, node = str(found.get("message") or "").rpartition(_ON_NODE)
    source = found.get("reportingComponent") or (found.get("source") or {}).get("component") or ""
    return {
        "time": found.get("eventTime") or found.get("lastTimestamp") or "",
        "pod": f"{victim.get('namespace', '')}/{victim.get('name', '')}",
        "uid": str(victim.get("uid") or ""),
        "by": f"{by.get('namespace', '')}/{by.get('name', '')}" if by.get("name") else "",
        "byKind": str(by.get("kind") or "Pod"),
        "byUid": str(by.get("uid") or ""),
        "node": node if on_node else "",
        "scheduler": source,
    }


@dataclass(frozen=True, slots=True)
class _Preemptor:
    """What was known of it while it waited."""

    priority: int
    message: str


class PreemptionNotes:
    """What the pods said of themselves: victims of their priority, preemptors of what they waited for."""

    def __init__(self) -> None:
        self._victims: dict[str, int] = {}
        self._preemptors: dict[str, _Preemptor] = {}

    def pod_seen(self, pod: Pod) -> bool:
        """Whether there is something new."""
        uid = pod.metadata.uid
        if _is_victim(pod):
            return _remember(self._victims, uid, pod.spec.priority or 0)
        if pod.status.nominated_node_name and not pod.spec.node_name:
            return _remember(self._preemptors, uid, _Preemptor(pod.spec.priority or 0, why_waiting(pod)[1]))
        return False

    def priority_of_victim(self, uid: str) -> int | None:
        return self._victims.get(uid)

    def preemptor(self, uid: str) -> _Preemptor | None:
        return self._preemptors.get(uid)


def _is_victim(pod: Pod) -> bool:
    wanted = DISRUPTION_TARGET
    return any(
        (one.type, one.status, one.reason) == (wanted.type, wanted.status, wanted.reason)
        for one in pod.status.conditions
    )


def _remember(known: dict[str, Any], uid: str, value: object) -> bool:
    if known.pop(uid, None) == value:
        known[uid] = value
        return False
    known[uid] = value
    if len(known) > MAX_REMEMBERED:
        del known[next(iter(known))]
    return True


@dataclass(slots=True)
class _Row:
    first: Told
    time: str
    victims: list[Told] = field(default_factory=list)


def waiting_messages(placements: Sequence[Told]) -> dict[str, str]:
    """What each pod that waited was told last: for preemptors that were placed before anybody looked."""
    return {one["pod"]: one["message"] for one in placements if one["event"] in WAITED and one["message"]}


def preemption_rows(
    events: Sequence[Told],
    notes: PreemptionNotes,
    pending: Mapping[str, Pod],
    cluster: Cluster,
    said: Mapping[str, str],
) -> dict[str, Any]:
    """One row for what one pod preempted on one node, the newest first."""
    rows: dict[tuple[str, str, str], _Row] = {}
    for one in events:
        key = (one["byUid"] or one["by"], one["node"], "" if one["by"] or one["byUid"] else one["uid"])
        row = rows.setdefault(key, _Row(one, one["time"]))
        row.time = max(row.time, one["time"])
        row.victims.append(one)
    ordered = sorted(rows.values(), key=lambda row: row.time, reverse=True)
    return {"victims": len(events), "rows": [_value(row, notes, pending, cluster, said) for row in ordered]}


def _value(
    row: _Row, notes: PreemptionNotes, pending: Mapping[str, Pod], cluster: Cluster, said: Mapping[str, str]
) -> dict[str, Any]:
    by, uid = row.first["by"], row.first["byUid"]
    known, priority, node = notes.preemptor(uid), None, ""
    waits = pending.get(by)
    if waits is not None and waits.metadata.uid == uid:
        priority = waits.spec.priority or 0
    else:
        waits = None
        at = cluster.pods.rows.get(by)
        if at is not None and cluster.pods.uids[at] == uid:
            priority, node = cluster.pods.kind(at).priority, cluster.node_of(by)
    if priority is None and known is not None:
        priority = known.priority
    return {
        "time": row.time,
        "by": by,
        "byKind": row.first["byKind"],
        "priority": priority,
        "state": "waiting" if waits is not None else "bound" if node else "gone",
        "placed": node,
        "node": row.first["node"],
        "message": known.message if known is not None else said.get(by, ""),
        "scheduler": row.first["scheduler"],
        "victims": [{"pod": one["pod"], "priority": notes.priority_of_victim(one["uid"])} for one in row.victims],
    }
