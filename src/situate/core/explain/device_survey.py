"""What the nodes have for the claims of a pod: judged once for all nodes with equal devices in equal use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from situate.core.devices.allocated import PoolId
from situate.core.devices.constraints import attribute_of
from situate.core.devices.errors import AllocationError
from situate.core.explain.device_reasons import DeviceRequestState, listed, request_states
from situate.core.model.devices import DeviceConstraint, DeviceRequestAllocationResult, ResourceClaim
from situate.core.place.profile import Profile
from situate.core.plugins.dynamic_resources import DynamicResources
from situate.core.plugins.support.device_shortages import DeviceJudge, Pools, device_judge
from situate.core.state.classes import PodClass
from situate.core.state.columns import IdColumn
from situate.core.state.device_objects import DeviceObjects
from situate.core.state.view import View


@dataclass(frozen=True, slots=True)
class JointCause:
    """What keeps devices away although each request by itself could have its own. `constraint`: (claim, its number)."""

    text: str
    constraint: tuple[int, int] | None = None


@dataclass(slots=True)
class NodeGroup:
    """Nodes with equal devices in equal use. The positions of devices are the same on all of them."""

    claims: tuple[ResourceClaim, ...]
    states: list[DeviceRequestState]
    joint: list[JointCause]
    rows: list[int] = field(default_factory=list)

    @property
    def short(self) -> int:
        """How many devices are missing, of the alternatives that lack fewest."""
        fewest: dict[tuple[int, int], int] = {}
        for state in self.states:
            key = state.name[:2]
            fewest[key] = min(fewest.get(key, state.short), state.short)
        return sum(fewest.values())

    @property
    def lack(self) -> tuple[object, ...]:
        """Equal where the same kinds of things are missing."""
        kinds = [
            (state.name, bool(state.short), *sorted(why.obstacle.value for why in state.kept)) for state in self.states
        ]
        return (*kinds, *(one.text for one in self.joint))


@dataclass(slots=True)
class DeviceSurvey:
    judge: DeviceJudge
    view: View
    groups: list[NodeGroup]
    holders: dict[tuple[str, str, str], list[ResourceClaim]]
    """(driver, pool, device) -> the claims that have it."""
    results: dict[PoolId, list[tuple[ResourceClaim, DeviceRequestAllocationResult]]]

    def costs(self, rows: IdColumn) -> tuple[np.ndarray, np.ndarray]:
        """For each row, a number that is equal where the same is missing, and how much is."""
        ids: dict[tuple[object, ...], int] = {}
        number, cost = {}, {}
        for group in self.groups:
            at = ids.setdefault(group.lack, len(ids) + 1)
            for row in group.rows:
                number[row], cost[row] = at, group.short + bool(group.joint) * 0.5
        found = [(number.get(row, 0), cost.get(row, 0.0)) for row in rows.tolist()]
        return np.array([one for one, _ in found], np.int64), np.array([one for _, one in found], np.float64)


def survey(profile: Profile, pod: PodClass, view: View, rows: IdColumn) -> DeviceSurvey | None:
    """None if the pod asks for no devices, or is refused whatever the nodes have."""
    plugin = next((one for one in profile.filters if isinstance(one, DynamicResources)), None)
    judge = None if plugin is None else device_judge(plugin, pod, view)
    if judge is None:
        return None
    devices = view.cluster.objects.devices
    groups: dict[tuple[object, ...], NodeGroup] = {}
    for row in rows.tolist():
        claims = judge.claims_at(row)
        try:
            pools = judge.pools_at(row)
        except AllocationError:
            continue
        key = (*(devices.spec_id(one.spec) for one in claims), *((pool.content, use.key) for pool, use in pools))
        group = groups.get(key)
        if group is None:
            states = request_states(claims, pools, judge.inputs)
            group = groups[key] = NodeGroup(claims, states, [])
            if claims and not group.short:
                group.joint = joint_causes(judge, claims, pools, states)
        group.rows.append(row)
    return DeviceSurvey(judge, view, list(groups.values()), *_holders(devices))


def _holders(
    devices: DeviceObjects,
) -> tuple[
    dict[tuple[str, str, str], list[ResourceClaim]],
    dict[PoolId, list[tuple[ResourceClaim, DeviceRequestAllocationResult]]],
]:
    holders: dict[tuple[str, str, str], list[ResourceClaim]] = {}
    results: dict[PoolId, list[tuple[ResourceClaim, DeviceRequestAllocationResult]]] = {}
    for claim in devices.claims.values():
        for one in () if claim.status.allocation is None else claim.status.allocation.devices.results:
            if not one.admin_access:
                holders.setdefault((one.driver, one.pool, one.device), []).append(claim)
                results.setdefault((one.driver, one.pool), []).append((claim, one))
    return holders, results


# -- what requests take from each other --------------------------------------------------------------------------------


def joint_causes(
    judge: DeviceJudge, claims: Sequence[ResourceClaim], pools: Pools, states: Sequence[DeviceRequestState]
) -> list[JointCause]:
    found = []
    unjudged = judge.problem(claims, pools)
    if not unjudged and judge.can_allocate(claims, pools):
        return []
    for number, claim in enumerate(claims):
        for at, constraint in enumerate(claim.spec.devices.constraints):
            without = [*claims[:number], without_constraint(claim, at), *claims[number + 1 :]]
            if judge.can_allocate(without, pools):
                of = [state for state in states if state.name.claim == number and _concerns(constraint, claim, state)]
                found.append(JointCause(_constraint_text(constraint, of, pools), (number, at)))
    if found or unjudged:
        return found
    if any(claim.spec.devices.constraints for claim in claims):
        bare = [_unconstrained(claim) for claim in claims]
        if judge.can_allocate(bare, pools):
            return [JointCause("its constraints cannot be met together")]
    needed = sum(min(state.needed for state in those) for those in _by_request(states))
    free = {position for state in states for position in state.usable}
    return [
        JointCause(
            f"its requests together need {needed} devices, and {len(free)} {'is' if len(free) == 1 else 'are'} usable"
        )
    ]


def without_constraint(claim: ResourceClaim, at: int) -> ResourceClaim:
    devices = claim.spec.devices
    kept = (*devices.constraints[:at], *devices.constraints[at + 1 :])
    return replace(claim, spec=replace(claim.spec, devices=replace(devices, constraints=kept)))


def _unconstrained(claim: ResourceClaim) -> ResourceClaim:
    while claim.spec.devices.constraints:
        claim = without_constraint(claim, 0)
    return claim


def _by_request(states: Iterable[DeviceRequestState]) -> list[list[DeviceRequestState]]:
    found: dict[tuple[int, int], list[DeviceRequestState]] = {}
    for state in states:
        found.setdefault(state.name[:2], []).append(state)
    return list(found.values())


def _concerns(constraint: DeviceConstraint, claim: ResourceClaim, state: DeviceRequestState) -> bool:
    base = claim.spec.devices.requests[state.name.request].name
    return not constraint.requests or any(one.partition("/")[0] == base for one in constraint.requests)


def _constraint_text(constraint: DeviceConstraint, states: Sequence[DeviceRequestState], pools: Pools) -> str:
    devices = listed(pools)
    attribute = constraint.match_attribute or constraint.distinct_attribute or ""
    values: dict[object, int] = {}
    for position in sorted({position for state in states for position in state.usable}):
        _, one, _ = devices[position]
        value = attribute_of(one.device, one.slice.spec.driver, attribute)
        values[value] = values.get(value, 0) + 1
    needed = sum(min(state.needed for state in those) for those in _by_request(states))
    if constraint.match_attribute is None:
        told = f"{needed} devices need different values, and there are {len(values)}"
        return f"constraint distinctAttribute {attribute}: {told}"
    most = max(values.values(), default=0)
    told = f"{needed} devices need the same value, and at most {most} {'has' if most == 1 else 'have'} one"
    return f"constraint matchAttribute {attribute}: {told}"
