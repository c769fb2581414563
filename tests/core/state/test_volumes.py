"""Pods with volumes: by node, and by the claims they use."""

from builders import node, pod
from situate.core.model.volumes import Ephemeral, GCEPersistentDisk, PersistentVolumeClaimSource, Volume
from situate.core.state.cluster import Cluster
from situate.core.state.holders import claim_users, volume_holders
from situate.core.state.view import View
from situate.core.state.volumes import claims_of

CLAIM = Volume(name="c", persistent_volume_claim=PersistentVolumeClaimSource(claim_name="data"))
SCRATCH = Volume(name="scratch", ephemeral=Ephemeral())
DISK = Volume(name="d", gce_persistent_disk=GCEPersistentDisk(pd_name="disk"))


def test_claims_are_named_in_the_order_of_volumes_and_ephemeral_ones_after_the_pod() -> None:
    cluster = Cluster()
    kind = cluster.class_of(pod("web", volumes=(SCRATCH, DISK, Volume(name="token"), CLAIM)))
    assert claims_of(kind) == ["web-scratch", "data"]


def test_a_claim_has_users_in_its_own_namespace_alone() -> None:
    cluster = Cluster()
    cluster.add_node(node("a"))
    cluster.add_pod(pod("p", node_name="a", volumes=(CLAIM, CLAIM)))
    cluster.add_pod(pod("p", namespace="other", node_name="a", volumes=(CLAIM,)))
    view = View(cluster)
    assert [one.key for one in claim_users(view, "default", "data")] == ["default/p"]
    assert [one.key for one in claim_users(view, "other", "data")] == ["other/p"]
    assert claim_users(view, "default", "unheard of") == []
    cluster.remove_pod("default/p")
    assert list(cluster.volumes.by_claim) == [("other", "data")]


def test_a_pod_without_volumes_that_matter_is_not_there() -> None:
    cluster = Cluster()
    cluster.add_node(node("a"))
    cluster.add_pod(pod("p", node_name="a", volumes=(Volume(name="token"),)))
    assert volume_holders(View(cluster)) == {}
    cluster.add_pod(pod("q", node_name="a", volumes=(DISK,)))
    assert [[kind.spec.volumes for kind in kinds] for kinds in volume_holders(View(cluster)).values()] == [[(DISK,)]]
