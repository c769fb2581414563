"""How many more fit: as many as the filters let in one by one, and kube-scheduler's words for the next."""

import pytest

from builders import node, pod
from situate.core.config.defaults import default_configuration
from situate.core.engine.framework import build_frameworks
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.plan.fit import FitResult, fit
from situate.core.plan.sandbox import Sandbox
from situate.core.state.cluster import Cluster
from yards import GI, App, pod_of, random_yard


def ground_of(nodes: list[Node], pods: list[Pod]) -> Sandbox:
    cluster = Cluster()
    cluster.load(nodes, [], pods)
    return Sandbox(cluster, build_frameworks(default_configuration()), pods)


def counted(nodes: list[Node], one: Pod, *pods: Pod, most: int = 1_000) -> FitResult:
    return fit(ground_of(nodes, list(pods)), one, most)


NODES = [node("n1", cpu="4", memory="8Gi", pods="10"), node("n2", cpu="2", memory="8Gi", pods="10")]


def test_they_are_counted_by_node() -> None:
    told = counted(NODES, pod("web", cpu="1", memory="1Gi"))
    assert (told.count, dict(told.by_node)) == (6, {"n1": 4, "n2": 2})


def test_the_next_one_is_told_kube_schedulers_message() -> None:
    told = counted(NODES, pod("web", cpu="1", memory="1Gi"))
    assert told.message.startswith("0/2 nodes are available: 2 Insufficient cpu. ")


def test_what_runs_already_takes_its_room() -> None:
    told = counted(NODES, pod("web", cpu="1"), pod("old", cpu="3", node_name="n1", phase="Running"))
    assert told.count == 3


def test_counting_ends_at_its_limit() -> None:
    told = counted(NODES, pod("web", cpu="1"), most=3)
    assert (told.count, told.stopped, told.message) == (3, False, "")


def test_a_pod_that_is_more_important_than_others_would_drive_them_out() -> None:
    told = counted(NODES, pod("web", cpu="2", priority=10), pod("old", cpu="1", node_name="n2", phase="Running"))
    assert (told.count, told.node, told.evicts) == (2, "n2", ("default/old",))


def test_a_pod_that_is_bound_is_counted_as_one_more_of_it() -> None:
    old = pod("web", cpu="3", node_name="n1", phase="Running")
    assert counted(NODES, old, old).count == 0


@pytest.mark.parametrize("seed", range(6))
def test_it_is_as_many_as_the_rules_let_in(seed: int) -> None:
    yard = random_yard(seed, 30, fill=0.6)
    app = App(
        "more", cpu=1_500, memory=2 * GI, apart=seed % 2 == 0, skew=seed % 3, pool="fast" if seed % 4 == 1 else ""
    )
    yard.apps["more"] = app
    told = fit(yard.sandbox(), pod_of(app, "more"))
    after = yard.copy()
    for name, count in told.by_node.items():
        for number in range(count):
            after.put(f"more-{name}-{number}", "more", name)
    # With a spread, the order matters to whether each was legal; that none fits any more does not depend on it.
    assert {after.refusal(app, host) for host in after.hosts} & {""} == set()
    if not app.skew:
        alone = yard.copy()
        total = 0
        for host in alone.hosts:
            while not alone.refusal(app, host):
                alone.put(f"x{total}", "more", host)
                total += 1
        assert told.count == total
