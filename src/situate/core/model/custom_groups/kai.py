"""PodGroup of scheduling.run.ai, of KAI."""

from collections import defaultdict
from types import MappingProxyType
from typing import Annotated, ClassVar, Final

import msgspec

from situate.core.model.base import Int32, Model
from situate.core.model.custom_groups.kind import (
    COUNTED_TOGETHER,
    NO_QUEUES,
    OWN_PRIORITIES,
    CustomGroupKind,
    CustomPodGroup,
    min_member,
)

MAX_SUB_GROUPS: Final = 1_000
"""A group with more is not read: they are counted whenever the gang is looked at."""


class KaiTopologyConstraint(Model, frozen=True, kw_only=True):
    required_topology_level: str | None = None


class KaiSubGroup(Model, frozen=True, kw_only=True):
    name: str = ""
    parent: str | None = None
    min_member: Int32 | None = None
    min_sub_group: Int32 | None = None


class KaiSpec(Model, frozen=True, kw_only=True):
    min_member: Int32 | None = None
    min_sub_group: Int32 | None = None
    sub_groups: Annotated[tuple[KaiSubGroup, ...], msgspec.Meta(max_length=MAX_SUB_GROUPS)] | None = None
    topology_constraint: KaiTopologyConstraint | None = None


class KaiPodGroup(CustomPodGroup, frozen=True, kw_only=True):
    SPEC: ClassVar[type[Model]] = KaiSpec


def _min_count(spec: KaiSpec) -> int:
    """minMember; without it, the fewest pods with which the subgroups can be satisfied."""
    if spec.min_member is not None or not spec.sub_groups:
        return min_member(spec)
    return _fewest(spec.min_sub_group, spec.sub_groups)


def _fewest(needed: int | None, groups: tuple[KaiSubGroup, ...]) -> int:
    """The fewest pods with which so many of the top subgroups are satisfied; None: all. A subgroup whose parents lead
    in a circle is below none of them, and does not count."""
    top: list[KaiSubGroup] = []
    children: defaultdict[str, list[KaiSubGroup]] = defaultdict(list)
    for one in {group.name: group for group in groups}.values():
        (children[one.parent] if one.parent else top).append(one)
    downwards, at = list(top), 0
    while at < len(downwards):
        downwards += children.get(downwards[at].name, ())
        at += 1
    fewest: dict[str, int] = {}
    for one in reversed(downwards):
        below = children.get(one.name)
        if below:
            fewest[one.name] = _smallest(one.min_sub_group, [fewest[child.name] for child in below])
        else:
            fewest[one.name] = max(0, 1 if one.min_member is None else one.min_member)
    return _smallest(needed, [fewest[one.name] for one in top])


def _smallest(needed: int | None, counts: list[int]) -> int:
    return sum(sorted(counts)[: len(counts) if needed is None else max(0, needed)])


def _topology_key(spec: KaiSpec) -> str:
    constraint = spec.topology_constraint
    return "" if constraint is None else constraint.required_topology_level or ""


KIND: Final = CustomGroupKind(
    model=KaiPodGroup,
    owner="KAI",
    group="scheduling.run.ai",
    versions=("v2alpha2",),
    pod_annotations=("pod-group-name",),
    acts_on=frozenset({"minMember", "topologyConstraint.requiredTopologyLevel"}),
    ignores=MappingProxyType(
        {
            "subGroups": f"{COUNTED_TOGETHER}, not by subgroup, and their topology constraints do not apply",
            "minSubGroup": f"{COUNTED_TOGETHER}: the fewest with which so many subgroups can be satisfied",
            "topologyConstraint.topology": "Topology objects are not read: the required level is a node label",
            "topologyConstraint.preferredTopologyLevel": "only the required level counts",
            "queue": NO_QUEUES,
            "priorityClassName": OWN_PRIORITIES,
            "preemptibility": "the priorities of pods decide who preempts whom",
            "preemptionDelay": "a gang may preempt as soon as it does not fit",
            "stalenessGracePeriod": "a gang that was whole once is left alone, however it shrinks",
            "markUnschedulable": "each pod gets its condition and events",
            "schedulingBackoff": "the queue's own backoff applies",
            "parallelism": "the group's minimum decides",
            "completions": "situate does not follow how pods end",
            "backoffLimit": "situate does not follow how pods end",
        }
    ),
    min_count=_min_count,
    topology_key=_topology_key,
)
