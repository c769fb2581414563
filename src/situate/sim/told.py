"""What the scheduler has been told and what it has asked for, kept apart from it, to hold it to account.

`cluster` is what its cluster must look like: fed by the same changes, and by the binds that it asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from situate.core.changes import (
    BindDone,
    BindFailed,
    Change,
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
from situate.core.effects import Bind
from situate.core.engine.assumed_volumes import AssumedVolumes
from situate.core.engine.cycle import BIND_ANSWER_MS, BIND_TRIES, VOLUMES_ANSWER_MS
from situate.core.model.meta import key_of
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.policy import PriorityClass
from situate.core.model.storage import PersistentVolume
from situate.core.state.cluster import FINISHED_PHASES, Cluster
from situate.sim.asks import Asks
from situate.sim.store import ref_of


@dataclass(slots=True)
class Decided:
    """A pod that the scheduler has given a node, and that was not seen bound yet."""

    ref: PodRef
    pod: Pod
    """As it was when it was decided."""
    node: str
    attempt: int
    failures: int = 0
    asked: bool = False
    """Its bind was asked for, and has not been answered."""
    until_ms: Millis = 0
    """When a bind that is not answered counts as failed."""
    binder_may_fail: bool = False
    """An extender was asked to bind it that may be ignored."""
    done: bool = False
    volumes: tuple[str, ...] = ()
    """The volumes that its claims are being bound to."""
    volumes_pending: bool = False
    volumes_until_ms: Millis = 0


@dataclass(slots=True)
class Asked:
    """An eviction that was asked for."""

    times: int = 1
    failures: int = 0


class Told:
    """All that one scheduler knows, from what it was told."""

    def __init__(self, schedulers: frozenset[str], asks: Asks) -> None:
        self.schedulers = schedulers
        self.asks = asks
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.others: dict[tuple[str, str], NamedObject] = {}
        self.cluster = Cluster()
        self.assumed = AssumedVolumes(self.cluster)
        self.decided: dict[str, Decided] = {}
        self.nominated: dict[str, tuple[PodRef, str]] = {}
        self.asked: dict[str, Asked] = {}
        """Evictions, by the victim's uid."""
        self.left: dict[str, Pod] = {}
        """Pods that went in this very step, by uid: what was asked before that may still name them."""
        self.ended: dict[tuple[str, int], str] = {}
        """The nodes of pods that had one when this step began, and have it no more; by uid and attempt."""
        self.rejected: dict[str, str] = {}
        """The node of the last bind, by uid, if that was rejected."""
        self.attempts: dict[str, int] = {}
        """The highest attempt of a bind, by uid."""

    def begin_step(self) -> None:
        self.left.clear()
        self.ended.clear()

    def _forget(self, key: str) -> Decided | None:
        """The pod is not on its way to a node any more."""
        decided = self.decided.pop(key, None)
        if decided is not None:
            self.asks.forget(decided.ref.uid)
            self.ended[decided.ref.uid, decided.attempt] = decided.node
        return decided

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
                pass  # nobody says so in a simulated world
            case _:
                self._answered(change)

    def _answered(
        self, answer: BindDone | BindFailed | EvictDone | EvictFailed | VolumesBound | VolumesFailed | ExtenderSaid
    ) -> None:
        match answer:
            case BindDone(ref, attempt):
                if (decided := self.current(ref, attempt)) is not None:
                    decided.done = True
            case BindFailed(ref, attempt, _, final):
                self._bind_failed(ref, attempt, final=final)
            case VolumesFailed(ref, attempt, _):
                self._bind_failed(ref, attempt, final=True)
            case VolumesBound(ref, attempt):
                if (decided := self.current(ref, attempt)) is not None:
                    decided.volumes_pending = False
            case EvictFailed(ref):
                if ref.uid in self.asked:
                    self.asked[ref.uid].failures += 1
            case ExtenderSaid():
                self.asks.hear(answer)
            case _:
                pass

    def give_up_waiting(self, now: Millis) -> None:
        """What nobody answered in time counts as failed."""
        for decided in list(self.decided.values()):
            if decided.asked and decided.until_ms <= now:
                self._bind_failed(decided.ref, decided.attempt, final=False, silent=True)
            elif decided.volumes_pending and decided.volumes_until_ms <= now:
                self._bind_failed(decided.ref, decided.attempt, final=True)
        self.asks.give_up_waiting(now)

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
            self._forget(key)
            self.asks.forget(pod.metadata.uid)
            self.nominated.pop(key, None)
            self.cluster.add_pod(pod)
            if pod.status.phase in FINISHED_PHASES:
                self._give_back(key)
        elif pod.metadata.deletion_timestamp is not None:
            self._release(key)  # nobody can bind it any more
        elif known is None and pod.status.nominated_node_name and self.is_ours(pod):
            self.nominated[key] = (ref_of(pod), pod.status.nominated_node_name)

    def _pod_gone(self, ref: PodRef) -> None:
        known = self.pods.get(ref.key)
        if known is None or known.metadata.uid != ref.uid:
            return
        self.left[ref.uid] = self.pods.pop(ref.key)
        self._forget(ref.key)
        self.nominated.pop(ref.key, None)
        self.asked.pop(ref.uid, None)
        self.attempts.pop(ref.uid, None)
        self.rejected.pop(ref.uid, None)
        self.asks.forget(ref.uid)
        self._give_back(ref.key)
        self.cluster.remove_pod(ref.key)

    def _object_seen(self, item: NamedObject | PriorityClass) -> None:
        if not isinstance(item, PriorityClass):
            self.others[type(item).__name__, key_of(item.metadata)] = item
            self.cluster.put_object(self.assumed.seen(item))
        if isinstance(item, PersistentVolume) and item.spec.claim_ref is not None:
            for decided in self.decided.values():  # it is seen to be taken: who has it from now on can be seen too
                decided.volumes = tuple(name for name in decided.volumes if name != item.metadata.name)

    def _object_gone(self, item: NamedObject | PriorityClass) -> None:
        if not isinstance(item, PriorityClass):
            self.others.pop((type(item).__name__, key_of(item.metadata)), None)
            self.assumed.gone(item)
            self.cluster.forget_object(item)

    def _bind_failed(self, ref: PodRef, attempt: int, *, final: bool, silent: bool = False) -> None:
        decided = self.current(ref, attempt)
        if decided is None or decided.done or not (decided.asked or decided.volumes_pending):
            return
        decided.asked = False
        if not decided.volumes_pending and decided.binder_may_fail:
            self._next_attempt(decided)  # it is bound as other pods are
            return
        decided.failures += 1
        if final or decided.failures >= BIND_TRIES:
            if not decided.volumes_pending:
                self.rejected[ref.uid] = decided.node
            self._release(ref.key)
        elif not silent:
            self._next_attempt(decided)

    def _next_attempt(self, decided: Decided) -> None:
        """What is asked for after a failure has a number of its own: nobody can take the one for the other."""
        decided.attempt += 1
        self.attempts[decided.ref.uid] = decided.attempt

    def _release(self, key: str) -> None:
        decided = self._forget(key)
        if decided is not None:
            self.cluster.remove_pod(key)
            if decided.volumes_pending:
                self._give_back(key)

    def _give_back(self, key: str) -> None:
        for _ in self.assumed.give_back(key):
            pass

    # -- what it asked for ---------------------------------------------------------------------------------------

    def reserve(self, ref: PodRef, pod: Pod, node: str, attempt: int) -> None:
        self.decided[ref.key] = Decided(ref, pod, node, attempt)
        self.attempts[ref.uid] = attempt
        self.rejected.pop(ref.uid, None)
        self.nominated.pop(ref.key, None)
        self.cluster.put(pod, self.cluster.class_of(pod), self.cluster.nodes.rows[node])

    def ask_bind(self, bind: Bind, now: Millis) -> None:
        decided = self.current(bind.pod, bind.attempt)
        if decided is not None:
            decided.asked = True
            decided.until_ms = now + BIND_ANSWER_MS
            decided.binder_may_fail = self.asks.is_ignorable(bind.extender)

    def ask_volumes(self, ref: PodRef, volumes: tuple[str, ...], until_ms: Millis) -> None:
        decided = self.decided[ref.key]
        decided.volumes, decided.volumes_pending = volumes, True
        decided.volumes_until_ms = until_ms + VOLUMES_ANSWER_MS

    def nominate(self, ref: PodRef, node: str) -> None:
        if node:
            self.nominated[ref.key] = (ref, node)
        else:
            self.nominated.pop(ref.key, None)

    def gave_up(self, ref: PodRef) -> None:
        """The pod was told that something failed: it holds nothing any more."""
        decided = self.decided.get(ref.key)
        if decided is not None and decided.ref == ref:
            self._release(ref.key)

    # -- reading -------------------------------------------------------------------------------------------------

    def current(self, ref: PodRef, attempt: int) -> Decided | None:
        found = self.decided.get(ref.key)
        return found if found is not None and found.ref.uid == ref.uid and found.attempt == attempt else None

    def find(self, ref: PodRef) -> Pod | None:
        pod = self.pods.get(ref.key)
        return pod if pod is not None and pod.metadata.uid == ref.uid else None

    def knew(self, ref: PodRef) -> Pod | None:
        """That very pod, if it was there when this step began."""
        return self.find(ref) or self.left.get(ref.uid)

    def leaves(self, ref: PodRef) -> bool:
        """Whether the pod is being deleted: what is remembered of one that waits may be forgotten from then on."""
        pod = self.find(ref)
        return pod is not None and pod.metadata.deletion_timestamp is not None

    def in_doubt(self) -> bool:
        """Whether somebody who is being deleted was promised a node, or has that noted on it: it may count or not."""
        return any(self.leaves(ref) for ref, _ in self.nominated.values()) or any(
            pod.metadata.deletion_timestamp is not None and pod.status.nominated_node_name and not pod.spec.node_name
            for pod in self.pods.values()
        )

    def is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self.schedulers and pod.status.phase not in FINISHED_PHASES

    def waiting(self) -> list[Pod]:
        """The pods that wait for us, those with a node that are not seen bound included; not those being deleted."""
        return [
            pod
            for pod in self.pods.values()
            if not pod.spec.node_name and self.is_ours(pod) and pod.metadata.deletion_timestamp is None
        ]

    def bound(self) -> dict[str, tuple[str, str]]:
        """What counts where: (uid, node) by the pod's name."""
        return bound_in(self.cluster)

    def rebuilt(self) -> Cluster:
        """The same cluster from nothing: first the nodes, then the pods."""
        fresh = Cluster()
        pods = [pod for pod in self.pods.values() if pod.spec.node_name]
        others = [self.cluster.find_object(item) or item for item in self.others.values()]
        fresh.load(self.nodes.values(), others, pods)
        for decided in self.decided.values():
            if decided.node in fresh.nodes.rows:
                fresh.put(decided.pod, fresh.class_of(decided.pod), fresh.nodes.rows[decided.node])
        return fresh


def bound_in(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """What a cluster counts where: (uid, node) by the pod's name; the node in brackets where it is not there."""
    counted = {
        key: (cluster.pods.uids[row], cluster.nodes.names[cluster.pods.node_rows[row]])
        for key, row in cluster.pods.rows.items()
    }
    for node, pods in cluster.homeless.items():
        counted.update({key: (pod.metadata.uid, f"[{node}]") for key, pod in pods.items()})
    return counted
