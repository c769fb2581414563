"""GpuShare: shares of a GPU and whole GPUs, counted by device; and which of a node's devices a pod gets.

A share never spans two devices, however much is free on both together. A whole device is one of which no pod has a
share. A node may have enough free capacity in total and still no room for the pod on one device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias, get_args

import numpy as np

from situate.core.contract import FITS, Codes, Reason, Refusal, Wake, WakeEvent
from situate.core.model.annotations import GPU_DEVICES
from situate.core.model.field_errors import child, unsupported
from situate.core.model.gpu import GPU_RESOURCE, GpuNeed
from situate.core.plugins.support.arguments import PluginArgs, label_name_problems
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.devices import Devices, need_of
from situate.core.state.view import View

DeviceRule: TypeAlias = Literal["BestFit", "WorstFit", "FirstFit"]
DEVICE_RULES: Final[tuple[str, ...]] = get_args(DeviceRule)

TOO_FEW: Final = 1
TOO_FULL: Final = 2
NOT_WHOLE: Final = 3
TOO_SMALL: Final = 4
NO_MEMORY: Final = 5


class GpuShareArgs(PluginArgs, frozen=True, kw_only=True):
    """`device`: BestFit, WorstFit or FirstFit, of those that have room for a share."""

    resource: str = GPU_RESOURCE
    device: str = "BestFit"

    def validate(self, path: str) -> list[str]:
        problems = label_name_problems(child(path, "resource"), self.resource)
        if self.device not in DEVICE_RULES:
            problems.append(unsupported(child(path, "device"), self.device, DEVICE_RULES))
        return problems


@dataclass(frozen=True, slots=True)
class GpuShare:
    """`resource` stands for whole devices. `device` chooses among the devices with room for a share."""

    resource: str = GPU_RESOURCE
    device: DeviceRule = "BestFit"

    name: ClassVar[str] = "GpuShare"
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason("node(s) didn't have enough GPUs", eviction_helps=False),
        Reason("node(s) didn't have enough room on a single GPU", eviction_helps=True),
        Reason("node(s) didn't have enough GPUs wholly free", eviction_helps=True),
        Reason("node(s) had GPUs with too little memory", eviction_helps=False),
        Reason("node(s) didn't have enough free memory on a single GPU", eviction_helps=True),
    )
    wakes_on: ClassVar[frozenset[Wake]] = frozenset(
        {Wake.POD_DELETED, Wake.POD_SCALED_DOWN, Wake.NODE_ADDED, Wake.NODE_ALLOCATABLE, Wake.NODE_LABEL}
    )

    @classmethod
    def from_args(cls, args: GpuShareArgs, points: frozenset[str]) -> GpuShare:
        return cls(args.resource, args.device)  # type: ignore[arg-type]

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        """A bound pod that leaves or requests less helps if it had a device."""
        held = event.pod_before or event.pod
        if event.own or event.node is not None or held is None:
            return True
        return bool(need_of(held, self.resource).devices)

    def check(self, pod: PodClass, view: View) -> Codes | Refusal | None:
        need = need_of(pod, self.resource)
        if need.problem:
            return Refusal(need.problem)
        if not need.devices:
            return None
        devices = view.devices(self.resource)
        codes: Codes = np.zeros(view.size, np.uint8)
        if need.memory:
            codes[_short_of_memory(need, devices)] = NO_MEMORY
        if need.whole:
            codes[devices.whole < need.devices] = NOT_WHOLE
        else:
            codes[devices.largest < need.milli] = TOO_FULL
        if need.memory:
            codes[devices.each < need.memory] = TOO_SMALL  # evicting pods does not help
        codes[devices.count < need.devices] = TOO_FEW
        return codes

    def checker_at(self, pod: PodClass, view: View) -> Callable[[int], int]:
        """The scalar twin of `check`."""
        need = need_of(pod, self.resource)
        if need.memory:
            return lambda row: _code(self.check(pod, view.at(row)))
        table = view.cluster.devices_of(self.resource)
        count, wanted = table.count_cells, need.devices
        room, least = (table.whole_cells, wanted) if need.whole else (table.largest_cells, need.milli)
        short = NOT_WHOLE if need.whole else TOO_FULL

        def check_at(row: int) -> int:
            if room[row] >= least:
                return FITS
            return TOO_FEW if count[row] < wanted else short

        return check_at

    def assign(self, pod: PodClass, view: View, row: int) -> Mapping[str, str]:
        need = need_of(pod, self.resource)
        if not need.devices:
            return {}
        devices = view.devices(self.resource)
        chosen = choose(need, devices.free[row].tolist(), devices.memory[row].tolist(), self.device)
        return device_annotation(chosen)


def fitting(need: GpuNeed, free: Sequence[int], memory: Sequence[int]) -> list[int]:
    """The devices with enough room for the pod."""
    return [
        device
        for device, milli in enumerate(free)
        if milli >= need.milli and (need.memory <= memory[device] or not need.memory)
    ]


def choose(need: GpuNeed, free: Sequence[int], memory: Sequence[int], rule: DeviceRule) -> tuple[int, ...]:
    """The devices that a pod gets, by the free thousandths and bytes of each; none if too few fit.

    Among equals, and among entirely free devices, the lowest number.
    """
    found = fitting(need, free, memory)
    if rule == "BestFit":
        found.sort(key=lambda device: free[device])
    elif rule == "WorstFit":
        found.sort(key=lambda device: -free[device])
    return tuple(sorted(found[: need.devices])) if len(found) >= need.devices else ()


def device_annotation(devices: Sequence[int]) -> dict[str, str]:
    """The annotation's value."""
    return {GPU_DEVICES: ",".join(map(str, devices))} if devices else {}


def _short_of_memory(need: GpuNeed, devices: Devices) -> Mask:
    """Rows without enough devices that have both the capacity and the memory."""
    fits = (devices.free >= need.milli) & (devices.memory >= need.memory)
    short: Mask = np.count_nonzero(fits, axis=1) < need.devices
    return short


def _code(verdict: Codes | Refusal | None) -> int:
    return int(verdict[0]) if isinstance(verdict, np.ndarray) else FITS
