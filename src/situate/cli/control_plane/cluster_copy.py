"""A copy of another cluster, from a dump: its nodes, pods and workloads, as they were when it was written.

Objects keep their uids and their age, so that owners are found and waits are as long as they were. Nothing is admitted
again: a pod keeps its priority and its tolerations. But validation and the ledgers hold, as for all objects.

What identifies people or programs of the other cluster is not copied, nor what would act outside of it: see COPIED.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from situate.agent.hollow_pods import LONGEST_RUN, RUN_FOR
from situate.agent.node_objects import NodeShape
from situate.agent.node_status import is_ready
from situate.cli.input.manifests import Manifest, unique
from situate.cli.output.text import plural
from situate.core.model.quantity import value
from situate.core.reconcile.nodes.reports import ACKNOWLEDGED, REPORT
from situate.server.errors import StatusError
from situate.server.placing.bind_transaction import BINDING_VERSION, BindTransactions
from situate.server.placing.phases import is_finished
from situate.server.registry.normalize import encode, normalize
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, Object, Target
from situate.server.resources import BY_KIND, Resource
from situate.server.uids import new_uid
from situate.store.contract import Store
from situate.wire.errors import InputError

COPIED: Final = (
    *("Namespace", "PriorityClass", "RuntimeClass", "StorageClass", "CSIDriver", "DeviceClass", "ServiceAccount"),
    *("Node", "CSINode", "CSIStorageCapacity", "ResourceSlice", "Service", "ResourceClaimTemplate"),
    *("PersistentVolumeClaim", "PersistentVolume", "ResourceClaim", "Deployment", "StatefulSet", "DaemonSet"),
    *("ReplicaSet", "ReplicationController", "CronJob", "Job", "PodDisruptionBudget", "PodGroup", "Pod"),
    *("LimitRange", "ResourceQuota"),
)
"""The kinds that are copied, in this order: what others need comes first."""
WITH_STATUS: Final = ("PersistentVolumeClaim", "PersistentVolume", "ResourceClaim", "CronJob", "Job", "PodGroup", "Pod")
"""Kinds whose status nobody could find out again. Controllers compute those of the others."""
MISSED: Final = ("Namespace", "ServiceAccount", "PriorityClass")
"""Kinds that are made up where a dump lacks them."""
HOLLOW: Final = "situate.dev/hollow"
"""Annotation of a node: the control plane runs it as a hollow one, of the size that it has."""
AT_ONCE: Final = 64
MAX_EXAMPLES: Final = 3
"""Reasons for leaving something out that are shown; the log has all of them."""
OWN_SERVICE: Final = ("default", "kubernetes")
"""That of the API server itself."""
NODE: Final = BY_KIND["v1", "Node"]
_OWN: Final = ("resourceVersion", "selfLink", "managedFields", "generation")
_REPORTS: Final = (BINDING_VERSION, REPORT, ACKNOWLEDGED)
"""Annotations that another control plane of situate made."""


@dataclass(frozen=True, slots=True)
class _Origin:
    """What an object keeps of its former life."""

    uid: str
    created_ns: int


@dataclass(slots=True)
class CopyOutcome:
    """What became of a dump."""

    copied: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    """Kinds that are not copied."""
    ended: int = 0
    """Pods that had ended, or were about to."""
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Objects that could not be copied, and why."""

    def notes(self) -> list[str]:
        """What somebody must know who works with the copy."""
        found = []
        if self.ignored:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.ignored.items()))
            found.append(f"not copied: {kinds}")
        if self.ended:
            was = "was" if self.ended == 1 else "were"
            found.append(f"not copied: {plural(self.ended, 'pod')} that had ended or {was} being deleted")
        found += [f"not copied: {what}: {why}" for what, why in self.refused[:MAX_EXAMPLES]]
        if len(self.refused) > MAX_EXAMPLES:
            found.append(f"not copied: {len(self.refused) - MAX_EXAMPLES} more objects; server.log says why")
        return found


