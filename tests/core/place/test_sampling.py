"""Which nodes are looked at where not all are: drawn by a key, or in rounds as kube-scheduler goes."""

import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod, taint
from situate.core.changes import BindDone, Change, NodeSeen, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, Effect, SetCondition
from situate.core.engine.engine import Engine
from situate.core.engine.framework import build_frameworks, default_framework
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.place.placer import Placer
from situate.core.place.profile import ALL_NODES, Profile, Sampling
from situate.core.place.sampling import draw_key, drawn, enough, in_turns, looked_at, mix64, samples
from situate.core.place.selecting import NOWHERE
from situate.core.queue.queued_pod import QueueState
from situate.core.state.cluster import Cluster
from situate.core.state.columns import IdColumn
from situate.core.state.view import View
from situate.wire.config import load_config
from storage_builders import claimed

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
TRIES_FIVE_RANDOM_NODES = f"{HEAD}profiles:\n- nodeSample: 5\n"


def engine_of(text: str) -> Engine:
    return Engine(load_config(text.encode()))


def nodes(count: int, **fields: object) -> list[Change]:
    return [NodeSeen(node(f"n{at:03}", **{"cpu": "4", "pods": 110} | fields)) for at in range(count)]


def waiting(name: str, **fields: Any) -> PodSeen:
    return PodSeen(pod(name, uid=f"uid-{name}", **fields))


def binds(effects: list[Effect]) -> dict[str, str]:
    return {effect.pod.name: effect.node for effect in effects if isinstance(effect, Bind)}


def profile(sampling: Sampling = ALL_NODES, *, scored: bool = True) -> Profile:
    default = default_framework().profile
    return Profile("default-scheduler", default.filters, default.scorers if scored else (), sampling=sampling)


def cluster_of(*of: Node) -> Cluster:
    cluster = Cluster()
    for one in of:
        cluster.add_node(one)
    return cluster


# ── nodes drawn by a key ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_scheduler_that_tries_five_random_nodes_is_one_line_of_configuration() -> None:
    """Of 100 nodes 20 are emptier, and who looks at all takes those. Who looks at five misses them now and then."""
    half_full = [
        PodSeen(pod(f"there-{at}", uid=f"there-{at}", cpu="2", node_name=f"n{at:03}")) for at in range(100) if at % 5
    ]
    pods = [waiting(f"p{at}", cpu="10m") for at in range(40)]
    found = {}
    for name, text in (("all", HEAD), ("five", TRIES_FIVE_RANDOM_NODES)):
        engine = engine_of(text)
        engine.step(0, [*nodes(100), *half_full])
        found[name] = binds(engine.step(1, pods))
    assert len(found["all"]) == len(found["five"]) == 40
    emptier = {name: sum(int(chosen[1:]) % 5 == 0 for chosen in of.values()) for name, of in found.items()}
    assert emptier["all"] == 40
    assert 15 <= emptier["five"] < 40  # all five are fuller with (4/5)**5, about a third
    assert len(set(found["five"].values())) > 20


def test_the_draw_is_the_same_in_every_process() -> None:
    program = (
        "import numpy as np\nfrom situate.core.place.sampling import draw_key, drawn\n"
        "print(drawn(np.arange(1000), 5, draw_key('uid', 3)).tolist())"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1] == f"{drawn(np.arange(1000), 5, draw_key('uid', 3)).tolist()}\n"


@given(st.integers(0, 30), st.integers(1, 40), st.integers(0, 2**64 - 1))
def test_a_draw_has_each_row_at_most_once_and_none_that_is_not_there(size: int, count: int, key: int) -> None:
    rows = np.arange(100, 100 + size)
    taken = drawn(rows, count, key).tolist()
    assert len(taken) == len(set(taken)) == min(size, count)
    assert set(taken) <= set(rows.tolist())


def test_every_row_is_as_likely_as_any_other() -> None:
    rows = np.arange(20)
    counts = Counter(row for at in range(4_000) for row in drawn(rows, 5, draw_key(f"pod-{at}", 1)).tolist())
    assert all(900 <= counts[row] <= 1_100 for row in range(20))  # 1,000 each, give or take three deviations


