"""Pod groups."""

from situate.core.model.custom_groups.kind import CustomPodGroup
from situate.core.model.group import WHOLE_GROUP, PodGroup, topology_key
from situate.core.model.validate.meta import key_problems
from situate.core.model.validate.problem import Problems, invalid, required, unsupported

AT_LEAST_ONE = "must be greater than or equal to 1"
NOT_NEGATIVE = "must be greater than or equal to 0"
DISRUPTION_MODES = ("Pod", WHOLE_GROUP)


def group_problems(group: PodGroup | CustomPodGroup) -> Problems:
    if isinstance(group, CustomPodGroup):
        least = group.spec.get("minMember") or 0
        if least < 0:
            yield invalid("spec.minMember", least, NOT_NEGATIVE)
        if key := topology_key(group):
            yield from key_problems("spec.topologyConstraint.requiredTopologyLevel", key)
        return
    gang = group.spec.scheduling_policy.gang
    if gang is not None and gang.min_count < 1:
        yield invalid("spec.schedulingPolicy.gang.minCount", gang.min_count, AT_LEAST_ONE)
    constraints = group.spec.scheduling_constraints
    for index, one in enumerate(constraints.topology if constraints is not None else ()):
        path = f"spec.schedulingConstraints.topology[{index}].key"
        if not one.key:
            yield required(path)
        else:
            yield from key_problems(path, one.key)
    mode = group.spec.disruption_mode
    if isinstance(mode, str) and mode not in DISRUPTION_MODES:
        yield unsupported("spec.disruptionMode", mode, DISRUPTION_MODES)
