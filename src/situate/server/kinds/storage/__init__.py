"""The kinds of storage.k8s.io/v1."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.kind import Kind
from situate.server.kinds.storage import csidriver, csinode, csistoragecapacity, storageclass, volumeattachment

__all__ = ["KINDS"]

KINDS: Final[tuple[Kind, ...]] = (
    csidriver.KIND,
    csinode.KIND,
    csistoragecapacity.KIND,
    storageclass.KIND,
    volumeattachment.KIND,
)
