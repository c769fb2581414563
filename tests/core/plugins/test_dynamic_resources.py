"""DynamicResources scores 0 everywhere, and turns away pods whose claims it does not know."""

import pytest

from situate.core.contract import Refusal
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.model.pod import Pod, PodResourceClaim, PodSpec
from situate.core.plugins.dynamic_resources import DynamicResources
from situate.core.state.cluster import Cluster
from situate.core.state.view import View


def cluster_of(*names: str) -> Cluster:
    cluster = Cluster()
    for name in names:
        cluster.add_node(Node(metadata=ObjectMeta(name=name)))
    return cluster


def pod(*claims: PodResourceClaim) -> Pod:
    return Pod(metadata=ObjectMeta(name="p", namespace="team"), spec=PodSpec(resource_claims=claims))


def test_a_pod_without_claims_fits_everywhere_and_every_node_scores_0() -> None:
    cluster = cluster_of("a", "b")
    kind = cluster.class_of(pod())
    assert DynamicResources().check(kind, View(cluster)) is None
    assert DynamicResources().score(kind, View(cluster)).tolist() == [0, 0]
    assert DynamicResources().score(kind, View(cluster).at(1)).tolist() == [0]


@pytest.mark.parametrize(
    "claim,text",
    [
        pytest.param(
            PodResourceClaim(name="gpu", resource_claim_name="mine"),
            'could not find ResourceClaim "team/mine"',
            id="a claim that is named is not found",
        ),
        pytest.param(
            PodResourceClaim(name="gpu", resource_claim_template_name="any"),
            'pod "team/p": ResourceClaim not created yet',
            id="a claim from a template has not been made",
        ),
    ],
)
def test_a_pod_with_claims_is_turned_away(claim: PodResourceClaim, text: str) -> None:
    cluster = cluster_of("a")
    assert DynamicResources().check(cluster.class_of(pod(claim)), View(cluster)) == Refusal(text, eviction_helps=False)
