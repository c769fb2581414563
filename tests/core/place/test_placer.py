"""The placer: with answers kept and from scratch, the same pods go to the same nodes; and what it keeps is bounded."""

from __future__ import annotations

import random
from dataclasses import replace

import msgspec
import pytest

from builders import container, node, pod, selector, taint, toleration
from situate.core.engine.framework import default_framework
from situate.core.model.meta import ObjectMeta
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.nodeselector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from situate.core.model.pod import (
    Affinity,
    NodeAffinitySpec,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from situate.core.model.workloads import SelectorSpec, Service, ServiceSpec, StatefulSet
from situate.core.place import placer as placer_module
from situate.core.place.placer import Placer
from situate.core.place.profile import Profile
from situate.core.place.selecting import NOWHERE
from situate.core.place.stopwatch import Stopwatch
from situate.core.place.verdict_cache import VerdictCache
from situate.core.state.audit import audit
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster

DEFAULT = default_framework().profile
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"

# -- workloads -----------------------------------------------------------------------------------------------------


def nodes(count: int, dice: random.Random) -> list[Node]:
    made = []
    for at in range(count):
        labels = {HOST: f"n{at}", ZONE: f"z{at % 3}", "disk": dice.choice(["ssd", "hdd"])}
        taints = (taint("batch", effect=dice.choice(["NoSchedule", "PreferNoSchedule"])),) if at % 7 == 3 else ()
        cpu = dice.choice(["2", "4", "8"])
        made.append(node(f"n{at}", labels=labels, taints=taints, cpu=cpu, memory="16Gi", pods="20"))
    return made


def near(app: str, key: str) -> PodAffinityTerm:
    return PodAffinityTerm(label_selector=selector(app=app), topology_key=key)


def basic(at: int, dice: random.Random) -> Pod:
    return pod(f"p{at}", labels={"app": "web"}, cpu="250m", memory="512Mi")


def spread(at: int, dice: random.Random) -> Pod:
    app = dice.choice(["web", "db"])
    constraints = tuple(
        TopologySpreadConstraint(
            max_skew=1, topology_key=key, when_unsatisfiable=action, label_selector=selector(app=app)
        )
        for key, action in ((ZONE, "DoNotSchedule"), (HOST, "ScheduleAnyway"))
    )
    return pod(f"p{at}", labels={"app": app}, cpu="250m", topology_spread_constraints=constraints)


def anti(at: int, dice: random.Random) -> Pod:
    app = dice.choice(["web", "db", "cache"])
    apart = PodAffinity(required_during_scheduling_ignored_during_execution=(near(app, HOST),))
    return pod(f"p{at}", labels={"app": app}, cpu="250m", affinity=Affinity(pod_anti_affinity=apart))


def prefaff(at: int, dice: random.Random) -> Pod:
    app = dice.choice(["web", "db"])
    close = PodAffinity(
        preferred_during_scheduling_ignored_during_execution=(
            WeightedPodAffinityTerm(weight=50, pod_affinity_term=near("db", ZONE)),
        )
    )
    return pod(f"p{at}", labels={"app": app}, cpu="250m", affinity=Affinity(pod_affinity=close))


def on_disk(disk: str) -> Affinity:
    ssd = NodeSelectorRequirement(key="disk", operator="In", values=(disk,))
    wanted = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(ssd,)),))
    return Affinity(node_affinity=NodeAffinitySpec(required_during_scheduling_ignored_during_execution=wanted))


def tolerant(at: int, dice: random.Random) -> Pod:
    return pod(f"p{at}", tolerations=(toleration("batch", "Exists"),), cpu="1", affinity=on_disk("ssd"))


def mixed(at: int, dice: random.Random) -> Pod:
    return dice.choice([basic, spread, anti, prefaff, tolerant])(at, dice)


def distinct(at: int, dice: random.Random) -> Pod:
    """No two alike, so nothing that is kept of one is of use to another."""
    asked = {"cpu": f"{100 + dice.randrange(900)}m", "memory": f"{64 + at}Mi"}
    return pod(f"p{at}", labels={"app": f"app{at}"}, containers=(container(requests=asked),))


KINDS = {kind.__name__: kind for kind in (basic, spread, anti, prefaff, mixed, distinct)}


