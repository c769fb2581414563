"""Whose eviction would break a disruption budget."""

import pytest

from builders import expression, pod, selector
from situate.core.model.labels import LabelSelector
from situate.core.model.meta import ObjectMeta
from situate.core.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from situate.core.preempt.budgets import Budgets
from situate.core.preempt.evictable import Evictable
from situate.core.state.cluster import Cluster


def budget(
    chosen: LabelSelector | None, allowed: int = 0, *, namespace: str = "default", disrupted: tuple[str, ...] = ()
) -> PodDisruptionBudget:
    status = PodDisruptionBudgetStatus(disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted))
    spec = PodDisruptionBudgetSpec(selector=chosen)
    return PodDisruptionBudget(metadata=ObjectMeta(name="b", namespace=namespace), spec=spec, status=status)


def breaking(budgets: list[PodDisruptionBudget], *labels: dict[str, str], stops_at_first: bool = False) -> list[int]:
    """Which of some pods with these labels, in this order, would break a budget."""
    cluster = Cluster()
    pods = [
        Evictable(at, cluster.class_of(pod(f"p{at}", labels=each)), 0, f"default/p{at}")
        for at, each in enumerate(labels)
    ]
    broken, harmless = Budgets(budgets, stops_at_first=stops_at_first).split(pods)
    assert sorted(each.row for each in (*broken, *harmless)) == list(range(len(labels)))
    assert [each.row for each in harmless] == sorted(each.row for each in harmless), "the order is kept"
    return [each.row for each in broken]


WEB = {"app": "web"}


def test_without_budgets_nothing_breaks() -> None:
    assert breaking([], WEB, WEB) == []


def test_a_budget_allows_as_many_as_it_says_the_first_in_line_first() -> None:
    assert breaking([budget(selector(app="web"), 2)], WEB, WEB, WEB, WEB) == [2, 3]


def test_pods_that_it_does_not_speak_of_do_not_use_it_up() -> None:
    assert breaking([budget(selector(app="web"), 1)], {"app": "db"}, WEB, {"app": "db"}, WEB) == [3]


def test_a_pod_of_two_budgets_uses_up_both_even_when_it_breaks_one() -> None:
    budgets = [budget(selector(app="web"), 0), budget(selector(tier="front"), 1)]
    assert breaking(budgets, {"app": "web", "tier": "front"}, {"tier": "front"}) == [0, 1]


def test_by_the_rules_of_1_37_a_pod_that_breaks_a_budget_does_not_use_up_the_next() -> None:
    budgets = [budget(selector(app="web"), 0), budget(selector(tier="front"), 1)]
    assert breaking(budgets, {"app": "web", "tier": "front"}, {"tier": "front"}, stops_at_first=True) == [0]


def test_a_pod_whose_eviction_is_counted_already_breaks_nothing_and_uses_nothing_up() -> None:
    assert breaking([budget(selector(app="web"), 1, disrupted=("p0",))], WEB, WEB, WEB) == [2]


SILENT = [
    pytest.param(budget(None), id="no selector speaks of nobody"),
    pytest.param(budget(LabelSelector()), id="an empty selector speaks of nobody"),
    pytest.param(budget(selector(app="web"), namespace="other"), id="another namespace is not spoken of"),
    pytest.param(
        budget(selector(expression("app", "Near", "web"))), id="a selector that cannot be read speaks of nobody"
    ),
]


@pytest.mark.parametrize("silent", SILENT)
def test_a_budget_that_does_not_speak_of_the_pod(silent: PodDisruptionBudget) -> None:
    assert breaking([silent], WEB) == []


def test_a_pod_without_labels_has_no_budget() -> None:
    assert breaking([budget(selector(expression("app", "DoesNotExist")))], {}, {"tier": "front"}) == [1]
