"""The pod annotations that scheduling reads.

Whatever a plugin reads of a pod must be part of the pod's class, or two pods with different answers would share one. So
each annotation that a plugin reads must be in READ.
"""

from collections.abc import Mapping
from typing import Final

GPU_MILLI: Final = "situate.dev/gpu-milli"
"""The share of one GPU that a pod requests, in thousandths. A resource of the same name means the same."""
GPU_MEMORY: Final = "situate.dev/gpu-memory"
"""The memory that a pod requests of each of its GPUs. A resource of the same name means the same."""
GPU_DEVICES: Final = "situate.dev/gpu-devices"
"""The GPUs of its node that a pod was assigned. The bind writes it, and it differs between pods of a class, so it is
not in READ but kept with each bound pod."""
LATENCY_TO: Final = "situate.dev/latency-to"
"""The place that a pod should be near, by its name in the table of the plugin Latency."""
LATENCY_LIMIT_MS: Final = "situate.dev/latency-limit-ms"
"""The maximum latency to that place, in milliseconds."""
LATENCY_PREFERENCE: Final = "situate.dev/latency-preference"
"""The weight of a low latency, 0 to 100."""

READ: Final = (GPU_MEMORY, GPU_MILLI, LATENCY_LIMIT_MS, LATENCY_PREFERENCE, LATENCY_TO)
"""Sorted by name."""
_ANY: Final = frozenset(READ)


def annotations_read(annotations: Mapping[str, str]) -> dict[str, str]:
    """The annotations that scheduling reads, sorted by name."""
    if not annotations or _ANY.isdisjoint(annotations):
        return {}
    return {key: annotations[key] for key in READ if key in annotations}
