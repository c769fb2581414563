"""PodGroups: the minimum number of pods to schedule together.

- `PodGroup` of scheduling.k8s.io: v1alpha2 (Kubernetes 1.36) and v1beta1 (1.37), which differ in `disruptionMode`, a
  string in the one, a choice of two objects in the other; and in the name of the condition that reports scheduling.
- The kinds PodGroup of other schedulers: `custom_groups`.

The functions here answer for all of them.
"""

from situate.core.model.base import Int32, Model
from situate.core.model.custom_groups.kind import CustomPodGroup
from situate.core.model.custom_groups.table import kind_of
from situate.core.model.meta import ObjectMeta

WHOLE_GROUP = "PodGroup"
POD_GROUP_SCHEDULED = "PodGroupScheduled"
POD_GROUP_INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
_SCHEDULED = (POD_GROUP_SCHEDULED, POD_GROUP_INITIALLY_SCHEDULED)


class EmptyObject(Model, frozen=True, kw_only=True):
    """A choice without fields."""


class GangSchedulingPolicy(Model, frozen=True, kw_only=True):
    min_count: Int32 = 0


class PodGroupSchedulingPolicy(Model, frozen=True, kw_only=True):
    """One of the two. Where neither is set, the group is basic."""

    basic: EmptyObject | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Model, frozen=True, kw_only=True):
    key: str = ""


class PodGroupSchedulingConstraints(Model, frozen=True, kw_only=True):
    topology: tuple[TopologyConstraint, ...] = ()


class DisruptionMode(Model, frozen=True, kw_only=True):
    """v1beta1's form, one of the two: evict pods one by one, or all with the first."""

    single: EmptyObject | None = None
    all: EmptyObject | None = None


class PodGroupSpec(Model, frozen=True, kw_only=True):
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: str | DisruptionMode | None = None


class PodGroupCondition(Model, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class PodGroupStatus(Model, frozen=True, kw_only=True):
    conditions: tuple[PodGroupCondition, ...] = ()


class PodGroup(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


def is_scheduled(group: PodGroup | CustomPodGroup | None) -> bool:
    """Whether the group's condition reports that it was scheduled once."""
    if not isinstance(group, PodGroup):
        return False
    return any(one.type in _SCHEDULED and one.status == "True" for one in group.status.conditions)


def min_count(group: PodGroup | CustomPodGroup) -> int:
    """The minimum number of pods to place together; 0 if the group is not a gang."""
    if isinstance(group, CustomPodGroup):
        return kind_of(group).min_count(group.acted_on)
    gang = group.spec.scheduling_policy.gang
    return 0 if gang is None else gang.min_count


def topology_key(group: PodGroup | CustomPodGroup) -> str:
    """The node label whose value all pods of the group must share; empty if none. Kubernetes allows one."""
    if isinstance(group, CustomPodGroup):
        return kind_of(group).topology_key(group.acted_on)
    if group.spec.scheduling_constraints is None:
        return ""
    topology = group.spec.scheduling_constraints.topology
    return topology[0].key if topology else ""


def disrupted_whole(group: PodGroup | CustomPodGroup) -> bool:
    """Whether evicting one pod of the group evicts all; false by default."""
    if isinstance(group, CustomPodGroup):
        return False
    mode = group.spec.disruption_mode
    return mode == WHOLE_GROUP if mode is None or isinstance(mode, str) else mode.all is not None
