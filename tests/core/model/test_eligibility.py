"""Whether a node may have a pod: the same answer as the scheduler's plugins give, one node at a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import node, pod, taint, term, toleration
from situate.core.model.eligibility import bind_refusals, run_refusals
from situate.core.model.node import Node
from situate.core.model.nodeselector import NodeSelector
from situate.core.model.pod import Affinity, NodeAffinitySpec, Pod
from situate.core.place.filtering import run_filters
from situate.core.place.profile import Profile
from situate.core.plugins.node_affinity import NodeAffinity as NodeAffinityPlugin
from situate.core.plugins.node_unschedulable import NodeUnschedulable
from situate.core.plugins.taint_toleration import TaintToleration
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

KEYS, VALUES = ("a", "b"), ("x", "y", "")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
taints = st.builds(taint, st.sampled_from(KEYS), st.sampled_from(VALUES), st.sampled_from(EFFECTS))
tolerations = st.builds(
    toleration,
    st.sampled_from((*KEYS, "", "node.kubernetes.io/unschedulable")),
    st.sampled_from(("Equal", "Exists", "")),
    st.sampled_from(VALUES),
    st.sampled_from((*EFFECTS, "")),
)
nodes = st.builds(
    lambda has, repels, cordoned: node("n1", labels=has, taints=tuple(repels), unschedulable=cordoned),
    labels,
    st.lists(taints, max_size=2),
    st.booleans(),
)
Expression = tuple[str, str, list[str]]
expressions: st.SearchStrategy[Expression] = st.one_of(
    st.tuples(st.sampled_from(KEYS), st.sampled_from(("In", "NotIn")), st.lists(st.sampled_from(VALUES), min_size=1)),
    st.tuples(st.sampled_from(KEYS), st.sampled_from(("Exists", "DoesNotExist")), st.just([])),
)
terms = st.builds(
    lambda asked, name: term(
        *[(key, operator, tuple(values)) for key, operator, values in asked],
        fields=(("metadata.name", "In", name),) if name else (),
    ),
    st.lists(expressions, max_size=2),
    st.sampled_from(("", "n1", "n2")),
)


def affine(asked: list[object] | None) -> Affinity | None:
    if asked is None:
        return None
    selector = NodeSelector(node_selector_terms=tuple(asked))  # type: ignore[arg-type]
    return Affinity(node_affinity=NodeAffinitySpec(required_during_scheduling_ignored_during_execution=selector))


pods = st.builds(
    lambda wanted, tolerated, asked: pod(
        uid="u", node_selector=wanted, tolerations=tuple(tolerated), affinity=affine(asked)
    ),
    labels,
    st.lists(tolerations, max_size=2),
    st.none() | st.lists(terms, max_size=2),
)


@given(pods, nodes)
def test_a_bind_is_refused_exactly_where_the_plugins_refuse_the_node(asking: Pod, there: Node) -> None:
    cluster = Cluster()
    cluster.add_node(there)
    profile = Profile("p", (NodeUnschedulable(), TaintToleration(), NodeAffinityPlugin()), ())
    fits = bool(run_filters(profile, cluster.class_of(asking), View(cluster)).feasible.any())
    assert (bind_refusals(asking, there) == []) is fits


def test_each_refusal_is_told() -> None:
    there = node(unschedulable=True, taints=(taint("gpu", "yes"),), labels={"disk": "hdd"})
    asking = pod(node_selector={"disk": "ssd"}, affinity=affine([term(("zone", "Exists", ()))]))
    assert bind_refusals(asking, there) == [
        "it is unschedulable",
        "it has the taint gpu=yes:NoSchedule, which the pod does not tolerate",
        "its labels do not have disk=ssd, which the pod's nodeSelector asks for",
        "it does not match the pod's required node affinity",
    ]


@pytest.mark.parametrize(
    "there, refused",
    [
        pytest.param(node(unschedulable=True), False, id="a cordon does not concern a pod that names its node"),
        pytest.param(node(taints=(taint(),)), False, id="nor does a taint that is for schedulers"),
        pytest.param(node(taints=(taint(effect="NoExecute"),)), True, id="a taint that would have it leave does"),
        pytest.param(node(labels={"disk": "hdd"}), True, id="so do labels that it does not match"),
    ],
)
def test_a_pod_that_names_its_node_is_refused_what_a_kubelet_would_not_run(there: Node, refused: bool) -> None:
    asking = pod(node_selector={"disk": "ssd"} if there.metadata.labels else {})
    assert bool(run_refusals(asking, there)) is refused
