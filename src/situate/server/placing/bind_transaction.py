"""Extends the transaction of every write of a pod or a node with the node's ledger and the pod's decision.
`device_transaction` does it for claims.

    a pod comes to a node (created there, or bound)      snapshot + pod, decision `bound`; 409 if there is no room,
                                                         or stored as Failed: see `settled`
    it ends, or is gone                                  snapshot - pod; decision moves on, or goes with the pod
    its phase changes                                    decision moves on; 409 if that is illegal
    a node is created                                    an empty snapshot
    a node is deleted                                    its snapshot, if no pod is on it; else with the last pod there

The transaction is guarded by the revisions of what was checked: the snapshot, the node, the scheduler's lease, the
decision. If one of them has changed, nothing is written, and the write is retried from the start. So no revision of the
store has a node that holds more than its allocatable at the time the last pod came. A node whose allocatable shrinks
may be overfull from then on: no pod comes until there is room again, and no pod has to leave.

It reads the cache and writes nothing itself. It makes no exception for anybody's pods.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import msgspec

from situate.core.model.ledger import (
    Ledger,
    LedgerPod,
    add,
    allocatable_of,
    amounts_of,
    ports_of,
    remove,
    room,
    taken_ports,
)
from situate.core.model.pod import Pod
from situate.core.model.rejections import NodeRejection, unknown_node
from situate.core.reconcile.nodes.fencing import KUBERNETES, NodeProfile
from situate.server.kinds.core.pod.spec import MIRROR
from situate.server.placing import decisions, snapshots
from situate.server.placing.decisions import PLACEMENT_DECISIONS, PlacementDecision
from situate.server.placing.demands import DemandCache
from situate.server.placing.device_transaction import DeviceTransactions
from situate.server.placing.ledger_repair import forget_pod, read_decision, read_snapshot
from situate.server.placing.node_locks import NodeLocks
from situate.server.placing.phases import holds_node, legal, phase_of, returns_from_end
from situate.server.placing.places import SeenNode, find_place
from situate.server.placing.refusals import (
    NodeRefusedError,
    clashes,
    full,
    not_again,
    stale_report,
    stale_term,
    stale_version,
)
from situate.server.placing.reports import check_repeated, report_guards
from situate.server.placing.snapshots import NODE_SNAPSHOTS, SnapshotMetadata
from situate.server.placing.write_request import CacheReader, PodWriteRequest
from situate.server.registry.keys import key_of
from situate.server.registry.ports import StatusWrite
from situate.server.registry.selectable_fields import uid_only
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Object
from situate.server.resources import BY_KIND, Resource
from situate.store.entries import ABSENT, Revision
from situate.store.transactions import At, Delete, Guard, Put, Write
from situate.wire.bodies import seconds_time
from situate.wire.objects import decode_node

PODS: Final = BY_KIND["v1", "Pod"]
NODES: Final = BY_KIND["v1", "Node"]
LEASES: Final = BY_KIND["coordination.k8s.io/v1", "Lease"]
STATEFUL_SETS: Final = BY_KIND["apps/v1", "StatefulSet"]
"""Their pods come back under the same name."""
LEASE: Final = ("kube-system", "situate-scheduler")
"""The scheduler's lease. Its `leaseTransitions` is the term that binds carry."""
BINDING_VERSION: Final = "situate.dev/binding-version"
"""Annotation: on a Binding, its version; on a pod, the binding version that its status is about."""
REMEMBERED: Final = 1 << 16
"""How many decoded nodes and ledgers to cache."""
DECISIONS: Final = 1_024
"""How many decisions just written to cache: about as many as there are pods between their bind and their start."""


