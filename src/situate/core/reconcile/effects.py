"""The effects of controllers, as values; the caller carries them out.

Rules for every list of effects:
- They are carried out in order. A failure ends the list, and the controller is called again with the new state.
- A list writes no object twice, so the expected resourceVersion is that of the object as read.
- An object to create may exist already: the next call will see it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from msgspec import Struct

from situate.core.model.refs import Millis
from situate.core.model.stored import Raw

BURST = 500
"""The limit of objects that one call creates or deletes."""

Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]


class ObjectRef(Struct, frozen=True, gc=False):
    """With a uid: only the object with this uid."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class LeaseVersion:
    """A version of a node's lease; "": the node has no lease. An effect with one is performed only if the lease is
    still at this version: the agent has not renewed it since its pods were taken for stopped."""

    node: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class CreateObject:
    ref: ObjectRef
    body: Raw
    """The whole object, with Kubernetes' names."""


@dataclass(frozen=True, slots=True)
class UpdateObject:
    """Apply a JSON merge patch, if the object still has this version."""

    ref: ObjectRef
    resource_version: str
    patch: Raw


@dataclass(frozen=True, slots=True)
class UpdateStatus:
    """Replace the status, if the object still has this version."""

    ref: ObjectRef
    resource_version: str
    status: Raw
    annotations: Mapping[str, str] | None = None
    """All that it gets by the same write, which makes no new generation as a write to the object would; None: as they
    are."""


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """Apply a JSON merge patch to the status, if the object still has this version."""

    ref: ObjectRef
    resource_version: str
    patch: Raw
    lease: LeaseVersion | None = None


@dataclass(frozen=True, slots=True)
class FinalizeNamespace:
    """Replace `spec.finalizers` of a namespace by its subresource `finalize`."""

    ref: ObjectRef
    resource_version: str
    finalizers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Delete the object with this uid, and with this version if one is given. `grace_s` None: its own grace period."""

    ref: ObjectRef
    resource_version: str = ""
    propagation: Propagation = "Background"
    grace_s: int | None = None
    lease: LeaseVersion | None = None


@dataclass(frozen=True, slots=True)
class RebindPod:
    """Replace the pod, if it still has this version, by a new one of the same name and specification that has no node
    yet: one write, so that the pod cannot be lost in between. The pod's binding version counts on."""

    ref: ObjectRef
    resource_version: str
    lease: LeaseVersion | None = None


@dataclass(frozen=True, slots=True)
class EvictManagedPod:
    """Evict the pod with this uid by its subresource `eviction`: its disruption budget may refuse."""

    ref: ObjectRef


@dataclass(frozen=True, slots=True)
class RecordEvent:
    ref: ObjectRef
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


Effect: TypeAlias = (
    CreateObject
    | UpdateObject
    | UpdateStatus
    | PatchStatus
    | FinalizeNamespace
    | DeleteObject
    | RebindPod
    | EvictManagedPod
    | RecordEvent
)


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """What to do now, and when to reconcile again without an event."""

    effects: tuple[Effect, ...] = ()
    requeue_at: Millis | None = None


class ReconcileError(Exception):
    """A controller cannot go on until somebody corrects something. The caller reports it as a Warning on the object and
    calls the controller again later."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(slots=True)
class ResultBuilder:
    effects: list[Effect] = field(default_factory=list)
    requeue_at: Millis | None = None

    def requeue(self, at: Millis | None) -> None:
        if at is not None and (self.requeue_at is None or at < self.requeue_at):
            self.requeue_at = at

    def done(self) -> ReconcileResult:
        """Events come last: if a list ends early, none reports what was not done."""
        self.effects.sort(key=lambda effect: isinstance(effect, RecordEvent))
        return ReconcileResult(tuple(self.effects), self.requeue_at)


def batches(effects: Sequence[Effect]) -> Iterator[Sequence[Effect]]:
    """Split the list into batches; a batch starts when the one before is done.

    Consecutive creates and deletes start slowly, 1, 2, 4 and so on, so that few fail in vain if a quota rejects one.
    Consecutive events are one batch.
    """
    start = 0
    while start < len(effects):
        end, size, kind = start, 1, type(effects[start])
        while end < len(effects) and type(effects[end]) is kind:
            end += 1
        if kind is CreateObject or kind is DeleteObject:
            while start < end:
                yield effects[start : min(start + size, end)]
                start, size = start + size, size * 2
            start = end
        elif kind is RecordEvent:
            yield effects[start:end]
            start = end
        else:
            yield effects[start : start + 1]
            start += 1


def _of_any_name(effect: CreateObject, why: str) -> str:
    """Replace a generated name by its prefix, as Kubernetes does, so that equal failures are one event."""
    prefix = effect.body.get("metadata", {}).get("generateName")
    return why.replace(f'"{effect.ref.name}"', f'"{prefix}"') if prefix else why


def refusal(owner: ObjectRef, effect: Effect, why: str) -> RecordEvent | None:
    """The event for an effect that the server rejected."""
    if isinstance(effect, CreateObject):
        return RecordEvent(owner, "Warning", "FailedCreate", f"Error creating: {_of_any_name(effect, why)}")
    if isinstance(effect, DeleteObject):
        return RecordEvent(owner, "Warning", "FailedDelete", f"Error deleting: {why}")
    return None
