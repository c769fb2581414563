"""The chain: who is asked, and in which order."""

from __future__ import annotations

from situate.server.admission.namespaces import NamespaceLifecycle
from situate.server.admission.priority import Priority
from situate.server.admission.services import ServiceAddresses
from situate.server.admission.storage import DefaultStorageClass
from situate.server.admission.tolerations import DefaultTolerations
from situate.server.registry.cache import Cache
from situate.server.registry.ports import Admission

__all__ = ["chain"]


def chain(cache: Cache) -> list[Admission]:
    """What every server has. Whoever knows identities adds its own."""
    return [
        NamespaceLifecycle(cache),
        Priority(cache),
        DefaultTolerations(),
        DefaultStorageClass(cache),
        ServiceAddresses(cache),
    ]
