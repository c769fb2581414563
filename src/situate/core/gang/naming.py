"""How a pod names its gang. Of these ways, the first that a pod uses counts:

- `spec.schedulingGroup.podGroupName`, with a PodGroup of scheduling.k8s.io;
- the label or annotation of a custom PodGroup kind, in the order of `CUSTOM_GROUP_KINDS`;
- the labels `situate.dev/gang` and `situate.dev/gang-size`, with no object at all.

What the PodGroup does not say, the pods may: `situate.dev/gang-topology` and `situate.dev/gang-disruption`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique
from types import MappingProxyType
from typing import Final

from situate.core.model.custom_groups import coscheduling, kai, volcano
from situate.core.model.custom_groups.kind import CustomPodGroup
from situate.core.model.custom_groups.table import CUSTOM_GROUP_KINDS, kind_of
from situate.core.model.group import PodGroup
from situate.core.model.pod import Pod

GANG_LABEL: Final = "situate.dev/gang"
SIZE_LABEL: Final = "situate.dev/gang-size"
TOPOLOGY_LABEL: Final = "situate.dev/gang-topology"
DISRUPTION_LABEL: Final = "situate.dev/gang-disruption"
DISRUPT_ALL: Final = "all"

SIZE_DIGITS: Final = 6
"""A size with more digits is invalid."""

SHORT_KEYS: Final = MappingProxyType(
    {
        "zone": "topology.kubernetes.io/zone",
        "region": "topology.kubernetes.io/region",
        "hostname": "kubernetes.io/hostname",
    }
)
"""The value of a label cannot contain a slash, so these keys have short names. An annotation can have the whole key."""


@unique
class GangSource(Enum):
    """Where a gang is defined: the API group of its PodGroup, or our own labels."""

    POD_GROUP = "scheduling.k8s.io"
    COSCHEDULING = coscheduling.KIND.group
    VOLCANO = volcano.KIND.group
    KAI = kai.KIND.group
    LABELS = "situate.dev"


_CUSTOM: Final = tuple(
    (key, is_label, GangSource(kind.group))
    for kind in CUSTOM_GROUP_KINDS
    for keys, is_label in ((kind.pod_labels, True), (kind.pod_annotations, False))
    for key in keys
)
"""The labels and annotations of the custom kinds, in the order in which they count."""


@dataclass(frozen=True, slots=True)
class GangName:
    source: GangSource
    namespace: str
    name: str

    @property
    def id(self) -> str:
        return f"{self.source.value}:{self.namespace}/{self.name}"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def gang_of(pod: Pod) -> GangName | None:
    """The gang that a pod names, whether or not it exists."""
    group = pod.spec.scheduling_group
    if group is not None and group.pod_group_name:
        return GangName(GangSource.POD_GROUP, pod.metadata.namespace, group.pod_group_name)
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    if not labels and not annotations:
        return None
    for key, is_label, source in _CUSTOM:
        if name := (labels if is_label else annotations).get(key, ""):
            return GangName(source, pod.metadata.namespace, name)
    if name := labels.get(GANG_LABEL, ""):
        return GangName(GangSource.LABELS, pod.metadata.namespace, name)
    return None


def gang_of_group(group: PodGroup | CustomPodGroup) -> GangName:
    """The gang that a PodGroup defines, whether or not it has pods."""
    source = GangSource(kind_of(group).group) if isinstance(group, CustomPodGroup) else GangSource.POD_GROUP
    return GangName(source, group.metadata.namespace, group.metadata.name)


def size_said(pod: Pod) -> int | None:
    """The gang size in the pod's label; None if that is no number from 1 up."""
    text = pod.metadata.labels.get(SIZE_LABEL, "")
    if not (text.isascii() and text.isdigit() and len(text) <= SIZE_DIGITS):
        return None
    return int(text) or None


def topology_said(pod: Pod) -> str:
    """The node label that all pods of the gang must agree in; empty if the pod names none."""
    if key := pod.metadata.annotations.get(TOPOLOGY_LABEL, ""):
        return key
    value = pod.metadata.labels.get(TOPOLOGY_LABEL, "")
    return SHORT_KEYS.get(value, value)


def wants_disruption_of_all(pod: Pod) -> bool:
    return pod.metadata.labels.get(DISRUPTION_LABEL, "") == DISRUPT_ALL
