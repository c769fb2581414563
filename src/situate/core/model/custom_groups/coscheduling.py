"""PodGroup of scheduling.x-k8s.io, of the coscheduling plugin of kubernetes-sigs/scheduler-plugins."""

from types import MappingProxyType
from typing import ClassVar, Final

from situate.core.model.base import Int32, Model
from situate.core.model.custom_groups.kind import NO_RESOURCE_CHECK, CustomGroupKind, CustomPodGroup


class CoschedulingSpec(Model, frozen=True, kw_only=True):
    min_member: Int32 | None = None


class CoschedulingPodGroup(CustomPodGroup, frozen=True, kw_only=True):
    SPEC: ClassVar[type[Model]] = CoschedulingSpec


def _min_count(spec: CoschedulingSpec) -> int:
    return max(0, spec.min_member or 0)


KIND: Final = CustomGroupKind(
    model=CoschedulingPodGroup,
    owner="the coscheduling plugin",
    group="scheduling.x-k8s.io",
    versions=("v1alpha1",),
    pod_labels=("scheduling.x-k8s.io/pod-group",),
    acts_on=frozenset({"minMember"}),
    ignores=MappingProxyType(
        {
            "minResources": NO_RESOURCE_CHECK,
            "scheduleTimeoutSeconds": "no room is held while the gang waits, so nothing times out",
        }
    ),
    min_count=_min_count,
)
