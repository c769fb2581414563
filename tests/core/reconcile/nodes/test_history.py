"""Whole histories: never beyond the rates, nobody given up too soon or when all is lost, and everything recovers."""

from __future__ import annotations

import itertools

import pytest

from core.reconcile.nodes.history import MINUTE, SECOND, START, History, troubled
from situate.core.reconcile.nodes.fencing import FAST, KUBERNETES, NodeProfile

SEEDS, AT_ONCE = 200, 10


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE), ids=lambda first: f"seeds from {first}")
def test_nothing_that_must_never_happen_does(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        troubled(seed)


def cluster(profile: NodeProfile, zones: dict[str, int]) -> History:
    """Nothing is wrong with anybody's clock, and no write is refused."""
    history = History(1, profile)
    history.rate, history.refuses = 1.0, 0.0
    for zone, nodes in zones.items():
        for number in range(nodes):
            history.add_node(f"{zone}-{number}", zone)
            history.add_pod(f"{zone}-{number}")
    for pod in history.all("Pod"):
        keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        pod["spec"]["tolerations"] = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": profile.toleration_s}
            for key in keys
        ]
    for agent in history.agents.values():
        agent.rate = 1.0
    history.start()
    history.run(2 * MINUTE)
    return history


@pytest.mark.parametrize(
    "profile, within_s", [(FAST, 25), (KUBERNETES, 355)], ids=["the fast profile", "kubernetes' numbers"]
)
def test_the_pods_of_a_node_that_dies_are_evicted_in_time(profile: NodeProfile, within_s: int) -> None:
    history = cluster(profile, {"a": 5, "b": 5})
    died = history.now
    history.agents["a-0"].alive = False
    history.run(10 * MINUTE)
    ((at, zone, name),) = history.found.given_up
    assert (zone, name) == ("a", "a-0")
    ((evicted, _),) = history.found.evicted
    assert at - died <= profile.grace_ms + SECOND
    assert evicted - died <= within_s * SECOND


def test_a_tenth_of_all_nodes_is_given_up_one_node_every_ten_seconds_or_so() -> None:
    history = cluster(FAST, {"a": 100})
    for number in range(10):
        history.agents[f"a-{number}"].alive = False
    history.run(3 * MINUTE)
    times = [at for at, _, _ in history.found.given_up]
    assert len(times) == len(history.found.evicted) == 10
    assert all(10 * SECOND <= after - before <= 12 * SECOND for before, after in itertools.pairwise(times))


def test_nobody_is_given_up_when_all_die_at_once_and_none_when_they_are_back() -> None:
    history = cluster(KUBERNETES, {"a": 8, "b": 8})
    for agent in history.agents.values():
        agent.alive = False
    history.run(20 * MINUTE)
    assert history.found.unknown == 16
    for agent in history.agents.values():
        agent.alive = True
    history.run(10 * MINUTE)
    assert (history.found.given_up, history.found.evicted) == ([], [])
    assert history.some_up()


def test_a_node_that_was_given_up_is_taken_back_when_all_the_others_die() -> None:
    history = cluster(KUBERNETES, {"a": 8})
    history.agents["a-0"].alive = False
    history.run(2 * MINUTE)
    assert len(history.found.given_up) == 1
    for agent in history.agents.values():
        agent.alive = False
    history.run(20 * MINUTE)
    assert (history.found.taken_back, history.found.evicted) == (1, [])


def test_a_node_that_died_while_nobody_looked_is_given_up_after_all() -> None:
    history = cluster(KUBERNETES, {"a": 8})
    history.agents["a-0"].alive = False
    history.run(20 * SECOND)
    history.stop()
    history.run(MINUTE)
    history.start()
    began = history.now
    history.run(10 * MINUTE)
    ((at, _, name),) = history.found.given_up
    assert name == "a-0"
    assert 50 * SECOND <= at - began <= 65 * SECOND
    assert len(history.found.evicted) == 1


def test_nobody_is_given_up_after_the_control_plane_was_away() -> None:
    history = cluster(KUBERNETES, {"a": 8})
    history.stop()
    history.run(10 * MINUTE)
    history.start()
    history.run(10 * MINUTE)
    assert history.found.unknown == 0
    assert history.real > START
