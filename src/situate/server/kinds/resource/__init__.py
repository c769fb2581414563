"""The kinds of resource.k8s.io/v1."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.kind import Kind
from situate.server.kinds.resource import deviceclass, resourceclaim, resourceclaimtemplate, resourceslice

__all__ = ["KINDS"]

KINDS: Final[tuple[Kind, ...]] = (
    deviceclass.KIND,
    resourceclaim.KIND,
    resourceclaimtemplate.KIND,
    resourceslice.KIND,
)
