"""Plans that free a shape or a node: legal at every step, no longer than a greedy one, and as short as can be."""

from dataclasses import replace

import msgspec
import pytest

from situate.core.plan.defrag import DefragPlan, defrag
from situate.core.plan.eviction_rules import DrainRules
from situate.core.plan.goals import NodeGoal, ShapeGoal
from yards import GI, App, Host, Yard, fewest_moves, greedy, pod_of, random_yard

LARGE = App("shape", cpu=15_000, memory=20 * GI)
EVERY_SEED = range(12)


def freed(yard: Yard, shape: App) -> DefragPlan:
    return defrag(yard.sandbox(), ShapeGoal(pod_of(shape, "shape")), DrainRules())


def yard_of(hosts: dict[str, int], apps: list[App], pods: dict[str, tuple[str, str]]) -> Yard:
    """Hosts with so much cpu; pods as (app, host)."""
    yard = Yard(
        {name: Host(name, cpu, 64 * GI, 110, "a") for name, cpu in hosts.items()}, {app.name: app for app in apps}
    )
    for name, (app, host) in pods.items():
        yard.put(name, app, host)
    return yard


# ── on clusters of some size ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", EVERY_SEED)
def test_on_a_half_full_cluster_of_500_nodes_it_takes_no_more_moves_than_a_greedy_plan(seed: int) -> None:
    yard = random_yard(seed, 500, fill=0.5)
    shape = LARGE if seed % 2 else App("shape", cpu=15_900, memory=60 * GI, pool="fast" if seed % 4 else "")
    plan, baseline = freed(yard, shape), greedy(yard, shape)
    assert plan.found
    assert yard.moved(plan.moves).refusal(shape, plan.node) == ""
    assert baseline is None or len(plan.moves) <= len(baseline)


@pytest.mark.parametrize("fill", [0.75, 0.9, 1.1])
@pytest.mark.parametrize("seed", range(4))
def test_on_fuller_clusters_it_takes_no_more_moves_than_a_greedy_plan(seed: int, fill: float) -> None:
    yard = random_yard(100 + seed, 60, fill=fill)
    plan, baseline = freed(yard, LARGE), greedy(yard, LARGE)
    assert plan.found or baseline is None
    assert yard.moved(plan.moves).refusal(LARGE, plan.node) == "" if plan.found else True
    assert baseline is None or len(plan.moves) <= len(baseline)


@pytest.mark.parametrize("seed", range(8))
def test_a_node_is_freed_by_moving_every_pod_on_it_once(seed: int) -> None:
    yard = random_yard(200 + seed, 40, fill=0.6)
    plan = defrag(yard.sandbox(), NodeGoal(), DrainRules())
    after = yard.moved(plan.moves)
    assert plan.found
    assert [name for name in after.on(plan.node) if yard.apps[yard.of[name]].owner != "DaemonSet"] == []
    assert len(plan.moves) >= len([name for name in yard.on(plan.node) if yard.movable(name)])


@pytest.mark.parametrize("seed", range(4))
def test_the_ground_is_left_as_it_was(seed: int) -> None:
    yard = random_yard(300 + seed, 30, fill=0.9)
    sandbox = yard.sandbox()
    before = {key: pod.spec.node_name for key, pod in sandbox.pods.items()}
    defrag(sandbox, ShapeGoal(pod_of(LARGE, "shape")), DrainRules())
    assert {key: pod.spec.node_name for key, pod in sandbox.pods.items()} == before
    assert {key: sandbox.cluster.node_of(key) for key in before} == before
    assert not any(node.spec.unschedulable for node in sandbox.nodes())


# ── on clusters so small that everything can be tried ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(30))
def test_on_a_small_cluster_no_plan_is_shorter(seed: int) -> None:
    yard = random_yard(seed, 3 + seed % 3, fill=(0.6, 0.75, 0.9)[seed % 3], apps=5, cpu=4_000)
    shape = App("shape", cpu=(1_000, 2_000, 2_500, 3_500)[seed % 4], memory=GI)
    best = fewest_moves(yard, shape, 2 if len(yard.where) <= 12 else 1)  # or there is too much to try
    plan = freed(yard, shape)
    assert best is None or (plan.found and len(plan.moves) == best)
    assert plan.bound <= (best if best is not None else len(plan.moves) if plan.found else plan.bound)
    if plan.found:
        assert yard.moved(plan.moves).refusal(shape, plan.node) == ""


