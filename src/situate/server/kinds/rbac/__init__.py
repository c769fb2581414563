"""The kinds of rbac.authorization.k8s.io/v1."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.kind import Kind
from situate.server.kinds.rbac import role, rolebinding

__all__ = ["KINDS"]

KINDS: Final[tuple[Kind, ...]] = (
    rolebinding.CLUSTER_KIND,
    role.CLUSTER_KIND,
    rolebinding.KIND,
    role.KIND,
)
