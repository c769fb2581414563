"""Keeps controllers from mistaking an object that cannot be read for one that does not exist.

A workload with such a pod would create another, and the pods of such a node would be deleted. Only
names show who owns an unreadable object: a workload's name is a prefix of the names of all objects that it creates.
"""

from __future__ import annotations

from typing import Final

from situate.core.model.managed import Budget, ManagedNamespace, ManagedPod
from situate.core.model.managed_devices import ManagedResourceClaim
from situate.core.model.managed_node import ManagedNode
from situate.core.model.managed_volumes import ManagedClaim, ManagedVolume
from situate.loop.controllers.cache import ControllerCache, Reconcile, Survey, Task
from situate.server.registry.cache import Cache
from situate.server.registry.keys import prefix_of
from situate.server.resources import BY_KIND

NODES: Final = BY_KIND["v1", "Node"]
_NOT_OWNERS: Final = (
    Budget,
    ManagedNamespace,
    ManagedPod,
    ManagedNode,
    ManagedResourceClaim,
    ManagedClaim,
    ManagedVolume,
)
_MADE: Final = tuple(
    prefix_of(BY_KIND[kind])
    for kind in (
        ("v1", "Pod"),
        ("v1", "PersistentVolumeClaim"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "ControllerRevision"),
        ("batch/v1", "Job"),
    )
)


def hindrance(cache: Cache, view: ControllerCache, task: Task) -> str:
    """Why the task must wait; "" if it may run."""
    if not cache.has_unreadable:
        return ""
    if isinstance(task, Survey):
        nodes = [one.name for one in cache.unreadable() if one.key.startswith(prefix_of(NODES))]
        return f"node {nodes[0]} cannot be read" if nodes and task.of == "leftovers" else ""
    if not isinstance(task, Reconcile):
        return ""
    if task.kind is ManagedPod:
        pod = view.objects.get(ManagedPod, task.namespace, task.name)
        node = "" if pod is None else pod.spec.node_name
        found = cache.unreadable_at(NODES, "", node) if node else None
        return "" if found is None else f"its node {node} cannot be read: {found.why}"
    if task.kind not in _NOT_OWNERS:
        for one in cache.unreadable():
            theirs = one.namespace == task.namespace and one.name.startswith(f"{task.name}-")
            if theirs and one.key.startswith(_MADE):
                return f"{one.name}, which may be its own, cannot be read: {one.why}"
    return ""