def play(kind: str, seed: int, *, cache: bool) -> list[str]:
    """Place pods one after another while others leave and nodes change; where each went, by name."""
    dice = random.Random(seed)
    cluster = Cluster()
    made = nodes(14, dice)
    service = Service(metadata=ObjectMeta(name="s", namespace="default"), spec=ServiceSpec(selector={"app": "web"}))
    cluster.load(made, [service], [])
    placer = Placer(cluster, DEFAULT, cache=cache)
    went = []
    for at in range(70):
        waiting = KINDS[kind](at, dice)
        waiting_class = cluster.class_of(waiting)
        row = placer.choose(waiting_class)
        went.append("" if row == NOWHERE else cluster.nodes.names[row])
        if row != NOWHERE:
            cluster.put(waiting, waiting_class, row)
        if dice.random() < 0.2:
            cluster.remove_pod(f"default/p{dice.randrange(70)}")
        if dice.random() < 0.05:
            again = nodes(14, dice)[dice.randrange(14)]
            cluster.add_node(again)
        if dice.random() < 0.03:
            cluster.remove_node(f"n{dice.randrange(14)}")
    assert audit(cluster) == []
    return went


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_pods_go_to_the_same_nodes_with_the_cache_on_and_off(kind: str, seed: int) -> None:
    kept = play(kind, seed, cache=True)
    assert kept == play(kind, seed, cache=False)
    assert len(set(kept)) > 3, "they go to several nodes, or the test shows little"


@pytest.mark.parametrize("kind", ["spread", "mixed"])
def test_they_do_so_too_where_next_to_nothing_may_be_kept(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = play(kind, 1, cache=False)
    monkeypatch.setattr(placer_module, "CACHE_BYTES", 1)
    monkeypatch.setattr(placer_module, "SEEN_ONCE_LIMIT", 1)
    assert play(kind, 1, cache=True) == expected


# -- what is kept --------------------------------------------------------------------------------------------------


def small_cluster() -> Cluster:
    cluster = Cluster()
    for at in range(4):
        cluster.add_node(node(f"n{at}", cpu="4", memory="4Gi", pods="10"))
    return cluster


def classes(cluster: Cluster, count: int) -> list[PodClass]:
    return [cluster.class_of(pod("w", cpu=f"{at + 1}m")) for at in range(count)]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[PodClass]:
    """The classes for which verdict caches were made, in order."""
    found: list[PodClass] = []

    class Counted(VerdictCache):
        def __init__(self, cluster: Cluster, profile: Profile, pod: PodClass, stopwatch: Stopwatch) -> None:
            found.append(pod)
            super().__init__(cluster, profile, pod, stopwatch)

    monkeypatch.setattr(placer_module, "VerdictCache", Counted)
    return found


def ask(placer: Placer, *wanted: PodClass) -> None:
    for one in wanted:
        assert placer.choose(one) == 0


def test_answers_are_kept_from_the_second_time_on(made: list[PodClass]) -> None:
    cluster = small_cluster()
    placer = Placer(cluster, DEFAULT)
    a, b = classes(cluster, 2)
    ask(placer, a, b)
    assert made == []
    ask(placer, a, a, b)
    assert made == [a, b]


def labelled(cluster: Cluster, count: int) -> list[PodClass]:
    return [cluster.class_of(pod("w", labels={"app": "db", "index": str(at)})) for at in range(count)]


def test_who_differs_only_in_a_label_that_nothing_selects_shares_answers(made: list[PodClass]) -> None:
    cluster = small_cluster()
    placer = Placer(cluster, DEFAULT)
    a, b, c = labelled(cluster, 3)
    ask(placer, a, b, c)
    assert made == [a]
    assert placer.verdicts(a) is placer.verdicts(b) is placer.verdicts(c) is not None


BY_INDEX = selector(index="1")
APART = PodAffinityTerm(label_selector=BY_INDEX, topology_key=HOST)
SPREAD = TopologySpreadConstraint(max_skew=9, topology_key=HOST, when_unsatisfiable="ScheduleAnyway")
SELECTING: list[tuple[str, Pod | NamedObject]] = [
    ("a service", Service(metadata=ObjectMeta(name="s", namespace="x"), spec=ServiceSpec(selector={"index": "1"}))),
    ("a StatefulSet", StatefulSet(metadata=ObjectMeta(name="s"), spec=SelectorSpec(selector=BY_INDEX))),
    (
        "an affinity term",
        pod(affinity=Affinity(pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(APART,)))),
    ),
    (
        "a spread constraint",
        pod(topology_spread_constraints=(msgspec.structs.replace(SPREAD, label_selector=BY_INDEX),)),
    ),
    (
        "a spread constraint that compares",
        pod(topology_spread_constraints=(msgspec.structs.replace(SPREAD, match_label_keys=("index",)),)),
    ),
]


