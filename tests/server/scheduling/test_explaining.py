"""Explanations: what is read off the kept answers is what asking everybody from scratch would say."""

from typing import Any

import msgspec
import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from builders import node, pod, selector, taint
from situate.core.changes import BindDone, NodeSeen, PodRef, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, SetCondition
from situate.core.engine.engine import Engine
from situate.core.model.pod import Pod, TopologySpreadConstraint
from situate.core.place.diagnosis import diagnose
from situate.core.place.filtering import run_filters
from situate.core.place.scoring import run_scorers
from situate.core.queue.waiting import Waiting
from situate.core.state.view import View
from situate.server.placing.decisions import Details
from situate.server.scheduling.explaining import BEST, Explainer, best

ranks = st.lists(st.integers(-1, 6), min_size=1, max_size=40)


@given(ranks, st.data())
def test_the_best_are_the_chosen_then_the_highest_then_the_first(rank: list[int], data: st.DataObject) -> None:
    fitting = [row for row, one in enumerate(rank) if one >= 0]
    if not fitting:
        return
    chosen = data.draw(st.sampled_from(fitting))
    others = sorted((row for row in fitting if row != chosen), key=lambda row: (-rank[row], row))
    assert best(np.array(rank, np.int64), chosen) == [chosen, *others][:BEST]


def from_scratch(engine: Engine, entry: Waiting, row: int) -> dict[str, Any]:
    """What each plugin says of every node, asked anew."""
    profile = engine.profiles[entry.pod.spec.scheduler_name].profile
    view = View(engine.cluster)
    filtered = run_filters(profile, entry.kind, view)
    scored = run_scorers(profile, entry.kind, view, filtered.feasible)
    rank = np.where(filtered.feasible, scored.total, -1)
    told = diagnose(profile, entry.kind, view, filtered).told
    return {
        "feasible": int(filtered.feasible.sum()),
        "scores": [
            {
                "node": engine.cluster.nodes.names[one],
                "total": int(rank[one]),
                "plugins": {name: int(part[one]) for name, part in scored.by_plugin.items() if part[one]},
            }
            for one in best(rank, row)
        ],
        "refusals": {(one.text, one.plugin, int(one.rows.sum())) for one in told},
    }


def shown(details: Details) -> dict[str, Any]:
    return {
        "feasible": details.feasible,
        "scores": [msgspec.json.decode(one) for one in details.scores],
        "refusals": {(one.reason, one.plugin, one.nodes) for one in details.refusals},
    }


shapes = st.tuples(st.integers(1, 8), st.booleans(), st.booleans())
alike = st.builds(lambda shape, count: [shape] * count, shapes, st.integers(11, 40))
"""So many of one shape that more are equally good than a decision tells of."""
sizes = st.lists(shapes, min_size=1, max_size=14) | st.builds(list.__add__, st.lists(shapes, max_size=5), alike)


def wanting(at: int, cpu: int, spread: bool) -> Pod:
    constraint = TopologySpreadConstraint(
        max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule", label_selector=selector(app="a")
    )
    constraints = (constraint,) if spread else ()
    return pod(
        f"p{at}",
        uid=f"u{at}",
        labels={"app": "a"},
        cpu=str(cpu),
        memory="1Gi",
        topology_spread_constraints=constraints,
    )


@given(sizes, st.lists(st.tuples(st.integers(1, 3), st.booleans()), min_size=1, max_size=25))
@example([(8, False, False)] * 20, [(1, False)] * 25)
@example([(8, False, False)] * 20, [(1, False), (3, False)] * 12)
def test_every_choice_is_explained_as_asking_from_scratch_would(
    nodes: list[tuple[int, bool, bool]], asked: list[tuple[int, bool]]
) -> None:
    engine = Engine(default_configuration())
    explainer, wanted = Explainer(engine), dict[str, dict[str, Any]]()

    def witness(entry: Waiting, row: int) -> None:
        explainer.chosen(entry, row)
        if row >= 0:
            wanted[entry.ref.uid] = from_scratch(engine, entry, row)

    engine.cycle.witness = witness
    there = [
        NodeSeen(
            node(
                f"n{at}",
                labels={"zone": f"z{at % 3}"},
                cpu=cpu,
                memory="8Gi",
                pods=9,
                unschedulable=cordoned,
                taints=(taint(),) * tainted,
            )
        )
        for at, (cpu, cordoned, tainted) in enumerate(nodes)
    ]
    waiting = [PodSeen(wanting(at, cpu, spread)) for at, (cpu, spread) in enumerate(asked)]
    now = 1_000
    effects = engine.step(now, [*there, *waiting[: len(waiting) // 2]])
    effects += engine.step(now + 1, waiting[len(waiting) // 2 :])
    bound = [one for one in effects if isinstance(one, Bind)]
    for one in bound:
        details = explainer.take(one.pod.uid)
        assert details is not None
        assert shown(details) == wanted[one.pod.uid]
        assert msgspec.json.decode(details.scores[0])["node"] == one.node
    engine.step(now + 2, [BindDone(one.pod, one.attempt) for one in bound])


def test_a_pod_that_fits_nowhere_is_told_the_reasons_and_what_would_wake_it() -> None:
    engine = Engine(default_configuration())
    explainer = Explainer(engine)
    there = [NodeSeen(node("n1", cpu="1", memory="1Gi", pods=9)), NodeSeen(node("n2", cpu="9", unschedulable=True))]
    effects = engine.step(0, [*there, PodSeen(pod("p", uid="u", cpu="2"))])
    said = next(one for one in effects if isinstance(one, SetCondition))
    assert said.pod == PodRef("default", "p", "u")
    details = explainer.refused(said)
    assert details is not None
    assert (details.reason, details.nodes, details.feasible) == ("Unschedulable", 2, 0)
    assert [(one.reason, one.nodes) for one in details.refusals] == [
        ("Insufficient cpu", 1),
        ("node(s) were unschedulable", 1),
    ]
    assert details.wakes_on == tuple(sorted(details.wakes_on))
    assert {"NODE_ADDED", "NODE_TAINT", "POD_DELETED"} <= set(details.wakes_on)
