"""Virtual time: small worlds with exact figures; and whatever comes, nobody is lost and no node is overfull."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod, selector
from situate.core.config.defaults import default_configuration
from situate.core.model.meta import ObjectMeta, OwnerReference
from situate.core.model.node import Node
from situate.core.model.pod import Pod, PodSchedulingGate
from situate.core.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from situate.core.model.priority import priority_classes
from situate.core.model.storage import StorageClass
from situate.core.state.audit import audit
from situate.sim.whatif import backlog
from situate.sim.whatif.arrivals import ArrivalOptions, add_trace, script_of
from situate.sim.whatif.curves import stays
from situate.sim.whatif.distributions import parse_rate
from situate.sim.whatif.expansion import SourceLocation, WorkloadExpander
from situate.sim.whatif.figures import Figures, Prices, figures_of
from situate.sim.whatif.fragmentation import fragmentation
from situate.sim.whatif.ledger import OPEN
from situate.sim.whatif.script import ClusterSnapshot, PodSet, Script
from situate.sim.whatif.trace import read_trace
from situate.sim.whatif.world import Remade, SimulationRun, SimulationSettings, run

OWNER = (OwnerReference(kind="ReplicaSet", name="rs", uid="rs", controller=True),)
BIG = {"cpu": "4", "memory": "8Gi", "pods": "10"}


def script(trace: str, *, waiting: Any = (), groups: Any = ()) -> Script:
    made = script_of(list(waiting), groups, (), ArrivalOptions(), 0)
    if trace:
        read = read_trace(
            trace.encode(),
            "t",
            classes=priority_classes(()),
            templates=lambda name: {},
            taken={},
            seed=0,
            duration=None,
            first_group=len(made.groups),
        )
        add_trace(made, read)
    return made


def play(nodes: list[Node], made: Script, *, bound: Any = (), named: Any = (), **said: Any) -> SimulationRun:
    snapshot = ClusterSnapshot(nodes, list(named), list(bound))
    return run(snapshot, made, default_configuration(), {}, SimulationSettings(**said), lambda came, of: None)


def figures(went: SimulationRun, prices: Prices | None = None) -> Figures:
    return figures_of(went, prices, went.end_ms)


def job(parallelism: int, completions: int, cpu: str, duration: str) -> PodSet:
    template = {
        "metadata": {"annotations": {"situate.dev/duration": duration}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
    }
    spec = {"parallelism": parallelism, "completions": completions, "template": template}
    return WorkloadExpander(priority_classes(()), ()).expand(
        "Job", {"metadata": {"name": "j"}, "spec": spec}, SourceLocation("w")
    )


# ── small worlds ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_pod_that_finds_no_room_waits_until_one_leaves() -> None:
    went = play([node(**BIG)], script("time,name,cpu,duration\n0,a,3,10\n2,b,3,10\n"))
    found = figures(went)
    assert found.end_ms == 20_000
    assert (found.counts.arrived, found.counts.placed, found.counts.finished) == (2, 2, 2)
    assert (found.wait.p50_ms, found.wait.p99_ms, found.wait.max_ms) == (0, 8_000, 8_000)
    (cpu, *_) = found.resources
    assert (cpu.name, cpu.allocatable, cpu.mean, cpu.peak, cpu.end) == ("cpu", 4_000, 0.75, 0.75, 0.0)
    assert (found.nodes.mean, found.nodes.peak, found.nodes.end) == (1.0, 1, 0)
    assert list(found.series.pending) == ["Insufficient cpu"]


def test_what_still_waits_at_the_end_is_told_by_reason() -> None:
    nodes = [node("n1", **BIG), node("n2", **BIG, labels={"disk": "ssd"})]
    went = play(nodes, script("time,name,count,cpu,nodeSelector\n0,big,3,6,\n0,picky,1,1,disk=hdd\n"))
    assert [(one.pods, one.reason) for one in figures(went).pending] == [
        (3, "Insufficient cpu"),
        (1, "node(s) didn't match Pod's node affinity/selector"),
    ]
    assert figures(went).pending[0].examples == ("default/big-0", "default/big-1", "default/big-2")


def test_a_job_goes_on_until_all_its_pods_are_done() -> None:
    found = figures(play([node(**BIG)], script("", groups=[job(2, 5, "1", "10")])))
    assert (found.counts.arrived, found.counts.finished, found.end_ms) == (5, 5, 30_000)
    assert found.resources[0].mean == pytest.approx(5 * 10 / (4 * 30))


def test_the_end_can_be_set() -> None:
    found = figures(play([node(**BIG)], script("time,name,cpu\n0,a,1\n100,b,1\n"), until_ms=50_000))
    assert (found.counts.arrived, found.counts.running, found.end_ms) == (1, 1, 50_000)


def test_a_deletion_takes_pods_that_run_and_pods_that_wait() -> None:
    trace = "time,action,name,cpu\n0,create,a,3\n0,create,b,3\n5,delete,b,\n9,delete,a,\n"
    found = figures(play([node(**BIG)], script(trace)))
    assert (found.counts.placed, found.counts.deleted, found.counts.running, found.counts.pending) == (1, 2, 0, 0)


def test_a_more_important_pod_evicts_one_that_is_made_again_if_it_has_a_controller() -> None:
    low = pod("low", cpu="3", owner_references=OWNER, node_name="n1", uid="low")
    trace = "time,name,cpu,priority,duration\n10,vip,3,100,60\n"
    found = figures(play([node("n1", **BIG)], script(trace), bound=[low]))
    counts = found.counts
    assert (counts.snapshot, counts.arrived, counts.remade, counts.evicted, found.evictions) == (1, 1, 1, 1, 1)
    assert (counts.running, counts.finished, counts.pending) == (1, 1, 0)
    assert found.end_ms == 70_000
    alone = figures(play([node("n1", **BIG)], script(trace), bound=[low], remade=Remade.NONE))
    assert (alone.counts.remade, alone.counts.running) == (0, 0)


def test_a_victim_takes_the_time_that_it_is_given() -> None:
    low = pod("low", cpu="3", node_name="n1", uid="low")
    went = play([node("n1", **BIG)], script("time,name,cpu,priority\n10,vip,3,100\n"), bound=[low], grace_ms=30_000)
    assert figures(went).wait.max_ms == 30_000


def test_an_eviction_uses_a_budget_up_and_the_pod_in_its_place_gives_it_back() -> None:
    nodes = [node("n1", **BIG), node("n2", **BIG)]
    bound = [
        pod(f"low-{at}", cpu="3", owner_references=OWNER, labels={"app": "low"}, node_name=f"n{at}", uid=f"u{at}")
        for at in (1, 2)
    ]
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(name="b", namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=selector(app="low")),
        status=PodDisruptionBudgetStatus(disruptions_allowed=1),
    )
    trace = "time,name,cpu,priority,duration\n1,vip,3,100,10\n"
    went = play(nodes, script(trace), bound=bound, named=[budget])
    (left,) = went.engine.cluster.objects.budgets.values()
    assert (figures(went).evictions, left.status.disruptions_allowed) == (1, 1)
    cut = play(nodes, script(trace), bound=bound, named=[budget], until_ms=5_000)
    (used,) = cut.engine.cluster.objects.budgets.values()
    assert used.status.disruptions_allowed == 0


def test_gated_pods_and_pods_of_other_schedulers_wait_and_say_why() -> None:
    gated = pod("gated", scheduling_gates=(PodSchedulingGate(name="g"),))
    foreign = pod("foreign", scheduler_name="mine")
    found = figures(play([node(**BIG)], script("", waiting=[gated, foreign])))
    assert sorted(one.reason for one in found.pending) == [
        "waiting for scheduling gates: [g]",
        "waits for scheduler mine",
    ]


def test_pods_come_by_lot_as_many_as_the_workloads_have() -> None:
    made = script_of([], [job(2, 30, "1", "1")], (), ArrivalOptions(parse_rate("poisson:1")), 3)
    assert len(made.arrivals) == 30
    assert [one.at_ms for one in made.arrivals] == sorted(one.at_ms for one in made.arrivals)
    assert 15_000 < made.arrivals[-1].at_ms < 60_000
    assert figures(play([node(**BIG)], made)).counts.arrived == 30


def test_the_moments_of_a_node_that_is_used_cost_money() -> None:
    went = play(
        [node("n1", **BIG), node("n2", **BIG)], script("time,name,cpu,duration\n0,a,3,10\n0,b,3,5\n10,c,1,10\n")
    )
    found = figures(went, Prices("EUR", (1_000_000, 1_000_000)))
    assert found.money is not None
    assert (found.money.mean, found.money.peak, found.money.all_nodes) == (1.25, 2.0, 2.0)


def test_spread_is_measured_when_most_pods_run() -> None:
    zones = ["a", "a", "b"]
    nodes = [
        node(f"n{at}", **BIG, labels={"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": f"n{at}"})
        for at, zone in enumerate(zones)
    ]
    found = figures(play(nodes, script("time,name,count,cpu,duration\n0,web,3,3,10\n")))
    assert (found.zones.domains, found.zones.workloads, found.zones.mean, found.zones.worst) == (2, 1, 1.0, 1)
    assert (found.hosts.worst, found.hosts.worst_workload, found.busiest_ms) == (1, "default/web", 0)


def test_fragmentation_is_what_is_free_where_a_pod_of_the_workload_does_not_fit() -> None:
    room = np.array([[4, 4], [8, 8]])
    used = np.array([[3, 0], [0, 0]])
    # Half of the pods want two of the first: the one that is free on the first node is lost to them.
    mix = [(1, np.array([2, 1])), (1, np.array([1, 1]))]
    assert fragmentation(room, used, mix) == [pytest.approx(0.5 * 1 / 5), pytest.approx(0.5 * 8 / 16)]
    assert fragmentation(room, room, mix) == [None, None]
    assert fragmentation(room, used, []) == [None, None]


# ── whatever comes ──────────────────────────────────────────────────────────────────────────────────────────────────

lines = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.sampled_from([100, 500, 1_000, 1_500, 3_000, 5_000]),
        st.sampled_from(["", "0", "3", "exp:5", "uniform:1..9"]),
        st.sampled_from([0, 0, 0, 10, 100]),
        st.integers(1, 4),
    ),
    min_size=1,
    max_size=16,
)


def traced(drawn: list[tuple[int, int, str, int, int]]) -> str:
    rows = [
        f"{at},pod-{number},{count},{cpu}m,{duration},{priority}"
        for number, (at, cpu, duration, priority, count) in enumerate(sorted(drawn, key=lambda one: one[0]))
    ]
    return "\n".join(["time,name,count,cpu,duration,priority", *rows])


def conserved(found: Figures) -> bool:
    counts = found.counts
    became = counts.running + counts.pending + counts.finished + counts.deleted + counts.evicted
    return counts.snapshot + counts.arrived + counts.remade == became


def overfull(went: SimulationRun) -> list[int]:
    """The moments after which a node has more pods than it has room for; added up from the stays alone."""
    held = stays(went.ledger, went.end_ms)
    table, found = went.engine.cluster.nodes, []
    for moment in sorted({*held.begin.tolist(), *held.end.tolist()}):
        there = (held.begin <= moment) & (held.end > moment)
        used = np.zeros_like(table.allocatable)
        for shape, row in zip(held.shapes[there].tolist(), held.nodes[there].tolist(), strict=True):
            for column, amount in went.ledger.shapes[shape].takes:
                used[column, row] += amount
        if (used > table.allocatable).any():
            found.append(moment)
    return found


@settings(max_examples=20, deadline=None)
@given(drawn=lines, remade=st.sampled_from(Remade), grace=st.sampled_from([0, 0, 2_500]))
def test_nobody_is_lost_and_no_node_is_ever_overfull(drawn: Any, remade: Remade, grace: int) -> None:
    nodes = [node("n1", cpu="3", memory="8Gi", pods="5"), node("n2", cpu="2", memory="8Gi", pods="5")]
    bound = [pod("old", cpu="1", owner_references=OWNER, node_name="n1", uid="old")]
    went = play(nodes, script(traced(drawn)), bound=bound, remade=remade, grace_ms=grace)
    found = figures(went)
    assert conserved(found)
    assert overfull(went) == []
    assert audit(went.engine.cluster) == []
    assert found.counts.arrived == sum(count for *_, count in drawn)
    assert sum(one.pods for one in found.pending) == found.counts.pending
    waits = zip(went.ledger.wait_from, went.ledger.wait_to, strict=True)
    assert all(until == OPEN or begin < until for begin, until in waits)


@settings(max_examples=12, deadline=None)
@given(drawn=lines)
def test_holding_pods_back_places_no_fewer(drawn: Any) -> None:
    """With everybody in the queue, and with one of a class: of pods that all fit once, all are placed either way."""
    fitting = [(at, min(cpu, 2_000), duration or "5", 0, count) for at, cpu, duration, _, count in drawn]
    nodes = [node("n1", cpu="2", memory="8Gi", pods="3")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backlog, "MAX_QUEUED", 1)
        few = play(nodes, script(traced(fitting)))
    everybody = play(nodes, script(traced(fitting)))
    total = sum(count for *_, count in fitting)
    assert figures(few).counts.finished == figures(everybody).counts.finished == total
    assert overfull(few) == []


def test_a_hundred_pods_that_are_alike_stand_for_each_other() -> None:
    went = play([node(cpu="2", memory="8Gi", pods="10")], script("time,name,count,cpu,duration\n0,web,100,1,10\n"))
    found = figures(went)
    assert (found.counts.finished, found.end_ms, found.wait.max_ms) == (100, 500_000, 490_000)
    assert [entry.key for entry in went.engine.queue.values()] == []


def test_pods_of_a_snapshot_are_of_their_owners_group() -> None:
    low: Pod = pod("low", cpu="1", owner_references=OWNER, node_name="n1", uid="low")
    went = play([node("n1", **BIG)], script("time,name,cpu\n0,a,1\n"), bound=[low])
    assert "ReplicaSet default/rs" in went.groups


# ── volumes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_volumes_are_made_where_the_pods_go_and_hold_them_there() -> None:
    late = StorageClass(
        metadata=ObjectMeta(name="disk"), provisioner="disk.example.com", volume_binding_mode="WaitForFirstConsumer"
    )
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "disk",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    template = {
        "metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]},
    }
    spec = {"replicas": 3, "template": template, "volumeClaimTemplates": [claim]}
    expander = WorkloadExpander(priority_classes(()), ())
    group = expander.expand("StatefulSet", {"metadata": {"name": "db"}, "spec": spec}, SourceLocation("w"))
    nodes = [node(f"n{at}", **BIG, labels={"topology.kubernetes.io/zone": zone}) for at, zone in enumerate("ab")]
    went = play(nodes, script("", groups=[group]), named=[late])
    storage = went.engine.cluster.objects.storage
    assert sorted(name for _, name in storage.claims) == ["data-db-0", "data-db-1", "data-db-2"]
    assert [one.spec.volume_name for one in storage.claims.values()] == [
        "pvc-default-data-db-0",
        "pvc-default-data-db-1",
        "",
    ]
    found = figures(went)
    assert (found.counts.arrived, found.counts.placed, found.counts.pending) == (3, 2, 1)
