"""HorizontalPodAutoscalers: how many pods a workload should have, by kube-controller-manager's rules. Pure.

`by_utilization` and `by_usage` propose a number from what the pods use. `normalized` bounds it: by the limits of the
autoscaler, by its policies, and by what was recommended before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from situate.core.model.refs import Millis
from situate.core.reconcile.api_values import SECOND

TOLERANCE: Final = 0.1
"""A ratio of used to wanted this close to 1 changes nothing."""
CPU_INITIALIZATION: Final[Millis] = 300 * SECOND
"""How long after a pod's start its cpu may be that of the start."""
INITIAL_READINESS: Final[Millis] = 30 * SECOND
"""A pod that became unready within this time of its start has never been ready."""
DOWNSCALE_WINDOW_S: Final = 300
"""Of an autoscaler that names none, how long a higher recommendation counts."""
LONGEST_WINDOW: Final[Millis] = 3_600 * SECOND
"""What is older is forgotten."""
_UP_FACTOR: Final = 2
_UP_LEAST: Final = 4
"""Without a behavior, a step up at most doubles the pods, or leads to four."""
CPU: Final = "cpu"
NO_PODS: Final = "no pods returned by selector while calculating replica count"
NO_METRICS: Final = "did not receive metrics for targeted pods (pods might be unready)"
NO_MATCH: Final = "no metrics returned matched known pods"


class MeasureError(Exception):
    """A metric does not say how many pods there should be."""