async def copy_cluster(store: Store, registry: Registry, manifests: Iterable[Manifest]) -> CopyOutcome:
    """Fill an empty cluster. Raises InputError if it has nodes already, or the dump has none."""
    if next(iter(registry.cache.all(NODE)), None) is not None:
        raise InputError("this cluster has nodes already; --from is for a new one")
    outcome, bodies = CopyOutcome(), _by_kind(unique(manifests))
    if not bodies.get("Node"):
        raise InputError("there are no nodes in the dump; `kubectl get nodes,pods -A -o yaml` writes some")
    for kind in [kind for kind in bodies if kind not in COPIED]:
        outcome.ignored[kind] += len(bodies.pop(kind))
    bodies["Service"] = [one for one in bodies.get("Service", ()) if _key(one) != OWN_SERVICE]
    pods = bodies.get("Pod", [])
    bodies["Pod"] = [one for one in pods if not is_finished(one) and not one["metadata"].get("deletionTimestamp")]
    outcome.ended = len(pods) - len(bodies["Pod"])
    known = {one["metadata"].get("uid", "") for those in bodies.values() for one in those}
    _add_missing(bodies)
    writer = _Writer(store, registry, outcome)
    for kind in COPIED:
        await writer.write([_prepared(one, known) for one in bodies.get(kind, ())])
    return outcome


def hollow_copies(registry: Registry) -> list[tuple[str, NodeShape]]:
    """The nodes that were copied, as hollow ones of the same sizes. Those that were not ready stay so."""
    found = (held.object(NODE) for held in registry.cache.all(NODE))
    return [(one["metadata"]["name"], _shape(one)) for one in found if HOLLOW in one["metadata"].get("annotations", {})]


def _shape(node: Object) -> NodeShape:
    room = dict(node.get("status", {}).get("allocatable", {}))
    cpu, memory, pods = room.pop("cpu", "0"), room.pop("memory", "0"), room.pop("pods", "0")
    return NodeShape(cpu, memory, value(pods), room, node["metadata"].get("labels", {}))


class _Writer:
    """Creates objects as they were, with all checks but admission."""

    def __init__(self, store: Store, registry: Registry, outcome: CopyOutcome) -> None:
        self._origin: ContextVar[_Origin] = ContextVar("origin")
        self._outcome = outcome
        self._free = asyncio.Semaphore(AT_ONCE)
        self._admitting = registry
        self._registry = Registry(
            store,
            wall_ns=lambda: self._origin.get().created_ns,
            new_uid=lambda: self._origin.get().uid,
            cache=registry.cache,
            extension=BindTransactions(time.time_ns, new_uid),
        )

    async def write(self, objects: Sequence[Object]) -> None:
        """Objects of one kind. A task each, as each has its own origin."""
        async with asyncio.TaskGroup() as tasks:
            for one in objects:
                await self._free.acquire()
                tasks.create_task(self._write(one)).add_done_callback(lambda _: self._free.release())

    async def _write(self, given: Object) -> None:
        kind, meta = given["kind"], given["metadata"]
        self._origin.set(_Origin(meta.pop("uid", "") or new_uid(), _created_ns(meta.pop("creationTimestamp", ""))))
        resource, status = BY_KIND[given["apiVersion"], kind], given.get("status")
        namespace = meta.get("namespace", "") if resource.namespaced else ""
        what = f"{kind} {'/'.join(filter(None, (namespace, meta['name'])))}"
        try:
            if self._registry.cache.get(resource, namespace, meta["name"]) is not None:
                return  # every cluster has it
            registry = self._admitting if kind == "Service" else self._registry  # it gets an address of ours
            made = await registry.create(Target(resource, namespace), given, SYSTEM)
            if kind == "Pod" and is_finished(found := made.object(resource)):
                self._outcome.refused.append((what, found["status"].get("message", "")))
                return
            self._outcome.copied[kind] += 1
            if kind in WITH_STATUS and status:
                await self._registry.modify(Target(resource, namespace, meta["name"], "status"), _with(status), SYSTEM)
        except StatusError as error:
            conflict = f'Operation cannot be fulfilled on {resource.plural} "{meta["name"]}": '
            self._outcome.refused.append((what, error.message.removeprefix(conflict)))


