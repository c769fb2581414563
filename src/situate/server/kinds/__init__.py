"""What is particular to each kind: an explicit table of strategies, by `group/Kind`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from situate.server.kinds import (
    apps,
    batch,
    coordination,
    core,
    discovery,
    node_k8s_io,
    policy,
    rbac,
    resource,
    scheduling,
    situate_dev,
    storage,
)
from situate.server.kinds.strategy import Strategy
from situate.server.resources import Resource

__all__ = ["STRATEGIES", "Strategy", "strategy_of"]

STRATEGIES: Final[Mapping[str, Strategy]] = {
    **core.STRATEGIES,
    **apps.STRATEGIES,
    **batch.STRATEGIES,
    **policy.STRATEGIES,
    **scheduling.STRATEGIES,
    **storage.STRATEGIES,
    **rbac.STRATEGIES,
    **coordination.STRATEGIES,
    **resource.STRATEGIES,
    **discovery.STRATEGIES,
    **node_k8s_io.STRATEGIES,
    **situate_dev.STRATEGIES,
}

_PLAIN: Final = Strategy()


def strategy_of(what: Resource) -> Strategy:
    """A kind that is not in the table has no rules of its own."""
    return STRATEGIES.get(f"{what.group}/{what.kind}", _PLAIN)
