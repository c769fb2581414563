"""Candidate fixes for devices: changes of claims, and devices given back, that let one node satisfy a pod's claims.

A change is first tried on the node's devices alone, which is fast. The caller tries what helps there on the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any, Final

from msgspec.structs import asdict
from msgspec.structs import replace as changed

from situate.core.devices.errors import AllocationError
from situate.core.devices.extended import IN_MEMORY_NAME
from situate.core.devices.requests import alternatives
from situate.core.explain import edits
from situate.core.explain.claim_edits import Claims, Edit, dropped, edit_of, path_of, subject_of, whose_of
from situate.core.explain.device_reasons import (
    DeviceRequestState,
    Obstacle,
    RequestName,
    device_taint_text,
    label_of,
    listed,
    request_states,
)
from situate.core.explain.device_survey import DeviceSurvey, joint_causes, without_constraint
from situate.core.explain.formatting import counted, quantity
from situate.core.explain.suggestions import Action, ActionKind, SuggestionDraft
from situate.core.model.devices import (
    ALL,
    EXACT_COUNT,
    DeviceSubRequest,
    DeviceToleration,
    ResourceClaim,
)
from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.core.model.quantity import NANO, parse_quantity
from situate.core.plugins.support.claim_changes import ClaimChange, given_back
from situate.core.plugins.support.device_shortages import DeviceJudge, Pools, use_of

MOST_FOUND: Final = 6
"""How many changes are returned for a node."""
MOST_TRIED: Final = 150
"""How many combinations of changes are tried on a node."""
MOST_TOGETHER: Final = 3
"""How many changes are combined."""
MOST_CLASSES: Final = 4
"""How many other device classes are tried."""
MOST_HOLDERS: Final = 4
"""How many holders of devices are tried."""


@dataclass(frozen=True, slots=True)
class DeviceChange:
    """One change: how it edits the claims that are searched, and what it does to the cluster."""

    action: Action
    edit: Edit | None = None
    freed: tuple[str, ...] = ()
    """The claims that give their devices back, by namespace/name."""
    evicts: str = ""
    claims: tuple[ClaimChange, ...] = ()
    pod: Pod | None = None
    """The pod, if the change is one of its requests."""
    excludes: object = None
    """Changes that say the same of the same request exclude each other."""


def device_drafts(found: DeviceSurvey, row: int, draft: SuggestionDraft) -> Iterator[SuggestionDraft]:
    """Drafts that let the devices of the node at a row satisfy the pod's claims, with the fewest changes."""
    judge = found.judge
    try:
        pools = judge.pools_at(row)
    except AllocationError:
        return
    claims = judge.claims_at(row)
    moved = judge.unavailable(row)
    if moved or judge.demand.left_over is not None:
        yield from _give_back_own(found, draft, moved)
        return
    candidates = _candidates(found, draft, claims, pools)
    tried = count = 0
    for size in range(1, MOST_TOGETHER + 1):
        for together in combinations(candidates, size):
            if size > 1 and _exclude(together):
                continue
            tried += 1
            if tried > MOST_TRIED or count >= MOST_FOUND:
                return
            if _helps(found, claims, pools, together):
                count += 1
                yield _applied(draft, claims, together)
        if count:
            return


def _exclude(together: Sequence[DeviceChange]) -> bool:
    said = [one.excludes for one in together if one.excludes is not None]
    return len(said) != len(set(said)) or sum(one.pod is not None for one in together) > 1


def _helps(found: DeviceSurvey, claims: Claims, pools: Pools, together: Sequence[DeviceChange]) -> bool:
    for one in together:
        claims = claims if one.edit is None else one.edit(claims)
    freed = {name for one in together for name in one.freed}
    left = pools if not freed else [(pool, use_of(_kept(found, pool.id, freed))) for pool, _ in pools]
    return found.judge.can_allocate(claims, left)


def _kept(found: DeviceSurvey, pool: tuple[str, str], freed: set[str]) -> Iterator[Any]:
    return (one for claim, one in found.results.get(pool, ()) if key_of(claim.metadata) not in freed)


