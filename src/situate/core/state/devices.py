"""The devices of nodes: how much of each is free, by node and device. Kept for the resources that were asked about.

A pod's devices are in its annotation. A pod that was bound without one is assumed to have the lowest that fit, after
those with an annotation. This depends only on the pods on the node, in order of arrival, so a recount gives the same.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from situate.core.model.gpu import DEVICE_MILLI, GpuNeed, devices_of, gpu_need, node_devices
from situate.core.model.requests import allocatable
from situate.core.state.classes import PodClass
from situate.core.state.columns import IntColumn, sealed
from situate.core.state.nodes import NodeTable
from situate.core.state.pods import PodTable

if TYPE_CHECKING:
    from situate.core.state.view import View

Holder: TypeAlias = tuple[GpuNeed, str]
"""What a pod needs, and the devices in its annotation."""

FIRST_WIDTH: Final = 8

LEVEL_BITS: Final = 2
"""How exactly pods are counted for the mix: to this many leading binary digits."""


@dataclass(frozen=True, slots=True)
class Devices:
    """What a view shows of devices. Rows first; in tables, the devices of a row second."""

    count: IntColumn
    """How many devices the node has."""
    each: IntColumn
    """How much memory each of them has, in bytes; 0 where not known."""
    free: IntColumn
    """A table: free thousandths; 0 where there is no such device."""
    memory: IntColumn
    """A table: free bytes."""
    largest: IntColumn
    """The most that is free on one device."""
    whole: IntColumn
    """How many devices are wholly free."""


def need_of(pod: PodClass, resource: str) -> GpuNeed:
    """What a pod of this class needs, if `resource` stands for whole devices."""
    return gpu_need(pod.annotations, pod.requests.scalar, resource)


def settle(count: int, each: int, holders: Sequence[Holder]) -> tuple[list[int], list[int]]:
    """What pods use of each of a node's devices, and of its memory, in order of arrival."""
    used, memory = [0] * count, [0] * count
    unsaid: list[GpuNeed] = []
    for need, text in holders:
        devices = devices_of(text, need) if text else None
        if devices is None:
            unsaid.append(need)
        else:
            _take(used, memory, [device for device in devices if device < count], need, each)
    for need in unsaid:
        _take(used, memory, _lowest(used, memory, need, each), need, each)
    return used, memory


def left(used: Sequence[int], memory: Sequence[int], each: int) -> tuple[list[int], list[int]]:
    return [max(0, DEVICE_MILLI - taken) for taken in used], [max(0, each - taken) for taken in memory]


def _take(used: list[int], memory: list[int], devices: Sequence[int], need: GpuNeed, each: int) -> None:
    for device in devices:
        used[device] += need.milli
        memory[device] += each if need.whole else need.memory


def _lowest(used: list[int], memory: list[int], need: GpuNeed, each: int) -> list[int]:
    """The lowest devices that fit. Another scheduler bound the pod: if too few fit, it has those that are used
    least."""
    fits = [
        device
        for device, taken in enumerate(used)
        if taken + need.milli <= DEVICE_MILLI and memory[device] + need.memory <= max(each, need.memory)
    ]
    if len(fits) < need.devices:
        fits += sorted((device for device in range(len(used)) if device not in fits), key=lambda device: used[device])
    return fits[: need.devices]


