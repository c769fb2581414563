"""Binds a pod to the node that was decided, once, and finds out what came of it.

A Binding names the pod's uid and the version of it that was decided on: a pod that was changed, bound or replaced
meanwhile is not bound. A server that guards binds itself, as situate's does, refuses a node that is full or not for
this pod: that is final, and the pod is decided anew, elsewhere, by what is known by then. What the answer leaves open
is settled by reading the pod, never by guessing:

    bound to our node       done, whoever's answer was lost
    bound elsewhere, going, another of its name, or none      final: it must not be bound, or was
    waiting, in another version, otherwise as it was decided on     asked for once more, at once, for that version
    waiting, and not what it was                                     final: it is to be decided anew
    waiting, and nothing says why it was not bound; or unreadable    not final: the engine asks for it again later
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
"""How long the answer to a Binding is waited for. With a look at the pod after it, this ends before the engine stops
waiting (BIND_ANSWER_MS)."""

NODE_REFUSED: Final = frozenset({"FullNode", "IneligibleNode", "StaleTerm"})
"""Causes of a 409 by which situate's own server says that it is not the pod that changed."""
_WORTH_ANOTHER_TRY: Final = (0, 401, 408, 429)
"""Refused, and not because of what was asked."""


async def bind_pod(
    client: Client,
    ask: Bind,
    pod: Pod | None,
    version: str,
    may_write: Callable[[], bool],
    term: Callable[[], int | None] = lambda: None,
) -> BindDone | BindFailed:
    """Carry out a Bind of a pod as it was decided on, in this version of it; and, if `term` has one, in our term."""
    problem = ""
    for tries_left in (1, 0):
        if not may_write():
            return BindFailed(ask.pod, ask.attempt, NOT_LEADER)
        try:
            body = binding(ask.pod, ask.node, version, term(), ask.annotations)
            await client.request("POST", f"{pod_path(ask.pod)}/binding", body=body, timeout_s=BIND_S)
            return BindDone(ask.pod, ask.attempt)
        except ApiError as error:
            if not (error.conflict or error.lost) or NODE_REFUSED.intersection(error.causes):
                return _failed(ask, error.message, final=error.status not in _WORTH_ANOTHER_TRY)
            problem, conflict = error.message, error.conflict
        try:
            now = await read_pod(client, ask.pod)
        except ApiError as error:
            return _failed(ask, f"{problem}; and the pod cannot be read: {error.message}", final=False)
        settled = _settled(ask, now)
        if settled is not None or now is None:
            return settled or _failed(ask, problem, final=True)
        if not conflict or now.metadata.resource_version == version:
            return _failed(ask, problem, final=False)
        if pod is None or signature(now) != signature(pod):
            return _failed(ask, f'pod "{ask.pod.key}" was changed while it was being bound', final=True)
        if tries_left:
            version = now.metadata.resource_version
    return _failed(ask, problem, final=False)


def _settled(ask: Bind, now: Pod | None) -> BindDone | BindFailed | None:
    """What the pod says of its bind; None if nothing: it waits still."""
    ref = ask.pod
    if now is None or now.metadata.uid != ref.uid:
        return _failed(ask, f'pods "{ref.name}" not found', final=True)
    if now.spec.node_name == ask.node:
        return BindDone(ref, ask.attempt)
    if now.spec.node_name:
        return _failed(ask, f'pod {ref.name} is already assigned to node "{now.spec.node_name}"', final=True)
    if now.metadata.deletion_timestamp is not None:
        return _failed(ask, f"pod {ref.name} is being deleted, cannot be assigned to a host", final=True)
    return None


def _failed(ask: Bind, problem: str, *, final: bool) -> BindFailed:
    return BindFailed(ask.pod, ask.attempt, RUNNING + problem, final=final)
