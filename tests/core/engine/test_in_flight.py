"""Nominations: which there are, on which nodes, for whom they count, and what a reader has missed."""

import pytest

from builders import pod
from situate.core.changes import PodRef
from situate.core.engine import in_flight
from situate.core.engine.in_flight import NOMINATION_LIMIT_MS, Nominations
from situate.core.queue.queued_pod import QueuedPod
from situate.core.state.cluster import Cluster


def entry(name: str, priority: int = 0) -> QueuedPod:
    made = pod(name, uid=name, priority=priority, cpu="1")
    return QueuedPod(PodRef("default", name, name), made, Cluster().class_of(made), 0, 0)


def test_a_nomination_is_found_by_its_pod_and_by_its_node_until_it_ends() -> None:
    nominations = Nominations()
    first, second = nominations.add(entry("a"), "n1", now=7), nominations.add(entry("b"), "n1", now=7)
    assert (len(nominations), nominations.values(), nominations.nodes) == (2, [first, second], ["n1"])
    assert (nominations.get("default/a"), nominations.on("n1"), nominations.on("n2")) == (first, [first, second], [])
    assert (first.node, first.until_ms) == ("n1", 7 + NOMINATION_LIMIT_MS)
    assert nominations.remove("default/a") is first
    assert (nominations.get("default/a"), nominations.on("n1"), nominations.nodes) == (None, [second], ["n1"])
    assert nominations.remove("default/a") is None
    nominations.remove("default/b")
    assert (len(nominations), nominations.on("n1"), nominations.nodes) == (0, [], [])


def test_a_pod_has_one_nomination_and_each_has_a_version_of_its_own() -> None:
    nominations = Nominations()
    first, second = nominations.add(entry("a"), "n1", now=0), nominations.add(entry("a"), "n2", now=0)
    assert (nominations.values(), nominations.nodes) == ([second], ["n2"])
    assert first.version != second.version


@pytest.mark.parametrize("priority, counts", [(4, True), (5, True), (6, False)])
def test_a_nomination_counts_for_others_that_do_not_outrank_it(priority: int, counts: bool) -> None:
    nominations = Nominations()
    made = nominations.add(entry("a", priority=5), "n1", now=0)
    assert nominations.weighing_on("n1", entry("b", priority)) == ([made] if counts else [])
    assert nominations.weighing_on("n1", entry("a", priority)) == []
    assert nominations.weighing_on("n2", entry("b", priority)) == []


def test_a_reader_is_told_what_was_made_and_ended_since_it_last_looked() -> None:
    nominations = Nominations()
    assert (nominations.position, nominations.moves_since(0)) == (0, [])
    first = nominations.add(entry("a"), "n1", now=0)
    assert (nominations.position, nominations.moves_since(0)) == (1, [(first, True)])
    second = nominations.add(entry("a"), "n2", now=0)
    assert (nominations.position, nominations.moves_since(1)) == (3, [(first, False), (second, True)])
    assert nominations.moves_since(3) == []


def test_a_reader_that_is_too_far_behind_is_told_so_and_others_miss_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_flight, "MOVES_LIMIT", 2)
    nominations = Nominations()
    made = [nominations.add(entry(name), "n1", now=0) for name in "abcd"]
    assert nominations.moves_since(0) == [(one, True) for one in made]
    made.append(nominations.add(entry("e"), "n1", now=0))
    assert nominations.position == 5
    assert nominations.moves_since(1) is None
    assert nominations.moves_since(2) == [(one, True) for one in made[2:]]
    assert nominations.moves_since(5) == []
