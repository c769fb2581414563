"""Devices: what a pod's claims ask for, what keeps the devices of nodes away from them, and who holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from situate.core.devices.claims import binding_failed
from situate.core.devices.extended import IN_MEMORY_NAME
from situate.core.explain.detail import NAMED, VerdictDetail, detail
from situate.core.explain.device_reasons import DeviceReason, DeviceRequestState, Obstacle, listed
from situate.core.explain.device_survey import DeviceSurvey, NodeGroup, survey
from situate.core.explain.formatting import counted
from situate.core.model.devices import ALL, ResourceClaim
from situate.core.model.meta import key_of
from situate.core.place.profile import Profile
from situate.core.plugins.support.device_demand import CANNOT_FIT, LEFT_OVER, NOT_AVAILABLE
from situate.core.state.classes import PodClass
from situate.core.state.columns import IdColumn
from situate.core.state.view import View

HOLDERS: Final = 3
"""How many of the largest holders are named."""


def device_details(profile: Profile, pod: PodClass, view: View, rows: IdColumn, text: str) -> list[VerdictDetail]:
    found = survey(profile, pod, view, rows)
    if found is None:
        return []
    if text == NOT_AVAILABLE:
        return [_elsewhere(found, claim, rows) for claim in found.judge.bound]
    if text == LEFT_OVER and (left := found.judge.demand.left_over) is not None:
        return [detail(view, rows, f"claim {key_of(left.metadata)} was left by an earlier attempt")]
    if text == CANNOT_FIT:
        names = dict.fromkeys(name for row in rows.tolist() for name in found.judge.unserved(row))
        return [detail(view, rows, f"no node and no device class has {', '.join(names)}")] if names else []
    return [*_bad_pools(found, rows), *_requests(found), *_joint(found)]


# -- claims that have their devices ------------------------------------------------------------------------------------


def _elsewhere(found: DeviceSurvey, claim: ResourceClaim, rows: IdColumn) -> VerdictDetail:
    results = () if claim.status.allocation is None else claim.status.allocation.devices.results
    devices = [f"{one.pool}/{one.device}" for one in results]
    where = f"claim {key_of(claim.metadata)} has {_some(devices)}"
    state = "could not be prepared" if binding_failed(claim) else "cannot be reached from here"
    users = [user.name for user in claim.status.reserved_for]
    used = f"; used by {_some(users)}" if users else "; no pod uses it"
    return detail(
        found.view,
        rows,
        f"{where}, which {state}{used}",
        claim=key_of(claim.metadata),
        devices=devices,
        users=users,
    )


# -- pools -------------------------------------------------------------------------------------------------------------


def _bad_pools(found: DeviceSurvey, rows: IdColumn) -> list[VerdictDetail]:
    where: dict[str, tuple[list[int], dict[str, None]]] = {}
    for row in rows.tolist():
        for pool, _ in found.judge.pools_at(row):
            if not pool.usable:
                state = "incomplete: not all of its slices are there" if pool.incomplete else "invalid"
                at, names = where.setdefault(state, ([], {}))
                names[f"{pool.driver}/{pool.name}"] = None
                if not at or at[-1] != row:
                    at.append(row)
    return [
        detail(
            found.view,
            np.array(at, np.intp),
            f"nothing is taken from {_some(list(names), 'pool')} ({state})",
            pools=list(names)[:HOLDERS],
            state=state.partition(":")[0],
        )
        for state, (at, names) in where.items()
    ]


# -- requests ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Sum:
    """One request over all nodes that are short of devices for it."""

    claim: ResourceClaim
    state: DeviceRequestState
    total: int = 0
    usable: int = 0
    kept: dict[DeviceReason, int] = field(default_factory=dict)
    holders: dict[tuple[str, str], int] = field(default_factory=dict)
    """(pod or none, claim) -> how many devices."""
    groups: list[tuple[DeviceRequestState, NodeGroup]] = field(default_factory=list)

    @property
    def rows(self) -> list[int]:
        return sorted(row for _, group in self.groups for row in group.rows)


def _requests(found: DeviceSurvey) -> list[VerdictDetail]:
    sums: dict[tuple[object, ...], _Sum] = {}
    for group in found.groups:
        for state in group.states:
            if not state.short:
                continue
            claim = group.claims[state.name.claim]
            one = sums.setdefault((key_of(claim.metadata), state.label), _Sum(claim, state))
            one.groups.append((state, group))
            times = len(group.rows)
            one.total += state.total * times
            one.usable += len(state.usable) * times
            for why, those in state.kept.items():
                one.kept[why] = one.kept.get(why, 0) + len(those) * times
            _count_holders(found, state, group, one.holders)
    return [_request(found, one) for one in sums.values()]


def _count_holders(
    found: DeviceSurvey, state: DeviceRequestState, group: NodeGroup, holders: dict[tuple[str, str], int]
) -> None:
    used = [at for why, those in state.kept.items() if why.obstacle is Obstacle.IN_USE for at in those]
    if not used:
        return
    for row in group.rows:
        devices = listed(found.judge.pools_at(row))
        for at in used:
            pool, one, _ = devices[at]
            for claim in found.holders.get((pool.driver, pool.name, one.device.name), ()):
                key = _holder(claim), key_of(claim.metadata)
                holders[key] = holders.get(key, 0) + 1


def _holder(claim: ResourceClaim) -> str:
    """The pods that use a claim; empty if none does."""
    space = claim.metadata.namespace
    return _some([f"{space}/{user.name}" for user in claim.status.reserved_for])


def _request(found: DeviceSurvey, one: _Sum) -> VerdictDetail:
    names = found.view.names
    order = sorted(one.groups, key=lambda pair: (pair[0].short, -pair[0].selected, -pair[0].total, pair[1].rows[0]))
    closest = [(state, row) for state, group in order for row in group.rows[:NAMED]][:NAMED]
    rows = one.rows
    extended = one.claim.metadata.name == IN_MEMORY_NAME
    return VerdictDetail(
        text=_request_text(found, one, closest, len(rows)),
        nodes=tuple(names[row] for row in rows[:NAMED]),
        count=len(rows),
        values={
            "claim": None if extended else key_of(one.claim.metadata),
            "request": one.state.label.removeprefix("request "),
            "resources": _resources(found, one) if extended else [],
            "deviceClass": one.state.ask.device_class_name,
            "asked": "all" if one.state.ask.allocation_mode == ALL else one.state.needed,
            "devices": one.total,
            "usable": one.usable,
            "kept": [_reason_values(why, count) for why, count in _worst_first(one.kept)],
            "heldBy": [
                {"pod": pod or None, "claim": claim, "devices": count}
                for (pod, claim), count in sorted(one.holders.items(), key=lambda pair: (-pair[1], pair[0]))[:HOLDERS]
            ],
            "closest": [_closest_values(found, state, row) for state, row in closest],
        },
    )


def _request_text(found: DeviceSurvey, one: _Sum, closest: Sequence[tuple[DeviceRequestState, int]], nodes: int) -> str:
    ask = one.state.ask
    wants = "all devices" if ask.allocation_mode == ALL else counted(one.state.needed, "device")
    text = f"{_asker(found, one)} asks for {wants} of class {ask.device_class_name}"
    if not one.total:
        return f"{text}; {'the node has' if nodes == 1 else 'these nodes have'} none"
    reasons = []
    for why, count in _worst_first(one.kept):
        if why.obstacle is Obstacle.CLASS:
            continue
        held = f" ({_held_by(one.holders)})" if why.obstacle is Obstacle.IN_USE and one.holders else ""
        reasons.append(f"{count} {'is' if count == 1 else 'are'} {why.text}{held}")
    such = counted(one.total, "such device")
    has = "the node has" if nodes == 1 else "these nodes have"
    text += f"; of {such} {', '.join(reasons)}" if reasons else f"; {has} {such}{'' if nodes == 1 else ' in all'}"
    if nodes == 1:
        return text
    near = "; ".join(
        f"{found.view.names[row]} has {len(state.usable)} usable of {state.total}"
        for state, row in closest
        if state.total
    )
    return f"{text}; closest: {near}" if near else text


def _asker(found: DeviceSurvey, one: _Sum) -> str:
    """`claim train-gpu, request gpu`, or `the request for example.com/gpu`."""
    if one.claim.metadata.name != IN_MEMORY_NAME:
        return f"claim {one.claim.metadata.name}, {one.state.label}"
    return f"the request for {' or '.join(_resources(found, one))}"


def _resources(found: DeviceSurvey, one: _Sum) -> list[str]:
    """The extended resources that a request of the claim for them stands for."""
    classes = found.view.cluster.objects.devices.extended.classes
    named = (name for name, _ in found.judge.demand.extended)
    return [name for name in named if classes.get(name) == one.state.ask.device_class_name]


def _held_by(holders: dict[tuple[str, str], int]) -> str:
    """`default/render 3, default/train 3 and 2 more`."""
    order = sorted(holders.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = [f"{pod or f'claim {claim}, which no pod uses,'} {count}" for (pod, claim), count in order[:HOLDERS]]
    more = f" and {len(order) - HOLDERS} more" if len(order) > HOLDERS else ""
    return ", ".join(shown) + more


def _worst_first(kept: dict[DeviceReason, int]) -> list[tuple[DeviceReason, int]]:
    """At most so many reasons as are readable; what is not of the class comes last."""
    order = sorted(kept.items(), key=lambda pair: (pair[0].obstacle is Obstacle.CLASS, -pair[1], pair[0].text))
    return order[: 2 * HOLDERS]


def _reason_values(why: DeviceReason, count: int) -> dict[str, Any]:
    return {"obstacle": why.obstacle.value, "text": why.text, "devices": count}


def _closest_values(found: DeviceSurvey, state: DeviceRequestState, row: int) -> dict[str, Any]:
    devices = listed(found.judge.pools_at(row))
    kept = []
    held: dict[str, int] = {}
    for why, those in state.kept.items():
        if why.obstacle is Obstacle.CLASS:
            continue
        names = [f"{devices[at][0].name}/{devices[at][1].device.name}" for at in those]
        kept.append({"obstacle": why.obstacle.value, "text": why.text, "devices": names})
        if why.obstacle is Obstacle.IN_USE:
            for at in those:
                pool, one, _ = devices[at]
                for claim in found.holders.get((pool.driver, pool.name, one.device.name), ()):
                    holder = _holder(claim) or f"claim {key_of(claim.metadata)}"
                    held[holder] = held.get(holder, 0) + 1
    return {
        "node": found.view.names[row],
        "devices": state.total,
        "usable": len(state.usable),
        "short": state.short,
        "kept": kept,
        "holders": [
            {"pod": name, "amount": str(count)} for name, count in sorted(held.items(), key=lambda one: -one[1])
        ],
    }


# -- what requests take from each other --------------------------------------------------------------------------------


def _joint(found: DeviceSurvey) -> list[VerdictDetail]:
    where: dict[str, list[int]] = {}
    for group in found.groups:
        for cause in group.joint:
            where.setdefault(cause.text, []).extend(group.rows)
    return [detail(found.view, np.array(sorted(rows), np.intp), text) for text, rows in where.items()]


def _some(names: Iterable[str], noun: str = "") -> str:
    known = list(names)
    more = f" and {len(known) - NAMED} more" if len(known) > NAMED else ""
    plural = f"{noun}{'' if len(known) == 1 else 's'} " if noun else ""
    return plural + ", ".join(known[:NAMED]) + more
