"""PodMetrics and NodeMetrics of hollow nodes, computed when they are read. Other nodes have none."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from situate.server.kinds.quantities import nanos, written
from situate.server.kubelet.connector import HOLLOW
from situate.server.registry.cache import Cache
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Object
from situate.server.resources import BY_KIND
from situate.server.usage.played import NOTHING, usage_of
from situate.wire.bodies import seconds_time

PODS: Final = BY_KIND["v1", "Pod"]
NODES: Final = BY_KIND["v1", "Node"]
WINDOW_S: Final = 15
"""What is played holds at every moment; a window is what readers expect of a measurement."""
RUNNING: Final = "Running"
_AT_ONCE: Final = 25
"""Pods to read before a pause."""


def pod_metrics(cache: Cache, _counts: object, namespace: str, name: str) -> Iterator[Object | None]:
    """Of one namespace or all, and of one name or all; None is a point to pause."""
    found = [cache.get(PODS, namespace, name)] if name else cache.all(PODS, namespace)
    hollow: dict[str, bool] = {}
    for number, held in enumerate([one for one in found if one is not None]):
        if (measured := metrics_of(cache, held, hollow)) is not None:
            yield measured
        if number % _AT_ONCE == 0:
            yield None


def node_metrics(cache: Cache, _counts: object, _namespace: str, name: str) -> Iterator[Object | None]:
    found = [cache.get(NODES, "", name)] if name else cache.all(NODES)
    for held in [one for one in found if one is not None]:
        if not is_hollow(cache, held.name):
            continue
        total = dict.fromkeys(NOTHING, 0)
        for pod in cache.on_node(held.name):
            for container in (metrics_of(cache, pod, {held.name: True}) or {}).get("containers", ()):
                for resource, amount in container["usage"].items():
                    total[resource] = total.get(resource, 0) + nanos(amount)
        usage = {resource: written(amount, binary=resource == "memory") for resource, amount in total.items()}
        yield {"metadata": _metadata(held, held.labels), **_now(), "usage": usage}
        yield None


def metrics_of(cache: Cache, held: StoredObject, hollow: dict[str, bool]) -> Object | None:
    """The PodMetrics of a pod that runs on a hollow node. `hollow`: nodes that were looked up already."""
    pod = held.object(PODS)
    node = pod.get("spec", {}).get("nodeName", "")
    if not node or pod.get("status", {}).get("phase") != RUNNING:
        return None
    if node not in hollow:
        hollow[node] = is_hollow(cache, node)
    if not hollow[node]:
        return None
    usage = dict(usage_of(pod["metadata"].get("annotations") or {}))
    containers = [{"name": name, "usage": usage} for name in _running(pod)]
    return {"metadata": _metadata(held, held.labels), **_now(), "containers": containers}


def _running(pod: Object) -> Iterable[str]:
    """The containers, and the sidecars among those of initialization."""
    spec = pod["spec"]
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    return [str(one.get("name", "")) for one in (*spec.get("containers", ()), *sidecars)]


def is_hollow(cache: Cache, name: str) -> bool:
    held = cache.get(NODES, "", name)
    info = {} if held is None else held.object(NODES).get("status", {}).get("nodeInfo") or {}
    return str(info.get("containerRuntimeVersion", "")).startswith(HOLLOW)


def _metadata(held: StoredObject, labels: Mapping[str, str]) -> Object:
    made: Object = {"name": held.name, **({"namespace": held.namespace} if held.namespace else {})}
    made |= {"uid": held.uid, "creationTimestamp": _time()}
    return made | ({"labels": dict(labels)} if labels else {})


def _now() -> Object:
    return {"timestamp": _time(), "window": f"{WINDOW_S}s"}


def _time() -> str:
    return seconds_time(time.time_ns())
