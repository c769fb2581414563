"""Why a pod's devices cannot be decided at all. The texts are kube-scheduler's."""


class AllocationError(Exception):
    """The pod fails: an object is wrong, or the search took too long. Other nodes do not matter any more."""
