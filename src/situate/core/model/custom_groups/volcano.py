"""PodGroup of scheduling.volcano.sh, of Volcano."""

from types import MappingProxyType
from typing import Final

from situate.core.model.custom_groups.kind import (
    COUNTED_TOGETHER,
    NO_QUEUES,
    NO_RESOURCE_CHECK,
    OWN_PRIORITIES,
    CustomGroupKind,
    CustomPodGroup,
)


class VolcanoPodGroup(CustomPodGroup, frozen=True, kw_only=True):
    pass


KIND: Final = CustomGroupKind(
    model=VolcanoPodGroup,
    owner="Volcano",
    group="scheduling.volcano.sh",
    versions=("v1beta1",),
    pod_annotations=("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"),
    ignores=MappingProxyType(
        {
            "minTaskMember": f"{COUNTED_TOGETHER}, not by task",
            "minResources": NO_RESOURCE_CHECK,
            "queue": NO_QUEUES,
            "priorityClassName": OWN_PRIORITIES,
            "networkTopology": "HyperNodes are not read; the annotation situate.dev/gang-topology names a node label",
            "subGroupPolicy": f"{COUNTED_TOGETHER}, not by subgroup",
        }
    ),
)
