from hypothesis import given
from hypothesis import strategies as st

from builders import node, pod
from situate.core.engine.framework import default_framework
from situate.core.model.labels import LabelSelector
from situate.core.model.meta import ObjectMeta
from situate.core.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from situate.core.preempt.extender_preemption import (
    EXTENDER,
    ExtenderRejection,
    PreemptionContext,
    candidates,
    restricted_to,
    with_extender_rejections,
)
from situate.core.preempt.fit_failure import FitFailure, FitFailureFinder
from situate.core.preempt.lower_priority import LowerTables
from situate.core.preempt.options import PreemptionOptions
from situate.core.preempt.preemption import PreemptionInputs
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

PROFILE = default_framework().profile


def cluster_of(running: list[list[tuple[int, int, bool]]], cpu: int = 4) -> Cluster:
    """Nodes with these pods: how many cores, which priority, and whether a budget protects it."""
    cluster = Cluster()
    for at, pods in enumerate(running):
        cluster.add_node(node(f"n{at}", cpu=cpu, pods=110))
        for number, (cores, priority, protected) in enumerate(pods):
            labels = {"app": "db"} if protected else {}
            name = f"p{at}-{number}"
            cluster.add_pod(
                pod(name, uid=name, cpu=cores, priority=priority, labels=labels, node_name=f"n{at}", phase="Running")
            )
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(name="b", namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "db"})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=0),
    )
    cluster.put_object(budget)
    return cluster


def sought(cluster: Cluster, cores: int, options: PreemptionOptions) -> tuple[PodClass, FitFailure, PreemptionContext]:
    kind = cluster.class_of(pod("urgent", cpu=cores, priority=100))
    found = FitFailureFinder(cluster, PROFILE, options, LowerTables(cluster)).find(kind)
    return kind, found, PreemptionContext(PROFILE, kind, View(cluster), options, PreemptionInputs())


PODS = st.lists(st.tuples(st.integers(1, 3), st.sampled_from([0, 1, 50, 200]), st.booleans()), max_size=4)


@given(st.lists(PODS, min_size=1, max_size=6), st.booleans())
def test_the_first_of_all_candidates_is_the_one_that_is_chosen(
    running: list[list[tuple[int, int, bool]]], never_break_budgets: bool
) -> None:
    options = PreemptionOptions(never_break_budgets=never_break_budgets)
    _, found, seeking = sought(cluster_of(running), 4, options)
    if found.post_filter is None:
        return
    offered = candidates(found.diagnosis, seeking)
    assert [one.row for one in offered[:1]] == [row for row in [found.post_filter.node_row] if row is not None]
    assert len({one.row for one in offered}) == len(offered)


@given(st.lists(PODS, min_size=1, max_size=6), st.sets(st.integers(0, 5)))
def test_narrowed_to_some_nodes_the_best_of_those_is_chosen(
    running: list[list[tuple[int, int, bool]]], left: set[int]
) -> None:
    cluster = cluster_of(running)
    _, found, seeking = sought(cluster, 4, PreemptionOptions())
    if found.post_filter is None or found.post_filter.node_row is None:
        return
    only = View(cluster).present.copy()
    only[[row for row in range(len(only)) if row not in left]] = False
    result = restricted_to(found, only, seeking).post_filter
    expected = [one.row for one in candidates(found.diagnosis, seeking) if one.row in left]
    assert result is not None
    assert result.node_row == (expected[0] if expected else None)


def test_what_extenders_refuse_is_told_after_what_filters_refuse() -> None:
    cluster = cluster_of([[], [(4, 0, False)], []])
    _, found, seeking = sought(cluster, 2, PreemptionOptions())
    said = [
        ExtenderRejection(0, "no gpu", eviction_helps=False),
        ExtenderRejection(1, "never looked at", eviction_helps=False),
    ]
    some = with_extender_rejections(found, said, seeking)
    assert some.post_filter is None
    assert some.filtered.feasible.tolist()[:3] == [False, False, True]
    every = with_extender_rejections(found, [*said, ExtenderRejection(2, "no gpu", eviction_helps=True)], seeking)
    assert every.message == "0/3 nodes are available: 1 Insufficient cpu, 2 no gpu."
    assert every.post_filter is not None
    assert every.post_filter.node_row == 1
    assert every.diagnosis.plugins == ("NodeResourcesFit", EXTENDER)
