"""GPUs as devices: what a pod requests, and which of a node's devices it has.

A pod requests a share of one device, in thousandths, or whole devices, never both. The share is an annotation or a
request; whole devices are an extended resource. The bind writes the assigned devices in an annotation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from situate.core.model.annotations import GPU_MEMORY, GPU_MILLI
from situate.core.model.node import Node
from situate.core.model.quantity import QuantityError, value

GPU_RESOURCE: Final = "nvidia.com/gpu"
"""The default resource for whole devices."""
DEVICE_MILLI: Final = 1_000
"""A whole device."""
MOST_DEVICES: Final = 256
"""How many devices of a node are tracked. Pods do not get those beyond."""
MOST_MEMORY: Final = 1 << 50
"""No device has more, and sums stay within an int64."""
DISCOVERED_MEMORY: Final = "nvidia.com/gpu.memory"
"""The label of NVIDIA's feature discovery with the memory of each device, in MiB."""

_MIB: Final = 1 << 20
_CACHE_SIZE: Final = 4_096

BAD_SHARE: Final = 'annotation {}: "{}" is not a whole number from 1 to {}'
TOO_LARGE: Final = "{} of {} were requested: a share of one GPU is at most {}, and whole GPUs are requested as {}"
BAD_MEMORY: Final = 'annotation {}: "{}" is not a quantity of memory'
TWO_SHARES: Final = "the annotation {0} says {1} and the requests say {2} of {0}"
BOTH: Final = "a pod can ask for a share of a GPU or for whole GPUs, not for both"
MEMORY_ALONE: Final = "{} without a GPU"


@dataclass(frozen=True, slots=True)
class GpuNeed:
    """How many devices a pod needs, and how much of each."""

    devices: int = 0
    milli: int = 0
    memory: int = 0
    """Bytes; 0 if not requested."""
    problem: str = ""
    """The problem with the request; then the pod gets no device."""

    @property
    def whole(self) -> bool:
        """Whether it needs entire devices, with all their memory."""
        return self.milli == DEVICE_MILLI


NO_GPU: Final = GpuNeed()


def gpu_need(annotations: Mapping[str, str], scalar: Mapping[str, int], resource: str = GPU_RESOURCE) -> GpuNeed:
    """The need of a pod with these annotations and requests; `resource` stands for whole devices."""
    if not annotations and not scalar:
        return NO_GPU
    share, memory = annotations.get(GPU_MILLI), annotations.get(GPU_MEMORY)
    return _need(share, memory, scalar.get(GPU_MILLI, 0), scalar.get(GPU_MEMORY, 0), scalar.get(resource, 0), resource)


@lru_cache(maxsize=_CACHE_SIZE)
def _need(share: str | None, memory: str | None, milli: int, memory_bytes: int, whole: int, resource: str) -> GpuNeed:
    if share is not None:
        noted = _whole_number(share)
        if not 1 <= noted <= DEVICE_MILLI:
            return GpuNeed(problem=BAD_SHARE.format(GPU_MILLI, share, DEVICE_MILLI))
        if milli and milli != noted:
            return GpuNeed(problem=TWO_SHARES.format(GPU_MILLI, noted, milli))
        milli = noted
    if memory is not None:
        try:
            memory_bytes = value(memory)
        except QuantityError:
            memory_bytes = -1
        if memory_bytes < 0:
            return GpuNeed(problem=BAD_MEMORY.format(GPU_MEMORY, memory))
    memory_bytes = min(memory_bytes, MOST_MEMORY)
    if milli > DEVICE_MILLI:
        return GpuNeed(problem=TOO_LARGE.format(milli, GPU_MILLI, DEVICE_MILLI, resource))
    if milli and whole:
        return GpuNeed(problem=BOTH)
    if not milli and not whole:
        return GpuNeed(problem=MEMORY_ALONE.format(GPU_MEMORY)) if memory_bytes else NO_GPU
    return GpuNeed(1, milli, memory_bytes) if milli else GpuNeed(whole, DEVICE_MILLI, memory_bytes)


def _whole_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 4 else 0


@lru_cache(maxsize=_CACHE_SIZE)
def devices_of(text: str, need: GpuNeed) -> tuple[int, ...] | None:
    """The devices in a pod's annotation; None if there are not as many as the pod needs."""
    parts = text.split(",")
    if len(parts) != need.devices or not all(part.isascii() and part.isdecimal() and len(part) <= 4 for part in parts):
        return None
    found = tuple(int(part) for part in parts)
    return found if len(dict.fromkeys(found)) == len(found) else None


def node_devices(node: Node, scalar: Mapping[str, int], resource: str = GPU_RESOURCE) -> tuple[int, int]:
    """The number of a node's devices and the memory of each, in bytes; 0 if unknown. `scalar`: its allocatable.

    Thousandths take precedence: a node that advertises them shares its devices.
    """
    count = scalar[GPU_MILLI] // DEVICE_MILLI if GPU_MILLI in scalar else scalar.get(resource, 0)
    count = max(0, min(count, MOST_DEVICES))
    return count, _memory_each(node, scalar, count) if count else 0


def _memory_each(node: Node, scalar: Mapping[str, int], count: int) -> int:
    """As a resource, the memory is the total of all devices; as an annotation or label, that of each."""
    if GPU_MEMORY in scalar:
        return min(scalar[GPU_MEMORY] // count, MOST_MEMORY)
    metadata = node.metadata
    try:
        declared = metadata.annotations.get(GPU_MEMORY) or metadata.labels.get(GPU_MEMORY)
        if declared:
            return max(0, min(value(declared), MOST_MEMORY))
        return max(0, min(value(metadata.labels.get(DISCOVERED_MEMORY, 0)) * _MIB, MOST_MEMORY))
    except QuantityError:
        return 0
