"""A whole decision: filtered, scored and selected; or, where nothing is feasible, diagnosed, with whom to evict."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from builders import node, pod
from situate.core.contract import Failure, Reason, Refusal, Verdict, Wake
from situate.core.engine.decision import Decision, decide
from situate.core.engine.framework import Framework, default_framework
from situate.core.place.diagnosis import NO_NODES
from situate.core.place.placer import Placer
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

DEFAULT = default_framework()


def cluster_of(**cpus: str) -> Cluster:
    cluster = Cluster()
    for name, cpu in cpus.items():
        cluster.add_node(node(name, cpu=cpu, memory="8Gi", pods="10"))
    return cluster


def decided(cluster: Cluster, deciding: Framework = DEFAULT, **fields: Any) -> Decision:
    return decide(deciding, cluster.class_of(pod("w", **fields)), View(cluster))


@dataclass(frozen=True)
class Says:
    answer: Verdict
    name: str = "Says"
    reasons: tuple[Reason, ...] = (Reason("no", eviction_helps=False),)
    wakes_on: frozenset[Wake] = frozenset()

    def check(self, pod: PodClass, view: View) -> Verdict:
        return self.answer


def besides(answer: Verdict) -> Framework:
    """The default profile and one more filter, which gives this answer."""
    profile = DEFAULT.profile
    filters, order = (*profile.filters, Says(answer)), (*profile.before_nodes, "Says")
    return replace(DEFAULT, profile=replace(profile, filters=filters, before_nodes=order))  # type: ignore[arg-type]


def test_the_best_of_the_nodes_that_fit_is_chosen() -> None:
    found = decided(cluster_of(small="1", mid="4", big="8", alike="8"), cpu="2")
    assert found.filtered.feasible.tolist() == [False, True, True, True]
    assert (found.best.tolist(), found.chosen) == ([2, 3], 2)
    assert found.scored is not None
    summed = sum(np.broadcast_to(scores, 4) for scores in found.scored.by_plugin.values())
    assert found.scored.total.tolist() == np.asarray(summed).tolist()
    assert (found.post_filter, found.message) == (None, "")
    assert list(found.diagnosis.refusals) == [0], "why the others do not fit is told all the same"


def test_it_is_the_node_that_placing_chooses() -> None:
    cluster = cluster_of(a="4", b="8", c="8")
    kind = cluster.class_of(pod("w", cpu="2"))
    assert decide(DEFAULT, kind, View(cluster)).chosen == Placer(cluster, DEFAULT.profile).choose(kind) == 1


def test_a_lone_node_is_scored_too() -> None:
    found = decided(cluster_of(a="4"), cpu="1")
    assert found.chosen == 0
    assert found.scored is not None
    assert "NodeResourcesFit" in found.scored.by_plugin


def test_where_nothing_fits_it_is_told_why_and_that_eviction_does_not_help() -> None:
    found = decided(cluster_of(a="1", b="1"), cpu="2")
    assert (found.chosen, found.scored, found.best.tolist()) == (None, None, [])
    assert found.post_filter is not None
    assert found.post_filter.node_row is None
    assert found.message == (
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_where_somebody_less_important_is_in_the_way_it_is_told_whom_to_evict() -> None:
    cluster = cluster_of(a="2")
    cluster.add_pod(pod("victim", node_name="a", cpu="2", priority=1))
    found = decided(cluster, cpu="2", priority=5)
    assert found.post_filter is not None
    assert (found.post_filter.node_row, [victim.key for victim in found.post_filter.victims]) == (0, ["default/victim"])


def test_a_pod_that_is_turned_away_for_good_evicts_nobody() -> None:
    cluster = cluster_of(a="2")
    cluster.add_pod(pod("victim", node_name="a", cpu="2", priority=1))
    found = decided(cluster, besides(Refusal("its claim is not there")), cpu="2", priority=5)
    assert found.post_filter is not None
    assert found.post_filter.victims == ()
    assert found.message.startswith("0/1 nodes are available: its claim is not there.")


def test_a_filter_that_cannot_answer_is_quoted_and_nobody_is_evicted() -> None:
    found = decided(cluster_of(a="2"), besides(Failure("cannot read it")), cpu="1")
    assert (found.chosen, found.scored, found.post_filter) == (None, None, None)
    assert re.fullmatch(r'running PreFilter plugin ".+": cannot read it', found.message)


@pytest.mark.parametrize("answer", [None, Refusal("no"), Failure("broken")], ids=["fits", "turned away", "failed"])
def test_without_nodes_there_is_one_thing_to_say(answer: Verdict) -> None:
    """Kubernetes counts its nodes before it asks anybody anything."""
    found = decided(cluster_of(), besides(answer), cpu="1")
    assert (found.message, found.post_filter, found.chosen) == (NO_NODES, None, None)


def test_a_decision_changes_nothing() -> None:
    cluster = cluster_of(a="2", b="2")
    cluster.add_pod(pod("victim", node_name="a", cpu="2", priority=1))
    kind = cluster.class_of(pod("w", cpu="2", priority=5))
    before = (cluster.epoch, list(cluster.touched), View(cluster).requested(0).tolist())
    decide(DEFAULT, kind, View(cluster))
    assert (cluster.epoch, list(cluster.touched), View(cluster).requested(0).tolist()) == before