def _applied(draft: SuggestionDraft, claims: Claims, together: Sequence[DeviceChange]) -> SuggestionDraft:
    edited = claims
    for one in together:
        edited = edited if one.edit is None else one.edit(edited)
    changes = [
        (before, after)
        for before, after in zip(claims, edited, strict=True)
        if before != after and before.metadata.name != IN_MEMORY_NAME
    ]
    pods = [one.pod for one in together if one.pod is not None]
    evicted = [one.evicts for one in together if one.evicts]
    return replace(
        draft,
        pod=pods[0] if pods else draft.pod,
        actions=(*draft.actions, *(one.action for one in together)),
        evicted=tuple(dict.fromkeys((*draft.evicted, *evicted))),
        claims=(*draft.claims, *changes, *(change for one in together for change in one.claims)),
    )


def class_drafts(
    pods_claims: Sequence[ResourceClaim], classes: Iterable[str], draft: SuggestionDraft
) -> Iterator[SuggestionDraft]:
    """Drafts that ask for another class where the class does not exist."""
    claims, known = tuple(pods_claims), sorted(classes)
    for name in known[:MOST_CLASSES]:
        changes = [
            other_class(
                draft.pod,
                claim,
                DeviceRequestState(RequestName(number, at, which), ask, label_of(parent, ask), 1),
                name,
            )
            for number, claim in enumerate(claims)
            for at, request in enumerate(claim.spec.devices.requests)
            for which, (parent, ask) in enumerate(alternatives(request))
            if ask.device_class_name not in known
        ]
        if changes:
            yield _applied(draft, claims, changes)


def _state(name: RequestName, parent: str, ask: DeviceSubRequest) -> DeviceRequestState:
    """A request of which nothing is known yet."""
    return DeviceRequestState(name, ask, label_of(parent, ask), ask.count or 1)


# -- claims of the pod that have their devices elsewhere ---------------------------------------------------------------


def _give_back_own(
    found: DeviceSurvey, draft: SuggestionDraft, claims: Sequence[ResourceClaim]
) -> Iterator[SuggestionDraft]:
    left = found.judge.demand.left_over
    own = [*claims, *([] if left is None else [left])]
    users = [
        f"{claim.metadata.namespace}/{user.name}"
        for claim in own
        for user in claim.status.reserved_for
        if user.uid != draft.pod.metadata.uid
    ]
    if len(users) > 1:
        return
    names = ", ".join(claim.metadata.name for claim in own)
    action = Action(
        ActionKind.GIVE_BACK,
        f"let claim {names} give back the devices that it has elsewhere",
        f"ResourceClaim {key_of(own[0].metadata)}",
        "status.allocation",
    )
    evicting = tuple(_evict(found, user, "") for user in users)
    if any(one is None for one in evicting):
        return
    actions = (*(one for one in evicting if one is not None), action)
    yield replace(
        draft,
        actions=(*draft.actions, *actions),
        evicted=tuple(dict.fromkeys((*draft.evicted, *users))),
        claims=(*draft.claims, *(given_back(claim) for claim in own)),
    )


# -- candidates --------------------------------------------------------------------------------------------------------


def _candidates(found: DeviceSurvey, draft: SuggestionDraft, claims: Claims, pools: Pools) -> list[DeviceChange]:
    judge = found.judge
    states = request_states(claims, pools, judge.inputs)
    joint = joint_causes(judge, claims, pools, states) if states else []
    made: dict[str, DeviceChange] = {}
    for state in states:
        if not state.short and not joint and not any(why.obstacle is Obstacle.ERROR for why in state.kept):
            continue
        claim = claims[state.name.claim]
        if claim.metadata.name == IN_MEMORY_NAME:
            continue
        for one in _of_request(draft.pod, judge, claims, state, pools):
            made.setdefault(one.action.text, one)
    for cause in joint:
        if cause.constraint is not None:
            one = _constraint(draft.pod, claims, *cause.constraint)
            made.setdefault(one.action.text, one)
    for one in (*_holders(found, states, pools), *_asking_less(draft, claims, states)):
        made.setdefault(one.action.text, one)
    return list(made.values())