def _with(status: Mapping[str, Any]) -> Callable[[Object, StoredObject], Object]:
    def change(found: Object, _held: StoredObject) -> Object:
        return {**found, "status": dict(status)}

    return change


def _created_ns(text: object) -> int:
    try:
        return int(datetime.fromisoformat(str(text)).timestamp() * 1_000_000_000)
    except ValueError:
        return time.time_ns()


def _by_kind(manifests: Iterable[Manifest]) -> dict[str, list[Object]]:
    """The objects by kind, as the API would read them; those of kinds that we do not copy as they are. Raises
    InputError."""
    found: dict[str, list[Object]] = {}
    for one in manifests:
        resource = BY_KIND.get((one.api_version, one.kind))
        if resource is None or one.kind not in COPIED:
            kind = one.kind if resource is not None else f"{one.kind} ({one.api_version})"
            found.setdefault(kind, []).append(one.body)
            continue
        one.required_name()
        try:
            body = normalize(resource, encode(one.body))
        except StatusError as error:
            raise one.error(error.message) from None
        found.setdefault(one.kind, []).append({**body, "apiVersion": one.api_version, "kind": one.kind})
    return found


def _add_missing(bodies: dict[str, list[Object]]) -> None:
    """What a dump of nodes, pods and workloads lacks: namespaces, service accounts and priority classes. Without them,
    no new pod of a workload would be admitted."""
    spaces: dict[str, None] = {}
    accounts: dict[tuple[str, str], None] = {}
    classes: dict[str, int] = {}
    for kind in COPIED:
        for one in bodies.get(kind, ()):
            if _resource(one).namespaced:
                spaces[one["metadata"].setdefault("namespace", "default")] = None
    for pod in bodies.get("Pod", ()):
        spec = pod.get("spec", {})
        if account := spec.get("serviceAccountName"):
            accounts[pod["metadata"]["namespace"], account] = None
        if name := spec.get("priorityClassName"):
            classes[name] = spec.get("priority", 0)
    made: list[Object] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in spaces]
    made += [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": namespace, "name": name}}
        for namespace, name in accounts
    ]
    made += [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in classes.items()
    ]
    there = {(kind, *_key(one)) for kind in MISSED for one in bodies.get(kind, ())}
    for one in made:
        if (one["kind"], *_key(one)) not in there:
            bodies.setdefault(one["kind"], []).append(one)


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _resource(obj: Object) -> Resource:
    return BY_KIND[obj["apiVersion"], obj["kind"]]


def _prepared(given: Object, known: set[str]) -> Object:
    """The object to create. An owner that is not copied is forgotten: what it owns would be deleted."""
    made = {**given, "metadata": dict(given["metadata"])}
    meta = made["metadata"]
    for name in _OWN:
        meta.pop(name, None)
    owners = [one for one in meta.pop("ownerReferences", ()) if one.get("uid") in known]
    annotations = {key: text for key, text in meta.pop("annotations", {}).items() if key not in _REPORTS}
    spec = made.get("spec", {})
    match made["kind"]:
        case "Node":
            if is_ready(made):
                annotations[HOLLOW] = "true"
        case "Pod":
            if spec.get("restartPolicy", "Always") != "Always":
                annotations.setdefault(RUN_FOR, LONGEST_RUN)  # nobody knows how long it would have run
        case "Service":
            if spec.get("clusterIP") != "None":
                for name in ("clusterIP", "clusterIPs", "healthCheckNodePort"):
                    spec.pop(name, None)
                for port in spec.get("ports", ()):
                    port.pop("nodePort", None)
        case _:
            pass
    if owners:
        meta["ownerReferences"] = owners
    if annotations:
        meta["annotations"] = annotations
    return made
