"""The stream of placements: what was decided, as it happens.

Our own control plane has PlacementEvents. On another cluster, its schedulers' Events tell the same with fewer words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from situate.kube.client import Client
from situate.web.feed import DecisionFeed, FeedSource
from situate.web.limits import MAX_PLACEMENTS

OWN: Final = "/apis/situate.dev/v1alpha1"
FOREIGN: Final = "/api/v1"
REASONS: Final = {
    "Scheduled": "bound",
    "FailedScheduling": "waiting",
    "Preempted": "evicted",
    "TaintManagerEviction": "evicted",
}
"""The Events of schedulers and of the taint manager, in our words."""
UNTOLD: Final = ("running", "succeeded", "gone")
"""What is no decision."""


def placement_feed(client: Client, namespace: str, moved: Callable[[], None]) -> DecisionFeed:
    """Of one namespace, or of all if it is empty."""
    within = within_namespace(namespace)
    own = FeedSource(f"{OWN}{within}/placementevents", _of_placement, begin="0")
    foreign = FeedSource(f"{FOREIGN}{within}/events", _of_event)
    return DecisionFeed(client, (own, foreign), MAX_PLACEMENTS, "placements", moved)


def within_namespace(namespace: str) -> str:
    """The part of a path."""
    return f"/namespaces/{quote(namespace, safe='')}" if namespace else ""


def _of_placement(found: Mapping[str, Any]) -> dict[str, Any] | None:
    if found.get("event") in UNTOLD:
        return None
    pod = found.get("pod") or {}
    return {
        "time": found.get("time", ""),
        "event": found.get("event", ""),
        "pod": f"{found['metadata'].get('namespace', '')}/{pod.get('name', '')}",
        "node": found.get("node", ""),
        "scheduler": found.get("scheduler", ""),
        "reason": found.get("reason", ""),
        "message": found.get("message", ""),
    }


def _of_event(found: Mapping[str, Any]) -> dict[str, Any] | None:
    what = found.get("involvedObject") or {}
    event = REASONS.get(str(found.get("reason") or ""))
    if event is None or what.get("kind") != "Pod":
        return None
    source = found.get("reportingComponent") or (found.get("source") or {}).get("component") or ""
    message = str(found.get("message") or "")
    # "Successfully assigned shop/web-1 to node-3"
    node = message.rpartition(" to ")[2] if event == "bound" else ""
    return {
        "time": found.get("lastTimestamp") or found.get("eventTime") or "",
        "event": event,
        "pod": f"{what.get('namespace', '')}/{what.get('name', '')}",
        "node": node,
        "scheduler": source,
        "reason": found.get("reason", ""),
        "message": "" if node else message,
    }