class DeviceTable:
    """The devices that one resource stands for, on all rows. Only the Cluster writes this."""

    __slots__ = (
        "_count", "_each", "_free", "_free_cells", "_largest", "_memory", "_memory_cells", "_nodes", "_pods", "_taken",
        "_taken_cells", "_unannotated", "_used", "_used_cells", "_whole", "count_cells", "each_cells", "kinds",
        "largest_cells", "mix_version", "resource", "shown", "whole_cells",
    )  # fmt: skip

    def __init__(self, resource: str, nodes: NodeTable, pods: PodTable) -> None:
        self.resource = resource
        self._nodes = nodes
        self._pods = pods
        self._unannotated: dict[int, None] = {}
        """Rows with a pod without the annotation: there, a pod that comes or goes may move others."""
        self.kinds: dict[PodClass, int] = {}
        """The classes that need devices, and how many of their pods are on nodes."""
        self.mix_version = 0
        """Moves when the share of a class among them does, by `level`."""
        self._allocate(nodes.capacity, FIRST_WIDTH)
        for row, node in enumerate(nodes.objects):
            if node is not None:
                self.node_moved(row)
        for pod_row in pods.rows.values():
            kind = pods.kind(pod_row)
            if need_of(kind, resource).devices:
                self._count_kind(kind, 1)

    def _allocate(self, capacity: int, width: int) -> None:
        self._count: IntColumn = np.zeros(capacity, np.int64)
        self._each: IntColumn = np.zeros(capacity, np.int64)
        self._largest: IntColumn = np.zeros(capacity, np.int64)
        self._whole: IntColumn = np.zeros(capacity, np.int64)
        self._used: IntColumn = np.zeros((capacity, width), np.int64)
        self._taken: IntColumn = np.zeros((capacity, width), np.int64)
        """Of the memory."""
        self._free: IntColumn = np.zeros((capacity, width), np.int64)
        self._memory: IntColumn = np.zeros((capacity, width), np.int64)
        self._look()

    def _look(self) -> None:
        self._used_cells = self._used.data
        self._taken_cells = self._taken.data
        self._free_cells = self._free.data
        self._memory_cells = self._memory.data
        self.count_cells = self._count.data
        self.each_cells = self._each.data
        self.largest_cells = self._largest.data
        self.whole_cells = self._whole.data
        self.shown = Devices(
            *map(sealed, (self._count, self._each, self._free, self._memory, self._largest, self._whole))
        )

    # -- nodes ---------------------------------------------------------------------------------------------------

    def node_moved(self, row: int) -> None:
        """A node came to this row, changed or left it. Its pods must be gone before it leaves."""
        node = self._nodes.objects[row]
        count, each = (0, 0) if node is None else node_devices(node, allocatable(node).scalar, self.resource)
        self._fit(count)
        self._count[row], self._each[row] = count, each
        self._settle(row)

    def _fit(self, devices: int) -> None:
        capacity, width = self._free.shape
        if self._nodes.capacity <= capacity and devices <= width:
            return
        before = self._columns()
        self._allocate(max(capacity, self._nodes.capacity), max(width, devices))
        for old, new in zip(before, self._columns(), strict=True):
            new[tuple(map(slice, old.shape))] = old

    def _columns(self) -> tuple[IntColumn, ...]:
        columns = self._count, self._each, self._largest, self._whole
        return (*columns, self._used, self._taken, self._free, self._memory)

    def _settle(self, row: int) -> None:
        held = self.holders(row)
        self._unannotated.pop(row, None)
        if any(not text or devices_of(text, need) is None for need, text in held):
            self._unannotated[row] = None
        count, each = int(self._count[row]), int(self._each[row])
        used, memory = settle(count, each, held)
        for table in (self._used, self._taken, self._free, self._memory):
            table[row] = 0
        self._used[row, :count], self._taken[row, :count] = used, memory
        self._free[row, :count], self._memory[row, :count] = left(used, memory, each)
        self._sum_up(row)

    def _sum_up(self, row: int) -> None:
        free = self._free[row].tolist()
        self.largest_cells[row] = max(free)
        self.whole_cells[row] = free.count(DEVICE_MILLI)

    def holders(self, row: int, without: Container[int] = ()) -> list[Holder]:
        """Those on a row that need devices, in order of arrival, without some pod rows."""
        pods, found = self._pods, []
        for pod_row in self._nodes.pods[row]:
            need = need_of(pods.kind(pod_row), self.resource)
            if need.devices and pod_row not in without:
                found.append((need, pods.devices.get(pod_row, "")))
        return found

    # -- pods ----------------------------------------------------------------------------------------------------

    def moved(self, pod_row: int, kind: PodClass, node_row: int, sign: int) -> None:
        """A pod came to this row (1), and is among its pods; or left it (-1), and is not."""
        need = need_of(kind, self.resource)
        if not need.devices:
            return
        self._count_kind(kind, sign)
        text = self._pods.devices.get(pod_row, "")
        devices = devices_of(text, need) if text else None
        if devices is None or node_row in self._unannotated:
            self._settle(node_row)
        else:
            self._shift(node_row, devices, need, sign)
            self._sum_up(node_row)

    def _shift(self, row: int, devices: Sequence[int], need: GpuNeed, sign: int) -> None:
        """Take a pod's devices, or give them back."""
        each, count = int(self._each[row]), int(self._count[row])
        milli, memory = sign * need.milli, sign * (each if need.whole else need.memory)
        used, taken = self._used_cells, self._taken_cells
        for device in devices:
            if device < count:
                used[row, device] += milli
                taken[row, device] += memory
                # Free amounts stop at 0, where more was given than there is.
                self._free_cells[row, device] = max(0, DEVICE_MILLI - used[row, device])
                self._memory_cells[row, device] = max(0, each - taken[row, device])

    def _count_kind(self, kind: PodClass, sign: int) -> None:
        before = self.kinds.get(kind, 0)
        after = before + sign
        if after:
            self.kinds[kind] = after
        else:
            del self.kinds[kind]
        if level(before) != level(after):
            self.mix_version += 1


def level(count: int) -> int:
    """A count rounded down to its leading binary digits: it changes rarely, and depends on the count alone."""
    spare = max(0, count.bit_length() - LEVEL_BITS)
    return count >> spare << spare


def with_overlay(view: View, table: DeviceTable, resource: str, found: Devices) -> Devices:
    """The devices of a view, counted again on the rows where its overlay adds or removes a pod that needs some."""
    moved = (row for kind, row, _, _ in view.delta() if need_of(kind, resource).devices)
    rows = [row for row in dict.fromkeys(moved) if view.relative(row) >= 0]
    if not rows:
        return found
    free, memory, largest, whole = (column.copy() for column in (found.free, found.memory, found.largest, found.whole))
    for row in rows:
        at = view.relative(row)
        count, each = int(found.count[at]), int(found.each[at])
        holders = table.holders(row, view.removed)
        for place, (kind, node_row) in enumerate(view.added):
            need = need_of(kind, resource)
            if node_row == row and need.devices:
                holders.append((need, view.given[place] if place < len(view.given) else ""))
        free[at, :count], memory[at, :count] = left(*settle(count, each, holders), each)
        largest[at], whole[at] = free[at].max(), np.count_nonzero(free[at] == DEVICE_MILLI)
    return Devices(found.count, found.each, *map(sealed, (free, memory, largest, whole)))
