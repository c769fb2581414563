"""How many pods: the numbers are those of kube-controller-manager's own tests."""

from dataclasses import replace

import pytest

from situate.core.reconcile.api_values import SECOND
from situate.core.reconcile.autoscaling import (
    NO_METRICS,
    NO_PODS,
    TOO_FEW,
    TOO_MANY,
    UP_LIMIT,
    WITHIN,
    Measured,
    MeasureError,
    Moment,
    ScaledPod,
    ScalingHistory,
    ScalingPolicy,
    ScalingRules,
    Tolerances,
    by_usage,
    by_utilization,
    normalized,
)

NOW = 10_000 * SECOND
READY = ScaledPod("", "Running", started=0, ready=True, ready_since=0)
UNREADY = replace(READY, ready=False)
STARTING = replace(UNREADY, started=NOW - 60 * SECOND, ready_since=NOW - 60 * SECOND)
PENDING = ScaledPod("", "Pending")
FAILED = replace(READY, phase="Failed")
GOING = replace(READY, deleting=True)
DEFAULTS = Tolerances()


def named(pods: list[ScaledPod]) -> list[ScaledPod]:
    return [replace(pod, name=f"p{at}") for at, pod in enumerate(pods)]


def used(*levels: int | None) -> dict[str, Measured]:
    return {f"p{at}": Measured(level, NOW, 0) for at, level in enumerate(levels) if level is not None}


@pytest.mark.parametrize(
    "current, target, pods, levels, expected",
    [
        pytest.param(3, 30, [READY] * 3, (300, 500, 700), (5, 50, 500), id="up"),
        pytest.param(3, 30, [STARTING, READY, READY], (300, 500, 700), (4, 60, 600), id="up, with one that starts"),
        pytest.param(3, 30, [READY, UNREADY, UNREADY], (400, 500, 700), (3, 40, 400), id="unready ones hold it back"),
        pytest.param(3, 30, [READY, PENDING, PENDING], (400, 500, 700), (3, 40, 400), id="pending ones hold it back"),
        pytest.param(2, 30, [READY, READY, FAILED, GOING], (500, 700, 9, 9), (4, 60, 600), id="up, without the dead"),
        pytest.param(5, 50, [READY] * 5, (100, 300, 500, 250, 250), (3, 28, 280), id="down"),
        pytest.param(4, 100, [READY] * 4, (400, 95, None, None), (3, 24, 247), id="down, with some not measured"),
        pytest.param(2, 100, [READY] * 2, (1000, None), (2, 100, 1000), id="just right, with one not measured"),
        pytest.param(2, 100, [READY] * 2, (1900, None), (2, 190, 1900), id="not up for one that is not measured"),
        pytest.param(2, 100, [READY] * 2, (600, None), (2, 60, 600), id="not down for one that is not measured"),
        pytest.param(3, 100, [READY] * 3, (1010, 1030, 1020), (3, 102, 1020), id="within the tolerance"),
    ],
)
def test_what_is_used_of_what_is_requested(
    current: int, target: int, pods: list[ScaledPod], levels: tuple[int | None, ...], expected: tuple[int, int, int]
) -> None:
    pods = named(pods)
    requests = {pod.name: 1000 for pod in pods}
    found = by_utilization(current, target, "cpu", DEFAULTS, pods, used(*levels), requests, NOW)
    assert (found.replicas, found.utilization, found.average) == expected


@pytest.mark.parametrize(
    "current, target, pods, levels, expected",
    [
        pytest.param(3, 15_000, [READY] * 3, (20_000, 10_000, 30_000), (4, 20_000), id="up"),
        pytest.param(5, 20_000, [READY] * 5, (12_000,) * 5, (3, 12_000), id="down"),
        pytest.param(3, 15_000, [READY] * 3, (15_000, None, None), (3, 15_000), id="just right"),
    ],
)
def test_what_is_used_of_a_plain_amount(
    current: int, target: int, pods: list[ScaledPod], levels: tuple[int | None, ...], expected: tuple[int, int]
) -> None:
    found = by_usage(current, target, "memory", DEFAULTS, named(pods), used(*levels), NOW)
    assert (found.replicas, found.average, found.utilization) == (*expected, None)


@pytest.mark.parametrize(
    "pods, levels, why",
    [([], (1,), NO_PODS), ([PENDING], (1,), NO_METRICS), ([replace(READY, ready=None)], (1,), NO_METRICS)],
)
def test_what_says_nothing_is_an_error(pods: list[ScaledPod], levels: tuple[int, ...], why: str) -> None:
    with pytest.raises(MeasureError, match=why.replace("(", r"\(").replace(")", r"\)")):
        by_usage(1, 1, "cpu", DEFAULTS, named(pods), used(*levels), NOW)


