"""Plugins of others: what they may do works, whether answers are kept or not; what they may not do is an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod
from situate.core.config.defaults import default_configuration, with_defaults
from situate.core.config.types import (
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
)
from situate.core.contract import RULED_OUT, Failure, Reason, Refusal, Wake
from situate.core.engine.decision import Decision, decide
from situate.core.engine.framework import Framework, build_frameworks
from situate.core.place.placer import Placer
from situate.core.plugins.support.errors import PluginError
from situate.core.plugins.support.out_of_tree import (
    MAX_REASONS,
    CheckedFilter,
    CheckedScorer,
    as_filter,
    as_scorer,
    construct,
)
from situate.core.plugins.support.per_node import OneNode
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import FEASIBLE, View

OLD = Reason("node(s) were too old", eviction_helps=False)
FULL = Reason("node(s) were too full", eviction_helps=True)
NAME = "mine.py:Mine"


def deciding(kind: type, *, args: Any = None, **points: Any) -> Framework:
    """A profile with this plugin besides the default ones, everywhere unless points are given."""
    sets = points or {"multi_point": PluginSet(enabled=(PluginRef(name=NAME, weight=1),))}
    config = () if args is None else (PluginConfig(name=NAME, args=args),)
    profile = KubeSchedulerProfile(plugins=Plugins(**sets), plugin_config=config)
    profiles = build_frameworks(with_defaults(KubeSchedulerConfiguration(profiles=(profile,))), {NAME: kind})
    return profiles["default-scheduler"]


def cluster_of(count: int = 3) -> Cluster:
    cluster = Cluster()
    for at in range(count):
        cluster.add_node(node(f"n{at}", cpu="4", memory="8Gi", pods="10", labels={"age": str(at)}))
    return cluster


def decided(kind: type, **fields: Any) -> Decision:
    cluster = cluster_of()
    return decide(deciding(kind), cluster.class_of(pod(**fields)), View(cluster))


# ── what they may do ────────────────────────────────────────────────────────────────────────────────────────────────


class Young:
    reasons = (OLD,)

    def check(self, pod: PodClass, view: View) -> Any:
        ids, ages = view.label("age")
        return np.array([*(int(age) > 1 for age in ages.names), False], np.uint8)[ids]

    def score(self, pod: PodClass, view: View) -> Any:
        ids, ages = view.label("age")
        return np.array([*(10 * int(age) for age in ages.names), 0], np.int64)[ids]


class YoungOne:
    reasons = (OLD,)

    def check_one(self, pod: PodClass, node: OneNode) -> Any:
        return OLD if int(node.labels["age"]) > 1 else None

    def score_one(self, pod: PodClass, node: OneNode) -> Any:
        return 10 * int(node.labels["age"])


@pytest.mark.parametrize("kind", [Young, YoungOne])
def test_a_plugin_refuses_and_ranks_under_the_name_of_the_configuration(kind: type) -> None:
    decision = decided(kind)
    assert decision.filtered.feasible.tolist() == [True, True, False]
    refusal = decision.diagnosis.refusals[2]
    assert (refusal.plugin, refusal.reasons, refusal.code) == (NAME, (OLD.text,), "UnschedulableAndUnresolvable")
    assert decision.scored is not None
    assert decision.scored.by_plugin[NAME].tolist()[:2] == [0, 10]
    assert decision.chosen == 1


def test_arguments_are_the_keywords_of_the_constructor() -> None:
    class Limited:
        def __init__(self, limit: int, unit: str = "pods") -> None:
            self.limit = (limit, unit)

    plugin = construct(NAME, Limited, {"limit": 3})
    assert isinstance(plugin, Limited)
    assert plugin.limit == (3, "pods")


def test_one_that_has_both_is_asked_about_all_nodes() -> None:
    class Both(Young, YoungOne): ...

    assert isinstance(as_filter(NAME, Both()), CheckedFilter)
    assert isinstance(as_scorer(NAME, Both()), CheckedScorer)


class TurnsAway:
    def check(self, pod: PodClass, view: View) -> Any:
        return Refusal("not on a Friday")


@pytest.mark.parametrize("point", ["multi_point", "filter"])
def test_a_pod_is_turned_away_wherever_the_plugin_is_enabled(point: str) -> None:
    cluster = cluster_of()
    here = deciding(TurnsAway, **{point: PluginSet(enabled=(PluginRef(name=NAME),))})
    decision = decide(here, cluster.class_of(pod()), View(cluster))
    assert decision.chosen is None
    assert decision.message.startswith("0/3 nodes are available: not on a Friday.")


def test_a_plugin_that_cannot_answer_fails_the_pod() -> None:
    class Fails:
        def check(self, pod: PodClass, view: View) -> Any:
            return Failure("the list of Fridays is gone")

    decision = decided(Fails)
    told = f'running PreFilter plugin "{NAME}": the list of Fridays is gone'
    assert (decision.chosen, decision.message) == (None, told)


def test_nodes_that_are_ruled_out_beforehand_are_told_as_such() -> None:
    class RulesOut:
        def check(self, pod: PodClass, view: View) -> Any:
            return np.full(view.size, RULED_OUT, np.uint8)

    message = decided(RulesOut).message
    assert message.startswith(f"0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [{NAME}].")


def test_preemption_asks_the_plugin_about_one_node_with_pods_gone() -> None:
    class Roomy:
        reasons = (FULL,)

        def check(self, pod: PodClass, view: View) -> Any:
            return np.array([len(view.classes_on(row)) > 0 for row in range(view.size)], np.uint8)

    cluster = cluster_of(2)
    for name in ("n0", "n1"):
        cluster.add_pod(pod(f"on-{name}", node_name=name, priority=-1))
    decision = decide(deciding(Roomy), cluster.class_of(pod(priority=1)), View(cluster))
    assert decision.message.startswith("0/2 nodes are available: 2 node(s) were too full.")
    assert decision.post_filter is not None
    assert [victim.key for victim in decision.post_filter.victims] == ["default/on-n0"]


class Crowded:
    """Reads the load, and writes its answers into an array of its own that it uses again and again."""

    reasons = (FULL,)

    def __init__(self) -> None:
        self._codes = np.zeros(0, np.uint8)
        self._scores = np.zeros(0, np.int64)

    def check(self, pod: PodClass, view: View) -> Any:
        if len(self._codes) != view.size:
            self._codes = np.zeros(view.size, np.uint8)
        self._codes[:] = view.requested(view.resource("cpu")) > 2000
        return self._codes

    def score(self, pod: PodClass, view: View) -> Any:
        if len(self._scores) != view.size:
            self._scores = np.zeros(view.size, np.int64)
        self._scores[:] = 50 - view.requested(view.resource("cpu")) // 100
        return self._scores


class CrowdedOne:
    reasons = (FULL,)

    def check_one(self, pod: PodClass, node: OneNode) -> Any:
        return FULL if node.requested("cpu") > 2000 else None

    def score_one(self, pod: PodClass, node: OneNode) -> Any:
        return max(0, 50 - node.requested("cpu") // 100)


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["100m", "700m", "1500m"]), min_size=4, max_size=20))
def test_kept_answers_and_fresh_ones_place_alike(sizes: list[str]) -> None:
    placed = []
    for kind in (Crowded, CrowdedOne):
        for cache in (True, False):
            cluster = cluster_of(4)
            placer = Placer(cluster, deciding(kind).profile, cache=cache)
            rows = []
            for at, size in enumerate(sizes):
                one = pod(f"p{at}", cpu=size)
                row = placer.choose(cluster.class_of(one))
                rows.append(row)
                if row >= 0:
                    cluster.put(one, cluster.class_of(one), row)
            placed.append(rows)
    assert all(rows == placed[0] for rows in placed)


# ── what they may not ───────────────────────────────────────────────────────────────────────────────────────────────


def checking(answer: Any) -> type:
    class Mine:
        reasons = (OLD,)

        def check(self, pod: PodClass, view: View) -> Any:
            return answer(view)

    return Mine


def scoring(answer: Any) -> type:
    class Mine:
        def score(self, pod: PodClass, view: View) -> Any:
            return answer(view)

    return Mine


@pytest.mark.parametrize(
    "kind, problem",
    [
        pytest.param(
            checking(lambda view: np.zeros(view.size, np.bool_)),
            "check gave 3 values of bool, not 3 of uint8",
            id="booleans for codes",
        ),
        pytest.param(
            checking(lambda view: np.zeros((view.size, 1), np.uint8)),
            "check gave 3x1 values of uint8, not 3 of uint8",
            id="a table for a column",
        ),
        pytest.param(
            checking(lambda view: np.uint8(0)), "check gave uint8, not an array of uint8", id="one code for all nodes"
        ),
        pytest.param(checking(lambda view: "no"), "check gave str, not an array of uint8", id="text"),
        pytest.param(
            checking(lambda view: np.array([0, 1, 2], np.uint8)),
            "check gave code 2 for node n2, and it has 1 reasons",
            id="a code without a reason",
        ),
        pytest.param(
            scoring(lambda view: np.array([0, 100, -1])),
            "score gave -1 for node n2, which is not within 0..100",
            id="a negative score",
        ),
        pytest.param(
            scoring(lambda view: [0] * view.size), "score gave list, not an array of int64", id="a list of scores"
        ),
    ],
)
def test_a_wrong_answer_is_an_error(kind: type, problem: str) -> None:
    with pytest.raises(PluginError) as caught:
        decided(kind)
    assert str(caught.value) == f'plugin "{NAME}": {problem}'


def test_what_stands_at_nodes_that_are_not_feasible_is_not_looked_at() -> None:
    class Both:
        reasons = (OLD,)

        def check(self, pod: PodClass, view: View) -> Any:
            return np.array([0, 0, 1], np.uint8)

        def score(self, pod: PodClass, view: View) -> Any:
            return np.array([1, 2, 1 << 40])

    assert decided(Both).chosen == 1


def test_that_an_answer_was_looked_at_is_not_taken_for_something_the_plugin_read() -> None:
    cluster = cluster_of()
    scorer = as_scorer(NAME, scoring(lambda view: np.zeros(view.size, np.int64))())
    view = View(cluster).scoring(np.ones(3, np.bool_))
    if scorer is None:
        raise LookupError("no scorer")
    scorer.score(cluster.class_of(pod()), view)
    assert not view.reads & FEASIBLE


@pytest.mark.parametrize(
    "reasons, problem",
    [
        pytest.param("no", "its reasons are not a tuple of Reason", id="text"),
        pytest.param(("no",), "its reasons are not a tuple of Reason", id="a tuple of text"),
        pytest.param((OLD,) * 255, "it has 255 reasons, and may have 254", id="more than a byte holds"),
    ],
)
def test_reasons_that_cannot_be_used_are_an_error(reasons: Any, problem: str) -> None:
    kind = checking(lambda view: None)
    kind.reasons = reasons  # type: ignore[attr-defined]
    with pytest.raises(PluginError, match=problem):
        as_filter(NAME, kind())


@pytest.mark.parametrize("wakes_on", ["NODE_ADDED", {"NODE_ADDED"}, [Wake.NODE_ADDED]])
def test_changes_that_cannot_be_waited_for_are_an_error(wakes_on: Any) -> None:
    kind = checking(lambda view: None)
    kind.wakes_on = wakes_on  # type: ignore[attr-defined]
    with pytest.raises(PluginError, match="its wakes_on is not a set of Wake"):
        as_filter(NAME, kind())


def test_a_plugin_that_names_no_change_waits_for_all() -> None:
    plugin = as_filter(NAME, checking(lambda view: None)())
    assert plugin is not None
    assert plugin.wakes_on == frozenset(Wake)


def test_as_many_reasons_as_a_byte_holds_can_be_used() -> None:
    kind = checking(lambda view: np.full(view.size, MAX_REASONS, np.uint8))
    kind.reasons = tuple(Reason(f"node(s) were {at}", eviction_helps=False) for at in range(MAX_REASONS))  # type: ignore[attr-defined]
    assert decided(kind).message.startswith("0/3 nodes are available: 3 node(s) were 253.")


@pytest.mark.parametrize("args", [[1], "x", 5])
def test_arguments_that_are_not_an_object_are_an_error(args: Any) -> None:
    with pytest.raises(PluginError, match="its args in pluginConfig are not an object"):
        construct(NAME, Young, args)


def test_a_plugin_that_would_never_be_asked_is_an_error() -> None:
    with pytest.raises(PluginError, match="is enabled at preScore and not at score, where it would run"):
        deciding(Young, pre_score=PluginSet(enabled=(PluginRef(name=NAME),)))


def test_the_built_in_plugins_are_not_wrapped() -> None:
    (profile,) = build_frameworks(default_configuration()).values()
    plugins = [*profile.profile.filters, *(weighted.scorer for weighted in profile.profile.scorers)]
    assert {type(plugin).__module__.rpartition(".")[2] for plugin in plugins}.isdisjoint({"out_of_tree", "per_node"})
