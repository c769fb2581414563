"""A filter that a profile enables at preFilter and not at filter still turns pods away and rules nodes out."""

import numpy as np

from builders import node, pod, term
from situate.core.contract import FITS, RULED_OUT
from situate.core.engine.decision import Decision, decide
from situate.core.engine.framework import build_frameworks
from situate.core.model.nodeselector import NodeSelector
from situate.core.model.pod import Affinity, NodeAffinitySpec, Pod
from situate.core.model.volumes import PersistentVolumeClaimSource, Volume
from situate.core.plugins.node_affinity import NodeAffinity as NodeAffinityPlugin
from situate.core.plugins.node_unschedulable import NodeUnschedulable
from situate.core.plugins.support.single_stage import pre_filter_only
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from situate.wire.config import config_of


def cluster_of_three() -> Cluster:
    cluster = Cluster()
    for name in ("a", "b", "c"):
        cluster.add_node(node(name, cpu="4", memory="8Gi", pods="10", unschedulable=name == "c"))
    return cluster


def bound_to(name: str, *expressions: tuple[str, str, tuple[str, ...]]) -> Pod:
    terms = NodeSelector(node_selector_terms=(term(*expressions, fields=(("metadata.name", "In", name),)),))
    rules = NodeAffinitySpec(required_during_scheduling_ignored_during_execution=terms)
    return pod(affinity=Affinity(node_affinity=rules), cpu="1", memory="1Gi")


def test_nodes_that_it_ruled_out_stay_ruled_out_and_those_it_refused_are_let_through() -> None:
    cluster = cluster_of_three()
    kind, view = cluster.class_of(bound_to("b", ("nowhere", "Exists", ()))), View(cluster)
    codes = pre_filter_only(NodeAffinityPlugin()).check(kind, view)
    assert isinstance(codes, np.ndarray)
    assert codes.tolist() == [RULED_OUT, FITS, RULED_OUT]


def test_where_it_rules_out_nobody_it_has_nothing_to_say() -> None:
    cluster = cluster_of_three()
    assert pre_filter_only(NodeUnschedulable()).check(cluster.class_of(pod()), View(cluster)) is None


def decision(asking: Pod) -> Decision:
    """What a profile decides that has one filter left."""
    filters = {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}
    profile = {"schedulerName": "default-scheduler", "plugins": {"filter": filters}}
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    deciding = build_frameworks(config_of({**header, "profiles": [profile]}))["default-scheduler"]
    cluster = cluster_of_three()
    return decide(deciding, cluster.class_of(asking), View(cluster))


def test_a_profile_without_node_affinity_at_filter_looks_only_at_the_node_that_the_pod_names() -> None:
    found = decision(bound_to("c", ("nowhere", "Exists", ())))
    assert found.filtered.feasible.tolist() == [False, False, True]


def test_a_profile_without_volume_binding_at_filter_turns_away_a_pod_whose_claim_does_not_exist() -> None:
    claim = PersistentVolumeClaimSource(claim_name="data")
    found = decision(pod(volumes=(Volume(name="v", persistent_volume_claim=claim),)))
    assert found.message.startswith('0/3 nodes are available: persistentvolumeclaim "data" not found.')