def test_a_metric_from_before_a_new_pod_was_ready_does_not_count() -> None:
    young = replace(READY, started=NOW - 60 * SECOND, ready_since=NOW - 5 * SECOND)
    metrics = {"p0": Measured(900, NOW, 0), "p1": Measured(1, NOW, 15 * SECOND)}
    found = by_usage(2, 500, "cpu", DEFAULTS, named([READY, young]), metrics, NOW)
    assert (found.replicas, found.average) == (2, 900)


@pytest.mark.parametrize(
    "current, desired, replicas, limit",
    [
        pytest.param(2, 3, 3, WITHIN, id="as asked"),
        pytest.param(1, 9, 4, UP_LIMIT, id="up to four"),
        pytest.param(5, 50, 10, UP_LIMIT, id="twice as many"),
        pytest.param(15, 50, 20, TOO_MANY, id="the maximum"),
        pytest.param(5, 1, 2, TOO_FEW, id="the minimum"),
    ],
)
def test_without_a_behavior(current: int, desired: int, replicas: int, limit: tuple[str, str]) -> None:
    found = normalized(ScalingHistory(), current, desired, 2, 20, NOW)
    assert (found.replicas, found.limit, found.limited) == (replicas, limit, limit != WITHIN)


def test_a_higher_recommendation_counts_for_five_minutes() -> None:
    history = ScalingHistory((Moment(NOW - 300 * SECOND, 8),))
    assert normalized(history, 8, 2, 1, 20, NOW).replicas == 8
    assert normalized(history, 8, 2, 1, 20, NOW + SECOND).replicas == 2


UP = ScalingRules((ScalingPolicy("Pods", 2, 60), ScalingPolicy("Percent", 50, 60)))
DOWN = ScalingRules((ScalingPolicy("Pods", 1, 60), ScalingPolicy("Percent", 50, 60)), window_s=0)


@pytest.mark.parametrize(
    "up, down, current, desired, replicas",
    [
        pytest.param(UP, DOWN, 10, 90, 15, id="up by the larger policy"),
        pytest.param(replace(UP, select="Min"), DOWN, 10, 90, 12, id="up by the smaller policy"),
        pytest.param(replace(UP, select="Disabled"), DOWN, 10, 90, 10, id="never up"),
        pytest.param(UP, DOWN, 10, 1, 5, id="down by the larger policy"),
        pytest.param(UP, replace(DOWN, select="Min"), 10, 1, 9, id="down by the smaller policy"),
        pytest.param(UP, replace(DOWN, select="Disabled"), 10, 1, 10, id="never down"),
    ],
)
def test_policies(up: ScalingRules, down: ScalingRules, current: int, desired: int, replicas: int) -> None:
    assert normalized(ScalingHistory(), current, desired, 1, 99, NOW, up, down).replicas == replicas


def test_what_was_scaled_in_a_policys_period_counts() -> None:
    history = ScalingHistory().scaled(10, 13, NOW - 30 * SECOND)
    assert normalized(history, 13, 90, 1, 99, NOW, UP, DOWN).replicas == 15
    assert normalized(history, 13, 90, 1, 99, NOW + 31 * SECOND, UP, DOWN).replicas == 20
    assert normalized(ScalingHistory().scaled(13, 10, NOW), 10, 1, 1, 99, NOW, UP, DOWN).replicas == 6


def test_recommendations_of_a_window_hold_a_change_back() -> None:
    history = ScalingHistory((Moment(NOW - 10 * SECOND, 4), Moment(NOW - 20 * SECOND, 7)))
    slow_up, slow_down = replace(UP, window_s=60), replace(DOWN, window_s=60)
    assert normalized(history, 4, 9, 1, 99, NOW, slow_up, DOWN).replicas == 4
    assert normalized(history, 7, 2, 1, 99, NOW, UP, slow_down).replicas == 7
    assert normalized(history, 7, 2, 1, 99, NOW + 51 * SECOND, UP, slow_down).replicas == 3


def test_what_is_remembered_has_an_end() -> None:
    history = ScalingHistory()
    for step in range(1_000):
        history = normalized(history, 1, 1, 1, 9, NOW + step * 15 * SECOND).history
    assert len(history.recommendations) <= 3_600 // 15 + 2
