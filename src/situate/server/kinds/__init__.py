"""The kinds that the server serves: one declaration each, in the package of its group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from situate.server.kinds import (
    apps,
    authentication,
    authorization,
    batch,
    coordination,
    core,
    discovery,
    events,
    node,
    policy,
    rbac,
    resource,
    scheduling,
    situate_dev,
    storage,
)
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy

__all__ = ["KINDS", "STRATEGIES", "Kind", "Strategy"]

KINDS: Final[tuple[Kind, ...]] = (
    *core.KINDS,
    *apps.KINDS,
    *batch.KINDS,
    *policy.KINDS,
    *scheduling.KINDS,
    *coordination.KINDS,
    *events.KINDS,
    *storage.KINDS,
    *resource.KINDS,
    *discovery.KINDS,
    *node.KINDS,
    *rbac.KINDS,
    *authentication.KINDS,
    *authorization.KINDS,
    *situate_dev.KINDS,
)
STRATEGIES: Final[Mapping[str, Strategy]] = {f"{kind.group}/{kind.name}": kind.strategy for kind in KINDS}
"""By `group/Kind`."""