class Tolerances(NamedTuple):
    down: float = TOLERANCE
    up: float = TOLERANCE

    def contain(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Measured(NamedTuple):
    """What one pod uses, in thousandths."""

    value: int
    at: Millis
    window: Millis


@dataclass(frozen=True, slots=True)
class ScaledPod:
    """A pod of the workload."""

    name: str
    phase: str
    deleting: bool = False
    started: Millis | None = None
    ready: bool | None = None
    """None: it has no such condition."""
    ready_since: Millis = 0
    """When that became so."""


class Proposal(NamedTuple):
    replicas: int
    average: int
    """What a pod uses, in thousandths."""
    utilization: int | None = None
    """In percent of what is requested."""


class _Grouped(NamedTuple):
    ready: int
    unready: list[str]
    missing: list[str]
    metrics: dict[str, int]
    """Of the pods that count."""


def by_utilization(
    current: int,
    target: int,
    resource: str,
    tolerances: Tolerances,
    pods: Sequence[ScaledPod],
    metrics: Mapping[str, Measured],
    requests: Mapping[str, int],
    now: Millis,
) -> Proposal:
    """`target`: in percent of what the pods request. Raises MeasureError."""
    grouped = _group(pods, metrics, resource, now)

    def ratio(used: Mapping[str, int]) -> tuple[float, int, int]:
        known = [name for name in used if name in requests]
        total, requested = sum(used[name] for name in known), sum(requests[name] for name in known)
        if requested == 0:
            raise MeasureError(NO_MATCH)
        percent = total * 100 // requested
        return percent / target, percent, total // len(known)

    first, percent, average = ratio(grouped.metrics)
    fallback = {name: requests.get(name, 0) * max(100, target) // 100 for name in grouped.missing}
    replicas = _replicas(current, first, grouped, fallback, tolerances, lambda used: ratio(used)[0])
    return Proposal(replicas, average, percent)


def by_usage(
    current: int,
    target: int,
    resource: str,
    tolerances: Tolerances,
    pods: Sequence[ScaledPod],
    metrics: Mapping[str, Measured],
    now: Millis,
) -> Proposal:
    """`target`: what a pod should use, in thousandths. Raises MeasureError."""
    grouped = _group(pods, metrics, resource, now)
    average = sum(grouped.metrics.values()) // len(grouped.metrics)

    def ratio(used: Mapping[str, int]) -> float:
        return (sum(used.values()) // len(used)) / target

    fallback = dict.fromkeys(grouped.missing, target)
    return Proposal(_replicas(current, average / target, grouped, fallback, tolerances, ratio), average)


def _group(pods: Sequence[ScaledPod], metrics: Mapping[str, Measured], resource: str, now: Millis) -> _Grouped:
    if not pods:
        raise MeasureError(NO_PODS)
    ready, unready, missing = 0, list[str](), list[str]()
    counted = {name: one.value for name, one in metrics.items()}
    for pod in pods:
        if pod.deleting or pod.phase == "Failed":
            counted.pop(pod.name, None)
        elif pod.phase == "Pending":
            unready.append(pod.name)
        elif pod.name not in metrics:
            missing.append(pod.name)
        elif resource == CPU and _is_unready(pod, metrics[pod.name], now):
            unready.append(pod.name)
        else:
            ready += 1
    for name in unready:
        counted.pop(name, None)
    if not counted:
        raise MeasureError(NO_METRICS)
    return _Grouped(ready, unready, missing, counted)


def _is_unready(pod: ScaledPod, metric: Measured, now: Millis) -> bool:
    """Whether the pod's cpu may be that of its start."""
    if pod.ready is None or pod.started is None:
        return True
    if pod.started + CPU_INITIALIZATION > now:
        return not pod.ready or metric.at < pod.ready_since + metric.window
    return not pod.ready and pod.started + INITIAL_READINESS > pod.ready_since


def _replicas(
    current: int,
    ratio: float,
    grouped: _Grouped,
    fallback: Mapping[str, int],
    tolerances: Tolerances,
    ratio_of: Callable[[Mapping[str, int]], float],
) -> int:
    """Pods without a metric count against the change: as using nothing on the way up, and `fallback` on the way down.
    Unready pods count as using nothing on the way up."""
    unready_too = bool(grouped.unready) and ratio > 1.0
    if not unready_too and not grouped.missing:
        return current if tolerances.contain(ratio) else math.ceil(ratio * grouped.ready)
    used = dict(grouped.metrics)
    if ratio < 1.0:
        used |= fallback
    elif ratio > 1.0:
        used |= dict.fromkeys(grouped.missing, 0)
    if unready_too:
        used |= dict.fromkeys(grouped.unready, 0)
    again = ratio_of(used)
    if tolerances.contain(again) or (ratio < 1.0 < again) or (again < 1.0 < ratio):
        return current
    replicas = math.ceil(again * len(used))
    turned = (again < 1.0 and replicas > current) or (again > 1.0 and replicas < current)
    return current if turned else replicas


# -- bounds ------------------------------------------------------------------------------------------------------------


class ScalingPolicy(NamedTuple):
    kind: Literal["Pods", "Percent"]
    value: int
    period_s: int


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """Of one direction."""

    policies: tuple[ScalingPolicy, ...]
    select: Literal["Max", "Min", "Disabled"] = "Max"
    window_s: int = 0


class Moment(NamedTuple):
    at: Millis
    pods: int


@dataclass(frozen=True, slots=True)
class ScalingHistory:
    """What an autoscaler remembers. It begins anew with each leader, as in Kubernetes."""

    recommendations: tuple[Moment, ...] = ()
    ups: tuple[Moment, ...] = ()
    downs: tuple[Moment, ...] = ()
    """By how many pods it scaled, and when."""

    def scaled(self, before: int, after: int, now: Millis) -> ScalingHistory:
        change = Moment(now, abs(after - before))
        if after > before:
            return replace(self, ups=(*_recent(self.ups, now), change))
        return replace(self, downs=(*_recent(self.downs, now), change))


class Bounded(NamedTuple):
    replicas: int
    able: tuple[str, str]
    """Reason and message of the condition AbleToScale."""
    limited: bool
    limit: tuple[str, str]
    """Of the condition ScalingLimited."""
    history: ScalingHistory


UP_LIMIT: Final = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
DOWN_LIMIT: Final = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
TOO_MANY: Final = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
TOO_FEW: Final = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
WITHIN: Final = ("DesiredWithinRange", "the desired count is within the acceptable range")
READY: Final = ("ReadyForNewScale", "recommended size matches current size")
DOWN_STABILIZED: Final = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
UP_STABILIZED: Final = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)


def normalized(
    history: ScalingHistory,
    current: int,
    desired: int,
    least: int,
    most: int,
    now: Millis,
    up: ScalingRules | None = None,
    down: ScalingRules | None = None,
) -> Bounded:
    """`up`, `down`: the autoscaler's behavior, or None for both."""
    if up is None or down is None:
        stable = max((desired, *(one.pods for one in history.recommendations if now - one.at <= _WINDOW)))
        able = READY if stable == desired else DOWN_STABILIZED
        replicas, limit = _without_behavior(current, stable, least, most)
    else:
        stable = _stabilized(history, current, desired, now, up, down)
        able = READY if stable == desired else UP_STABILIZED if desired >= current else DOWN_STABILIZED
        replicas, limit = _with_behavior(history, current, stable, least, most, now, up, down)
    kept = replace(history, recommendations=(*_recent(history.recommendations, now), Moment(now, desired)))
    return Bounded(replicas, able, replicas != stable, limit, kept)


_WINDOW: Final[Millis] = DOWNSCALE_WINDOW_S * SECOND


def _recent(moments: Sequence[Moment], now: Millis) -> tuple[Moment, ...]:
    return tuple(one for one in moments if now - one.at <= LONGEST_WINDOW)


def _without_behavior(current: int, desired: int, least: int, most: int) -> tuple[int, tuple[str, str]]:
    step = max(_UP_FACTOR * current, _UP_LEAST)
    highest, limit = (step, UP_LIMIT) if most > step else (most, TOO_MANY)
    if desired < least:
        return least, TOO_FEW
    return (highest, limit) if desired > highest else (desired, WITHIN)


def _stabilized(
    history: ScalingHistory, current: int, desired: int, now: Millis, up: ScalingRules, down: ScalingRules
) -> int:
    """The lowest of recent recommendations on the way up, and the highest on the way down."""
    lowest = min((desired, *_counts_since(history.recommendations, now - up.window_s * SECOND)))
    highest = max((desired, *_counts_since(history.recommendations, now - down.window_s * SECOND)))
    return min(max(current, lowest), highest)


def _with_behavior(
    history: ScalingHistory,
    current: int,
    desired: int,
    least: int,
    most: int,
    now: Millis,
    up: ScalingRules,
    down: ScalingRules,
) -> tuple[int, tuple[str, str]]:
    if desired > current:
        step = max(_reach(history, current, now, up, 1), current)
        highest, limit = (step, UP_LIMIT) if most > step else (most, TOO_MANY)
        return (highest, limit) if desired > highest else (desired, WITHIN)
    if desired < current:
        step = min(_reach(history, current, now, down, -1), current)
        lowest, limit = (step, DOWN_LIMIT) if least < step else (least, TOO_FEW)
        return (lowest, limit) if desired < lowest else (desired, WITHIN)
    return desired, WITHIN


def _reach(history: ScalingHistory, current: int, now: Millis, rules: ScalingRules, direction: Literal[1, -1]) -> int:
    """How far the policies let the number of pods go in one direction."""
    if rules.select == "Disabled" or not rules.policies:
        return current
    reached = []
    for policy in rules.policies:
        since = now - policy.period_s * SECOND
        start = current - sum(_counts_since(history.ups, since)) + sum(_counts_since(history.downs, since))
        if policy.kind == "Pods":
            reached.append(start + direction * policy.value)
        elif direction > 0:
            reached.append(math.ceil(start * (1 + policy.value / 100)))
        else:
            reached.append(int(start * (1 - policy.value / 100)))
    farthest = (rules.select == "Max") == (direction > 0)
    return max(reached) if farthest else min(reached)


def _counts_since(moments: Collection[Moment], since: Millis) -> list[int]:
    return [one.pods for one in moments if one.at > since]