class BindTransactions:
    """The TransactionExtension of one registry. It caches only decoded objects."""

    def __init__(
        self,
        wall_ns: Callable[[], int],
        new_uid: Callable[[], str],
        profile: NodeProfile = KUBERNETES,
        *,
        fails_stray_binds: bool = False,
    ) -> None:
        """`profile`: how agents renew their leases. `fails_stray_binds`: a pod that is bound to a node which does not
        exist has failed, where the bind is refused otherwise."""
        self.node_locks = NodeLocks()
        self.demands = DemandCache()
        self._devices = DeviceTransactions(self.now, new_uid)
        self.configuration = snapshots.configuration(profile)
        self._fails_stray_binds = fails_stray_binds
        self._wall_ns = wall_ns
        self._new_uid = new_uid
        self._ledgers: OrderedDict[str, tuple[bytes, SnapshotMetadata, Ledger]] = OrderedDict()
        self._nodes: OrderedDict[str, SeenNode] = OrderedDict()
        self._decisions: OrderedDict[str, tuple[bytes, PlacementDecision]] = OrderedDict()
        """Those just written, by key: the next write of the pod, most often its first status, need not decode it."""
        self._lease = (0, 0)
        """The revision of the scheduler's lease, and its term."""

    def extend(
        self,
        cache: CacheReader,
        resource: Resource,
        before: Object | None,
        after: Object | None,
        request: PodWriteRequest | StatusWrite | None,
        guards: list[Guard],
        writes: list[Write],
    ) -> None:
        """Raises StatusError."""
        if isinstance(request, StatusWrite):
            check_repeated(resource.plural, before, after, request)
            request = None
        if resource.kind == "Pod" and not resource.group:
            _PodWrite(self, cache, before, after, request, guards, writes).extend()
        elif resource.kind == "Node" and not resource.group:
            self._extend_node_write(cache, before, after, guards, writes)
        elif resource.kind == "ResourceClaim":
            self._devices.extend(cache, before, after, guards, writes)

    def settled(self, cache: CacheReader, resource: Resource, before: Object | None, after: Object) -> Object:
        """A new pod that names a node which cannot run it has failed. One of a controller, or of the node itself, is
        refused instead, by `extend`: they would replace it without end."""
        if resource.kind != "Pod" or resource.group or (before is not None and not self._fails_stray_binds):
            return after
        if not (node := holds_node(after)):
            return after
        if before is not None:
            stray = not before["spec"].get("nodeName") and cache.get(NODES, "", node) is None
            return self._failed(after, unknown_node(node)) if stray else after
        meta = after["metadata"]
        if MIRROR in (meta.get("annotations") or {}):
            return after
        if any(owner.get("controller") for owner in meta.get("ownerReferences") or ()):
            return after
        try:
            find_place(self, cache, after, node, after, bind=False)
        except NodeRefusedError as no:
            return self._failed(after, no.rejection)
        return after

    def _failed(self, pod: Object, why: NodeRejection) -> Object:
        said = {"phase": "Failed", **why._asdict(), "startTime": self.now()}
        return {**pod, "status": {**pod.get("status", {}), **said}}

    def forget(
        self,
        cache: CacheReader,
        resource: Resource,
        namespace: str,
        name: str,
        guards: list[Guard],
        writes: list[Write],
    ) -> None:
        """Delete a pod or node that cannot be read."""
        if resource.kind == "Node":
            self._extend_node_write(cache, {"metadata": {"name": name}}, None, guards, writes)
            return
        if resource.kind == "ResourceClaim":
            self._devices.forget(cache, namespace, name, guards, writes)
            return
        forget_pod(cache, namespace, name, self.configuration, guards, writes)

    def lock(
        self,
        resource: Resource,
        before: Object | None,
        after: Object | None,
        request: PodWriteRequest | StatusWrite | None,
    ) -> AbstractAsyncContextManager[None] | None:
        """The lock of the node or pool whose ledger this write changes.

        Safety does not need it, as the guards are there: with it, concurrent writes to one node need fewer retries.
        """
        if resource.kind == "ResourceClaim":
            return self._devices.lock(before, after)
        if resource.kind != "Pod" or resource.group:
            return None
        if isinstance(request, PodWriteRequest) and request.binds:  # the binder holds the lock already
            return None
        node = self._moved(before, after)
        return self.node_locks.of(node) if node else None

    @staticmethod
    def _moved(before: Object | None, after: Object | None) -> str:
        held, came = holds_node(before), holds_node(after)
        return "" if held == came else came or held

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _extend_node_write(
        self, cache: CacheReader, before: Object | None, after: Object | None, guards: list[Guard], writes: list[Write]
    ) -> None:
        if before is not None and after is not None:
            guards += report_guards(cache, "nodes", after["metadata"]["name"], before, after)
            return
        name = (after or before or {})["metadata"]["name"]
        held = cache.get(NODE_SNAPSHOTS, "", name)
        key = key_of(NODE_SNAPSHOTS, "", name)
        if after is not None and held is None:  # else an earlier node of this name still has pods
            guards.append(At(key, ABSENT))
            writes.append(Put(key, snapshots.encoded(self.identity(name), Ledger(), self.configuration)))
        elif after is None and held is not None and not self.ledger(held)[1].pods:
            guards.append(At(key, Revision(held.revision)))
            writes.append(Delete(key))

    # -- decoded objects ---------------------------------------------------------------------------------------------

    def identity(self, node: str) -> SnapshotMetadata:
        return SnapshotMetadata(node, self._new_uid(), self.now())

    def now(self) -> str:
        return seconds_time(self._wall_ns())

    def new_uid(self) -> str:
        return self._new_uid()

    def ledger(self, held: StoredObject) -> tuple[SnapshotMetadata, Ledger]:
        """A decoded snapshot. Most were encoded here and need no decoding. Raises StatusError."""
        known = self._ledgers.get(held.name)
        if known is not None and known[0] == held.value:
            return known[1], known[2]
        identity, ledger = read_snapshot(held)
        self.remember(held.name, held.value, identity, ledger)
        return identity, ledger

    def remember(self, node: str, value: bytes, identity: SnapshotMetadata, ledger: Ledger) -> None:
        self._ledgers[node] = (value, identity, ledger)
        if len(self._ledgers) > REMEMBERED:
            self._ledgers.popitem(last=False)

    def decision(self, held: StoredObject) -> PlacementDecision | None:
        """A decoded decision; None if it cannot be read."""
        known = self._decisions.pop(held.key, None)
        return known[1] if known is not None and known[0] == held.value else read_decision(held.value)

    def remember_decision(self, key: str, value: bytes, decision: PlacementDecision) -> None:
        self._decisions[key] = (value, decision)
        if len(self._decisions) > DECISIONS:
            self._decisions.popitem(last=False)

    def term(self, lease: StoredObject) -> int:
        if self._lease[0] != lease.revision:
            self._lease = (lease.revision, lease.object(LEASES).get("spec", {}).get("leaseTransitions", 0))
        return self._lease[1]

    def node(self, held: StoredObject) -> SeenNode:
        seen = self._nodes.get(held.name)
        if seen is None or seen.revision != held.revision:
            node = decode_node(held.value)
            seen = self._nodes[held.name] = SeenNode(held.revision, node, allocatable_of(node))
            if len(self._nodes) > REMEMBERED:
                self._nodes.popitem(last=False)
        return seen


