"""Another scheduler's choice, held against ours on the same cluster."""

import random
from typing import Any

import pytest
from msgspec.structs import replace

from builders import node, pod, selector, term
from situate.core.changes import Change, Leading, NodeSeen, PodGone, PodRef, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.config.types import Extender, KubeSchedulerConfiguration
from situate.core.effects import Effect
from situate.core.engine import compare
from situate.core.engine.compare import EXTENDERS, HELD, NO_SUCH_NODE, RULED_OUT, Compared, Comparer
from situate.core.engine.engine import Engine
from situate.core.model.nodeselector import NodeSelector
from situate.core.model.pod import Affinity, NodeAffinitySpec, Pod, TopologySpreadConstraint
from situate.core.place.profile import Profile
from situate.core.place.verdict_cache import VerdictCache
from situate.core.queue.queued_pod import QueuedPod
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.pods import BoundPod

NODES = [NodeSeen(node(name, cpu=cpu, memory="8Gi", pods=10)) for name, cpu in (("n1", "4"), ("n2", "4"), ("n3", "8"))]


def looking_on(*changes: Change, config: KubeSchedulerConfiguration | None = None) -> Engine:
    engine = Engine(config or default_configuration())
    effects: list[Effect] = engine.step(0, [Leading(False), *changes])
    assert effects == []
    return engine


def waiting(engine: Engine, wanted: Pod) -> QueuedPod:
    engine.step(1, [PodSeen(wanted)])
    entry = engine.queue.get(f"{wanted.metadata.namespace}/{wanted.metadata.name}")
    assert entry is not None
    return entry


def compared(theirs: str, *changes: Change, **fields: Any) -> Compared:
    engine = looking_on(*changes)
    return Comparer(engine.cycle).compare(waiting(engine, pod("web", uid="u", **fields)), theirs)


def test_the_same_node_is_the_same() -> None:
    found = compared("n3", *NODES, cpu="1", memory="1Gi")
    assert (found.agreement, found.ours, found.gap, found.agrees) == ("same", "n3", 0, True)


def test_a_node_that_is_as_good_is_equal() -> None:
    found = compared("n2", *NODES[:2], cpu="1", memory="1Gi")
    assert (found.agreement, found.ours, found.gap, found.agrees) == ("equal", "n1", 0, True)


def test_a_node_that_is_less_good_is_worse_by_the_difference() -> None:
    found = compared("n1", *NODES, cpu="1", memory="1Gi")
    assert (found.agreement, found.ours, found.agrees) == ("worse", "n3", False)
    assert found.our_score is not None
    assert found.their_score is not None
    assert found.gap == found.our_score - found.their_score > 0


def test_a_node_where_it_does_not_fit_is_named_with_the_reason() -> None:
    found = compared("n1", *NODES, cpu="6", memory="1Gi")
    assert (found.agreement, found.ours, found.gap) == ("infeasible", "n3", None)
    assert found.reason == "NodeResourcesFit: Insufficient cpu"


def test_a_pod_that_fits_nowhere_is_ours_nowhere() -> None:
    found = compared("n1", *NODES, node_selector={"disk": "tape"})
    assert (found.agreement, found.ours) == ("infeasible", "")
    assert found.reason == "NodeAffinity: node(s) didn't match Pod's node affinity/selector"


def test_a_node_that_we_do_not_know_cannot_be_compared() -> None:
    found = compared("gone", *NODES)
    assert (found.agreement, found.reason) == ("unknown", NO_SUCH_NODE)


def test_a_pod_that_names_its_node_is_told_so_of_others() -> None:
    required = NodeSelector(node_selector_terms=(term(fields=(("metadata.name", "In", "n2"),)),))
    affinity = Affinity(node_affinity=NodeAffinitySpec(required_during_scheduling_ignored_during_execution=required))
    found = compared("n1", *NODES, affinity=affinity)
    assert (found.agreement, found.ours, found.reason) == ("infeasible", "n2", RULED_OUT)


def test_a_pod_that_an_extender_has_a_say_on_cannot_be_compared() -> None:
    config = replace(default_configuration(), extenders=(Extender(url_prefix="http://e", filter_verb="filter"),))
    engine = looking_on(*NODES, config=config)
    found = Comparer(engine.cycle).compare(waiting(engine, pod("web", uid="u")), "n1")
    assert (found.agreement, found.reason) == ("unknown", EXTENDERS)


