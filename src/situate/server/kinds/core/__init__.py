"""The kinds of core/v1."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.core import (
    binding,
    configmap,
    endpoints,
    event,
    limitrange,
    namespace,
    node,
    persistentvolume,
    persistentvolumeclaim,
    pod,
    podtemplate,
    replicationcontroller,
    resourcequota,
    secret,
    service,
    serviceaccount,
)
from situate.server.kinds.kind import Kind

__all__ = ["KINDS"]

KINDS: Final[tuple[Kind, ...]] = (
    binding.KIND,
    configmap.KIND,
    endpoints.KIND,
    event.KIND,
    limitrange.KIND,
    namespace.KIND,
    node.KIND,
    persistentvolumeclaim.KIND,
    persistentvolume.KIND,
    pod.KIND,
    podtemplate.KIND,
    replicationcontroller.KIND,
    resourcequota.KIND,
    secret.KIND,
    serviceaccount.KIND,
    service.KIND,
)
