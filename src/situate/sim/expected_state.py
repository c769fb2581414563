"""The state that a scheduler should have, derived from the changes it got and the effects it returned.

`cluster` is what its own cluster must look like: it gets the same changes, and the requested binds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from situate.core.changes import (
    BindDone,
    BindFailed,
    Change,
    ClaimsBound,
    ClaimsFailed,
    EvictDone,
    EvictFailed,
    ExtenderSaid,
    Leading,
    Millis,
    NodeGone,
    NodeSeen,
    ObjectGone,
    ObjectSeen,
    Paused,
    PodGone,
    PodRef,
    PodSeen,
    VolumesBound,
    VolumesFailed,
)
from situate.core.devices.claims import ClaimProblemError, pod_claims
from situate.core.effects import Bind
from situate.core.engine.assumed_claims import AssumedClaims
from situate.core.engine.assumed_volumes import AssumedVolumes
from situate.core.engine.binding import BIND_ANSWER_MS, BIND_TRIES, HELD_MS, VOLUMES_ANSWER_MS
from situate.core.model.devices import ResourceClaim
from situate.core.model.meta import key_of
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.policy import PriorityClass
from situate.core.model.storage import PersistentVolume
from situate.core.plugins.support.device_demand import DeviceDecision
from situate.core.state.cluster import FINISHED_PHASES, Cluster
from situate.sim.extender_calls import ExtenderCalls
from situate.sim.store import ref_of


@dataclass(slots=True)
class PendingBind:
    """A pod with a node that has not been seen bound."""

    ref: PodRef
    pod: Pod
    """As of the decision."""
    node: str
    attempt: int
    failures: int = 0
    asked: bool = False
    """Its bind is requested and not answered."""
    until_ms: Millis = 0
    """When the bind times out."""
    binder_may_fail: bool = False
    """An ignorable extender binds it."""
    done: bool = False
    volumes: tuple[str, ...] = ()
    """The volumes that its claims are being bound to."""
    volumes_pending: bool = False
    claims_pending: bool = False
    """Its devices are being written, or are not ready."""
    prepared_until_ms: Millis = 0
    """When its volumes and devices time out."""

    @property
    def preparing(self) -> bool:
        return self.volumes_pending or self.claims_pending


@dataclass(slots=True)
class PendingEviction:
    times: int = 1
    failures: int = 0


class ExpectedState:
    def __init__(
        self, schedulers: frozenset[str], extender_calls: ExtenderCalls, gating: frozenset[str] = frozenset()
    ) -> None:
        """`gating`: the schedulers that gate a pod while a claim of its own is missing."""
        self.schedulers = schedulers
        self.gating = gating
        self.extender_calls = extender_calls
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.others: dict[tuple[str, str], NamedObject] = {}
        self.cluster = Cluster()
        self.assumed = AssumedVolumes(self.cluster)
        self.assumed_claims = AssumedClaims(self.cluster)
        self.pending_binds: dict[str, PendingBind] = {}
        self.nominated: dict[str, tuple[PodRef, str]] = {}
        self.awaiting_claims: dict[str, None] = {}
        """The pods that are gated because a claim is missing. What their status nominates counts from the end of that.
        """
        self.asked: dict[str, PendingEviction] = {}
        """Requested evictions, by the victim's uid."""
        self.left: dict[str, Pod] = {}
        """Pods that were deleted in this step, by uid. Earlier requests may still name them."""
        self.ended: dict[tuple[str, int], str] = {}
        """The nodes that pods lost in this step, by uid and attempt."""
        self.rejected: dict[str, str] = {}
        """The node of the last bind by uid, if the bind was rejected."""
        self.attempts: dict[str, int] = {}
        """The last attempt by uid."""
        self.writing: dict[str, int] = {}
        """The attempts whose devices are being written, by uid."""
        self.held_until_ms: dict[str, Millis] = {}
        """Pods whose devices stay taken, by uid, though they are not bound: it is not known what was written."""
        self._now: Millis = 0

    def begin_step(self, now: Millis) -> None:
        self._now = now
        self.left.clear()
        self.ended.clear()

    def _forget(self, key: str) -> PendingBind | None:
        """The bind is over, done or not."""
        pending = self.pending_binds.pop(key, None)
        if pending is not None:
            self.extender_calls.forget(pending.ref.uid)
            self.ended[pending.ref.uid, pending.attempt] = pending.node
        return pending

    # -- changes -------------------------------------------------------------------------------------------------

    def hear(self, change: Change) -> None:
        match change:
            case NodeSeen(node):
                self.nodes[node.metadata.name] = node
                self.cluster.add_node(node)
            case NodeGone(name):
                self._node_gone(name)
            case PodSeen(pod):
                self._pod_seen(pod)
            case PodGone(ref):
                self._pod_gone(ref)
            case ObjectSeen(item):
                self._object_seen(item)
            case ObjectGone(item):
                self._object_gone(item)
            case Leading() | Paused():
                pass  # not part of a simulated world
            case _:
                self._answered(change)
        self._claims_made()

    def _claims_made(self) -> None:
        """A pod whose claims are all there is gated no longer, and takes over the nomination that its status has."""
        for key in list(self.awaiting_claims):
            pod = self.pods.get(key)
            if pod is not None and self.lacks_claims(pod):
                continue
            del self.awaiting_claims[key]
            if pod is not None and pod.status.nominated_node_name and not pod.spec.node_name:
                self.nominated.setdefault(key, (ref_of(pod), pod.status.nominated_node_name))

    def _answered(
        self,
        answer: BindDone
        | BindFailed
        | EvictDone
        | EvictFailed
        | VolumesBound
        | VolumesFailed
        | ClaimsBound
        | ClaimsFailed
        | ExtenderSaid,
    ) -> None:
        match answer:
            case BindDone(ref, attempt):
                if (pending := self.current(ref, attempt)) is not None:
                    pending.done = True
            case BindFailed(ref, attempt, _, final):
                self._bind_failed(ref, attempt, final=final)
            case VolumesFailed(ref, attempt, _):
                self._bind_failed(ref, attempt, final=True)
            case VolumesBound(ref, attempt):
                if (pending := self.current(ref, attempt)) is not None:
                    pending.volumes_pending = False
            case ClaimsBound(ref, attempt, claims):
                self._claims_written(ref, attempt, claims)
                if (pending := self.current(ref, attempt)) is not None and pending.claims_pending:
                    pending.claims_pending = False
                    for _ in self.assumed_claims.written(ref.key):
                        pass
            case ClaimsFailed(ref, attempt, _, claims):
                self._claims_written(ref, attempt, claims)
                self._bind_failed(ref, attempt, final=True)
            case EvictFailed(ref):
                if ref.uid in self.asked:
                    self.asked[ref.uid].failures += 1
            case ExtenderSaid():
                self.extender_calls.hear(answer)
            case _:
                pass

    def give_up_waiting(self, now: Millis) -> None:
        """Requests without an answer time out."""
        for pending in list(self.pending_binds.values()):
            if pending.asked and pending.until_ms <= now:
                self._bind_failed(pending.ref, pending.attempt, final=False, silent=True)
            elif pending.preparing and pending.prepared_until_ms <= now:
                self._bind_failed(pending.ref, pending.attempt, final=True)
        for uid, until_ms in list(self.held_until_ms.items()):
            if until_ms <= now:
                self._end_writing(uid)
        self.extender_calls.give_up_waiting(now)

    def _node_gone(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.cluster.remove_node(name)
        for key, (_, node) in list(self.nominated.items()):
            if node == name:
                del self.nominated[key]

    def _pod_seen(self, pod: Pod) -> None:
        key = key_of(pod.metadata)
        known = self.pods.get(key)
        if known is not None and known.metadata.uid != pod.metadata.uid:
            self._pod_gone(ref_of(known))
        self.pods[key] = pod
        if pod.spec.node_name:
            pending = self._forget(key)
            elsewhere = pending is not None and pending.node != pod.spec.node_name
            if pending is not None and pending.claims_pending and (elsewhere or "" in self.assumed_claims.names(key)):
                self._give_back_devices(pending.ref)
            self.extender_calls.forget(pod.metadata.uid)
            self.nominated.pop(key, None)
            self.cluster.add_pod(pod)
            if pod.status.phase in FINISHED_PHASES:
                self._give_back(ref_of(pod))
        elif pod.metadata.deletion_timestamp is not None:
            self._release(key)  # it cannot be bound any more
        elif known is None and self.is_ours(pod):
            if self.lacks_claims(pod):
                self.awaiting_claims[key] = None
            elif pod.status.nominated_node_name:
                self.nominated[key] = (ref_of(pod), pod.status.nominated_node_name)

    def _pod_gone(self, ref: PodRef) -> None:
        known = self.pods.get(ref.key)
        if known is None or known.metadata.uid != ref.uid:
            return
        self.left[ref.uid] = self.pods.pop(ref.key)
        self._forget(ref.key)
        self.nominated.pop(ref.key, None)
        self.awaiting_claims.pop(ref.key, None)
        self.asked.pop(ref.uid, None)
        self.attempts.pop(ref.uid, None)
        self.rejected.pop(ref.uid, None)
        self.extender_calls.forget(ref.uid)
        self._give_back(ref)
        self.cluster.remove_pod(ref.key)

    def _object_seen(self, item: NamedObject | PriorityClass) -> None:
        if not isinstance(item, PriorityClass):
            self.others[type(item).__name__, key_of(item.metadata)] = item
            self.cluster.put_object(self.assumed_claims.seen(self.assumed.seen(item)))
        if isinstance(item, PersistentVolume) and item.spec.claim_ref is not None:
            for (
                pending
            ) in self.pending_binds.values():  # it is seen as taken: from now on its new owner can be seen as well
                pending.volumes = tuple(name for name in pending.volumes if name != item.metadata.name)

    def _object_gone(self, item: NamedObject | PriorityClass) -> None:
        if not isinstance(item, PriorityClass):
            self.others.pop((type(item).__name__, key_of(item.metadata)), None)
            self.assumed.gone(item)
            self.assumed_claims.gone(item)
            self.cluster.forget_object(item)

    def _bind_failed(self, ref: PodRef, attempt: int, *, final: bool, silent: bool = False) -> None:
        pending = self.current(ref, attempt)
        if pending is None or pending.done or not (pending.asked or pending.preparing):
            return
        pending.asked = False
        if not pending.preparing and pending.binder_may_fail:
            self._next_attempt(pending)  # it is bound without the extender
            return
        pending.failures += 1
        if final or pending.failures >= BIND_TRIES:
            if not pending.preparing:
                self.rejected[ref.uid] = pending.node
            self._release(ref.key)
        elif not silent:
            self._next_attempt(pending)

    def _next_attempt(self, pending: PendingBind) -> None:
        """A retry has a new number, so that answers cannot be confused."""
        pending.attempt += 1
        self.attempts[pending.ref.uid] = pending.attempt

    def _release(self, key: str) -> None:
        pending = self._forget(key)
        if pending is not None:
            self.cluster.remove_pod(key)
            if pending.volumes_pending:
                self._give_back_volumes(key)
            self._give_back_devices(pending.ref)

    def _give_back(self, ref: PodRef) -> None:
        self._give_back_volumes(ref.key)
        self._give_back_devices(ref)

    def _give_back_volumes(self, key: str) -> None:
        for _ in self.assumed.give_back(key):
            pass

    def _give_back_devices(self, ref: PodRef) -> None:
        if ref.uid in self.writing:
            self.assumed_claims.hold(ref.key, ref.uid)
            self.held_until_ms.setdefault(ref.uid, self._now + HELD_MS)
        else:
            for _ in self.assumed_claims.give_back(ref.key):
                pass

    def _claims_written(self, ref: PodRef, attempt: int, claims: Sequence[ResourceClaim]) -> None:
        for claim in self.assumed_claims.news(claims):
            self._object_seen(claim)
        if self.writing.get(ref.uid) == attempt:
            self._end_writing(ref.uid)

    def _end_writing(self, uid: str) -> None:
        self.writing.pop(uid, None)
        self.held_until_ms.pop(uid, None)
        for _ in self.assumed_claims.give_back(uid):
            pass

    # -- requests ------------------------------------------------------------------------------------------------

    def reserve(self, ref: PodRef, pod: Pod, node: str, attempt: int) -> None:
        self.pending_binds[ref.key] = PendingBind(ref, pod, node, attempt)
        self.attempts[ref.uid] = attempt
        self.rejected.pop(ref.uid, None)
        self.nominated.pop(ref.key, None)
        self.cluster.put(pod, self.cluster.class_of(pod), self.cluster.nodes.rows[node])

    def ask_bind(self, bind: Bind, now: Millis) -> None:
        pending = self.current(bind.pod, bind.attempt)
        if pending is not None:
            pending.asked = True
            pending.until_ms = now + BIND_ANSWER_MS
            pending.binder_may_fail = self.extender_calls.is_ignorable(bind.extender)

    def ask_volumes(self, ref: PodRef, volumes: tuple[str, ...], until_ms: Millis) -> None:
        pending = self.pending_binds[ref.key]
        pending.volumes, pending.volumes_pending = volumes, True
        pending.prepared_until_ms = until_ms + VOLUMES_ANSWER_MS

    def ask_claims(self, ref: PodRef, decision: DeviceDecision, until_ms: Millis) -> None:
        pending = self.pending_binds[ref.key]
        pending.claims_pending = True
        pending.prepared_until_ms = until_ms + VOLUMES_ANSWER_MS
        self.assumed_claims.take(ref.key, pending.pod.metadata, decision)
        self.writing[ref.uid] = pending.attempt

    def nominate(self, ref: PodRef, node: str) -> None:
        if node:
            self.nominated[ref.key] = (ref, node)
        else:
            self.nominated.pop(ref.key, None)

    def gave_up(self, ref: PodRef) -> None:
        """The scheduler reported a failure: the pod holds nothing any more."""
        pending = self.pending_binds.get(ref.key)
        if pending is not None and pending.ref == ref:
            self._release(ref.key)

    # -- reading -------------------------------------------------------------------------------------------------

    def current(self, ref: PodRef, attempt: int) -> PendingBind | None:
        found = self.pending_binds.get(ref.key)
        return found if found is not None and found.ref.uid == ref.uid and found.attempt == attempt else None

    def find(self, ref: PodRef) -> Pod | None:
        pod = self.pods.get(ref.key)
        return pod if pod is not None and pod.metadata.uid == ref.uid else None

    def knew(self, ref: PodRef) -> Pod | None:
        """The pod with this uid, if it existed when this step began."""
        return self.find(ref) or self.left.get(ref.uid)

    def leaves(self, ref: PodRef) -> bool:
        """Whether the pod is being deleted: the scheduler may then forget it."""
        pod = self.find(ref)
        return pod is not None and pod.metadata.deletion_timestamp is not None

    def lacks_claims(self, pod: Pod) -> bool:
        """Whether a pod must wait for claims before it is queued."""
        if not pod.spec.resource_claims or pod.spec.scheduler_name not in self.gating:
            return False
        try:
            pod_claims(pod, self.cluster.objects.devices.claims)
        except ClaimProblemError:
            return True
        return False

    def in_doubt(self) -> bool:
        """Whether a pod that is being deleted is or was nominated: it may count or not."""
        return any(self.leaves(ref) for ref, _ in self.nominated.values()) or any(
            pod.metadata.deletion_timestamp is not None and pod.status.nominated_node_name and not pod.spec.node_name
            for pod in self.pods.values()
        )

    def is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self.schedulers and pod.status.phase not in FINISHED_PHASES

    def waiting(self) -> list[Pod]:
        """Our pending pods, including those with a node that are not seen bound, without those being deleted."""
        return [
            pod
            for pod in self.pods.values()
            if not pod.spec.node_name and self.is_ours(pod) and pod.metadata.deletion_timestamp is None
        ]

    def bound(self) -> dict[str, tuple[str, str]]:
        return bound_in(self.cluster)

    def rebuilt(self) -> Cluster:
        """The same cluster built from scratch, nodes first, in their order: of equal nodes the first is chosen, and a
        gang may fit after one choice and not after another.
        """
        fresh = Cluster()
        nodes = sorted(self.nodes.values(), key=lambda node: self.cluster.nodes.rows[node.metadata.name])
        pods = [pod for pod in self.pods.values() if pod.spec.node_name]
        others = [self.cluster.find_object(item) or item for item in self.others.values()]
        known = self.cluster.objects.devices
        others += [
            claim for claim in known.claims.values() if ("ResourceClaim", key_of(claim.metadata)) not in self.others
        ]
        fresh.load(nodes, others, pods)
        fresh.objects.devices.in_flight.update(known.in_flight)
        for pending in self.pending_binds.values():
            if pending.node in fresh.nodes.rows:
                fresh.put(pending.pod, fresh.class_of(pending.pod), fresh.nodes.rows[pending.node])
        return fresh


def bound_in(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """(uid, node) by pod; the node is in brackets if it does not exist."""
    counted = {
        key: (cluster.pods.uids[row], cluster.nodes.names[cluster.pods.node_rows[row]])
        for key, row in cluster.pods.rows.items()
    }
    for node, pods in cluster.orphans.items():
        counted.update({key: (pod.metadata.uid, f"[{node}]") for key, pod in pods.items()})
    return counted


def differing(kept: Mapping[str, object], owed: Mapping[str, object]) -> str:
    """The first pod on which two views differ."""
    key = next(key for key in [*kept, *owed] if kept.get(key) != owed.get(key))
    return f"{key} is kept as {kept.get(key)}, and should be {owed.get(key)}"
