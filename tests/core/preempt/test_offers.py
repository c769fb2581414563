from hypothesis import given
from hypothesis import strategies as st

from builders import node, pod
from situate.core.engine.profile import default_profile
from situate.core.model.labels import LabelSelector
from situate.core.model.meta import ObjectMeta
from situate.core.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from situate.core.preempt.lower import LowerTables
from situate.core.preempt.offers import EXTENDER, Said, Seeking, candidates, narrowed, refused_with
from situate.core.preempt.options import PreemptionOptions
from situate.core.preempt.preempting import Known
from situate.core.preempt.remedies import Refused, Remedies
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

PROFILE = default_profile().profile


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


def sought(cluster: Cluster, cores: int, options: PreemptionOptions) -> tuple[PodClass, Refused, Seeking]:
    kind = cluster.class_of(pod("urgent", cpu=cores, priority=100))
    found = Remedies(cluster, PROFILE, options, LowerTables(cluster)).find(kind)
    return kind, found, Seeking(PROFILE, kind, View(cluster), options, Known())


PODS = st.lists(st.tuples(st.integers(1, 3), st.sampled_from([0, 1, 50, 200]), st.booleans()), max_size=4)


@given(st.lists(PODS, min_size=1, max_size=6), st.booleans())
def test_the_first_of_all_candidates_is_the_one_that_is_chosen(
    running: list[list[tuple[int, int, bool]]], never_break_budgets: bool
) -> None:
    options = PreemptionOptions(never_break_budgets=never_break_budgets)
    _, found, seeking = sought(cluster_of(running), 4, options)
    if found.remedy is None:
        return
    offered = candidates(found.diagnosis, seeking)
    assert [one.row for one in offered[:1]] == [row for row in [found.remedy.node_row] if row is not None]
    assert len({one.row for one in offered}) == len(offered)


@given(st.lists(PODS, min_size=1, max_size=6), st.sets(st.integers(0, 5)))
def test_narrowed_to_some_nodes_the_best_of_those_is_chosen(
    running: list[list[tuple[int, int, bool]]], left: set[int]
) -> None:
    cluster = cluster_of(running)
    _, found, seeking = sought(cluster, 4, PreemptionOptions())
    if found.remedy is None or found.remedy.node_row is None:
        return
    only = View(cluster).present.copy()
    only[[row for row in range(len(only)) if row not in left]] = False
    remedy = narrowed(found, only, seeking).remedy
    expected = [one.row for one in candidates(found.diagnosis, seeking) if one.row in left]
    assert remedy is not None
    assert remedy.node_row == (expected[0] if expected else None)


def test_what_extenders_refuse_is_told_after_what_filters_refuse() -> None:
    cluster = cluster_of([[], [(4, 0, False)], []])
    _, found, seeking = sought(cluster, 2, PreemptionOptions())
    said = [Said(0, "no gpu", eviction_helps=False), Said(1, "never looked at", eviction_helps=False)]
    some = refused_with(found, said, seeking)
    assert some.remedy is None
    assert some.filtered.feasible.tolist()[:3] == [False, False, True]
    every = refused_with(found, [*said, Said(2, "no gpu", eviction_helps=True)], seeking)
    assert every.message == "0/3 nodes are available: 1 Insufficient cpu, 2 no gpu."
    assert every.remedy is not None
    assert every.remedy.node_row == 1
    assert every.diagnosis.plugins == ("NodeResourcesFit", EXTENDER)
