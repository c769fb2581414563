"""Evicts a victim of preemption: marks it in its conditions, then deletes it, and no other pod of its name.

The pod keeps its grace period. When an answer is lost, the pod is read to find out what happened.
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
    client: Client, evict: Evict, may_write: Callable[[], bool], now_ns: Callable[[], int]
) -> EvictDone | EvictFailed:
    """Carry out an Evict."""
    if not may_write():
        return EvictFailed(evict.victim, NOT_LEADER)
    path = pod_path(evict.victim)
    target = DISRUPTION_TARGET
    condition = ConditionPatch(target.type, target.status, target.reason, evict.message, since_ns=now_ns())
    try:
        body = status_patch(evict.victim.uid, "", (condition,), None)
        await client.request("PATCH", f"{path}/status", body=body, content_type=STRATEGIC)
        if not may_write():
            return EvictFailed(evict.victim, NOT_LEADER)
        await client.request("DELETE", path, body=delete_options(evict.victim.uid))
    except ApiError as error:
        return await _settled(client, evict.victim, error)
    return EvictDone(evict.victim)


async def _settled(client: Client, victim: PodRef, error: ApiError) -> EvictDone | EvictFailed:
    """Whether the victim is gone or terminating, whatever the answer was."""
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
