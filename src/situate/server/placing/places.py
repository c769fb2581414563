"""Whether a node can have a pod: what a transaction that brings one there has to check."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

import msgspec

from situate.core.model.annotations import GPU_DEVICES
from situate.core.model.eligibility import bind_refusals, run_refusals
from situate.core.model.ledger import Amounts, GpuPart, Ledger, gpus_of, room, taken_gpus, taken_ports
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.server.placing.demands import DemandCache, SpecDemand
from situate.server.placing.refusals import clashes, full, ineligible, no_node
from situate.server.placing.snapshots import NODE_SNAPSHOTS, SnapshotMetadata
from situate.server.placing.write_request import CacheReader
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Object
from situate.server.resources import BY_KIND
from situate.store.entries import ABSENT, Revision

NODES: Final = BY_KIND["v1", "Node"]


class SeenNode(msgspec.Struct, frozen=True):
    """A node, decoded."""

    revision: int
    node: Node
    allocatable: Amounts


class DecodedObjects(Protocol):
    demands: DemandCache

    def node(self, held: StoredObject) -> SeenNode: ...

    def ledger(self, held: StoredObject) -> tuple[SnapshotMetadata, Ledger]: ...

    def identity(self, node: str) -> SnapshotMetadata: ...


class Place(NamedTuple):
    """Room for a pod on a node."""

    node: StoredObject
    demand: SpecDemand
    identity: SnapshotMetadata
    ledger: Ledger
    revision: Revision
    """Of the snapshot."""
    gpus: tuple[GpuPart, ...]


def find_place(
    decoded: DecodedObjects, cache: CacheReader, pod: Object, name: str, judged: Object, *, bind: bool
) -> Place:
    """`judged`: the pod, or the same before it was bound. Raises NodeRefusedError if the node cannot have the pod."""
    pod_name = pod["metadata"]["name"]
    found = cache.get(NODES, "", name)
    if found is None:
        raise no_node(pod_name, name, bind=bind)
    seen = decoded.node(found)
    demand = decoded.demands.of_pod(judged)
    refusals = (bind_refusals if bind else run_refusals)(demand.pod, seen.node)
    if refusals:
        raise ineligible(pod_name, name, refusals, bind=bind)
    held = cache.get(NODE_SNAPSHOTS, "", name)
    if held is None:
        identity, ledger, revision = decoded.identity(name), Ledger(), ABSENT
    else:
        identity, ledger = decoded.ledger(held)
        revision = Revision(held.revision)
    gpus = gpus_of(msgspec.convert(pod, Pod)) if GPU_DEVICES in pod["metadata"].get("annotations", ()) else ()
    if short := room(seen.allocatable, ledger.allocated, demand.amounts) + taken_gpus(ledger, gpus):
        raise full(pod_name, name, short, bind=bind)
    if taken := taken_ports(ledger, demand.ports):
        raise clashes(pod_name, name, taken, bind=bind)
    return Place(found, demand, identity, ledger, revision, gpus)