def _of_request(
    pod: Pod, judge: DeviceJudge, claims: Claims, state: DeviceRequestState, pools: Pools
) -> Iterator[DeviceChange]:
    claim = claims[state.name.claim]
    subject, whose = subject_of(pod, claim), whose_of(pod, claim)
    ask, path = state.ask, path_of(claim, state)
    for why in state.kept:
        if why.obstacle in (Obstacle.SELECTOR, Obstacle.ERROR) and 0 <= why.at < len(ask.selectors):
            expression = ask.selectors[why.at].cel
            shown = "" if expression is None else " ".join(expression.expression.split())
            yield DeviceChange(
                Action(
                    ActionKind.DROP_DEVICE_SELECTOR,
                    f"drop the selector {shown} of {state.label}{whose}",
                    subject,
                    f"{path}.selectors[{why.at}]",
                ),
                edit_of(state, selectors=(*ask.selectors[: why.at], *ask.selectors[why.at + 1 :])),
                excludes=(state.name, "selector"),
            )
        elif why.obstacle is Obstacle.TAINT and why.taint is not None:
            taint = why.taint
            more = DeviceToleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
            yield DeviceChange(
                Action(
                    ActionKind.TOLERATE_DEVICE,
                    f"tolerate the taint {device_taint_text(taint)} in {state.label}{whose}",
                    subject,
                    f"{path}.tolerations",
                    {key: value for key, value in asdict(more).items() if value},
                ),
                edit_of(state, tolerations=(*ask.tolerations, more)),
                excludes=(state.name, "taint"),
            )
        elif why.obstacle is Obstacle.CONSTRAINT:
            yield _constraint(pod, claims, state.name.claim, why.at)
        elif why.obstacle is Obstacle.CAPACITY:
            yield from _less_capacity(state, subject, whose, path, pools)
    for fewer in _fewer(state):
        yield DeviceChange(
            Action(
                ActionKind.FEWER_DEVICES,
                f"ask for {counted(fewer, 'device')} instead of "
                f"{'all' if ask.allocation_mode == ALL else state.needed} in {state.label}{whose}",
                subject,
                f"{path}.count",
                fewer,
            ),
            edit_of(state, count=fewer, allocation_mode=EXACT_COUNT),
            excludes=(state.name, "count"),
        )
    if not state.selected:
        others = sorted(name for name in judge.inputs.classes if name != ask.device_class_name)
        for name in islice(others, MOST_CLASSES):
            yield other_class(pod, claim, state, name)


def _fewer(state: DeviceRequestState) -> list[int]:
    """How many devices a request could have; one less if others want them, too."""
    most = len(state.usable)
    if state.short:
        return [most] if most else []
    return [state.needed - 1] if state.needed > 1 else []


def other_class(pod: Pod, claim: ResourceClaim, state: DeviceRequestState, name: str) -> DeviceChange:
    return DeviceChange(
        Action(
            ActionKind.OTHER_DEVICE_CLASS,
            f"ask for device class {name} instead of {state.ask.device_class_name} in "
            f"{state.label}{whose_of(pod, claim)}",
            subject_of(pod, claim),
            f"{path_of(claim, state)}.deviceClassName",
            name,
        ),
        edit_of(state, device_class_name=name),
        excludes=(state.name, "class"),
    )


