"""Writes the agents' configuration into every node's snapshot when a server starts: it may have changed."""

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

_log = Log(__name__)


async def configure(registry: Registry, transactions: BindTransactions) -> int:
    """The number of snapshots that changed."""
    wanted = bytes(transactions.configuration)
    others = [held.name for held in registry.cache.all(NODE_SNAPSHOTS) if _differs(held, wanted)]

    def change(found: Object, _held: StoredObject) -> Object:
        return {**found, "spec": {**found.get("spec", {}), "configuration": msgspec.json.decode(wanted)}}

    for name in others:
        try:
            await registry.modify(Target(NODE_SNAPSHOTS, "", name), change, SYSTEM)
        except StatusError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
    if others:
        _log.info("Changed the configuration of nodes' agents", nodes=len(others))
    return len(others)


def _differs(held: StoredObject, wanted: bytes) -> bool:
    try:
        return snapshots.configuration_of(held.value) != wanted
    except msgspec.DecodeError as error:
        _log.error("A node's snapshot cannot be read; nothing is bound to the node", node=held.name, err=str(error))
        return False
