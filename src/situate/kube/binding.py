"""Binds a pod to its node, at most once, and finds out whether that succeeded. Conflicts are retried here.

A Binding names the pod's uid and the version that was decided on: a pod that was changed, bound or replaced meanwhile
is not bound. A server that guards binds itself, as situate's does, refuses a node that is full or not eligible: that is
final, and the engine decides the pod anew. When an answer is lost or a conflict, the pod is read:

    bound to our node                                     done: an answer was lost
    bound elsewhere, terminating, replaced, or gone       final: it must not be bound, or is
    pending in another version, but the same to us        retried once, at once, for that version
    pending, and changed                                  final: the engine decides it anew
    pending, for no visible reason; or it cannot be read  not final: the engine asks again later
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from situate.core.changes import BindDone, BindFailed
from situate.core.effects import Bind
from situate.core.model.pod import Pod
from situate.core.state.classes import signature
from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.kube.pods import pod_path, read_pod
from situate.loop.scheduling.port import NOT_LEADER, RUNNING
from situate.wire.bodies import binding

BIND_S: Final = 15.0
"""The timeout of a Binding. With reading the pod after it, it ends before the engine gives up (BIND_ANSWER_MS)."""

NODE_REFUSED: Final = frozenset({"FullNode", "IneligibleNode", "StaleTerm"})
"""Causes of a 409 of situate's own server that are not about a change of the pod."""
_WORTH_ANOTHER_TRY: Final = (0, 401, 408, 429)
"""Statuses of a refusal that is not about the request."""


async def bind_pod(
    client: Client,
    bind: Bind,
    pod: Pod | None,
    version: str,
    may_write: Callable[[], bool],
    term: Callable[[], int | None] = lambda: None,
) -> BindDone | BindFailed:
    """Bind a pod as it was when the engine decided, in this version; and in our term, if `term` has one."""
    problem = ""
    for tries_left in (1, 0):
        if not may_write():
            return BindFailed(bind.pod, bind.attempt, NOT_LEADER)
        try:
            body = binding(bind.pod, bind.node, version, term(), bind.annotations)
            await client.request("POST", f"{pod_path(bind.pod)}/binding", body=body, timeout_s=BIND_S)
            return BindDone(bind.pod, bind.attempt)
        except ApiError as error:
            if not (error.conflict or error.lost) or NODE_REFUSED.intersection(error.causes):
                return _failed(bind, error.message, final=error.status not in _WORTH_ANOTHER_TRY)
            problem, conflict = error.message, error.conflict
        try:
            now = await read_pod(client, bind.pod)
        except ApiError as error:
            return _failed(bind, f"{problem}; and the pod cannot be read: {error.message}", final=False)
        settled = _settled(bind, now)
        if settled is not None or now is None:
            return settled or _failed(bind, problem, final=True)
        if not conflict or now.metadata.resource_version == version:
            return _failed(bind, problem, final=False)
        if pod is None or signature(now) != signature(pod):
            return _failed(bind, f'pod "{bind.pod.key}" was changed while it was being bound', final=True)
        if tries_left:
            version = now.metadata.resource_version
    return _failed(bind, problem, final=False)


def _settled(bind: Bind, now: Pod | None) -> BindDone | BindFailed | None:
    """What the pod shows of its bind; None: it is still pending."""
    ref = bind.pod
    if now is None or now.metadata.uid != ref.uid:
        return _failed(bind, f'pods "{ref.name}" not found', final=True)
    if now.spec.node_name == bind.node:
        return BindDone(ref, bind.attempt)
    if now.spec.node_name:
        return _failed(bind, f'pod {ref.name} is already assigned to node "{now.spec.node_name}"', final=True)
    if now.metadata.deletion_timestamp is not None:
        return _failed(bind, f"pod {ref.name} is being deleted, cannot be assigned to a host", final=True)
    return None


def _failed(bind: Bind, problem: str, *, final: bool) -> BindFailed:
    return BindFailed(bind.pod, bind.attempt, RUNNING + problem, final=final)
