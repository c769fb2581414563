"""Handles ledgers and decisions that cannot be read, because another release or somebody by hand wrote them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec

from situate.core.model.ledger import Ledger, add, amounts_of
from situate.core.model.pod import Pod
from situate.server.errors import StatusError
from situate.server.placing import decisions, snapshots
from situate.server.placing.decisions import PlacementDecision
from situate.server.placing.snapshots import NODE_SNAPSHOTS, SnapshotMetadata
from situate.server.placing.write_request import CacheReader
from situate.server.registry.stored_object import StoredObject
from situate.server.resources import BY_KIND
from situate.store.entries import Revision
from situate.store.transactions import At, Guard, Put, Write

PODS: Final = BY_KIND["v1", "Pod"]


def read_snapshot(held: StoredObject) -> tuple[SnapshotMetadata, Ledger]:
    """Raises StatusError: no pod may be bound to a node whose ledger cannot be read."""
    try:
        return snapshots.decoded(held.value)
    except (ValueError, msgspec.MsgspecError) as error:
        text = f"the snapshot of node {held.name} cannot be read: {error}"
        raise StatusError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", text) from error


def read_decision(value: bytes) -> PlacementDecision | None:
    """None for a decision that cannot be read: the next one replaces it."""
    try:
        return decisions.decoded(value)
    except (ValueError, msgspec.MsgspecError):
        return None


def forget_pod(
    cache: CacheReader, namespace: str, name: str, config: msgspec.Raw, guards: list[Guard], writes: list[Write]
) -> None:
    """Delete a pod that cannot be read: its node's ledger becomes the sum of the others."""
    for held in cache.all(NODE_SNAPSHOTS):
        try:
            identity, ledger = read_snapshot(held)
        except StatusError:
            continue  # the free capacity of that node is unknown
        if any((one.namespace, one.name) == (namespace, name) for one in ledger.pods):
            left = _without(cache, ledger, namespace, name)
            if left is not None:
                guards.append(At(held.key, Revision(held.revision)))
                writes.append(Put(held.key, snapshots.encoded(identity, left, config)))


def _without(cache: CacheReader, ledger: Ledger, namespace: str, name: str) -> Ledger | None:
    """None if another pod cannot be read: then the sum stays, too large rather than too small, until that one is
    deleted as well."""
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
