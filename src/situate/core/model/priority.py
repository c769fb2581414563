"""A pod's priority from its PriorityClass, as the API server's admission sets it on creation."""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from situate.core.model.meta import ObjectMeta
from situate.core.model.pod import Pod
from situate.core.model.policy import PriorityClass

# Every cluster has these two.
_SYSTEM = (
    PriorityClass(metadata=ObjectMeta(name="system-cluster-critical"), value=2_000_000_000),
    PriorityClass(metadata=ObjectMeta(name="system-node-critical"), value=2_000_001_000),
)


class UnknownPriorityClassError(ValueError):
    """The pod names a class that does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no PriorityClass with name {name} was found")
        self.name = name


class PriorityClasses(msgspec.Struct, frozen=True):
    by_name: Mapping[str, PriorityClass]
    default: PriorityClass | None
    """The global default class."""


def priority_classes(classes: Iterable[PriorityClass]) -> PriorityClasses:
    """All classes of a cluster. Of several global defaults, the lowest wins."""
    by_name = {one.metadata.name: one for one in (*_SYSTEM, *classes)}
    defaults = [one for one in by_name.values() if one.global_default]
    return PriorityClasses(by_name, min(defaults, key=lambda one: one.value, default=None))


def with_priority(pod: Pod, classes: PriorityClasses) -> Pod:
    """The pod with its class's priority and preemption policy. The pod's own values stay.

    Without any class the pod has no priority, which counts as 0. Raises UnknownPriorityClassError.
    """
    spec = pod.spec
    if spec.priority is not None:
        return pod
    if spec.priority_class_name:
        found = classes.by_name.get(spec.priority_class_name)
        if found is None:
            raise UnknownPriorityClassError(spec.priority_class_name)
    else:
        found = classes.default
    if found is None:
        return pod
    policy = spec.preemption_policy or found.preemption_policy
    name = found.metadata.name
    return replace(pod, spec=replace(spec, priority=found.value, preemption_policy=policy, priority_class_name=name))
