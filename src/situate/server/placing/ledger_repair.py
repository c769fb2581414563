"""The ledger of a node without a pod that nobody can read, and so without knowing what that pod took."""

from __future__ import annotations

from typing import Final

import msgspec

from situate.core.model.pod import Pod
from situate.server.placing.ledger import Ledger, add, amounts_of
from situate.server.placing.write_request import CacheReader
from situate.server.resources import BY_KIND

PODS: Final = BY_KIND["v1", "Pod"]


def without_unreadable(cache: CacheReader, ledger: Ledger, namespace: str, name: str) -> Ledger | None:
    """The sum of the pods that are left. None if another of them cannot be read: then the sum stays, rather too large
    than too small, until that one is deleted as well."""
    left = Ledger()
    for one in ledger.pods:
        if (one.namespace, one.name) == (namespace, name):
            continue
        if cache.unreadable_at(PODS, one.namespace, one.name) is not None:
            return None
        held = cache.get(PODS, one.namespace, one.name)
        if held is not None and held.uid == one.uid:  # else it was deleted while another could not be read
            left = add(left, one, amounts_of(msgspec.convert(held.object(PODS), Pod)))
    return left
