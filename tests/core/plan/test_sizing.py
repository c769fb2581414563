"""How many nodes: enough that everything is placed, and never fewer than the bound says."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import node, pod
from situate.core.config.defaults import default_configuration
from situate.core.engine.framework import build_frameworks
from situate.core.model.pod import Pod
from situate.core.place.selecting import NOWHERE
from situate.core.plan.lower_bound import ClassDemand, lower_bound
from situate.core.plan.sandbox import Sandbox
from situate.core.plan.simplex import maximise
from situate.core.plan.sizing import NodesNeeded, NodeTemplate, nodes_needed
from situate.core.state.cluster import Cluster
from yards import GI, ZONE, App, least_nodes, pod_of

SMALL = NodeTemplate("small", node("s", cpu="4", memory="16Gi", pods="20"), Fraction(2))
LARGE = NodeTemplate("large", node("l", cpu="16", memory="64Gi", pods="110"), Fraction(7))


def empty() -> Sandbox:
    return Sandbox(Cluster(), build_frameworks(default_configuration()), ())


def pods(count: int, **fields: str) -> list[Pod]:
    return [pod(f"p{at}", uid=f"p{at}", **fields) for at in range(count)]


def needed(those: list[Pod], *shapes: NodeTemplate, daemons: tuple[Pod, ...] = ()) -> NodesNeeded:
    return nodes_needed(empty(), those, shapes, daemons)


def test_pods_that_fill_nodes_exactly_need_the_bound() -> None:
    told = needed(pods(8, cpu="2", memory="8Gi"), SMALL)
    assert (told.counts, told.bound, told.left) == ((4,), 4, ())


def test_the_cheaper_mix_is_found() -> None:
    told = needed(pods(17, cpu="1", memory="4Gi"), SMALL, LARGE)
    assert told.counts == (1, 1)
    assert (told.cost, told.bound) == (Fraction(9), 2)
    assert told.cost_bound is not None
    assert told.cost_bound <= 9


def test_a_pod_larger_than_half_a_node_takes_one_by_itself() -> None:
    told = needed(pods(5, cpu="3", memory="1Gi"), SMALL)
    assert (told.counts, told.bound) == ((5,), 5)


def test_pods_that_shun_each_other_take_a_node_each() -> None:
    app = App("web", 100, GI, apart=True)
    told = needed([pod_of(app, f"web-{at}") for at in range(7)], LARGE)
    assert (told.counts, told.bound) == ((7,), 7)


def test_daemons_take_their_part_of_every_node() -> None:
    told = needed(pods(4, cpu="2", memory="1Gi"), SMALL, daemons=(pod("agent", cpu="1"),))
    assert (told.counts, told.bound) == ((4,), 4)


def test_nodes_go_in_turns_over_zones_where_several_would_do() -> None:
    shapes = [
        NodeTemplate(f"small-{zone}", node("s", cpu="4", memory="16Gi", pods="20", labels={ZONE: zone}))
        for zone in "abc"
    ]
    told = needed([pod_of(App("web", 2_000, GI, skew=1), f"web-{at}") for at in range(12)], *shapes)
    assert (told.counts, told.bound) == ((2, 2, 2), 6)


def test_what_no_shape_takes_is_told() -> None:
    told = needed(pods(1, cpu="64"), SMALL)
    assert [key for key, _ in told.left] == ["default/p0"]
    assert told.left[0][1].startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_free_room_on_nodes_that_are_there_is_used_first() -> None:
    cluster = Cluster()
    cluster.load([node("n1", cpu="4", memory="16Gi", pods="20")], [], [])
    sandbox = Sandbox(cluster, build_frameworks(default_configuration()), ())
    told = nodes_needed(sandbox, pods(6, cpu="2", memory="1Gi"), [SMALL])
    assert (told.counts, told.bound) == ((2,), 2)
    assert list(sandbox.cluster.nodes.rows) == ["n1"]


@pytest.mark.parametrize("seed", range(5))
def test_the_answer_is_one_on_which_the_scheduler_places_everything(seed: int) -> None:
    from random import Random

    dice = Random(seed)
    apps = [
        App(f"a{at}", dice.choice([250, 500, 1_500, 3_000]), dice.choice([1, 3, 6]) * GI, apart=dice.random() < 0.2)
        for at in range(8)
    ]
    those = [pod_of(app, f"{app.name}-{at}") for app in apps for at in range(dice.randint(1, 12))]
    told = needed(those, SMALL, LARGE)
    assert told.left == ()
    assert told.bound <= told.nodes
    sandbox = empty()
    for shape, count in zip((SMALL, LARGE), told.counts, strict=True):
        for number in range(count):
            sandbox.set_node(shape.made(number + 1))
    for one in those:
        row = sandbox.choose(one)
        assert row != NOWHERE
        sandbox.bind(one, row)


# ── the bound ───────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(1, 20), min_size=1, max_size=9))
def test_no_arrangement_needs_less_than_the_bound(sizes: list[int]) -> None:
    wanted = [ClassDemand(sizes.count(size), (size,), (20 // size,)) for size in sorted(set(sizes))]
    assert lower_bound(wanted, [(20,)], [Fraction(1)]).whole <= least_nodes(sizes, 20)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40))
def test_classes_counted_as_the_smaller_of_them_weaken_the_bound_and_never_break_it(
    drawn: list[tuple[int, int, int]],
) -> None:
    # So many different classes and shapes that some have to be taken together.
    rooms = [(100 + at, 100) for at in range(12)]
    wanted = [
        ClassDemand(count, (cpu * 7 + at, memory * 11), tuple([5] * len(rooms)))
        for at, (count, cpu, memory) in enumerate(drawn)
    ]
    volume = max(
        sum(Fraction(one.count * one.asks[0], 111) for one in wanted),
        sum(Fraction(one.count * one.asks[1], 100) for one in wanted),
        sum(Fraction(one.count, 5) for one in wanted),
    )
    every = sum(one.count for one in wanted)
    bound = lower_bound(wanted, rooms, [Fraction(1)] * len(rooms)).worth
    assert bound <= every  # a node for each would do: nobody asks for more than one has
    assert bound >= volume * Fraction(1, 3)


def test_the_simplex_finds_a_corner() -> None:
    import numpy as np

    found = maximise(np.array([3.0, 2.0]), np.array([[1.0, 1.0], [1.0, 3.0]]), np.array([4.0, 6.0]))
    assert np.allclose(found, [4.0, 0.0], atol=1e-5)