def test_another_attempt_draws_other_nodes() -> None:
    rows = np.arange(1_000)
    draws = {tuple(drawn(rows, 5, draw_key("uid", attempt)).tolist()) for attempt in range(1, 20)}
    assert len(draws) == 19


@given(st.integers(0, 2**64 - 1), st.integers(0, 63))
@settings(max_examples=50)
def test_one_bit_of_a_number_moves_many_bits_of_its_mix(number: int, bit: int) -> None:
    assert 10 <= (mix64(number) ^ mix64(number ^ (1 << bit))).bit_count() <= 54


def test_scores_are_compared_among_the_nodes_that_were_drawn() -> None:
    """Twin: whatever five are drawn, the choice is that of a cluster that has only those five."""
    busy = {f"n{at:03}": f"{at * 37 % 3900}m" for at in range(40)}
    whole = cluster_of(*(node(name, cpu="4", pods=110) for name in busy))
    for name, cpu in busy.items():
        whole.add_pod(pod(f"on-{name}", cpu=cpu, node_name=name))
    asking = pod("web", cpu="100m")
    placer = Placer(whole, profile(Sampling(nodes=5)))
    for key in range(50):
        rows = sorted(drawn(np.arange(40), 5, key).tolist())
        few = cluster_of(*(node(whole.nodes.names[row], cpu="4", pods=110) for row in rows))
        for row in rows:
            few.add_pod(pod(f"on-{row}", cpu=busy[whole.nodes.names[row]], node_name=whole.nodes.names[row]))
        alone = Placer(few, profile()).choose(few.class_of(asking))
        assert whole.nodes.names[placer.choose(whole.class_of(asking), key=key)] == few.nodes.names[alone]


def test_a_pod_that_fits_elsewhere_draws_again_after_a_rest() -> None:
    """One node of 40 has room: the pod gets there by drawing again, with no change and no flush."""
    engine = engine_of(TRIES_FIVE_RANDOM_NODES)
    engine.step(0, [*nodes(40, taints=(taint(),)), NodeSeen(node("roomy", cpu="4", pods=110))])
    effects = engine.step(1, [waiting("web")])
    told = [effect for effect in effects if isinstance(effect, SetCondition)]
    assert [one.reason for one in told] == ["Unschedulable"]
    assert told[0].message == (
        "0/5 nodes are available: 5 node(s) had untolerated taint(s). 5 of 41 nodes were looked at."
    )
    entry = engine.queue.get("default/web")
    assert entry is not None
    assert entry.state is QueueState.BACKOFF
    now = 1
    while not binds(effects):
        due = engine.next_due_ms(now)
        assert due is not None
        assert due > now  # it rests, and does not spin
        now = due
        effects = engine.step(now, [])
    assert binds(effects) == {"web": "roomy"}
    assert entry.attempts > 1
    assert engine.queue.flushed == 0


def test_a_pod_that_fits_nowhere_at_all_is_parked_with_the_whole_diagnosis() -> None:
    engine = engine_of(TRIES_FIVE_RANDOM_NODES)
    engine.step(0, nodes(40, taints=(taint(),)))
    engine.step(1, [waiting("web")])
    entry = engine.queue.get("default/web")
    assert entry is not None
    assert entry.state is QueueState.UNSCHEDULABLE
    assert entry.message.startswith("0/40 nodes are available: 40 node(s) had untolerated taint(s).")


def test_a_sample_as_large_as_the_cluster_is_the_cluster() -> None:
    assert not samples(profile(Sampling(nodes=5)), 5)
    assert samples(profile(Sampling(nodes=5)), 6)


