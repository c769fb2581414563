"""All that controllers ask of the world. An effect is a value: somebody else carries it out.

Rules that hold for every list of effects:
- They are performed in order. One that is refused ends the list; the controller is called again, with what is then.
- No object is written twice in one list, so an expected resourceVersion is that of the object as it was read.
- What a create names may be there already: that is for the next call to see.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from situate.core.model.refs import Millis
from situate.core.model.stored import Raw

__all__ = [
    "BURST",
    "CreateObject",
    "DeleteObject",
    "ResultBuilder",
    "Effect",
    "FinalizeNamespace",
    "ObjectRef",
    "ReconcileResult",
    "PatchStatus",
    "Propagation",
    "RecordEvent",
    "UpdateObject",
    "UpdateStatus",
    "batches",
    "refusal",
]

BURST = 500
"""How many objects one call creates or deletes at most."""

Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """One object. With a uid: that one, and no other of its name."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class CreateObject:
    ref: ObjectRef
    body: Raw
    """The whole object, under Kubernetes' names."""


@dataclass(frozen=True, slots=True)
class UpdateObject:
    """Change an object by a JSON merge patch, if it still is the version that was read."""

    ref: ObjectRef
    resource_version: str
    patch: Raw


@dataclass(frozen=True, slots=True)
class UpdateStatus:
    """Replace the whole status, if the object still is the version that was read."""

    ref: ObjectRef
    resource_version: str
    status: Raw


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """Change the status by a JSON merge patch, if the object still is the version that was read."""

    ref: ObjectRef
    resource_version: str
    patch: Raw


@dataclass(frozen=True, slots=True)
class FinalizeNamespace:
    """Replace `spec.finalizers` of a namespace, by its subresource `finalize`."""

    ref: ObjectRef
    resource_version: str
    finalizers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Delete the object with this uid. `resource_version`, if given, is a precondition too. `grace_s` None: the time
    that it asks for itself."""

    ref: ObjectRef
    resource_version: str = ""
    propagation: Propagation = "Background"
    grace_s: int | None = None


@dataclass(frozen=True, slots=True)
class RecordEvent:
    ref: ObjectRef
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


Effect: TypeAlias = (
    CreateObject | UpdateObject | UpdateStatus | PatchStatus | FinalizeNamespace | DeleteObject | RecordEvent
)


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """What to do now, and when to look again though nothing may have changed by then."""

    effects: tuple[Effect, ...] = ()
    requeue_at: Millis | None = None


@dataclass(slots=True)
class ResultBuilder:
    """An outcome in the making."""

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
    """The list in parts of which each may be performed at once; a part begins when all of the one before is done.

    Creates and deletes in a row start slowly, 1, 2, 4 and so on: if a quota refuses one, few were tried in vain.
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
        else:
            yield effects[start : start + 1]
            start += 1


def _of_any_name(effect: CreateObject, why: str) -> str:
    """The same refusal of another name is the same event: a generated end is left out, as Kubernetes' texts do."""
    prefix = effect.body.get("metadata", {}).get("generateName")
    return why.replace(f'"{effect.ref.name}"', f'"{prefix}"') if prefix else why


def refusal(owner: ObjectRef, effect: Effect, why: str) -> RecordEvent | None:
    """The event that tells the owner that an effect of its controller was refused."""
    if isinstance(effect, CreateObject):
        return RecordEvent(owner, "Warning", "FailedCreate", f"Error creating: {_of_any_name(effect, why)}")
    if isinstance(effect, DeleteObject):
        return RecordEvent(owner, "Warning", "FailedDelete", f"Error deleting: {why}")
    return None
