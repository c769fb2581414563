"""Resource names: which of them scheduling counts, and how."""

from functools import lru_cache

from situate.core.model.names import qualified_name_problems

CPU, MEMORY, EPHEMERAL_STORAGE, PODS, STORAGE = "cpu", "memory", "ephemeral-storage", "pods", "storage"

HUGE_PAGES = "hugepages-"
_NATIVE = "kubernetes.io/"
_ATTACHABLE_VOLUMES = "attachable-volumes-"
_QUOTA = "requests."
_CACHE_SIZE = 1_024


def is_native(name: str) -> bool:
    """A native resource: unprefixed, or under kubernetes.io/."""
    return "/" not in name or _NATIVE in name


def is_extended(name: str) -> bool:
    """An extended resource, such as nvidia.com/gpu."""
    if is_native(name) or name.startswith(_QUOTA):
        return False
    return not qualified_name_problems(_QUOTA + name)


@lru_cache(maxsize=_CACHE_SIZE)
def is_scalar(name: str) -> bool:
    """A resource counted by name, besides cpu, memory, ephemeral-storage and pods. Other names are not counted."""
    return is_extended(name) or name.startswith((HUGE_PAGES, _ATTACHABLE_VOLUMES)) or _NATIVE in name


def may_be_pod_level(name: str) -> bool:
    """A resource that pod-level requests may name."""
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES)