def _less_capacity(
    state: DeviceRequestState, subject: str, whose: str, path: str, pools: Pools
) -> Iterator[DeviceChange]:
    """Lower what is asked of a capacity to what the device with most left has."""
    asked = {} if state.ask.capacity is None else state.ask.capacity.requests
    devices = listed(pools)
    lowered = dict(asked)
    for name, amount in asked.items():
        left = [
            parse_quantity(one.device.capacity[name].value) - use.consumed(one.device.name).get(name, 0)
            for why, those in state.kept.items()
            if why.obstacle is Obstacle.CAPACITY
            for _, one, use in (devices[at] for at in those)
            if name in one.device.capacity
        ]
        most = max(left, default=0)
        if 0 < most < parse_quantity(amount) and most % NANO == 0:
            lowered[name] = quantity("memory", most // NANO)
    if lowered == asked or state.ask.capacity is None:
        return
    shown = ", ".join(
        f"{lowered[name]} {name} instead of {asked[name]}" for name in asked if lowered[name] != asked[name]
    )
    yield DeviceChange(
        Action(
            ActionKind.LESS_CAPACITY,
            f"ask for {shown} in {state.label}{whose}",
            subject,
            f"{path}.capacity.requests",
            lowered,
        ),
        edit_of(state, capacity=changed(state.ask.capacity, requests=lowered)),
        excludes=(state.name, "capacity"),
    )


def _constraint(pod: Pod, claims: Claims, number: int, at: int) -> DeviceChange:
    claim = claims[number]
    one = claim.spec.devices.constraints[at]
    kind = "matchAttribute" if one.match_attribute is not None else "distinctAttribute"
    attribute = one.match_attribute or one.distinct_attribute

    def edit(claims: Claims) -> Claims:
        kept = claims[number].spec.devices.constraints
        if one not in kept:
            return claims
        return (*claims[:number], without_constraint(claims[number], kept.index(one)), *claims[number + 1 :])

    action = Action(
        ActionKind.DROP_DEVICE_CONSTRAINT,
        f"drop the constraint {kind} {attribute}{whose_of(pod, claim)}",
        subject_of(pod, claim),
        f"spec.devices.constraints[{at}]",
    )
    return DeviceChange(action, edit)


# -- who has the devices -----------------------------------------------------------------------------------------------


def _holders(found: DeviceSurvey, states: Sequence[DeviceRequestState], pools: Pools) -> Iterator[DeviceChange]:
    """The claims whose devices the requests select: the least important pods first, then the largest claims."""
    devices = listed(pools)
    wanted: dict[str, tuple[ResourceClaim, int]] = {}
    shared = (Obstacle.IN_USE, Obstacle.CAPACITY)
    for state in states:
        for why, those in state.kept.items():
            if why.obstacle is Obstacle.COUNTER:
                names = [(pool.driver, pool.name, one.device.name) for pool, one, _ in devices]
            elif why.obstacle in shared:
                names = [(devices[at][0].driver, devices[at][0].name, devices[at][1].device.name) for at in those]
            else:
                continue
            for name in names:
                for claim in found.holders.get(name, ()):
                    key = key_of(claim.metadata)
                    wanted[key] = claim, wanted.get(key, (claim, 0))[1] + 1
    made = [one for claim, _ in wanted.values() if (one := _holder(found, claim)) is not None]
    made.sort(key=lambda one: (_priority(found, one), -wanted[one.freed[0]][1], one.action.text))
    return iter(made[:MOST_HOLDERS])


def _priority(found: DeviceSurvey, one: DeviceChange) -> int:
    pods = found.view.cluster.pods
    row = pods.rows.get(one.evicts)
    return -(1 << 40) if row is None else pods.kind(row).priority


def _holder(found: DeviceSurvey, claim: ResourceClaim) -> DeviceChange | None:
    """Only claims of one pod, or of none, can be given back without further ado."""
    users = claim.status.reserved_for
    key = key_of(claim.metadata)
    if not users:
        action = Action(
            ActionKind.GIVE_BACK,
            f"give back claim {key}, which no pod uses",
            f"ResourceClaim {key}",
            "status.allocation",
        )
        return DeviceChange(action, freed=(key,), claims=(given_back(claim),))
    if len(users) > 1:
        return None
    pod = f"{claim.metadata.namespace}/{users[0].name}"
    evicting = _evict(found, pod, claim.metadata.name)
    return None if evicting is None else DeviceChange(evicting, freed=(key,), evicts=pod)


def _evict(found: DeviceSurvey, pod: str, claim: str) -> Action | None:
    cluster = found.view.cluster
    node = cluster.node_of(pod)
    if not node:
        return None
    text = f"evict pod {pod} from node {node}"
    return Action(ActionKind.EVICT, f"{text}, which gives back claim {claim}" if claim else text, f"Pod {pod}")


# -- extended resources ------------------------------------------------------------------------------------------------


def _asking_less(
    draft: SuggestionDraft, claims: Claims, states: Sequence[DeviceRequestState]
) -> Iterator[DeviceChange]:
    """Of extended resources that devices serve, ask for as many as there are."""
    names = dict.fromkeys(name for one in draft.pod.spec.containers for name in one.resources.requests)
    for state in states:
        claim = claims[state.name.claim]
        if claim.metadata.name != IN_MEMORY_NAME or not state.short:
            continue
        for name in names:
            before = edits.asked(draft.pod, name)
            most = len(state.usable)
            if before != state.needed:
                continue
            pod = edits.asking(draft.pod, name, most)
            if pod is None:
                continue
            action = Action(
                ActionKind.ASK_LESS,
                f"ask for {before - most} less {name} ({most} instead of {before})",
                f"Pod {key_of(draft.pod.metadata)}",
                f"spec.containers[*].resources.requests[{name}]",
                str(most),
            )
            edit = edit_of(state, count=most) if most else dropped(state)
            yield DeviceChange(action, edit, pod=pod, excludes=(state.name, "count"))
