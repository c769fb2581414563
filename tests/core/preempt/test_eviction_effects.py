"""Which evictions can change a filter's answer, told from what the filter read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from builders import node, pod, selector
from situate.core.contract import Codes, Reason, Refusal, Verdict, Wake
from situate.core.model.labels import parse_selector
from situate.core.place.profile import Profile
from situate.core.preempt.eviction_effects import FilterEffect, ask, filter_effects
from situate.core.state import topology
from situate.core.state.classes import CPU, PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.matching import pods_in
from situate.core.state.topology_counts import count_overlay, count_pods
from situate.core.state.view import View

HOST = "kubernetes.io/hostname"
WEB = pods_in("default", parse_selector(selector(app="web")))
DB = pods_in("default", parse_selector(selector(app="db")))


@dataclass(frozen=True, slots=True)
class Reads:
    """A filter that reads something and then gives an answer."""

    read: Callable[[View], object]
    answer: Callable[[View], Verdict]

    name: ClassVar[str] = "Reads"
    reasons: ClassVar[tuple[Reason, ...]] = (Reason("no", eviction_helps=True),)
    wakes_on: ClassVar[frozenset[Wake]] = frozenset()

    def check(self, pod: PodClass, view: View) -> Verdict:
        self.read(view)
        return self.answer(view)


def no(view: View) -> Codes:
    return np.ones(view.size, np.uint8)


def cluster() -> Cluster:
    """Three nodes: a web pod of priority 1 on n0, one of priority 50 on n1, a db pod of priority 1 on n2."""
    made = Cluster()
    for at in range(3):
        made.add_node(node(f"n{at}", labels={HOST: f"n{at}"}))
    for name, app, priority, where in (("a", "web", 1, "n0"), ("b", "web", 50, "n1"), ("c", "db", 1, "n2")):
        made.add_pod(pod(name, labels={"app": app}, priority=priority, node_name=where))
    return made


def asked(made: Cluster, *filters: Reads) -> list[FilterEffect]:
    kind, view = made.class_of(pod("waiting", priority=10)), View(made)
    return filter_effects(ask(Profile("s", filters, ()), kind, view), kind)


def refused_for_good(question: FilterEffect) -> list[int] | None:
    mask = question.refused_for_good()
    return None if mask is None else np.flatnonzero(mask).tolist()


def test_a_filter_that_reads_nothing_of_bound_pods_stands_by_its_answer() -> None:
    (question,) = asked(cluster(), Reads(lambda view: view.label(HOST), no))
    assert question.settled
    assert refused_for_good(question) == [0, 1, 2]


def test_a_filter_that_reads_a_tally_may_change_it_where_a_counted_pod_of_lower_priority_is() -> None:
    (question,) = asked(cluster(), Reads(lambda view: count_pods(view, WEB, HOST, counts_leaving=True), no))
    assert not question.settled
    assert refused_for_good(question) == [1, 2]


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda view: view.requested(CPU), id="what is taken"),
        pytest.param(lambda view: view.pods_on(0), id="the pods on a node"),
        pytest.param(lambda view: count_overlay(view, WEB, HOST), id="what an overlay moves"),
    ],
)
def test_a_filter_that_reads_anything_else_may_change_it_anywhere(read: Callable[[View], object]) -> None:
    (question,) = asked(cluster(), Reads(read, no))
    assert question.by_anyone
    assert refused_for_good(question) is None


def test_a_filter_that_turned_the_pod_away_must_be_asked_again() -> None:
    (question,) = asked(cluster(), Reads(no, lambda view: Refusal("no", eviction_helps=True)))
    assert question.by_anyone


def test_a_filter_without_a_say_is_asked_again_only_if_it_read_what_evictions_change() -> None:
    silent = [Reads(no, lambda view: None), Reads(lambda view: view.pods_on(0), lambda view: None)]
    (question,) = asked(cluster(), *silent)
    assert question.plugin is silent[1]


def test_a_tally_that_was_dropped_while_another_was_read_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(view: View) -> None:
        count_pods(view, WEB, HOST, counts_leaving=True)
        monkeypatch.setattr(topology, "TALLY_BYTES", 1)
        count_pods(view, DB, HOST, counts_leaving=True)

    (question,) = asked(cluster(), Reads(read, no))
    assert question.by_anyone
