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
    """Of Kubernetes' own: unprefixed, or under kubernetes.io/."""
    return "/" not in name or _NATIVE in name


def is_extended(name: str) -> bool:
    """Of somebody else's, such as nvidia.com/gpu."""
    if is_native(name) or name.startswith(_QUOTA):
        return False
    return not qualified_name_problems(_QUOTA + name)


@lru_cache(maxsize=_CACHE_SIZE)
def is_scalar(name: str) -> bool:
    """Counted by name, beside cpu, memory, ephemeral-storage and pods. Other names are not counted at all."""
    return is_extended(name) or name.startswith((HUGE_PAGES, _ATTACHABLE_VOLUMES)) or _NATIVE in name


def may_be_pod_level(name: str) -> bool:
    """May be asked for by the pod itself, for all its containers."""
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES)
