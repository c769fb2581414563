"""Explanations: what is read off the kept answers is what asking everybody from scratch would say."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builders import node, pod, selector, taint
from situate.core.changes import BindDone, Change, NodeGone, NodeSeen, PodGone, PodRef, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, Effect, Evict, SetCondition
from situate.core.engine.engine import Engine
from situate.core.model.node import Node
from situate.core.model.pod import Pod, TopologySpreadConstraint
from situate.core.place.diagnosis import diagnose
from situate.core.place.filtering import run_filters
from situate.core.place.scoring import run_scorers
from situate.core.place.verdict_cache import VerdictCache
from situate.core.queue.queued_pod import QueuedPod
from situate.core.state.view import View
from situate.server.placing.decisions import Details
from situate.server.scheduling import explainer
from situate.server.scheduling.explainer import BEST, TOP_NODES, Explainer, TopNodes, top_keys
from situate.wire.config import load_config

ranks = st.lists(st.integers(-1, 6), min_size=1, max_size=40)


@given(ranks, st.integers(1, 12))
def test_those_that_lead_are_the_highest_and_of_equals_the_first(rank: list[int], count: int) -> None:
    assert top_keys(np.array(rank, np.int64), count) == in_order(rank)[:count]


@given(ranks, st.lists(st.tuples(st.integers(0, 39), st.integers(-1, 6)), max_size=60))
@example([3] * 40, [*((row, 4) for row in range(20, 26)), *((row, 2) for row in range(20, 26)), (0, 2), (15, 3)])
def test_those_that_lead_are_known_while_ranks_move_or_are_said_not_to_be(
    rank: list[int], moves: list[tuple[int, int]]
) -> None:
    leaders = TopNodes(np.array(rank, np.int64))
    for row, to in moves:
        rank[row % len(rank)] = to
        leaders.moved(row % len(rank), to)
        assert len(leaders.keys) <= TOP_NODES
        if leaders.suffice:
            assert leaders.keys[:BEST] == in_order(rank)[:BEST]


def test_most_that_happens_to_a_few_nodes_needs_no_new_look_at_all_of_them() -> None:
    leaders = TopNodes(np.full(100, 5, np.int64))
    for row in range(TOP_NODES - BEST):
        leaders.moved(row, 6)
        leaders.moved(row, 4)
        assert leaders.suffice
    leaders.moved(TOP_NODES - BEST, 4)
    assert not leaders.suffice


def test_where_few_nodes_fit_those_are_all() -> None:
    leaders = TopNodes(np.array([5, -1, 5], np.int64))
    leaders.moved(0, -1)
    assert leaders.suffice
    leaders.moved(1, 0)
    assert leaders.keys == [(-5, 2), (0, 1)]


def in_order(rank: Sequence[int]) -> list[tuple[int, int]]:
    """Minus the rank, and the row, of all that fit."""
    return sorted((-one, row) for row, one in enumerate(rank) if one >= 0)


def best(rank: Sequence[int], chosen: int) -> list[int]:
    """The chosen first, then by rank, then in node order."""
    return [chosen, *(row for _, row in in_order(rank) if row != chosen)][:BEST]


def from_scratch(engine: Engine, entry: QueuedPod, row: int) -> dict[str, Any]:
    """What each plugin says of every node, asked anew."""
    profile = engine.profiles[entry.pod.spec.scheduler_name].profile
    view = View(engine.cluster)
    filtered = run_filters(profile, entry.kind, view)
    scored = run_scorers(profile, entry.kind, view, filtered.feasible)
    rank = np.where(filtered.feasible, scored.total, -1)
    told = diagnose(profile, entry.kind, view, filtered).rejections
    return {
        "nodes": view.node_count,
        "feasible": int(filtered.feasible.sum()),
        "scores": [
            {
                "node": engine.cluster.nodes.names[one],
                "total": int(rank[one]),
                "plugins": {name: int(part[one]) for name, part in scored.by_plugin.items() if part[one]},
            }
            for one in best(rank.tolist(), row)
        ],
        "refusals": {(one.text, one.plugin, int(one.rows.sum())) for one in told},
    }


def shown(details: Details) -> dict[str, Any]:
    return {
        "nodes": details.nodes,
        "feasible": details.feasible,
        "scores": [msgspec.json.decode(one) for one in details.scores],
        "refusals": {(one.reason, one.plugin, one.nodes) for one in details.refusals},
    }


shapes = st.tuples(st.integers(1, 8), st.booleans(), st.booleans())
alike = st.builds(lambda shape, count: [shape] * count, shapes, st.integers(11, 40))
"""So many of one shape that more are equally good than a decision tells of."""
sizes = st.lists(shapes, min_size=1, max_size=14) | st.builds(list.__add__, st.lists(shapes, max_size=5), alike)


HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"
spreads = st.sampled_from(["", HARD, SOFT])


def wanting(at: int, cpu: int, spread: str) -> Pod:
    """`spread`: what is done where it is not spread over the zones; empty if it need not be."""
    constraint = TopologySpreadConstraint(
        max_skew=1, topology_key="zone", when_unsatisfiable=spread, label_selector=selector(app="a")
    )
    return pod(
        f"p{at}",
        uid=f"u{at}",
        labels={"app": "a"},
        cpu=str(cpu),
        memory="1Gi",
        topology_spread_constraints=(constraint,) if spread else (),
    )


class Told:
    """An engine, and of each choice that it makes, what was said of it and what asking from scratch would say."""

    def __init__(self, nodes: Sequence[tuple[int, bool, bool]], profile: str = "{}") -> None:
        config = (
            f"{{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{profile}]}}"
        )
        self.engine = Engine(load_config(config.encode(), "test.yaml"))
        self._explainer = Explainer(self.engine)
        self._wanted: dict[str, dict[str, Any]] = {}
        self.engine.cycle.witness = self._witness
        self._now = 1_000
        self.step([NodeSeen(shaped(at, *shape)) for at, shape in enumerate(nodes)])

    def _witness(self, entry: QueuedPod, row: int) -> None:
        self._explainer.chosen(entry, row)
        if row >= 0:
            self._wanted[entry.ref.uid] = from_scratch(self.engine, entry, row)

    def effects(self, changes: Sequence[Change]) -> list[Effect]:
        self._now += 60_000
        return self.engine.step(self._now, changes)

    def step(self, changes: Sequence[Change]) -> list[Bind]:
        """What is bound, after a look at how that was explained."""
        bound = [one for one in self.effects(changes) if isinstance(one, Bind)]
        for one in bound:
            details = self._explainer.take(one.pod.uid)
            assert details is not None
            assert shown(details) == self._wanted[one.pod.uid]
            assert msgspec.json.decode(details.scores[0])["node"] == one.node
        self.engine.step(self._now + 1, [BindDone(one.pod, one.attempt) for one in bound])
        return bound


def shaped(at: int, cpu: int, cordoned: bool, tainted: bool) -> Node:
    labels, taints = {"zone": f"z{at % 3}"}, (taint(),) * tainted
    return node(f"n{at}", labels=labels, cpu=cpu, memory="8Gi", pods=9, unschedulable=cordoned, taints=taints)


@given(sizes, st.lists(st.tuples(st.integers(1, 3), spreads), min_size=1, max_size=25))
@example([(8, False, False)] * 20, [(1, "")] * 25)
@example([(8, False, False)] * 20, [(1, ""), (3, "")] * 12)
def test_every_choice_is_explained_as_asking_from_scratch_would(
    nodes: list[tuple[int, bool, bool]], asked: list[tuple[int, str]]
) -> None:
    told = Told(nodes)
    waiting = [PodSeen(wanting(at, cpu, spread)) for at, (cpu, spread) in enumerate(asked)]
    told.step(waiting[: len(waiting) // 2])
    told.step(waiting[len(waiting) // 2 :])


comings = st.lists(st.tuples(st.integers(1, 3), spreads, st.none() | st.integers(0, 40)), min_size=1, max_size=40)
"""Of each pod: what it wants, and which of those that run leaves before it comes, if one does."""


@given(sizes, comings, st.integers(0, 3))
@example([(4, False, False), (4, False, False), (100, False, False)], [(3, "", None)] * 9 + [(3, "", 6)] * 2, 0)
@example([(8, False, False)] * 40, [(3, "", None)] * 38 + [(3, "", at) for at in range(12)], 0)
@example([(8, False, False)] * 20, [(1, SOFT, None)] * 12, 0)
def test_the_same_with_pods_and_nodes_that_leave(
    nodes: list[tuple[int, bool, bool]], asked: list[tuple[int, str, int | None]], lost: int
) -> None:
    told = Told(nodes)
    told.step([NodeGone(f"n{at}") for at in range(min(lost, len(nodes)))])
    running: list[PodRef] = []
    for at, (cpu, spread, leaver) in enumerate(asked):
        gone = [] if leaver is None or not running else [PodGone(running.pop(leaver % len(running)))]
        bound = told.step([*gone, PodSeen(wanting(at, cpu, spread))])
        running.extend(one.pod for one in bound)


def test_what_was_said_of_too_many_nodes_is_forgotten_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    load_parts = VerdictCache.load_parts

    def listening(standing: VerdictCache, row: int) -> dict[str, int]:
        asked.append(row)
        return load_parts(standing, row)

    def asked_with(rows: int) -> int:
        asked.clear()
        monkeypatch.setattr(explainer, "ROWS", rows)
        told = Told([(4, False, False)] * 40)
        told.step([PodSeen(wanting(at, 3, "")) for at in range(30)])
        return len(asked)

    monkeypatch.setattr(VerdictCache, "load_parts", listening)
    assert asked_with(2 * BEST) > asked_with(40)


def test_what_a_node_that_left_would_have_been_refused_for_does_not_count() -> None:
    told = Told([(8, False, False)] * 7, "{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}}")
    told.step([NodeGone("n0")])
    for at in range(5):
        assert told.step([PodSeen(wanting(at, 1, HARD))])


def test_a_pod_that_was_promised_its_node_is_told_how_things_are_when_it_gets_it() -> None:
    told = Told([(8, False, False)] * 2)
    large = [pod(f"large{at}", uid=f"large{at}", cpu="6", memory="1Gi", priority=100) for at in range(3)]
    bound = [*told.step([PodSeen(large[0])]), *told.step([PodSeen(large[1])])]
    told.step([PodGone(one.pod) for one in bound])
    told.step([PodSeen(wanting(at, 3, "")) for at in range(4)])
    leaving = [one.victim for one in told.effects([PodSeen(large[2])]) if isinstance(one, Evict)]
    assert told.step(list(map(PodGone, leaving)))


def test_a_pod_that_fits_nowhere_is_told_the_reasons_and_what_would_wake_it() -> None:
    engine = Engine(default_configuration())
    explainer = Explainer(engine)
    there = [NodeSeen(node("n1", cpu="1", memory="1Gi", pods=9)), NodeSeen(node("n2", cpu="9", unschedulable=True))]
    effects = engine.step(0, [*there, PodSeen(pod("p", uid="u", cpu="2"))])
    said = next(one for one in effects if isinstance(one, SetCondition))
    assert said.pod == PodRef("default", "p", "u")
    details = explainer.rejected(said)
    assert details is not None
    assert (details.reason, details.nodes, details.feasible) == ("Unschedulable", 2, 0)
    assert [(one.reason, one.nodes) for one in details.refusals] == [
        ("Insufficient cpu", 1),
        ("node(s) were unschedulable", 1),
    ]
    assert details.wakes_on == tuple(sorted(details.wakes_on))
    assert {"NODE_ADDED", "NODE_TAINT", "POD_DELETED"} <= set(details.wakes_on)


class Sampled:
    """An engine whose profile draws nodes, and what was said of each pod, by name."""

    def __init__(self, profile: str, nodes: int, cordoned: int = 0) -> None:
        config = (
            f"{{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{profile}]}}"
        )
        self.engine = Engine(load_config(config.encode(), "test.yaml"))
        self.explainer = Explainer(self.engine)
        self.engine.step(0, [NodeSeen(shaped(at, 4, at < cordoned, False)) for at in range(nodes)])

    def place(self, *pods: Pod) -> list[tuple[str, Details]]:
        effects = self.engine.step(1_000, list(map(PodSeen, pods)))
        return [(one.node, self._taken(one.pod.uid)) for one in effects if isinstance(one, Bind)]

    def refuse(self, asking: Pod) -> Details:
        effects = self.engine.step(1_000, [PodSeen(asking)])
        found = self.explainer.rejected(next(one for one in effects if isinstance(one, SetCondition)))
        assert found is not None
        return found

    def _taken(self, uid: str) -> Details:
        found = self.explainer.take(uid)
        assert found is not None
        return found


IN_ROUNDS: Final = "{percentageOfNodesToScore: 10}"
DRAWN: Final = "{nodeSample: 20}"


@pytest.mark.parametrize(
    "profile, cordoned, nodes, feasible",
    [
        pytest.param(IN_ROUNDS, 0, 100, 100, id="round robin: nodes are looked at until a hundred fit"),
        pytest.param(IN_ROUNDS, 30, 130, 100, id="round robin: those that were refused on the way count"),
        pytest.param(DRAWN, 0, 20, 20, id="a draw of 20"),
    ],
)
def test_a_decision_on_a_sample_counts_and_scores_the_sample(
    profile: str, cordoned: int, nodes: int, feasible: int
) -> None:
    sampled = Sampled(profile, 300, cordoned)
    ((node_name, details),) = sampled.place(wanting(0, 1, ""))
    shown_scores = [msgspec.json.decode(one) for one in details.scores]
    assert (details.nodes, details.feasible, details.sampled_from) == (nodes, feasible, 300)
    assert sum(one.nodes for one in details.refusals) == nodes - feasible
    assert shown_scores[0]["node"] == node_name
    assert shown_scores[0]["total"] == details.score == max(one["total"] for one in shown_scores)
    assert all(one["total"] == sum(one["plugins"].values()) for one in shown_scores)
    assert details.alternatives == tuple(one["node"] for one in shown_scores[1:4])


def test_the_nodes_of_a_decision_are_those_of_its_own_round() -> None:
    """The first pod sees nodes 0 to 99, the second 100 to 199, so neither names a node of the other's."""
    sampled = Sampled(IN_ROUNDS, 300)
    rounds = [
        {msgspec.json.decode(one)["node"] for one in details.scores}
        for _, details in sampled.place(wanting(0, 1, ""), wanting(1, 1, ""), wanting(2, 1, ""))
    ]
    assert [len(one) for one in rounds] == [BEST, BEST, BEST]
    assert not rounds[0] & rounds[1]
    assert not rounds[1] & rounds[2]


def test_a_pod_that_fits_on_none_of_its_sample_is_told_about_the_sample() -> None:
    sampled = Sampled("{nodeSample: 2}", 40, cordoned=39)
    details = sampled.refuse(wanting(0, 1, ""))
    assert "2 of 40 nodes were looked at" in details.message
    assert (details.nodes, details.feasible, details.sampled_from) == (2, 0, 40)
    assert [(one.reason, one.nodes) for one in details.refusals] == [("node(s) were unschedulable", 2)]


def test_a_pod_that_fits_on_no_node_at_all_is_told_about_all_of_them() -> None:
    details = Sampled("{nodeSample: 2}", 40, cordoned=40).refuse(wanting(0, 1, ""))
    assert details.message.startswith("0/40 nodes are available: 40 node(s) were unschedulable.")
    assert (details.nodes, details.sampled_from) == (40, 0)
    assert sum(one.nodes for one in details.refusals) == 40
