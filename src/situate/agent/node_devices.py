"""The devices of hollow nodes: a file says which nodes have which, and each node publishes them as ResourceSlices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, Protocol

import msgspec

API: Final = "resource.k8s.io/v1"
PUBLISHED: Final = "situate.dev/hollow-node"
"""The label of the slices that a hollow node publishes: its name."""
MAX_IN_SLICE: Final = 128
MAX_WITH_COUNTERS: Final = 64
"""Devices in a slice; fewer if they have taints or consume counters."""
MAX_COUNT: Final = 10_000
"""Devices of one line of the file, on one node."""


class DeviceSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The devices of one driver on the nodes whose names match. `{node}` and `{index}` stand for themselves in every
    text of it."""

    nodes: str
    driver: str
    devices: list[dict[str, Any]]
    """As in a ResourceSlice, and `count`: how many of them."""
    pool: str = "{node}"
    shared_counters: list[dict[str, Any]] = []


class SliceStore(Protocol):
    """Where slices are published. Its methods raise ControlPlaneError."""

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None: ...

    async def list_slices(self, node: str) -> list[dict[str, Any]]: ...

    async def put_slice(self, body: dict[str, Any]) -> None:
        """Create it, or replace the spec of the one of its name."""

    async def delete_slice(self, name: str) -> None: ...


class DevicePublisher:
    """Publishes the devices of nodes that have registered."""

    def __init__(self, store: SliceStore, sets: Sequence[DeviceSet]) -> None:
        self._store = store
        self._sets = sets

    async def publish(self, node: str) -> None:
        """The Node owns its slices, so they go with it. What it published before and has no more goes now."""
        wanted = slices_of(node, self._sets)
        mine = [one for one in await self._store.list_slices(node) if PUBLISHED in one["metadata"].get("labels", {})]
        if not wanted and not mine:
            return
        owner = await self._store.get("Node", "", node) or {"metadata": {}}
        reference = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": owner["metadata"].get("uid", "")}
        generation = max((one["spec"]["pool"].get("generation", 0) for one in mine), default=0) + 1
        for body in wanted:
            body["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
            body["spec"]["pool"]["generation"] = generation
            await self._store.put_slice(body)
        names = {one["metadata"]["name"] for one in wanted}
        for one in mine:
            if one["metadata"]["name"] not in names:
                await self._store.delete_slice(one["metadata"]["name"])


def slices_of(node: str, sets: Sequence[DeviceSet]) -> list[dict[str, Any]]:
    """The slices of a node, in the first generation of their pools."""
    return [
        body for number, one in enumerate(sets) if fnmatchcase(node, one.nodes) for body in _slices(node, number, one)
    ]


def _slices(node: str, number: int, one: DeviceSet) -> Iterator[dict[str, Any]]:
    devices = [
        _filled({key: value for key, value in device.items() if key != "count"}, node, index)
        for device in one.devices
        for index in range(min(int(device.get("count", 1)), MAX_COUNT))
    ]
    careful = any("taints" in device or "consumesCounters" in device for device in devices)
    size = MAX_WITH_COUNTERS if careful else MAX_IN_SLICE
    parts: list[dict[str, Any]] = [
        {"devices": devices[start : start + size]} for start in range(0, max(1, len(devices)), size)
    ]
    if one.shared_counters:
        parts.append({"sharedCounters": _filled(one.shared_counters, node, 0)})
    pool = {"name": _filled(one.pool, node, 0), "generation": 1, "resourceSliceCount": len(parts)}
    for at, part in enumerate(parts):
        meta = {"name": f"{node}-{one.driver}-{number}-{at}", "labels": {PUBLISHED: node}}
        spec = {"driver": one.driver, "nodeName": node, "pool": dict(pool), **part}
        yield {"apiVersion": API, "kind": "ResourceSlice", "metadata": meta, "spec": spec}


def _filled(value: Any, node: str, index: int) -> Any:
    if isinstance(value, str):
        return value.replace("{node}", node).replace("{index}", str(index))
    if isinstance(value, dict):
        return {key: _filled(part, node, index) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, node, index) for part in value]
    return value