def test_pods_that_were_promised_a_node_are_minded_among_the_drawn() -> None:
    """Evicting frees n000 for the first pod; the second, of the same priority, may not take it meanwhile."""
    engine = engine_of(f"{HEAD}profiles:\n- nodeSample: 1\n")
    seen = [NodeSeen(node(f"n{at}", cpu="4", pods=110)) for at in range(2)]
    low = [PodSeen(pod(f"low{at}", uid=f"low{at}", cpu="4", priority=0, node_name=f"n{at}")) for at in range(2)]
    engine.step(0, [*seen, *low])
    engine.step(1, [waiting("first", cpu="4", priority=9)])
    (promised,) = engine.state.nominations.values()
    victim = next(iter(engine.state.evictions.values())).victim
    effects = engine.step(2, [PodSeen(pod("second", uid="second", cpu="4", priority=9))])
    assert binds(effects) == {}
    assert victim.name == f"low{promised.node[1:]}"


# ── in rounds, as kube-scheduler goes ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "node_count, percentage, wanted",
    [
        pytest.param(10, 40, 10, id="a small cluster is looked at whole"),
        pytest.param(99, 1, 99, id="up to a hundred nodes"),
        pytest.param(100, 1, 100, id="never fewer than a hundred are looked for"),
        pytest.param(1_000, 40, 400, id="the percentage counts in large clusters"),
        pytest.param(1_000, 5, 100, id="unless it comes to less than a hundred"),
        pytest.param(1_111, 40, 444, id="rounded down"),
        pytest.param(1_000, 100, 1_000, id="all of them"),
    ],
)
def test_how_many_are_looked_for_is_as_in_kube_scheduler(node_count: int, percentage: int, wanted: int) -> None:
    assert enough(profile(Sampling(percentage=percentage)), node_count) == wanted


def test_one_is_enough_where_nothing_scores() -> None:
    assert enough(profile(Sampling(percentage=50), scored=False), 1_000) == 1


@given(
    st.lists(st.booleans(), max_size=12).flatmap(
        lambda fits: st.tuples(st.just(fits), st.permutations(range(len(fits))), st.integers(0, 30), st.integers(1, 12))
    )
)
def test_looking_goes_on_from_where_it_left_off_until_it_is_enough(
    case: tuple[list[bool], list[int], int, int],
) -> None:
    fits, order, start, wanted = case
    seen: list[int] = []
    found = 0
    for at in range(len(order)):  # the scalar twin
        row = order[(start + at) % len(order)]
        seen.append(row)
        found += fits[row]
        if found == wanted:
            break
    rows: IdColumn = np.array(order, np.intp)
    assert looked_at(rows, np.array(fits, np.bool_), start, wanted).tolist() == seen


def test_zones_take_turns() -> None:
    def at(zone: str, count: int) -> list[Node]:
        labels = {"topology.kubernetes.io/zone": zone} if zone else {}
        return [node(f"{zone or 'none'}{n}", labels=labels) for n in range(count)]

    cluster = cluster_of(*at("a", 3), *at("b", 1), *at("", 2))
    names = [cluster.nodes.names[row] for row in in_turns(View(cluster)).tolist()]
    assert names == ["a0", "b0", "none0", "a1", "none1", "a2"]
    cluster.remove_node("b0")
    assert [cluster.nodes.names[row] for row in in_turns(View(cluster)).tolist()] == [
        "a0",
        "none0",
        "a1",
        "none1",
        "a2",
    ]


def test_with_a_percentage_each_pod_goes_on_behind_the_last() -> None:
    """Of 300 nodes half are looked at for each pod; among equals the first in node order is taken."""
    engine = engine_of(f"{HEAD}percentageOfNodesToScore: 50\n")
    engine.step(0, nodes(300))
    found = [binds(engine.step(1 + at, [waiting(f"p{at}", cpu="1")])) for at in range(4)]
    assert found == [{"p0": "n000"}, {"p1": "n150"}, {"p2": "n001"}, {"p3": "n151"}]


def test_nodes_that_do_not_fit_do_not_count_as_found() -> None:
    engine = engine_of(f"{HEAD}percentageOfNodesToScore: 50\n")
    cordoned = [NodeSeen(node(f"n{at:03}", cpu="4", pods=110, unschedulable=at < 100)) for at in range(300)]
    engine.step(0, cordoned)
    found = [binds(engine.step(1 + at, [waiting(f"p{at}", cpu="1")])) for at in range(2)]
    assert found == [{"p0": "n100"}, {"p1": "n101"}]  # 100..249; then 250..299 and, around, 100..199


