"""Has every node's snapshot say how its agent is to be. When a server begins, as it may be another than before."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from situate.loop.logs import Log
from situate.server.errors import StatusError
from situate.server.placing import snapshots
from situate.server.placing.bind_transaction import BindTransactions
from situate.server.placing.snapshots import NODE_SNAPSHOTS
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, Object, Target

__all__ = ["configure"]

_log = Log(__name__)


async def configure(registry: Registry, transactions: BindTransactions) -> int:
    """How many snapshots said something else."""
    wanted = bytes(transactions.configuration)
    others = [
        held.name for held in registry.cache.all(NODE_SNAPSHOTS) if snapshots.configuration_of(held.value) != wanted
    ]

    def change(found: Object, _held: StoredObject) -> Object:
        return {**found, "spec": {**found.get("spec", {}), "configuration": msgspec.json.decode(wanted)}}

    for name in others:
        try:
            await registry.modify(Target(NODE_SNAPSHOTS, "", name), change, SYSTEM)
        except StatusError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
    if others:
        _log.info("Nodes are told another configuration", nodes=len(others))
    return len(others)
