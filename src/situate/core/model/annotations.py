"""The annotations of pods that scheduling reads. All others are for people and for other programs.

What a plugin reads of a pod is part of the pod's class, or two pods with different answers would share one; so each
annotation that a plugin reads has to be in READ.
"""

from collections.abc import Mapping
from typing import Final

GPU_MILLI: Final = "situate.dev/gpu-milli"
"""The share of one GPU that a pod asks for, in thousandths. A resource of the same name says the same."""
GPU_MEMORY: Final = "situate.dev/gpu-memory"
"""How much memory it asks of each GPU that it gets. A resource of the same name says the same."""
GPU_DEVICES: Final = "situate.dev/gpu-devices"
"""Which of its node's GPUs a pod was given. It is written when the pod is bound and differs between pods of a class, so
it is not in READ: it is kept beside each bound pod."""
LATENCY_TO: Final = "situate.dev/latency-to"
"""The place that a pod is to be near to, by its name in the table of the plugin Latency."""
LATENCY_LIMIT_MS: Final = "situate.dev/latency-limit-ms"
"""How many milliseconds from there its node may be at most."""
LATENCY_PREFERENCE: Final = "situate.dev/latency-preference"
"""The weight of a low latency, 0 to 100."""

READ: Final = (GPU_MEMORY, GPU_MILLI, LATENCY_LIMIT_MS, LATENCY_PREFERENCE, LATENCY_TO)
"""In the order of their names."""
_ANY: Final = frozenset(READ)


def annotations_read(annotations: Mapping[str, str]) -> dict[str, str]:
    """Those that scheduling reads, in the order of their names."""
    if not annotations or _ANY.isdisjoint(annotations):
        return {}
    return {key: annotations[key] for key in READ if key in annotations}