class _PodWrite:
    """One write of one pod."""

    def __init__(
        self,
        transactions: BindTransactions,
        cache: CacheReader,
        before: Object | None,
        after: Object | None,
        request: PodWriteRequest | None,
        guards: list[Guard],
        writes: list[Write],
    ) -> None:
        self._transactions = transactions
        self._cache = cache
        self._before = before
        self._after = after
        meta = (after or before or {})["metadata"]
        self._namespace: str = meta["namespace"]
        self._name: str = meta["name"]
        self._uid: str = meta["uid"]
        self._request = request
        self._guards = guards
        self._writes = writes
        held = cache.get(PLACEMENT_DECISIONS, self._namespace, self._name)
        self._revision = ABSENT if held is None else Revision(held.revision)
        self._decision = None if held is None else transactions.decision(held)

    def extend(self) -> None:
        if self._request is not None:
            guards, writes = self._request.extra_writes(self._cache, self._before, self._after)
            self._guards += guards
            self._writes += writes
        after = self._after
        if after is None:
            self._remove_from_node()
            self._end_decision()
            return
        if self._before is not None and returns_from_end(self._before, after):
            raise not_again(self._name, self._before["status"]["phase"])
        version = self._version()
        self._check_report(after)
        came, held = holds_node(after), holds_node(self._before)
        snapshot_version = ""
        if held and held != came:
            self._remove_from_node()
        if came and held != came:
            snapshot_version = self._add_to_node(after, came, version)
        elif came and self._before is not None and self._before["spec"] != after["spec"]:
            self._resize_on_node(self._before, after, came)
        self._decide(after, version, snapshot_version)

    # -- versions ----------------------------------------------------------------------------------------------------

    def _own_decision(self) -> PlacementDecision | None:
        """The decision, unless it is about an earlier pod of this name."""
        found = self._decision
        return found if found is not None and found.spec.pod_uid == self._uid else None

    def _version(self) -> int:
        """The pod's binding version after this write."""
        held = 0 if self._decision is None else self._decision.spec.binding_version
        bound = self._before is not None and bool(self._before.get("spec", {}).get("nodeName"))
        binds = not bound and bool((self._after or {}).get("spec", {}).get("nodeName"))
        if not binds:
            return held
        request = self._request
        if request is not None and request.binding_version is not None and request.binding_version != held + 1:
            raise stale_version(self._name, request.binding_version, held + 1)
        return held + 1

    def _check_report(self, after: Object) -> None:
        """Refuse a report about another binding than the pod's."""
        if self._before is None or (self._request is not None and self._request.binds):
            return
        node = self._before.get("spec", {}).get("nodeName", "")
        self._guards += report_guards(self._cache, "pods", node, self._before, after)
        said = after["metadata"].get("annotations", {}).get(BINDING_VERSION)
        if said in (None, self._before["metadata"].get("annotations", {}).get(BINDING_VERSION)):
            return  # unchanged: a pod is bound once, so it is as valid as before
        own = self._own_decision()
        if own is not None and said != str(own.spec.binding_version):
            raise stale_report(self._name, str(said), own.spec.binding_version)

    def _check_term(self, request: PodWriteRequest) -> None:
        if request.term is None:
            return
        held = self._cache.get(LEASES, *LEASE)
        term = None if held is None else self._transactions.term(held)
        if held is None or term != request.term:
            raise stale_term(self._name, request.term, term)
        self._guards.append(At(held.key, Revision(held.revision)))

    # -- the node's ledger -------------------------------------------------------------------------------------------

    def _add_to_node(self, after: Object, node: str, version: int) -> str:
        """Add the pod to a node's ledger; the version of the snapshot before that."""
        request = self._request if self._request is not None and self._request.binds else None
        if request is not None:
            self._check_term(request)
        # A bind adds the node's name to the spec and nothing else, so the cached demand of the old spec holds.
        judged = after if request is None or self._before is None else self._before
        place = find_place(self._transactions, self._cache, after, node, judged, bind=request is not None)
        self._guards.append(At(place.node.key, Revision(place.node.revision)))
        bound = LedgerPod(self._namespace, self._name, self._uid, version, place.demand.ports, place.gpus)
        self._put_snapshot(node, place.identity, add(place.ledger, bound, place.demand.amounts), place.revision)
        return str(place.revision)

    def _remove_from_node(self) -> None:
        """Remove the pod from its node's ledger."""
        before = self._before
        node = holds_node(before)
        held = self._cache.get(NODE_SNAPSHOTS, "", node) if node else None
        if before is None or held is None:
            return
        identity, ledger = self._transactions.ledger(held)
        uid = before["metadata"]["uid"]  # of an earlier pod of the name, if the pod is rebound
        if not any(one.uid == uid for one in ledger.pods):
            return
        left = remove(ledger, uid, amounts_of(msgspec.convert(before, Pod)))
        if left.pods or self._cache.get(NODES, "", node) is not None:
            self._put_snapshot(node, identity, left, Revision(held.revision))
        else:
            self._guards.append(At(held.key, Revision(held.revision)))
            self._writes.append(Delete(held.key))

    def _resize_on_node(self, before: Object, after: Object, node: str) -> None:
        """The pod stays on its node. If it takes more now, there must be room."""
        was, pod = msgspec.convert(before, Pod), msgspec.convert(after, Pod)
        amounts, ports = amounts_of(pod), ports_of(pod)
        held, found = self._cache.get(NODE_SNAPSHOTS, "", node), self._cache.get(NODES, "", node)
        if held is None or (amounts == amounts_of(was) and ports == ports_of(was)):
            return
        identity, ledger = self._transactions.ledger(held)
        bound = next((one for one in ledger.pods if one.uid == self._uid), None)
        if bound is None:
            return
        others = remove(ledger, self._uid, amounts_of(was))
        if found is not None:
            self._guards.append(At(found.key, Revision(found.revision)))
        short = room({} if found is None else self._transactions.node(found).allocatable, others.allocated, amounts)
        if grown := [one for one in short if one.asked > amounts_of(was).get(one.resource, 0)]:
            raise full(self._name, node, grown, bind=False)
        if taken := taken_ports(others, ports):
            raise clashes(self._name, node, taken, bind=False)
        # Its GPU devices were assigned when it was bound.
        bound = LedgerPod(self._namespace, self._name, self._uid, bound.binding_version, ports, bound.gpus)
        self._put_snapshot(node, identity, add(others, bound, amounts), Revision(held.revision))

    def _put_snapshot(self, node: str, identity: SnapshotMetadata, ledger: Ledger, revision: Revision) -> None:
        key = key_of(NODE_SNAPSHOTS, "", node)
        value = snapshots.encoded(identity, ledger, self._transactions.configuration)
        self._guards.append(At(key, revision))
        self._writes.append(Put(key, value))
        self._cache.expect(key, value, uid_only(identity.uid))
        self._transactions.remember(node, value, identity, ledger)

    # -- the decision ------------------------------------------------------------------------------------------------

    def _decide(self, after: Object, version: int, snapshot_version: str) -> None:
        """Write the decision and the pod's phase, if either is new."""
        held, request, transactions = self._decision, self._request, self._transactions
        other = held is not None and held.spec.pod_uid != self._uid
        details = None if request is None else request.details
        if self._before is None and not after.get("spec", {}).get("nodeName") and held is None:
            return  # no decision yet
        phase = phase_of(after, None if held is None else held.phase)
        if other and phase == "pending":
            phase = "rebinding"
        if held is not None and not legal(held.phase, phase) and not (other and legal("rebinding", phase)):
            raise not_again(self._name, str(held.phase), phase)
        node = after.get("spec", {}).get("nodeName") or after.get("status", {}).get("nominatedNodeName") or ""
        same = held is not None and not other and held.phase == phase and held.spec.node == node
        if (same or (held is None and phase == "pending")) and details is None and not snapshot_version:
            return
        at = transactions.now()
        if held is not None and other and self._before is not None:  # its node was lost, and it is rebound
            held = decisions.moved(held, "evicted", at)
        decision = decisions.decided(after, held, "" if held is not None else transactions.new_uid(), at)
        decision = decisions.moved(
            decision,
            phase,
            at,
            node=node,
            binding_version=version,
            scheduler="" if request is None else request.scheduler,
            snapshot_version=snapshot_version,
            details=details,
        )
        self._put_decision(decision)

    def _put_decision(self, decision: PlacementDecision) -> None:
        key, value = key_of(PLACEMENT_DECISIONS, self._namespace, self._name), decisions.encoded(decision)
        self._guards.append(At(key, self._revision))
        self._writes.append(Put(key, value))
        self._cache.expect(key, value, uid_only(decision.metadata.uid))
        self._transactions.remember_decision(key, value, decision)

    def _end_decision(self) -> None:
        """Delete the decision with its pod, unless that failed or was evicted and another of its name will come."""
        held = self._decision
        if held is None or self._before is None:
            return
        phase = phase_of(self._before, held.phase)
        if phase in ("failed", "evicted") and _comes_back(self._cache, self._before):
            return
        key = key_of(PLACEMENT_DECISIONS, self._namespace, self._name)
        self._guards.append(At(key, self._revision))
        self._writes.append(Delete(key))


def _comes_back(cache: CacheReader, pod: Object) -> bool:
    """Whether a StatefulSet will create another pod of this name."""
    meta = pod["metadata"]
    for owner in meta.get("ownerReferences", ()):
        if owner.get("controller") and owner.get("kind") == STATEFUL_SETS.kind:
            held = cache.get(STATEFUL_SETS, meta["namespace"], owner["name"])
            if held is not None and held.uid == owner.get("uid"):
                return "deletionTimestamp" not in held.object(STATEFUL_SETS)["metadata"]
    return False
