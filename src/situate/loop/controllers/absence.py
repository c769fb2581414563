"""Asks the server for objects that controllers do not see, before they act on their absence.

Kinds are watched one by one, so an object may be seen before the one that it refers to; and an object that the server
cannot read is in no list.
"""

from __future__ import annotations

from collections.abc import Iterator

from situate.core.model.managed_devices import ManagedResourceClaim
from situate.core.model.managed_volumes import ManagedClaim, ManagedVolume
from situate.core.reconcile.effects import ObjectRef
from situate.core.reconcile.resourceclaim import unseen_pods
from situate.core.reconcile.volumes.claim import unseen_volume
from situate.core.reconcile.volumes.volume import unseen_claim
from situate.loop.controllers.cache import Collect, ControllerCache, Reconcile, Task
from situate.loop.controllers.port import ControllerPort, RefusedError


async def confirm_absence(task: Task, view: ControllerCache, port: ControllerPort) -> None:
    """Call it before the effects of a task. Raises RefusedError if something that the task misses exists."""
    for ref in _missed(task, view):
        if not await port.is_gone(ref):
            raise RefusedError(f"its {ref.kind} {ref.name} exists, and is not seen yet")


def _missed(task: Task, view: ControllerCache) -> Iterator[ObjectRef]:
    if isinstance(task, Collect):
        item = view.graph.by_uid(task.uid)
        for owner in () if item is None else item.meta.owner_references:
            unseen = view.graph.by_uid(owner.uid) is None and view.graph.serves(owner.api_version, owner.kind)
            if item is not None and unseen:
                yield ObjectRef(owner.api_version, owner.kind, item.ref.namespace, owner.name, owner.uid)
    elif isinstance(task, Reconcile) and task.kind is ManagedResourceClaim:
        claim = view.objects.get(ManagedResourceClaim, task.namespace, task.name)
        if claim is not None:
            yield from unseen_pods(claim, view.objects)
    elif isinstance(task, Reconcile) and task.kind in (ManagedClaim, ManagedVolume):
        one = view.objects.get(task.kind, task.namespace, task.name)
        ref = None
        if isinstance(one, ManagedClaim):
            ref = unseen_volume(one, view.objects)
        elif isinstance(one, ManagedVolume):
            ref = unseen_claim(one, view.objects)
        if ref is not None:
            yield ref