# ── what it does and does not do ────────────────────────────────────────────────────────────────────────────────────

SMALL, HALF, MOST = App("small", 1_000, GI), App("half", 2_000, GI), App("most", 3_000, GI)


def test_room_that_is_there_takes_no_move() -> None:
    plan = freed(yard_of({"n1": 4_000}, [SMALL], {"s": ("small", "n1")}), HALF)
    assert (plan.node, plan.moves, plan.bound) == ("n1", (), 0)


def test_another_pod_moves_first_to_make_room_for_one_that_fits_nowhere() -> None:
    # n1 is freed for 4000 if its half can go to n2, which has room for it only once the small one is on n3.
    yard = yard_of(
        {"n1": 4_000, "n2": 4_000, "n3": 1_000},
        [SMALL, HALF, App("stays", 1_000, GI, owner="")],
        {"h": ("half", "n1"), "s": ("small", "n2"), "x": ("stays", "n2"), "y": ("stays", "n2")},
    )
    plan = freed(yard, App("shape", 4_000, GI))
    assert [(move.key, move.to) for move in plan.moves] == [("default/s", "n3"), ("default/h", "n2")]
    assert yard.moved(plan.moves).refusal(App("shape", 4_000, GI), plan.node) == ""


@pytest.mark.parametrize(
    "app",
    [
        pytest.param(App("pinned", 2_000, GI, owner=""), id="a pod that nobody makes again"),
        pytest.param(App("pinned", 2_000, GI, owner="DaemonSet"), id="a DaemonSet's pod"),
        pytest.param(App("pinned", 2_000, GI, allowed=0), id="a pod whose budget allows nothing"),
    ],
)
def test_some_pods_are_never_moved(app: App) -> None:
    yard = yard_of({"n1": 4_000, "n2": 3_000}, [app], {"p": ("pinned", "n1")})
    assert not freed(yard, App("shape", 4_000, GI)).found


def test_of_a_node_that_cannot_be_freed_it_says_which_pods_are_in_the_way() -> None:
    yard = yard_of({"n1": 4_000, "n2": 4_000}, [App("pinned", 1_000, GI, allowed=0)], {"p": ("pinned", "n1")})
    plan = defrag(yard.sandbox(), NodeGoal("n1"), DrainRules())
    assert not plan.found
    assert [(key, "default/pinned allows 0 disruptions" in why) for key, why in plan.stuck] == [("default/p", True)]


def test_a_pod_that_says_that_it_is_not_safe_to_evict_is_left_alone() -> None:
    yard = yard_of({"n1": 4_000, "n2": 4_000}, [SMALL], {"s": ("small", "n1")})
    sandbox = yard.sandbox()
    note = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    pod = sandbox.pods["default/s"]
    meta = msgspec.structs.replace(pod.metadata, annotations=note)
    sandbox.pods["default/s"] = msgspec.structs.replace(pod, metadata=meta)
    assert not defrag(sandbox, NodeGoal("n1"), DrainRules(honours_annotation=True)).found
    assert defrag(sandbox, NodeGoal("n1"), DrainRules()).found


def test_a_node_that_the_scheduler_would_prefer_is_held_for_a_step_that_needs_another() -> None:
    # The scheduler would put `any` on n2, which is emptier; but nothing else than n2 takes `fast`.
    yard = yard_of(
        {"n1": 4_000, "n2": 5_000, "n3": 8_000},
        [App("any", 2_000, GI), App("fast", 2_000, GI, pool="fast"), App("stays", 2_000, GI, owner="")],
        {"a": ("any", "n1"), "x": ("stays", "n2"), **{f"y{at}": ("stays", "n3") for at in range(3)}},
    )
    for name in ("n1", "n2"):
        yard.hosts[name] = replace(yard.hosts[name], pool="fast")
    yard.put("f", "fast", "n1")
    plan = defrag(yard.sandbox(), NodeGoal("n1"), DrainRules())
    assert [(move.key, move.to, move.holds) for move in plan.moves] == [
        ("default/a", "n3", ("n2",)),
        ("default/f", "n2", ()),
    ]
    assert yard.moved(plan.moves).on("n1") == []