@pytest.mark.parametrize("who,selecting", SELECTING)
def test_once_something_selects_the_label_they_share_no_more(
    made: list[PodClass], who: str, selecting: Pod | NamedObject
) -> None:
    cluster = small_cluster()
    placer = Placer(cluster, DEFAULT)
    a, b = labelled(cluster, 2)
    ask(placer, a, b)
    if isinstance(selecting, Pod):
        cluster.class_of(selecting)
    else:
        cluster.put_object(selecting)
    ask(placer, a, b, b)
    assert made == [a, b], who


def test_a_plugin_from_elsewhere_may_read_any_label(made: list[PodClass]) -> None:
    cluster = small_cluster()
    placer = Placer(cluster, replace(DEFAULT, reads_selected_labels=False))
    a, b = labelled(cluster, 2)
    ask(placer, a, b)
    assert made == []


def test_nothing_is_kept_with_the_cache_off(made: list[PodClass]) -> None:
    cluster = small_cluster()
    placer = Placer(cluster, DEFAULT, cache=False)
    (a,) = classes(cluster, 1)
    ask(placer, a, a, a)
    assert made == []


def limit_to(count: int, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    size = VerdictCache(cluster, DEFAULT, cluster.class_of(pod("measured"))).nbytes
    monkeypatch.setattr(placer_module, "CACHE_BYTES", count * size)


def test_beyond_the_limit_the_class_that_was_asked_for_longest_ago_goes(
    made: list[PodClass], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = small_cluster()
    limit_to(2, cluster, monkeypatch)
    placer = Placer(cluster, DEFAULT)
    a, b, c = classes(cluster, 3)
    ask(placer, a, a, b, b, a, c, c)
    assert made == [a, b, c]
    ask(placer, a, c)
    assert made == [a, b, c], "these are kept"
    ask(placer, b, b)
    assert made == [a, b, c, b]


def test_one_class_is_kept_however_large(made: list[PodClass], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placer_module, "CACHE_BYTES", 0)
    cluster = small_cluster()
    placer = Placer(cluster, DEFAULT)
    a, b = classes(cluster, 2)
    ask(placer, a, a, a, a)
    assert made == [a]
    ask(placer, b, b, a, a)
    assert made == [a, b, a]


def test_the_limit_holds_as_answers_and_the_cluster_grow(made: list[PodClass], monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer may come to take more than when it was first kept."""
    cluster = Cluster()
    cluster.add_node(node("n0", cpu="1"))
    monkeypatch.setattr(placer_module, "CACHE_BYTES", 40_000)
    placer = Placer(cluster, DEFAULT)
    early = classes(cluster, 20)
    for one in early * 2:
        assert placer.choose(one) == NOWHERE
    for at in range(100):
        cluster.add_node(node(f"n{at}", cpu="4", memory="4Gi", pods="10"))
    ask(placer, *early)
    late = [cluster.class_of(pod("w", cpu=f"{at + 500}m")) for at in range(20)]
    for one in late * 2:
        placer.choose(one)
    assert sum(standing.nbytes for standing in placer._caches.values()) <= 40_000


def test_only_so_many_classes_that_were_asked_for_once_are_remembered(
    made: list[PodClass], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placer_module, "SEEN_ONCE_LIMIT", 2)
    cluster = small_cluster()
    placer = Placer(cluster, DEFAULT)
    a, b, c = classes(cluster, 3)
    ask(placer, a, b, c, a)
    assert made == [], "a was forgotten"
    ask(placer, a)
    assert made == [a]


def test_nothing_fits_in_an_empty_cluster() -> None:
    cluster = Cluster()
    for cache in (True, False):
        placer = Placer(cluster, DEFAULT, cache=cache)
        assert [placer.choose(cluster.class_of(pod("w"))) for _ in range(3)] == [NOWHERE] * 3


def test_a_profile_that_asks_nobody_takes_the_first_node() -> None:
    cluster = small_cluster()
    cluster.remove_node("n0")
    placer = Placer(cluster, Profile("bare", (), ()))
    waiting = cluster.class_of(pod("w"))
    assert [placer.choose(waiting) for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("cache", [True, False], ids=["kept", "from scratch"])
def test_excluded_nodes_are_left_out_and_only_this_once(cache: bool) -> None:
    cluster = small_cluster()
    placer = Placer(cluster, DEFAULT, cache=cache)
    waiting = cluster.class_of(pod("w", cpu="1"))
    for _ in range(5):
        assert placer.choose(waiting, [0, 2]) == 1
        assert placer.choose(waiting, {0: None, 1: None, 2: None}) == 3
        assert placer.choose(waiting, range(4)) == NOWHERE
        assert placer.choose(waiting) == 0
