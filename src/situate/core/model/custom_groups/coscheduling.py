"""PodGroup of scheduling.x-k8s.io, of the coscheduling plugin of kubernetes-sigs/scheduler-plugins."""

from types import MappingProxyType
from typing import Final

from situate.core.model.custom_groups.kind import NO_RESOURCE_CHECK, CustomGroupKind, CustomPodGroup


class CoschedulingPodGroup(CustomPodGroup, frozen=True, kw_only=True):
    pass


KIND: Final = CustomGroupKind(
    model=CoschedulingPodGroup,
    owner="the coscheduling plugin",
    group="scheduling.x-k8s.io",
    versions=("v1alpha1",),
    pod_labels=("scheduling.x-k8s.io/pod-group",),
    ignores=MappingProxyType(
        {
            "minResources": NO_RESOURCE_CHECK,
            "scheduleTimeoutSeconds": "no room is held while the gang waits, so nothing times out",
        }
    ),
)
