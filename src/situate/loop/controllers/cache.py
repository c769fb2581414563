"""What controllers read: all objects, reduced to the fields they need, and what to do after each change. Pure.

An object that does not decode is known by its metadata, so that garbage collection and namespaces handle it. Neither
its own controller nor that of its owner acts until it can be read again: both would act on a part of what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from situate.core.model.base import Model
from situate.core.model.managed import ManagedNamespace, ManagedPod
from situate.core.model.managed_node import ManagedNode
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.refs import Millis
from situate.core.model.stored import StoredMeta
from situate.core.reconcile.api_values import SECOND
from situate.core.reconcile.effects import ObjectRef
from situate.core.reconcile.garbage import concerned_uids, is_kept, same_ties
from situate.core.reconcile.graph import ObjectGraph, OwnedObject
from situate.core.reconcile.job_tracking import is_tracked
from situate.core.reconcile.nodes.eviction import is_at_risk
from situate.core.reconcile.nodes.fencing import PROMISE, NodeProfile
from situate.core.reconcile.nodes.heartbeats import Heartbeats
from situate.core.reconcile.objects import KINDS, ObjectIndex
from situate.core.reconcile.pods import is_finished, is_stranded
from situate.core.reconcile.table import CONTROLLERS, concerned_by_change, concerned_by_node, concerns_zones
from situate.loop.controllers.pod_specs import PodDecoder


class ServedKind(NamedTuple):
    """A kind of the API; `resource` is its plural in paths."""

    api_version: str
    kind: str
    resource: str


class Reconcile(NamedTuple):
    """Call the controller of an object."""

    kind: type
    namespace: str
    name: str


class Collect(NamedTuple):
    """Check whether an object is garbage."""

    uid: str


class Empty(NamedTuple):
    """Continue the deletion of a namespace."""

    namespace: str


@dataclass(frozen=True, slots=True)
class Survey:
    """Check all nodes, clean up after deleted ones, or move pods that have drifted."""

    of: Literal["zones", "leftovers", "drift"]


MAX_LABEL_SETS: Final = 16_384
"""Label sets that pods share. When there are more, all are forgotten."""
Task: TypeAlias = Reconcile | Collect | Empty | Survey
Where: TypeAlias = tuple[str, str, str, str]
"""An object: its API version, kind, namespace and name."""


class UnreadableError(Exception):
    """A controller would act on an object that cannot be read."""


class _Any(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()


class _LeaseSpec(Model, frozen=True, kw_only=True):
    renew_time: str = ""
    lease_duration_seconds: int = 0


class _LeaseMeta(Model, frozen=True, kw_only=True):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class _Lease(Model, frozen=True, kw_only=True):
    metadata: _LeaseMeta = _LeaseMeta()
    spec: _LeaseSpec = _LeaseSpec()


_decode_any: Final = msgspec.json.Decoder(_Any).decode
_decode_lease: Final = msgspec.json.Decoder(_Lease).decode
_decode_pod: Final = msgspec.json.Decoder(Pod).decode
_decode_node: Final = msgspec.json.Decoder(Node).decode
_DEMANDS: Final[dict[type[Model], type[Model]]] = {ManagedPod: Pod, ManagedNode: Node}
_STRUCTS: Final[dict[tuple[str, str], type[Model]]] = {name: kind for kind, name in KINDS.items()}
_DECODERS: Final[dict[tuple[str, str], Callable[[bytes], Any]]] = {
    name: msgspec.json.Decoder(kind).decode for name, kind in _STRUCTS.items()
}


class ControllerCache:
    """All objects as last seen. With a profile, nodes are monitored, and the time of each change matters."""

    def __init__(
        self, served: Iterable[ServedKind], profile: NodeProfile | None = None, *, reads_demands: bool = False
    ) -> None:
        """`reads_demands`: also keep pods and nodes as schedulers read them, for `core.reconcile.drift`."""
        self.objects = ObjectIndex()
        self._reads_demands = reads_demands
        self.heartbeats = None if profile is None else Heartbeats(profile)
        self.graph = ObjectGraph([(one.api_version, one.kind) for one in served])
        self._uids: dict[Where, str] = {}
        self._unreadable: dict[Where, tuple[str, tuple[str, ...]]] = {}
        """Objects that did not decode: why, and the uids of their owners."""
        self._below: dict[str, dict[Where, None]] = {}
        """The same, by the uid of an owner."""
        self._ending: dict[str, None] = {}
        self._labels: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}
        self._progress: dict[tuple[str, str], int] = {}
        self._pods = PodDecoder()

    def renewed(self, body: bytes, now: Millis) -> list[Task]:
        """A node's lease was written. The node's controller has a timer for its expiry, and is called only if that is
        sooner now."""
        if self.heartbeats is not None:
            lease = _decode_lease(body)
            meta = lease.metadata
            duration_ms = max(0, lease.spec.lease_duration_seconds) * SECOND
            renewed = lease.spec.renew_time
            fenced = bool(renewed) and meta.annotations.get(PROMISE) == renewed
            if self.heartbeats.lease_seen(
                meta.name, meta.uid, renewed, meta.resource_version, now, duration_ms, fenced=fenced
            ):
                return [Reconcile(ManagedNode, "", meta.name)]
        return []

    def put(self, served: ServedKind, body: bytes, now: Millis = 0) -> list[Task]:
        """An object was added or changed; what to do now."""
        struct = _STRUCTS.get((served.api_version, served.kind))
        new, problem = None, ""
        if struct is not None:
            try:
                if struct is ManagedPod:
                    new = self._pods.decode(body)
                else:
                    new = _DECODERS[served.api_version, served.kind](body)
            except msgspec.DecodeError as error:
                problem = str(error)
        meta: StoredMeta = (_decode_any(body) if new is None else new).metadata
        self._moved(served, int(meta.resource_version or 0))
        where = (served.api_version, served.kind, meta.namespace, meta.name)
        had = self._uids.get(where)
        tasks: list[Task] = []
        if had is not None and had != meta.uid:  # another object of its name
            tasks += self.drop(served, meta.namespace, meta.name, 0, now)
        before = self.graph.by_uid(meta.uid)
        if had == meta.uid and before is not None and same_ties(before.meta, meta):  # a status, say, ties nobody
            self.graph.renew(OwnedObject(before.ref, meta, served.resource))
            collects: Iterable[Task] = self._empties(meta.namespace)
        else:
            ref = ObjectRef(served.api_version, served.kind, meta.namespace, meta.name, meta.uid)
            item = OwnedObject(ref, meta, served.resource)
            self._uids[where] = meta.uid
            self.graph.put(item)
            collects = self._collects(before, item, meta.namespace)
        if struct is not None:
            if struct is ManagedPod:
                self._share_labels(meta)
            tasks += self._reconciles(struct, where, meta, new, problem, now)
            if self._reads_demands and struct in _DEMANDS:
                self._read_demand(struct, meta, body)
        if served.kind == "Namespace" and meta.deletion_timestamp is not None:
            self._ending[meta.name] = None
            tasks.append(Empty(meta.name))
        tasks += collects
        return tasks

    def _share_labels(self, meta: StoredMeta) -> None:
        """Let the pods of one template have the same mapping of labels: it is compared for each of thousands."""
        if len(self._labels) >= MAX_LABEL_SETS:
            self._labels.clear()
        force_setattr(meta, "labels", self._labels.setdefault(tuple(meta.labels.items()), meta.labels))

    def names_of(self, served: ServedKind) -> list[tuple[str, str]]:
        """Namespace and name of all objects of a kind."""
        kind = (served.api_version, served.kind)
        return [(where[2], where[3]) for where in self._uids if where[:2] == kind]

    def drop(self, served: ServedKind, namespace: str, name: str, revision: int, now: Millis = 0) -> list[Task]:
        """An object is gone; what to do now."""
        self._moved(served, revision)
        where = (served.api_version, served.kind, namespace, name)
        self._read(where)
        uid = self._uids.pop(where, None)
        item = None if uid is None else self.graph.by_uid(uid)
        if uid is None or item is None:
            return []
        self.graph.drop(uid)
        tasks: list[Task] = []
        struct = _STRUCTS.get((served.api_version, served.kind))
        if struct is not None:
            old: Any = self.objects.get(struct, namespace, name)
            self.objects.drop(struct, namespace, name)
            if self._reads_demands and struct in _DEMANDS:
                self.objects.drop(_DEMANDS[struct], namespace, name)
            tasks += self._changed(struct, old, None, now)
        if served.kind == "Namespace":
            self._ending.pop(name, None)
        tasks += self._collects(item, None, namespace)
        return tasks

    def has(self, ref: ObjectRef) -> OwnedObject | None:
        """The object as last seen."""
        uid = self._uids.get((ref.api_version, ref.kind, ref.namespace, ref.name))
        return None if uid is None else self.graph.by_uid(uid)

    def progress(self, ref: ObjectRef) -> int:
        """The newest revision that we saw of its kind: objects of a kind come in order."""
        return self._progress.get((ref.api_version, ref.kind), 0)

    def everything(self) -> Iterator[Task]:
        """What to do after a restart: call every controller. Most pods run on healthy nodes, and have no work."""
        for kind in CONTROLLERS:
            managed: Sequence[Any] = self.objects.among(kind)
            for one in managed:
                if kind is not ManagedPod or self._has_work(one):
                    yield Reconcile(kind, one.metadata.namespace, one.metadata.name)
        yield from self.all_nodes()
        for uid in self._uids.values():
            item = self.graph.by_uid(uid)
            if item is not None and not is_kept(item, self.graph):
                yield Collect(uid)
        for name in self._ending:
            yield Empty(name)

    def _has_work(self, pod: ManagedPod) -> bool:
        """Whether the controller of a pod may do anything."""
        at_risk = self.heartbeats is not None and is_at_risk(pod, self.objects)
        return at_risk or is_tracked(pod) or bool(pod.spec.resource_claims)

    def all_nodes(self) -> Iterator[Task]:
        """What to do when we see leases again."""
        if self.heartbeats is not None:
            for node in self.objects.among(ManagedNode):
                yield Reconcile(ManagedNode, "", node.metadata.name)
            yield Survey("zones")
            yield Survey("leftovers")

    def _moved(self, served: ServedKind, revision: int) -> None:
        kind = (served.api_version, served.kind)
        self._progress[kind] = max(self._progress.get(kind, 0), revision)

    def _reconciles(
        self, struct: type[Model], where: Where, meta: StoredMeta, new: Any, problem: str, now: Millis
    ) -> list[Task]:
        """`problem`: why there is no new one."""
        self._read(where)
        if new is None:
            return self._misread(struct, where, meta, problem)
        old: Any = self.objects.get(struct, meta.namespace, meta.name)
        self.objects.put(new)
        return self._changed(struct, old, new, now)

    def _read_demand(self, struct: type[Model], meta: StoredMeta, body: bytes) -> None:
        """A pod or node that a scheduler could not read has not drifted."""
        try:
            self.objects.put(_decode_pod(body) if struct is ManagedPod else _decode_node(body))
        except msgspec.DecodeError:
            self.objects.drop(_DEMANDS[struct], meta.namespace, meta.name)

    def _read(self, where: Where) -> None:
        """It can be read again, or is gone."""
        known = self._unreadable.pop(where, None)
        for uid in () if known is None else known[1]:
            self._below[uid].pop(where, None)
            if not self._below[uid]:
                del self._below[uid]

    def _misread(self, struct: type[Model], where: Where, meta: StoredMeta, why: str) -> list[Task]:
        """Call the controllers that would act on it, so that they report why they do not."""
        owners = tuple(dict.fromkeys(owner.uid for owner in meta.owner_references))
        self._unreadable[where] = (why, owners)
        for uid in owners:
            self._below.setdefault(uid, {})[where] = None
        if struct is ManagedNode and self.objects.get(ManagedNode, "", meta.name) is None:
            self.objects.put(ManagedNode(metadata=meta))  # its pods still have a node
        tasks: list[Task] = [Reconcile(struct, meta.namespace, meta.name)]
        for owner in meta.owner_references:
            manager = _STRUCTS.get((owner.api_version, owner.kind))
            if manager is not None:
                tasks.append(Reconcile(manager, meta.namespace, owner.name))
        return tasks

    def check_readable(self, kind: type[Model], namespace: str, name: str) -> None:
        """Raises UnreadableError if this object, or one that it owns, did not decode."""
        if not self._unreadable:
            return
        where = (*KINDS[kind], namespace, name)
        if where in self._unreadable:
            raise UnreadableError(f"it cannot be read: {self._unreadable[where][0]}")
        for below in self._below.get(self._uids.get(where, ""), {}):
            _, what, space, named = below
            raise UnreadableError(f"its {what} {space}/{named} cannot be read: {self._unreadable[below][0]}")

    def _changed(self, struct: type, old: Any, new: Any, now: Millis) -> list[Task]:
        """One of them may be None."""
        if struct is ManagedNode:
            return self._node_changed(old, new, now)
        tasks: list[Task] = [Reconcile(*key) for key in concerned_by_change(old, new, self.objects)]
        if struct is ManagedPod and self.heartbeats is not None:
            tasks += self._pod_changed(self.heartbeats, old, new, now)
        return list(dict.fromkeys(tasks))

    def _node_changed(self, old: ManagedNode | None, new: ManagedNode | None, now: Millis) -> list[Task]:
        tasks = _called(concerned_by_node(old, new, self.objects))
        if self.heartbeats is not None:
            if new is not None:
                self.heartbeats.node_seen(old, new, now)
            elif old is not None:
                self.heartbeats.node_gone(old, now)
            if concerns_zones(old, new):
                tasks.append(Survey("zones"))
        return tasks

    def _pod_changed(
        self, heartbeats: Heartbeats, old: ManagedPod | None, new: ManagedPod | None, now: Millis
    ) -> list[Task]:
        heartbeats.finished += (new is not None and is_finished(new)) - (old is not None and is_finished(old))
        heartbeats.stranded += (new is not None and is_stranded(new)) - (old is not None and is_stranded(old))
        if new is None or not is_at_risk(new, self.objects):
            return []
        if self.objects.get(ManagedNode, "", new.spec.node_name) is None:
            heartbeats.node_missed(new.spec.node_name, now)
        return [Reconcile(ManagedPod, new.metadata.namespace, new.metadata.name)]

    def _collects(self, before: OwnedObject | None, after: OwnedObject | None, namespace: str) -> Iterator[Task]:
        """What an object that was added, changed or deleted means to garbage collection and to its namespace."""
        for uid in concerned_uids(before, after, self.graph):
            yield Collect(uid)
        yield from self._empties(namespace)

    def _empties(self, namespace: str) -> tuple[Task, ...]:
        return (Empty(namespace),) if namespace in self._ending else ()


def _called(keys: Iterable[tuple[type, str, str]]) -> list[Task]:
    return [Reconcile(*key) for key in dict.fromkeys(keys)]


def namespace_of(view: ControllerCache, name: str) -> ManagedNamespace | None:
    return view.objects.get(ManagedNamespace, "", name)
