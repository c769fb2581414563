"""NamespaceLifecycle: rejects creates in a missing or terminating namespace, and deletes of system namespaces."""

from __future__ import annotations

from typing import Final

from situate.server.errors import Cause, StatusError, forbidden, not_found
from situate.server.objects import shown_name
from situate.server.registry.cache import Cache
from situate.server.registry.ports import Action
from situate.server.registry.selectable_fields import field_names
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND

IMMORTAL: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
NAMESPACE: Final = BY_KIND["v1", "Namespace"]
TERMINATING: Final = "Terminating"
STAYS: Final = "this namespace may not be deleted"
GOING: Final = "unable to create new content in namespace {namespace} because it is being terminated"
GOING_CAUSE: Final = "namespace {namespace} is being terminated"
_PHASE: Final = field_names(NAMESPACE.stored_as).index("status.phase")


class NamespaceLifecycle:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        if target.resource is NAMESPACE:
            if action == "delete" and target.name in IMMORTAL:
                raise forbidden("namespaces", "", target.name, STAYS)
            return
        if action == "delete" or not target.resource.namespaced:
            return
        found = self._cache.get(NAMESPACE, "", target.namespace)
        if found is None:
            raise not_found("namespaces", "", target.namespace)
        if action == "create" and found.values[_PHASE] == TERMINATING:
            raise _going(target, shown_name(new or {}))

    def version(self, target: Target) -> int | None:
        return None


def _going(target: Target, name: str) -> StatusError:
    why = GOING.format(namespace=target.namespace)
    no = forbidden(target.resource.plural, target.resource.group, name, why)
    cause = Cause("metadata.namespace", GOING_CAUSE.format(namespace=target.namespace), "NamespaceTerminating")
    no.causes = (cause,)
    return no
