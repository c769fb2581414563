"""Evicts a victim of preemption: says so in its conditions, then deletes it, and no other pod of its name.

The pod keeps the grace that it asks for. What the answers leave open is settled by reading the pod.
"""

from __future__ import annotations

from collections.abc import Callable

from situate.core.changes import EvictDone, EvictFailed, PodRef
from situate.core.effects import Evict
from situate.core.state.pods import DISRUPTION_TARGET
from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.kube.pods import ANOTHER, pod_path, read_pod
from situate.loop.scheduling.port import NOT_LEADER
from situate.wire.bodies import delete_options
from situate.wire.patches import STRATEGIC, ConditionPatch, status_patch


async def evict_pod(
    client: Client, ask: Evict, may_write: Callable[[], bool], now_ns: Callable[[], int]
) -> EvictDone | EvictFailed:
    """Carry out an Evict."""
    if not may_write():
        return EvictFailed(ask.victim, NOT_LEADER)
    path = pod_path(ask.victim)
    told = DISRUPTION_TARGET
    said = ConditionPatch(told.type, told.status, told.reason, ask.message, since_ns=now_ns())
    try:
        body = status_patch(ask.victim.uid, "", (said,), None)
        await client.request("PATCH", f"{path}/status", body=body, content_type=STRATEGIC)
        if not may_write():
            return EvictFailed(ask.victim, NOT_LEADER)
        await client.request("DELETE", path, body=delete_options(ask.victim.uid))
    except ApiError as error:
        return await _settled(client, ask.victim, error)
    return EvictDone(ask.victim)


async def _settled(client: Client, victim: PodRef, error: ApiError) -> EvictDone | EvictFailed:
    """Whether the victim is gone or going, whatever the answer was."""
    if error.not_found:
        return EvictDone(victim)
    if not (error.conflict or error.lost or error.status == ANOTHER):
        return EvictFailed(victim, error.message)
    try:
        now = await read_pod(client, victim)
    except ApiError as unread:
        return EvictFailed(victim, f"{error.message}; and the pod cannot be read: {unread.message}")
    if now is None or now.metadata.uid != victim.uid or now.metadata.deletion_timestamp is not None:
        return EvictDone(victim)
    return EvictFailed(victim, error.message)
