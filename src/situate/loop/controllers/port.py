"""Controllers' effects as calls of an API: what kube/ and server/ implement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, assert_never

from situate.core.reconcile.effects import (
    CreateObject,
    DeleteObject,
    Effect,
    EvictManagedPod,
    FinalizeNamespace,
    LeaseVersion,
    ObjectRef,
    PatchStatus,
    RebindPod,
    RecordEvent,
    UpdateObject,
    UpdateStatus,
)


class WriteResult(NamedTuple):
    """What was written; `revision` None: it was deleted, or will be."""

    ref: ObjectRef
    revision: int | None


class RefusedError(Exception):
    """The API refused, or did not answer. `settled`: the controller's view was old, so retry it at once."""

    def __init__(self, text: str, *, settled: bool = False) -> None:
        super().__init__(text)
        self.settled = settled


class ControllerPort(Protocol):
    """Performs effects. An effect that is done already counts as performed."""

    async def perform(self, effect: Effect) -> WriteResult | None:
        """Raises RefusedError."""

    async def is_gone(self, ref: ObjectRef) -> bool:
        """Ask the server whether there is no object of this uid, or of this name if the uid is "". The namespace does
        not count for a kind without one. Raises RefusedError if the server cannot say, as for an object that it
        cannot read."""


class BatchingPort(Protocol):
    """A port that creates several objects at once, at less cost."""

    async def create_each(self, effects: Sequence[CreateObject]) -> Sequence[WriteResult | Exception]:
        """What was written, or why not, in their order. Raises RefusedError if nothing was tried."""


class ObjectApi(Protocol):
    """The writes that controllers need. Each returns the object's new revision and raises errors of its own."""

    async def create(self, ref: ObjectRef, body: Mapping[str, Any]) -> int: ...

    async def merge(self, ref: ObjectRef, patch: Mapping[str, Any]) -> int: ...

    async def replace_status(
        self, ref: ObjectRef, version: str, status: Mapping[str, Any], annotations: Mapping[str, str] | None
    ) -> int:
        """`annotations`: all that the object gets as well."""

    async def merge_status(
        self, ref: ObjectRef, version: str, patch: Mapping[str, Any], lease: LeaseVersion | None = None
    ) -> int: ...

    async def finalize(self, ref: ObjectRef, version: str, finalizers: tuple[str, ...]) -> int:
        """Set the finalizers of a namespace, and delete the objects in it that controllers do not watch."""

    async def delete(self, effect: DeleteObject) -> None: ...

    async def rebind(self, effect: RebindPod) -> int | None:
        """None: the API cannot do that in one write, and the pod is deleted as Kubernetes would."""

    async def evict(self, ref: ObjectRef) -> None: ...

    async def record(self, event: RecordEvent) -> None: ...


async def call(api: ObjectApi, effect: Effect) -> WriteResult | None:
    match effect:
        case CreateObject(ref=ref, body=body):
            revision = await api.create(ref, body)
        case UpdateObject(ref=ref, resource_version=version, patch=patch):
            expected = {"uid": ref.uid, "resourceVersion": version, **patch.get("metadata", {})}
            revision = await api.merge(ref, {**patch, "metadata": expected})
        case UpdateStatus(ref=ref, resource_version=version, status=status, annotations=annotations):
            revision = await api.replace_status(ref, version, status, annotations)
        case PatchStatus(ref=ref, resource_version=version, patch=part, lease=lease):
            revision = await api.merge_status(ref, version, part, lease)
        case RebindPod():
            return WriteResult(effect.ref, await api.rebind(effect))
        case FinalizeNamespace(ref=ref, resource_version=version, finalizers=finalizers):
            revision = await api.finalize(ref, version, finalizers)
        case DeleteObject():
            await api.delete(effect)
            return WriteResult(effect.ref, None)
        case EvictManagedPod(ref=ref):
            await api.evict(ref)
            return WriteResult(ref, None)
        case RecordEvent():
            await api.record(effect)
            return None
        case _:
            assert_never(effect)
    return WriteResult(effect.ref, revision)


def refused(effect: Effect, message: str, *, not_found: bool, conflict: bool) -> WriteResult:
    """Raises RefusedError, except for the deletion of an object that is gone, or its eviction."""
    if isinstance(effect, DeleteObject | EvictManagedPod) and not_found:
        return WriteResult(effect.ref, None)
    raise RefusedError(message, settled=conflict or not_found) from None