def test_a_node_that_was_freed_for_the_pod_is_ours() -> None:
    found = compared("n1", *NODES, cpu="1", memory="1Gi", nominated_node_name="n1")
    assert (found.agreement, found.ours) == ("same", "n1")


def test_a_node_that_is_being_freed_for_another_is_not_to_be_had() -> None:
    engine = looking_on(*NODES, PodSeen(pod("first", uid="f", cpu="4", nominated_node_name="n1", priority=5)))
    found = Comparer(engine.cycle).compare(waiting(engine, pod("web", uid="u", cpu="1", priority=5)), "n1")
    assert (found.agreement, found.reason) == ("infeasible", HELD)


def test_answers_that_are_kept_are_those_from_scratch() -> None:
    engine = looking_on(*NODES)
    comparer = Comparer(engine.cycle)
    for at in range(6):
        name = f"web-{at}"
        entry = waiting(engine, pod(name, uid=name, cpu="1", memory="1Gi"))
        for theirs in ("n1", "n2", "n3"):
            assert comparer.compare(entry, theirs) == Comparer(engine.cycle).compare(entry, theirs)
        best = comparer.compare(entry, "n1").ours
        engine.step(2 + at, [PodSeen(pod(name, uid=name, cpu="1", memory="1Gi", node_name=best))])


def spread_pod(dice: random.Random, name: str) -> dict[str, Any]:
    """The fields of a pod that looks at load, labels or neighbours, or at none of them."""
    labels = {"app": dice.choice(["web", "db"])}
    fields: dict[str, Any] = {"uid": name, "labels": labels, "cpu": f"{dice.choice([100, 500, 900])}m"}
    if dice.random() < 0.5:
        constraint = TopologySpreadConstraint(
            max_skew=1,
            topology_key="zone",
            when_unsatisfiable=dice.choice(["DoNotSchedule", "ScheduleAnyway"]),
            label_selector=selector(app=labels["app"]),
        )
        fields["topology_spread_constraints"] = (constraint,)
    return fields


@pytest.mark.parametrize("seed", range(20), ids=lambda seed: f"seed {seed}")
def test_without_some_pods_it_is_as_if_they_had_never_come(seed: int) -> None:
    dice = random.Random(seed)
    nodes = [NodeSeen(node(f"n{at}", cpu="4", pods=9, labels={"zone": f"z{at % 3}"})) for at in range(6)]
    running = [
        PodSeen(pod(f"r{at}", node_name=f"n{dice.randrange(6)}", **spread_pod(dice, f"r{at}"))) for at in range(15)
    ]
    engine = looking_on(*nodes, *running)
    entry = waiting(engine, pod("asked", **spread_pod(dice, "asked")))
    pods = engine.cluster.pods
    left_out: list[BoundPod] = [pods.bound(row) for row in dice.sample(sorted(pods.rows.values()), 5)]
    found = [Comparer(engine.cycle).compare(entry, f"n{at}", left_out) for at in range(6)]
    engine.step(9, [PodGone(PodRef(one.namespace, one.name, one.uid)) for one in left_out])
    assert found == [Comparer(engine.cycle).compare(entry, f"n{at}") for at in range(6)]


@pytest.mark.parametrize("theirs, ours, gap", [(3, 5, 2), (5, 3, 0), (None, 5, None), (3, None, None)])
def test_the_gap_is_how_much_better_ours_scores_if_both_have_a_score(
    theirs: int | None, ours: int | None, gap: int | None
) -> None:
    assert Compared("worse", "n1", "n2", theirs, ours).gap == gap


def test_verdicts_are_cached_for_the_classes_of_pods_that_were_compared_last(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    class Counting(VerdictCache):
        def __init__(self, cluster: Cluster, profile: Profile, pod: PodClass) -> None:
            made.append(pod.labels["app"])
            super().__init__(cluster, profile, pod)

    monkeypatch.setattr(compare, "VerdictCache", Counting)
    monkeypatch.setattr(compare, "KEPT", 2)
    engine = looking_on(*NODES)
    entries = {name: waiting(engine, pod(name, uid=name, labels={"app": name})) for name in "abc"}
    comparer = Comparer(engine.cycle)
    for name in "abacab":
        comparer.compare(entries[name], "n1")
    assert "".join(made) == "abcb"
