"""Devices as an amount, for strategies that weigh an extended resource which devices serve.

Where a node's allocatable lacks the resource, its devices of the class count as room, and those in use as requested.
kube-scheduler counts every slice that is for the node here, whatever its generation or state, and takes no device for
shared. If a selector fails on a device, the resource does not count on that node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from situate.core.devices.errors import AllocationError
from situate.core.devices.inventory import NodeFacts, PoolDevice
from situate.core.devices.selectors import SelectorAnswers, SelectorFailedError
from situate.core.model.devices import DeviceClass
from situate.core.plugins.support.arguments import ResourceSpec
from situate.core.plugins.support.device_selectors import selector_compiler
from situate.core.plugins.support.extended_devices import served_columns
from situate.core.state.classes import CPU, MEMORY, PodClass
from situate.core.state.columns import IntColumn
from situate.core.state.view import DEVICES, LOAD, ROW_DEVICES, View

CountAt: TypeAlias = Callable[[int], tuple[int, int]]
"""A row of the cluster -> how many devices its node has, and how many of them are in use."""

Amount: TypeAlias = tuple[int, int, int, int]
"""Of one resource on one row: room, what is requested of it, what the pod requests, the resource's weight."""

NOTHING: Final = (0, 0)


def device_counts(resources: Sequence[ResourceSpec], pod: PodClass, view: View) -> Mapping[int, CountAt]:
    """Column -> how its devices count, of the resources that the pod requests and that devices may serve."""
    if not pod.requested_names:
        return {}
    view.reads |= DEVICES
    served = served_columns(pod, view.cluster.objects)
    weighed = {view.resource(resource.name) for resource in resources}
    found = {column: _counter(name, view) for column, name in served.items() if column in weighed}
    if found:
        view.reads |= ROW_DEVICES | LOAD
    return found


def amounts(
    columns: Sequence[tuple[int, int, int]], counts: Mapping[int, CountAt], view: View, *, nonzero: bool
) -> list[list[Amount]]:
    """By row of the view: the resources that its node has."""
    rooms: list[tuple[list[int], list[int], int, int]] = []
    for column, amount, weight in columns:
        room = view.allocatable(column).tolist()
        used = _used(column, view, nonzero=nonzero).tolist()
        if column in counts:
            for at in np.flatnonzero(view.present & (view.allocatable(column) == 0)).tolist():
                room[at], used[at] = counts[column](view.absolute(at))
        rooms.append((room, used, amount, weight))
    return [
        [(room[at], used[at], amount, weight) for room, used, amount, weight in rooms if room[at]]
        for at in range(view.size)
    ]


def amounts_at(
    columns: Sequence[tuple[int, int, int]], counts: Mapping[int, CountAt], view: View, *, nonzero: bool
) -> Callable[[int], list[Amount]]:
    """The scalar twin of `amounts`, by row of the cluster."""
    nodes = view.cluster.nodes

    def at(row: int) -> list[Amount]:
        found = []
        for column, amount, weight in columns:
            cells = nodes.nonzero_cells if nonzero and column in (CPU, MEMORY) else nodes.requested_cells
            room, used = nodes.allocatable_cells[column][row], cells[column][row]
            if not room and column in counts:
                room, used = counts[column](row)
            if room:
                found.append((room, used, amount, weight))
        return found

    return at


def _used(column: int, view: View, *, nonzero: bool) -> IntColumn:
    return view.nonzero_requested(column) if nonzero and column in (CPU, MEMORY) else view.requested(column)


def _counter(class_name: str, view: View) -> CountAt:
    """Counts the devices of a class. Reads the cluster anew each time, so it stays right when that changes."""
    devices, nodes, claimed = view.cluster.objects.devices, view.cluster.nodes, view.claimed

    def count(row: int) -> tuple[int, int]:
        node, device_class = nodes.objects[row], devices.classes.get(class_name)
        if node is None or device_class is None:
            return NOTHING
        answers = devices.answers(selector_compiler(devices.inventory.rules))
        have = used = 0
        try:
            for pool, one in devices.inventory.listed(NodeFacts(nodes.names[row], node.metadata.labels)):
                if _belongs(one, device_class, answers):
                    have += 1
                    use = claimed.get(pool) or devices.allocated.of(pool)
                    used += use.is_allocated(one.device.name)
        except (AllocationError, SelectorFailedError):
            return NOTHING
        return have, used

    return count


def _belongs(one: PoolDevice, device_class: DeviceClass, answers: SelectorAnswers) -> bool:
    return all(
        selector.cel is None or answers.matches(selector.cel.expression, one)
        for selector in device_class.spec.selectors
    )
