"""A filter without its preFilter: it turns nobody away, and refuses every node in the same words instead."""

from typing import ClassVar

import numpy as np
import pytest

from builders import node, pod
from situate.core.contract import Detailed, Failure, Reason, Refusal, Verdict, Wake
from situate.core.plugins.support.single_stage import filter_only
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View


class Answers:
    """A filter that answers what it was told to."""

    name: ClassVar[str] = "Answers"
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason("first", eviction_helps=True),
        Reason("second", eviction_helps=False),
    )
    wakes_on: ClassVar[frozenset[Wake]] = frozenset({Wake.NODE_ADDED})

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def check(self, pod: PodClass, view: View) -> Verdict:
        return self._verdict


def asked(verdict: Verdict) -> tuple[Verdict, dict[str, list[bool]]]:
    cluster = Cluster()
    for name in ("a", "b", "c"):
        cluster.add_node(node(name))
    plugin, kind = filter_only(Answers(verdict)), cluster.class_of(pod("p"))
    view = View(cluster)
    assert isinstance(plugin, Detailed)
    return plugin.check(kind, view), {text: mask.tolist() for text, mask in plugin.details(kind, view)}


def test_a_pod_that_would_be_turned_away_is_refused_every_node_in_those_words() -> None:
    codes, details = asked(Refusal("its claim is not there"))
    assert isinstance(codes, np.ndarray)
    assert codes.tolist() == [3, 3, 3]
    assert details == {"its claim is not there": [True, True, True]}


def test_eviction_does_not_help_against_it() -> None:
    assert not filter_only(Answers(None)).reasons[2].eviction_helps


def test_what_is_said_of_nodes_is_said_as_before() -> None:
    codes, details = asked(np.array([0, 1, 2], np.uint8))
    assert isinstance(codes, np.ndarray)
    assert codes.tolist() == [0, 1, 2]
    assert details == {"first": [False, True, False], "second": [False, False, True]}


@pytest.mark.parametrize("verdict", [None, Failure("broken")], ids=["has no say", "cannot answer"])
def test_other_answers_pass_through(verdict: Verdict) -> None:
    assert asked(verdict) == (verdict, {})
