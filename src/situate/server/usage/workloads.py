"""What an autoscaler scales: a workload, its pods, what they request and use."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from situate.core.model.labels import LabelSelector, Selector, SelectorError, parse_selector
from situate.core.reconcile.api_values import SECOND, parse_time
from situate.core.reconcile.autoscaling import Measured, MeasureError, ScaledPod
from situate.server.kinds.quantities import nanos
from situate.server.registry.cache import Cache
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Object
from situate.server.resources import BY_KIND, RESOURCES, Resource
from situate.server.tables.cells import selector as selector_text
from situate.server.usage.measured import WINDOW_S, metrics_of

PODS: Final = BY_KIND["v1", "Pod"]
NOTHING_MEASURED: Final = "unable to get metrics for resource {}: no metrics returned from resource metrics API"
NO_REQUEST: Final = "missing request for {} in container {} of Pod {}"
NO_CONTAINER: Final = "container {} not found in Pod {}"
AT_ONCE: Final = 25
"""Pods to read before other work gets its turn."""
_MILLI: Final = 1_000_000


class ScaleTarget(NamedTuple):
    resource: Resource
    stored: StoredObject
    replicas: int
    selector: Selector | None
    """None: it has none that can be read."""
    selector_text: str


def workload_of(cache: Cache, namespace: str, reference: Mapping[str, Any]) -> ScaleTarget | str:
    """What an autoscaler refers to, or why there is none."""
    group = reference.get("apiVersion", "").rpartition("/")[0]
    kind, name = reference.get("kind", ""), reference.get("name", "")
    known = (one for one in RESOURCES if (one.group, one.kind) == (group, kind) and "scale" in one.subresources)
    resource = next(known, None)
    if resource is None:
        return f'no matches for kind "{kind}" in group "{group}"'
    held = cache.get(resource, namespace, name)
    if held is None:
        return f'{resource.plural}{f".{group}" if group else ""} "{name}" not found'
    spec = held.object(resource).get("spec", {})
    wanted = spec.get("selector")
    if resource.plural == "replicationcontrollers":
        wanted = {"matchLabels": wanted or {}}
    try:
        selector = parse_selector(msgspec.convert(wanted, LabelSelector)) if wanted else None
    except (SelectorError, msgspec.ValidationError):
        selector = None
    return ScaleTarget(resource, held, spec.get("replicas", 0), selector, selector_text(wanted, ""))


class Selectors:
    """The selectors of all autoscalers, each read once."""

    def __init__(self, cache: Cache, autoscalers: Resource) -> None:
        self._cache = cache
        self._autoscalers = autoscalers
        self._known: dict[str, dict[str, tuple[Selector, list[StoredObject]]]] = {}
        """Those of a namespace: a selector by its text, and whose it is."""

    def others(self, held: StoredObject, pods: Pods) -> list[str]:
        """Other autoscalers that scale some of the same pods."""
        if held.namespace not in self._known:
            self._known[held.namespace] = self._read(held.namespace)
        found = (own for selector, own in self._known[held.namespace].values() if pods.any_selected_by(selector))
        return [one.name for own in found for one in own if one.uid != held.uid]

    def _read(self, namespace: str) -> dict[str, tuple[Selector, list[StoredObject]]]:
        found: dict[str, tuple[Selector, list[StoredObject]]] = {}
        for one in self._cache.all(self._autoscalers, namespace):
            target = one.object(self._autoscalers).get("spec", {}).get("scaleTargetRef", {})
            workload = workload_of(self._cache, namespace, target)
            if isinstance(workload, ScaleTarget) and workload.selector is not None:
                found.setdefault(workload.selector_text, (workload.selector, []))[1].append(one)
        return found


async def pods_of(cache: Cache, namespace: str, selector: Selector) -> Pods:
    """The pods of a workload, as they are now; other work gets its turns meanwhile."""
    objects: list[Object] = []
    metrics: dict[str, Object | None] = {}
    labels: dict[int, Mapping[str, str]] = {}
    hollow: dict[str, bool] = {}
    for number, held in enumerate([one for one in cache.all(PODS, namespace) if selector.matches(one.labels)], 1):
        objects.append(held.object(PODS))
        metrics[held.name] = metrics_of(cache, held, hollow)
        labels[id(held.labels)] = held.labels
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
    return Pods(objects, metrics, list(labels.values()))


class Pods:
    def __init__(
        self, objects: list[Object], metrics: Mapping[str, Object | None], labels: Collection[Mapping[str, str]]
    ) -> None:
        self._objects = objects
        self._metrics = metrics
        self._labels = labels
        """Of all pods. Those of one template share them."""

    def any_selected_by(self, selector: Selector) -> bool:
        return any(map(selector.matches, self._labels))

    def scaled(self) -> list[ScaledPod]:
        return [_scaled(pod) for pod in self._objects]

    def usage(self, resource: str, container: str) -> dict[str, Measured]:
        """By pod. Raises MeasureError if nothing is measured at all."""
        found = {name: one for name, one in self._metrics.items() if one is not None}
        if not found:
            raise MeasureError(NOTHING_MEASURED.format(resource))
        used = {}
        for name, metrics in found.items():
            amounts = [
                one["usage"].get(resource) for one in metrics["containers"] if not container or one["name"] == container
            ]
            if amounts and None not in amounts:
                total = sum(_milli(amount) for amount in amounts)
                used[name] = Measured(total, parse_time(metrics["timestamp"]) or 0, WINDOW_S * SECOND)
        return used

    def requests(self, resource: str, container: str) -> dict[str, int]:
        """In thousandths, by pod. Raises MeasureError."""
        return {pod["metadata"]["name"]: _requested(pod, resource, container) for pod in self._objects}


def _milli(amount: Any) -> int:
    return -(-nanos(amount) // _MILLI)


def _requested(pod: Object, resource: str, container: str) -> int:
    spec, name = pod["spec"], pod["metadata"]["name"]
    whole = (spec.get("resources") or {}).get("requests")
    if whole and not container:
        if resource not in whole:
            raise MeasureError(f"missing pod-level request for {resource} in Pod {name}")
        return _milli(whole[resource])
    total, found = 0, False
    for one in _that_run(spec):
        if container and one.get("name") != container:
            continue
        requests = (one.get("resources") or {}).get("requests") or {}
        if resource not in requests:
            raise MeasureError(NO_REQUEST.format(resource, one.get("name", ""), name))
        total, found = total + _milli(requests[resource]), True
    if container and not found:
        raise MeasureError(NO_CONTAINER.format(container, name))
    return total


def _that_run(spec: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    return (*spec.get("containers", ()), *sidecars)


def _scaled(pod: Object) -> ScaledPod:
    status = pod.get("status") or {}
    ready = next((one for one in status.get("conditions") or () if one.get("type") == "Ready"), None)
    return ScaledPod(
        pod["metadata"]["name"],
        status.get("phase", ""),
        "deletionTimestamp" in pod["metadata"],
        parse_time(status.get("startTime")),
        None if ready is None else ready.get("status") != "False",
        0 if ready is None else parse_time(ready.get("lastTransitionTime")) or 0,
    )
