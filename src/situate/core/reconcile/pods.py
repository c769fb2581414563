"""Predicates of a pod, the order of deletion, and new pods."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from heapq import nsmallest
from typing import Any

import msgspec

from situate.core.model.integers import parse_int32
from situate.core.model.managed import ManagedPod
from situate.core.model.refs import Millis
from situate.core.model.stored import Condition, Owner, PodTemplateSpec, condition_of
from situate.core.reconcile.api_values import SECOND, parse_time
from situate.core.reconcile.effects import CreateObject, ObjectRef, ResultBuilder

SUCCEEDED, FAILED = "Succeeded", "Failed"
_FINISHED = (SUCCEEDED, FAILED)
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def is_finished(pod: ManagedPod) -> bool:
    return pod.status.phase in _FINISHED


def is_stranded(pod: ManagedPod) -> bool:
    """Being deleted, without finalizers, and without a node whose agent could end it: the server stopped between the
    mark and the end."""
    metadata = pod.metadata
    return metadata.deletion_timestamp is not None and not pod.spec.node_name and not metadata.finalizers


def is_active(pod: ManagedPod) -> bool:
    """Neither finished nor being deleted."""
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in _FINISHED


def is_terminating(pod: ManagedPod) -> bool:
    """Being deleted, and not finished yet."""
    return not is_finished(pod) and pod.metadata.deletion_timestamp is not None


def ready_condition(pod: ManagedPod) -> Condition | None:
    return condition_of(pod.status.conditions, "Ready")


def is_ready(pod: ManagedPod) -> bool:
    for one in pod.status.conditions:  # not by `ready_condition`: a ReplicaSet asks for each of its pods
        if one.type == "Ready":
            return one.status == "True"
    return False


def available_at(pod: ManagedPod, min_ready_seconds: int) -> Millis | None:
    """When a ready pod becomes available; None: it is not ready."""
    ready = ready_condition(pod)
    if ready is None or ready.status != "True":
        return None
    if not min_ready_seconds:
        return 0
    since = parse_time(ready.last_transition_time)
    return None if since is None else since + min_ready_seconds * SECOND


def is_available(pod: ManagedPod, min_ready_seconds: int, now: Millis) -> bool:
    at = available_at(pod, min_ready_seconds)
    return at is not None and at <= now


def requeue_when_available(
    result: ResultBuilder, pods: Iterable[ManagedPod], min_ready_seconds: int, now: Millis
) -> None:
    """A ready pod becomes available without an event."""
    if not min_ready_seconds:
        return
    for pod in pods:
        at = available_at(pod, min_ready_seconds)
        result.requeue(at if at is not None and at > now else None)


def deletion_order(
    pods: Sequence[ManagedPod], related: Iterable[ManagedPod], now: Millis, count: int | None = None
) -> list[ManagedPod]:
    """The pods in deletion order; the first of them, if there is a count.

    Pods without a node first, then by phase, readiness, deletion cost, number of related pods on the node, time since
    ready, restarts, and age. Times count by order of magnitude, so that not always the youngest is deleted.
    """
    on_node: dict[str, int] = {}
    for pod in related:
        if is_active(pod):
            on_node[pod.spec.node_name] = on_node.get(pod.spec.node_name, 0) + 1
    magnitudes: dict[str | None, int] = {}  # there may be many thousands of pods, of few times

    def magnitude(since: str | None) -> int:
        found = magnitudes.get(since)
        if found is None:
            found = magnitudes[since] = _magnitude(since, now)
        return found

    def key(pod: ManagedPod) -> tuple[object, ...]:
        meta, status, node = pod.metadata, pod.status, pod.spec.node_name
        ready = ready_condition(pod)
        if ready is not None and ready.status != "True":
            ready = None
        return (
            bool(node),
            _PHASES.get(status.phase, 0),
            ready is not None,
            _cost(pod) if DELETION_COST in meta.annotations else 0,
            -on_node.get(node, 0),
            magnitude(None if ready is None else ready.last_transition_time),
            -max([one.restart_count for one in status.container_statuses], default=0),
            -_sidecar_restarts(pod) if status.init_container_statuses else 0,
            magnitude(meta.creation_timestamp),
            meta.uid,
        )

    return sorted(pods, key=key) if count is None else nsmallest(count, pods, key)


def _cost(pod: ManagedPod) -> int:
    text = pod.metadata.annotations.get(DELETION_COST, "0")
    digits = text.removeprefix("-")
    return (parse_int32(text) or 0) if digits == "0" or digits[:1] not in ("", "0", "+", "-") else 0


def _magnitude(since: str | None, now: Millis) -> int:
    """The age as a power of two of nanoseconds; -2 without a time."""
    at = parse_time(since)
    if at is None:
        return -2
    return (max(now - at, 0) * 1_000_000).bit_length() - 1


def _sidecar_restarts(pod: ManagedPod) -> int:
    sidecars = [one.name for one in pod.spec.init_containers if one.restart_policy == "Always"]
    return max((one.restart_count for one in pod.status.init_container_statuses if one.name in sidecars), default=0)


def new_pod(
    namespace: str,
    name: str,
    template: PodTemplateSpec,
    owner: Owner,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: Sequence[str] = (),
    spec: Mapping[str, Any] | None = None,
    generate_name: str = "",
) -> CreateObject:
    """A pod of a template. Labels and annotations are added; `spec` replaces fields."""
    meta: dict[str, Any] = {"name": name, "namespace": namespace, "ownerReferences": [_owner_json(owner)]}
    if generate_name:
        meta["generateName"] = generate_name
    said = {
        "labels": {**template.metadata.labels, **(labels or {})},
        "annotations": {**template.metadata.annotations, **(annotations or {})},
        "finalizers": list(dict.fromkeys((*template.metadata.finalizers, *finalizers))),
    }
    meta.update((key, value) for key, value in said.items() if value)
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**template.spec, **(spec or {})}}
    return CreateObject(ObjectRef("v1", "Pod", namespace, name), body)


@lru_cache(maxsize=256)
def _owner_json(owner: Owner) -> dict[str, Any]:
    """The pods of one call have the same owner, and nobody changes the body of an effect."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(owner))
    return found