def test_a_pod_that_fits_nowhere_was_looked_for_everywhere() -> None:
    engine = engine_of(f"{HEAD}percentageOfNodesToScore: 1\n")
    engine.step(0, nodes(150, unschedulable=True))
    engine.step(1, [waiting("web")])
    entry = engine.queue.get("default/web")
    assert entry is not None
    assert entry.state is QueueState.UNSCHEDULABLE
    assert entry.message.startswith("0/150 nodes are available: 150 node(s) were unschedulable.")


def test_a_pod_that_is_turned_away_looks_at_no_node() -> None:
    """Its claim is missing, so the next pod still begins at the first node."""
    engine = engine_of(f"{HEAD}percentageOfNodesToScore: 50\n")
    engine.step(0, nodes(300))
    assert binds(engine.step(1, [waiting("lost", volumes=claimed("data"))])) == {}
    assert binds(engine.step(2, [waiting("web", cpu="1")])) == {"web": "n000"}


def test_an_empty_cluster_has_nothing_to_look_at() -> None:
    cluster = Cluster()
    assert Placer(cluster, profile(Sampling(percentage=50))).choose(cluster.class_of(pod())) == NOWHERE
    assert looked_at(in_turns(View(cluster)), np.zeros(0, np.bool_), 3, 1).tolist() == []


# ── what the configuration comes to ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text, sampling",
    [
        pytest.param("", ALL_NODES, id="nothing said: all nodes"),
        pytest.param("percentageOfNodesToScore: 0\n", ALL_NODES, id="zero: all nodes"),
        pytest.param("percentageOfNodesToScore: 30\n", Sampling(percentage=30), id="the configuration's percentage"),
        pytest.param(
            "percentageOfNodesToScore: 30\nprofiles:\n- percentageOfNodesToScore: 60\n",
            Sampling(percentage=60),
            id="the profile's before the configuration's",
        ),
        pytest.param(
            "percentageOfNodesToScore: 30\nprofiles:\n- percentageOfNodesToScore: 0\n",
            ALL_NODES,
            id="the profile's zero",
        ),
        pytest.param(
            "percentageOfNodesToScore: 30\nprofiles:\n- nodeSample: 5\n", Sampling(nodes=5), id="a sample goes first"
        ),
    ],
)
def test_what_a_configuration_looks_at(text: str, sampling: Sampling) -> None:
    (deciding,) = build_frameworks(load_config((HEAD + text).encode())).values()
    assert deciding.profile.sampling == sampling


def test_the_default_looks_at_all_nodes() -> None:
    (deciding,) = build_frameworks(default_configuration()).values()
    assert deciding.profile.sampling is ALL_NODES


def test_a_sampled_history_is_the_same_twice() -> None:
    def run() -> list[list[Effect]]:
        engine = engine_of(TRIES_FIVE_RANDOM_NODES)
        engine.step(0, nodes(30))
        steps = []
        for at in range(10):
            effects = engine.step(at + 1, [waiting(f"p{at}-{n}", cpu="500m") for n in range(10)])
            answers: list[Change] = [BindDone(one.pod, one.attempt) for one in effects if isinstance(one, Bind)]
            steps += [effects, engine.step(at + 1, answers)]
        return steps

    assert run() == run()


def test_a_pod_without_a_uid_draws_by_its_name() -> None:
    engine = engine_of(TRIES_FIVE_RANDOM_NODES)
    engine.step(0, nodes(60))
    pods: list[Pod] = [pod(f"p{at}", cpu="10m") for at in range(20)]
    assert len(set(binds(engine.step(1, [PodSeen(one) for one in pods])).values())) > 5


def test_where_extenders_have_a_say_one_node_is_not_as_good_as_another() -> None:
    assert enough(profile(Sampling(percentage=50, for_extenders=True), scored=False), 1_000) == 500
